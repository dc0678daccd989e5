"""What a run has read of a key without a lease, and what others did there before it writes.

        read                 write
    ─────┬──────────────────────┬────────────┬───────► entries of the journal
      Reading: who has    the lease of the  the tool
      the key, which      call, and all     writes
      entry is the last   events since

A lease of others that was held in between may have been written under, also one whose holder has died; and so may a
document. Only a shared lease counts as one that was not, and one that was released with the outcome `unchanged`. What
is written without a lease, and is no document of Interlock, is not seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._core import Core
from ._errors import Refused, Stale
from ._grant import Grant
from ._scope import Place, around, overlap
from ._types import At, Packet, Problem
from ._wire import Steps

#: The outcome of a lease under which nothing was written.
UNCHANGED = "unchanged"

#: The events that tell of a holder of a key, or of a write of its document.
_EVENTS = "granted,admitted,resumed,converted,parked,task_dispatched,grace,closed,ended,written"
#: What the journal answers if it does not have the entries any more, or never had them.
GONE = frozenset({"history_trimmed", "future_version"})
FORGOTTEN = "the server does not know any more what happened"
_SHOWN = 5
#: How many characters of a text are shown.
_LONG = 1000

#: Whether the work of a fence and a flow is the run's own.
Own = Callable[[str, str], bool]


@dataclass
class Reading:
    """The moment before a tool reads a key."""

    key: str
    at: At
    #: The version of the documents; None if there has never been one.
    version: str | None
    #: Who may have been writing at that moment, by their fences.
    busy: dict[str, Mapping[str, Any]]
    #: How often runs had written by then under the leases around it, by their fences.
    writes: dict[str, int]


@dataclass
class Readings:
    """What a run has read and may decide on, by the calls of tools that have read it."""

    _found: dict[tuple[str, str], Reading] = field(default_factory=dict)

    def add(self, key: str, call: str, reading: Reading) -> None:
        """Takes note of a call. The same call again has read what is there now."""
        self._found[key, call] = reading

    def of(self, key: str) -> list[Reading]:
        """Returns those of a key, and of keys above and below it, the oldest first."""
        found = [reading for (read, _), reading in self._found.items() if overlap(read, key)]
        return sorted(found, key=lambda reading: int(reading.at["index"]))

    def forget(self, key: str) -> None:
        """Forgets those: the model has been told that they are out of date."""
        for read, call in list(self._found):
            if overlap(read, key):
                self._found.pop((read, call), None)


class Free:
    """What a call that only reads has in the place of a lease."""

    _verdict = None

    def __init__(self, key: str) -> None:
        self.keys: tuple[str, ...] = (key,)
        self._place: Place = Place()
        self._call: Any = None


def read(core: Core, key: str, own: Own) -> Steps[Reading]:
    """Takes note of the moment before a tool reads a key."""
    reply = yield from core.caller.request("listState", query={"key": [key]})
    version = reply.parse()["as_of"]
    view = (yield from core.caller.request("getKey", path={"key": key})).parse()
    busy = {
        holder["fence"]: holder
        for holder in view["holders"]
        if holder["mode"] != "shared" and not own(holder["fence"], holder["flow"])
    }
    writes = {place.fence: len(place.held._grant.writes) for place in around() if place.held is not None}
    return Reading(view["key"], view["at"], None if version == "0" else version, busy, writes)


def others(core: Core, grant: Grant, readings: Sequence[Reading], line: str, own: Own) -> Steps[str]:
    """Returns what others may have written at the keys of a lease since the first of the readings, in words."""
    first = readings[0].at
    since = min(one.writes.get(str(grant.fence), 0) for one in readings)
    if any(one != line for one in grant.writes[since:]):
        return "another run under the lease around both had it"
    if grant.at is None or any((one.at["shard"], one.at["epoch"]) != _term(grant.at) for one in readings):
        return "the server was replaced meanwhile"
    roots = {key.partition("/")[0] for key in grant.keys}
    found = {
        fence: dict(holder)
        for one in readings
        for fence, holder in one.busy.items()
        if not own(fence, holder["flow"])  # it may have turned out to be
    }
    for root in roots if any("/" in key for key in grant.keys) else grant.keys:
        query = {"from": int(first["index"]) + 1, "about": root, "event": _EVENTS, "follow": False}
        try:
            reply = yield from core.caller.request("listEvents", query=query)
        except Refused as error:
            if error.code in GONE:
                return FORGOTTEN
            raise
        for event in reply.parse()["lines"]:
            if event["event"] == "end":
                return "the journal could not be read to its end"
            _note(found, event, grant, own)
    changed = [one for one in found.values() if one.get("outcome") != UNCHANGED]
    if not changed:
        return ""
    more = f", and {len(changed) - _SHOWN} before" if len(changed) > _SHOWN else ""
    text = "; ".join(_words(one) for one in changed[-_SHOWN:]) + more
    stale = grant.packet["stale"] if grant.packet is not None else []
    for one in stale[:_SHOWN]:
        text += f"; the document {one['key']} changed by {_quoted(one['diff'])}"
    return text


def _term(at: At) -> tuple[int, str]:
    return at["shard"], at["epoch"]


def _note(found: dict[str, dict[str, Any]], event: Mapping[str, Any], grant: Grant, own: Own) -> None:
    """Adds an event to what is found, by the fence of its lease; a write without a lease has its own place."""
    written, fence = event["event"] == "written", event.get("fence", "0")
    claims: Iterable[Mapping[str, Any]] = event.get("claims", ())
    if own(fence, event.get("flow", "")) or not any(
        overlap(claim["key"], key) and (written or claim["mode"] != "shared") for claim in claims for key in grant.keys
    ):
        return
    place = f"written {event['index']}" if written else fence
    one = found.pop(place, {})  # so that those who were there last come last
    found[place] = {**one, **event}


def _words(one: Mapping[str, Any]) -> str:
    """Says who it was, and why, with the words of others in quotation marks."""
    said = {name: str(one.get(name) or "") for name in ("purpose", "outcome", "note")}
    quoted = [f"{name} {_quoted(text)}" for name, text in said.items() if text]
    did = "wrote the document" if one.get("event") == "written" else "had it"
    return f"{one.get('agent') or 'an agent without a name'} {did}{' (' + ', '.join(quoted) + ')' if quoted else ''}"


def _quoted(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONG else f"{text[:_LONG]}... (cut)"


def unread(keys: Sequence[str], again: str) -> Stale:
    """Returns the refusal of a write by a run that has not read its key."""
    text = f"this run has not read {', '.join(keys)} yet, or not since it was told of a change"
    return _stale(keys, text, f"call {again} first, then decide")


def moved(keys: Sequence[str], changes: str, again: str, packet: Packet | None = None) -> Stale:
    """Returns the refusal of a write whose key others may have written since the run has read it."""
    text = f"{', '.join(keys)} may have changed since this run read it: {changes}"
    error = _stale(keys, text, f"call {again} again, then decide")
    if packet is not None:
        error.packet["stale"], error.packet["more"] = packet["stale"], packet["more"]
    return error


def _stale(keys: Sequence[str], text: str, advice: str) -> Stale:
    problem: Any = {
        "type": "",
        "title": "What was read is out of date",
        "status": 412,
        "code": "stale",
        "detail": text,
        "key": keys[0],
        "retryable": False,
        "advice": {"action": "re_read", "retry_after_ms": 0, "message": advice},
        "packet": {"stale": [], "more": False, "message": f"{text}. {advice[0].upper()}{advice[1:]}"},
    }
    given: Problem = problem
    return Stale(given)
