"""What an acquisition has got and gives back: nobody here gets it again, and what has ended since is no grant."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from test_loss import NOW, Script, drive, granted, opened
from test_rules import answer

from interlock import AsyncClient, Client, OutcomeUnknown, Refused, _core
from interlock._core import Ask, Core
from interlock._wire import Broken, NotSent, Reply, Send
from interlock.testing import LocalServer

RELEASED = answer(200, outcome="released")


def ask(operation: str = "acquireLease") -> Ask:
    return Ask({}, 20.0, operation=operation, path={"id": "l_1"} if operation == "resumeLease" else {})


def parts(steps: Any, *replies: Reply | Exception) -> Any:
    """Carries out steps as far as the answers reach, and returns what comes next: an effect, or their end."""
    try:
        effect = next(steps)
        for reply in replies:
            effect = steps.throw(reply) if isinstance(reply, Exception) else steps.send(reply)
        return effect
    except StopIteration as stop:
        return stop.value


def path(effect: Any) -> str:
    assert isinstance(effect, Send)
    return f"{effect.method} {effect.target}"


def moving(monkeypatch: pytest.MonkeyPatch) -> Core:
    """A core that asks for each grant anew."""
    monkeypatch.setattr(_core, "FRESH", -1.0)
    return hasty()


def hasty() -> Core:
    """A core that repeats nothing."""
    rules = opened()
    rules.caller.retry_for = 0.0
    return rules


def undone(rules: Core) -> Any:
    """Returns the job that gives back what has failed."""
    (job,) = rules.jobs
    rules.jobs.clear()
    return job.steps()


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("late", [False, True])
def test_a_lease_that_is_given_back_is_not_granted_again(monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    """The same flow asks again while the job of an earlier acquisition gives back the lease that both have got."""
    rules = moving(monkeypatch)
    first = rules.acquire(ask())
    with pytest.raises(OutcomeUnknown):
        parts(first, granted(), Broken("cut"))
    again = rules.acquire(ask())
    parts(again, granted())  # the server has granted the same one to the same flow; the client asks for its time
    job = undone(rules)
    if late:  # the hold is there first: so it counts
        hold = parts_end(again, granted())
        assert hold.grant.loss is None and parts(job) is None and hold.grant.id not in rules.leaving
        return
    assert path(parts(job)) == "POST /v1/leases/l_1/release"
    release = again.send(granted())
    assert path(release) == "POST /v1/leases/l_1/release"  # it waits for the end of that one
    assert path(again.send(answer(410, code="released", detail="x"))) == "POST /v1/leases"
    again.send(granted(id="l_2"))
    assert parts_end(again, granted(id="l_2")).grant.id == "l_2"


def parts_end(steps: Any, reply: Reply) -> Any:
    with pytest.raises(StopIteration) as stop:
        steps.send(reply)
    return stop.value.value


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("operation", ["acquireLease", "resumeLease"])
def test_what_an_unanswered_request_has_got_is_not_granted_meanwhile(operation: str) -> None:
    rules = hasty()
    with pytest.raises(OutcomeUnknown):
        parts(rules.acquire(ask(operation)), Broken("cut"))
    job, again = undone(rules), rules.acquire(ask(operation))
    next(again)
    parts(job, granted())  # the job has learned what there is, and gives it back
    assert "l_1" in rules.leaving
    back = again.send(granted())
    assert path(back) == ("POST /v1/leases/l_1/release" if operation == "acquireLease" else "DELETE /v1/tickets/t_1")
    assert path(again.send(RELEASED)).startswith("POST ")
    if operation == "resumeLease":  # it is parked, and comes back
        assert parts_end(again, granted()).grant.id == "l_1"


@pytest.mark.usefixtures("still")
def test_a_place_in_line_that_is_left_takes_no_lease_with_it() -> None:
    """The lease of a place has its number. The same flow may have got it in between."""
    rules = hasty()
    queued = answer(202, ticket={"id": "t_1", "eta_ms": 0}, holders=[], at="", server_time="")
    with pytest.raises(OutcomeUnknown):
        parts(rules.acquire(ask()), queued, Broken("cut"))
    hold, _ = drive(rules.acquire(ask()), [granted])
    assert hold.grant.id == "l_1" and parts(undone(rules)) is None and hold.grant.loss is None


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("state", ["grace", "ended", "parked", "gone"])
def test_what_has_ended_since_is_no_grant(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    rules = moving(monkeypatch)
    gone = answer(410, code="session_ended", detail="x")
    script: Script = [
        granted,
        lambda: gone if state == "gone" else granted(state=state),
        lambda: answer(409, code="in_grace", detail="x"),
        lambda: granted(id="l_2"),
        lambda: granted(id="l_2", state="soft"),
    ]
    hold, sends = drive(rules.acquire(ask()), script)
    assert hold.grant.id == "l_2" and rules.grants.get("l_1") is None
    assert sends[1:3] == ["GET /v1/leases/l_1", "POST /v1/leases/l_1/release"]


@pytest.mark.usefixtures("still")
def test_another_hold_on_what_has_ended_since_is_told() -> None:
    rules = opened()
    reply = granted()
    reply.sent = NOW
    hold = rules.granted(reply, "s")
    assert hold is not None
    late = granted(state="grace", ended_by="expired")
    assert rules.granted(late, "s") is None
    assert hold.grant.loss is not None and hold.grant.loss.code == "expired"
    assert rules.adopt(late.parse()["lease"], "s", NOW).grant.loss is not None  # such as that of a task


class Faults:
    """Has some requests of a client fail: each of them once."""

    def __init__(self, *targets: tuple[str, Callable[[], None]]) -> None:
        self.left = list(targets)

    def meets(self, effect: Any) -> bool:
        """Whether this request fails. What its fault does comes before the failure."""
        if not self.left or not isinstance(effect, Send) or f"{effect.method} {effect.target}"[:15] != self.left[0][0]:
            return False
        self.left.pop(0)[1]()
        return True


def faulty(client: Client, faults: Faults) -> None:
    perform = client._engine._perform

    def performed(effect: Any) -> object:
        if faults.meets(effect):
            raise NotSent("cut")
        return perform(effect)

    client._engine._perform = performed  # type: ignore[method-assign]


def faulty_async(client: AsyncClient, faults: Faults) -> None:
    perform = client._engine._perform

    async def performed(effect: Any) -> object:
        if faults.meets(effect):
            raise NotSent("cut")
        return await perform(effect)

    client._engine._perform = performed  # type: ignore[method-assign]


def nothing() -> None: ...


LOOK = "GET /v1/leases/"


def test_acquiring_after_a_failed_look(
    interlock_server: LocalServer, other: Client, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "FRESH", -1.0)
    with Client(interlock_server.url, retry_for=0) as client:
        faulty(client, Faults((LOOK, nothing)))
        with pytest.raises(OutcomeUnknown):
            client.acquire(key)
        lease = client.acquire(key, wait=30)
        settled(client._engine.core, client._engine.wake)
        assert other.look(key)["holders"][0]["fence"] == str(lease.fence)
        lease.renew()
        lease.release()


def test_acquiring_after_a_failed_look_in_asyncio(
    interlock_server: LocalServer, other: Client, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "FRESH", -1.0)

    async def main() -> None:
        async with AsyncClient(interlock_server.url, retry_for=0) as client:
            faulty_async(client, Faults((LOOK, nothing)))
            with pytest.raises(OutcomeUnknown):
                await client.acquire(key)
            lease = await client.acquire(key, wait=30)
            await asyncio.to_thread(settled, client._engine.core, nothing)
            assert (await asyncio.to_thread(other.look, key))["holders"][0]["fence"] == str(lease.fence)
            await lease.renew()
            await lease.release()

    asyncio.run(main())


def settled(core: Core, wake: Callable[[], None]) -> None:
    """Waits until the keeper has nothing left to give back."""
    wake()
    end = time.monotonic() + 60
    while core.jobs or core.at is not None:
        assert time.monotonic() < end
        time.sleep(0.01)


def end_of_session(client: Client | AsyncClient, other: Client) -> None:
    """Ends the session of a client as the server does when it hears nothing of it."""
    session = client._engine.core.session
    assert session is not None
    other._engine.run(other._engine.core.caller.request("deleteSession", path={"id": session.id}))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_session_that_ends_between_the_grant_and_its_use(
    interlock_server: LocalServer, other: Client, key: str, monkeypatch: pytest.MonkeyPatch, asynchronous: bool
) -> None:
    """The lease of the ended session is no grant: the client asks anew, in a new one."""
    monkeypatch.setattr(_core, "FRESH", -1.0)

    async def main() -> None:
        async with AsyncClient(interlock_server.url, retry_for=30) as client:
            faulty_async(client, Faults((LOOK, partial(end_of_session, client, other))))
            async with client.lease(key, grace=0, wait=60) as lease:
                await lease.renew()

    if asynchronous:
        asyncio.run(main())
        return
    with Client(interlock_server.url, retry_for=30) as client:
        faulty(client, Faults((LOOK, partial(end_of_session, client, other))))
        with client.lease(key, grace=0, wait=60) as lease:
            lease.renew()


def test_a_refusal_of_the_look_that_is_no_end_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = moving(monkeypatch)
    steps = rules.acquire(ask())
    with pytest.raises(Refused, match="no"):
        parts(steps, granted(), answer(403, code="forbidden", detail="no"))
