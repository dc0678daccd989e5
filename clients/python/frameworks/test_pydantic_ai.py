"""Leases for Pydantic AI, with its FunctionModel."""

from __future__ import annotations

from typing import Any

from conftest import BANK_KEYS, Bank, Tool, next_call
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from interlock import AsyncClient
from interlock.ext.pydantic_ai import Leases


async def agent(tool: Tool, client: AsyncClient, wait: float) -> str:
    found: list[str] = []

    def model(messages: list[Any], info: Any) -> ModelResponse:
        returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if returns:
            found.append(str(returns[0].content))
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("refund", {"account_id": "7"})])

    leases = Leases({"refund": "account:{account_id}"}, client=client, wait=wait)
    actor: Any = Agent(FunctionModel(model), capabilities=[leases])

    @actor.tool_plain
    async def refund(account_id: str) -> Any:
        return await tool.run(account_id)

    await actor.run("refund it")
    return found[0]


def test_cases(cases: Any) -> None:
    cases(agent)


def test_reports(reports: Any) -> None:
    reports(agent, BinaryContent(b"x", media_type="image/png"))


def test_sums(sums: Any) -> None:
    async def turn(bank: Bank, client: AsyncClient, change: int) -> None:
        def model(messages: list[Any], info: Any) -> ModelResponse:
            parts = [part for message in messages for part in message.parts]
            call = next_call([str(part.content) for part in parts if isinstance(part, ToolReturnPart)], change)
            return ModelResponse(parts=[TextPart("done") if call is None else ToolCallPart(*call)])

        actor: Any = Agent(
            FunctionModel(model), capabilities=[Leases(BANK_KEYS, client=client, wait=60, **bank.options)]
        )

        @actor.tool_plain
        async def get_balance(account_id: str) -> str:
            return await bank.get_balance(client)

        @actor.tool_plain
        async def set_balance(account_id: str, balance: int) -> str:
            return await bank.set_balance(client, balance)

        if change > 0:
            await actor.run("change it")
        else:
            async with actor.iter("change it") as run:
                async for _ in run:
                    pass

    sums(turn)
