"""Leases for the tools of agent frameworks. Each module needs its framework, and nothing else of this package does.

All of them take the keys of tools, by the names of the tools, with arguments in braces:

    Leases({"get_balance": "account:{account_id}", "set_balance": "account:{account_id}"}, client=client, wait=20)

An agent reads with one tool, thinks, and writes with another. So the lease is taken at the first tool that names its
key, and kept to the end of the run (hold="run"). With hold="call" it is that of one call, which is enough for tools
that read and write inside.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import logging
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any, Literal

from .. import _scope
from .._async import AsyncClient, AsyncLease, AsyncLeaseContext
from .._errors import Deadlock, InterlockError, LeaseLost
from .._guard import NoKey, ToolReport, awaited_call, blocking_call, client_for
from .._sync import Client, Lease, LeaseContext

logger: logging.Logger = logging.getLogger("interlock")

#: How long the lease of a tool is held: to the end of the run, or of the call.
Hold = Literal["run", "call"]

_numbers = itertools.count(1)
#: The runs and keys of the calls that enclose the code that runs now.
_inside: contextvars.ContextVar[frozenset[tuple[str, str]]] = contextvars.ContextVar(
    "interlock_calls", default=frozenset()
)


class Run:
    """The leases of one run of an agent: a turn, or one invocation of a graph."""

    def __init__(self, id: str = "") -> None:
        self.id: str = id
        self.line: str = f"run-{next(_numbers)}"
        self.leases: dict[str, Any] = {}
        self.ended: bool = False
        self._guard = threading.Lock()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._blocking_turns: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Puts the body into the leases of the run."""
        places = [lease._place for lease in self.leases.values()]
        for place in places:
            _scope.enter(place)
        try:
            with _scope.line(self.line):
                yield
        finally:
            for place in places:
                _scope.leave(place)

    @contextlib.asynccontextmanager
    async def lease(self, client: AsyncClient, key: str, options: Mapping[str, Any]) -> AsyncIterator[AsyncLease]:
        """Holds a lease for a call, and after it, to the end of the run. Calls for one key follow each other."""
        async with self._turns[_root(key)] if self._waits(key) else contextlib.nullcontext():
            held = await self.take(client, key, options)
            with self.around():
                context = AsyncLeaseContext(client, lambda: client._operations.again(held._grant))
                inner = await context.__aenter__()
            error: BaseException | None = None
            inside = _inside.set(_inside.get() | {(self.line, _root(key))})
            try:
                yield inner
            except BaseException as raised:
                error = raised
            _inside.reset(inside)
            await context.__aexit__(None if error is None else type(error), error, None)
            if error is not None:
                raise error

    async def take(self, client: AsyncClient, key: str, options: Mapping[str, Any]) -> AsyncLease:
        """Returns the lease of the run on a key, and acquires it for the first call."""
        held: AsyncLease | None = self._held(key)
        if held is None:
            with self.around(), self._telling():
                held = await client.acquire(key, **options)
            if self._is_late(key, held):
                await held.release()
                raise LeaseLost("released", "the run of the agent has ended", held.keys)
        return held

    @contextlib.contextmanager
    def blocking_lease(self, client: Client, key: str, options: Mapping[str, Any]) -> Iterator[Lease]:
        """Does the same in a thread that it blocks."""
        with self._guard:
            turn = self._blocking_turns[_root(key)]
        with turn if self._waits(key) else contextlib.nullcontext():
            held = self._held(key)
            if held is None:
                with self.around(), self._telling():
                    held = client.acquire(key, **options)
                if self._is_late(key, held):
                    held.release()
                    raise LeaseLost("released", "the run of the agent has ended", held.keys)
            with self.around():
                context = LeaseContext(client, lambda: client._operations.again(held._grant))
                inner = context.__enter__()
            error: BaseException | None = None
            inside = _inside.set(_inside.get() | {(self.line, _root(key))})
            try:
                yield inner
            except BaseException as raised:
                error = raised
            _inside.reset(inside)
            context.__exit__(None if error is None else type(error), error, None)
            if error is not None:
                raise error

    def _waits(self, key: str) -> bool:
        """Whether a call waits for its turn: one that a call for the same key makes would wait for itself."""
        return (self.line, _root(key)) not in _inside.get()

    def _held(self, key: str) -> Any:
        """Returns the lease of an earlier call. If it was lost since, the error says so; the next call asks anew."""
        held = self.leases.get(key)
        if held is not None and held.loss is not None:
            del self.leases[key]
            error = LeaseLost(held.loss.code, f"{held.loss.message}, since an earlier call of this run", held.keys)
            error.next_step = "others may have written meanwhile: read again before you decide"
            raise error
        return held

    def _is_late(self, key: str, held: Any) -> bool:
        with self._guard:
            if not self.ended:
                self.leases[key] = held
            return self.ended

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Says what a run can do about a deadlock: it cannot release what its earlier calls have taken."""
        try:
            yield
        except Deadlock as error:
            keys = ", ".join(key for lease in self.leases.values() for key in lease.keys)
            if keys:
                error.next_step = (
                    "this call has done nothing; what earlier calls of this run have written stays, and the run keeps "
                    f"{keys} to its end, which others wait for: finish now, say what is left to do, and do it in "
                    "another run"
                )
            raise

    def _finish(self, error: BaseException | None) -> list[Any]:
        with self._guard:
            self.ended = True
            leases, self.leases = list(self.leases.values()), {}
        for lease in leases:
            lease._failed(error)
        return leases

    async def end(self, error: BaseException | None = None) -> None:
        """Releases the leases."""
        for lease in self._finish(error):
            try:
                await lease._end()
            except InterlockError as refusal:
                logger.warning("the release of the lease on %s: %s", ", ".join(lease.keys), refusal)

    def end_blocking(self, error: BaseException | None = None) -> None:
        """Does the same for a client that blocks."""
        for lease in self._finish(error):
            try:
                lease._end()
            except InterlockError as refusal:
                logger.warning("the release of the lease on %s: %s", ", ".join(lease.keys), refusal)


#: The run of the code that runs now, where a framework keeps the context from the run to its tools.
current_run: contextvars.ContextVar[Run | None] = contextvars.ContextVar("interlock_run", default=None)


@contextlib.asynccontextmanager
async def run_scope(id: str = "") -> AsyncIterator[Run]:
    """Makes its body a run, whose leases end with it."""
    run = Run(id)
    before = current_run.set(run)
    try:
        yield run
    except BaseException as error:
        await asyncio.shield(soon(run.end(error)))
        raise
    finally:
        current_run.reset(before)
        await asyncio.shield(soon(run.end()))


def soon(end: Coroutine[Any, Any, None]) -> asyncio.Future[None]:
    """Carries out the end of a run, also if nothing waits for it any more."""
    task = asyncio.ensure_future(end)
    _ends.add(task)
    task.add_done_callback(_ends.discard)
    return task


#: The ends of runs that are under way.
_ends: set[asyncio.Future[None]] = set()


def _root(key: str) -> str:
    """Returns what keys share that cover each other."""
    return key.partition("/")[0]


class ToolKeys:
    """The keys that tools have to hold while they run, and with hold="run" to the end of the run."""

    def __init__(
        self,
        keys: Mapping[str, str],
        client: AsyncClient | Client | None = None,
        hold: Hold = "run",
        **options: Any,
    ) -> None:
        if hold not in ("run", "call"):
            raise ValueError(f"hold is {hold!r}: it should be run or call")
        self.keys: dict[str, str] = dict(keys)
        self.client: AsyncClient | Client | None = client
        self.hold: Hold = hold
        self.options: dict[str, Any] = options
        self._warned = False

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        body: Callable[[], Awaitable[Any]],
        tell: Callable[[ToolReport], Any] = str,
        run: Run | None = None,
    ) -> Any:
        """Awaits the body of a tool, under a lease if it needs one. tell makes a result for the model of a report.

        run is the run of the agent, if it is not that of the context.
        """
        if tool not in self.keys:
            return await body()
        return await awaited_call(lambda: self._lease(tool, arguments, run), body, tell)

    def _lease(self, tool: str, arguments: Mapping[str, Any], run: Run | None) -> Any:
        client: AsyncClient = client_for(self.client, True, tool)
        found = self._run(tool, run)
        if found is None:
            return client.lease(self._key(tool, arguments), **self._options(tool))
        return found.lease(client, self._key(tool, arguments), self._options(tool))

    def run_blocking(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        body: Callable[[], Any],
        tell: Callable[[ToolReport], Any] = str,
        run: Run | None = None,
    ) -> Any:
        """Does the same in a thread that it blocks."""
        if tool not in self.keys:
            return body()

        def lease() -> Any:
            client: Client = client_for(self.client, False, tool)
            found = self._run(tool, run)
            if found is None:
                return client.lease(self._key(tool, arguments), **self._options(tool))
            return found.blocking_lease(client, self._key(tool, arguments), self._options(tool))

        return blocking_call(lease, body, tell)

    async def acquire(self, tool: str, arguments: Mapping[str, Any], run: Run | None) -> AsyncLease | None:
        """Acquires the lease for a call of a tool, where the end of the call is another callback."""
        if tool not in self.keys:
            return None
        client: AsyncClient = client_for(self.client, True, tool)
        key, options = self._key(tool, arguments), self._options(tool)
        if run is None or self.hold == "call":
            return await client.acquire(key, **options)
        held = await run.take(client, key, options)
        with run.around():
            asked = client._operations.again(held._grant)
            return AsyncLease(client, await client._engine.run(asked.steps), asked.place)

    def _run(self, tool: str, run: Run | None) -> Run | None:
        if self.hold == "call":
            return None
        found = run or current_run.get()
        if found is not None and found.ended:
            found = None
        if found is None and not self._warned:
            self._warned = True
            logger.warning("the tool %s is called outside of a run: its lease ends with the call", tool)
        return found

    def _key(self, tool: str, arguments: Mapping[str, Any]) -> str:
        try:
            return self.keys[tool].format(**arguments)
        except (AttributeError, LookupError, TypeError):
            raise NoKey(tool, self.keys[tool]) from None

    def _options(self, tool: str) -> dict[str, Any]:
        return {"purpose": tool, **self.options}
