"""Two agents of Pydantic AI charge one account. The model is a function."""

from __future__ import annotations

import asyncio

from bank import balances, charge
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from interlock import AsyncClient
from interlock.ext.pydantic_ai import Leases


def teller(client: AsyncClient, model: Model) -> Agent:
    leases = Leases({"charge": "account:{account_id}"}, client=client, wait=20)
    return Agent(model, tools=[charge], capabilities=[leases])


def fake(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Calls the tool, and repeats its result."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(str(last.content))])
    return ModelResponse(parts=[ToolCallPart("charge", {"account_id": "7", "amount": 35})])


async def run(name: str) -> None:
    async with AsyncClient(agent=name) as client:
        result = await teller(client, FunctionModel(fake)).run("charge the fee")
        print(result.output)


async def main() -> None:
    await asyncio.gather(run("ann"), run("bob"))
    print("balance", balances["7"])


asyncio.run(main())
