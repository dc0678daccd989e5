"""What the core asks of a shell, and what it gets: requests and answers, and pauses.

The core is generators that yield these effects. A shell carries each out, and sends the result in; a failure it
throws in. So all rules are written once, and the two shells have none.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from ._dial import NotSent, Server, parse_server

T = TypeVar("T")

#: How long a connection may take to be made, in seconds.
CONNECT = 5.0


@dataclass(frozen=True)
class Send:
    """Send a request, and wait for its answer. The result is a Reply; the failures are NotSent and Broken."""

    server: Server
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    timeout: float
    #: A wait on the server, that a CancelToken may break off.
    poll: bool = False
    #: How long a connection may take to be made, in seconds.
    connect: float = CONNECT


@dataclass(frozen=True)
class Pause:
    """Wait for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Idle:
    """Wait for at most so many seconds, or until the keeper is woken."""

    seconds: float


Effect = Send | Pause | Idle
Steps = Generator[Effect, Any, T]


class Broken(Exception):
    """A server may have got the request, and its answer has not come."""


@dataclass
class Reply:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    #: When the request was sent, on the clock of leases.
    sent: float = 0.0
    value: Any = field(default=None)

    def parse(self) -> Any:
        """Returns the body as JSON, or None. Lines of JSON are a list, lines."""
        kind = self.headers.get("content-type", "")
        if self.value is None and "ndjson" in kind:
            try:
                self.value = {"lines": [json.loads(line) for line in self.body.splitlines() if line]}
            except ValueError:
                self.value = None
        elif self.value is None and self.body and "json" in kind:
            try:
                self.value = json.loads(self.body)
            except ValueError:
                self.value = None
        return self.value


def new_key() -> str:
    """Returns a key for requests that have to happen once."""
    return uuid.uuid4().hex


def fill(path: str, values: Mapping[str, str]) -> str:
    """Puts values into a path such as /v1/leases/{id}."""
    for name, value in values.items():
        path = path.replace("{" + name + "}", quote(value, safe=""))
    return path


def query_of(values: Mapping[str, Any]) -> str:
    """Returns the query of a request, with its question mark. A list is a parameter that is repeated."""
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                pairs.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
    return "?" + urlencode(pairs) if pairs else ""


def ms(seconds: float | None) -> int | None:
    """Returns whole milliseconds."""
    return None if seconds is None else max(0, round(seconds * 1000))


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out what is None."""
    return {name: value for name, value in values.items() if value is not None}


__all__ = ["NotSent", "Server", "parse_server"]
