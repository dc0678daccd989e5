"""The client for threads."""

from __future__ import annotations

import functools
import logging
import os
import ssl
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from ._call import Caller
from ._effect import EffectClaim
from ._errors import Cancelled, Closed, ForkedError, InterlockError, LeaseLost, Refused
from ._grant import Hold
from ._guard import enter, leave
from ._handle import Handle, drop_holds
from ._join import enclose
from ._ops import Operations, Request
from ._scope import Place
from ._scope import enter as enter_place
from ._seat import Seat
from ._threads import CancelToken, Engine, thread_flow
from ._types import Committed, ReadRequest, WriteRequest, Written
from ._wire import Steps
from ._work import Attempt, Policy, Puller, Report, check_worker, ends_worker

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("interlock")

DEFAULT_URL = "http://127.0.0.1:7420"


def urls_of(url: str | Sequence[str] | None) -> list[str]:
    """Returns the addresses: given, of the environment, or that of a server on this machine."""
    if url is None:
        url = os.environ.get("INTERLOCK_URL") or DEFAULT_URL
    return [one for one in (part.strip() for part in (url.split(",") if isinstance(url, str) else url)) if one]


def caller_of(
    url: str | Sequence[str] | None,
    credential: str | None,
    namespace: str | None,
    agent: str | None,
    retry_for: float | None,
    proxy: str | None,
) -> Caller:
    """Returns the identity of a client. What is not given is of the environment."""
    return Caller(
        urls_of(url),
        credential or os.environ.get("INTERLOCK_CREDENTIAL"),
        namespace or os.environ.get("INTERLOCK_NAMESPACE"),
        retry_for,
        agent or os.environ.get("INTERLOCK_AGENT") or f"python-{os.getpid()}",
        proxy,
    )


def _blocking(steps: Callable[Concatenate[Operations, P], Steps[T]]) -> Callable[Concatenate[Client, P], T]:
    """Makes a method that blocks."""

    @functools.wraps(steps)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._engine.run(steps(self._operations, *args, **kwargs))

    return method


def _acquiring(request: Callable[Concatenate[Operations, P], Request]) -> Callable[Concatenate[Client, P], Lease]:
    """Makes a method that returns a lease."""

    @functools.wraps(request)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Lease:
        return self._lease(request(self._operations, *args, **kwargs))

    return method


def _leasing(
    request: Callable[Concatenate[Operations, P], Request],
) -> Callable[Concatenate[Client, P], LeaseContext]:
    """Makes a method that returns a context with a lease."""

    @functools.wraps(request)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> LeaseContext:
        return LeaseContext(self, lambda: request(self._operations, *args, **kwargs))

    return method


class Client:
    """One session with a server, for any number of threads.

    One thread keeps it and its leases alive; it starts with the first lease. Each thread is a flow of its own: a key
    that a flow already holds is granted to it again. The client is used in a with block, or closed by close().

    session_ttl is how long the session, with its leases, outlives its last heartbeat, in seconds: the maximum of their
    ttl. None: that of their keys' patterns counts, else 30.

    retry_for is how long a request is repeated that no server answers, in seconds: 30 if left out, but then a first
    call that finds no server at the address raises Unreachable at once. proxy is the address of a proxy of HTTP, such
    as http://user:password@proxy:3128, or "" for none; None: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY decide,
    and servers of this machine are called directly.

    In a process that `interlock run` or `interlock task work` has started, the client is part of the command's agent:
    it joins its session, so that it gets the command's keys at once. A client for another server or namespace, one
    that names another agent, and one with join=False has a session of its own. It never waits for the command: a key
    that the command holds is refused at once. A client that has joined gives back its own leases at its end, and loses
    them all when the command's session ends.

    seat is a file that stands for this process across restarts, such as /var/lib/billing/seat. It has the id of the
    session, a secret. If the process is killed, the next one with the same seat takes its leases over as it asks for
    them: at once, ahead of the line, each under a new fence, while the session before lives. Two processes that run
    have never one seat: the second one gets BlockingIOError. Closing the client leaves nothing to be taken over.
    """

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        *,
        agent: str | None = None,
        credential: str | None = None,
        namespace: str | None = None,
        session_ttl: float | None = None,
        retry_for: float | None = None,
        ssl_context: ssl.SSLContext | None = None,
        proxy: str | None = None,
        join: bool = True,
        seat: str | os.PathLike[str] | None = None,
    ) -> None:
        caller = caller_of(url, credential, namespace, agent, retry_for, proxy)
        taken = None if seat is None else Seat(seat)
        self._engine = Engine(caller, session_ttl, ssl_context)
        enclose(self._engine.core, agent or None, join)
        self._engine.core.seat = taken
        self._operations = Operations(self._engine.core, thread_flow)

    acquire: Final = _acquiring(Operations.acquire)
    lease: Final = _leasing(Operations.acquire)
    resume: Final = _acquiring(Operations.resume)
    start_run: Final = _acquiring(Operations.start_run)
    status: Final = _blocking(Operations.status)
    look: Final = _blocking(Operations.look)
    why: Final = _blocking(Operations.why)
    check_fence: Final = _blocking(Operations.check_fence)
    documents: Final = _blocking(Operations.documents)
    read: Final = _blocking(Operations.read)
    claim_effect: Final = _blocking(Operations.claim_effect)
    settle_effect: Final = _blocking(Operations.settle_effect)
    submit: Final = _blocking(Operations.submit)
    task: Final = _blocking(Operations.task)
    cancel_task: Final = _blocking(Operations.cancel_task)
    send: Final = _blocking(Operations.send)
    log: Final = _blocking(Operations.log)
    approvals: Final = _blocking(Operations.approvals)
    answer: Final = _blocking(Operations.answer)

    def _lease(self, asked: Request) -> Lease:
        try:
            lease = Lease(self, self._engine.run(asked.steps), asked.place)
            enter_place(asked.place)
            return lease
        except BaseException as error:
            drop_holds(error)
            raise

    def commit(
        self,
        writes: Sequence[WriteRequest],
        reads: Sequence[ReadRequest] = (),
        note: str | None = None,
        leases: Sequence[Lease] = (),
        as_of: str | None = None,
    ) -> Committed:
        """Carries out writes, all or none, if what was read is still so. Else the error is Stale, with the changes."""
        grants = [lease._grant for lease in leases]
        return self._engine.run(self._operations.commit(writes, reads, note, grants, as_of))

    @contextmanager
    def effect(
        self, tool: str, target: str, arguments: Any = None, wait: float = 60.0, lease: Lease | None = None
    ) -> Iterator[EffectClaim]:
        """Claims an action that must not happen twice, for the body of a with block.

        If claim.done is set, it was done before, and claim.result is its result. Else the body performs it and calls
        claim.complete(result). A body that raises an error leaves an unknown outcome, unless it calls claim.cancel().

        The claim is that of this block: any other one, also of the same thread, waits for its outcome, and then gets
        EffectTaken. The report at the end of the block raises no error: without an answer it goes on in the background.
        """
        claim = EffectClaim(self._engine.run(self._operations.claim_effect(tool, target, arguments, wait, lease)))
        if claim.done:
            yield claim
            return
        self._operations.enter_effect(claim)
        try:
            yield claim
        except BaseException as error:
            self._settle(claim, error)
            raise
        self._settle(claim, None)

    def _settle(self, claim: EffectClaim, error: BaseException | None) -> None:
        """Reports how the block of a claim has ended."""
        steps = self._operations.leave_effect(claim, error)
        try:
            self._engine.run(self._engine.core.report(steps, "the outcome of an effect"))
        except InterlockError as failure:  # such as Cancelled
            logger.info("the outcome of an effect is reported later: %s", failure)

    def work(
        self,
        queue: str,
        handle: Callable[[Job], Any],
        *,
        stop: threading.Event | None = None,
        wait: float = 20.0,
        once: bool = False,
        unstorable: Policy = "done",
    ) -> None:
        """Works on the tasks of a queue, one at a time, until stop is set or the client is closed.

        The result of handle is the task's; an error is another attempt. More threads that call it work on more tasks.
        A server that is away does not end it; with once it ends when no task came, or no server answers. A result that
        cannot be stored does not have the work repeated: the task is done, with {"interlock": "result not stored",
        "reason": ...} as its result, or with unstorable="dead" it is dead.
        """
        check_worker(handle, unstorable, False)
        puller = Puller(self._operations, queue, wait, once)
        try:
            while stop is None or not stop.is_set():
                taken = self._engine.run(puller.take())
                if taken is None:
                    return
                for assignment, hold in taken:
                    Job(self, assignment, hold)._handle(puller, handle, unstorable)
                if once and not taken:
                    return
        finally:
            puller.leave()

    def watch(
        self, key: str | None = None, prefix: str | None = None, values: bool = True, start: str | None = None
    ) -> Generator[Written, None, None]:
        """Follows the writes to a key, or below a prefix, from now on or from an index of the journal.

        It goes on after a broken connection, however long the server is away, and reports each write once. It ends when
        the client is closed.
        """
        return self._engine.follow(self._operations.watch(key, prefix, values, start))

    def set_progress(self, text: str) -> None:
        """Sets what the next heartbeat reports of this client to the agents that wait for it."""
        self._operations.set_progress(text)

    @property
    def closed(self) -> bool:
        """Whether it is closed, or belongs to the parent of this process."""
        return self._engine.core.closed

    def close(self) -> None:
        """Ends the session: its leases are released, its waits end."""
        self._engine.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None and not engine.core.closed:
            warnings.warn(f"unclosed {type(self).__name__}", ResourceWarning, 2, source=self)
            engine.abandon()

    def __reduce__(self) -> Any:
        raise TypeError("a client cannot be pickled: make one in each process")


class Lease(Handle):
    """A lease that a client keeps alive, until it is released or lost."""

    def __init__(self, client: Client, hold: Hold, place: Place | None = None) -> None:
        super().__init__(client._engine.core, hold, place)
        self._client = client

    @property
    def lost(self) -> threading.Event:
        """An event that is set when the lease is not held any more: wait for it, or look at it between steps."""
        return self._grant.ended

    def release(self, outcome: str | None = None, note: str | None = None) -> None:
        """Releases the lease, with a note for the next holders. A second call does nothing.

        The error is LeaseLost if it was not held any more.
        """
        loss = self._end(outcome, note)
        if loss is not None:
            raise LeaseLost(loss.code, loss.message, loss.keys)

    def _end(self, outcome: str | None = None, note: str | None = None) -> LeaseLost | None:
        """Releases the lease, once, and returns why it was not held any more."""
        if self._released:
            return None
        if self._core.forked:
            raise ForkedError
        hold = self._ref()
        self._released, self._kept = True, None
        try:
            self._client._engine.run(self._core.release(self._grant, hold, outcome or self.outcome, note or self.note))
        except LeaseLost as error:
            self._verdict = error
        return self._verdict

    def renew(self, ttl: float | None = None, progress: Any = None) -> None:
        """Renews the lease now, and may change its ttl. Heartbeats renew it without this."""
        self._client._engine.run(self._client._operations.renew(self._grant, ttl, progress))

    def convert(self, *claims: str | dict[str, Any], wait: float = 60.0) -> None:
        """Replaces the claims by others. The old ones stay until the new ones are granted."""
        self._client._engine.run(self._client._operations.convert(self._grant, claims, wait))

    def arrive(self, wait: float = 60.0) -> None:
        """Arrives at the barrier again, and waits for the other parties."""
        self._client._engine.run(self._client._operations.arrive(self._grant, wait))

    def park(self, reason: str | None = None, keep: bool | None = None, for_: float | None = None) -> str:
        """Parks the lease, which then needs no heartbeat; with a reason it asks a person. Returns the id to resume."""
        return self._client._engine.run(self._client._operations.park(self._grant, reason, keep, for_))

    def commit(
        self, writes: Sequence[WriteRequest], reads: Sequence[ReadRequest] = (), note: str | None = None
    ) -> Committed:
        """Commits writes under this lease."""
        return self._client.commit(writes, reads, note, [self])

    def __enter__(self) -> Lease:
        enter(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        leave(self)
        self._failed(error)
        try:
            loss = self._end()
        except Refused as refusal:  # it is given back in the background
            if error is None:
                raise
            logger.warning("the release of the lease on %s was refused: %s", ", ".join(self.keys), refusal)
            return
        except ForkedError:
            if error is None:
                raise
            return
        if loss is not None:
            if error is None:
                raise LeaseLost(loss.code, loss.message, loss.keys)
            if error.__context__ is None and not isinstance(error, LeaseLost):
                error.__context__ = loss


class LeaseContext:
    """A lease for the body of a with block.

    The hold is that of the block: so a lease whose block an interrupt has ended is given back, although the program may
    still have a name for it.
    """

    def __init__(self, client: Client, request: Callable[[], Request]) -> None:
        self._client = client
        self._request = request
        self._lease: Lease | None = None
        self._hold: Hold | None = None

    def __enter__(self) -> Lease:
        if self._lease is not None:
            raise RuntimeError("the lease of this block is held already: call client.lease again")
        lease = self._client._lease(self._request())
        try:
            self._lease = lease
            self._hold, lease._kept = lease._kept, None
            return lease.__enter__()
        except BaseException:  # an interrupt: the block does not begin
            self._lease = self._hold = lease._kept = None
            leave(lease)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        lease = self._lease
        if lease is None:
            return
        try:
            lease.__exit__(kind, error, at)
        finally:  # also if an interrupt has come before the release
            self._lease = self._hold = None
            leave(lease)


class Job(Attempt):
    """One attempt at a task, with the lease on its claims."""

    def __init__(self, client: Client, assignment: Any, hold: Hold) -> None:
        super().__init__(client._operations, assignment, hold)
        self._client = client
        self.lease: Lease = Lease(client, hold)

    def fail(self, reason: str, delay: float | None = None, dead: bool = False) -> None:
        """Reports that the attempt has failed: there is another one after a pause, unless it is dead.

        The error is LeaseLost if the attempt had ended before.
        """
        self._client._engine.run(self._fail(reason, delay, dead))

    def ask(self, question: str, limit: float | None = None) -> None:
        """Ends the attempt with a question to a person. The next attempt has the answer in task["approval"]."""
        self._client._engine.run(self._ask(question, limit))

    def _handle(self, puller: Puller, handle: Callable[[Job], Any], unstorable: Policy) -> None:
        report: Report | None = None
        try:
            puller.begin()
            enter(self.lease)
            try:
                result = handle(self)
            except BaseException as error:
                report = self._raised(error)
                self._tell(report)
                if ends_worker(error):
                    raise
            else:
                report = self._returned(result, unstorable)
                self._tell(report)
        finally:
            self._leave(report)
            leave(self.lease)

    def _tell(self, report: Report) -> None:
        try:
            self._client._engine.run(self._end(report))
        except (Cancelled, ForkedError):
            raise
        except Closed:
            pass
        except Exception:  # the next task is none the worse for it
            logger.exception("the end of the attempt at task %s was not reported", self.task["id"])


__all__ = ["CancelToken", "Client", "EffectClaim", "Job", "Lease", "LeaseContext"]
