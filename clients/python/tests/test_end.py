"""The ends of attempts and effects: no text, result, error or outage may leave one open, or repeat its work."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from test_loss import NOW, drive, granted, hold, opened, run_out
from test_rules import answer

from interlock import (
    AsyncClient,
    AsyncJob,
    Cancelled,
    CancelToken,
    Client,
    EffectTaken,
    Job,
    Lease,
    LeaseLost,
    OutcomeUnknown,
    Refused,
)
from interlock import put as write
from interlock._call import Caller
from interlock._core import Session
from interlock._effect import report
from interlock._ops import Operations
from interlock._report import Unstorable, clip, describe, frozen
from interlock._threads import _Bounded
from interlock._wire import Broken, Reply, Send
from interlock._work import Attempt
from interlock.testing import LocalServer

Put = Callable[[str, Any], None]


class Silent(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@dataclasses.dataclass
class Receipt:
    cents: int


def cycle() -> list[Any]:
    values: list[Any] = []
    values.append(values)
    return values


def deep(levels: int) -> list[Any]:
    return [deep(levels - 1)] if levels else []


#: Results that the server cannot store, or does not take.
RESULTS: dict[str, Any] = {
    "datetime": {"at": datetime.datetime.now()},
    "decimal": decimal.Decimal("1.5"),
    "nan": float("nan"),
    "infinity": [float("inf")],
    "set": {1, 2},
    "bytes": b"x",
    "dataclass": Receipt(35),
    "cycle": cycle(),
    "big": "x" * 70_000,
    "surrogate": {"name": "caf\udce9"},
    "surrogate in a name": {"caf\udce9": 1},
    "keys": {(1, 2): 3},
    "deep": deep(200),
    "too deep": deep(900),
}

#: Errors whose texts the server does not take as they are.
ERRORS: dict[str, Callable[[], BaseException]] = {
    "chinese": lambda: ValueError("网关超时" * 60),
    "emoji": lambda: ValueError("\U0001f600" * 300),
    "surrogate": lambda: FileNotFoundError(2, "no such file", "caf\udce9"),
    "cut": lambda: ValueError("x" * 490 + "é" * 100),
    "silent": Silent,
    "empty": ValueError,
    "unknown": lambda: OutcomeUnknown("the call of the handler"),
    "cancelled": asyncio.CancelledError,
    "generator": GeneratorExit,
}


@pytest.mark.parametrize(
    ("text", "most", "clipped"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc"),
        ("ééé", 5, "éé"),
        ("\udce9", 8, "\ufffd"),
        ("a\ud800b", 8, "a\ufffdb"),
        ("\ud83d\ude00", 4, "\U0001f600"),
        ("\U0001f600", 3, ""),
        (None, 8, "None"),
        (Silent(), 64, "its text cannot be made (RuntimeError)"),
    ],
)
def test_texts_are_clipped(text: object, most: int, clipped: str) -> None:
    assert clip(text, most) == clipped


def test_a_reason_is_short() -> None:
    for make in ERRORS.values():
        assert 0 < len(describe(make()).encode()) <= 512


def test_what_is_frozen_is_json() -> None:
    assert frozen({1: ("a", None), "pair": "\ud83d\ude00"}) == {"1": ["a", None], "pair": "\U0001f600"}
    assert frozen("é" * 100, 202) == "é" * 100
    with pytest.raises(Unstorable):
        frozen("é" * 100, 201)
    for name in RESULTS.keys() - {"deep", "too deep"}:
        with pytest.raises(Unstorable) as error:
            frozen(RESULTS[name], 65536)
        assert len(str(error.value).encode()) <= 200


def is_mark(result: Any) -> bool:
    assert result.keys() == {"interlock", "reason"} and result["interlock"] == "result not stored"
    assert 0 < len(result["reason"].encode()) <= 200
    return True


# Effects.


@pytest.mark.parametrize("name", RESULTS)
def test_an_effect_with_such_a_result_is_done(interlock_client: Client, other: Client, key: str, name: str) -> None:
    with interlock_client.effect("charge", key) as claim:
        claim.complete(RESULTS[name])
    for client in interlock_client, other:
        with client.effect("charge", key, wait=0) as again:
            assert again.done and is_mark(again.result)


@pytest.mark.parametrize("name", ERRORS)
def test_an_effect_with_such_an_error_is_unknown(interlock_client: Client, key: str, name: str) -> None:
    error = ERRORS[name]()
    with pytest.raises(type(error)) as own, interlock_client.effect("charge", key):
        raise error
    assert own.value is error
    with pytest.raises(EffectTaken) as taken:
        interlock_client.claim_effect("charge", key, wait=0)
    assert taken.value.code == "effect_unknown"


def test_an_effect_that_was_completed_before_an_error_is_done(interlock_client: Client, key: str) -> None:
    with pytest.raises(ValueError), interlock_client.effect("charge", key) as claim:
        claim.complete({"at": datetime.datetime.now()})
        raise ValueError
    with interlock_client.effect("charge", key) as again:
        assert again.done and is_mark(again.result)


def test_a_reason_to_cancel_is_clipped(interlock_client: Client, key: str) -> None:
    for _ in range(2):
        with interlock_client.effect("charge", key) as claim:
            claim.cancel("余额不足" * 200 + "\udce9")


def test_a_claim_is_that_of_its_block(interlock_client: Client, key: str) -> None:
    """Also under one lease, in the same thread, and without a wait for itself."""
    with interlock_client.lease(key) as lease:
        for held in None, lease:
            with interlock_client.effect("charge", f"{key}/{held is None}", lease=held) as claim:
                assert not claim.done
                for second in None, lease:
                    with pytest.raises(EffectTaken) as nested:
                        interlock_client.claim_effect("charge", f"{key}/{held is None}", lease=second)
                    assert nested.value.code == "effect_claimed"
    first = interlock_client.claim_effect("mail", key)
    with pytest.raises(EffectTaken):
        interlock_client.claim_effect("mail", key, wait=0)
    interlock_client.settle_effect(first.get("id", ""), "done", float("nan"))
    with interlock_client.effect("mail", key) as again:
        assert again.done and is_mark(again.result)


def test_another_claim_of_the_lease_waits(interlock_client: Client, key: str) -> None:
    results: list[Any] = []

    def second(lease: Lease) -> None:
        with interlock_client.effect("charge", key, lease=lease) as claim:
            results.append(claim.result)

    with interlock_client.lease(key) as lease:
        with interlock_client.effect("charge", key, lease=lease) as claim:
            thread = threading.Thread(target=second, args=(lease,))
            thread.start()
            claim.complete("first")
        thread.join()
    assert results == ["first"]


def test_effects_in_asyncio(interlock_server: LocalServer, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            for name, result in RESULTS.items():
                async with client.effect("charge", f"{key}/{name}") as claim:
                    with pytest.raises(EffectTaken):
                        await client.claim_effect("charge", f"{key}/{name}")
                    claim.complete(result)
                async with client.effect("charge", f"{key}/{name}") as again:
                    assert again.done and is_mark(again.result)
            for name, make in ERRORS.items():
                error = make()
                with pytest.raises(type(error)) as own:
                    async with client.effect("mail", f"{key}/{name}"):
                        raise error
                assert own.value is error
                with pytest.raises(EffectTaken) as taken:  # a cancellation is reported in the background
                    await client.claim_effect("mail", f"{key}/{name}", wait=30)
                assert taken.value.code == "effect_unknown"

    asyncio.run(main())


def test_a_token_does_not_leave_an_effect_open(interlock_client: Client, key: str) -> None:
    token = CancelToken()
    with pytest.raises(Cancelled), token, interlock_client.effect("charge", key):
        token.cancel()
        interlock_client.status()
    with pytest.raises(EffectTaken) as taken:
        interlock_client.claim_effect("charge", key, wait=60)
    assert taken.value.code == "effect_unknown"


def claimed(**members: Any) -> Reply:
    return Reply(
        200, {"content-type": "application/json"}, json.dumps({"effect": {"state": "claimed", **members}}).encode()
    )


def test_a_claim_without_an_answer_is_freed() -> None:
    rules = opened()
    rules.caller.retry_for = 0
    steps = Operations(rules, lambda: "f").claim_effect("charge", "x")
    sent = next(steps)
    assert isinstance(sent, Send)
    asked = json.loads(sent.body)
    with pytest.raises(OutcomeUnknown):
        steps.throw(Broken("it broke"))
    job = rules.jobs.popleft()
    work = rules._work(job)
    again = next(work)
    assert isinstance(again, Send) and again.headers["Idempotency-Key"] == sent.headers["Idempotency-Key"]
    assert json.loads(again.body) == {name: asked[name] for name in asked if name != "wait_ms"}
    freed = work.send(claimed(id=asked["id"]))
    assert isinstance(freed, Send) and freed.target == f"/v1/effects/{asked['id']}/cancel"


def test_a_claim_that_is_no_json_leaves_nothing_to_do() -> None:
    rules = opened()
    with pytest.raises(TypeError):
        drive(Operations(rules, lambda: "f").claim_effect("charge", "x", {"at": datetime.datetime.now()}), [])
    assert not rules.jobs


def test_each_claim_has_its_own_id() -> None:
    rules, sent = opened(), []
    for _ in range(2):
        effect = next(Operations(rules, lambda: "f").claim_effect("charge", "x"))
        assert isinstance(effect, Send)
        sent.append(json.loads(effect.body))
    assert sent[0]["id"] != sent[1]["id"]
    assert sent[0]["id"][2:] not in sent[0]["flow"]  # which others can read


def test_a_report_that_is_repeated_is_the_same() -> None:
    caller = Caller(["http://a"], None, None, 0.0, "x")
    result = {"n": 1}
    steps = report(caller, "e_1", "done", result, None)
    bodies = []
    for _ in range(2):
        sent = next(steps())
        assert isinstance(sent, Send)
        bodies.append((sent.body, sent.headers["Idempotency-Key"]))
        result["n"] = 2
    assert bodies[0] == bodies[1] and b'{"n":1}' in bodies[0][0]


# Attempts at tasks.

QUEUE = {"max_attempts": 3, "backoff_ms": 1, "max_backoff_ms": 1, "grace_ms": 0}


class Worker:
    """A handler that does something in the first attempt at a task, and ends well in the second."""

    def __init__(self, first: Callable[[Any], Any]) -> None:
        self.first = first
        self.stop = threading.Event()
        self.runs = 0

    def __call__(self, job: Job) -> Any:
        self.runs += 1
        if self.runs == 1:
            return self.first(job)
        self.stop.set()
        return "ok"


def raising(make: Callable[[], BaseException]) -> Callable[[Any], Any]:
    def first(_: Any) -> Any:
        raise make()

    return first


def returning(value: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda _: value()


async def nothing() -> None: ...


#: First attempts that fail.
FAILURES: dict[str, Callable[[Any], Any]] = {
    **{name: raising(make) for name, make in ERRORS.items()},
    "lease": raising(lambda: LeaseLost("revoked", "the lease on stock:9 was revoked", ("stock:9",))),
    "coroutine": returning(nothing),
    "generator": returning(lambda: (n for n in range(3))),
}


@pytest.mark.parametrize("name", FAILURES)
def test_such_an_attempt_is_repeated(interlock_client: Client, other: Client, key: str, put: Put, name: str) -> None:
    queue = f"end-{key}".replace(":", "-")
    put(f"/v1/queues/{queue}", QUEUE)
    task = interlock_client.submit(queue, claims=[key])
    worker = Worker(FAILURES[name])
    other.work(queue, worker, stop=worker.stop)
    ended = interlock_client.task(task["id"], wait=60)
    assert ended.get("state") == "done" and ended.get("attempt") == 2 and worker.runs == 2


def fail(job: Job) -> None:
    job.fail("余额不足" * 200 + "\udce9", delay=0.0)
    job.fail("again")  # it has ended


def ask(job: Job) -> None:
    job.ask("余额不足" * 2000)


@pytest.mark.parametrize("first", [fail, ask])
def test_texts_of_a_handler(interlock_client: Client, other: Client, key: str, put: Put, first: Any) -> None:
    put(f"/v1/queues/{first.__name__}", QUEUE)
    task = interlock_client.submit(first.__name__, claims=[key])
    worker = Worker(first)
    other.work(first.__name__, worker, stop=worker.stop)
    assert interlock_client.task(task["id"], wait=60).get("attempt") == 2


@pytest.mark.parametrize("unstorable", ["done", "dead"])
@pytest.mark.parametrize("name", RESULTS)
def test_such_a_result_does_not_repeat_the_work(
    interlock_client: Client, other: Client, key: str, put: Put, name: str, unstorable: Any
) -> None:
    queue = f"end-{key}".replace(":", "-")
    put(f"/v1/queues/{queue}", QUEUE)
    task = interlock_client.submit(queue, claims=[key])
    runs: list[int] = []
    stop = threading.Event()

    def handle(job: Job) -> Any:
        runs.append(1)
        stop.set()
        job.note, job.writes = "n" * 5000, [write(key, 1)]
        job.reads = [{"key": key, "absent": True}]
        return RESULTS[name]

    other.work(queue, handle, stop=stop, unstorable=unstorable)
    ended = interlock_client.task(task["id"], wait=60)
    assert ended.get("state") == unstorable and ended.get("attempt") == 1 and runs == [1]
    if unstorable == "done":
        assert is_mark(ended.get("result")) and interlock_client.read(key).get("value") == 1


@pytest.mark.parametrize("value", [datetime.datetime.now(), "x" * (1 << 20)], ids=["datetime", "big"])
def test_writes_that_cannot_be_stored(interlock_client: Client, other: Client, key: str, put: Put, value: Any) -> None:
    put("/v1/queues/pywrites", QUEUE)
    task = interlock_client.submit("pywrites", claims=[key])

    def first(job: Job) -> None:
        job.writes.append(write(key, value))
        worker.stop.set()

    worker = Worker(first)
    other.work("pywrites", worker, stop=worker.stop)
    ended = interlock_client.task(task["id"], wait=60)
    assert ended.get("state") == "dead" and worker.runs == 1 and interlock_client.read(key).get("absent")


@pytest.mark.parametrize("kind", ["key", "counter", "queue"])
def test_ends_that_no_attempt_overcomes(interlock_client: Client, other: Client, key: str, put: Put, kind: str) -> None:
    """The server refuses them because of their content, with one of many codes."""
    put("/v1/queues/pyhopeless", QUEUE)
    interlock_client.commit([write(f"{key}-text", "text")])
    task = interlock_client.submit("pyhopeless", claims=[key])

    def first(job: Job) -> None:
        if kind == "queue":
            job.tasks.append({"queue": "nosuch", "payload": 1})
        else:
            job.writes.append({"key": f"{key}-text", "add": 1} if kind == "counter" else write(f"{key}//x", 1))
        worker.stop.set()

    worker = Worker(first)
    other.work("pyhopeless", worker, stop=worker.stop)
    ended = interlock_client.task(task["id"], wait=60)
    assert (ended.get("state"), ended.get("attempt"), worker.runs) == ("dead", 1, 1)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_the_end_of_the_program_ends_the_attempt(
    interlock_client: Client, other: Client, key: str, put: Put, kind: type[BaseException]
) -> None:
    put("/v1/queues/pyexit", QUEUE)
    task = interlock_client.submit("pyexit", claims=[key])
    worker = Worker(raising(kind))
    with pytest.raises(kind):
        other.work("pyexit", worker, stop=worker.stop)
    other.work("pyexit", worker, stop=worker.stop)
    assert interlock_client.task(task["id"], wait=60).get("attempt") == 2


def test_handlers_that_nobody_would_run(interlock_client: Client) -> None:
    def yields(job: Job) -> Iterator[int]:
        yield 1

    async def waits(job: Job) -> None: ...

    for wrong in yields, waits, "text":
        with pytest.raises(TypeError):
            interlock_client.work("q", wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        interlock_client.work("q", print, unstorable="lost")  # type: ignore[arg-type]


def test_attempts_in_asyncio(interlock_server: LocalServer, interlock_client: Client, key: str, put: Put) -> None:
    put("/v1/queues/pyends", QUEUE)
    tasks: dict[str, Any] = {}

    async def main() -> None:
        runs: dict[str, int] = {}

        async def handle(job: AsyncJob) -> Any:
            name = job.payload
            runs[name] = runs.get(name, 0) + 1
            if name.startswith("returns "):
                return RESULTS[name.removeprefix("returns ")]
            if runs[name] > 1:
                return "ok"
            if name == "inner":  # something in it is cancelled, and not the worker
                inner = asyncio.ensure_future(asyncio.sleep(60))
                asyncio.get_running_loop().call_soon(inner.cancel)
                await inner
            return FAILURES[name](job)

        async with AsyncClient(interlock_server.url) as client:
            for name in [*(f"returns {name}" for name in RESULTS), *FAILURES, "inner"]:
                tasks[name] = (await client.submit("pyends", name))["id"]
            worker = asyncio.create_task(client.work("pyends", handle))
            for name, task in tasks.items():
                ended = await client.task(task, wait=60)
                once = name.startswith("returns ")
                assert ended.get("state") == "done" and runs[name] == (1 if once else 2), name
                assert not once or is_mark(ended.get("result"))
            worker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await worker

    asyncio.run(main())


def test_a_worker_that_is_cancelled_gives_its_task_back(
    interlock_server: LocalServer, interlock_client: Client, key: str, put: Put
) -> None:
    put("/v1/queues/pycancel", QUEUE)
    task = interlock_client.submit("pycancel", claims=[key])["id"]

    async def main() -> None:
        begun = asyncio.Event()
        states: list[str] = []

        async def handle(job: AsyncJob) -> Any:
            begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                states.append("cleaned up")

        async with AsyncClient(interlock_server.url) as client:
            worker = asyncio.create_task(client.work("pycancel", handle))
            await begun.wait()
            worker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await worker
            assert states == ["cleaned up"]
        # The report goes out before the client is closed.

    asyncio.run(main())
    history = interlock_client.task(task).get("attempts", [])
    assert [attempt.get("reason") for attempt in history] == ["the worker was cancelled"]


# The rules of an attempt, without a server.


def attempt_of(rules: Any) -> Attempt:
    return Attempt(Operations(rules, lambda: "f"), {"task": {"id": "q_1"}}, next(iter(hold(rules).holds)))


pytestmark_still = pytest.mark.usefixtures("still")


@pytestmark_still
def test_an_attempt_that_the_server_has_ended_is_not_reported() -> None:
    rules = opened()
    attempt = attempt_of(rules)
    rules.end(attempt._grant, "revoked", "the operator says so")
    drive(attempt._end(attempt._raised(ValueError())), [])
    attempt._leave()
    assert not rules.jobs
    with pytest.raises(LeaseLost):
        drive(attempt._fail("broken", None, False), [])


@pytestmark_still
@pytest.mark.parametrize("code", ["task_moved", "released", "session_ended", "already_replied"])
def test_an_attempt_that_turns_out_to_have_ended(code: str) -> None:
    rules = opened()
    attempt = attempt_of(rules)
    drive(attempt._end(attempt._returned("ok", "done")), [lambda: answer(410, code=code, detail="x")])
    attempt._leave()
    assert not rules.jobs and attempt._grant.loss is not None


@pytestmark_still
def test_the_server_decides_about_an_attempt_that_was_not_confirmed() -> None:
    """The clock of the client has ended the lease, and after an outage it lives on at the server."""
    rules = opened()
    attempt = attempt_of(rules)
    attempt._grant.attempt = True
    run_out(rules, attempt._grant)
    assert attempt._grant.loss is not None and not rules.jobs  # nothing gives it back but the report
    _, sends = drive(attempt._end(attempt._returned("ok", "done")), [lambda: answer(200, task={})])
    assert sends == ["POST /v1/leases/l_1/ack"]


@pytestmark_still
def test_the_last_resort_releases_the_lease() -> None:
    rules = opened()
    attempt = attempt_of(rules)
    refused = [lambda: answer(403, code="forbidden", detail="x")]
    _, sends = drive(attempt._end(attempt._raised(ValueError())), [*refused, *refused, lambda: answer(200)])
    assert [send.rpartition("/")[2] for send in sends] == ["nack", "nack", "release"]


@pytestmark_still
@pytest.mark.parametrize("code", ["no_space", "internal", "shutting_down", "quota_exceeded"])
def test_a_server_in_need_gets_the_report_later(code: str) -> None:
    rules = opened()
    rules.caller.retry_for = 0
    attempt = attempt_of(rules)
    report = attempt._returned("ok", "done")
    drive(attempt._end(report), [lambda: answer(503, code=code, detail="x")])
    assert len(rules.jobs) == 1
    with pytest.raises(LeaseLost):  # the keeper has it
        drive(attempt._fail("broken", None, False), [])
    drive(rules._work(rules.jobs.popleft()), [lambda: answer(503, code=code, detail="x")])
    drive(rules._work(rules.jobs.popleft()), [lambda: answer(200, task={})])
    assert not rules.jobs and attempt._grant.loss is not None


@pytestmark_still
def test_a_stale_end_is_tried_again_at_once() -> None:
    rules = opened()
    attempt = attempt_of(rules)
    steps = attempt._end(attempt._returned("ok", "done"))
    next(steps)
    packet = {"stale": [], "more": False, "message": "k has changed"}
    nack = steps.send(answer(409, code="stale", detail="x", packet=packet))
    assert isinstance(nack, Send) and json.loads(nack.body) == {"reason": "k has changed", "delay_ms": 0}


@pytestmark_still
def test_closing_repeats_the_report_that_the_keeper_is_at() -> None:
    """The end of the session would overtake it."""
    rules = opened()
    attempt = attempt_of(rules)
    keeper = rules.keep()
    next(keeper)
    rules.later(attempt._raised(ValueError()), report=True)
    first = keeper.send(None)
    assert isinstance(first, Send)
    _, sends = drive(rules.close(), [lambda: answer(200, task={}), lambda: answer(200)])
    assert sends == ["POST /v1/leases/l_1/nack", "DELETE /v1/sessions/s"]


@pytestmark_still
def test_the_keeper_does_not_wait_for_a_report() -> None:
    rules = opened()
    attempt = attempt_of(rules)
    rules.later(attempt._raised(ValueError()), report=True)
    work = rules._work(rules.jobs.popleft())
    next(work)
    with pytest.raises(StopIteration) as settled:
        work.throw(Broken("no answer"))
    assert settled.value.value is False and rules.jobs[0].after > NOW


@pytestmark_still
@pytest.mark.parametrize("own", [ValueError(), None])
def test_a_refused_release_does_not_hide_the_error_of_the_block(own: Exception | None) -> None:
    client = Client("http://127.0.0.1:1", retry_for=0)
    engine = client._engine
    engine.keeper = engine.parting  # type: ignore[assignment]  # no thread
    engine.core.session = Session("s", "a-1", 30.0, NOW + 30, NOW + 10)

    def perform(effect: Any) -> Any:
        return granted() if effect.target == "/v1/leases" else answer(403, code="forbidden", detail="x")

    engine._perform = perform  # type: ignore[method-assign]
    with pytest.raises(type(own) if own else Refused), client.lease("k"):
        if own:
            raise own
    engine.core.closed, engine.keeper = True, None


def test_an_answer_has_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that arrives byte by byte."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        answered = _Bounded(ours, 10.0)
        theirs.sendall(b"HTTP")
        assert answered.readinto(bytearray(1)) == 1
        later = time.monotonic() + 11
        monkeypatch.setattr(time, "monotonic", lambda: later)
        with pytest.raises(TimeoutError):
            answered.readinto(bytearray(1))


def test_long_texts_do_not_end_a_lease(interlock_client: Client, other: Client, key: str) -> None:
    interlock_client.set_progress("余额不足" * 200 + "\udce9")
    progress = interlock_client._engine.core.progress  # a heartbeat that is refused for it renews nothing
    assert progress is not None and progress.encode() == ("余额不足" * 200).encode()[:510]
    with interlock_client.lease(key) as lease:
        lease.outcome, lease.note = "o" * 500, "余额不足" * 2000 + "\udce9"
        lease.renew()
    interlock_client.acquire(key, wait=0).release("o" * 500, "n" * 5000)
    with other.lease(key, wait=0) as again:
        assert len(again.notes[-1]["text"]) == 4096
