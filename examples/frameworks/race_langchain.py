"""Two agents of LangChain charge one account. The model is a fake one."""

from __future__ import annotations

import asyncio
from typing import Any

from bank import balances, decide, get_balance, set_balance
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from interlock import AsyncClient
from interlock.ext.langchain import Leases


def teller(client: AsyncClient, model: BaseChatModel) -> Any:
    account = "account:{account_id}"
    leases = Leases({"get_balance": account, "set_balance": account}, client=client, wait=20)
    return create_agent(model, [tool(get_balance), tool(set_balance)], middleware=[leases])


class FakeModel(BaseChatModel):
    """Calls the tools, and repeats the last result."""

    _llm_type = "fake"

    def bind_tools(self, tools: Any, **kwargs: Any) -> FakeModel:
        return self

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> ChatResult:
        results = [message.content for message in messages if isinstance(message, ToolMessage)]
        next_step = decide(results)
        if isinstance(next_step, str):
            answer = AIMessage(next_step)
        else:
            call = ToolCall(name=next_step[0], args=next_step[1], id=str(len(results)))
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


async def run(name: str) -> None:
    async with AsyncClient(agent=name) as client:
        result = await teller(client, FakeModel()).ainvoke({"messages": [("user", "charge the fee")]})
        print(result["messages"][-1].content)


async def main() -> None:
    await asyncio.gather(run("ann"), run("bob"))
    print("balance", balances["7"])


asyncio.run(main())
