"""How a worker gets tasks, and how it reports the end of each attempt."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from ._api import MAX_NOTE_BYTES, MAX_REASON_BYTES, MAX_RESULT_BYTES, RETRYABLE
from ._call import Pace, decided, final
from ._core import ENDED, GONE, LONG_POLL, Session
from ._errors import Closed, InterlockError, LeaseLost, OutcomeUnknown, Refused, Unreachable
from ._grant import Hold
from ._ops import Operations
from ._report import Unstorable, clip, describe, frozen, mark
from ._types import ReadRequest, Task, WriteRequest
from ._wire import Pause, Reply, Steps, ms, new_key, without_none

logger = logging.getLogger("interlock")

#: What becomes of a task whose result cannot be stored.
Policy = Literal["done", "dead"]

#: A report, which may be carried out several times: it is the same each time.
Report = Callable[[], Steps[None]]

#: The longest pause between two attempts to get tasks, in seconds.
MOST_PAUSE = 5.0

#: The refusals of a report which say that the attempt has ended.
_OVER = ENDED | {"task_moved", "already_replied"}
#: The refusals of a report that another attempt may overcome, although the same report cannot.
_OVERCOME = frozenset({"stale", "parked", "denied"})


class Attempt:
    """One attempt at a task, until its end is reported. The jobs of both shells are such."""

    def __init__(self, operations: Operations, assignment: Any, hold: Hold) -> None:
        self._core = operations.core
        self._grant = hold.grant
        self.task: Task = assignment["task"]
        #: The writes, the reads, the follow-up tasks and the note that the end of the task has.
        self.writes: list[WriteRequest] = []
        self.reads: list[ReadRequest] = []
        self.tasks: list[dict[str, Any]] = []
        self.note: str | None = None
        self._settled = False  # its end is reported, or the keeper does it
        self._keys: defaultdict[str, str] = defaultdict(new_key)  # of its reports

    @property
    def payload(self) -> Any:
        """What was submitted. It is another agent's text."""
        return self.task.get("payload")

    # What a handler calls.

    def _fail(self, reason: str, delay: float | None, dead: bool) -> Steps[None]:
        yield from self._report(self._nack(clip(reason, MAX_REASON_BYTES), delay, dead))

    def _ask(self, question: str, limit: float | None) -> Steps[None]:
        body = without_none({"question": question, "limit_ms": ms(limit)})
        yield from self._report(partial(self._request, new_key(), "requestApproval", body))

    def _report(self, report: Report) -> Steps[None]:
        """Carries out a report. If no server answers, the keeper goes on with it. A refusal leaves the attempt open."""
        if not self._is_open():
            ended = "the end of the attempt has been reported"
            raise self._grant.error() if self._grant.loss else LeaseLost("released", ended, self._grant.keys)
        try:
            yield from self._core.report(report, f"the end of the attempt at task {self.task['id']}")
        except LeaseLost:
            self._settled = True
            raise
        self._settled = True

    # The end.

    def _end(self, report: Report) -> Steps[None]:
        """Reports the end, unless the attempt has ended."""
        if self._is_open():
            try:
                yield from self._report(report)
            except LeaseLost as loss:
                logger.info("the attempt at task %s had ended: %s", self.task["id"], loss.message)

    def _leave(self, report: Report | None = None) -> None:
        """Has the keeper report the end, unless that is done: whatever has come in between."""
        if self._is_open():
            self._settled = True
            self._core.later(report or self._nack("the attempt ended without a report"), report=True)

    def _is_open(self) -> bool:
        """Whether there may be an end to report: the server decides about a lease that is only not confirmed."""
        loss = self._grant.loss
        return not self._settled and (loss is None or loss.code == "expired")

    def _returned(self, result: Any, unstorable: Policy) -> Report:
        """Returns the report after the handler has returned. The work is done: no refusal may have it repeated."""
        unrun = _unrun(result)
        if unrun:
            return self._nack(f"the handler has returned {unrun}, which nobody runs: return a result")
        try:
            body = frozen({"writes": self.writes, "reads": self.reads, "tasks": self.tasks})
        except Unstorable as error:
            return self._nack(clip(f"the writes or tasks cannot be stored: {error}", MAX_REASON_BYTES), dead=True)
        body = {name: value for name, value in body.items() if value}
        if self.note is not None:
            body["note"] = clip(self.note, MAX_NOTE_BYTES)
        results: list[Any] = [result]
        if result is not None:
            problem = "the server does not take it"
            try:
                results = [frozen(result, MAX_RESULT_BYTES)]
            except Unstorable as error:
                results, problem = [], str(error)
                logger.warning("the result of task %s is not stored: %s", self.task["id"], problem)
            if unstorable == "done":
                results.append(mark(problem))
            elif not results:
                return self._nack(clip(f"result not stored: {problem}", MAX_REASON_BYTES), dead=True)
        return partial(self._acknowledge, [without_none({**body, "result": one}) for one in results])

    def _raised(self, error: BaseException) -> Report:
        """Returns the report after the handler has raised an error."""
        return self._nack(describe(error))

    def _nack(self, reason: str, delay: float | None = None, dead: bool = False) -> Report:
        """Returns the report of a failure. Of the second body nothing can be refused but the report as such."""
        first = without_none({"reason": reason, "delay_ms": ms(delay), "dead": dead or None})
        return partial(self._give_up, [first, without_none({"reason": "it has failed", "dead": dead or None})])

    def _acknowledge(self, bodies: Sequence[Mapping[str, Any]]) -> Steps[None]:
        refusal: Refused | None = None
        for number, body in enumerate(bodies):
            try:
                yield from self._request(self._keys[f"ack {number}"], "ackTask", body)
                return
            except Refused as error:
                if not final(error):
                    raise
                refusal = error
            if not _is_hopeless(refusal):
                break
        assert refusal is not None
        logger.warning("the end of task %s was refused: %s", self.task["id"], refusal)
        delay = 0.0 if refusal.code == "stale" else None  # the next attempt reads anew
        yield from self._nack(clip(refusal, MAX_REASON_BYTES), delay, _is_hopeless(refusal))()

    def _give_up(self, bodies: Sequence[Mapping[str, Any]]) -> Steps[None]:
        for number, body in enumerate(bodies):
            try:
                yield from self._request(self._keys[f"nack {number}"], "nackTask", body)
                return
            except Refused as error:
                if not final(error):
                    raise
                logger.warning("the failure of task %s was refused: %s", self.task["id"], error)
        yield from self._core.give_back(self._grant.id)
        self._core.settle(self._grant)

    def _request(self, key: str, operation: str, body: Mapping[str, Any]) -> Steps[None]:
        """Ends the attempt. If it has ended before, the error is LeaseLost."""
        try:
            yield from self._core.caller.request(operation, path={"id": self._grant.id}, body=body, key=key)
        except Refused as error:
            if error.code not in _OVER:
                raise
            self._core.end(self._grant, error.code, error.message)
            raise self._grant.error() from error
        self._core.settle(self._grant)


class Puller:
    """Gets tasks of a queue, through outages of any length unless it is to come to an end."""

    def __init__(self, operations: Operations, queue: str, wait: float, once: bool) -> None:
        operations.core.usable()
        self.core = operations.core
        self.queue = queue
        self.wait = min(wait, LONG_POLL)
        self.once = once
        #: The server hands out the same tasks under the same key, until it is known which.
        self.key = new_key()
        self.undo: Callable[[], Steps[None]] | None = None
        self.failures = 0
        self.pace = Pace()

    def take(self) -> Steps[list[tuple[Any, Hold]] | None]:
        """Returns tasks with their leases; none after a failure, and None when the client is closed."""
        try:
            return (yield from self._take())
        except Closed:
            return None

    def _take(self) -> Steps[list[tuple[Any, Hold]]]:
        try:
            reply, session = yield from self.core.within(self._begin)
        except InterlockError as error:
            if isinstance(error, Refused) and decided(error):
                self.undo = None
            self.core.usable()
            if self.once or not _passes(error):
                raise
            yield Pause(self._pause(error))
            return []
        if self.failures:
            logger.info("the server hands out tasks of %s again", self.queue)
        self.key, self.failures = new_key(), 0
        taken = []
        for assignment in reply.parse()["tasks"]:
            hold = self.core.adopt(assignment["lease"], session.id, reply.sent, attempt=True)
            grant = hold.grant
            grant.changed, grant.notes = assignment["changed"], assignment["notes"]
            grant.documents, grant.as_of = assignment["documents"], assignment["as_of"]
            if grant.loss is None:
                taken.append((assignment, hold))
        if taken:
            self.pace = Pace()
        else:
            self.undo = None
            if not self.once:
                yield from self.pace.next(self.wait)
        return taken

    def begin(self) -> None:
        """Notes that from now on the job reports the end of what was handed out."""
        self.undo = None

    def leave(self) -> None:
        """Gives back what may have been handed out in this moment."""
        if self.undo is not None:
            self.core.later(self.undo)

    def _begin(self, session: Session) -> Steps[Reply]:
        body = {"session": session.id, "max": 1}
        self.undo = partial(self._give_back, body, self.key)
        path = {"queue": self.queue}
        body = without_none({**body, "wait_ms": ms(self.wait) or None})
        return (
            yield from self.core.caller.request(
                "pullTasks", path, None, body, key=self.key, wait=self.wait, retry_for=None if self.once else 0.0
            )
        )

    def _give_back(self, body: Mapping[str, Any], key: str) -> Steps[None]:
        reply = yield from self.core.caller.request("pullTasks", {"queue": self.queue}, None, body, key=key)
        nack = {"reason": "the worker has left", "delay_ms": 0}
        for number, assignment in enumerate(reply.parse()["tasks"]):
            path = {"id": assignment["lease"]["id"]}
            try:
                yield from self.core.caller.request("nackTask", path, None, nack, key=f"{key}-{number}")
            except Refused as error:
                if not final(error):
                    raise

    def _pause(self, error: InterlockError) -> float:
        if not self.failures:
            logger.warning("no task of %s comes until the server is back: %s", self.queue, error.message)
        self.failures = min(self.failures + 1, 16)
        most = min(0.1 * 2**self.failures, MOST_PAUSE)
        return max(min(error.retry_after, MOST_PAUSE), random.uniform(0.05, most))


def _is_hopeless(refusal: Refused) -> bool:
    """Whether a report was refused because of its content, so that the work would only be repeated to the same end."""
    return not refusal.problem["retryable"] and refusal.code not in _OVERCOME


def _passes(error: InterlockError) -> bool:
    """Reports whether a later attempt to get tasks may succeed without anybody's help."""
    if isinstance(error, Refused):
        return not final(error) or error.code in RETRYABLE | GONE
    return isinstance(error, (OutcomeUnknown, Unreachable))


def check_worker(handle: Callable[..., Any], unstorable: str, asynchronous: bool) -> None:
    """Raises an error if work was called in a wrong way."""
    if unstorable not in ("done", "dead"):
        raise ValueError(f"unstorable is {unstorable!r}: it should be done or dead")
    if not callable(handle):
        raise TypeError("a handler is a function")
    for function in handle, getattr(handle, "__call__", None):  # noqa: B004
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("the handler yields, and nobody would run it: return a result")
        if not asynchronous and inspect.iscoroutinefunction(function):
            raise TypeError("the handler is awaited, and so needs an AsyncClient")


def ends_worker(error: BaseException) -> bool:
    """Reports whether an error out of a handler is meant for the whole worker, such as KeyboardInterrupt."""
    return not isinstance(error, (Exception, asyncio.CancelledError, GeneratorExit))


def _unrun(result: Any) -> str:
    """Returns what a handler has returned if its work is not done by that."""
    if inspect.iscoroutine(result):
        result.close()
        return "a coroutine"
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        return "a generator"
    return "an awaitable" if inspect.isawaitable(result) else ""


__all__ = ["Attempt", "Policy", "Puller", "check_worker", "ends_worker"]
