"""The rules of the core, without a server: clocks, servers, retries, and answers that are no answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from interlock import (
    Client,
    Held,
    InterlockError,
    OutcomeUnknown,
    Refused,
    Stale,
    Unreachable,
    WaitTimeout,
    _call,
    _core,
    _ops,
)
from interlock._call import Caller, Servers
from interlock._clock import now
from interlock._core import REMEMBER, Ask, Core
from interlock._errors import as_problem, refusal
from interlock._grant import Grant
from interlock._http1 import Connections
from interlock._ops import Operations
from interlock._threads import Pool
from interlock._wire import Broken, Idle, NotSent, Pause, Reply, Send, fill, parse_server, query_of
from interlock._work import Puller


def lease(**members: Any) -> dict[str, Any]:
    return {
        "id": "l_1",
        "fence": "7",
        "claims": [{"key": "k"}],
        "ttl_ms": 30000,
        "expires_in_ms": 30000,
        "holder": {"agent": "a", "session": "s", "flow": "f"},
        **members,
    }


def test_end_counts_from_before_the_request() -> None:
    grant = Grant(lease(), "s", 100.0)
    assert grant.end == 100 + 30 - 1.5
    grant.confirm(110.0, False)
    assert grant.end == 110 + 30 - 1.5
    grant.confirm(105.0, False)  # the answer of an earlier heartbeat
    assert grant.end == 110 + 30 - 1.5
    assert Grant(lease(ttl_ms=1000, expires_in_ms=1000), "s", 0.0).margin == 0.1


def test_heartbeats_do_not_extend_a_cap_or_a_stall() -> None:
    grant = Grant(lease(max_hold_in_ms=5000), "s", 100.0)
    grant.confirm(104.0, True)
    assert grant.end == 105 - 1.5
    stalled = Grant(lease(stall_in_ms=5000), "s", 100.0)
    stalled.confirm(104.0, False)
    assert stalled.end == 105 - 1.5
    stalled.confirm(104.0, True)
    assert stalled.end == 109 - 1.5


def core(woken: list[int]) -> Core:
    return Core(Caller(["http://127.0.0.1:1"], None, None, 30.0, "a"), 30.0, lambda: woken.append(1))


def test_keeper_is_woken_for_what_comes_before_its_next_look(still: float) -> None:
    woken: list[int] = []
    rules = core(woken)
    keeper = rules.keep()
    idle = next(keeper)
    assert isinstance(idle, Idle) and idle.seconds == 1.0

    held = []

    def grant(number: int, ms: int) -> None:
        answer = {"lease": lease(id=f"l_{number}", ttl_ms=ms, expires_in_ms=ms), "changed": False, "notes": []}
        held.append(rules.granted(Reply(200, {}, b"", still, answer), "s"))

    for number in range(100):
        grant(number, 30_000)
    assert not woken
    grant(100, 1000)
    assert woken == [1]
    idle = keeper.send(None)
    assert isinstance(idle, Idle) and idle.seconds <= 0.9
    grant(101, 1000)  # after the first one
    assert woken == [1]
    rules.later(lambda: iter(()))  # type: ignore[arg-type, return-value]
    assert woken == [1, 1]


def test_leases_that_were_given_up_are_forgotten() -> None:
    rules = core([])
    rules.leaving["l_1"] = now() - REMEMBER - 2
    rules.leaving["l_2"] = now() - REMEMBER - 1
    rules.leaving["l_3"] = now()
    rules.expire()
    assert list(rules.leaving) == ["l_3"]


def test_the_connection_that_was_used_last_is_used_first() -> None:
    server = parse_server("http://127.0.0.1:1")
    pool = Pool(None)
    pairs = [socket.socketpair() for _ in range(3)]
    connections = [pool.make(server) for _ in pairs]
    for connection, (ours, _) in zip(connections, pairs, strict=True):
        connection.sock = ours
        pool.put(server, connection)
    pairs[2][1].close()  # the server has ended it
    assert pool.take(server) is connections[1]
    assert connections[2].sock is None
    assert pool.take(parse_server("http://127.0.0.1:2")).sock is None
    assert pool.take(server) is connections[0]
    for connection, (_, theirs) in zip(connections, pairs, strict=True):
        connection.close()
        theirs.close()


def test_loss_is_told_once() -> None:
    told: list[int] = []
    grant = Grant(lease(), "s", 100.0)
    grant.listeners.append(lambda: told.append(1))
    grant.expire(128.0)
    assert grant.loss is None
    grant.expire(128.5)
    grant.lose("taken", "later")
    grant.confirm(200.0, False)
    assert told == [1] and grant.loss is not None and grant.loss.code == "expired" and grant.ended.is_set()


def test_clock_goes_on_while_the_machine_sleeps() -> None:
    import sys
    import time

    from interlock import _clock

    if sys.platform == "linux":
        assert _clock._ID == time.CLOCK_BOOTTIME
    assert _clock.now() <= _clock.now()


def test_servers_are_tried_in_turn() -> None:
    servers = Servers(["http://a:1", "b:2", "https://c"])
    assert [s.port for s in servers.all] == [1, 2, 443]
    servers.failed(0)
    servers.failed(0)  # a second request that failed there
    assert servers.current == 1
    assert servers.follow("https://c:443") and servers.current == 2
    assert not servers.follow("http://evil:7420") and not servers.follow("ftp://x") and servers.current == 2
    assert parse_server("http://[::1]:7420").url == "http://[::1]:7420"
    for bad in ("ftp://a", "http://", "http://u:p@a", "http://a?x"):
        with pytest.raises(ValueError):
            parse_server(bad)


def test_paths_and_queries_are_encoded() -> None:
    assert fill("/v1/keys/{key}", {"key": "a/b c?ü"}) == "/v1/keys/a%2Fb%20c%3F%C3%BC"
    assert query_of({"key": ["a", "b"], "none": None, "yes": True, "n": 3}) == "?key=a&key=b&yes=true&n=3"
    assert query_of({}) == ""


Script = list[Any]


def carry_out(
    script: Script, operation: str = "commitState", retry_for: float = 5.0, urls: int = 2
) -> tuple[Any, list[Any]]:
    """Carries out a request with answers of a script, and returns its end and the effects."""
    caller = Caller([f"http://s{i}" for i in range(urls)], "secret", "ns", retry_for, "a")
    steps = caller.request(operation, path={"id": "x"} if operation != "commitState" else None, body={})
    effects: list[Any] = []
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            effect = steps.send(value) if error is None else steps.throw(error)
        except StopIteration as stop:
            return stop.value, effects
        except InterlockError as final:
            return final, effects
        effects.append(effect)
        value, error = None, None
        if isinstance(effect, Send):
            answer = script.pop(0)
            if isinstance(answer, BaseException):
                error = answer
            else:
                value = answer


def answer(status: int, **body: Any) -> Reply:
    return Reply(status, {"content-type": "application/problem+json"}, json.dumps(body).encode())


def test_repeats_use_one_key_over_all_servers() -> None:
    end, effects = carry_out([Broken("x"), NotSent("y"), answer(503, code="overloaded"), answer(200, outcome="ok")])
    sends = [e for e in effects if isinstance(e, Send)]
    assert end.parse() == {"outcome": "ok"}
    assert len({s.headers["Idempotency-Key"] for s in sends}) == 1
    assert [s.server.host for s in sends] == ["s0", "s1", "s0", "s1"]
    assert all(s.headers["Authorization"] == "Bearer secret" for s in sends)
    pauses = [e.seconds for e in effects if isinstance(e, Pause)]
    assert len(pauses) == 1 and 0 < pauses[0] <= 1.1


def test_the_last_word_tells_what_may_have_happened() -> None:
    assert isinstance(carry_out([NotSent("x")], retry_for=0)[0], Unreachable)
    assert isinstance(carry_out([Broken("x")], retry_for=0)[0], OutcomeUnknown)
    assert isinstance(carry_out([Broken("x")], "getLease", retry_for=0)[0], Unreachable)
    refused = carry_out([answer(409, code="held", detail="k is held")], retry_for=0)[0]
    assert isinstance(refused, Held) and refused.message == "k is held"
    busy = carry_out([answer(503, code="overloaded", detail="busy")], retry_for=0)[0]
    assert isinstance(busy, Refused) and busy.code == "overloaded"
    assert isinstance(carry_out([answer(500, code="outcome_unknown")], retry_for=0)[0], OutcomeUnknown)
    unsafe = carry_out([Broken("x")], "rotateFenceKeys")[0]
    assert isinstance(unsafe, OutcomeUnknown)


def test_a_standby_names_the_active_server() -> None:
    moved = answer(503, code="not_owner", active={"http": "http://s1:80", "grpc": ""})
    end, effects = carry_out([moved, answer(200, outcome="ok")], urls=3)
    assert [e.server.host for e in effects if isinstance(e, Send)] == ["s0", "s1"] and end.status == 200
    stranger = answer(503, code="not_owner", active={"http": "http://evil:80", "grpc": ""})
    _, effects = carry_out([stranger, answer(200, outcome="ok")], urls=2)
    assert [e.server.host for e in effects if isinstance(e, Send)] == ["s0", "s1"]


def test_the_owner_of_the_shard_is_asked_next() -> None:
    caller = Caller(["http://s0", "http://s1"], None, None, 5.0, "a")
    for owner, current in [("http://s1:80", 1), ("http://evil:80", 1), ("not a url", 1), (None, 1), ("http://s0", 0)]:
        caller.servers.prefer(owner)
        assert caller.servers.current == current
    steps = caller.request("commitState", body={})
    next(steps)
    forwarded = Reply(200, {"content-type": "application/json", "interlock-owner": "http://s1:80"}, b"{}")
    try:
        steps.send(forwarded)
    except StopIteration as stop:
        assert stop.value is forwarded
    assert caller.servers.current == 1


def test_problems_of_others_are_completed() -> None:
    error = refusal(as_problem("<html>", 502))
    assert error.code == "outcome_unknown" and "502" in str(error)
    assert as_problem({"code": "held", "advice": 5}, 409)["advice"]["message"] == ""
    stale = refusal(as_problem({"code": "stale", "packet": {"stale": [], "more": False, "message": "changed"}}, 412))
    assert isinstance(stale, Stale) and str(stale) == "changed"


HOSTILE = [
    b"",
    b"\r\n\r\n",
    b"HTTP/1.1 2",
    b"SSH-2.0-OpenSSH\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"a: " + b"b" * 70000,
]


class OneAnswer:
    """A server that sends the same bytes to every connection, and closes it."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve)

    def serve(self) -> None:
        while True:
            try:
                conn, _ = self.socket.accept()
            except OSError:
                return
            with conn:
                try:
                    conn.recv(65536)
                    conn.sendall(self.text)
                except OSError:
                    continue

    def __enter__(self) -> OneAnswer:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_answer_is_a_broken_connection(text: bytes) -> None:
    async def main(url: str) -> None:
        connections = Connections(None)
        send = Send(parse_server(url), "GET", "/v1/status", {}, b"", 5.0)
        with pytest.raises(Broken):
            await connections.send(send)
        await asyncio.sleep(0)

    with OneAnswer(text) as server:
        asyncio.run(main(server.url))
        with Client(server.url, retry_for=0) as client, pytest.raises(InterlockError):
            client.status()


def test_chunked_answers_and_lasting_connections() -> None:
    text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: r\r\n\r\n"

    async def main(url: str) -> Reply:
        connections = Connections(None)
        reply = await connections.send(Send(parse_server(url), "GET", "/", {}, b"", 5.0))
        assert len(connections.idle) == 1
        connections.close()
        await asyncio.sleep(0)
        return reply

    with OneAnswer(text) as server:
        assert asyncio.run(main(server.url)).body == b"abcde"


def test_a_header_cannot_be_smuggled() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            send = Send(parse_server(url), "GET", "/", {"Interlock-Namespace": "a\r\nX: y"}, b"", 5.0)
            with pytest.raises(Broken):
                await Connections(None).send(send)
            await asyncio.sleep(0)

    asyncio.run(main())


def test_a_client_does_not_pickle() -> None:
    with Client("http://127.0.0.1:1", retry_for=0) as client, pytest.raises(TypeError):
        pickle.dumps(client)


def test_an_unclosed_client_warns_and_leaves_no_thread() -> None:
    client = Client("http://127.0.0.1:1", retry_for=0)
    dropped: Callable[[], None] = client.__del__
    with pytest.warns(ResourceWarning):
        dropped()
    assert client.closed


class Busy:
    """A server that answers each request at once, and never with what its client waits for. Time passes by pauses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
        self.moment = 100.0
        self.answers = answers
        self.sent = 0
        for module in (_core, _call, _ops):
            monkeypatch.setattr(module, "now", lambda: self.moment)
        rules = core([])
        self.operations = Operations(rules, lambda: "thread")

    def reply(self, send: Send) -> Reply:
        self.sent += 1
        self.moment += 0.001
        for part, (status, body) in self.answers.items():
            if part in send.target:
                return Reply(status, {"content-type": "application/json"}, json.dumps(body).encode())
        at = {"at": {}, "server_time": ""}
        if send.target == "/v1/sessions":
            body = {"session": {"id": "s_1", "name": "s", "ttl_ms": 30000}}
        else:
            body = {"lease": lease(state="grace")} if send.target == "/v1/leases" else {}
        return Reply(200, {"content-type": "application/json"}, json.dumps({**body, **at}).encode())

    def run(self, steps: Any, limit: float = 100.0) -> Any:
        """Carries steps out until they end, or the time is over."""
        end, value = self.moment + limit, None
        while self.moment < end and self.sent < 1000:
            try:
                effect = steps.send(value)
            except StopIteration as stop:
                return stop.value
            value = self.reply(effect) if isinstance(effect, Send) else None
            self.moment += effect.seconds if isinstance(effect, Pause) else 0
        return None


def test_a_grant_that_is_over_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may answer with a lease in its grace for ever."""
    for wait, limit in (0.0, 31.0), (60.0, 61.0):
        busy = Busy(monkeypatch)
        with pytest.raises(WaitTimeout, match="k is not free: the lease that this agent had is over"):
            busy.run(busy.operations.core.acquire(Ask({"claims": []}, wait, what="k")))
        assert 29 < busy.moment - 100 < limit + 1
        assert busy.sent < 500
    busy = Busy(monkeypatch, leases=(200, {"lease": lease(state="grace"), "reused": True, "at": {}, "server_time": ""}))
    busy.operations.core.joined = "s_1"
    with pytest.raises(WaitTimeout, match="the command around this process had is over"):
        busy.run(busy.operations.core.acquire(Ask({"claims": []}, 0.0, what="k")))
    assert busy.sent == 1


def test_a_wait_that_is_answered_at_once_is_paced(monkeypatch: pytest.MonkeyPatch) -> None:
    queued = {"ticket": {"id": "t_1", "eta_ms": 0}, "holders": [], "at": {}, "server_time": ""}
    taken = {"code": "effect_claimed", "status": 409, "detail": "", "effect": {"action": "x"}, "advice": {}}
    waits: list[tuple[dict[str, Any], Callable[[Operations], Any]]] = [
        ({"leases": (202, queued), "tickets": (202, queued)}, lambda o: o.core.acquire(Ask({}, 90.0, what="k"))),
        ({"effects": (409, taken)}, lambda o: o.claim_effect("tool", "target", None, 90.0, None)),
        ({"tasks": (200, {"task": {"state": "running"}})}, lambda o: o.task("t_1", 90.0)),
        ({"pull": (200, {"tasks": []})}, lambda o: pulls(Puller(o, "q", 20.0, False))),
    ]
    for answers, ask in waits:
        busy = Busy(monkeypatch, **answers)
        with contextlib.suppress(Refused):
            busy.run(ask(busy.operations))
        assert busy.moment > 189, (answers, busy.sent)
        assert busy.sent < 500, answers


def pulls(puller: Puller) -> Any:
    while True:
        yield from puller.take()
