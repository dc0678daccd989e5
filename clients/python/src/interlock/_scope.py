"""Whose work a request is: the leases that enclose the code which makes it, and the flow that follows from them.

A flow is one line of work. A request belongs to the flow of the innermost lease around it, wherever the code runs: in a
child task, or in a thread that has a copy of the context. While other code works in that flow, such as a second tool of
the same turn, the request has a flow of its own, so that the two exclude each other. A key that a lease around it
covers is the exception: only the flow of that lease gets it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._errors import Held, Refused

if TYPE_CHECKING:
    from ._core import Core
    from ._handle import Handle

#: The places of the leases around the code that runs now, the outermost first. The handles keep them alive.
_chain: contextvars.ContextVar[tuple[weakref.ref[Place], ...]] = contextvars.ContextVar("interlock_leases", default=())
_line: contextvars.ContextVar[str] = contextvars.ContextVar("interlock_line", default="")
_numbers = itertools.count(1)


class Place:
    """The place of a lease in a context, from the call that asks for it on."""

    def __init__(self, claims: Iterable[Mapping[str, Any]] = (), prefix: str | None = None) -> None:
        self._outer: list[weakref.ref[Place]] = [weakref.ref(place) for place in around() if place.held is not None]
        self.asked: list[Mapping[str, Any]] = list(claims)
        self.prefix: str | None = prefix
        self.core: Core | None = None
        self.strand: str = ""
        self.flow: str = ""
        self.fence: str = ""
        #: Whether the lease is that of a block.
        self.block: bool = False
        self.pending: bool = True
        self.handle: weakref.ref[Handle] | None = None
        self._within: weakref.ref[Place] | None = None
        self._turn: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()
        self._blocking_turn = threading.RLock()

    @property
    def outer(self) -> list[Place]:
        """What encloses the call. Its handles keep it: else each lease would keep all that came before it."""
        return _alive(self._outer)

    @property
    def within(self) -> Place | None:
        """The lease around the request that has its key."""
        return None if self._within is None else self._within()

    @property
    def held(self) -> Handle | None:
        """The handle of the lease, as long as it is held."""
        handle = None if self.over else self._handle()
        return handle if handle is not None and handle._grant.loss is None else None

    def _handle(self) -> Handle | None:
        return None if self.handle is None else self.handle()

    @property
    def live(self) -> bool:
        """Whether the lease is held, or asked for."""
        return self.pending or self.held is not None

    @property
    def over(self) -> bool:
        """Whether the lease is released, or nobody can release it any more."""
        handle = self._handle()
        return not self.pending and (handle is None or handle._released or handle._ref() is None)

    @property
    def claims(self) -> Sequence[Mapping[str, Any]]:
        """What it claims."""
        held = self.held
        return self.asked if held is None else held._grant.lease["claims"]

    def settle(self, handle: Handle | None) -> None:
        """Notes what has come of the request."""
        self.pending = False
        if handle is not None:
            self.handle = weakref.ref(handle)
            self.fence = str(handle._grant.fence)
            if self.flow != handle._grant.flow:
                self.move(handle._grant.flow)

    def begin(self, core: Core, strand: str, base: str, flow: str | None) -> None:
        """Chooses the flow of the request, as it is sent: base, if nothing encloses it, or the flow that it names."""
        self.core, self.strand = core, strand
        with core.mutex:
            self.move(flow or self._flow(core, base))

    def move(self, flow: str) -> None:
        """Puts the request into a flow."""
        assert self.core is not None
        with self.core.mutex:
            self.flow = flow
            self.core.places.add(self)

    def _flow(self, core: Core, base: str) -> str:
        outer = [place for place in self._enclosing() if place.core is core]
        near = [place for place in outer if self.meets(place)]
        self._within = weakref.ref(near[-1]) if near else None
        flow = (near or outer)[-1].flow if outer else base
        if not near and any(self._is_beside(place) for place in core.places.of(flow)):
            return self.fresh()
        return flow

    def fresh(self) -> str:
        """Returns a flow of its own."""
        return f"{self.strand}.{os.getpid()}.{next(_numbers)}"

    def _enclosing(self) -> list[Place]:
        """Returns the places of the leases that are held around the request, the outermost first."""
        command = self.core.command if self.core is not None else None
        return ([command] if command is not None else []) + [place for place in self.outer if place.held is not None]

    def _is_beside(self, place: Place) -> bool:
        """Whether a lease of the same flow is that of other work."""
        return place.strand != self.strand and place.live and place not in self.outer

    def turn(self) -> contextlib.AbstractAsyncContextManager[Any]:
        """Returns a lock for a tool: under one lease around them, tools that run at once follow each other."""
        within = self.within
        if within is None:
            return contextlib.nullcontext()
        return within._turn.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def blocking_turn(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the same for threads."""
        within = self.within
        return contextlib.nullcontext() if within is None else within._blocking_turn

    def meets(self, other: Place) -> bool:
        """Whether the two claim a key, or one above it, not both in shared mode."""
        if any(other.excludes(claim) for claim in self.claims):
            return True
        return self.prefix is not None and any(str(two["key"]).startswith(self.prefix) for two in other.claims)

    def excludes(self, claim: Mapping[str, Any]) -> bool:
        """Whether it claims the key of a claim, or one above or below it, not both in shared mode."""
        return any(
            overlap(str(claim["key"]), str(one["key"])) and not claim.get("mode") == one.get("mode") == "shared"
            for one in self.claims
        )

    def foreign(self) -> list[Place]:
        """Returns the leases around the request that it would have to wait for: those of other flows and clients.

        If the request does not tell what it claims, it can be any of them.
        """
        core = self.core
        assert core is not None
        return [
            place
            for place in self._enclosing()
            if place.block  # the lease of a mere call may be released by other code meanwhile
            and (self.meets(place) or not (self.asked or self.prefix))
            and (place.core is None or place.core.caller.namespace == core.caller.namespace)
            and not (place.core is core and place.flow == self.flow)
        ]


def command(keys: Sequence[str], fence: str, flow: str, joined: Core | None) -> Place:
    """Returns the place of the command around this process, `interlock run` or `interlock task work`."""
    place = Place({"key": key, "mode": "exclusive"} for key in keys)
    place.core, place.flow, place.fence = joined, flow, fence
    place.pending, place.block = False, True
    return place


def overlap(one: str, two: str) -> bool:
    """Whether two keys are the same, or one is above the other."""
    return one == two or one.startswith(two + "/") or two.startswith(one + "/")


class Places:
    """The places of a client that are still referred to, by their flows."""

    def __init__(self) -> None:
        self._found: dict[str, set[weakref.ref[Place]]] = {}

    def add(self, place: Place) -> None:
        """Takes note of one."""
        flow, found = place.flow, self._found

        def gone(ref: weakref.ref[Place]) -> None:
            refs = found.get(flow, set())
            refs.discard(ref)
            if not refs:
                found.pop(flow, None)

        ref = weakref.ref(place, gone)
        while ref not in found.get(flow, ()):  # a finalizer may remove the set meanwhile
            found.setdefault(flow, set()).add(ref)

    def of(self, flow: str) -> list[Place]:
        """Returns those of a flow that are not over, as they are now."""
        refs = self._found.get(flow, set())
        for ref in list(refs):
            place = ref()
            if place is None or place.over:
                refs.discard(ref)  # a program that keeps the handles of released leases must not get slower by that
        return [place for place in _alive(list(refs)) if place.flow == flow]


def _alive(refs: Iterable[weakref.ref[Place]]) -> list[Place]:
    return [place for place in (ref() for ref in refs) if place is not None]


def around() -> list[Place]:
    """Returns the places around the code that runs now, the outermost first."""
    return [place for place in _alive(_chain.get()) if not place.over]


def enter(place: Place) -> None:
    """Puts what this code does from now on into a place."""
    _chain.set(tuple(weakref.ref(one) for one in [*(one for one in around() if one is not place), place]))


def leave(place: Place) -> None:
    """Ends that."""
    _chain.set(tuple(weakref.ref(one) for one in around() if one is not place))


@contextlib.contextmanager
def line(name: str) -> Iterator[None]:
    """Has the requests in its body be those of one line of work, in whichever threads and tasks they are made."""
    before = _line.set(name)
    try:
        yield
    finally:
        _line.reset(before)


def strand(name: str) -> str:
    """Returns the line of work of a thread or task of that name."""
    return _line.get() or name


#: A session, None for that of the client, and a flow: who waits.
Waiter = tuple[str | None, str]


def around_of(core: Core) -> list[Waiter]:
    """Returns whose leases of other clients enclose the code that runs now."""
    found: dict[Waiter, None] = {}
    for place in around():
        other = place.core
        if not place.block or place.held is None or other is None or other is core or other.session is None:
            continue
        if other.caller.namespace == core.caller.namespace:
            found[other.session.id, place.flow] = None
    return list(found)


def flow_of(core: Core, base: str) -> str:
    """Returns the flow of a request that asks for no lease."""
    inner = [place.flow for place in around() if place.core is core and place.held is not None]
    return inner[-1] if inner else base


def own(refusal: Held, asked: Sequence[Mapping[str, Any]], around: Sequence[Place], any_of: bool) -> OwnLease | None:
    """Returns the error for a refusal, if leases around the request are in its way, whatever others do."""
    if any_of and not all(any(place.excludes(claim) for place in around) for claim in asked):
        return None
    mine = [
        (place, holder)
        for place in around
        for holder in refusal.holders
        if holder["fence"] == place.fence and any(overlap(holder["key"], str(one["key"])) for one in place.claims)
    ]
    capacity = refusal.problem.get("capacity")
    if not mine or (capacity and _fits(asked, [holder for _, holder in mine], capacity)):
        return None
    return OwnLease(refusal, ", ".join(str(claim["key"]) for claim in mine[0][0].claims))


def _fits(asked: Sequence[Mapping[str, Any]], mine: Sequence[Mapping[str, Any]], capacity: Mapping[str, Any]) -> bool:
    """Whether a key has permits for a request beside the holders that are its own. With groups it counts as full."""
    key = mine[0]["key"]
    all_of_it = [*([claim for claim in asked if claim["key"] == key] or [{}]), *mine]
    if capacity.get("groups") or any(one.get("mode", "permits") != "permits" for one in all_of_it):
        return False
    permits: float = capacity.get("permits", float("inf"))
    return sum(int(one.get("permits") or 1) for one in all_of_it) <= permits


class OwnLease(Held):
    """The key is held by a lease around this call, of another client, agent or flow: it would wait for itself."""

    def __init__(self, refusal: Refused, keys: str) -> None:
        text = (
            f"this is your own lease on {keys}, around this call, and a wait would never end: "
            "work under it, with its client and flow, or release it first"
        )
        problem: Any = {
            **refusal.problem,
            "retryable": False,
            "advice": {**refusal.problem["advice"], "action": "stop", "retry_after_ms": 0, "message": text},
        }
        super().__init__(problem)


__all__ = [
    "OwnLease",
    "Place",
    "Waiter",
    "around",
    "around_of",
    "command",
    "enter",
    "flow_of",
    "leave",
    "line",
    "own",
    "strand",
]
