"""Why a lease was lost: the first reason counts, and not what the client did after it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from test_rules import answer, core, lease

from interlock import AsyncClient, Client, LeaseLost, Refused, _core
from interlock._async import AsyncLease
from interlock._core import Ask, Core, Session
from interlock._grant import Grant, Hold
from interlock._handle import Handle
from interlock._ops import Operations
from interlock._wire import Reply, Send, Steps

pytestmark = pytest.mark.usefixtures("still")

#: The time of the clock that stands still.
NOW = 1000.0
#: What the tests hold.
_holds: list[Hold] = []
RELEASED = answer(410, code="released", detail="the lease on k was released by its holder")
DONE = answer(200, outcome="done")


def granted(**members: Any) -> Reply:
    body = {"outcome": "granted", "lease": lease(**members), "changed": False, "notes": []}
    return Reply(200, {"content-type": "application/json"}, json.dumps(body).encode())


def opened() -> Core:
    """A core with a session."""
    rules = core([])
    rules.session = Session("s", "a-1", 30.0, NOW + 30, NOW + 10)
    return rules


def hold(rules: Core, number: int = 1, sent: float | None = None) -> Grant:
    """Has a lease granted, by a request that was sent then."""
    reply = granted(id=f"l_{number}")
    reply.sent = NOW if sent is None else sent
    held = rules.granted(reply, "s")
    assert held is not None
    _holds.append(held)
    return held.grant


def let_go(grant: Grant) -> Hold:
    """Returns the hold on a lease, which nothing else refers to any more."""
    held = next(one for one in _holds if one.grant is grant)
    _holds.remove(held)
    return held


def run_out(rules: Core, grant: Grant) -> None:
    """Has the clock end a lease, and the keeper notice it."""
    grant.deadline = NOW
    rules.expire()


Script = list[Callable[[], Reply]]


def drive(steps: Steps[Any], script: Script) -> tuple[Any, list[str]]:
    """Carries out steps with answers of a script, and returns their end and the methods and paths of the requests."""
    sends: list[str] = []
    value: Any = None
    for _ in range(20):
        try:
            effect = steps.send(value)
        except StopIteration as stop:
            assert not script
            return stop.value, sends
        value = None
        if isinstance(effect, Send):
            sends.append(f"{effect.method} {effect.target}")
            value = script.pop(0)()
    raise AssertionError(f"it never ends: {sends}")


def test_acquiring_what_is_just_given_back_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "FRESH", -1.0)  # each grant is asked for anew
    rules = opened()
    before = hold(rules)

    def given_back() -> Reply:
        run_out(rules, before)
        return RELEASED

    script: Script = [
        granted,
        given_back,
        lambda: RELEASED,
        lambda: granted(id="l_2", fence="8"),
        lambda: granted(id="l_2", fence="8"),
    ]
    held, sends = drive(rules.acquire(Ask({}, 20.0)), script)
    again = held.grant
    assert again.fence == 8 and again.loss is None
    assert [send.split()[0] for send in sends] == ["POST", "GET", "POST", "POST", "GET"]
    assert before.loss is not None and before.loss.code == "expired"


def test_acquiring_what_a_check_has_found_lost_gives_it_back() -> None:
    rules = opened()
    before = hold(rules)
    before.deadline = NOW
    with pytest.raises(LeaseLost):
        rules.check(before)
    held, sends = drive(rules.acquire(Ask({}, 20.0)), [granted, lambda: DONE, lambda: granted(id="l_2", fence="8")])
    assert held.grant.fence == 8 and len(sends) == 3
    assert list(rules.grants) == ["l_2"] and "l_1" in rules.leaving


def heartbeat(rules: Core, *grants: Grant) -> None:
    losses = [{"lease": {"id": g.id}, "code": "revoked", "detail": "the operator says so"} for g in grants]
    assert rules.session is not None
    reply = Reply(200, {}, b"", NOW, {"losses": losses, "warnings": []})
    rules._confirmed(rules.session, reply, None, frozenset(grant.id for grant in grants))


def clock(rules: Core, *grants: Grant) -> None:
    for grant in grants:
        grant.deadline = NOW
    rules.expire()


def end_of_session(rules: Core, *_: Grant) -> None:
    assert rules.session is not None
    rules.ended(rules.session, refusal("session_ended"))


def closing(rules: Core, *_: Grant) -> None:
    drive(rules.close(), [lambda: DONE])


def refusal(code: str) -> Refused:
    steps = opened().caller.request("getLease", path={"id": "l_1"})
    with pytest.raises(Refused) as refused:
        drive(steps, [lambda: answer(410, code=code, detail="it has ended")])
    return refused.value


@pytest.mark.parametrize(
    ("cause", "code"),
    [(heartbeat, "revoked"), (clock, "expired"), (end_of_session, "session_ended"), (closing, "closed")],
)
def test_release_within_on_lost_is_not_the_reason(cause: Callable[..., None], code: str) -> None:
    """The holder releases one lease as it learns that another one is lost, and both are lost at once."""
    rules = opened()
    first, second = hold(rules, 1), hold(rules, 2)
    reasons: list[str] = []

    def release(other: Grant) -> None:
        with pytest.raises(LeaseLost) as loss:
            drive(rules.release(other, let_go(other)), [lambda: DONE])
        reasons.append(loss.value.code)

    first.listeners.append(lambda: release(second))
    second.listeners.append(lambda: release(first))
    cause(rules, first, second)
    assert reasons == [code, code]
    for grant in first, second:
        assert grant.loss is not None and grant.loss.code == code


def test_an_answer_after_the_clock_has_ended_a_lease_does_not_revive_it() -> None:
    rules = opened()
    first, second = hold(rules, 1), hold(rules, 2)
    renewed = granted(id="l_2")
    renewed.sent = NOW + 100
    first.listeners.append(lambda: rules.update(second, renewed))
    clock(rules, first, second)
    assert "l_2" in rules.leaving
    with pytest.raises(LeaseLost):
        rules.check(second)


NAMED: Mapping[str, Callable[[Operations, Grant], Steps[Any]]] = {
    "renew": lambda operations, grant: operations.renew(grant),
    "convert": lambda operations, grant: operations.convert(grant, ["k", "j"]),
    "arrive": lambda operations, grant: operations.arrive(grant),
    "park": lambda operations, grant: operations.park(grant),
    "commit": lambda operations, grant: operations.commit([], leases=[grant]),
    "claim_effect": lambda operations, grant: operations.claim_effect(
        "t", "x", lease=Handle(operations.core, Hold(grant))
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_refusal_after_a_loss_tells_the_loss(name: str) -> None:
    """The lease runs out within the request, the keeper gives it back, and the server answers that it was released."""
    rules = opened()
    grant = hold(rules)

    def given_back() -> Reply:
        run_out(rules, grant)
        return RELEASED

    with pytest.raises(LeaseLost) as loss:
        drive(NAMED[name](Operations(rules, lambda: "f"), grant), [given_back])
    assert loss.value.code == "expired" and "released" not in loss.value.message
    with pytest.raises(LeaseLost) as later:  # and no further request is sent
        drive(NAMED[name](Operations(rules, lambda: "f"), grant), [])
    assert later.value.code == "expired"


@pytest.mark.parametrize("name", NAMED)
def test_refusal_of_an_ended_lease_is_its_loss(name: str) -> None:
    rules = opened()
    grant = hold(rules)
    with pytest.raises(LeaseLost) as loss:
        drive(NAMED[name](Operations(rules, lambda: "f"), grant), [lambda: answer(410, code="revoked", detail="x")])
    assert loss.value.code == "revoked" and grant.ended.is_set() and not rules.grants


@pytest.mark.parametrize("name", ["renew", "convert", "arrive", "park"])
def test_success_after_a_loss_tells_the_loss(name: str) -> None:
    rules = opened()
    grant = hold(rules)
    gone = (
        [lambda: DONE, lambda: RELEASED] if name in ("convert", "arrive") else []
    )  # it is given back, and asked again

    def late() -> Reply:
        run_out(rules, grant)
        return granted()

    with pytest.raises(LeaseLost) as loss:
        drive(NAMED[name](Operations(rules, lambda: "f"), grant), [late, *gone])
    assert loss.value.code == "expired"


def test_verdict_that_the_release_meets_is_the_reason() -> None:
    rules = opened()
    grant = hold(rules)
    with pytest.raises(LeaseLost) as loss:
        drive(rules.release(grant, let_go(grant)), [lambda: answer(410, code="revoked", detail="the operator says so")])
    assert loss.value.code == "revoked"
    with pytest.raises(LeaseLost) as later:
        rules.check(grant)
    assert later.value.code == "revoked"


def test_repeated_release_is_no_loss() -> None:
    rules = opened()
    grant = hold(rules)
    drive(rules.release(grant, let_go(grant)), [lambda: RELEASED])
    assert not rules.jobs and grant.loss is not None and grant.loss.code == "released"


def shell() -> Callable[[Any], Any]:
    """Returns what performs the effects of a client: leases are granted, and any other request fails the test."""
    numbers = itertools.count(1)

    def perform(effect: Any) -> Any:
        assert isinstance(effect, Send) and effect.target == "/v1/leases"
        return granted(id=f"l_{next(numbers)}")

    return perform


def test_exit_of_a_block_tells_the_loss() -> None:
    """The lease runs out in the body, also when the keeper has not noticed it."""
    client = Client("http://127.0.0.1:1", retry_for=0)
    rules, engine = client._engine.core, client._engine
    engine.keeper = engine.parting  # type: ignore[assignment]  # no thread: the test is the keeper
    rules.session = Session("s", "a-1", 30.0, NOW + 30, NOW + 10)
    engine._perform = shell()  # type: ignore[method-assign, assignment]
    for noticed in False, True:
        with pytest.raises(LeaseLost) as loss, client.lease("k") as held:
            held._grant.deadline = NOW
            if noticed:
                rules.expire()
        assert loss.value.code == "expired" and held.loss is not None and held.loss.code == "expired"
    rules.closed, engine.keeper = True, None


def test_exit_of_an_async_block_tells_the_loss() -> None:
    async def main() -> None:
        client = AsyncClient("http://127.0.0.1:1", retry_for=0)
        rules, engine = client._engine.core, client._engine
        engine.keeper = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]  # the test is the keeper
        rules.session = Session("s", "a-1", 30.0, NOW + 30, NOW + 10)
        scripted = shell()

        async def perform(effect: Any) -> Any:
            return scripted(effect)

        engine._perform = perform  # type: ignore[method-assign]
        leases: list[AsyncLease] = []
        for noticed in False, True:
            with pytest.raises(LeaseLost) as loss:
                async with client.lease("k") as held:
                    leases.append(held)
                    held._grant.deadline = NOW
                    if noticed:
                        rules.expire()
            reason = leases.pop().loss
            assert loss.value.code == "expired" and reason is not None and reason.code == "expired"
        rules.session = None
        await client.close()

    asyncio.run(main())
