"""Following the writes of others, across broken connections and changes of the server."""

from __future__ import annotations

import json
import random
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, cast

from ._api import OPERATIONS, TRANSIENT
from ._call import MOST_PAUSE, Caller
from ._clock import now
from ._errors import InterlockError, Refused, Unreachable, as_problem, refusal
from ._types import Written
from ._wire import Broken, Effect, Failure, NotSent, Pause, Reply, Send, query_of

#: How long a stream may be silent, in seconds: the server sends a sign of life more often.
SILENT = 60.0

#: The ends of a stream after which another server, or the same one later, goes on with it.
RESUMABLE = TRANSIENT | {"too_many_streams"}


@dataclass(frozen=True)
class Open:
    """Send a request, and keep its answer open. The result is a Reply: of status 200 without its body."""

    send: Send


@dataclass(frozen=True)
class Line:
    """Read a line of the answer that is open. The result is empty at its end; the failure is Broken."""


@dataclass(frozen=True)
class Emit:
    """Hand a write to the caller."""

    write: Written


WatchEffect = Effect | Open | Line | Emit


class Place:
    """Where a watch goes on: a commit has one index, and may write several keys."""

    def __init__(self, start: str | None) -> None:
        self.start = start
        self.keys: set[str] | None = set()

    def is_new(self, write: Written) -> bool:
        """Takes note of a write, and reports whether it arrives for the first time."""
        if write["index"] != self.start:
            self.start, self.keys = write["index"], set()
        if self.keys is None or write["key"] in self.keys:
            return False
        self.keys.add(write["key"])
        return True

    def arrive(self) -> None:
        """Takes note that everything in this shard has arrived, and the namespace goes on in another one."""
        self.start, self.keys = "arrival", set()

    def after(self, index: str) -> None:
        """Takes note that everything up to an index has arrived."""
        self.start, self.keys = index, None


def watch(
    caller: Caller, key: str | None, prefix: str | None, values: bool, start: str | None
) -> Generator[WatchEffect, Any, None]:
    """Follows the writes to a key, or below a prefix, without an end.

    A stream that another server forwards is opened again at the owner of the shard, if that is on the list. Without a
    line in between it goes at most as often to a server that another one named as there are servers.
    """
    place = Place(start)
    failed_at: float | None = None
    rounds = 0
    follows = 0

    def follow(url: str | None) -> bool:
        nonlocal follows
        if url is None or follows >= len(caller.servers.all) or not caller.servers.follow(url):
            return False
        follows += 1
        return caller.servers.current != index

    while True:
        index = caller.servers.current
        server = caller.servers.all[index]
        query = {"key": key, "prefix": prefix, "values": values, "from": place.start}
        headers = {**caller.headers, "Accept": "application/x-ndjson"}
        target = server.base + OPERATIONS["watchState"].path + query_of(query)
        cause: InterlockError = Unreachable("the stream has ended, and no server goes on with it")
        try:
            reply: Reply = yield Open(Send(server, "GET", target, headers, b"", SILENT))
            if reply.status != 200:
                raise refusal(as_problem(reply.parse(), reply.status))
            if follow(reply.headers.get("interlock-owner")):
                continue
            while text := (yield Line()):
                event = _parse(text)
                failed_at, rounds, follows = None, 0, 0
                if event.get("event") == "end":
                    if event.get("code") == "moving":
                        place.arrive()
                    raise refusal(as_problem(event, 503))
                if event.get("event") == "keep_alive":
                    place.after(event["index"])
                elif "event" not in event:
                    write = cast(Written, event)
                    if place.is_new(write):
                        yield Emit(write)
        except Refused as error:
            if error.code not in RESUMABLE:
                raise
            active = error.problem.get("active")
            if active and follow(active["http"]):
                continue
            cause = error
        except Failure as failure:
            cause = Unreachable(f"no server answered: {failure}")
        caller.servers.failed(index)
        moment = now()
        failed_at = moment if failed_at is None else failed_at
        if moment - failed_at >= caller.retry_for:
            raise cause
        yield Pause(random.uniform(0, min(0.1 * 2 ** min(rounds, 8), MOST_PAUSE)))
        rounds += 1


def _parse(text: str) -> dict[str, Any]:
    try:
        event = json.loads(text)
    except ValueError as error:
        raise Broken(f"a line of the stream is no JSON: {text[:40]!r}") from error
    if not isinstance(event, dict):
        raise Broken(f"a line of the stream is no object: {text[:40]!r}")
    return event


__all__ = ["Emit", "Line", "NotSent", "Open", "WatchEffect", "watch"]
