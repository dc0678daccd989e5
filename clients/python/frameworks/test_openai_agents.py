"""Leases for the OpenAI Agents SDK, with its ScriptedModel."""

from __future__ import annotations

from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    ToolOutputImage,
    Usage,
    function_tool,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from conftest import BANK_KEYS, Bank, Tool, next_call

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


class Teller(Model):
    """A fake model that reads the balance and writes another one."""

    def __init__(self, change: int) -> None:
        self.change = change

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        given = kwargs.get("input", args[1] if len(args) > 1 else None)
        found = [one["output"] for one in given if isinstance(one, dict) and one.get("type") == "function_call_output"]
        call = next_call([str(one) for one in found], self.change)
        item: Any = assistant_message("done") if call is None else function_call(*call, call_id=f"c{len(found)}")
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def teller(bank: Bank, client: AsyncClient, change: int) -> Any:
    @function_tool
    async def get_balance(account_id: str) -> str:
        """Reads."""
        return await bank.get_balance(client)

    @function_tool
    async def set_balance(account_id: str, balance: int) -> str:
        """Writes."""
        return await bank.set_balance(client, balance)

    tools = [
        leased(tool, BANK_KEYS[tool.name], client=client, wait=60, **bank.options)
        for tool in (get_balance, set_balance)
    ]
    return Agent(name="a", model=Teller(change), tools=tools)


async def turn(bank: Bank, client: AsyncClient, change: int) -> None:
    settings = RunConfig(tracing_disabled=True)
    await Runner.run(teller(bank, client, change), "change it", run_config=settings)


def test_sums(sums: Any) -> None:
    sums(turn)


def test_failed_read(failed_read: Any) -> None:
    """The SDK makes a text of the error of a tool."""
    failed_read(turn)
