"""Documents, effects, tasks, messages, approvals and runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from interlock import (
    AsyncClient,
    AsyncJob,
    Client,
    EffectTaken,
    Held,
    Job,
    LeaseLost,
    Refused,
    Stale,
    add,
    delete,
    merge,
    seen,
)
from interlock import (
    put as write,
)
from interlock.testing import LocalServer

Put = Callable[[str, Any], None]


def attempts_at(client: Client, queue: str, handle: Callable[[Job], Any], times: int = 1) -> None:
    """Works on a queue for so many attempts, however late they come."""
    stop = threading.Event()
    left = iter(range(times - 1, -1, -1))

    def counted(job: Job) -> Any:
        if next(left) == 0:
            stop.set()
        return handle(job)

    client.work(queue, counted, stop=stop)


def test_documents(interlock_client: Client, other: Client, key: str) -> None:
    nothing = interlock_client.read(key)
    assert nothing.get("absent") and nothing["version"] == "0"
    first = interlock_client.commit([write(key, {"balance": 100})], seen(nothing), note="begin")
    document = interlock_client.read(key)
    assert document["version"] == first["version"] and document.get("value") == {"balance": 100}
    other.commit([merge(key, {"owner": "ann"})], seen(document), note="by phone")
    with pytest.raises(Stale) as stale:
        interlock_client.commit([write(key, {"balance": 65})], seen(document))
    assert stale.value.packet["stale"][0]["key"] == key and "by phone" in str(stale.value)
    with interlock_client.lease(key, documents=True) as lease:
        assert lease.documents[0].get("value") == {"balance": 100, "owner": "ann"}
        with pytest.raises(Held):
            other.commit([write(key, {})], seen(other.read(key)))
        lease.commit([write(key, {"balance": 65})], note="late fee")
    with pytest.raises(LeaseLost):
        lease.commit([write(key, {})])
    interlock_client.commit([add(f"{key}/n", 5, most=6)])
    with pytest.raises(Refused) as bounds:
        interlock_client.commit([add(f"{key}/n", 5, most=6)])
    assert bounds.value.code == "out_of_bounds"
    below = interlock_client.documents(prefix=f"{key}/")
    assert [d["key"] for d in below["documents"]] == [f"{key}/n"]
    interlock_client.commit([delete(key)], seen(interlock_client.read(key)))
    assert interlock_client.read(key).get("absent")


def test_an_effect_happens_once(interlock_client: Client, other: Client, key: str) -> None:
    with interlock_client.effect("charge", key, {"cents": 35}) as claim:
        assert not claim.done
        with pytest.raises(EffectTaken):
            other.claim_effect("charge", key, {"cents": 35}, wait=0)
        claim.complete({"charge": 1})
    with other.effect("charge", key, {"cents": 35}) as again:
        assert again.done and again.result == {"charge": 1}


def test_an_effect_with_an_error_is_unknown(interlock_client: Client, other: Client, key: str) -> None:
    with pytest.raises(ValueError), interlock_client.effect("mail", key):
        raise ValueError("the connection broke")
    with pytest.raises(EffectTaken) as unknown:
        other.claim_effect("mail", key, wait=0)
    assert unknown.value.code == "effect_unknown"
    with pytest.raises(ValueError), interlock_client.effect("mail", key + "b") as claim:
        claim.cancel("not begun")
        raise ValueError
    assert other.claim_effect("mail", key + "b")["state"] == "claimed"


def test_tasks(interlock_client: Client, other: Client, key: str, put: Put) -> None:
    put("/v1/queues/py", {"max_attempts": 3, "backoff_ms": 1})
    task = interlock_client.submit("py", {"cents": 35}, claims=[key], purpose="late fee")
    attempts: list[int] = []

    def handle(job: Job) -> Any:
        attempts.append(job.task.get("attempt", 0))
        job.lease.check()
        assert job.payload == {"cents": 35} and job.lease.key == key
        if len(attempts) == 1:
            raise ValueError("again")
        job.reads, job.writes = seen(*job.lease.documents), [write(key, {"charged": 35})]
        return {"charged": 35}

    attempts_at(other, "py", handle, 2)
    other.work("py", handle, wait=0, once=True)  # no task comes
    ended = interlock_client.task(task["id"], wait=10)
    assert ended.get("state") == "done" and ended.get("result") == {"charged": 35} and len(attempts) == 2
    assert interlock_client.read(key).get("value") == {"charged": 35}
    later = interlock_client.submit("py", delay=60)
    assert interlock_client.cancel_task(later["id"], "by hand").get("state") == "cancelled"


def test_tasks_in_asyncio(interlock_server: LocalServer, interlock_client: Client, key: str, put: Put) -> None:
    put("/v1/queues/pya", {"max_attempts": 3})
    task = interlock_client.submit("pya", 1, claims=[key])

    async def main() -> None:
        async with AsyncClient(interlock_server.url, agent="worker") as client:

            async def handle(job: AsyncJob) -> Any:
                return job.payload + 1

            worker = asyncio.create_task(client.work("pya", handle))
            await client.task(task["id"], wait=30)
            worker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await worker
            await client.work("pya", handle, wait=0, once=True)  # no task comes

    asyncio.run(main())
    assert interlock_client.task(task["id"]).get("result") == 2


def test_a_task_asks_a_person(interlock_client: Client, other: Client, key: str, put: Put) -> None:
    put("/v1/queues/pyask", {})
    task = interlock_client.submit("pyask", claims=[key])

    def handle(job: Job) -> Any:
        approval = job.task.get("approval")
        if approval is None:
            return job.ask("refund 900?", limit=3600)
        return approval.get("verdict")

    attempts_at(other, "pyask", handle)
    tasks, _ = interlock_client.approvals()
    assert task["id"] in [waiting["id"] for waiting in tasks]
    interlock_client.answer(task["id"], "approved", by="ann")
    attempts_at(other, "pyask", handle)
    assert interlock_client.task(task["id"], wait=5).get("result") == "approved"


def test_messages_have_a_single_writer(interlock_client: Client, other: Client, put: Put) -> None:
    put("/v1/queues/pybank", {})
    put("/v1/writers/pymoney", {"queue": "pybank", "pattern": "pymoney:{id}"})
    message = interlock_client.send("pymoney:1", {"cents": 35}, kind="debit")

    def handle(job: Job) -> Any:
        job.writes, job.reads = [write("pymoney:1", {"cents": -35})], seen(*job.lease.documents)
        return {"ok": True}

    attempts_at(other, "pybank", handle)
    assert interlock_client.task(message["id"], wait=5).get("result") == {"ok": True}
    assert interlock_client.log("pymoney:1")[0]["message"] == message["id"]


def test_a_parked_lease_asks_a_person(interlock_client: Client, other: Client, key: str) -> None:
    lease = interlock_client.acquire(key)
    parked = lease.park("refund 1200?", keep=True)
    assert not lease.held
    _, leases = other.approvals()
    question = next(asked for asked in leases if asked["question"] == "refund 1200?")
    other.answer(question["fence"], "approved", by="ann")
    with interlock_client.resume(parked, wait=10) as again:
        assert again.id == parked and again.held
    other.acquire(key, wait=0).release()


def test_runs_are_admitted(interlock_client: Client, other: Client, put: Put) -> None:
    put("/v1/patterns/pyorg", {"pattern": "org:{org}/runs", "capacity": 1})
    with interlock_client.start_run("pyacme", purpose="nightly"):
        with pytest.raises(Held) as full:
            other.start_run("pyacme", wait=0)
        assert full.value.code == "too_many_runs"
    other.start_run("pyacme", wait=5).release()


def test_why_and_progress(interlock_client: Client, other: Client, key: str) -> None:
    with interlock_client.lease(key, purpose="late fee"):
        interlock_client.set_progress("1/2")
        assert "late fee" in other.why(key)["text"] and "test" in other.why(agent="test")["text"]
