"""Two agents of the OpenAI Agents SDK charge one account. The model is a fake one."""

from __future__ import annotations

import asyncio

from agents import Agent, Model, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from bank import balances, charge

from interlock import AsyncClient
from interlock.ext.openai_agents import leased


def teller(client: AsyncClient, model: Model) -> Agent:
    tool = leased(function_tool(charge), "account:{account_id}", client=client, wait=20)
    return Agent(name="teller", model=model, tools=[tool])


async def run(name: str) -> None:
    call = function_call("charge", {"account_id": "7", "amount": 35}, call_id="1")
    model = ScriptedModel([[call], [assistant_message("done")]])
    async with AsyncClient(agent=name) as client:
        settings = RunConfig(tracing_disabled=True)
        result = await Runner.run(teller(client, model), "charge the fee", run_config=settings)
        print(*(item.output for item in result.new_items if item.type == "tool_call_output_item"))


async def main() -> None:
    await asyncio.gather(run("ann"), run("bob"))
    print("balance", balances["7"])


asyncio.run(main())
