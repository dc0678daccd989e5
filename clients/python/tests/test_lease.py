"""Leases in threads, with a real server."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from interlock import (
    Cancelled,
    CancelToken,
    Client,
    Closed,
    Held,
    Lease,
    LeaseLost,
    OutcomeUnknown,
    Unreachable,
    WaitTimeout,
)
from interlock._clock import now
from interlock._wire import NotSent, Send
from interlock.testing import LocalServer


def beat(client: Client) -> None:
    """Has a client send a heartbeat now, with a session long enough for a machine that is busy."""
    core = client._engine.core
    with core.mutex:
        assert core.session is not None
        core.session.next_beat = 0.0
    core.wake()


def test_life(interlock_client: Client, other: Client, key: str) -> None:
    with interlock_client.lease(key, purpose="late fee") as lease:
        assert lease.keys == (key,) and lease.key == key and lease.fence > 0 and lease.held
        assert lease.headers == {"Interlock-Fence": str(lease.fence)}
        assert 25 < lease.expires_in < 30 and not lease.lost.is_set()
        lease.check()
        other.check_fence(key, lease.fence)
        with pytest.raises(Held) as refused:
            other.acquire(key, wait=0)
        assert refused.value.code == "held" and refused.value.holders[0]["agent"] == "test"
        assert refused.value.key == key and refused.value.next_step and "test" in str(refused.value)
        lease.note = "fee applied"
    assert not lease.held and lease.lost.is_set()
    with pytest.raises(LeaseLost):
        lease.check()
    with other.lease(key, wait=0) as next_lease:
        assert next_lease.fence > lease.fence and next_lease.notes[0]["text"] == "fee applied"
        assert next_lease.claims == [{"key": key, "mode": "exclusive"}]


def test_wait_is_bounded(interlock_client: Client, other: Client, key: str) -> None:
    queued: list[Any] = []
    lease = interlock_client.acquire(key)
    with pytest.raises(WaitTimeout) as timeout:
        other.acquire(key, wait=0.2, on_queued=queued.append)
    assert timeout.value.holders[0]["agent"] == "test" and queued[0]["position"] == 1
    assert isinstance(timeout.value, Held) and isinstance(timeout.value, TimeoutError)
    assert other.look(key)["length"] == 0
    lease.release()


def test_waiter_is_granted_at_release(interlock_client: Client, other: Client, key: str) -> None:
    lease = interlock_client.acquire(key)
    stands = threading.Event()
    found: list[Any] = []
    waiter = threading.Thread(target=lambda: found.append(other.acquire(key, on_queued=lambda _: stands.set())))
    waiter.start()
    assert stands.wait(30)
    lease.release(note="written")
    waiter.join()
    assert found[0].changed and found[0].notes[0]["text"] == "written"
    found[0].release()


def test_flow_has_its_lease_again(interlock_client: Client, other: Client, key: str) -> None:
    with interlock_client.lease(key) as outer:
        with interlock_client.lease(key, wait=0) as inner:
            assert inner.id == outer.id
        outer.check()
        held: list[BaseException] = []

        def another_thread() -> None:
            try:
                interlock_client.acquire(key, wait=0)
            except Held as error:
                held.append(error)

        thread = threading.Thread(target=another_thread)
        thread.start()
        thread.join()
        assert len(held) == 1
    other.acquire(key, wait=0).release()


def test_modes_and_permits(interlock_client: Client, other: Client, key: str, put: Callable[[str, Any], None]) -> None:
    put("/v1/patterns/py-runs", {"pattern": "py-runs:{n}", "capacity": 2})
    with interlock_client.lease(key, mode="shared"), other.lease(key, mode="shared", wait=0):
        with interlock_client.lease(key, key + "b", any_of=True, wait=0) as either:
            assert either.key == key + "b"
    with interlock_client.lease("py-runs:1", permits=2), pytest.raises(Held) as full:
        other.acquire("py-runs:1", permits=1, wait=0)
    assert full.value.code == "at_capacity"
    with interlock_client.lease({"key": key, "mode": "exclusive"}, key + "c") as both:
        assert both.keys == (key, key + "c")


def test_renew_and_convert(interlock_client: Client, other: Client, key: str) -> None:
    with interlock_client.lease(key, ttl=2) as lease:
        assert lease.expires_in < 2
        lease.renew(ttl=20, progress="1/2")
        assert 15 < lease.expires_in < 20
        lease.renew(ttl=3)
        assert lease.expires_in < 3
        lease.convert(key, key + "/more")
        assert lease.keys == (key, key + "/more")
    other.acquire(key, wait=0).release()


def test_preempt_asks_the_holder(interlock_client: Client, other: Client, key: str) -> None:
    lease = interlock_client.acquire(key)
    with pytest.raises(WaitTimeout):
        other.acquire(key, wait=0.1, preempt=True, purpose="hotfix")
    stands = threading.Event()
    token = CancelToken()

    def ask() -> None:
        with token, pytest.raises(Cancelled):
            other.acquire(key, preempt=True, purpose="hotfix", on_queued=lambda _: stands.set())

    asker = threading.Thread(target=ask)
    asker.start()
    assert stands.wait(30)
    lease.renew()
    assert lease.asked is not None and lease.asked["purpose"] == "hotfix"
    token.cancel()
    asker.join()
    lease.release()


def test_error_of_the_body_comes_out(interlock_client: Client, other: Client, key: str) -> None:
    with pytest.raises(KeyError), interlock_client.lease(key):
        raise KeyError("x")
    with other.lease(key, wait=0) as lease:
        assert lease.notes[0]["outcome"] == "failed" and lease.notes[0]["text"] == "ended with KeyError"


def test_loss_while_the_server_stands_still() -> None:
    lost: list[str] = []
    with LocalServer() as server, Client(server.url, session_ttl=1, retry_for=0.5) as client:
        with pytest.raises(LeaseLost) as loss, client.lease("k", on_lost=lambda: lost.append("k")) as lease:
            server.pause()
            assert lease.lost.wait(30)
            with pytest.raises(LeaseLost):
                lease.check()
            server.resume()
        assert loss.value.code == "expired" and loss.value.keys == ("k",) and lost == ["k"]
        again = client.acquire("k", wait=20)  # a busy machine may lose it again at once
        assert again.fence > lease.fence


@pytest.mark.parametrize(
    ("session_ttl", "name", "want"),
    [(None, "long", 120), (None, "short", 1), (None, "none", 30), (60, "long", 60), (60, "short", 1), (60, "none", 60)],
)
def test_ttl_of_a_pattern(
    interlock_server: LocalServer,
    put: Callable[[str, Any], None],
    session_ttl: float | None,
    name: str,
    want: float,
) -> None:
    put("/v1/patterns/py-long", {"pattern": "py-long:{n}", "ttl_ms": 120_000})
    put("/v1/patterns/py-short", {"pattern": "py-short:{n}", "ttl_ms": 1000})
    with Client(interlock_server.url, session_ttl=session_ttl) as client:
        with client.lease(f"py-{name}:{session_ttl}") as lease:
            assert lease._grant.ttl == want


def test_body_error_wins_over_the_loss() -> None:
    with LocalServer() as server, Client(server.url, session_ttl=1, retry_for=0.2) as client:
        with pytest.raises(ValueError) as error, client.lease("k") as lease:
            server.pause()
            assert lease.lost.wait(30)
            server.resume()
            raise ValueError("body")
        assert isinstance(error.value.__context__, LeaseLost)


def test_revoked_lease_is_lost_with_its_reason(interlock_server: LocalServer, key: str) -> None:
    with Client(interlock_server.url) as client:
        lease = client.acquire(key, grace=0)
        order = {"key": key, "fence": str(lease.fence), "reason": "the operator says so"}
        body = json.dumps(order).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(interlock_server.url + "/v1/revocations", body, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()
        beat(client)
        assert lease.lost.wait(30)
        assert lease.loss is not None and lease.loss.code == "revoked" and "the operator says so" in lease.loss.message


def test_server_that_is_killed_and_started_again() -> None:
    with LocalServer() as server, Client(server.url, agent="a") as client, client.lease("k") as lease:
        server.kill()
        lease.check()
        server.start()
        client.check_fence("k", lease.fence)
        lease.check()


def test_no_server_and_unknown_outcome() -> None:
    with LocalServer() as server, Client(server.url, retry_for=0.2) as client:
        lease = client.acquire("k")
        server.kill()
        with pytest.raises((Unreachable, OutcomeUnknown)):
            client.acquire("j", wait=0)
        with pytest.raises(Unreachable) as error:
            client.acquire("j", wait=0)
        assert error.value.code == "unreachable"
        lease.release()  # goes on in the background
        server.start()
        with Client(server.url, agent="next") as following:
            following.acquire("k", wait=30).release()


def test_closed_client(interlock_server: LocalServer, key: str) -> None:
    client = Client(interlock_server.url)
    lease = client.acquire(key)
    client.close()
    client.close()
    assert client.closed and lease.loss is not None and lease.loss.code == "closed"
    with pytest.raises(Closed):
        client.acquire(key)
    assert not [t for t in threading.enumerate() if t.name == "interlock-keeper" and t is client._engine.keeper]


def test_cancel_token_leaves_nothing(interlock_client: Client, other: Client, key: str) -> None:
    token = CancelToken()
    stands = threading.Event()
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            with token:
                other.acquire(key, on_queued=lambda _: stands.set())
        except Cancelled as error:
            errors.append(error)

    with interlock_client.lease(key):
        thread = threading.Thread(target=wait)
        thread.start()
        assert stands.wait(30)
        token.cancel()
        thread.join()
    assert len(errors) == 1
    interlock_client.acquire(key, wait=10).release()


class Interrupted:
    """Raises KeyboardInterrupt in the calls of this thread, before or after the effect with a number."""

    def __init__(self, client: Client, point: int, after: bool) -> None:
        self.engine, self.point, self.after, self.count = client._engine, point, after, 0
        self.thread = threading.current_thread()
        self.perform = self.engine._perform

    def __call__(self, effect: Any) -> object:
        if threading.current_thread() is not self.thread:
            return self.perform(effect)
        self.count += 1
        if self.count == self.point and not self.after:
            raise KeyboardInterrupt
        result = self.perform(effect)
        if self.count == self.point:
            raise KeyboardInterrupt
        return result


def releasing(lease: Lease) -> Callable[[Any], None]:
    """Returns a function that releases the lease when another request stands in line for it."""
    return lambda _: lease.release()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("taken", [False, True])
def test_interrupt_at_every_effect_leaves_nothing(
    interlock_server: LocalServer, other: Client, key: str, taken: bool, after: bool
) -> None:
    """Interrupts a lease at each of its effects, and finds its key free while the client lives on."""
    for point in range(1, 50):
        name = f"{key}/{point}"
        with Client(interlock_server.url, agent="interrupted") as client:
            holder = other.acquire(name) if taken else None
            queued = releasing(holder) if holder is not None else None
            interrupted = Interrupted(client, point, after)
            client._engine._perform = interrupted  # type: ignore[method-assign]
            try:
                with client.lease(name, wait=20, on_queued=queued):
                    pass
                whole = True
            except KeyboardInterrupt:
                whole = False
            client._engine._perform = interrupted.perform  # type: ignore[method-assign]
            if holder is not None:
                holder.release()
            other.acquire(name, wait=10).release()
            assert other.look(name)["length"] == 0
        if whole:
            assert point > 3
            return
    raise AssertionError("it never ends")


def test_listener_that_fails_costs_no_other_lease(
    interlock_server: LocalServer, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise ValueError

    with Client(interlock_server.url) as client:
        second = client.acquire(key + "b")
        first = client.acquire(key, max_hold=0.3, grace=0, on_lost=fails)
        assert first.lost.wait(30)
        confirmed = threading.Event()
        monkeypatch.setattr(second._grant, "confirm", lambda *_: confirmed.set())
        beat(client)
        assert confirmed.wait(30)
        second.check()


def test_loss_that_is_reported_before_the_grant(interlock_server: LocalServer, key: str) -> None:
    with Client(interlock_server.url) as client:
        core = client._engine.core
        lease = client.acquire(key)
        with core.mutex:
            core.leaving[lease.id] = now()
        again = client.acquire(key, wait=0)  # the flow has it, as far as the server knows
        assert again.id != lease.id
        assert again.fence > lease.fence


def test_grant_that_cannot_be_confirmed_is_given_back(
    interlock_server: LocalServer, other: Client, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer was slow, so that the lease is asked for once more, and no server can be reached for that."""
    monkeypatch.setattr("interlock._core.FRESH", -1.0)
    with Client(interlock_server.url, retry_for=0) as client:
        perform = client._engine._perform

        def unreachable(effect: Any) -> object:
            if isinstance(effect, Send) and effect.method == "GET":
                raise NotSent("refused")
            return perform(effect)

        monkeypatch.setattr(client._engine, "_perform", unreachable)
        with pytest.raises(OutcomeUnknown, match="given back"):
            client.acquire(key)
        other.acquire(key, wait=10).release()
