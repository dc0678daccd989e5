"""The optimistic way: tools that read take no lease, and tools that write are refused if what was read has changed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from interlock import AsyncClient, Client, current_lease
from interlock.ext import Run, ToolKeys, run_scope
from interlock.testing import LocalServer

KEYS = {"get": "{key}", "set": "{key}"}
Act = Callable[[Client, str], None]


async def nothing() -> str:
    return "done"


def tools_of(client: Any, **options: Any) -> ToolKeys:
    return ToolKeys(KEYS, client, "commit", ["get"], **{"wait": 0, **options})


async def call(tools: ToolKeys, tool: str, key: str, body: Any = nothing) -> str:
    """Calls a tool in a task of its own, as frameworks do."""
    return str(await asyncio.create_task(tools.run(tool, {"key": key}, body)))


def takes(other: Client, key: str) -> None:
    with other.lease(key, purpose='charge "twice"') as lease:
        lease.note = "wrote 65"


def takes_above(other: Client, key: str) -> None:
    other.acquire(key.partition("/")[0]).release()


def takes_below(other: Client, key: str) -> None:
    other.acquire(f"{key}/limits").release()


def moves_on(other: Client, key: str) -> None:
    """It has the key, and then another one under the same lease."""
    lease = other.acquire(key)
    lease.convert(f"{key}-next")
    lease.release()


def parks(other: Client, key: str) -> None:
    other.resume(other.acquire(key).park(keep=False)).release()


def dies(other: Client, key: str) -> None:
    """Its lease ends without a word of it."""
    lease = other.acquire(key)
    other._engine.core.end(lease._grant, "revoked", "its holder has died")
    other._engine.run(other._engine.core.give_back(lease.id))


def works(other: Client, key: str) -> None:
    queue = "q" + key.replace(":", "-").replace("/", "-")
    other._engine.run(other._engine.core.caller.request("setQueue", path={"queue": queue}, body={}))
    other.submit(queue, 1, claims=[key])
    other.work(queue, lambda job: None, wait=0, once=True)


def writes(other: Client, key: str) -> None:
    other.commit([{"key": key, "put": {"balance": 65}}], note="late fee")


def shares(other: Client, key: str) -> None:
    other.acquire(key, mode="shared").release()


def changes_nothing(other: Client, key: str) -> None:
    other.acquire(key).release(outcome="unchanged")


def is_elsewhere(other: Client, key: str) -> None:
    other.acquire(f"{key}-next").release()


CHANGES = takes, takes_above, takes_below, moves_on, parks, dies, works, writes


@pytest.mark.parametrize("act", [*CHANGES, shares, changes_nothing, is_elsewhere])
@pytest.mark.parametrize("below", ["", "/part"])
def test_what_counts_as_a_change(interlock_server: LocalServer, other: Client, key: str, act: Act, below: str) -> None:
    """A tool that writes is not run after a change, until one that reads was; a second refusal says the same."""

    async def main() -> None:
        await asyncio.to_thread(other.commit, [{"key": f"{key}-first", "put": 1}])
        async with AsyncClient(interlock_server.url, agent="one") as client:
            tools, place = tools_of(client), key + below
            async with run_scope():
                assert await call(tools, "get", place) == "done"
                await asyncio.to_thread(act, other, place)
                if act not in CHANGES:
                    assert await call(tools, "set", place) == "done"
                    return
                text = await call(tools, "set", place, never)
                assert text.startswith(f"Not done: {place} may have changed since this run read it: other ")
                assert text.endswith("Call get again, then decide.")
                if act is takes:
                    assert r'had it (purpose "charge \"twice\"", note "wrote 65")' in text
                if act is writes:
                    assert f"the document {place} changed by " in text and '{"balance": 65}' in text
                    assert 'other wrote the document (note "late fee")' in text
                text = await call(tools, "set", place, never)
                assert text.startswith(f"Not done: this run has not read {place} yet, or not since")
                assert await call(tools, "get", place) == "done"
                assert await call(tools, "set", place) == "done"

    asyncio.run(main())


async def never() -> str:
    raise AssertionError("a tool that is refused was run")


def test_a_run_reads_before_it_writes(interlock_server: LocalServer, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools = tools_of(client)
            async with run_scope():
                assert await call(tools, "get", key) == "done"
            async with run_scope():
                text = await call(tools, "set", key, never)
                assert text.startswith(f"Not done: this run has not read {key} yet") and "Call get first" in text
                for tool in "get", "set", "set", "get", "set":  # what it wrote itself is no change
                    assert await call(tools, tool, key) == "done"

    asyncio.run(main())


def test_who_was_writing_while_it_was_read(interlock_server: LocalServer, other: Client, key: str) -> None:
    """A tool that reads waits for nobody. What it reads meanwhile is no ground for a decision."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            for outcome in None, "unchanged":
                tools, lease = tools_of(client), await asyncio.to_thread(other.acquire, key, purpose="phone call")
                async with run_scope():
                    assert await call(tools, "get", key) == "done"
                    assert "is held by other" in await call(tools, "set", key, never)
                    await asyncio.to_thread(lease.release, outcome)
                    if outcome is None:
                        assert 'other had it (purpose "phone call")' in await call(tools, "set", key, never)
                        assert await call(tools, "get", key) == "done"
                    assert await call(tools, "set", key) == "done"

    asyncio.run(main())


def test_who_has_gone_to_another_key_since(interlock_server: LocalServer, other: Client, key: str) -> None:
    """No event of the key tells of that: only its holder at the time of the read does."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools, lease = tools_of(client), await asyncio.to_thread(other.acquire, key)
            async with run_scope():
                assert await call(tools, "get", key) == "done"
                await asyncio.to_thread(lease.convert, f"{key}-next")
                assert "other had it" in await call(tools, "set", key, never)
            await asyncio.to_thread(lease.release)

    asyncio.run(main())


@pytest.mark.parametrize("outer", ["-elsewhere", "/part", ""])
def test_what_the_run_holds_itself_is_no_change(interlock_server: LocalServer, key: str, outer: str) -> None:
    """Neither the lease around it, nor those that its tools take, also one that only reads."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools = tools_of(client)

            async def nested(mode: str = "exclusive") -> str:
                async with client.lease(f"{key}/nested", wait=0, mode=mode):
                    return "done"

            async def reads() -> str:
                return await nested("shared")

            async def turn() -> None:
                async with run_scope():
                    for tool in "get", "set", "set", "get", "set":
                        assert await call(tools, tool, key, nested if tool == "set" else reads) == "done"

            await turn()
            async with client.lease(f"{key}{outer}", wait=0):
                await turn()

    asyncio.run(main())


def test_a_blocking_tool_that_reads_under_a_lease_of_its_own(interlock_client: Client, key: str) -> None:
    tools, run = tools_of(interlock_client), Run()

    def get() -> str:
        with interlock_client.lease(key, wait=0):
            return "done"

    assert tools.run_blocking("get", {"key": key}, get, run=run) == "done"
    assert tools.run_blocking("set", {"key": key}, lambda: "done", run=run) == "done"


def test_a_read_by_another_tool_is_no_second_read(interlock_server: LocalServer, other: Client, key: str) -> None:
    """What the first call has read is out of date, whatever another one reads later. The same call replaces it."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            keys = {**KEYS, "list": "{key}"}
            tools = ToolKeys(keys, client, "commit", ["get", "list"], wait=0)
            async with run_scope():
                await call(tools, "get", key)
                await asyncio.to_thread(takes, other, key)
                await call(tools, "list", key)
                assert "Call get or list again" in await call(tools, "set", key, never)
                await call(tools, "get", key)
                await asyncio.to_thread(takes, other, key)
                await call(tools, "get", key)
                assert await call(tools, "set", key) == "done"

    asyncio.run(main())


def test_a_refused_call_is_no_change_for_others(interlock_server: LocalServer, other: Client, key: str) -> None:
    """Else two runs could refuse each other for ever."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url, agent="one") as client:
            tools = tools_of(client)
            async with run_scope() as one:
                await call(tools, "get", key)
                await asyncio.to_thread(takes, other, key)
                async with run_scope():
                    await call(tools, "get", key)
                    assert (await tools.run("set", {"key": key}, never, str, one)).startswith("Not done: ")
                    assert await call(tools, "set", key) == "done"

    asyncio.run(main())


def test_two_runs_within_one_lease(interlock_server: LocalServer, key: str) -> None:
    """The server sees one holder. What the other run does between a read and a write counts, and while it is read."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools, begun, ends = tools_of(client), asyncio.Event(), asyncio.Event()

            async def slow() -> str:
                begun.set()
                await ends.wait()
                return "done"

            async def other_run() -> None:
                async with run_scope():
                    await call(tools, "get", key)
                    assert await call(tools, "set", key, slow) == "done"

            async with client.lease(key):
                running = asyncio.create_task(other_run())
                async with run_scope():
                    await begun.wait()
                    await call(tools, "get", key)
                    ends.set()
                    await running
                    text = await call(tools, "set", key, never)
                    assert "another run under the lease around both had it" in text
                    for tool in "get", "set", "set":
                        assert await call(tools, tool, key) == "done"

    asyncio.run(main())


def test_a_command_around_the_agent(
    interlock_server: LocalServer, interlock_client: Client, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease of `interlock run` is the agent's own."""
    with interlock_client.lease(key) as lease:
        session = interlock_client._engine.core.session
        assert session is not None
        monkeypatch.setenv("INTERLOCK_SESSION", session.id)
        monkeypatch.setenv("INTERLOCK_FLOW", lease._grant.flow)
        monkeypatch.setenv("INTERLOCK_KEYS", key)
        monkeypatch.setenv("INTERLOCK_FENCE", str(lease.fence))
        with Client(interlock_server.url) as client:
            tools, run = tools_of(client), Run()
            for tool in "get", "set", "set":
                assert tools.run_blocking(tool, {"key": key}, lambda: "done", run=run) == "done"


def test_calls_that_write_follow_each_other(interlock_server: LocalServer, key: str) -> None:
    """A model may call several tools at once."""
    inside = 0

    async def body() -> int:
        nonlocal inside
        inside += 1
        assert inside == 1, "two at once"
        await asyncio.sleep(0)
        inside -= 1
        return int(current_lease().fence)

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools = tools_of(client)
            async with run_scope():
                await call(tools, "get", key)
                fences = await asyncio.gather(*(call(tools, "set", key, body) for _ in range(5)))
                assert len(set(fences)) == 5

    asyncio.run(main())


@pytest.mark.parametrize("blocking", [False, True])
def test_two_agents_lose_nothing(interlock_server: LocalServer, key: str, blocking: bool) -> None:
    """Each reads, thinks and writes, and does what it reads. No agent waits for another that thinks."""
    balance, url = 100, interlock_server.url

    async def turn(client: AsyncClient, add: int) -> None:
        tools = tools_of(client, wait=60)

        async def get() -> int:
            return balance

        async with run_scope():
            for _ in range(50):
                seen = int(await call(tools, "get", key, get))
                await asyncio.sleep(0)

                async def put(value: int = seen + add) -> str:
                    nonlocal balance
                    await asyncio.sleep(0)
                    balance = value
                    return "done"

                if await call(tools, "set", key, put) == "done":
                    return
            raise AssertionError("refused 50 times")

    async def main() -> None:
        async with AsyncClient(url, agent="one") as one, AsyncClient(url, agent="two") as two:
            for _ in range(20):
                await asyncio.gather(turn(one, 50), turn(two, -20))

    def blocking_turn(client: Client, add: int) -> None:
        tools, run = tools_of(client, wait=60), Run()

        def put(value: int) -> str:
            nonlocal balance
            balance = value
            return "done"

        for _ in range(50):
            seen = tools.run_blocking("get", {"key": key}, lambda: balance, run=run)
            if tools.run_blocking("set", {"key": key}, functools.partial(put, seen + add), run=run) == "done":
                return
        raise AssertionError("refused 50 times")

    def threads() -> None:
        with Client(url, agent="one") as one, Client(url, agent="two") as two:
            for _ in range(20):
                both = [threading.Thread(target=blocking_turn, args=given) for given in ((one, 50), (two, -20))]
                for thread in both:
                    thread.start()
                for thread in both:
                    thread.join()

    if blocking:
        threads()
    else:
        asyncio.run(main())
    assert balance == 100 + 20 * 30


def test_beside_readers_of_events(interlock_server: LocalServer, key: str) -> None:
    """As many readers of events as may be open keep no call from its comparison."""
    headers = {"Interlock-Namespace": "read"}
    with contextlib.ExitStack() as readers:
        asked = urllib.request.Request(f"{interlock_server.url}/v1/events?follow=true", headers=headers)
        for _ in range(64):
            readers.enter_context(urllib.request.urlopen(asked, timeout=60))
        with pytest.raises(urllib.error.HTTPError, match="429"):
            urllib.request.urlopen(asked, timeout=60)
        with Client(interlock_server.url, namespace="read") as client:
            tools = tools_of(client)
            for _ in range(3):
                run = Run()
                for tool in "get", "set":
                    assert tools.run_blocking(tool, {"key": key}, lambda: "done", run=run) == "done"


def test_the_journal_that_forgets(interlock_server: LocalServer, key: str) -> None:
    """What a server does not know any more counts as a change: of another owner, and of a journal that is cut."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools = tools_of(client)
            for at, version, why in (
                ({"epoch": "99"}, None, "the server was replaced meanwhile"),
                ({"index": "99999999"}, None, "the server does not know any more what happened"),
                ({}, "99999999", "the server does not know any more what happened"),
            ):
                async with run_scope() as run:
                    await call(tools, "get", key)
                    [reading] = run.readings.of(key)
                    reading.at = {**reading.at, **at}  # type: ignore[typeddict-item]
                    reading.version = version
                    assert why in await call(tools, "set", key, never)

    asyncio.run(main())


@pytest.mark.parametrize(
    "given, text",
    [
        ({}, "needs reads: the names of the tools that only read"),
        ({"reads": ["got"]}, "reads has got, and keys has no key for it"),
        ({"reads": "get", "mode": "shared", "permits": 2}, "takes the whole key: leave out mode, permits"),
        ({"hold": "run", "reads": ["get"]}, "reads is for hold=\"commit\", and hold is 'run'"),
    ],
)
def test_wrong_settings(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ToolKeys(KEYS, None, **{"hold": "commit", **given})


def fails() -> str:
    raise ValueError("the bank is closed")


async def fails_soon() -> str:
    return fails()


async def refused() -> str:
    return "Not done: account:7 is held by bob."


def test_a_call_that_fails_has_read_nothing(interlock_server: LocalServer, interlock_client: Client, key: str) -> None:
    """What the run has read before counts on: the model goes by that. A framework may make a result of an error."""

    def others() -> None:  # in a thread that is no part of the run
        with ThreadPoolExecutor() as pool:
            pool.submit(takes, interlock_client, key).result()

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client, run_scope():
            tools = tools_of(client)
            with pytest.raises(ValueError, match="closed"):
                await call(tools, "get", key, fails_soon)
            assert "has not read" in await call(tools, "set", key)
            await call(tools, "get", key)
            others()
            with pytest.raises(ValueError, match="closed"):
                await call(tools, "get", key, fails_soon)
            assert "may have changed" in await call(tools, "set", key)
            await call(tools, "get", key)
            others()
            assert (await call(tools, "get", key, refused)).startswith("Not done")
            await tools.run("get", {"key": key}, nothing, failed=lambda result: result == "done")
            assert "may have changed" in await call(tools, "set", key)

    asyncio.run(main())
    with Client(interlock_server.url) as client:
        tools, run = tools_of(client), Run()

        def calls(tool: str, body: Callable[[], str] = lambda: "done", **options: Any) -> str:
            return str(tools.run_blocking(tool, {"key": key}, body, run=run, **options))

        with pytest.raises(ValueError, match="closed"):
            calls("get", fails)
        assert "has not read" in calls("set")
        calls("get")
        others()
        with pytest.raises(ValueError, match="closed"):
            calls("get", fails)
        assert "may have changed" in calls("set")
        calls("get")
        others()
        calls("get", lambda: "Not done: account:7 is held by bob.")
        calls("get", failed=lambda result: result == "done")
        assert "may have changed" in calls("set")
        run.end_blocking()


def test_outside_of_a_run(interlock_server: LocalServer, key: str) -> None:
    """Nothing that was read is known there: a tool that writes is not run, one that reads is."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            tools = tools_of(client)
            ran: list[str] = []

            async def body() -> str:
                ran.append("body")
                return "done"

            assert await tools.run("get", {"key": key}, body) == "done"
            with pytest.raises(RuntimeError, match="set is called outside of a run"):
                await tools.run("set", {"key": key}, body)
            assert ran == ["body"]

    asyncio.run(main())
    with Client(interlock_server.url) as client:
        tools = tools_of(client)
        assert tools.run_blocking("get", {"key": key}, lambda: "done") == "done"
        with pytest.raises(RuntimeError, match="set is called outside of a run"):
            tools.run_blocking("set", {"key": key}, lambda: "done")
        client.acquire(key, wait=0).release()
