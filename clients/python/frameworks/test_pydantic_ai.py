"""Leases for Pydantic AI, with its FunctionModel."""

from __future__ import annotations

from typing import Any

from conftest import Tool
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
