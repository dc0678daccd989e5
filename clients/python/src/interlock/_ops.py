"""The operations of a client, as steps that both shells carry out."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar, cast

from ._api import MAX_PROGRESS_BYTES
from ._call import Pace, decided, final
from ._clock import now
from ._core import LONG_POLL, Ask, Core, Session, claims_of, logger
from ._effect import EffectClaim, Outcome, report
from ._errors import Deadlock, Held, LeaseLost, Refused, Unreachable
from ._grant import Grant, Hold
from ._handle import Handle
from ._report import clip
from ._scope import Place, Waiter, around_of, flow_of, own
from ._scope import strand as line_of
from ._types import (
    Approval,
    Committed,
    Document,
    Documents,
    Effect,
    EffectAnswer,
    KeyView,
    LeaseDecision,
    LogEntry,
    Question,
    ReadRequest,
    ServerStatus,
    Task,
    TaskAnswer,
    Ticket,
    Why,
    WriteRequest,
)
from ._watch import WatchEffect, watch
from ._wire import Reply, Steps, ms, new_key

_DAY = 86400.0
#: How long one question lasts while what it waits for may come to be a lease around the call.
_SHORT_POLL = 5.0

T = TypeVar("T")

#: The claims to effects whose blocks enclose the code that runs now, each with its namespace.
_claims: contextvars.ContextVar[frozenset[tuple[str, EffectClaim]]] = contextvars.ContextVar(
    "interlock_claims", default=frozenset()
)


@dataclass
class Request:
    """A request for a lease. Its place is in the context of its caller, which need not be the one that waits."""

    place: Place
    steps: Steps[Hold]


class Operations:
    """What a client can do."""

    def __init__(
        self,
        core: Core,
        strand: Callable[[], str],
        deliver: Callable[[Callable[[], None]], Callable[[], None]] = lambda listener: listener,
    ) -> None:
        self.core = core
        self._strand = strand
        #: Makes of a function one that the keeper may call.
        self.deliver = deliver

    def strand(self) -> str:
        """Returns the line of work that makes a request: the thread or task, or the run of an agent."""
        return line_of(self._strand())

    def flow(self) -> str:
        """Returns the flow of a request that asks for no lease."""
        return flow_of(self.core, self._base())

    def _base(self) -> str:
        return self.core.command.flow if self.core.command and self.core.joined else self.strand()

    # Leases.

    def acquire(
        self,
        *keys: str | Mapping[str, Any],
        purpose: str | None = None,
        wait: float = 60.0,
        mode: str | None = None,
        permits: int | None = None,
        parties: int | None = None,
        any_of: bool = False,
        any_prefix: str | None = None,
        group: str | None = None,
        ttl: float | None = None,
        grace: float | None = None,
        max_hold: float | None = None,
        stall: float | None = None,
        lock_delay: float | None = None,
        priority: int | None = None,
        max_position: int | None = None,
        preempt: bool = False,
        as_of: str | None = None,
        documents: bool | None = None,
        flow: str | None = None,
        on_lost: Callable[[], None] | None = None,
        on_queued: Callable[[Ticket], None] | None = None,
    ) -> Request:
        """Acquires a lease on keys: all of them, or with any_of exactly one.

        It asks once, and then stands in line for at most wait seconds; with wait=0 a key that is taken is refused at
        once. The error is Held, or WaitTimeout after a wait. Durations are seconds.

        A key that a lease around the call covers is granted at once, also in a child task, or in a thread that has a
        copy of the context. flow makes the call another agent's: a sub-agent that shares nothing. Where it would wait
        for a lease around it, the error is Held at once, and says so.
        """
        claims = claims_of(keys, mode, permits, parties)
        body: dict[str, Any] = {
            "purpose": purpose,
            "claims": claims or None,
            "any": any_of or None,
            "any_prefix": any_prefix,
            "group": group,
            "ttl_ms": ms(ttl),
            "grace_ms": ms(grace),
            "max_hold_ms": ms(max_hold),
            "stall_ms": ms(stall),
            "lock_delay_ms": ms(lock_delay),
            "priority": priority,
            "max_position": max_position,
            "as_of": as_of,
            "documents": documents,
        }
        what = any_prefix or ", ".join(k if isinstance(k, str) else str(k["key"]) for k in keys)
        ask = Ask(body, min(wait, 365 * _DAY), preempt, on_queued, what)
        return self._request(Place(claims, any_prefix), ask, flow, on_lost)

    def again(self, grant: Grant) -> Request:
        """Returns a request for another handle on a lease that this client has. Nothing is sent."""

        def steps() -> Steps[Hold]:
            return self.core.again(grant)
            yield  # it is a generator

        place = Place(grant.lease["claims"])
        place.begin(self.core, self.strand(), grant.flow, grant.flow)
        return Request(place, steps())

    def _request(self, place: Place, ask: Ask, flow: str | None, on_lost: Callable[[], None] | None = None) -> Request:
        def steps() -> Steps[Hold]:
            place.begin(self.core, self.strand(), self._base(), flow)
            ask.body["flow"] = place.flow
            granted = False
            try:
                hold = yield from self._acquire(place, ask)
                if on_lost is not None:
                    self.listen(hold.grant, on_lost)
                granted = True
                return hold
            finally:
                if not granted:
                    place.settle(None)

        return Request(place, steps())

    def _asking(self, claims: list[Any], flow: str) -> Place:
        """Returns the place of a request that is for no new lease. Without a flow it has none in common with others."""
        place = Place(claims)
        place.core, place.flow = self.core, flow
        return place

    def _unless_own(self, place: Place, ask: Ask, attempt: Callable[[Ask], Steps[T]]) -> Steps[T]:
        """Makes a request, unless it would wait for a lease that encloses the call: it asks first without a wait."""
        around = place.foreign()
        if around:
            any_of = bool(ask.body.get("any")) or place.prefix is not None
            try:
                return (yield from attempt(replace(ask, wait=0.0, preempt=False, on_queued=None)))
            except Refused as refusal:
                if isinstance(refusal, Held):
                    asked = place.asked if place.prefix is None else (yield from self._members(place.prefix))
                    error = own(refusal, asked, around, any_of)
                    if error is not None:
                        raise error from None
                elif refusal.code != "parked":  # else a person has not answered yet
                    raise
                if ask.wait <= 0 and not ask.preempt:
                    raise
            if ask.operation == "resumeLease":  # once it is approved, its keys may be those of such a lease
                ask = replace(ask, poll=_SHORT_POLL, own=lambda held: own(held, place.asked, around, any_of))
        return (yield from attempt(ask))

    def _members(self, prefix: str) -> Steps[list[dict[str, Any]]]:
        """Returns a claim on each key that a prefix stands for."""
        reply = yield from self.core.caller.request("listPatterns")
        patterns = reply.parse()["patterns"]
        found = [key for one in patterns for key in one.get("members", ()) if key.startswith(prefix)]
        return [{"key": key, "mode": "exclusive"} for key in found]

    def _acquire(self, place: Place, ask: Ask) -> Steps[Hold]:
        hold = yield from self._unless_own(place, ask, self.core.acquire)
        command, grant = self.core.command, hold.grant
        if grant.borrowed and command is not None and str(grant.fence) != command.fence:
            # Another process of the command works under it: the two exclude each other.
            self.core.drop(grant, hold, "released", "it is that of another process")
            place.move(place.fresh())
            ask.body["flow"] = place.flow
            hold = yield from self.core.acquire(ask)
        return hold

    def listen(self, grant: Grant, listener: Callable[[], None]) -> None:
        """Calls listener when the lease is lost; at once if it is."""
        grant.listeners.append(self.deliver(listener))
        if grant.loss is not None:
            listener()

    def renew(self, grant: Grant, ttl: float | None = None, progress: Any = None) -> Steps[None]:
        """Renews a lease now, and may change its ttl. Heartbeats renew it without this."""
        body = {"ttl_ms": ms(ttl), "progress": progress}
        reply = yield from self._named(grant, "renewLease", body)
        self.core.update(grant, reply)
        self.core.check(grant)

    def _named(self, grant: Grant, operation: str, body: Mapping[str, Any]) -> Steps[Reply]:
        """Carries out an operation on a lease, which is in its path."""
        request = self.core.caller.request(operation, path={"id": grant.id}, body=body)
        return (yield from self.core.under([grant], request))

    def convert(self, grant: Grant, claims: Sequence[str | Mapping[str, Any]], wait: float = 60.0) -> Steps[None]:
        """Replaces the claims of a lease by others. It keeps its old ones until the new ones are granted."""
        asked = claims_of(claims, None, None, None)
        yield from self._line(grant, "convertLease", {"claims": asked}, wait, self._asking(asked, grant.flow))

    def arrive(self, grant: Grant, wait: float = 60.0) -> Steps[None]:
        """Arrives at the barrier again, and waits for the other parties."""
        yield from self._line(grant, "arriveAtBarrier", {}, wait)

    def _line(
        self, grant: Grant, operation: str, body: dict[str, Any], wait: float, place: Place | None = None
    ) -> Steps[None]:
        ask = Ask(body, wait, what=", ".join(grant.keys), operation=operation, path={"id": grant.id}, of_lease=True)
        asking = self.core.acquire(ask) if place is None else self._unless_own(place, ask, self.core.acquire)
        again = yield from self.core.under([grant], asking)
        self.core.drop(grant, again, "released", "another handle was released")
        self.core.check(grant)

    def park(
        self, grant: Grant, reason: str | None = None, keep: bool | None = None, for_: float | None = None
    ) -> Steps[str]:
        """Parks a lease, which then needs no heartbeat; with a reason it asks a person. Returns the id to resume."""
        keys = None if keep is None else "keep" if keep else "free"
        yield from self._named(grant, "parkLease", {"keys": keys, "for_ms": ms(for_), "reason": reason})
        self.core.parked(grant)
        return grant.id

    def resume(self, lease: str, wait: float = 60.0, flow: str | None = None) -> Request:
        """Resumes a parked lease, and waits for the answer of a person, if it asks one, and then for its keys.

        Without an answer in time the error is Refused with the code parked, after a no with the code denied.
        """
        ask = Ask({}, wait, what="the parked lease", operation="resumeLease", path={"id": lease})
        return self._request(Place(), ask, flow)

    def start_run(
        self,
        org: str,
        workflow: str | None = None,
        purpose: str | None = None,
        wait: float = 2.0,
        max_hold: float | None = None,
    ) -> Request:
        """Admits a run of a workflow, as a lease. Its release ends the run. Without room the error is Held."""
        body = {
            "org": org,
            "workflow": workflow,
            "purpose": purpose,
            "flow": self.flow(),
            "max_hold_ms": ms(max_hold),
        }

        def start(ask: Ask) -> Steps[Hold]:
            key, waiting = new_key(), {**ask.body, "wait_ms": ms(ask.wait)}
            reply, session = yield from self.core.within(
                lambda s: self.core.caller.request(
                    "startRun", body={**waiting, "session": s.id}, key=key, wait=ask.wait
                )
            )
            return self.core.adopt(reply.parse()["run"]["lease"], session.id, reply.sent)

        ask = Ask(body, min(wait, LONG_POLL))
        return Request(Place(), self._unless_own(self._asking([], ""), ask, start))

    # Looking.

    def status(self) -> Steps[ServerStatus]:
        """Returns the state of the server and the namespace."""
        reply = yield from self.core.caller.request("getStatus")
        return cast(ServerStatus, reply.parse())

    def look(self, key: str) -> Steps[KeyView]:
        """Returns the holders of a key and its line."""
        reply = yield from self.core.caller.request("getKey", path={"key": key})
        return cast(KeyView, reply.parse())

    def why(self, key: str | None = None, agent: str | None = None) -> Steps[Why]:
        """Explains why a key is taken, or what an agent waits for."""
        reply = yield from self.core.caller.request("getWhy", query={"key": key, "agent": agent})
        return cast(Why, reply.parse())

    def check_fence(self, key: str, fence: int) -> Steps[None]:
        """Returns if a write under the fence may go ahead, else the error is Refused with the code fenced."""
        yield from self.core.caller.request("checkFence", body={"key": key, "fence": str(fence)})

    def set_progress(self, text: str) -> None:
        """Sets what the next heartbeat reports of this client to the agents that wait for it."""
        self.core.progress = clip(text, MAX_PROGRESS_BYTES)

    # Documents.

    def documents(self, *keys: str, prefix: str | None = None) -> Steps[Documents]:
        """Reads the documents at keys, or below a prefix, as of one moment. One that is not there has absent."""
        documents: list[Document] = []
        cursor: str | None = None
        while True:
            query = {"key": list(keys), "prefix": prefix, "values": True, "cursor": cursor}
            reply = yield from self.core.caller.request("listState", query=query)
            page = cast(Documents, reply.parse())
            documents += page["documents"]
            cursor = page.get("cursor")
            if not cursor:
                page["documents"] = documents
                return page

    def read(self, key: str) -> Steps[Document]:
        """Reads the document at a key, with its version."""
        page = yield from self.documents(key)
        return page["documents"][0]

    def commit(
        self,
        writes: Sequence[WriteRequest],
        reads: Sequence[ReadRequest] = (),
        note: str | None = None,
        leases: Sequence[Grant] = (),
        as_of: str | None = None,
        flow: str | None = None,
    ) -> Steps[Committed]:
        """Carries out writes, all or none, if what was read is still so. Else the error is Stale, with the changes."""
        body = {
            "writes": list(writes),
            "reads": list(reads) or None,
            "note": note,
            "as_of": as_of,
            "leases": [grant.id for grant in leases] or None,
            "flow": flow or self.flow(),
        }
        key = new_key()
        steps = self.core.within(
            lambda s: self.core.caller.request("commitState", body={**body, "session": s.id}, key=key),
            outlives=True,
        )
        reply, _ = yield from self.core.under(leases, steps)
        return cast(Committed, reply.parse())

    def watch(
        self, key: str | None = None, prefix: str | None = None, values: bool = True, start: str | None = None
    ) -> Generator[WatchEffect, Any, None]:
        """Follows the writes to a key, or below a prefix, from now on or from an index of the journal.

        It goes on after a broken connection, and reports each write once.
        """
        self.core.usable()
        return watch(self.core.caller, key, prefix, values, start)

    # Effects.

    def claim_effect(
        self, tool: str, target: str, arguments: Any = None, wait: float = 60.0, lease: Handle | None = None
    ) -> Steps[Effect]:
        """Claims an action that must not happen twice. Its state is claimed, or done with the earlier result.

        The claim is that of this call: any other one, also of the same thread or task, waits for its outcome. If that
        does not come, or is unknown, the error is EffectTaken.
        """
        deadline, pace = now() + wait, Pace()
        key = new_key()
        claim: dict[str, Any] = {
            "id": "e_" + new_key(),
            "flow": self.flow(),
            "tool": tool,
            "target": target,
            "arguments": arguments,
            "lease": lease.id if lease is not None else None,
        }
        grants = [] if lease is None else [lease._grant]
        undo: Callable[[], Steps[Any]] | None = None

        def begin(left: float, session: Session) -> Steps[Reply]:
            nonlocal undo
            body = {**claim, "session": session.id}
            undo = partial(self._unclaim, body, key)
            waiting = {**body, "wait_ms": ms(left) or None}
            return (yield from self.core.caller.request("claimEffect", body=waiting, key=key, wait=left))

        waits = not self._performed()  # else it may be for itself: ask first
        try:
            while True:
                left = max(0.0, min(LONG_POLL, deadline - now())) if waits else 0.0
                waits = True
                try:
                    steps = self.core.within(partial(begin, left))
                    reply, _ = yield from self.core.under(grants, steps)
                    undo = None
                    return cast(EffectAnswer, reply.parse())["effect"]
                except Refused as error:
                    if decided(error):
                        undo = None
                    if error.code != "effect_claimed" or now() >= deadline or self._is_mine(error):
                        raise
                yield from pace.next(left)
        except (LeaseLost, Unreachable, TypeError, ValueError):  # the last two: of arguments that are no JSON
            undo = None
            raise
        finally:
            if undo is not None:
                self.core.later(undo)

    def _is_mine(self, error: Refused) -> bool:
        """Reports whether the code that runs now is in the block of the claim: it would wait for itself."""
        effect = error.problem.get("effect")
        return effect is not None and effect["action"] in self._performed()

    def _performed(self) -> set[str]:
        """Returns the actions whose blocks enclose the code that runs now, of whichever client."""
        namespace = self.core.caller.namespace
        return {claim.effect["action"] for of, claim in _claims.get() if claim.runs and of == namespace}

    def _unclaim(self, body: Mapping[str, Any], key: str) -> Steps[None]:
        """Frees a claim whose answer has not arrived: its action was not begun."""
        reply = yield from self.core.caller.request("claimEffect", body=body, key=key)
        effect = cast(EffectAnswer, reply.parse())["effect"]
        if effect["state"] == "claimed":
            yield from report(self.core.caller, body["id"], "cancelled", None, "its caller left before it was begun")()

    def settle_effect(
        self, effect: str, outcome: Outcome, result: Any = None, reason: str | None = None
    ) -> Steps[Effect]:
        """Reports the outcome of an effect that was claimed, by its id.

        A result that cannot be stored is replaced by {"interlock": "result not stored", "reason": ...}.
        """
        return (yield from report(self.core.caller, effect, outcome, result, reason)())

    def enter_effect(self, claim: EffectClaim) -> None:
        """Notes that the block of a claim begins."""
        claim.runs = True
        _claims.set(_claims.get() | {(self.core.caller.namespace, claim)})

    def leave_effect(self, claim: EffectClaim, error: BaseException | None) -> Callable[[], Steps[None]]:
        """Notes the end of the block, and returns the steps that report it. They raise no error of the report."""
        claim.runs = False
        _claims.set(_claims.get() - {(self.core.caller.namespace, claim)})
        steps = claim._report(self.core.caller, error)

        def told() -> Steps[None]:
            try:
                yield from steps()
            except Refused as refusal:
                if not final(refusal):
                    raise
                logger.warning("the outcome of an effect was refused: %s", refusal)

        return told

    # Tasks, messages, approvals.

    def submit(
        self,
        queue: str,
        payload: Any = None,
        claims: Sequence[str | Mapping[str, Any]] = (),
        kind: str | None = None,
        purpose: str | None = None,
        group: str | None = None,
        priority: int | None = None,
        delay: float | None = None,
        deadline: float | None = None,
        max_attempts: int | None = None,
        approval: Question | None = None,
    ) -> Steps[Task]:
        """Puts a task into a queue. It stands in line for its claims by itself, and a worker gets it with a lease."""
        body = {
            "queue": queue,
            "payload": payload,
            "claims": claims_of(claims, None, None, None) or None,
            "kind": kind,
            "purpose": purpose,
            "group": group,
            "priority": priority,
            "delay_ms": ms(delay),
            "deadline_ms": ms(deadline),
            "max_attempts": max_attempts,
            "approval": approval,
            "flow": self.flow(),
        }
        key = new_key()
        reply, _ = yield from self.core.within(
            lambda s: self.core.caller.request("createTask", body={**body, "session": s.id}, key=key),
            outlives=True,
        )
        return cast(TaskAnswer, reply.parse())["task"]

    def task(self, task: str, wait: float = 0.0) -> Steps[Task]:
        """Returns a task, and waits up to so many seconds for its end.

        The error is Deadlock if it would wait for a task that waits, over others or not, for a lease around the call.
        """
        deadline, pace = now() + wait, Pace()
        flow = flow_of(self.core, self.core.command.flow if self.core.command and self.core.joined else "")
        waiters: list[Waiter] = [(None, flow)] if flow else []
        waiters += around_of(self.core)
        new = len(waiters) if len(waiters) > 1 else 0  # those that have not asked yet
        while True:
            # The server finds a circle by the session and flow of a wait, at once, and each wait has one of each.
            most = LONG_POLL if len(waiters) < 2 else _SHORT_POLL if new <= 0 else 0.1
            new -= 1
            left = max(0.0, min(most, deadline - now()))
            waiter = waiters[0] if waiters and left > 0 else None
            waiters = waiters[1:] + waiters[:1]
            try:
                reply = yield from self._look_at_task(task, left, waiter)
            except Refused as error:
                if waiter is None or waiter[0] is None or isinstance(error, Deadlock):
                    raise
                waiters.remove(waiter)  # that session has ended, or is not of this server
                continue
            found = cast(Task, reply.parse()["task"])
            if found.get("state") in ("done", "dead", "cancelled") or now() >= deadline:
                return found
            yield from pace.next(left)

    def _look_at_task(self, task: str, left: float, waiter: Waiter | None) -> Steps[Reply]:
        def look(session: str | None, flow: str | None) -> Steps[Reply]:
            query = {"wait_ms": ms(left) or None, "session": session, "flow": flow}
            return self.core.caller.request("getTask", path={"id": task}, query=query, wait=left)

        if waiter is None:
            return (yield from look(None, None))
        if waiter[0] is not None:
            return (yield from look(*waiter))
        return (yield from self.core.within(lambda session: look(session.id, waiter[1])))[0]

    def cancel_task(self, task: str, reason: str | None = None) -> Steps[Task]:
        """Takes back a task that does not run."""
        reply = yield from self.core.caller.request("cancelTask", path={"id": task}, body={"reason": reason})
        return cast(TaskAnswer, reply.parse())["task"]

    def send(self, key: str, message: Any = None, kind: str | None = None, purpose: str | None = None) -> Steps[Task]:
        """Sends a message to the single writer of a key. task() waits for the reply, as its result."""
        body = {"body": message, "kind": kind, "purpose": purpose, "flow": self.flow()}
        idempotency = new_key()
        reply, _ = yield from self.core.within(
            lambda s: self.core.caller.request(
                "sendMessage", path={"key": key}, body={**body, "session": s.id}, key=idempotency
            ),
            outlives=True,
        )
        return cast(Task, reply.parse()["message"])

    def log(self, key: str, start: str | None = None) -> Steps[list[LogEntry]]:
        """Returns entries of the log of a key with a single writer, beginning with the one of that number."""
        reply = yield from self.core.caller.request("getMailboxLog", path={"key": key}, query={"from": start})
        return cast("list[LogEntry]", reply.parse()["entries"])

    def approvals(self) -> Steps[tuple[list[Task], list[Any]]]:
        """Returns the tasks and the parked leases that ask a person."""
        reply = yield from self.core.caller.request("listApprovals")
        found = reply.parse()
        return found.get("tasks", []), found.get("leases", [])

    def answer(
        self, question: str, verdict: Literal["approved", "denied"], by: str | None = None, reason: str | None = None
    ) -> Steps[TaskAnswer | LeaseDecision]:
        """Answers a question of a task, by its id, or of a parked lease, by its fence."""
        body = {"verdict": verdict, "by": by, "reason": reason}
        reply = yield from self.core.caller.request("answerApproval", path={"id": question}, body=body)
        return cast("TaskAnswer | LeaseDecision", reply.parse())


def put(key: str, value: Any) -> WriteRequest:
    """A write that replaces a document by a JSON value."""
    return {"key": key, "put": value}


def merge(key: str, patch: Any) -> WriteRequest:
    """A write that applies a JSON merge patch."""
    return {"key": key, "merge": patch}


def delete(key: str) -> WriteRequest:
    """A write that removes a document."""
    return {"key": key, "delete": True}  # type: ignore[typeddict-item]


def add(key: str, number: int, least: int | None = None, most: int | None = None) -> WriteRequest:
    """A write that adds to a counter, which must stay within its bounds. Additions need no version."""
    write: WriteRequest = {"key": key, "add": number}
    if least is not None:
        write["min"] = least
    if most is not None:
        write["max"] = most
    return write


def seen(*documents: Document) -> list[ReadRequest]:
    """The reads of a commit that depends on documents as they were read."""
    return [{"key": document["key"], "version": document["version"]} for document in documents]


__all__ = ["Approval", "Operations", "add", "delete", "merge", "put", "seen"]
