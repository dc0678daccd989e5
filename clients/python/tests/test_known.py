"""What a client knows of its leases: heartbeats tell it, and what nobody holds any more is given back."""

from __future__ import annotations

import asyncio
import gc
import json
import linecache
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from test_loss import NOW, drive, granted, opened
from test_rules import answer, core

import interlock
from interlock import AsyncClient, Client, ForkedError, LeaseLost, _call, _core
from interlock._core import Core
from interlock._grant import Hold
from interlock._handle import Handle
from interlock._ops import Operations
from interlock._wire import NotSent, Reply, Send
from interlock.testing import LocalServer

still = pytest.mark.usefixtures("still")


def hold(rules: Core, number: int) -> Hold:
    """Has a lease granted that is held as long as the result lives."""
    reply = granted(id=f"l_{number:x}")
    reply.sent = NOW
    held = rules.granted(reply, "s")
    assert held is not None
    return held


def beat(rules: Core, **members: Any) -> dict[str, Any]:
    """Carries out a heartbeat and returns its body."""
    steps = rules._beat()
    send = next(steps)
    assert isinstance(send, Send) and send.target == "/v1/sessions/s/heartbeat"
    with pytest.raises(StopIteration):
        steps.send(answer(200, losses=[], warnings=[], **members))
    body: dict[str, Any] = json.loads(send.body)
    return body


def at(monkeypatch: pytest.MonkeyPatch, moment: float) -> None:
    for module in _call, _core:
        monkeypatch.setattr(module, "now", lambda: moment)


@still
def test_heartbeats_tell_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lease is counted from the heartbeat that has renewed it."""
    rules = opened()
    first, second = hold(rules, 5), hold(rules, 3)
    ends = [one.grant.end for one in (first, second)]
    at(monkeypatch, NOW + 10)
    assert beat(rules)["known"] == {"count": 2, "digest": f"{6:032x}"}
    assert [one.grant.end for one in (first, second)] == [end + 10 for end in ends]
    at(monkeypatch, NOW + 12)
    assert "digest" in beat(rules, wants_list=True)["known"]
    assert [one.grant.end for one in (first, second)] == [end + 10 for end in ends]  # nothing is confirmed
    assert rules._due()
    at(monkeypatch, NOW + 13)
    assert sorted(beat(rules)["known"]["leases"]) == ["l_3", "l_5"]
    assert [one.grant.end for one in (first, second)] == [end + 13 for end in ends]
    assert not rules._due() and "count" in beat(rules)["known"]


@still
def test_a_heartbeat_that_is_refused_again_and_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each cause has a line a minute in the log, with the number of those left out."""
    rules = opened()

    def refused(moment: float, reply: Reply) -> None:
        at(monkeypatch, NOW + moment)
        steps = rules._beat()
        assert isinstance(next(steps), Send)
        with pytest.raises(StopIteration):
            steps.send(reply)

    for moment in range(0, 130, 10):
        refused(moment, answer(507, code="no_space", detail="the disk is full"))
        refused(moment, answer(403, code="forbidden", detail="you may not"))
    lines = [record.message for record in caplog.records]
    assert lines[:2] == ["the heartbeat was refused: the disk is full", "the heartbeat was refused: you may not"]
    assert lines[2::2] == ["the heartbeat was refused: the disk is full (5 more since the last line)"] * 2
    assert len(lines) == 6


@still
def test_a_list_that_is_not_answered_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = opened()
    held = hold(rules, 5)
    beat(rules, wants_list=True)
    steps = rules._beat()
    next(steps)
    with pytest.raises(StopIteration):
        steps.throw(NotSent("no server"))
    assert beat(rules)["known"] == {"leases": [held.grant.id]}


@still
def test_a_lease_that_comes_meanwhile_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = opened()
    first = hold(rules, 5)
    at(monkeypatch, NOW + 10)
    steps = rules._beat()
    next(steps)
    second = hold(rules, 3)
    with pytest.raises(StopIteration):
        steps.send(answer(200, losses=[], warnings=[]))
    assert first.grant.end == second.grant.end + 10


@still
def test_more_leases_than_a_list_has_are_all_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = opened()
    held = [hold(rules, number) for number in range(1, 1026)]
    at(monkeypatch, NOW + 10)
    assert "known" not in beat(rules)
    assert {one.grant.deadline for one in held} == {NOW + 40}
    del held[0]
    rules.expire()
    assert beat(rules)["known"]["count"] == 1024


@still
def test_what_nobody_holds_is_given_back(caplog: pytest.LogCaptureFixture) -> None:
    rules = opened()
    told: list[str] = []
    named, dropped = hold(rules, 5), hold(rules, 3)
    grant = named.grant
    grant.listeners.append(lambda: told.append("lost"))
    del named, dropped  # of one there is still a name for its state
    rules.expire()
    assert grant.loss is not None and grant.loss.code == "forgotten" and told == ["lost"]
    assert not rules.grants and set(rules.leaving) == {"l_5", "l_3"}
    freed = [drive(rules.jobs.popleft().steps(), [lambda: answer(200, outcome="done")])[1] for _ in range(2)]
    assert sorted(sends[0] for sends in freed) == ["POST /v1/leases/l_3/release", "POST /v1/leases/l_5/release"]
    assert caplog.text.count("dropped without a release") == 2


@still
def test_the_last_hold_counts() -> None:
    """A flow that has its key twice keeps it until both handles are released or dropped."""
    rules = opened()
    first, second = hold(rules, 5), hold(rules, 5)
    grant = first.grant
    assert second.grant is grant
    del second
    rules.expire()
    assert grant.loss is None
    assert drive(rules.release(grant, first), [lambda: answer(200, outcome="done")])[1]


@still
def test_a_function_that_refers_to_its_lease_does_not_keep_it() -> None:
    rules = opened()
    handle = Handle(rules, hold(rules, 5))
    Operations(rules, lambda: "f").listen(handle._grant, lambda: handle.check())  # noqa: F821
    with pytest.warns(ResourceWarning, match="unreleased Handle of k"):
        del handle
        gc.collect()
    rules.expire()
    assert not rules.grants and len(rules.jobs) == 1


@still
def test_an_attempt_without_a_holder_is_given_back() -> None:
    rules = opened()
    held = rules.adopt(granted(id="l_5").parse()["lease"], "s", NOW, attempt=True)
    held.grant.deadline = NOW
    rules.expire()
    assert not rules.jobs  # its report comes
    held = rules.adopt(granted(id="l_6").parse()["lease"], "s", NOW, attempt=True)
    del held
    rules.expire()
    assert len(rules.jobs) == 1


# Sessions.


def created(number: int = 1) -> Reply:
    return answer(200, session={"id": f"s_{number}", "name": "a", "ttl_ms": 30000})


@still
def test_calls_at_once_open_one_session() -> None:
    """Also one in a handler of a signal, which cannot wait for the call that it interrupts."""
    rules = core([])
    first, second = rules.open(), rules.open()
    sends: Any = [next(first), next(second)]
    assert sends[0].headers["Idempotency-Key"] == sends[1].headers["Idempotency-Key"]
    with pytest.raises(StopIteration) as outer:
        second.send(created())
    with pytest.raises(StopIteration) as inner:
        first.send(created())
    assert outer.value.value is inner.value.value is rules.session


@still
def test_a_session_whose_answer_nobody_waits_for_is_ended() -> None:
    rules = core([])
    first, second = rules.open(), rules.open()
    send: Any = next(first)
    next(second)
    first.close()
    assert not rules.jobs  # the other call waits
    second.close()
    assert rules.opening is None
    again: list[Any] = []
    steps = rules.jobs[0].steps()
    again.append(next(steps))
    assert again[0].headers["Idempotency-Key"] == send.headers["Idempotency-Key"]
    again.append(steps.send(created()))
    assert (again[1].method, again[1].target) == ("DELETE", "/v1/sessions/s_1")
    assert rules.jobs[0].report  # so that closing the client tries it, too


@still
def test_closing_ends_a_session_that_is_being_opened() -> None:
    rules = core([])
    opening = rules.open()
    next(opening)
    sends = drive(rules.close(), [created, lambda: answer(200)])[1]
    assert sends == ["POST /v1/sessions", "DELETE /v1/sessions/s_1"]
    with pytest.raises(interlock.Closed):
        opening.send(created())


@still
def test_a_session_that_was_refused_is_not_ended() -> None:
    rules = core([])
    opening = rules.open()
    next(opening)
    with pytest.raises(interlock.Refused):
        opening.send(answer(403, code="forbidden", detail="x"))
    assert not rules.jobs and rules.opening is None


def sessions(client: Client, agent: str) -> int:
    """Returns how many sessions an agent has."""
    reply = client._engine.run(client._engine.core.caller.request("listSessions"))
    return sum(session["agent"] == agent for session in reply.parse()["sessions"])


def test_threads_share_a_session(interlock_server: LocalServer, other: Client, key: str) -> None:
    with Client(interlock_server.url, agent=key) as client:
        start = threading.Barrier(8)

        def work(number: int) -> None:
            start.wait()
            client.acquire(f"{key}/{number}").release()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sessions(other, key) == 1


@pytest.mark.parametrize("closed_first", [False, True])
def test_a_cancelled_first_call_leaves_no_session(
    interlock_server: LocalServer, other: Client, key: str, closed_first: bool
) -> None:
    async def main(steps: int) -> bool:
        async with AsyncClient(interlock_server.url, agent=key) as client:
            task = asyncio.create_task(client.acquire(key, wait=5))
            for _ in range(steps):
                await asyncio.sleep(0)
            whole = client._engine.core.session is not None
            task.cancel()
            if not closed_first:
                await asyncio.wait({task})
        await asyncio.wait({task})
        return whole

    for steps in range(1, 1000):
        whole = asyncio.run(main(steps))
        assert sessions(other, key) == 0, steps
        if whole:
            return
    raise AssertionError("no session is opened")


# Interrupts.


class Interrupt:
    """Raises KeyboardInterrupt at one of the lines of the package that this thread carries out, as a handler may."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.folder = os.path.dirname(interlock.__file__)

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        if not frame.f_code.co_filename.startswith(self.folder):
            return None
        self.line -= 1
        if self.line <= 0:
            text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            if not text.lstrip().startswith(
                ("with self.", "with core.")
            ):  # a handler never runs between a block and its end
                raise KeyboardInterrupt
        return self


def until(condition: Callable[[], bool]) -> bool:
    """Waits for something that happens in the background."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def notebook(interlock_server: LocalServer) -> Iterator[Client]:
    with Client(interlock_server.url, agent="notebook", session_ttl=5) as client:
        client.acquire("warm").release()
        yield client


@pytest.fixture
def swept() -> Iterator[None]:
    """Collects what interrupts leave in cycles, so that no later test meets the warnings of it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.mark.filterwarnings("ignore:un:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("swept")
def test_an_interrupt_at_any_line_leaves_nothing(notebook: Client, other: Client, key: str) -> None:
    """Also if the program keeps the name of the lease. What the keeper cannot find ends with its ttl."""
    rules, names, kept = notebook._engine.core, [], []
    for line in range(1 + sys.version_info[1] % 3, 5000, 3):  # each interpreter has a part
        name = f"{key}/{line}"
        whole = False
        try:
            sys.settrace(Interrupt(line))
            with notebook.lease(name, wait=0) as lease:
                kept.append(lease)
            sys.settrace(None)
            whole = True
        except KeyboardInterrupt:
            names.append(name)
        finally:
            sys.settrace(None)
        if whole:
            break
        if sys.version_info < (3, 11):  # its frames may be in a cycle with the interrupt, until a collection
            gc.collect()
        notebook._engine.wake()
        assert until(lambda: not (rules.grants or rules.jobs or rules.at)), line
    assert len(names) > 100 and len(kept) > 10
    for name in names:
        assert until(lambda: other.look(name)["state"] != "held"), name  # noqa: B023
    assert all(not lease.held for lease in kept)
    gc.collect()


def test_a_lease_of_a_dead_thread_is_given_back(notebook: Client, other: Client, key: str) -> None:
    def body() -> None:
        lease = notebook.acquire(key)
        assert lease.held

    with pytest.warns(ResourceWarning, match=f"unreleased Lease of {key}"):
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        gc.collect()
    other.acquire(key, wait=60).release()


def test_the_last_reference_counts(notebook: Client, other: Client, key: str) -> None:
    outer = notebook.acquire(key)
    with pytest.warns(ResourceWarning):
        notebook.acquire(key)
        gc.collect()
    outer.renew()
    outer.release()
    other.acquire(key, wait=0).release()


def test_a_lease_that_the_client_has_never_heard_of_ends(
    interlock_server: LocalServer, other: Client, key: str
) -> None:
    """The answer that granted it was lost with the code that waited for it."""
    with Client(interlock_server.url, agent="forgetful", session_ttl=1.5) as client:
        rules = client._engine.core
        kept = client.acquire(key + "-kept")
        assert rules.session is not None
        body = {"session": rules.session.id, "flow": "f", "claims": [{"key": key}]}
        client._engine.run(rules.caller.request("acquireLease", body=body))
        other.acquire(key, wait=60).release()
        kept.renew()  # no other lease is the worse for it
        kept.release()


def test_a_dropped_lease_in_asyncio_is_given_back(interlock_server: LocalServer, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client, AsyncClient(interlock_server.url) as second:
            with pytest.warns(ResourceWarning, match="unreleased AsyncLease"):
                await client.acquire(key)
                gc.collect()
            await (await second.acquire(key, wait=60)).release()
            block = client.lease(key)
            lease = await block.__aenter__()
            del block  # as a task that is dropped
            gc.collect()
            await (await second.acquire(key, wait=60)).release()
            with pytest.raises(LeaseLost) as loss:
                lease.check()
            assert loss.value.code == "forgotten"

    asyncio.run(main())


def test_a_released_lease_of_asyncio_is_the_parents_in_a_child(interlock_server: LocalServer, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client, client.lease(key) as lease:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                try:
                    lease.release().send(None)
                except ForkedError:
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
            lease.check()

    children: list[int] = []
    asyncio.run(main())
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
