"""Two agents of the OpenAI Agents SDK charge one account. The model is a fake one."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.testing import assistant_message, function_call
from bank import balances, decide, get_balance, set_balance

from interlock import AsyncClient
from interlock.ext.openai_agents import leased


def teller(client: AsyncClient, model: Model) -> Agent:
    tools = [
        leased(function_tool(one), "account:{account_id}", client=client, wait=20) for one in (get_balance, set_balance)
    ]
    return Agent(name="teller", model=model, tools=tools)


class FakeModel(Model):
    """Calls the tools, and repeats the last result."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        items = [item for item in input if isinstance(item, dict)]
        results = [item["output"] for item in items if item.get("type") == "function_call_output"]
        next_step = decide(results)
        if isinstance(next_step, str):
            output = assistant_message(next_step)
        else:
            output = function_call(*next_step, call_id=str(len(results)))
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


async def run(name: str) -> None:
    async with AsyncClient(agent=name) as client:
        settings = RunConfig(tracing_disabled=True)
        result = await Runner.run(teller(client, FakeModel()), "charge the fee", run_config=settings)
        print(result.final_output)


async def main() -> None:
    await asyncio.gather(run("ann"), run("bob"))
    print("balance", balances["7"])


asyncio.run(main())
