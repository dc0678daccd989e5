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
from bank import balances, charge

from interlock import AsyncClient
from interlock.ext.agent_framework import Leases


def teller(client: AsyncClient, model: SupportsChatGetResponse) -> Agent:
    leases = Leases({"charge": "account:{account_id}"}, client=client, wait=20)
    return Agent(client=model, tools=[tool(charge, approval_mode="never_require")], middleware=[leases])


class FakeModel(FunctionInvocationLayer, BaseChatClient):
    """Calls the tool, and repeats its result."""

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> ChatResponse:
        last = messages[-1].contents[-1]
        if last.type == "function_result":
            content = Content.from_text(str(last.result))
        else:
            content = Content.from_function_call("1", "charge", arguments={"account_id": "7", "amount": 35})
        return ChatResponse(messages=[Message(role="assistant", contents=[content])])


async def run(name: str) -> None:
    async with AsyncClient(agent=name) as client:
        print((await teller(client, FakeModel()).run("charge the fee")).text)


async def main() -> None:
    await asyncio.gather(run("ann"), run("bob"))
    print("balance", balances["7"])


asyncio.run(main())
