"""Two agents of Pydantic AI charge one account, and none waits while the other one thinks. The model is a function."""

from __future__ import annotations

import asyncio

from bank import balances, decide, get_balance, set_balance
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from interlock import AsyncClient
from interlock.ext.pydantic_ai import Leases


def teller(client: AsyncClient, model: Model) -> Agent:
    account = "account:{account_id}"
    keys = {"get_balance": account, "set_balance": account}
    leases = Leases(keys, client=client, hold="commit", reads=["get_balance"], wait=20)
    return Agent(model, tools=[get_balance, set_balance], capabilities=[leases])


def fake(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Calls the tools, and repeats the last result."""
    parts = [part for message in messages for part in message.parts]
    next_step = decide([str(part.content) for part in parts if isinstance(part, ToolReturnPart)])
    if isinstance(next_step, str):
        return ModelResponse(parts=[TextPart(next_step)])
    return ModelResponse(parts=[ToolCallPart(*next_step)])


async def run(name: str) -> None:
    async with AsyncClient(agent=name) as client:
        result = await teller(client, FunctionModel(fake)).run("charge the fee")
        print(result.output)


async def main() -> None:
    await asyncio.gather(run("ann"), run("bob"))
    print("balance", balances["7"])


asyncio.run(main())
