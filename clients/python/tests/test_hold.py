"""Leases that tools take, and a run holds to its end. The frameworks have tests of their own."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from interlock import AsyncClient, Client, Held, LeaseLost, current_lease
from interlock.ext import Run, ToolKeys, run_scope
from interlock.testing import LocalServer

KEYS = {"get": "{key}", "set": "{key}", "list": "{key}/list"}


async def nothing() -> str:
    return "done"


async def call(tools: ToolKeys, tool: str, key: str, body: Any = nothing) -> Any:
    """Calls a tool in a task of its own, as frameworks do."""
    return await asyncio.create_task(tools.run(tool, {"key": key}, body))


def test_a_lease_is_held_between_calls(interlock_server: LocalServer, other: Client, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url, agent="one") as client:
            tools = ToolKeys(KEYS, client, wait=0)
            async with run_scope():
                fences = [await call(tools, name, key, fence) for name in ("get", "set", "list")]
                with pytest.raises(Held):
                    await asyncio.to_thread(other.acquire, f"{key}/list", wait=0)
            assert len(set(fences)) == 1
            await asyncio.to_thread(lambda: other.acquire(key, wait=0).release())
            # without a run, and with hold="call", it ends with the call
            for chosen in tools, ToolKeys(KEYS, client, "call", wait=0):
                await call(chosen, "get", key)
                await asyncio.to_thread(lambda: other.acquire(key, wait=0).release())

    async def fence() -> int:
        return int(current_lease().fence)

    asyncio.run(main())


def test_hold_is_run_or_call() -> None:
    with pytest.raises(ValueError, match="hold is 'turn': it should be run, call or commit"):
        ToolKeys(KEYS, None, "turn")  # type: ignore[arg-type]


def test_calls_for_one_key_follow_each_other(interlock_server: LocalServer, key: str) -> None:
    """A model may call several tools at once."""
    inside = 0

    async def body() -> None:
        nonlocal inside
        inside += 1
        assert inside == 1, "two at once"
        await asyncio.sleep(0)
        inside -= 1

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools = ToolKeys(KEYS, client, wait=0)
            async with run_scope():
                assert await asyncio.gather(*(call(tools, "set", key, body) for _ in range(5))) == [None] * 5
                assert await asyncio.gather(*(call(tools, "set", f"{key}-{n}", body) for n in range(1))) == [None]

    asyncio.run(main())


def test_blocking_calls_for_one_key_follow_each_other(interlock_client: Client, other: Client, key: str) -> None:
    tools, run, inside = ToolKeys(KEYS, interlock_client, wait=0), Run(), threading.Lock()

    def body() -> str:
        assert inside.acquire(blocking=False), "two at once"
        interlock_client.look(key)
        inside.release()
        return "done"

    with ThreadPoolExecutor() as pool:
        calls = [
            pool.submit(contextvars.copy_context().run, tools.run_blocking, "set", {"key": key}, body, str, run)
            for _ in range(4)
        ]
        assert [one.result() for one in calls] == ["done"] * 4
    assert tools.run_blocking("list", {"key": key}, lambda: "done", run=run) == "done"
    with pytest.raises(Held):
        other.acquire(key, wait=0)
    run.end_blocking()
    other.acquire(key, wait=0).release()


def test_a_deadlock_of_two_runs(interlock_server: LocalServer, key: str) -> None:
    """Each reads one account and then writes another. The model reads what stays, and how to go on."""

    async def turn(client: AsyncClient, first: str, second: str, mine: asyncio.Event, theirs: asyncio.Event) -> str:
        tools = ToolKeys(KEYS, client, wait=60)
        async with run_scope():
            await call(tools, "get", first)
            mine.set()
            await theirs.wait()
            return str(await call(tools, "set", second))

    async def main() -> None:
        url = interlock_server.url
        async with AsyncClient(url, agent="one") as one, AsyncClient(url, agent="two") as two:
            a, b = asyncio.Event(), asyncio.Event()
            turns = turn(one, f"{key}-a", f"{key}-b", a, b), turn(two, f"{key}-b", f"{key}-a", b, a)
            done, text = sorted(await asyncio.wait_for(asyncio.gather(*turns), 60), reverse=True)
            assert done == "done" and text.startswith("Not done: ") and "deadlock" in text
            assert "this call has done nothing; what earlier calls of this run have written stays" in text
            assert f"the run keeps {key}-" in text and "finish now" in text

    asyncio.run(main())


def test_a_lease_that_was_lost_between_calls(interlock_server: LocalServer, other: Client, key: str) -> None:
    """The tool that writes is refused, for what was read may have changed; the next call begins anew."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools, ran = ToolKeys(KEYS, client, wait=0), []

            async def write() -> str:
                ran.append(1)
                return "written"

            async with run_scope() as run:
                await call(tools, "get", key)
                core = client._engine.core
                grant = run.leases[key]._grant
                core.end(grant, "revoked", f"an operator has revoked the lease on {key}")
                await client._engine.run(core.give_back(grant.id))
                text = await call(tools, "set", key, write)
                assert text.startswith(f"Not done: an operator has revoked the lease on {key}, since an earlier call")
                assert "read again before you decide" in text and not ran
                assert await call(tools, "get", key) == "done"
                assert await call(tools, "set", key, write) == "written"

    asyncio.run(main())


def test_what_comes_after_the_end(interlock_server: LocalServer, other: Client, key: str) -> None:
    """A call that outlives its run, such as one that still waits, leaves nothing behind."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            queued = asyncio.Event()
            tools = ToolKeys(KEYS, client, wait=60, on_queued=lambda ticket: queued.set())
            held = await asyncio.to_thread(other.acquire, key)
            async with run_scope():
                task = asyncio.create_task(tools.run("get", {"key": key}, nothing))
                await queued.wait()
            await asyncio.to_thread(held.release)
            assert await task == "Not done: the run of the agent has ended: write nothing, acquire again, and read " + (
                "again before you decide."
            )
            await asyncio.to_thread(lambda: other.acquire(key, wait=30).release())

    asyncio.run(main())


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
def test_a_run_that_fails(interlock_server: LocalServer, other: Client, key: str, error: type[BaseException]) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            with pytest.raises(error):
                async with run_scope():
                    await call(ToolKeys(KEYS, client, wait=0), "get", key)
                    raise error
            lease = await asyncio.to_thread(other.acquire, key, wait=30)
            assert [note["text"] for note in lease.notes] == [f"ended with {error.__name__}"]
            await asyncio.to_thread(lease.release)

    asyncio.run(main())


def test_a_run_within_a_run(interlock_server: LocalServer, key: str) -> None:
    """A sub-agent works under the lease of the tool that calls it, and frees nothing of it."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools = ToolKeys(KEYS, client, wait=60, on_queued=lambda ticket: pytest.fail("it stands in line"))

            async def sub_agent() -> str:
                async with run_scope():
                    await call(tools, "get", key)
                    await call(tools, "list", key)
                    result = await call(tools, "set", key)
                current_lease().check()
                return str(result)

            async with run_scope() as run:
                assert await call(tools, "set", key, sub_agent) == "done"
                run.leases[key].check()

    asyncio.run(main())


def test_a_tool_that_calls_a_tool(interlock_server: LocalServer, interlock_client: Client, key: str) -> None:
    """It would wait for its own turn."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools = ToolKeys(KEYS, client, wait=0)
            async with run_scope():
                assert await asyncio.wait_for(call(tools, "get", key, lambda: call(tools, "set", key)), 60) == "done"

    asyncio.run(main())
    tools, run = ToolKeys(KEYS, interlock_client, wait=0), Run()

    def inner() -> Any:
        return tools.run_blocking("set", {"key": key}, lambda: "done", run=run)

    def outer() -> Any:
        with ThreadPoolExecutor() as pool:
            return pool.submit(contextvars.copy_context().run, inner).result(60)

    assert tools.run_blocking("get", {"key": key}, outer, run=run) == "done"
    run.end_blocking()


def test_a_tool_that_is_lost_meanwhile(interlock_server: LocalServer, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools = ToolKeys(KEYS, client, wait=0)

            async def body() -> str:
                client._engine.core.end(current_lease()._grant, "revoked", "an operator has revoked it")
                with pytest.raises(LeaseLost):
                    current_lease().check()
                return "written"

            async with run_scope():
                text = await call(tools, "set", key, body)
            assert text.startswith("It may have been done") or text.startswith("It returned: written.")
            assert "an operator has revoked it" in text and "Check before you repeat it." in text

    asyncio.run(main())
