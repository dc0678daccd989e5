"""Two agents of Microsoft's Agent Framework charge one account. The model is a fake one."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    SupportsChatGetResponse,
    tool,
)
from bank import balances, decide, get_balance, set_balance

from interlock import AsyncClient
from interlock.ext.agent_framework import Leases


def teller(client: AsyncClient, model: SupportsChatGetResponse) -> Agent:
    account = "account:{account_id}"
    leases = Leases({"get_balance": account, "set_balance": account}, client=client, wait=20)
    tools = [tool(one, approval_mode="never_require") for one in (get_balance, set_balance)]
    return Agent(client=model, tools=tools, middleware=[leases])


class FakeModel(FunctionInvocationLayer, BaseChatClient):
    """Calls the tools, and repeats the last result."""

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> ChatResponse:
        results = [str(one.result) for message in messages for one in message.contents if one.type == "function_result"]
        next_step = decide(results)
        if isinstance(next_step, str):
            content = Content.from_text(next_step)
        else:
            content = Content.from_function_call(str(len(results)), next_step[0], arguments=next_step[1])
        return ChatResponse(messages=[Message(role="assistant", contents=[content])])


async def run(name: str) -> None:
    async with AsyncClient(agent=name) as client:
        print((await teller(client, FakeModel()).run("charge the fee")).text)


async def main() -> None:
    await asyncio.gather(run("ann"), run("bob"))
    print("balance", balances["7"])


asyncio.run(main())
