"""Two agents of LangChain charge one account. The model is a fake one."""

from __future__ import annotations

import asyncio
from typing import Any

from bank import balances, charge
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from interlock import AsyncClient
from interlock.ext.langchain import Leases


def teller(client: AsyncClient, model: BaseChatModel) -> Any:
    leases = Leases({"charge": "account:{account_id}"}, client=client, wait=20)
    return create_agent(model, [tool(charge)], middleware=[leases])


class FakeModel(BaseChatModel):
    """Calls the tool, and repeats its result."""

    _llm_type = "fake"

    def bind_tools(self, tools: Any, **kwargs: Any) -> FakeModel:
        return self

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            answer = AIMessage(messages[-1].content)
        else:
            answer = AIMessage("", tool_calls=[ToolCall(name="charge", args={"account_id": "7", "amount": 35}, id="1")])
        return ChatResult(generations=[ChatGeneration(message=answer)])


async def run(name: str) -> None:
    async with AsyncClient(agent=name) as client:
        result = await teller(client, FakeModel()).ainvoke({"messages": [("user", "charge the fee")]})
        print(result["messages"][-1].content)


async def main() -> None:
    await asyncio.gather(run("ann"), run("bob"))
    print("balance", balances["7"])


asyncio.run(main())
