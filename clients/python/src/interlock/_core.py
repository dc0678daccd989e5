"""The session, its leases and what keeps them alive, without any input or output."""

from __future__ import annotations

import logging
import random
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, cast

from ._api import DEFAULT_TTL_MS, MAX_KNOWN, MAX_NAME_BYTES, MAX_NOTE_BYTES, TRANSIENT
from ._call import LEAST_ANSWER, Caller, Pace, decided, final
from ._clock import now
from ._errors import (
    Closed,
    ForkedError,
    Held,
    InterlockError,
    LeaseLost,
    Orphaned,
    OutcomeUnknown,
    Refused,
    Unreachable,
    WaitTimeout,
)
from ._grant import Grant, Grants, Hold
from ._report import Seldom, clip
from ._scope import Place, Places
from ._seat import Seat
from ._types import Problem, Ticket
from ._wire import Idle, Pause, Reply, Send, Steps, ms, new_key, without_none

logger = logging.getLogger("interlock")

#: The longest wait of one request, in seconds; the server allows 55.
LONG_POLL = 55.0
#: The age of an answer from which the time of its lease is asked for anew, in seconds.
FRESH = 0.05
#: Signs of life with more than one server, in seconds.
ATTENTIVE = 2.0
#: How long the keeper sleeps at most: after a suspension of the machine it has to look at the clock.
MOST_IDLE = 1.0
#: The longest pause of the keeper between two attempts at a report, or at giving something back, in seconds.
MOST_AFTER = 2.0
#: How long a lease that was given up is remembered, in seconds: longer than any answer takes.
REMEMBER = 600.0
#: How long one attempt to say goodbye may take, in seconds: without an answer the leases run out.
GOODBYE = 2.0

#: Why a lease ends that nothing in this process refers to any more.
FORGOTTEN = "the lease on {} is given back: its handle was dropped without a release"

T = TypeVar("T")

GONE = frozenset({"unknown_session", "session_ended"})
#: The refusals, of a request that names a lease, which say that it has ended.
ENDED = GONE | {"expired", "taken", "revoked", "preempted", "in_grace", "released", "unknown_lease"}
_ANEW = frozenset({"offer_lapsed", "unknown_ticket"})


@dataclass
class Session:
    """The session with the server."""

    id: str
    name: str
    ttl: float
    deadline: float
    next_beat: float
    #: A heartbeat was not answered, so the leases that its answer reported as lost are not known.
    doubt: bool = False
    #: The server counts other leases than this client, and is to get the list of those that it knows.
    wants_list: bool = False


class Opening:
    """A session that is being opened. All calls that need it ask for it under one key, so the server opens one."""

    def __init__(self) -> None:
        self.key: str = new_key()
        self.callers: set[object] = set()
        self.unsure = False  # a call has left before its answer came


@dataclass
class Job:
    """Something that the keeper gives back to the server, or reports to it, until there is an answer."""

    steps: Callable[[], Steps[Any]]
    #: The end of the session does not settle it, so closing the client tries it once more.
    report: bool = False
    after: float = 0.0
    tries: int = 0


@dataclass
class Ask:
    """What an acquisition asks for, as POST /v1/leases has it, without the session."""

    body: dict[str, Any]
    wait: float
    preempt: bool = False
    on_queued: Callable[[Ticket], None] | None = None
    what: str = ""
    operation: str = "acquireLease"
    path: dict[str, str] = field(default_factory=dict)
    #: It changes a lease that there is: giving up ends the change only.
    of_lease: bool = False
    #: How long one question lasts.
    poll: float = LONG_POLL
    #: Makes the error of a wait that would be for a lease around the call, if it is one.
    own: Callable[[Held], Held | None] | None = None


class Core:
    """The rules of a client. Its mutex guards all that threads share; no effect is yielded under it."""

    def __init__(self, caller: Caller, session_ttl: float | None, wake: Callable[[], None]) -> None:
        self.caller = caller
        self.seat: Seat | None = None
        self.seldom: Seldom = Seldom(logger)
        self.session_ttl = session_ttl
        self.wake = wake
        #: A handler of a signal may take it again, so each step under it leaves the tables whole.
        self.mutex: threading.RLock = threading.RLock()
        self.session: Session | None = None
        self.opening: Opening | None = None
        self.grants: Grants = Grants()
        #: The leases of the program, also those that it asks for.
        self.places: Places = Places()
        #: The lease of the command around this process, and whether the client is of its session.
        self.command: Place | None = None
        self.joined: str = ""
        #: The places in line, which such a client has to give up at its end.
        self.tickets: set[str] = set()
        self.orphaned: str = ""
        self.jobs: deque[Job] = deque()
        self.at: Job | None = None  # the one that the keeper is at
        #: When the keeper looks at the leases next, if nothing wakes it.
        self.looks: float = float("inf")
        #: The leases that were given up here, and when, the oldest first. The server may grant one to its flow again in
        #: that moment.
        self.leaving: OrderedDict[str, float] = OrderedDict()
        self.progress: str | None = None
        self.sent_progress: str | None = None
        self.closed: bool = False
        self.forked = False
        caller.most = self.share

    # The session.

    def usable(self) -> None:
        """Raises an error if the client is of no use any more."""
        if self.forked:
            raise ForkedError
        if self.closed:
            raise Closed

    def shortest(self) -> float:
        """Returns the shortest ttl of what a heartbeat renews. mutex is held."""
        ttl = self.session.ttl if self.session else self.session_ttl or DEFAULT_TTL_MS / 1000
        return min([ttl, *(g.ttl for g in self.grants.all())])

    def share(self) -> float:
        """Returns how long one attempt may take while another server can be tried."""
        if len(self.caller.servers.all) == 1:
            return float("inf")
        with self.mutex:
            return self.shortest() / 4

    def interval(self) -> float:
        """Returns the time between two heartbeats. mutex is held."""
        third = self.shortest() / 3
        return min(third, ATTENTIVE) if len(self.caller.servers.all) > 1 else third

    def open(self) -> Steps[Session]:
        """Returns the session, and opens one if there is none."""
        while True:
            self.usable()
            if self.session is not None:
                return self.session
            if self.joined:
                return self._join()
            with self.mutex:
                opening = self.opening = self.opening or Opening()
            me = object()
            answered, unsure = False, True
            try:
                opening.callers.add(me)
                reply = yield from self._create(opening.key)
                answered, unsure = True, False
            except (Refused, Unreachable):
                unsure = False  # none was made
                raise
            finally:
                opening.callers.discard(me)
                opening.unsure = opening.unsure or unsure
                if not answered and not opening.callers:
                    self._give_up(opening)
            with self.mutex:
                if self.opening is not opening:
                    continue  # another call has taken it, or the client is closed
                self.opening = None
                session = reply.parse()["session"]
                ttl = session["ttl_ms"] / 1000
                self.session = Session(session["id"], session["name"], ttl, reply.sent + ttl, 0.0)
                self.session.next_beat = reply.sent + self.interval()
                opened = self.session
                if self.seat is not None:
                    self.seat.note(opened.id)
            self.wake()
            return opened

    def _create(self, key: str) -> Steps[Reply]:
        body = without_none({"agent": self.caller.agent, "ttl_ms": ms(self.session_ttl)})
        return (yield from self.caller.request("createSession", body=body, key=key))

    def _give_up(self, opening: Opening) -> None:
        """Has the keeper, or closing the client, end a session whose answer has not come."""
        with self.mutex:
            mine = self.opening is opening
            if mine:
                self.opening = None
        if mine and opening.unsure:
            self.later(partial(self._uncreate, opening.key), report=True)

    def _uncreate(self, key: str) -> Steps[None]:
        reply = yield from self._create(key)
        yield from self.caller.request("deleteSession", path={"id": reply.parse()["session"]["id"]})

    def _join(self) -> Session:
        """Returns the session of the command around this process. Once it has ended, there is no other one."""
        with self.mutex:
            if self.orphaned:
                raise Orphaned(self.orphaned)
            if self.session is None:
                ttl = self.session_ttl or DEFAULT_TTL_MS / 1000
                self.session = Session(self.joined, "", ttl, float("inf"), now() + self.interval())
            return self.session

    def ended(self, session: Session, error: Refused) -> None:
        """Notes that the server has ended the session."""
        with self.mutex:
            if self.joined:
                self.orphaned = error.message
            if self.session is not session:
                return
            self.session = None
            lost = self._mark_all("session_ended", "the session with the lease on {} has ended: " + error.message)
        for grant in lost:
            grant.tell()

    def _mark_all(self, code: str, message: str) -> list[Grant]:
        """Takes all leases out of the table, and returns those that have to learn of it. mutex is held."""
        held = self.grants.all()
        lost = [g for g in held if g.mark(code, message.replace("{}", ", ".join(g.keys), 1))]
        for grant in held:
            self.grants.remove(grant.id)
        return lost

    def within(self, steps: Callable[[Session], Steps[Reply]], outlives: bool = False) -> Steps[tuple[Reply, Session]]:
        """Carries out a request of the session; if the session is gone, once more in a new one.

        The new session knows nothing of the key of the request. So one whose effect outlives its session is not
        repeated if an attempt at it was not answered: the error is OutcomeUnknown.
        """
        for last in (False, True):
            session = yield from self.open()
            try:
                reply = yield from steps(session)
                return reply, session
            except Refused as error:
                if error.code not in GONE or last:
                    raise
                self.ended(session, error)
                if outlives and error.unsure:
                    raise OutcomeUnknown(
                        "the session has ended since the request was sent, and no answer came: the outcome is unknown"
                    ) from error
        raise AssertionError("unreachable")

    # Leases.

    def acquire(self, ask: Ask) -> Steps[Hold]:
        """Asks once, and then stands in line."""
        began, pace = now(), Pace()
        while True:
            try:
                hold = yield from self._attempt(ask, began)
                if hold is not None:
                    return hold
            except Refused as error:
                unanswered = error.code == "parked" and ask.operation == "resumeLease"
                if not (unanswered or error.code in _ANEW) or now() >= began + ask.wait:
                    raise
            yield from pace.next()

    def _attempt(self, ask: Ask, began: float) -> Steps[Hold | None]:
        """Asks once, and stands in line. None: the server has granted a lease that is over, or just given up here.

        One that was given back comes no more. If the server grants it for longer than its ttl, or keeps one that is
        another process's to give back, the error is WaitTimeout.
        """
        deadline, pace = began + ask.wait, Pace()
        key = new_key()
        conflict = "preempt" if ask.preempt else "wait" if ask.wait > 0 else "fail"
        undo: Callable[[], Steps[Any]] | None = None
        reached = False
        ticket: Ticket | None = None
        try:

            def begin(session: Session) -> Steps[Reply]:
                nonlocal undo
                body = {**ask.body, "session": session.id, "on_conflict": conflict, "wait_ms": 0}
                if ask.operation == "acquireLease" and self.seat is not None and self.seat.before is not None:
                    body["take_over"] = self.seat.before
                if ask.operation == "arriveAtBarrier":
                    del body["on_conflict"]
                wait = 0.0
                if conflict == "fail":
                    del body["wait_ms"]
                elif ask.operation == "resumeLease":  # a person may have to answer first
                    wait = max(0.0, min(ask.poll, deadline - now()))
                    body["wait_ms"] = ms(wait)
                if ask.of_lease:
                    del body["session"]
                undo = partial(self._take_back, ask, body, key)
                return (yield from self.caller.request(ask.operation, path=ask.path, body=body, key=key, wait=wait))

            reply, session = yield from self.within(begin)
            reached = True
            holders: Any = []
            while reply.status == 202:
                answer = reply.parse()
                ticket = cast(Ticket, answer["ticket"])
                holders = answer["holders"]
                undo = partial(self._quit, ask, ticket["id"])
                self.tickets.add(ticket["id"])
                if ask.on_queued is not None:
                    ask.on_queued(ticket)
                error = ask.own(self._over(ask, holders, answer)) if ask.own is not None else None
                if error is not None:
                    yield from undo()
                    undo = None
                    raise error
                left = deadline - now()
                if left <= 0:
                    yield from undo()
                    undo = None
                    raise self._over(ask, holders, answer)
                wait = min(ask.poll, left)
                reply = yield from self.caller.request(
                    "getTicket", path={"id": ticket["id"]}, query={"wait_ms": ms(wait)}, wait=wait
                )
                if reply.status == 202:
                    yield from pace.next(wait)
            lease = reply.parse()["lease"]["id"]
            undo = None if ask.of_lease or self._is_borrowed(reply) else partial(self._undo, ask, lease)
            if lease not in self.leaving and now() - reply.sent > FRESH:
                # The answer is that of a long wait: count the time from a request that is answered at once.
                reply = yield from self._again_from_now(ask, lease, reply)
            hold = self.granted(reply, session.id)
            if hold is None:
                if undo is None and not self.joined:  # a change came too late for a lease that was lost here
                    undo = partial(self._return, lease)
                if undo is not None:
                    yield from undo()
                    deadline = max(deadline, began + reply.parse()["lease"]["ttl_ms"] / 1000)
                undo = None
                if now() >= deadline:
                    raise self._past(ask, reply)
            undo = None
            return hold
        except (Refused, Unreachable) as error:
            if not reached or (isinstance(error, Refused) and decided(error)):
                undo = None  # it has left the line, or never stood there
                raise
            raise OutcomeUnknown(
                f"{error.message}, since the request was in line: what it has got is given back"
            ) from error
        finally:
            if ticket is not None and not self.closed:
                self.tickets.discard(ticket["id"])
            if undo is not None:
                self.later(undo)

    def _again_from_now(self, ask: Ask, lease: str, granted: Reply) -> Steps[Reply]:
        """Returns the answer of a grant with the state and the time that its lease has by now."""
        try:
            reply = yield from self.caller.request("getLease", path={"id": lease})
        except Refused as error:
            if ask.of_lease or error.code not in ENDED:
                raise
            granted.parse()["lease"].update(state="ended", ended_by=error.code)
            return granted
        granted.parse()["lease"] = reply.parse()["lease"]
        granted.sent = reply.sent
        return granted

    def _over(self, ask: Ask, holders: Any, answer: Any) -> WaitTimeout:
        names = ", ".join(sorted({h["agent"] for h in holders})) or "others"
        session = self.session
        if session is not None and holders and all(holder["session"] == session.name for holder in holders):
            names += " (another thread or task of this client)"
        text = f"{answer.get('key') or ask.what} is held by {names}, and the wait of {ask.wait:g} s is over"
        return self._timeout(text, holders, answer, answer["ticket"]["eta_ms"])

    def _past(self, ask: Ask, reply: Reply) -> WaitTimeout:
        """Returns the error of an acquisition that the server only answers with a lease that is over."""
        answer = reply.parse()
        lease = answer["lease"]
        who = "the command around this process" if self._is_borrowed(reply) else "this agent"
        text = f"{ask.what} is not free: the lease that {who} had is over, and the server still has it"
        return self._timeout(text, [lease["holder"]], answer, lease.get("expires_in_ms") or lease["ttl_ms"])

    @staticmethod
    def _timeout(text: str, holders: Any, answer: Any, after: int) -> WaitTimeout:
        advice = {
            "action": "wait",
            "retry_after_ms": after,
            "message": "do other work, then ask again",
        }
        problem: dict[str, Any] = {
            "type": "",
            "title": "The wait is over",
            "status": 409,
            "code": "held",
            "detail": text,
            "retryable": True,
            "advice": advice,
            "holders": holders,
            "at": answer["at"],
            "server_time": answer["server_time"],
        }
        if answer.get("key"):
            problem["key"] = answer["key"]
        shaped: Problem = problem  # type: ignore[assignment]
        return WaitTimeout(shaped)

    def granted(self, reply: Reply, session: str) -> Hold | None:
        """Takes note of a lease. A flow that has it already gets another hold on the same one.

        None: the lease is just being given up here, or has ended since it was granted, as its session has.
        """
        answer = reply.parse()
        lease = answer["lease"]
        with self.mutex:
            grant = self.grants.get(lease["id"])
        if not _is_held(lease):
            if grant is not None:
                self._over_there(grant, lease)
            return None
        with self.mutex:
            grant = self.grants.get(lease["id"])
            if grant is not None and grant.loss is not None:  # a check has found it before the keeper
                self.grants.remove(grant.id)
                self.leaving[grant.id] = now()
            if lease["id"] in self.leaving:
                return None
            if self.session is not None and not self.session.name:
                self.session.name = lease["holder"]["session"]
            if grant is None:
                grant = Grant(lease, session, reply.sent)
                grant.borrowed = self._is_borrowed(reply)
                hold = Hold(grant)
                self.grants.add(grant)
            else:
                hold = Hold(grant)
                grant.take(lease, reply.sent)
            grant.bring(answer)
            late = self._is_late(grant, reply.sent)
        if late:
            self.wake()
        return hold

    def again(self, grant: Grant) -> Hold:
        """Makes another hold on a lease. The error is LeaseLost if it is not held any more."""
        grant.expire(now())
        with self.mutex:
            if grant.loss is not None:
                raise grant.error()
            return Hold(grant)

    def _is_borrowed(self, reply: Reply) -> bool:
        """Whether a lease is that of another process of the session, such as the command around this one."""
        answer = reply.parse()
        return bool(self.joined and answer.get("reused") and not self.grants.owns(answer["lease"]["id"]))

    def adopt(self, lease: Any, session: str, sent: float, attempt: bool = False) -> Hold:
        """Takes note of a lease that came without a request of its own, such as that of a task."""
        with self.mutex:
            grant = Grant(lease, session, sent)
            grant.attempt = attempt
            hold = Hold(grant)
            over = grant.id in self.leaving or not _is_held(lease)
            if not over:
                self.grants.add(grant)
            late = self._is_late(grant, sent)
        if over:
            grant.lose("ended", f"the lease on {', '.join(grant.keys)} has ended")
        if late:
            self.wake()
        return hold

    def _is_late(self, grant: Grant, sent: float) -> bool:
        """Notes when a lease needs a heartbeat, and reports whether the keeper looks after that. mutex is held.

        Most leases of a busy client need none before the keeper looks anyway, and waking its thread costs a request as
        much as a system call does.
        """
        beat = float("inf")
        if self.session is not None:
            beat = self.session.next_beat = min(self.session.next_beat, sent + self.interval())
        return min(grant.end, beat) < self.looks

    def check(self, grant: Grant) -> None:
        """Raises LeaseLost unless the lease is held. No request is sent."""
        if self.forked:
            raise ForkedError
        grant.expire(now())
        if grant.loss is not None:
            raise grant.error()

    def under(self, grants: Sequence[Grant], steps: Steps[T]) -> Steps[T]:
        """Carries out steps that need leases. If one is lost, before or meanwhile, the error is LeaseLost.

        A refusal may only be the result of what this client did after the loss, as it releases what it has lost: the
        first reason counts.
        """
        for grant in grants:
            self.check(grant)
        try:
            return (yield from steps)
        except Refused as error:
            if error.code not in ENDED:
                raise
            if len(grants) == 1:
                self.end(grants[0], error.code, error.message)
            for grant in grants:
                if grant.loss is not None:
                    raise grant.error() from error
            raise

    def end(self, grant: Grant, code: str, message: str) -> None:
        """Notes that the server has ended a lease."""
        with self.mutex:
            if self.grants.get(grant.id) is grant:
                self.grants.remove(grant.id)
            first = grant.mark(code, message)
        if first:
            grant.tell()

    def _over_there(self, grant: Grant, lease: Mapping[str, Any]) -> None:
        self.end(grant, lease.get("ended_by") or "ended", f"the lease on {', '.join(grant.keys)} has ended")

    def drop(self, grant: Grant, hold: Hold | None, code: str, message: str) -> bool:
        """Drops one hold, and reports whether it was the last one of a lease that is held."""
        with self.mutex:
            if hold is not None:
                grant.holds.discard(hold)
            if len(grant.holds) > 0 or not grant.mark(code, message):
                return False
            self.grants.remove(grant.id)
            if not grant.borrowed:
                self.leaving[grant.id] = now()
        grant.tell()
        return True

    def release(
        self, grant: Grant, hold: Hold | None, outcome: str | None = None, note: str | None = None
    ) -> Steps[None]:
        """Releases a lease. A release that gets no answer is repeated in the background.

        The error is LeaseLost if the lease was not held any more.
        """
        key = new_key()
        done = False
        outcome = None if outcome is None else clip(outcome, MAX_NAME_BYTES)
        note = None if note is None else clip(note, MAX_NOTE_BYTES)
        try:
            grant.expire(now())
            if not self.drop(grant, hold, "released", f"the lease on {', '.join(grant.keys)} was released"):
                done = True
                if grant.loss is not None:
                    raise grant.error()
                return
            if not grant.borrowed:
                yield from self._free(grant.id, outcome, note, key)
            done = True
        except (OutcomeUnknown, Unreachable):
            pass
        except Refused as error:
            if decided(error):
                done = error.code in ENDED
                if error.code == "released":
                    return  # by an earlier attempt at this release
                if done:
                    grant.loss = LeaseLost(error.code, error.message, grant.keys)
                    raise grant.error() from error
                outcome, note, key = None, None, new_key()  # the text was refused, and not the release
                raise
        finally:
            if not done:
                self.later(lambda: self._return(grant.id, outcome, note, key))

    def parked(self, grant: Grant) -> None:
        """Notes that a lease is parked, for all handles on it. It may come back."""
        with self.mutex:
            if not grant.mark("parked", f"the lease on {', '.join(grant.keys)} is parked"):
                raise grant.error()
            self.grants.remove(grant.id)
        grant.tell()

    def settle(self, grant: Grant) -> None:
        """Notes that the server has ended a lease by an answer, as that to an acknowledgement."""
        self.end(grant, "released", f"the lease on {', '.join(grant.keys)} has ended with its task")

    def update(self, grant: Grant, reply: Reply) -> None:
        """Takes the present state of a lease from an answer."""
        with self.mutex:
            grant.take(reply.parse()["lease"], reply.sent)
            grant.bring(reply.parse())
        self.wake()

    def _free(self, lease: str, outcome: str | None, note: str | None, key: str | None) -> Steps[Reply]:
        body = without_none({"outcome": outcome, "note": note})
        return (yield from self.caller.request("releaseLease", path={"id": lease}, body=body, key=key))

    def give_back(
        self, lease: str, outcome: str | None = None, note: str | None = None, key: str | None = None
    ) -> Steps[None]:
        """Releases a lease, if it has not ended."""
        try:
            yield from self._free(lease, outcome, note, key)
        except Refused as error:
            if not final(error):
                raise
            logger.debug("release: %s", error)  # it has ended

    def _return(
        self, lease: str, outcome: str | None = None, note: str | None = None, key: str | None = None
    ) -> Steps[None]:
        """Releases a lease, unless there is a hold on it."""
        if self._gives_up(lease):
            yield from self.give_back(lease, outcome, note, key)

    def _gives_up(self, lease: str) -> bool:
        """Notes that a lease is given up here, unless there is a hold on it.

        From then on nobody here gets it, although the server may still grant it to its flow.
        """
        with self.mutex:
            grant = self.grants.get(lease)
            if grant is not None and len(grant.holds) > 0 and lease not in self.leaving:
                return False
            self.leaving[lease] = now()
            self.leaving.move_to_end(lease)
            return True

    def _quit(self, ask: Ask, ticket: str) -> Steps[None]:
        """Leaves the line. The server releases what was granted meanwhile, which has the number of the ticket."""
        lease = "l_" + ticket[2:]
        if ask.of_lease:
            yield from self._leave(ticket)
        elif self._gives_up(lease):
            yield from self._leave(ticket)
            if ask.operation == "resumeLease":  # it is parked again, and may be resumed
                self.leaving.pop(lease, None)

    def _leave(self, ticket: str) -> Steps[None]:
        yield from self.caller.request("deleteTicket", path={"id": ticket})

    def _undo(self, ask: Ask, lease: str) -> Steps[None]:
        """Gives back what an acquisition has got."""
        if ask.operation == "resumeLease":
            yield from self._quit(ask, "t_" + lease[2:])
        else:
            yield from self._return(lease)

    def _take_back(self, ask: Ask, body: Mapping[str, Any], key: str) -> Steps[None]:
        """Finds out what a request has brought by its key, and gives that back."""
        now_ms = {"wait_ms": 0} if "wait_ms" in body else {}  # the keeper must not wait
        reply = yield from self.caller.request(ask.operation, path=ask.path, body={**body, **now_ms}, key=key)
        answer = reply.parse()
        if reply.status == 202:
            yield from self._quit(ask, answer["ticket"]["id"])
        elif not ask.of_lease and not self._is_borrowed(reply):
            yield from self._undo(ask, answer["lease"]["id"])

    # The keeper.

    def later(self, steps: Callable[[], Steps[Any]], report: bool = False) -> None:
        """Lets the keeper do something, until a server has answered or the client is closed."""
        if not self.closed and not self.forked:
            self.jobs.append(Job(steps, report))
            self.wake()

    def report(self, steps: Callable[[], Steps[Any]], what: str) -> Steps[None]:
        """Reports an end. If no server answers, or the caller is interrupted, the keeper goes on with it.

        steps may be carried out several times, so their requests have the same keys each time.
        """
        done = False
        try:
            yield from steps()
            done = True
        except (OutcomeUnknown, Unreachable) as error:
            logger.warning("%s is reported when the server is back: %s", what, error.message)
        except Refused as error:
            done = final(error)
            if done:
                raise
            logger.warning("%s is reported when the server accepts it: %s", what, error.message)
        except LeaseLost:
            done = True
            raise
        finally:
            if not done:
                self.later(steps, report=True)

    def keep(self) -> Steps[None]:
        """Keeps the session alive, until the client is closed. It never raises an error."""
        while not self.closed:
            yield Idle(self._idle())
            if self.closed:
                return
            self.expire()
            if self._due():
                yield from self._beat()
                self.expire()
            for _ in range(len(self.jobs)):
                job = self.jobs.popleft()
                if job.after > now():
                    self.jobs.append(job)
                    continue
                self.at = job
                yield from self._work(job)
                self.at = None
                self.expire()
                if self._due():
                    break

    def _idle(self) -> float:
        moment = now()
        with self.mutex:
            ends = [g.end for g in self.grants.all()]
            beat = [self.session.next_beat] if self.session else []
            jobs = [job.after for job in list(self.jobs)]  # a copy, as threads append to it without the mutex
            self.looks = max(moment, min([moment + MOST_IDLE, *ends, *beat, *jobs]))
        return self.looks - moment

    def _due(self) -> bool:
        session = self.session
        return session is not None and now() >= session.next_beat

    def expire(self) -> None:
        """Ends the leases whose time is up, or that nobody holds any more, and gives them back.

        The session may turn out to live on after its leases seem to have run out.

        The lease of an attempt at a task is given back by the attempt's report, which comes in any case.
        """
        moment = now()
        with self.mutex:
            gone = self.grants.collected()
            held = self.grants.all()
            over = [g for g in held if moment >= g.end]
            lost = [g for g in over if g.mark_over(moment)]
            dropped = [g for g in held if len(g.holds) == 0 and (self._forget(g) or g not in over)]
            for grant in [*over, *dropped]:
                self.grants.remove(grant.id)
                if not grant.borrowed:
                    self.leaving[grant.id] = moment
            for lease, _ in gone:
                self.leaving[lease] = moment
            while self.leaving:
                lease, since = next(iter(self.leaving.items()))
                if moment - since <= REMEMBER:
                    break
                del self.leaving[lease]
        for grant in [*lost, *dropped]:
            grant.tell()
        for grant in over:
            if not grant.borrowed and not (grant.attempt and len(grant.holds)):
                self.later(partial(self.give_back, grant.id))
        gone += [(grant.id, grant.keys) for grant in dropped if not grant.borrowed]
        for lease, keys in gone:
            logger.warning("%s", FORGOTTEN.format(", ".join(keys)))
            self.later(partial(self.give_back, lease))

    @staticmethod
    def _forget(grant: Grant) -> bool:
        return grant.mark("forgotten", FORGOTTEN.format(", ".join(grant.keys)))

    def stood_still(self, seconds: float) -> None:
        """Warns if what keeps the leases has had no turn for so long that they may be lost."""
        with self.mutex:
            ttl = self.shortest()
            late = len(self.grants) > 0 and seconds > ttl / 3
        if late:
            logger.warning(
                "the event loop stood still for %.1f s, and a lease with a ttl of %g s needs a heartbeat every %.1f s: "
                "it may be lost, and its work be done again. Move what computes or blocks to a thread, "
                'or have a thread keep the leases: AsyncClient(..., keeper="thread")',
                seconds,
                ttl,
                ttl / 3,
            )

    def _bound(self) -> Callable[[], float]:
        """Returns a function for the time that an attempt of the keeper may take: it must see each lease end."""
        with self.mutex:
            quarter = max(self.shortest() / 4, LEAST_ANSWER)
            first = min([g.end for g in self.grants.all()], default=float("inf"))
        return lambda: min(quarter, max(first - now(), 0.05))

    def _try(self, steps: Steps[T], bound: Callable[[], float] | None = None, patient: bool = True) -> Steps[T]:
        """Carries out steps with a bound for each attempt: the keeper's, unless there is another.

        Without patience the error is Unreachable as soon as they would pause: no lease is to wait with them.
        """
        limit = bound or self._bound()
        value: Any = None
        thrown: Exception | None = None
        while True:
            try:
                effect = steps.send(value) if thrown is None else steps.throw(thrown)
            except StopIteration as stop:
                result: T = stop.value
                return result
            value, thrown = None, None
            if isinstance(effect, Pause) and not patient:
                steps.close()
                raise Unreachable("no server has answered yet")
            if isinstance(effect, Send):
                effect = replace(effect, timeout=min(effect.timeout, limit()))
            try:
                value = yield effect
            except Exception as error:  # it belongs to the steps
                thrown = error

    def _beat(self) -> Steps[None]:
        session = self.session
        if session is None:
            return
        if self.joined:  # its command keeps it alive, and takes the losses of its heartbeats
            session.doubt = True
            yield from self._verify(session, "renewLease")
            if session.doubt:
                self._again(session)
            else:
                with self.mutex:
                    session.next_beat = now() + self.interval()
            return
        progress = self.progress if self.progress != self.sent_progress else None
        known, counted = self._known(session)
        body = without_none({"progress": progress, "known": known})
        try:
            reply = yield from self._try(
                self.caller.request("heartbeatSession", path={"id": session.id}, body=body, retry_for=0)
            )
        except Refused as error:
            if error.code in GONE:
                self.ended(session, error)
                return
            level = logging.INFO if error.code in TRANSIENT else logging.WARNING
            self.seldom.log(now(), level, error.code, f"the heartbeat was refused: {error}")
            self._again(session)
        except InterlockError as error:
            logger.info("the heartbeat failed: %s", error)
            session.doubt = session.doubt or isinstance(error, OutcomeUnknown)
            self._again(session)
        else:
            try:
                self._confirmed(session, reply, progress, counted)
            except (KeyError, TypeError) as error:  # something in between has answered
                text = f"the answer to the heartbeat is not one of Interlock: {error!r}"
                self.seldom.log(now(), logging.ERROR, "answer", text)
                session.doubt = True
                self._again(session)
            if session.doubt:
                yield from self._verify(session)

    def _known(self, session: Session) -> tuple[dict[str, Any] | None, frozenset[str]]:
        """Returns what a heartbeat tells of the leases that are held here, and which of them it renews.

        More leases than a list may have are not told: then it renews all of the session.
        """
        with self.mutex:
            ids = [g.id for g in self.grants.all() if g.session == session.id and g.loss is None]
        counted = frozenset(ids)
        if len(ids) > MAX_KNOWN:
            return None, counted
        if session.wants_list:
            return {"leases": ids}, counted
        digest = 0
        for lease in ids:
            digest ^= int(lease[2:], 16)
        return {"count": len(ids), "digest": f"{digest:032x}"}, counted

    def _verify(self, session: Session, operation: str = "getLease") -> Steps[None]:
        """Asks for each lease, or renews it.

        The server reports a loss once, and that answer may be one that has not arrived.
        """
        with self.mutex:
            grants = [grant for grant in self.grants.values() if grant.session == session.id]
        for grant in grants:
            self.expire()
            if grant.loss is not None:
                continue
            try:
                body = None if operation == "getLease" else without_none({"progress": self.progress})
                reply = yield from self._try(self.caller.request(operation, {"id": grant.id}, None, body, retry_for=0))
            except Refused as error:
                if error.problem["status"] not in (404, 410) and error.code not in ENDED:
                    return
                self.end(grant, error.code, error.message)
            except InterlockError:
                return  # the next heartbeat tries again
            else:
                lease = reply.parse()["lease"]
                with self.mutex:
                    grant.take(lease, reply.sent)
                if not _is_held(lease):
                    self._over_there(grant, lease)
        session.doubt = False

    def _again(self, session: Session) -> None:
        with self.mutex:
            session.next_beat = now() + random.uniform(0.05, min(1.0, self.shortest() / 8))

    def _confirmed(self, session: Session, reply: Reply, progress: str | None, counted: frozenset[str]) -> None:
        """Takes the answer to a heartbeat. It renews those that were counted, or none if the server counts others."""
        answer = reply.parse()
        lost: list[Grant] = []
        with self.mutex:
            if progress is not None:
                self.sent_progress = progress
            session.wants_list = bool(answer.get("wants_list"))
            if not session.wants_list and not session.doubt:
                gone = {loss["lease"]["id"] for loss in answer["losses"]}
                for grant in self.grants.all():
                    if grant.id in counted and grant.id not in gone:
                        grant.confirm(reply.sent, progress is not None)
            for loss in answer["losses"]:
                held = self.grants.get(loss["lease"]["id"])
                if held is not None:
                    self.grants.remove(held.id)
                    if held.mark(loss["code"], loss["detail"]):
                        lost.append(held)
                else:  # the answer that grants it is still on its way
                    self.leaving[loss["lease"]["id"]] = now()
            for notice in answer["warnings"]:
                told = self.grants.get(notice["lease"]["id"])
                if told is not None:
                    told.asked = notice["lease"].get("yield")
            session.deadline = reply.sent + session.ttl
            session.next_beat = reply.sent if session.wants_list else reply.sent + self.interval()
        for grant in lost:
            grant.tell()

    def _work(self, job: Job, bound: Callable[[], float] | None = None) -> Steps[bool]:
        """Carries out a job, and reports whether it is settled; else it comes again later."""
        try:
            yield from self._try(job.steps(), bound, patient=False)
        except InterlockError as error:
            if not (isinstance(error, LeaseLost) or (isinstance(error, Refused) and final(error))):
                job.tries += 1
                job.after = now() + random.uniform(0.05, min(0.1 * 2 ** min(job.tries, 8), MOST_AFTER))
                self.jobs.append(job)
                return False
            logger.debug("nothing to give back: %s", error)
        except Exception:  # the keeper has leases to keep
            logger.exception("a report, or what is given back, has failed")
        return True

    # The end.

    def close(self) -> Steps[None]:
        """Ends the session: its leases are released, its waits end."""
        with self.mutex:
            self.closed = True
            session, self.session = self.session, None
            opening, self.opening = self.opening, None
            own = [lease for lease, _ in self.grants.collected()]
            own += [grant.id for grant in self.grants.all() if not grant.borrowed]
            held = self._mark_all("closed", "the client that held the lease on {} is closed")
        for grant in held:
            grant.tell()
        if opening is not None:  # its answer comes to nobody
            self.jobs.append(Job(partial(self._uncreate, opening.key), report=True))
        self.wake()
        yield from self._last_reports()
        ended = session is not None and (yield from self._end(session, own))
        if self.seat is not None:
            self.seat.leave(ended)

    def _end(self, session: Session, own: list[str]) -> Steps[bool]:
        """Ends the session, or of a command's session what is the client's, and returns whether it is over."""
        ends = [("deleteSession", session.id)]
        if self.joined:  # that session is its command's
            ends = [*(("deleteTicket", ticket) for ticket in self.tickets), *(("releaseLease", lease) for lease in own)]
        for operation, name in ends:
            body: dict[str, Any] | None = {} if operation == "releaseLease" else None
            try:
                steps = self.caller.request(operation, {"id": name}, None, body, retry_for=1.0)
                yield from self._try(steps, lambda: GOODBYE)
            except Refused as error:
                logger.debug("the end of the client: %s", error)  # it has ended
            except InterlockError as error:
                logger.info("no server has answered to the end of the client, its leases run out: %s", error)
                return False
        return True

    def _last_reports(self) -> Steps[None]:
        """Tries the reports that have got no answer once more, for a moment; also that which the keeper is at."""
        until = now() + GOODBYE
        for job in [self.at, *list(self.jobs)]:
            if job is None or not (job.report or self.joined):  # the end of its session settles the others
                continue
            if now() >= until or not (yield from self._work(job, lambda: max(until - now(), 0.05))):
                logger.warning("the client is closed before a server has taken its reports")
                return


def _is_held(lease: Any) -> bool:
    return lease.get("state", "held") in ("held", "soft")


def claims_of(
    keys: Sequence[str | Mapping[str, Any]], mode: str | None, permits: int | None, parties: int | None
) -> list[dict[str, Any]]:
    """Returns the claims of a request. A key may be a claim, as the HTTP API has it."""
    claims: list[dict[str, Any]] = []
    for key in keys:
        if not isinstance(key, str):
            claims.append(dict(key))
        elif permits is not None:
            claims.append({"key": key, "permits": permits})
        elif parties is not None:
            claims.append({"key": key, "parties": parties})
        elif mode is not None:
            claims.append({"key": key, "mode": mode})
        else:
            claims.append({"key": key})
    return claims


__all__ = ["Ask", "Core", "Held", "Job", "Session", "claims_of"]
