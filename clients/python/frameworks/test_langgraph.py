"""The saver for LangGraph: one thread, processes that run it, and the suite of LangGraph for savers."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from interlock import AsyncClient, Client, Held, Lease, LeaseLost
from interlock.ext.langgraph import FENCE, FencedSaver
from interlock.testing import LocalServer

CONFIG: Any = {"configurable": {"thread_id": "42"}}


class State(TypedDict):
    said: str


def graph(saver: Any, node: Any = lambda state: {"said": state["said"] + "!"}) -> Any:
    return (
        StateGraph(State).add_node("say", node).add_edge(START, "say").add_edge("say", END).compile(checkpointer=saver)
    )


def said(saver: InMemorySaver) -> str:
    found = saver.get_tuple(CONFIG)
    assert found is not None
    return str(found.checkpoint["channel_values"]["said"])


def revoke(server: LocalServer, lease: Lease) -> None:
    """Ends a lease on the server. Its holder notices it at its next heartbeat, in 10 s."""
    body = json.dumps({"key": lease.key, "fence": str(lease.fence), "reason": "it was silent"}).encode()
    request = urllib.request.Request(server.url + "/v1/revocations", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        answer.read()


def test_holder_writes(interlock_client: Client) -> None:
    saver = InMemorySaver()
    with interlock_client.lease("thread:42") as lease:
        assert graph(FencedSaver(saver, lease)).invoke({"said": "a"}, CONFIG) == {"said": "a!"}
        found = saver.get_tuple(CONFIG)
        assert found is not None and found.metadata.get(FENCE) == lease.fence
    with pytest.raises(LeaseLost):
        graph(FencedSaver(saver, lease)).invoke({"said": "b"}, CONFIG)
    assert said(saver) == "a!"


def test_held_thread_is_not_run(interlock_client: Client, other: Client) -> None:
    with other.lease("thread:42", purpose="chat"), pytest.raises(Held, match="elsewhere"):
        interlock_client.acquire("thread:42", wait=0)


def test_stale_holder_is_refused(interlock_server: LocalServer, interlock_client: Client, other: Client) -> None:
    """The first holder still believes that it holds the thread: only the fence beside the checkpoint is against it."""
    saver = InMemorySaver()
    first = interlock_client.acquire("thread:42", grace=0)
    revoke(interlock_server, first)
    with other.lease("thread:42", wait=10) as later:
        graph(FencedSaver(saver, later)).invoke({"said": "b"}, CONFIG)
        assert first.held and first.fence < later.fence
        stale = FencedSaver(saver, first)
        with pytest.raises(LeaseLost, match=f"under fence {later.fence}, above {first.fence}"):
            graph(stale).invoke({"said": "a"}, CONFIG)
        with pytest.raises(LeaseLost):
            graph(stale).update_state(CONFIG, {"said": "a"})
        with pytest.raises(LeaseLost):
            stale.put_writes(CONFIG, [("said", "a")], "task")
        with pytest.raises(LeaseLost):
            stale.delete_thread("42")
        assert graph(stale).get_state(CONFIG).values == {"said": "b!"}
    assert said(saver) == "b!"


def test_node_raises(interlock_client: Client, other: Client) -> None:
    def broken(state: State) -> State:
        raise ValueError("the bank is closed")

    with pytest.raises(ValueError, match="closed"), interlock_client.lease("thread:42") as lease:
        graph(FencedSaver(InMemorySaver(), lease), broken).invoke({"said": "a"}, CONFIG)
    other.acquire("thread:42", wait=0).release()


def test_cancelled(interlock_server: LocalServer, other: Client) -> None:
    saver = InMemorySaver()

    async def scene() -> None:
        inside = asyncio.Event()

        async def waits(state: State) -> State:
            inside.set()
            await asyncio.sleep(60)
            return state

        async def run(client: AsyncClient) -> None:
            async with client.lease("thread:42") as lease:
                await graph(FencedSaver(saver, lease), waits).ainvoke({"said": "a"}, CONFIG)

        async with AsyncClient(interlock_server.url) as client:
            task = asyncio.ensure_future(run(client))
            await asyncio.wait_for(inside.wait(), 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(lambda: other.acquire("thread:42", wait=10).release())

    asyncio.run(scene())


def test_two_processes_race(interlock_server: LocalServer) -> None:
    """Each reads the thread, thinks, and writes what it has read and one letter more: no letter is lost."""
    saver = InMemorySaver()

    async def thinks(state: State) -> State:
        await asyncio.sleep(0.01)
        return {"said": state["said"] + "!"}

    async def run(client: AsyncClient) -> None:
        for _ in range(5):
            async with client.lease("thread:42", wait=30) as lease:
                chat = graph(FencedSaver(saver, lease), thinks)
                before = (await chat.aget_state(CONFIG)).values.get("said", "")
                await chat.ainvoke({"said": before}, CONFIG)

    async def scene() -> None:
        async with AsyncClient(interlock_server.url) as one, AsyncClient(interlock_server.url) as two:
            await asyncio.gather(run(one), run(two))

    asyncio.run(scene())
    assert said(saver) == "!" * 10


def test_conformance(interlock_client: Client) -> None:
    """What LangGraph asks of each saver."""
    with interlock_client.lease("thread:42") as lease:

        @checkpointer_test(name="FencedSaver")
        async def saver() -> Any:
            yield FencedSaver(InMemorySaver(), lease)

        report = asyncio.run(validate(saver))
    tested = {name: result for name, result in report.results.items() if result.detected}
    assert {name: result.failures for name, result in tested.items() if not result.passed} == {}
    assert sum(result.tests_passed for result in tested.values()) > 30
