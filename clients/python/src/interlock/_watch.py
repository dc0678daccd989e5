"""Following the writes of others, across broken connections and changes of the server."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, cast

from ._api import OPERATIONS
from ._call import Caller, final
from ._errors import Closed, Refused, as_problem, refusal
from ._types import Written
from ._wire import Broken, Effect, NotSent, Pause, Reply, Send, query_of

logger = logging.getLogger("interlock")

#: How long a stream may be silent, in seconds: the server sends a sign of life more often.
SILENT = 60.0

#: The longest pause between two attempts to go on, in seconds.
MOST_PAUSE = 5.0


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
    """Follows the writes to a key, or below a prefix, until the client is closed."""
    try:
        yield from _watch(caller, key, prefix, values, start)
    except Closed:
        pass


def _watch(
    caller: Caller, key: str | None, prefix: str | None, values: bool, start: str | None
) -> Generator[WatchEffect, Any, None]:
    """Follows the writes without an end.

    A stream that another server forwards is opened again at the owner of the shard, if that is on the list. Without a
    line in between it goes at most as often to a server that another one named as there are servers.
    """
    place = Place(start)
    failures = 0
    follows = 0

    def follow(url: str | None, alive: bool) -> bool:
        nonlocal follows
        if url is None or follows >= len(caller.servers.all) or not caller.servers.follow(url, alive):
            return False
        follows += 1
        return caller.servers.current != index

    while True:
        index = caller.servers.current
        server = caller.servers.all[index]
        query = {"key": key, "prefix": prefix, "values": values, "from": place.start}
        headers = {**caller.headers, "Accept": "application/x-ndjson"}
        target = OPERATIONS["watchState"].path + query_of(query)
        cause = "the stream has ended"
        silent = False
        after = 0.0
        try:
            reply: Reply = yield Open(Send(server, "GET", target, headers, b"", SILENT))
            if reply.status != 200:
                raise refusal(as_problem(reply.parse(), reply.status))
            if follow(reply.headers.get("interlock-owner"), alive=True):
                continue
            while text := (yield Line()):
                event = _parse(text)
                failures, follows = 0, 0
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
            if final(error) and error.code != "too_many_streams":
                raise
            active = error.problem.get("active")
            if active and follow(active["http"], alive=False):
                continue
            cause, after = error.message, min(error.retry_after, MOST_PAUSE)
        except (NotSent, Broken) as failure:
            cause = f"no server answered: {failure}"
            silent = True
        caller.servers.failed(index, silent)
        failures += 1
        if failures > len(caller.servers.all):
            level = logging.WARNING if failures == len(caller.servers.all) + 1 else logging.DEBUG
            logger.log(level, "the watch goes on when the server is back: %s", cause)
        yield Pause(max(after, random.uniform(0, min(0.1 * 2 ** min(failures - 1, 8), MOST_PAUSE))))


def _parse(text: str) -> dict[str, Any]:
    try:
        event = json.loads(text)
    except ValueError as error:
        raise Broken(f"a line of the stream is no JSON: {text[:40]!r}") from error
    if not isinstance(event, dict):
        raise Broken(f"a line of the stream is no object: {text[:40]!r}")
    return event


__all__ = ["Emit", "Line", "NotSent", "Open", "WatchEffect", "watch"]
