"""One request, until it is answered: over the servers of a list, repeated under one key."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from ._api import OPERATIONS, TRANSIENT
from ._clock import now
from ._dial import servers_of, unauthorized
from ._errors import InterlockError, OutcomeUnknown, Refused, Unreachable, as_problem, handled, refusal
from ._wire import (
    CONNECT,
    Broken,
    NotSent,
    Pause,
    Reply,
    Send,
    Server,
    Steps,
    fill,
    new_key,
    parse_server,
    query_of,
    without_none,
)

#: How long the answer to a request may take beside its wait, in seconds.
ANSWER = 10.0
#: The least time for one attempt, in seconds: a busy server needs as long.
LEAST_ANSWER = 0.5
#: How long a connection may take at first when there is another server to go to, in seconds: then twice that.
CONNECT_FIRST = 1.5
#: The longest pause between two rounds over the servers, in seconds: a standby takes over within seconds.
MOST_PAUSE = 1.0
#: How long a server that gave no answer is passed over: another one has its shards after that.
AVOIDED = 5.0

#: How long a request is repeated that is not answered, unless the caller says, in seconds.
RETRY_FOR = 30.0
#: What a caller can do who finds no server.
START = "start one with `interlock serve --data-dir data`, or set INTERLOCK_URL; retry_for=30 waits for one"

#: Requests without a key that are the same if they happen twice.
REPEATABLE = frozenset({"heartbeatSession", "deleteSession", "checkFence", "signLease"})
#: Refusals that have decided nothing, beside the transient ones: the same key asks again.
UNDECIDED = frozenset({"quota_exceeded", "outcome_unknown"})


def encode(body: Mapping[str, Any]) -> bytes:
    """Returns a body as JSON. Its bytes are those that the limits of the server count."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a surrogate pair: the refusal names its field
        return json.dumps(body, separators=(",", ":")).encode()


def decided(error: Refused) -> bool:
    """Reports whether a refusal is the last word: else the same request can still be carried out."""
    return error.code not in TRANSIENT and error.code not in UNDECIDED


def final(error: Refused) -> bool:
    """Reports whether a refusal of a report is the last word: else it is made again, however long that takes."""
    return decided(error) and error.code not in ("internal", "no_space")


class Pace:
    """The pauses of a loop that asks a server until it brings something.

    A turn takes its time by itself, as its request waits at the server. From the second one on that ended at once there
    is a pause: it grows, up to a second.
    """

    def __init__(self) -> None:
        self.began = now()
        self.quick = 0

    def next(self, wait: float = MOST_PAUSE) -> Steps[None]:
        """Pauses after a turn that has brought nothing, and was to wait so long."""
        waited = now() - self.began >= min(wait, MOST_PAUSE) / 2 > 0
        self.quick = 0 if waited else self.quick + 1
        if self.quick > 1:
            yield Pause(random.uniform(0, min(0.05 * 2 ** min(self.quick, 8), MOST_PAUSE)) + 1e-3)
        self.began = now()


class Servers:
    """The list of servers. It stays with the one that answered last."""

    def __init__(self, urls: list[str], proxy: str | None = "") -> None:
        self.all: list[Server] = servers_of(urls, proxy)
        if not self.all:
            raise ValueError("no URL of a server: pass url, such as http://127.0.0.1:7420")
        self.current: int = 0
        self.silent: dict[int, float] = {}  # when one last gave no answer
        #: They break off the waits at a server that is left because it is silent. Any thread may call them.
        self.leavers: list[Callable[[Server], None]] = []

    def failed(self, index: int, silent: bool = False) -> None:
        """Goes to the next one, unless another request has done so.

        One that gave no answer is passed over for a while: others that still name it do not know yet. If all gave none,
        the next one is tried all the same.
        """
        if silent:
            self.silent[index] = now()
        if self.current == index:
            order = [(index + n) % len(self.all) for n in range(1, len(self.all) + 1)]
            self.current = next((n for n in order if not self.avoids(n)), order[0])
            if silent and self.current != index:
                for leave in self.leavers:
                    leave(self.all[index])

    def avoids(self, index: int) -> bool:
        return index in self.silent and now() - self.silent[index] < AVOIDED

    def prefer(self, owner: str | None) -> None:
        """Goes to the server that owns the shard, after another one has forwarded a request to it.

        If it was just silent here, it can be out of reach: then each next request would wait for it first.
        """
        if owner:
            self.follow(owner)

    def follow(self, url: str, alive: bool = False) -> bool:
        """Goes to the server that another one has named, if it is on the list: a credential goes to no other.

        One that was just silent is passed over, unless it is alive: it has answered by way of the other one.
        """
        try:
            named = parse_server(url)
        except ValueError:
            return False
        if named not in self.all or (self.avoids(self.all.index(named)) and not alive):
            return False
        self.current = self.all.index(named)
        return True


def _line(what: str, value: str | None) -> str:
    """Returns a value that goes into a header. A line break at its end is left out: it may come from a file."""
    line = (value or "").removesuffix("\n").removesuffix("\r")
    if not all("!" <= character <= "~" for character in line):
        raise ValueError(f"the {what} has a blank, a control character or one that is not of ASCII")
    return line


class Caller:
    """Makes requests with the identity of a client."""

    def __init__(
        self,
        urls: list[str],
        credential: str | None,
        namespace: str | None,
        retry_for: float | None,
        agent: str | None,
        proxy: str | None = "",
    ) -> None:
        self.servers: Servers = Servers(urls, proxy)
        self.retry_for: float = RETRY_FOR if retry_for is None else retry_for
        #: None has answered yet, and nobody has asked to wait for one: if none is there, the caller learns at once.
        self.first: bool = retry_for is None
        self.agent = agent
        self.namespace: str = namespace or "default"
        self.headers: dict[str, str] = {"Accept": "application/json", "User-Agent": "interlock-client-python"}
        if credential := _line("credential", credential):
            self.headers["Authorization"] = "Bearer " + credential
        if namespace := _line("namespace", namespace):
            self.headers["Interlock-Namespace"] = namespace
        #: How long one attempt may take at most, while a lease depends on it.
        self.most: Callable[[], float] = lambda: float("inf")

    def request(
        self,
        operation: str,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        wait: float = 0.0,
        retry_for: float | None = None,
    ) -> Steps[Reply]:
        """Carries out an operation, and returns its answer of success.

        It is repeated, over all servers, until retry_for has passed since the first failure. A silent server may take
        longer than that by itself: so each of the others is asked once more after it.
        """
        op = OPERATIONS[operation]
        all_headers = {**self.headers, **(headers or {})}
        data = b""
        if isinstance(body, bytes):
            data = body
        elif body is not None:
            data = encode(without_none(body))
            all_headers["Content-Type"] = "application/json"
        if op.keyed:
            all_headers["Idempotency-Key"] = key or new_key()
        target = fill(op.path, path or {}) + query_of(query or {})
        safe = op.keyed or op.method == "GET" or operation in REPEATABLE
        retry = _Retry(self, self.retry_for if retry_for is None else retry_for, op.method == "GET")
        while True:
            index = self.servers.current
            server = self.servers.all[index]
            sent = now()
            timeout = wait + min(ANSWER, max(self.most(), LEAST_ANSWER))
            connect = min(CONNECT, CONNECT_FIRST * 2 ** min(retry.tries, 8)) if len(self.servers.all) > 1 else CONNECT
            try:
                reply: Reply = yield Send(server, op.method, target, all_headers, data, timeout, wait > 0, connect)
                if reply.status == 407 and server.proxy is not None:
                    raise unauthorized(server.proxy)
            except (NotSent, Broken) as failure:
                handled(failure)
                pause = retry.failed(index, failure, safe)
            else:
                self.first = False
                reply.sent = sent
                self.servers.prefer(reply.headers.get("interlock-owner"))
                if reply.status >= 400:
                    pause = retry.refused(index, refusal(as_problem(reply.parse(), reply.status)))
                elif isinstance(reply.parse(), dict):
                    return reply
                else:
                    pause = retry.failed(index, Broken(f"{server.url}: its answer is not one of Interlock"), safe)
            if pause > 0:
                yield Pause(pause)


class _Retry:
    """Decides whether a request is sent again, and when."""

    def __init__(self, caller: Caller, limit: float, reads: bool) -> None:
        self.caller = caller
        self.servers = caller.servers
        self.absent = 0  # servers in a row that repeating does not bring
        self.limit = limit
        self.reads = reads
        self.began: float | None = None
        self.tries = 0
        self.rounds = 0
        self.executed = False  # it may have been

    def failed(self, index: int, failure: NotSent | Broken, safe: bool) -> float:
        """Returns the pause after a request that was not answered, or raises the final error."""
        self.servers.failed(index, silent=True)
        if isinstance(failure, NotSent) and (failure.final or (failure.absent and self.caller.first)):
            self.absent += 1
            if self.absent >= len(self.servers.all) and not self.executed:
                raise Unreachable(f"no server answered: {failure}", failure.final or START)
        else:
            self.absent = 0
        if isinstance(failure, Broken):
            self.executed = self.executed or not self.reads
        if isinstance(failure, NotSent) or safe:
            return self.next(lambda: Unreachable(f"no server answered: {failure}"), 0.0, str(failure))
        raise OutcomeUnknown(f"the connection broke before the answer arrived ({failure}): the outcome is unknown")

    def refused(self, index: int, error: Refused) -> float:
        """Returns the pause after a refusal, or raises it."""
        error.unsure = self.executed
        try:
            if decided(error):
                raise error
            if error.code == "outcome_unknown":
                self.executed = not self.reads
            active = error.problem.get("active")
            if error.code == "not_owner" and active and self.servers.follow(active["http"]):
                return self.next(lambda: error, 0.0, error.message)
            if error.code in TRANSIENT:
                self.servers.failed(index)
            return self.next(lambda: error, error.retry_after, error.message)
        finally:
            error = None  # type: ignore[assignment]  # else it is in a cycle with its frames, and keeps their leases

    def next(self, final: Callable[[], InterlockError], after: float, reason: str) -> float:
        moment = now()
        self.began = moment if self.began is None else self.began
        self.tries += 1
        round_over = self.tries % len(self.servers.all) == 0
        if moment - self.began >= self.limit and (round_over or self.limit <= 0):
            if self.executed:
                raise OutcomeUnknown(
                    f"no server has answered since the request was sent ({reason}): the outcome is unknown"
                )
            raise final()
        if not round_over:
            return 0.0
        most = min(0.1 * 2 ** min(self.rounds, 8), MOST_PAUSE)
        self.rounds += 1
        return random.uniform(0, min(max(most, 2 * after), 10.0)) + 1e-3


__all__ = ["Broken", "Caller", "Pace", "Server", "Servers"]
