"""Two agents of the Claude Agent SDK charge one account. A client of MCP stands for the model: it calls the tool."""

from __future__ import annotations

import asyncio
from typing import Any

import bank
from claude_agent_sdk import create_sdk_mcp_server, tool
from claude_agent_sdk.types import McpSdkServerConfig
from mcp import Client as Caller

from interlock import AsyncClient, guarded


def teller(client: AsyncClient) -> McpSdkServerConfig:
    @tool("charge", "Charges a fee to an account.", {"account_id": str, "amount": int})
    async def charge(arguments: dict[str, Any]) -> dict[str, Any]:
        leased = guarded("account:{account_id}", client=client, wait=20)(bank.charge)
        return {"content": [{"type": "text", "text": await leased(**arguments)}]}

    return create_sdk_mcp_server("bank", tools=[charge])


async def run(name: str) -> None:
    async with AsyncClient(agent=name) as client, Caller(teller(client)["instance"]) as caller:
        result = await caller.call_tool("charge", {"account_id": "7", "amount": 35})
        print(result.content[0].text)


async def main() -> None:
    await asyncio.gather(run("ann"), run("bob"))
    print("balance", bank.balances["7"])


asyncio.run(main())
