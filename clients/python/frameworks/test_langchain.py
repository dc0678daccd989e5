"""Leases for LangChain, with a fake chat model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest import BANK_KEYS, CHECK, COMMIT, KEY, LOST, Bank, Tool, lose, next_call, thrower, within
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as as_tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from interlock import AsyncClient, Client, OutcomeUnknown, current_lease, guarded
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


def test_reports(reports: Any) -> None:
    reports(agent)


def test_missing_argument(missing: Any) -> None:
    missing(agent)


def blocking(body: Callable[[], Any], client: Client, wait: float) -> str:
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


def test_invoke_reports(interlock_client: Client) -> None:
    for text, expected in within(lambda body: blocking(body, interlock_client, 0), interlock_client):
        assert text == expected


def node(refund: BaseTool, client: Any = None, **options: Any) -> Any:
    """A graph with one node of tools, whose model has called the tool."""
    if client is not None:
        leases = Leases({"refund": "account:{account_id}"}, client=client, wait=0)
        wrapper = "awrap_tool_call" if isinstance(client, AsyncClient) else "wrap_tool_call"
        options[wrapper] = getattr(leases, wrapper)
    graph = StateGraph(MessagesState).add_node("tools", ToolNode([refund], **options))
    return graph.add_edge(START, "tools").add_edge("tools", END).compile()


CALLED = {"name": "refund", "args": {"account_id": "7"}, "id": "c1", "type": "tool_call"}


def question() -> Any:
    return {"messages": [AIMessage("", tool_calls=[CALLED])]}


def test_reports_of_a_node_that_handles_errors(interlock_client: Client, interlock_server: LocalServer) -> None:
    """The node would make texts of its own of the errors of its tools."""
    in_part = f"It may have been done in part: no answer. {CHECK}"
    errors: dict[str, Any] = {"bool": True, "text": "please repeat it", "function": lambda error: "please repeat it"}
    for handles in errors.values():

        @as_tool
        def refund(account_id: str) -> str:
            """Refunds."""
            raise OutcomeUnknown("no answer")

        graph = node(refund, interlock_client, handle_tool_errors=handles)
        message = graph.invoke(question())["messages"][-1]
        assert (message.content, message.status) == (in_part, "error")

    async def awaited() -> None:
        async with AsyncClient(interlock_server.url) as client:

            @as_tool
            async def refund(account_id: str) -> str:
                """Refunds."""
                raise OutcomeUnknown("no answer")

            graph = node(refund, client, handle_tool_errors=True)
            assert (await graph.ainvoke(question()))["messages"][-1].content == in_part

    asyncio.run(awaited())


def test_an_error_that_a_node_handles_is_its_own(interlock_client: Client) -> None:
    @as_tool
    def refund(account_id: str) -> str:
        """Refunds."""
        raise ValueError("the bank is closed")

    graph = node(refund, interlock_client, handle_tool_errors="sorry")
    assert graph.invoke(question())["messages"][-1].content == "sorry"


def test_results_that_are_no_text(interlock_client: Client) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    notice = {"type": "text", "text": LOST}

    def message(content: Any) -> ToolMessage:
        return ToolMessage(content, tool_call_id="c1", artifact={"cents": 900})

    results: list[tuple[Any, Any]] = [
        (message([image]), [image, notice]),
        (message("refunded"), f"It returned: refunded. {LOST}"),
        (Command(update={"messages": [message("refunded")]}), f"It returned: refunded. {LOST}"),
        ([message("refunded"), Command(update={"messages": []})], f"It returned: refunded. {LOST}"),
    ]
    for result, content in results:

        @as_tool
        def refund(account_id: str, result: Any = result) -> Any:
            """Refunds."""
            lose(interlock_client)
            return result

        found = node(refund, interlock_client).invoke(question())["messages"][-1]
        assert (found.content, found.artifact, found.status) == (content, {"cents": 900}, "success")


def test_guarded_tools_of_a_graph(interlock_client: Client) -> None:
    for text, expected in within(lambda body: of_guarded(body, interlock_client), interlock_client):
        assert text == expected
    with pytest.raises(ValueError, match="closed"):
        of_guarded(thrower(ValueError("the bank is closed")), interlock_client)


def of_guarded(body: Callable[[], Any], client: Client) -> str:
    @as_tool
    @guarded("account:{account_id}", client=client, wait=0)
    def refund(account_id: str) -> str:
        """Refunds."""
        return str(body())

    return str(node(refund).invoke(question())["messages"][-1].content)


class Teller(BaseChatModel):
    """A fake model that reads the balance and writes another one."""

    change: int

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> ChatResult:
        results = [str(message.content) for message in messages if isinstance(message, ToolMessage)]
        call = next_call(results, self.change)
        answer = AIMessage("done")
        if call is not None:
            answer = AIMessage("", tool_calls=[{"name": call[0], "args": call[1], "id": f"c{len(results)}"}])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def bank_tools(bank: Bank, client: AsyncClient) -> list[Any]:
    """Returns the tools that read a balance and write it."""

    @as_tool
    async def get_balance(account_id: str) -> str:
        """Reads."""
        return await bank.get_balance(client)

    @as_tool
    async def set_balance(account_id: str, balance: int) -> str:
        """Writes."""
        return await bank.set_balance(client, balance)

    return [get_balance, set_balance]


def test_sums(sums: Any) -> None:
    async def turn(bank: Bank, client: AsyncClient, change: int) -> None:
        leases = Leases(BANK_KEYS, client=client, wait=60, **bank.options)
        actor: Any = create_agent(Teller(change=change), bank_tools(bank, client), middleware=[leases])
        question = {"messages": [("user", "change it")]}
        if change > 0:
            await actor.ainvoke(question)
        else:
            async for _ in actor.astream(question):
                pass

    sums(turn)


def test_failed_read(failed_read: Any) -> None:
    """A node that handles errors makes a text of that of a tool."""

    async def turn(bank: Bank, client: AsyncClient, change: int) -> None:
        leases, tools = Leases(BANK_KEYS, client=client, wait=60, **bank.options), bank_tools(bank, client)
        model = Teller(change=change)
        graph: Any = StateGraph(MessagesState).add_node("model", lambda s: {"messages": model.invoke(s["messages"])})
        node = ToolNode(tools, awrap_tool_call=leases.awrap_tool_call, handle_tool_errors="closed")
        graph.add_node("tools", node).add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition).add_edge("tools", "model")
        await graph.compile().ainvoke({"messages": [("user", "change it")]})

    failed_read(turn)


@pytest.mark.parametrize("options", [{}, COMMIT])
def test_sums_of_blocking_agents(interlock_server: LocalServer, options: dict[str, Any]) -> None:
    """Each with a client for threads. A graph of its own has the nodes of one of them."""
    bank = Bank(options)

    def turn(client: Client, change: int) -> None:
        @as_tool
        def get_balance(account_id: str) -> str:
            """Reads."""
            found = bank.balance
            client.status()
            return str(found)

        @as_tool
        def set_balance(account_id: str, balance: int) -> str:
            """Writes."""
            client.status()
            bank.balance = balance
            return "done"

        leases, tools, model = (
            Leases(BANK_KEYS, client=client, wait=60, **bank.options),
            [get_balance, set_balance],
            Teller(change=change),
        )
        actor: Any = create_agent(model, tools, middleware=[leases])
        if change > 0:
            graph: Any = StateGraph(MessagesState).add_node(
                "model", lambda s: {"messages": model.invoke(s["messages"])}
            )
            graph.add_node("tools", ToolNode(tools, wrap_tool_call=leases.wrap_tool_call)).add_edge(START, "model")
            graph.add_conditional_edges("model", tools_condition).add_edge("tools", "model")
            actor = graph.compile()
        actor.invoke({"messages": [("user", "change it")]})

    url = interlock_server.url
    with Client(url, agent="one") as one, Client(url, agent="two") as two, ThreadPoolExecutor() as pool:
        for _ in range(20):
            bank.balance = 100
            for done in [pool.submit(turn, one, 50), pool.submit(turn, two, -20)]:
                done.result()
            assert bank.balance == 130
        with one.lease(KEY):
            bank.balance = 100
            turn(one, -20)
            turn(one, 50)
            assert bank.balance == 130
