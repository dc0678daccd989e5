"""Leases for the OpenAI Agents SDK, with its ScriptedModel."""

from __future__ import annotations

from typing import Any

from agents import Agent, RunConfig, Runner, ToolOutputImage, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from conftest import Tool

from interlock import AsyncClient
from interlock.ext.openai_agents import leased


async def agent(tool: Tool, client: AsyncClient, wait: float) -> str:
    @function_tool
    async def refund(account_id: str) -> Any:
        """Refunds."""
        return await tool.run(account_id)

    call: Any = function_call("refund", tool.arguments, call_id="c1")
    model = ScriptedModel([[call], [assistant_message("done")]])
    actor: Any = Agent(name="a", model=model, tools=[leased(refund, "account:{account_id}", client=client, wait=wait)])
    result = await Runner.run(actor, "refund it", run_config=RunConfig(tracing_disabled=True))
    return next(str(item.output) for item in result.new_items if item.type == "tool_call_output_item")


def test_cases(cases: Any) -> None:
    cases(agent)


def test_reports(reports: Any) -> None:
    reports(agent, ToolOutputImage(image_url="data:image/png;base64,AA=="))


def test_missing_argument(missing: Any) -> None:
    missing(agent)
