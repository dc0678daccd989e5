"""One agent is one holder: a call inside a lease of its own gets the key at once, or is refused at once."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from interlock import (
    AsyncClient,
    Client,
    Deadlock,
    Held,
    InterlockError,
    LeaseLost,
    Refused,
    WaitTimeout,
    current_lease,
    guarded,
)
from interlock.ext import ToolKeys
from interlock.testing import LocalServer

#: A call that stood in line has failed: it would wait for itself.
OPTIONS: dict[str, Any] = {"wait": 60, "on_queued": lambda ticket: pytest.fail(f"it stands in line: {ticket}")}

Body = Callable[[], Any]


@pytest.fixture(autouse=True)
def queue(put: Any) -> None:
    put("/v1/queues/identity", {"max_attempts": 1})


def lease(client: Client, key: str, body: Body) -> Any:
    with client.lease(key, **OPTIONS):
        return body()


def acquire(client: Client, key: str, body: Body) -> Any:
    held = client.acquire(key, **OPTIONS)
    try:
        return body()
    finally:
        held.release()


def decorated(client: Client, key: str, body: Body) -> Any:
    return guarded(key, client=client, refuse=None, **OPTIONS)(body)()


def tool(client: Client, key: str, body: Body) -> Any:
    def tell(report: Any) -> Any:
        raise report.error

    return ToolKeys({"tool": "{key}"}, client, hold="call", **OPTIONS).run_blocking("tool", {"key": key}, body, tell)


def handler(client: Client, key: str, body: Body) -> Any:
    results: list[Any] = []
    client.submit("identity", claims=[key])
    client.work("identity", lambda job: results.append(body()), once=True, wait=0)
    return results[0]


def direct(body: Body) -> Any:
    return body()


def in_thread(body: Body) -> Any:
    with ThreadPoolExecutor() as pool:
        return pool.submit(contextvars.copy_context().run, body).result()


INSIDE = [lease, acquire, decorated, tool]


@pytest.mark.parametrize("below", ["", "/a"])
@pytest.mark.parametrize("how", [direct, in_thread])
@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("outside", [*INSIDE, handler])
def test_matrix(
    interlock_client: Client, other: Client, key: str, outside: Any, inside: Any, how: Any, below: str
) -> None:
    def inner() -> str:
        return "inside"

    assert outside(interlock_client, key, lambda: how(lambda: inside(interlock_client, key + below, inner))) == "inside"
    other.acquire(key, wait=30).release()


@pytest.mark.parametrize("how", [direct, in_thread])
@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("outside", [lease, decorated, tool, handler])
def test_matrix_of_two_clients(
    interlock_client: Client, other: Client, key: str, outside: Any, inside: Any, how: Any
) -> None:
    def call() -> Any:
        with pytest.raises(Held, match=f"this is your own lease on {key}") as refusal:
            how(lambda: inside(other, f"{key}/a", lambda: pytest.fail("it ran")))
        assert "work under it, with its client and flow" in str(refusal.value)
        return "refused"

    assert outside(interlock_client, key, call) == "refused"


async def async_lease(client: AsyncClient, key: str, body: Body) -> Any:
    async with client.lease(key, **OPTIONS):
        return await body()


async def async_acquire(client: AsyncClient, key: str, body: Body) -> Any:
    held = await client.acquire(key, **OPTIONS)
    try:
        return await body()
    finally:
        await held.release()


async def async_decorated(client: AsyncClient, key: str, body: Body) -> Any:
    async def function() -> Any:
        return await body()

    return await guarded(key, client=client, refuse=None, **OPTIONS)(function)()


async def async_tool(client: AsyncClient, key: str, body: Body) -> Any:
    def tell(report: Any) -> Any:
        raise report.error

    return await ToolKeys({"tool": "{key}"}, client, hold="call", **OPTIONS).run("tool", {"key": key}, body, tell)


async def async_handler(client: AsyncClient, key: str, body: Body) -> Any:
    results: list[Any] = []

    async def handle(job: Any) -> None:
        results.append(await body())

    await client.submit("identity", claims=[key])
    await client.work("identity", handle, once=True, wait=0)
    return results[0]


async def awaited(body: Body) -> Any:
    return await body()


async def in_task(body: Body) -> Any:
    return await asyncio.create_task(body())


async def gathered(body: Body) -> Any:
    return (await asyncio.gather(body(), body()))[0]


async def waited_for(body: Body) -> Any:
    return await asyncio.wait_for(body(), 60)


ASYNC_INSIDE = [async_lease, async_acquire, async_decorated, async_tool]
ASYNC_HOW = [awaited, in_task, gathered, waited_for]


@pytest.mark.parametrize("how", ASYNC_HOW)
@pytest.mark.parametrize("inside", ASYNC_INSIDE)
@pytest.mark.parametrize("outside", [*ASYNC_INSIDE, async_handler])
def test_async_matrix(interlock_server: LocalServer, key: str, outside: Any, inside: Any, how: Any) -> None:
    async def inner() -> str:
        return "inside"

    async def main() -> None:
        async with AsyncClient(interlock_server.url, agent="one") as client:
            for below in "", "/a":
                found = await outside(client, key, lambda to=key + below: how(lambda: inside(client, to, inner)))
                assert found == "inside"

    asyncio.run(main())


@pytest.mark.parametrize("how", ASYNC_HOW)
@pytest.mark.parametrize("outside", [async_lease, async_decorated, async_handler])
def test_async_matrix_of_two_clients(interlock_server: LocalServer, key: str, outside: Any, how: Any) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url, agent="one") as client, AsyncClient(interlock_server.url) as other:

            async def call() -> None:
                with pytest.raises(Held, match="this is your own lease"):
                    await how(lambda: async_lease(other, key, lambda: pytest.fail("it ran")))

            await outside(client, key, call)

    asyncio.run(main())


def test_a_sub_agent_that_shares_nothing(interlock_client: Client, key: str) -> None:
    with interlock_client.lease(key):
        for flow in "reviewer", "critic":
            with pytest.raises(Held, match="this is your own lease"):
                interlock_client.acquire(key, flow=flow, **OPTIONS)
        interlock_client.acquire(f"{key}-2", flow="reviewer", wait=0).release()


def test_other_requests_that_would_wait_for_what_is_around_them(
    interlock_client: Client, other: Client, put: Any, key: str
) -> None:
    org = key.replace(":", "-")
    put(f"/v1/patterns/{org}", {"pattern": f"org:{org}/runs", "capacity": 1})
    parked, changed = other.acquire(key).park(keep=False), other.acquire(f"{key}-2")
    with interlock_client.lease(key), interlock_client.start_run(org):
        calls: list[Body] = [
            lambda: other.acquire(key, f"{key}/a", any_of=True, **OPTIONS),
            lambda: changed.convert(f"{key}-2", f"{key}/a"),
            lambda: other.resume(parked),
            lambda: other.start_run(org, wait=60),
            lambda: interlock_client.start_run(org, wait=60),
        ]
        for call in calls:
            with pytest.raises(Held, match="this is your own lease"):
                call()
        changed.check()
        task = interlock_client.submit("identity", claims=[key])["id"]
        with pytest.raises(Deadlock, match="needs keys that you hold"):
            interlock_client.task(task, wait=60)
        interlock_client.cancel_task(task)
    other.resume(parked).release()
    changed.release()


def test_a_pool_whose_members_are_all_around_the_call(
    interlock_client: Client, other: Client, put: Any, key: str
) -> None:
    """A member of another agent comes free some day."""
    name, pool = key.replace(":", "-"), f"{key}-pool:"
    put(f"/v1/patterns/{name}", {"pattern": pool + "{id}", "members": [pool + "0", pool + "1"]})
    with interlock_client.lease(f"{pool}0"):
        with interlock_client.lease(f"{pool}1"):
            for client, options in (other, {}), (interlock_client, {"flow": "reviewer"}):
                for prefix in pool, f"{pool}1":
                    with pytest.raises(Held, match="this is your own lease"):
                        client.acquire(any_prefix=prefix, **{**OPTIONS, **options})
            with interlock_client.lease(any_prefix=pool, wait=0) as own:
                assert own.key in (f"{pool}0", f"{pool}1")
        held = interlock_client.acquire(f"{pool}1", flow="reviewer")
        with other.lease(any_prefix=pool, on_queued=lambda ticket: held.release()):
            pass


def test_a_task_that_waits_for_what_another_client_has(
    interlock_server: LocalServer, interlock_client: Client, other: Client, put: Any, key: str
) -> None:
    """Each of the leases around a wait is looked at, also those of several clients, and of one that was closed."""
    task = interlock_client.submit("identity", claims=[f"{key}-a", f"{key}-b"])["id"]
    with Client(interlock_server.url) as third, Client(interlock_server.url) as closed:
        free = interlock_client.acquire(f"{key}-b", flow="elsewhere")
        gone = closed.lease(f"{key}-c")
        gone.__enter__()
        with third.lease(f"{key}-a"), pytest.raises(Deadlock, match="needs keys that you hold"):
            other.task(task, wait=60)
        with third.lease(f"{key}-d"), interlock_client.lease(f"{key}-e"):
            closed._engine.run(closed._engine.core.caller.request("deleteSession", path={"id": session_of(closed)}))
            assert other.task(task, wait=0.1).get("state") == "waiting"
        free.release()
        with pytest.raises(LeaseLost):
            gone.__exit__(None, None, None)
    interlock_client.cancel_task(task)


def session_of(client: Client) -> str:
    session = client._engine.core.session
    assert session is not None
    return session.id


def test_a_wait_for_a_person(
    interlock_client: Client, other: Client, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with the answer; if the keys then are those of a lease around the wait, it is refused."""
    monkeypatch.setattr("interlock._ops._SHORT_POLL", 0.2)

    def asked(question: str) -> str:
        return str(next(one["fence"] for one in other.approvals()[1] if one["question"] == question))

    def approve(question: str) -> threading.Thread:
        thread = threading.Thread(target=lambda: other.answer(asked(question), "approved", by="ann"))
        thread.start()
        return thread

    parked = interlock_client.acquire(key).park("first?", keep=False)
    with pytest.raises(Refused, match="until a person answers") as refused:
        interlock_client.resume(parked, wait=0.2)
    assert refused.value.code == "parked"
    answering = approve("first?")
    resumed = interlock_client.resume(parked, wait=60)
    answering.join()
    parked = resumed.park("second?", keep=False)
    with other.lease(key):
        answering = approve("second?")
        with pytest.raises(Held, match="this is your own lease"):
            interlock_client.resume(parked, wait=600)
        answering.join()
    interlock_client.resume(parked, wait=0).release()


def test_a_wait_that_others_can_end_goes_on(
    interlock_server: LocalServer, interlock_client: Client, other: Client, put: Any, key: str
) -> None:
    """A lease around the call is in its way, but not alone, and another agent ends its own."""
    put(f"/v1/patterns/{key.replace(':', '-')}", {"pattern": f"{key}/" + "{name}", "capacity": 2})
    two = {"key": f"{key}/x", "mode": "permits", "permits": 1}
    with interlock_client.lease(two), interlock_client.lease(key + "-a"), Client(interlock_server.url) as third:
        for asked in [two], [f"{key}-a", f"{key}-b"]:
            held = third.acquire(asked[-1])
            leave: Callable[..., Any] = lambda ticket, held=held: held.release()  # noqa: E731
            with other.lease(*asked, any_of=len(asked) > 1, on_queued=leave):
                pass
        held = third.acquire(two)
        with pytest.raises(Held, match="this is your own lease"):
            other.acquire({**two, "permits": 2}, **OPTIONS)
        held.release()


def test_a_shared_client_of_threads_inside_an_async_turn(interlock_server: LocalServer, key: str) -> None:
    """A tool that blocks has a client of its own, in a thread of the turn."""

    async def main(client: Client) -> None:
        async with AsyncClient(interlock_server.url, agent="one") as turn, turn.lease(key):
            with pytest.raises(Held, match="this is your own lease"):
                await asyncio.to_thread(client.acquire, key, **OPTIONS)

    with Client(interlock_server.url, agent="one") as client:
        asyncio.run(main(client))


def test_what_another_task_has_awaited(interlock_server: LocalServer, key: str) -> None:
    """Before Python 3.12 wait_for has a task of its own."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            held = await asyncio.wait_for(client.acquire(key), 60)
            async with client.lease(key, **OPTIONS):
                pass
            await held.release()
            block = client.lease(key)
            await asyncio.wait_for(block.__aenter__(), 60)
            assert current_lease().key == key
            await asyncio.create_task(client.acquire(key, **OPTIONS))
            await block.__aexit__(None, None, None)

    asyncio.run(main())


def test_two_tools_of_a_turn_exclude_each_other(interlock_server: LocalServer, key: str) -> None:
    """They are one agent, and yet two lines of work."""
    client: Any = None
    inside = 0

    async def tool() -> None:
        nonlocal inside
        inside += 1
        assert inside == 1, "two at once"
        for _ in range(3):
            await client.look(key)
        inside -= 1

    async def main() -> None:
        nonlocal client
        async with AsyncClient(interlock_server.url) as client, client.lease(f"turn:{key}"):
            call = guarded(key, client=client, refuse=None)(tool)
            await asyncio.gather(*(call() for _ in range(4)))
            await asyncio.gather(*(asyncio.wait_for(call(), 60) for _ in range(4)))
            async with client.lease(key):
                await asyncio.gather(*(call() for _ in range(4)))

    asyncio.run(main())


def test_threads_of_a_turn_exclude_each_other(interlock_client: Client, key: str) -> None:
    inside = threading.Lock()

    def body() -> None:
        with interlock_client.lease(key):
            assert inside.acquire(blocking=False), "two at once"
            interlock_client.look(key)
            inside.release()

    with interlock_client.lease(f"turn:{key}"), ThreadPoolExecutor() as pool:
        for done in [pool.submit(contextvars.copy_context().run, body) for _ in range(4)]:
            done.result()
    call = guarded(key, client=interlock_client, refuse=None)(body)
    with interlock_client.lease(key), ThreadPoolExecutor() as pool:
        for done in [pool.submit(contextvars.copy_context().run, call) for _ in range(4)]:
            done.result()


def test_permits_of_a_turn_are_counted(interlock_client: Client, put: Any, key: str) -> None:
    put(f"/v1/patterns/{key.replace(':', '-')}", {"pattern": f"{key}/" + "{name}", "capacity": 2})
    barrier = threading.Barrier(2)

    def body() -> int:
        with interlock_client.lease(f"{key}/x", permits=1) as held:
            barrier.wait(30)
            return held.fence

    with interlock_client.lease(f"turn:{key}"), ThreadPoolExecutor() as pool:
        fences = [pool.submit(contextvars.copy_context().run, body) for _ in range(2)]
        assert len({fence.result() for fence in fences}) == 2


def test_a_task_that_outlives_its_turn(interlock_server: LocalServer, key: str) -> None:
    """The lease of such a task is no longer that of its parent."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            held, leave = asyncio.Event(), asyncio.Event()

            async def stray() -> None:
                async with client.lease(key):
                    held.set()
                    await leave.wait()

            async with client.lease(f"turn:{key}"):
                task = asyncio.create_task(stray())
                await held.wait()
            with pytest.raises(Held):
                await client.acquire(key, wait=0)
            leave.set()
            await task
            await (await client.acquire(key, wait=0)).release()

    asyncio.run(main())


def test_a_deadlock_through_child_tasks(interlock_server: LocalServer, key: str) -> None:
    """Two turns that take their keys in opposite order."""

    async def turn(client: AsyncClient, first: str, second: str, barrier: list[asyncio.Event]) -> str:
        async def inner() -> str:
            await barrier[1].wait()
            try:
                async with client.lease(second, wait=60):
                    return "done"
            except Deadlock:
                return "deadlock"

        async with client.lease(first):
            barrier[0].set()
            return await asyncio.create_task(inner())

    async def main() -> None:
        url = interlock_server.url
        async with AsyncClient(url, agent="one") as one, AsyncClient(url, agent="two") as two:
            events = [asyncio.Event(), asyncio.Event()]
            turns = turn(one, f"{key}-a", f"{key}-b", events), turn(two, f"{key}-b", f"{key}-a", events[::-1])
            assert sorted(await asyncio.wait_for(asyncio.gather(*turns), 60)) == ["deadlock", "done"]

    asyncio.run(main())


def test_the_inner_lease_frees_nothing(interlock_client: Client, other: Client, key: str) -> None:
    with interlock_client.lease(key) as outer:
        in_thread(lambda: lease(interlock_client, key, lambda: None))
        outer.check()
        with pytest.raises(Held):
            other.acquire(key, wait=0)
    other.acquire(key, wait=0).release()


def test_a_thread_without_the_context_is_named(interlock_client: Client, key: str) -> None:
    with interlock_client.lease(key), ThreadPoolExecutor() as pool:
        with pytest.raises(WaitTimeout, match=r"test \(another thread or task of this client\)"):
            pool.submit(interlock_client.acquire, key, wait=0.2).result()


def test_an_effect_inside_itself_in_a_child_task(interlock_server: LocalServer, key: str) -> None:
    async def main() -> None:
        url = interlock_server.url
        async with AsyncClient(url) as client, AsyncClient(url) as other, client.effect("charge", key):
            for one in client, other:
                with pytest.raises(InterlockError, match="claimed"):
                    await asyncio.create_task(one.claim_effect("charge", key))

    asyncio.run(asyncio.wait_for(main(), 60))


# Across processes.


@pytest.fixture
def command(interlock_server: LocalServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs a program below a command, and returns what it tells."""

    def run(args: list[str], program: str) -> Any:
        file = tmp_path / "program.py"
        result = tmp_path / "result.json"
        head = f"""
import asyncio, json, pathlib, sys
from interlock import *
def fail(ticket):
    sys.exit("it stands in line")
def tell(**result):
    pathlib.Path({str(result)!r}).write_text(json.dumps(result))
"""
        file.write_text(head + program)
        address = {"INTERLOCK_URL": interlock_server.url, "INTERLOCK_GRPC": interlock_server.grpc}
        environment = {**os.environ, **address, "INTERLOCK_AGENT": "coder"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        words = [interlock_server.binary, *args, "--", sys.executable, str(file)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
        assert result.exists(), done.stderr + done.stdout
        return json.loads(result.read_text())

    yield run


BLOCKING = """
with Client({}) as client:
    def call():
        with client.lease("KEY", wait=60, on_queued=fail) as lease:
            lease.check()
            return "inside"
    tell(lease=call(), below=client.acquire("KEY/a", wait=60, on_queued=fail).held,
         guarded=guarded("KEY", client=client, wait=60, on_queued=fail)(lambda: "inside")())
    client.acquire("KEY-2", wait=60)
    assert client.look("KEY")["state"] == "held"
"""
AWAITING = """
async def main():
    async with AsyncClient({}) as client:
        async def call():
            async with client.lease("KEY", wait=60, on_queued=fail) as lease:
                lease.check()
                return "inside"
        async def held():
            return (await client.acquire("KEY/a", wait=60, on_queued=fail)).held
        tell(lease=(await asyncio.gather(call(), call()))[0], below=await held(),
             guarded=await guarded("KEY", client=client, wait=60, on_queued=fail)(call)())
        await client.acquire("KEY-2", wait=60)
        assert (await client.look("KEY"))["state"] == "held"
asyncio.run(main())
"""


def outer_commands(key: str, client: Client) -> Iterator[list[str]]:
    yield ["run", key, "--quiet"]
    client.submit("identity", claims=[key])
    yield ["task", "work", "identity", "--idle", "0"]


@pytest.mark.parametrize("program", [BLOCKING, AWAITING])
def test_below_a_command(command: Any, other: Client, key: str, program: str) -> None:
    for args in outer_commands(key, other):
        for given in "", "session_ttl=10":
            if "task" in args and given:
                continue
            found = command(args, program.replace("KEY", key).format(given))
            assert found == {"lease": "inside", "below": True, "guarded": "inside"}
            other.acquire(key, wait=60).release()
            other.acquire(f"{key}-2", wait=60).release()


@pytest.mark.parametrize("given", ["join=False", "agent='reviewer'"])
def test_another_agent_below_a_command(command: Any, other: Client, key: str, given: str) -> None:
    program = f"""
with Client({given}) as client:
    try:
        client.acquire("{key}/a", wait=60, on_queued=fail)
    except Held as error:
        tell(refused=str(error))
"""
    for args in outer_commands(key, other):
        assert f"this is your own lease on {key}, around this call" in command(args, program)["refused"]


def test_leases_are_given_back_below_a_command(command: Any, other: Client, key: str) -> None:
    """The session goes on, and what the client held or waited for does not."""
    held = other.acquire(f"{key}-3")
    program = f"""
import threading
client, watcher = Client(), Client(join=False)
client.acquire("{key}-2")
stands = threading.Event()
threading.Thread(target=lambda: client.acquire("{key}-3", on_queued=lambda ticket: stands.set()), daemon=True).start()
stands.wait(60)
client.close()
states = [watcher.look("{key}-2")["state"], watcher.look("{key}-3")["length"], watcher.look("{key}")["state"]]
tell(states=states)
watcher.close()
"""
    assert command(["run", key, "--quiet"], program) == {"states": ["free", 0, "held"]}
    held.release()


def test_threads_and_processes_below_a_command(command: Any, key: str) -> None:
    """They are one agent, and yet exclude each other from what the command does not hold."""
    program = f"""
import threading
one, two = Client(), Client()
held = one.acquire("{key}-2")
refused = 0
def attempt(client):
    global refused
    try:
        client.acquire("{key}-2", wait=0)
    except Held:
        refused += 1
for client in one, two:
    thread = threading.Thread(target=attempt, args=[client])
    thread.start()
    thread.join()
tell(refused=refused)
one.close(), two.close()
"""
    assert command(["run", key, "--quiet"], program) == {"refused": 2}


def test_the_end_of_the_session_around(interlock_server: LocalServer, monkeypatch: Any, key: str) -> None:
    """What has joined a session loses all with it, and says so."""
    with Client(interlock_server.url, agent="outer") as outer:
        around = outer.acquire(key)
        session = outer._engine.core.session
        assert session is not None
        names = {"SESSION": session.id, "FLOW": around._grant.flow, "KEYS": key, "FENCE": str(around.fence)}
        for name, value in {**names, "URL": interlock_server.url.replace("127.0.0.1", "localhost")}.items():
            monkeypatch.setenv(f"INTERLOCK_{name}", value)
        inner = Client(interlock_server.url)
        with inner:
            assert inner.acquire(key, **OPTIONS).fence == around.fence
            held = inner.acquire(f"{key}-2")
            outer.close()
            assert inner._engine.core.session is not None
            inner._engine.core.session.next_beat = 0.0
            inner._engine.wake()
            assert held.lost.wait(60)
            with pytest.raises(LeaseLost):
                held.check()
            with pytest.raises(InterlockError, match="the session of the command around this process has ended"):
                inner.acquire(key)
