"""Leases for LangChain, with a fake chat model."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest import KEY, Tool
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as as_tool

from interlock import AsyncClient, Client, current_lease
from interlock.ext.langchain import Leases
from interlock.testing import LocalServer


class Model(GenericFakeChatModel):
    """A fake model that accepts tools."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def build(refund: BaseTool, arguments: Any, client: Any, wait: float) -> Any:
    call = {"name": "refund", "args": arguments, "id": "c1", "type": "tool_call"}
    model = Model(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("done")]))
    leases = Leases({"refund": "account:{account_id}"}, client=client, wait=wait)
    return create_agent(model, [refund], middleware=[leases])


def result(messages: Any) -> str:
    return next(str(m.content) for m in messages if isinstance(m, ToolMessage))


async def agent(tool: Tool, client: AsyncClient, wait: float) -> str:
    @as_tool
    async def refund(account_id: str) -> str:
        """Refunds."""
        return await tool.run(account_id)

    actor = build(refund, tool.arguments, client, wait)
    return result((await actor.ainvoke({"messages": [("user", "refund it")]}))["messages"])


def test_cases(cases: Any) -> None:
    cases(agent)


def test_missing_argument(missing: Any) -> None:
    missing(agent)


def blocking(body: Callable[[], str], client: Client, wait: float) -> str:
    """Runs an agent with invoke, whose model calls the tool once."""

    @as_tool
    def refund(account_id: str) -> str:
        """Refunds."""
        current_lease().check()
        return body()

    actor = build(refund, {"account_id": "7"}, client, wait)
    return result(actor.invoke({"messages": [("user", "refund it")]})["messages"])


def test_invoke_of_free_and_held_key(interlock_client: Client, other: Client) -> None:
    assert blocking(lambda: "refunded", interlock_client, 0) == "refunded"
    with other.lease(KEY, purpose="phone call"):
        assert "is held by elsewhere" in blocking(lambda: pytest.fail("it ran"), interlock_client, 0)
    assert blocking(lambda: "refunded", interlock_client, 0) == "refunded"


@pytest.mark.parametrize("error", [ValueError("the bank is closed"), KeyboardInterrupt()])
def test_invoke_of_tool_that_raises(interlock_client: Client, other: Client, error: BaseException) -> None:
    """Ctrl-C cancels what blocks."""

    def body() -> str:
        raise error

    with pytest.raises(type(error)):
        blocking(body, interlock_client, 0)
    other.acquire(KEY, wait=0).release()


def test_invoke_of_two_agents(interlock_server: LocalServer, interlock_client: Client) -> None:
    inside = threading.Lock()

    def body() -> str:
        assert inside.acquire(blocking=False), "two calls at once"
        interlock_client.look(KEY)
        inside.release()
        return "refunded"

    with Client(interlock_server.url) as one, Client(interlock_server.url) as two, ThreadPoolExecutor() as pool:
        assert list(pool.map(lambda client: blocking(body, client, 30), [one, two])) == ["refunded", "refunded"]


def test_invoke_needs_a_client_that_blocks(interlock_server: LocalServer) -> None:
    with pytest.raises(TypeError, match="refund is not awaited, and so needs a Client"):
        blocking(lambda: "refunded", AsyncClient(interlock_server.url), 0)  # type: ignore[arg-type]
