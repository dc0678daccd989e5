"""Leases for the Agent Framework, with a fake chat client."""

from __future__ import annotations

from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message
from agent_framework import tool as as_tool
from conftest import BANK_KEYS, Bank, Tool, next_call

from interlock import AsyncClient
from interlock.ext.agent_framework import Leases


class Model(FunctionInvocationLayer, BaseChatClient):
    """A fake model that calls the tool once."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        results = [c for m in messages for c in m.contents if c.type == "function_result"]
        if results:
            parts = [str(one.to_dict()) for one in results[0].items or []]
            self.found.append(" ".join(parts) if len(parts) > 1 else str(results[0].result))
            return ChatResponse(messages=[Message(role="assistant", contents=["done"])])
        call = Content.from_function_call("c1", "refund", arguments={"account_id": "7"})
        return ChatResponse(messages=[Message(role="assistant", contents=[call])])


async def agent(tool: Tool, client: AsyncClient, wait: float) -> str:
    @as_tool(approval_mode="never_require")
    async def refund(account_id: str) -> Any:
        """Refunds."""
        return await tool.run(account_id)

    model = Model()
    leases = Leases({"refund": "account:{account_id}"}, client=client, wait=wait)
    actor: Any = Agent(client=model, tools=[refund], middleware=[leases])
    await actor.run("refund it")
    return model.found[0]


def test_cases(cases: Any) -> None:
    cases(agent)


def test_reports(reports: Any) -> None:
    reports(agent, [Content.from_data(b"x", "image/png")])


class Teller(FunctionInvocationLayer, BaseChatClient):
    """A fake model that reads the balance and writes another one."""

    def __init__(self, change: int) -> None:
        super().__init__()
        self.change = change

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        results = [str(c.result) for m in messages for c in m.contents if c.type == "function_result"]
        call = next_call(results, self.change)
        part: Any = "done"
        if call is not None:
            part = Content.from_function_call(f"c{len(results)}", call[0], arguments=call[1])
        return ChatResponse(messages=[Message(role="assistant", contents=[part])])


def test_sums(sums: Any) -> None:
    async def turn(bank: Bank, client: AsyncClient, change: int) -> None:
        @as_tool(approval_mode="never_require")
        async def get_balance(account_id: str) -> str:
            """Reads."""
            return await bank.get_balance(client)

        @as_tool(approval_mode="never_require")
        async def set_balance(account_id: str, balance: int) -> str:
            """Writes."""
            return await bank.set_balance(client, balance)

        leases = Leases(BANK_KEYS, client=client, wait=60, **bank.options)
        tools: Any = [get_balance, set_balance]
        await Agent(client=Teller(change), tools=tools, middleware=[leases]).run("change it")

    sums(turn)
