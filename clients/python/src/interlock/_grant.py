"""A granted lease on this machine's clock, and who holds it."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ._errors import LeaseLost
from ._flag import Flag
from ._types import At, Document, Granted, Note, Packet, Yield

logger = logging.getLogger("interlock")

#: The part of the ttl by which a lease counts as lost before the server ends it, and the least of it, in seconds.
MARGIN = 0.05
LEAST_MARGIN = 0.1


class Grant:
    """The state of a lease that several handles may share. Its owner's mutex guards it.

    Its end is counted from the moment before the confirmed request was sent, so that it is never later than the
    server's.
    """

    #: Why it is not held any more.
    loss: LeaseLost | None = None

    def __init__(self, lease: Any, session: str, sent: float) -> None:
        self.session = session
        #: The handles on it that have not been released, as long as something refers to them.
        self.holds: weakref.WeakSet[Hold] = weakref.WeakSet()
        #: It is that of an attempt at a task, which ends with the attempt's report.
        self.attempt = False
        #: It is that of another process of the session, which releases it.
        self.borrowed: bool = False
        self.listeners: list[Callable[[], None]] = []
        self.ended: threading.Event = Flag()
        self.changed: bool = False
        self.notes: list[Note] = []
        self.packet: Packet | None = None
        self.documents: list[Document] = []
        self.as_of: str = ""
        #: The runs that have begun, or ended, a call that writes under it. They may share it with one another.
        self.writes: list[str] = []
        #: The entry of the journal that the last answer was about.
        self.at: At | None = None
        self.warnings: list[str] = []
        self.asked: Yield | None = None
        self.deadline: float = 0.0
        self.stall_for: float = 0.0
        self.take(lease, sent)

    def take(self, lease: Any, sent: float) -> None:
        """Takes the lease of an answer to a request that was sent then."""
        self.lease = lease
        self.id: str = lease["id"]
        self.fence: int = int(lease["fence"])
        self.keys: tuple[str, ...] = tuple(claim["key"] for claim in lease["claims"])
        self.flow: str = lease["holder"]["flow"]
        before = getattr(self, "ttl", 0.0)
        self.ttl: float = lease["ttl_ms"] / 1000
        self.cap: float = _after(sent, lease.get("max_hold_in_ms"))
        stall = lease.get("stall_in_ms")
        self.stall: float = _after(sent, stall)
        self.stall_for = 0.0 if stall is None else max(stall / 1000, self.stall_for)
        end = sent + lease["expires_in_ms"] / 1000
        self.deadline = max(self.deadline, end) if self.ttl >= before else end
        self.asked = lease.get("yield")

    def bring(self, answer: Granted) -> None:
        """Takes what an answer has beside the lease."""
        self.at = answer.get("at", self.at)
        self.changed = self.changed or answer["changed"]
        self.notes = answer["notes"] or self.notes
        self.packet = answer.get("packet") or self.packet
        self.documents = answer.get("documents", self.documents)
        self.as_of = answer.get("as_of", self.as_of)
        self.warnings = answer.get("warnings", self.warnings)

    @property
    def margin(self) -> float:
        return max(LEAST_MARGIN, MARGIN * self.ttl)

    @property
    def end(self) -> float:
        """The moment from which it counts as lost."""
        return min(self.deadline, self.cap, self.stall) - self.margin

    def confirm(self, sent: float, progress: bool) -> None:
        """Notes that the server has renewed it by a request that was sent then."""
        if self.loss is None:
            self.deadline = max(self.deadline, sent + self.ttl)
            if progress and self.stall_for:
                self.stall = max(self.stall, sent + self.stall_for)

    def mark(self, code: str, message: str) -> bool:
        """Takes note of why it ends, and reports whether that is the first reason. A call of tell has to follow.

        The step that takes a lease out of the table marks it under the same mutex: else a release in between would
        become the reason.
        """
        loss = LeaseLost(code, message, self.keys)
        return vars(self).setdefault("loss", loss) is loss  # in one step, which no interrupt divides

    def mark_over(self, now: float) -> bool:
        """Marks it as expired if its time is up."""
        return now >= self.end and self.mark(
            "expired", f"the lease on {', '.join(self.keys)} was not confirmed in time: the server may have ended it"
        )

    def lose(self, code: str, message: str) -> None:
        """Ends it, once."""
        if self.mark(code, message):
            self.tell()

    def tell(self) -> None:
        """Reports the loss to the holder."""
        self.ended.set()
        for listener in self.listeners:
            try:
                listener()
            except Exception:  # the keeper has other leases to keep
                logger.exception("on_lost of the lease on %s", ", ".join(self.keys))

    def expire(self, now: float) -> None:
        """Ends it if its time is up."""
        if self.loss is None and self.mark_over(now):
            self.tell()

    def error(self) -> LeaseLost:
        """Returns the loss as an error of its own, to be raised."""
        assert self.loss is not None
        return LeaseLost(self.loss.code, self.loss.message, self.keys)


class Hold:
    """What a handle has of a grant. A lease whose holds are gone has no holder any more, and is given back.

    It belongs to the handle, or to the with block. So a handle that is dropped counts no more, also one that an
    interrupt has kept from being made.
    """

    __slots__ = ("__weakref__", "grant")

    def __init__(self, grant: Grant) -> None:
        self.grant: Grant = grant
        grant.holds.add(self)


class Grants(Mapping[str, Grant]):
    """The leases of a client that are held, by their ids.

    It refers to them weakly: a function of the caller, such as on_lost, may refer to the handle in turn.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[weakref.ref[Grant], tuple[str, ...], bool]] = {}

    def __getitem__(self, lease: str) -> Grant:
        grant = self._found[lease][0]()
        if grant is None:
            raise KeyError(lease)
        return grant

    def __iter__(self) -> Iterator[str]:
        return iter([grant.id for grant in self.all()])

    def __len__(self) -> int:
        return len(self.all())

    def all(self) -> list[Grant]:
        """Returns them as they are now, whatever a handler of a signal does meanwhile."""
        return [grant for ref, _, _ in list(self._found.values()) if (grant := ref()) is not None]

    def add(self, grant: Grant) -> None:
        """Takes note of one."""
        self._found[grant.id] = weakref.ref(grant), grant.keys, grant.borrowed

    def owns(self, lease: str) -> bool:
        """Whether it is one that this client acquired, and has to release."""
        found = self._found.get(lease)
        return found is not None and not found[2]

    def remove(self, lease: str) -> None:
        """Forgets one, if it is there."""
        self._found.pop(lease, None)

    def collected(self) -> list[tuple[str, tuple[str, ...]]]:
        """Forgets those that nothing refers to any more, and returns those that are to be released, with their keys."""
        gone = [lease for lease, (ref, _, _) in list(self._found.items()) if ref() is None]
        found = [(lease, self._found.pop(lease, None)) for lease in gone]
        return [(lease, one[1]) for lease, one in found if one is not None and not one[2]]


def _after(sent: float, left: int | None) -> float:
    return float("inf") if left is None else sent + left / 1000
