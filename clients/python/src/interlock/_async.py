"""The client for asyncio."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import os
import ssl
import warnings
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar

from ._effect import EffectClaim
from ._errors import Closed, ForkedError, InterlockError, LeaseLost, OtherLoop, Refused
from ._grant import Hold
from ._guard import enter, leave
from ._handle import Handle, drop_holds
from ._join import enclose
from ._ops import Operations, Request
from ._scope import Place
from ._scope import enter as enter_place
from ._seat import Seat
from ._sync import caller_of
from ._tasks import Engine, task_flow
from ._types import Committed, ReadRequest, WriteRequest, Written
from ._wire import Steps
from ._work import Attempt, Policy, Puller, Report, check_worker, ends_worker

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("interlock")


def _awaiting(
    steps: Callable[Concatenate[Operations, P], Steps[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Makes a method that is awaited."""

    @functools.wraps(steps)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._engine.run(steps(self._operations, *args, **kwargs))

    return method


def _acquiring(
    request: Callable[Concatenate[Operations, P], Request],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, AsyncLease]]:
    """Makes a method that returns a lease. The lease is in the context of the call, also if another task awaits it."""

    @functools.wraps(request)
    def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, AsyncLease]:
        asked = request(self._operations, *args, **kwargs)
        enter_place(asked.place)
        return self._lease(asked)

    return method


def _leasing(
    request: Callable[Concatenate[Operations, P], Request],
) -> Callable[Concatenate[AsyncClient, P], AsyncLeaseContext]:
    """Makes a method that returns a context with a lease."""

    @functools.wraps(request)
    def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncLeaseContext:
        return AsyncLeaseContext(self, lambda: request(self._operations, *args, **kwargs))

    return method


class AsyncClient:
    """One session with a server, for any number of tasks of one event loop.

    One task keeps it and its leases alive; it starts with the first lease. Each task is a flow of its own: a key that a
    flow already holds is granted to it again. The client is used in an async with block, or closed by close().

    session_ttl is how long the session, with its leases, outlives its last heartbeat, in seconds: the maximum of their
    ttl. None: that of their keys' patterns counts, else 30.

    retry_for is how long a request is repeated that no server answers, in seconds: 30 if left out, but then a first
    call that finds no server at the address raises Unreachable at once. proxy is the address of a proxy of HTTP, such
    as http://user:password@proxy:3128, or "" for none; None: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY decide,
    and servers of this machine are called directly.

    The client belongs to the event loop of its first call. In another one the error is OtherLoop; after the first one
    has ended it can only be closed. With keeper="thread" a thread keeps the leases: they live also while the event loop
    stands still, as code blocks it.

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
        keeper: Literal["task", "thread"] = "task",
        join: bool = True,
        seat: str | os.PathLike[str] | None = None,
    ) -> None:
        if keeper not in ("task", "thread"):
            raise ValueError(f"keeper is {keeper!r}: it should be task or thread")
        caller = caller_of(url, credential, namespace, agent, retry_for, proxy)
        taken = None if seat is None else Seat(seat)
        self._engine = Engine(caller, session_ttl, ssl_context, keeper == "thread")
        enclose(self._engine.core, agent or None, join)
        self._engine.core.seat = taken
        self._operations = Operations(self._engine.core, task_flow, self._engine.deliver)

    acquire: Final = _acquiring(Operations.acquire)
    lease: Final = _leasing(Operations.acquire)
    resume: Final = _acquiring(Operations.resume)
    start_run: Final = _acquiring(Operations.start_run)
    status: Final = _awaiting(Operations.status)
    look: Final = _awaiting(Operations.look)
    why: Final = _awaiting(Operations.why)
    check_fence: Final = _awaiting(Operations.check_fence)
    documents: Final = _awaiting(Operations.documents)
    read: Final = _awaiting(Operations.read)
    claim_effect: Final = _awaiting(Operations.claim_effect)
    settle_effect: Final = _awaiting(Operations.settle_effect)
    submit: Final = _awaiting(Operations.submit)
    task: Final = _awaiting(Operations.task)
    cancel_task: Final = _awaiting(Operations.cancel_task)
    send: Final = _awaiting(Operations.send)
    log: Final = _awaiting(Operations.log)
    approvals: Final = _awaiting(Operations.approvals)
    answer: Final = _awaiting(Operations.answer)

    async def _lease(self, asked: Request) -> AsyncLease:
        try:
            return AsyncLease(self, await self._engine.run(asked.steps), asked.place)
        except BaseException as error:
            drop_holds(error)
            raise

    async def commit(
        self,
        writes: Sequence[WriteRequest],
        reads: Sequence[ReadRequest] = (),
        note: str | None = None,
        leases: Sequence[AsyncLease] = (),
        as_of: str | None = None,
    ) -> Committed:
        """Carries out writes, all or none, if what was read is still so. Else the error is Stale, with the changes."""
        grants = [lease._grant for lease in leases]
        return await self._engine.run(self._operations.commit(writes, reads, note, grants, as_of))

    @asynccontextmanager
    async def effect(
        self, tool: str, target: str, arguments: Any = None, wait: float = 60.0, lease: AsyncLease | None = None
    ) -> AsyncIterator[EffectClaim]:
        """Claims an action that must not happen twice, for the body of an async with block.

        If claim.done is set, it was done before, and claim.result is its result. Else the body performs it and calls
        claim.complete(result). A body that raises an error leaves an unknown outcome, unless it calls claim.cancel().

        The claim is that of this block: any other one, also of the same task, waits for its outcome, and then gets
        EffectTaken. The report at the end of the block raises no error: without an answer it goes on in the background.
        """
        claim = EffectClaim(await self._engine.run(self._operations.claim_effect(tool, target, arguments, wait, lease)))
        if claim.done:
            yield claim
            return
        self._operations.enter_effect(claim)
        try:
            yield claim
        except Exception as error:
            await self._settle(claim, error)
            raise
        except BaseException as error:  # a cancellation: nothing is awaited any more
            self._engine.core.later(self._operations.leave_effect(claim, error), report=True)
            raise
        await self._settle(claim, None)

    async def _settle(self, claim: EffectClaim, error: BaseException | None) -> None:
        """Reports how the block of a claim has ended."""
        steps = self._operations.leave_effect(claim, error)
        try:
            await self._engine.run(self._engine.core.report(steps, "the outcome of an effect"))
        except InterlockError as failure:
            logger.info("the outcome of an effect is reported later: %s", failure)

    async def work(
        self,
        queue: str,
        handle: Callable[[AsyncJob], Awaitable[Any]],
        *,
        wait: float = 20.0,
        once: bool = False,
        unstorable: Policy = "done",
    ) -> None:
        """Works on the tasks of a queue, one at a time, until it is cancelled or the client is closed.

        The result of handle is the task's; an error is another attempt. More of these calls work on more tasks.
        A server that is away does not end it; with once it ends when no task came, or no server answers. A result that
        cannot be stored does not have the work repeated: the task is done, with {"interlock": "result not stored",
        "reason": ...} as its result, or with unstorable="dead" it is dead.
        """
        check_worker(handle, unstorable, True)
        puller = Puller(self._operations, queue, wait, once)
        try:
            while True:
                taken = await self._engine.run(puller.take())
                if taken is None:
                    return
                for assignment, hold in taken:
                    await AsyncJob(self, assignment, hold)._handle(puller, handle, unstorable)
                if once and not taken:
                    return
        finally:
            puller.leave()

    def watch(
        self, key: str | None = None, prefix: str | None = None, values: bool = True, start: str | None = None
    ) -> AsyncGenerator[Written, None]:
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

    async def close(self) -> None:
        """Ends the session: its leases are released, its waits end."""
        await self._engine.aclose()

    async def __aenter__(self) -> AsyncClient:
        self._engine.check_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None and not engine.core.closed:
            warnings.warn(f"unclosed {type(self).__name__}", ResourceWarning, 2, source=self)
            engine.abandon()

    def __reduce__(self) -> Any:
        raise TypeError("a client cannot be pickled: make one in each process")


class AsyncLease(Handle):
    """A lease that a client keeps alive, until it is released or lost."""

    def __init__(self, client: AsyncClient, hold: Hold, place: Place | None = None) -> None:
        super().__init__(client._engine.core, hold, place)
        self._client = client
        self.lost: asyncio.Event = asyncio.Event()
        """An event that is set when the lease is not held any more."""
        client._operations.listen(hold.grant, self.lost.set)

    async def release(self, outcome: str | None = None, note: str | None = None) -> None:
        """Releases the lease, with a note for the next holders. A second call does nothing.

        The error is LeaseLost if it was not held any more.
        """
        loss = await self._end(outcome, note)
        if loss is not None:
            raise LeaseLost(loss.code, loss.message, loss.keys)

    async def _end(self, outcome: str | None = None, note: str | None = None) -> LeaseLost | None:
        """Releases the lease, once, and returns why it was not held any more."""
        if self._released:
            return None
        if self._core.forked:
            raise ForkedError
        self._client._engine.check_loop()
        hold = self._ref()
        self._released, self._kept = True, None
        try:
            await self._client._engine.run(
                self._core.release(self._grant, hold, outcome or self.outcome, note or self.note)
            )
        except LeaseLost as error:
            self._verdict = error
        return self._verdict

    async def renew(self, ttl: float | None = None, progress: Any = None) -> None:
        """Renews the lease now, and may change its ttl. Heartbeats renew it without this."""
        await self._client._engine.run(self._client._operations.renew(self._grant, ttl, progress))

    async def convert(self, *claims: str | dict[str, Any], wait: float = 60.0) -> None:
        """Replaces the claims by others. The old ones stay until the new ones are granted."""
        await self._client._engine.run(self._client._operations.convert(self._grant, claims, wait))

    async def arrive(self, wait: float = 60.0) -> None:
        """Arrives at the barrier again, and waits for the other parties."""
        await self._client._engine.run(self._client._operations.arrive(self._grant, wait))

    async def park(self, reason: str | None = None, keep: bool | None = None, for_: float | None = None) -> str:
        """Parks the lease, which then needs no heartbeat; with a reason it asks a person. Returns the id to resume."""
        return await self._client._engine.run(self._client._operations.park(self._grant, reason, keep, for_))

    async def commit(
        self, writes: Sequence[WriteRequest], reads: Sequence[ReadRequest] = (), note: str | None = None
    ) -> Committed:
        """Commits writes under this lease."""
        return await self._client.commit(writes, reads, note, [self])


class AsyncLeaseContext:
    """A lease for the body of an async with block. If the lease is lost, the body is cancelled, once."""

    def __init__(self, client: AsyncClient, request: Callable[[], Request]) -> None:
        self._client = client
        self._request = request
        self._lease: AsyncLease | None = None
        self._hold: Hold | None = None
        self._task: asyncio.Task[Any] | None = None
        self._inside = False
        self._cancelled = False
        self._cancelling = 0

    def __aenter__(self) -> Coroutine[Any, Any, AsyncLease]:
        if self._lease is not None:
            raise RuntimeError("the lease of this block is held already: call client.lease again")
        self._task = asyncio.current_task()
        self._cancelling = _cancelling(self._task)
        asked = self._request()
        enter_place(asked.place)
        return self._enter(asked)

    async def _enter(self, asked: Request) -> AsyncLease:
        lease = self._lease = await self._client._lease(asked)
        self._hold, lease._kept = lease._kept, None
        self._inside = True
        on_lost = weakref.WeakMethod(self._on_lost)

        def lost() -> None:
            method = on_lost()
            if method is not None:
                method()

        self._client._operations.listen(lease._grant, lost)
        enter(lease)
        return lease

    def _on_lost(self) -> None:
        lease, task = self._lease, self._task
        if not self._inside or lease is None or lease._released or task is None or task.done():
            return
        if task is asyncio.current_task():
            return  # its own check has found it, and raises the error
        self._cancelled = True
        task.cancel(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        lease, hold, self._inside = self._lease, self._hold, False
        self._lease = self._hold = None
        if lease is None:
            return
        leave(lease)
        ours = self._cancelled and self._take_back(error)
        self._cancelled = False
        lease._failed(error)
        try:
            loss = await lease._end()
        except Refused as refusal:  # it is given back in the background
            if error is None:
                raise
            logger.warning("the release of the lease on %s was refused: %s", ", ".join(lease.keys), refusal)
            return
        except (ForkedError, OtherLoop):
            if error is None:
                raise
            return
        finally:
            del hold
        if loss is not None and (error is None or ours):
            raise LeaseLost(loss.code, loss.message, loss.keys) from None

    def _take_back(self, error: BaseException | None) -> bool:
        """Takes the cancellation of the task back, and reports whether there was no other one."""
        uncancel = getattr(self._task, "uncancel", None)
        if uncancel is not None:  # from Python 3.11 on
            alone = uncancel() <= self._cancelling
        else:
            alone = not isinstance(error, asyncio.CancelledError) or error.args[:1] == (self,)
        return bool(alone) and (error is None or isinstance(error, asyncio.CancelledError))


def _cancelling(task: asyncio.Task[Any] | None) -> int:
    count = getattr(task, "cancelling", None)
    return int(count()) if count is not None else 0


class AsyncJob(Attempt):
    """One attempt at a task, with the lease on its claims."""

    def __init__(self, client: AsyncClient, assignment: Any, hold: Hold) -> None:
        super().__init__(client._operations, assignment, hold)
        self._client = client
        self.lease: AsyncLease = AsyncLease(client, hold)

    async def fail(self, reason: str, delay: float | None = None, dead: bool = False) -> None:
        """Reports that the attempt has failed: there is another one after a pause, unless it is dead.

        The error is LeaseLost if the attempt had ended before.
        """
        await self._client._engine.run(self._fail(reason, delay, dead))

    async def ask(self, question: str, limit: float | None = None) -> None:
        """Ends the attempt with a question to a person. The next attempt has the answer in task["approval"]."""
        await self._client._engine.run(self._ask(question, limit))

    async def _handle(self, puller: Puller, handle: Callable[[AsyncJob], Any], unstorable: Policy) -> None:
        """Handles the task in a task of asyncio: so its own cancellations differ from those of the worker."""
        report: Report | None = None
        handling = asyncio.create_task(self._call(handle))
        puller.begin()
        try:
            cancelled = await _ended(handling)
            error = asyncio.CancelledError() if handling.cancelled() else handling.exception()
            if error is None:
                report = self._returned(handling.result(), unstorable)
            elif cancelled is not None and handling.cancelled():
                report = self._nack("the worker was cancelled", 0.0)
            else:
                report = self._raised(error)
            if cancelled is not None:
                raise cancelled
            if error is not None and ends_worker(error):
                raise error
            await self._tell(report)
        finally:
            handling.cancel()
            self._leave(report)

    async def _call(self, handle: Callable[[AsyncJob], Any]) -> Any:
        enter(self.lease)
        result = handle(self)
        return await result if inspect.isawaitable(result) else result

    async def _tell(self, report: Report) -> None:
        try:
            await self._client._engine.run(self._end(report))
        except ForkedError:
            raise
        except Closed:
            pass
        except Exception:  # the next task is none the worse for it
            logger.exception("the end of the attempt at task %s was not reported", self.task["id"])


async def _ended(task: asyncio.Task[Any]) -> asyncio.CancelledError | None:
    """Waits for the end of a task. A cancellation meanwhile is passed on to it, and returned."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            task.cancel()
    return cancelled


__all__ = ["AsyncClient", "AsyncJob", "AsyncLease", "AsyncLeaseContext"]
