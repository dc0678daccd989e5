"""Leases for the tools of agent frameworks. Each module needs its framework, and nothing else of this package does.

All of them take the keys of tools, by the names of the tools, with arguments in braces:

    Leases({"get_balance": "account:{account_id}", "set_balance": "account:{account_id}"}, client=client, wait=20)

An agent reads with one tool, thinks, and writes with another. So the lease is taken at the first tool that names its
key, and kept to the end of the run (hold="run"). With hold="call" it is that of one call, which is enough for tools
that read and write inside.

With hold="commit" nobody waits for an agent that thinks. The tools in reads take no lease; every other tool takes its
key for its call alone, and is refused before it begins if others may have changed the key since the run has read it:

    Leases(keys, hold="commit", reads=["get_balance"], client=client, wait=20)
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import logging
import threading
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Literal

from .. import _scope, _seen
from .._async import AsyncClient, AsyncLease, AsyncLeaseContext
from .._errors import Deadlock, InterlockError, LeaseLost, Refused, Stale
from .._guard import NoKey, ToolReport, awaited_call, blocking_call, client_for, is_report
from .._handle import Handle
from .._sync import Client, Lease, LeaseContext
from .._wire import Steps

logger: logging.Logger = logging.getLogger("interlock")

#: How long the lease of a tool is held: to the end of the run, or of the call; with commit that of a call that writes,
#: after a comparison with what the run has read.
Hold = Literal["run", "call", "commit"]

#: The runs and keys of the calls that enclose the code that runs now.
_inside: contextvars.ContextVar[frozenset[tuple[str, str]]] = contextvars.ContextVar(
    "interlock_calls", default=frozenset()
)


class Run:
    """The leases of one run of an agent: a turn, or one invocation of a graph."""

    def __init__(self, id: str = "") -> None:
        self.id: str = id
        #: Its flow, which no other run has.
        self.line: str = f"run-{uuid.uuid4().hex[:16]}"
        self.leases: dict[str, Any] = {}
        #: What it has read without a lease, and the fences of its calls that write.
        self.readings: _seen.Readings = _seen.Readings()
        self._fences: set[str] = set()
        self.ended: bool = False
        self._guard = threading.Lock()
        #: The calls that acquire a lease, by its key: one is enough.
        self._first: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
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
        async with self._first[key]:
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

    def read(self, client: AsyncClient | Client, key: str) -> Steps[_seen.Reading]:
        """Looks at the moment before a call that only reads. It holds nothing, and waits for nobody."""
        return _seen.read(client._engine.core, key, self._owns)

    @contextlib.asynccontextmanager
    async def reading(
        self, client: AsyncClient, key: str, call: str, failed: Callable[[Any], bool]
    ) -> AsyncIterator[_seen.Free]:
        """Encloses a call that only reads. One that fails has read nothing: what the run has read before counts on."""
        reading = await client._engine.run(self.read(client, key))
        free = _seen.Free(key)
        with _scope.line(self.line):  # a lease that it takes is the run's own
            yield free
        if not failed(free._call.result):
            self.readings.add(key, call, reading)

    @contextlib.contextmanager
    def blocking_reading(
        self, client: Client, key: str, call: str, failed: Callable[[Any], bool]
    ) -> Iterator[_seen.Free]:
        """Does the same in a thread that it blocks."""
        reading = client._engine.run(self.read(client, key))
        free = _seen.Free(key)
        with _scope.line(self.line):
            yield free
        if not failed(free._call.result):
            self.readings.add(key, call, reading)

    @contextlib.asynccontextmanager
    async def commit(
        self, client: AsyncClient, key: str, options: Mapping[str, Any], again: str
    ) -> AsyncIterator[AsyncLease]:
        """Holds a lease for a call that writes. The error is Stale if the run has to read the key first."""
        async with self._turns[_root(key)] if self._waits(key) else contextlib.nullcontext():
            changed: Stale | None = None
            async with contextlib.AsyncExitStack() as stack:
                readings = self._readings(key, again)
                with self.around(), self._known(key, again):
                    asked: Any = client.lease(key, as_of=readings[0].version, **options)
                    held: AsyncLease = await stack.enter_async_context(asked)
                held.outcome = _seen.UNCHANGED
                changes = await client._engine.run(self._others(held, readings))
                changed = self._judge(key, held, changes, again)
                if changed is None:
                    stack.enter_context(self._within(key))
                    self.writes(held)
                    stack.callback(self.writes, held)
                    yield held
            if changed is not None:
                raise changed

    @contextlib.contextmanager
    def blocking_commit(self, client: Client, key: str, options: Mapping[str, Any], again: str) -> Iterator[Lease]:
        """Does the same in a thread that it blocks."""
        with self._guard:
            turn = self._blocking_turns[_root(key)]
        with turn if self._waits(key) else contextlib.nullcontext():
            changed: Stale | None = None
            with contextlib.ExitStack() as stack:
                readings = self._readings(key, again)
                with self.around(), self._known(key, again):
                    asked = client.lease(key, as_of=readings[0].version, **options)
                    held = stack.enter_context(asked)
                held.outcome = _seen.UNCHANGED
                changed = self._judge(key, held, client._engine.run(self._others(held, readings)), again)
                if changed is None:
                    stack.enter_context(self._within(key))
                    self.writes(held)
                    stack.callback(self.writes, held)
                    yield held
            if changed is not None:
                raise changed

    async def take_to_commit(self, client: AsyncClient, key: str, options: Mapping[str, Any], again: str) -> AsyncLease:
        """Acquires the lease of a call that writes, where the end of the call is another callback."""
        readings = self._readings(key, again)
        with self.around(), self._known(key, again):
            held = await client.acquire(key, as_of=readings[0].version, **options)
        try:
            changed = self._judge(key, held, await client._engine.run(self._others(held, readings)), again)
            if changed is not None:
                raise changed
        except BaseException:
            await held.release(_seen.UNCHANGED)
            raise
        self.writes(held)
        return held

    def writes(self, held: Handle) -> None:
        """Notes for runs under the same lease that a call which writes begins, or has ended."""
        held._grant.writes.append(self.line)

    def _owns(self, fence: str, flow: str) -> bool:
        """Whether the work of a fence and a flow is that of this run, or of what encloses it."""
        return (
            fence in self._fences
            or flow.partition(".")[0] == self.line
            or any(place.fence == fence for place in _scope.around())
        )

    def _readings(self, key: str, again: str) -> list[_seen.Reading]:
        """Returns what the run has read of a key. The error is Stale if there is nothing."""
        found = self.readings.of(key)
        if not found:
            raise _seen.unread([key], again)
        return found

    @contextlib.contextmanager
    def _known(self, key: str, again: str) -> Iterator[None]:
        """Has a server that does not know the version that was read refuse the call as one whose key has changed."""
        try:
            yield
        except Refused as error:
            if error.code not in _seen.GONE:
                raise
            self.readings.forget(key)
            raise _seen.moved([key], _seen.FORGOTTEN, again) from error

    def _others(self, held: Handle, readings: list[_seen.Reading]) -> Steps[str]:
        self._fences.add(str(held.fence))
        return _seen.others(held._core, held._grant, readings, self.line, self._owns)

    def _judge(self, key: str, held: Handle, changes: str, again: str) -> Stale | None:
        """Returns the refusal of a call that writes, if there is one. What was read is out of date then."""
        if not changes:
            held.check()  # the comparison may have taken long
            held.outcome = None
            return None
        self.readings.forget(key)
        return _seen.moved(held.keys, changes, again, held.packet)

    @contextlib.contextmanager
    def _within(self, key: str) -> Iterator[None]:
        """Notes the key of a call, for calls that it makes."""
        inside = _inside.set(_inside.get() | {(self.line, _root(key))})
        try:
            yield
        finally:
            _inside.reset(inside)

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


def soon(end: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
    """Carries out the end of a run, also if nothing waits for it any more."""
    task = asyncio.ensure_future(end)
    _ends.add(task)
    task.add_done_callback(_ends.discard)
    return task


#: The ends of runs that are under way.
_ends: set[asyncio.Future[Any]] = set()


def _root(key: str) -> str:
    """Returns what keys share that cover each other."""
    return key.partition("/")[0]


#: What a lease must not be asked for that a call compares with what the run has read: nobody else may hold its key.
_OPTIONS = frozenset({"mode", "permits", "parties", "any_of", "any_prefix", "group", "as_of", "flow"})


class ToolKeys:
    """The keys that tools have to hold while they run, and with hold="run" to the end of the run.

    With hold="commit" those in reads hold none, and every other one is refused unless what the run has read holds.
    """

    def __init__(
        self,
        keys: Mapping[str, str],
        client: AsyncClient | Client | None = None,
        hold: Hold = "run",
        reads: Iterable[str] = (),
        **options: Any,
    ) -> None:
        if hold not in ("run", "call", "commit"):
            raise ValueError(f"hold is {hold!r}: it should be run, call or commit")
        if isinstance(reads, str):
            reads = [reads]
        self.reads: frozenset[str] = frozenset(reads)
        if hold == "commit":
            if not self.reads:
                raise ValueError('hold="commit" needs reads: the names of the tools that only read')
            if unfit := sorted(_OPTIONS & set(options)):
                raise ValueError(f'hold="commit" takes the whole key: leave out {", ".join(unfit)}')
        elif self.reads:
            raise ValueError(f'reads is for hold="commit", and hold is {hold!r}')
        if unknown := sorted(self.reads - set(keys)):
            raise ValueError(f"reads has {', '.join(unknown)}, and keys has no key for it")
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
        failed: Callable[[Any], bool] = is_report,
    ) -> Any:
        """Awaits the body of a tool, under a lease if it needs one. tell makes a result for the model of a report.

        run is the run of the agent, if it is not that of the context. failed reports whether the result of the body was
        made of an error.
        """
        if tool not in self.keys:
            return await body()
        return await awaited_call(lambda: self._lease(tool, arguments, run, failed), body, tell)

    def _lease(self, tool: str, arguments: Mapping[str, Any], run: Run | None, failed: Callable[[Any], bool]) -> Any:
        client: AsyncClient = client_for(self.client, True, tool)
        found, key, options = self._run(tool, run), self._key(tool, arguments), self._options(tool)
        if tool in self.reads:
            call = _call(tool, arguments)
            free = contextlib.nullcontext(_seen.Free(key))
            return free if found is None else found.reading(client, key, call, failed)
        if found is None:
            return client.lease(key, **self._alone(tool, options))
        if self.hold == "commit":
            return found.commit(client, key, options, self._again(tool))
        return found.lease(client, key, options)

    def run_blocking(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        body: Callable[[], Any],
        tell: Callable[[ToolReport], Any] = str,
        run: Run | None = None,
        failed: Callable[[Any], bool] = is_report,
    ) -> Any:
        """Does the same in a thread that it blocks."""
        if tool not in self.keys:
            return body()

        def lease() -> Any:
            client: Client = client_for(self.client, False, tool)
            found, key, options = self._run(tool, run), self._key(tool, arguments), self._options(tool)
            if tool in self.reads:
                call = _call(tool, arguments)
                free = contextlib.nullcontext(_seen.Free(key))
                return free if found is None else found.blocking_reading(client, key, call, failed)
            if found is None:
                return client.lease(key, **self._alone(tool, options))
            if self.hold == "commit":
                return found.blocking_commit(client, key, options, self._again(tool))
            return found.blocking_lease(client, key, options)

        return blocking_call(lease, body, tell)

    async def acquire(self, tool: str, arguments: Mapping[str, Any], run: Run) -> AsyncLease:
        """Acquires the lease for a call of a tool, where the end of the call is another callback."""
        client: AsyncClient = client_for(self.client, True, tool)
        key, options = self._key(tool, arguments), self._options(tool)
        if self.hold == "call":
            return await client.acquire(key, **options)
        if self.hold == "commit":
            return await run.take_to_commit(client, key, options, self._again(tool))
        held = await run.take(client, key, options)
        with run.around():
            asked = client._operations.again(held._grant)
            return AsyncLease(client, await client._engine.run(asked.steps), asked.place)

    async def read(self, tool: str, arguments: Mapping[str, Any], run: Run) -> Callable[[], None]:
        """Looks at the key before a call that only reads, and returns what is to be called once that has read."""
        client: AsyncClient = client_for(self.client, True, tool)
        key = self._key(tool, arguments)
        reading = await client._engine.run(run.read(client, key))
        return lambda: run.readings.add(key, _call(tool, arguments), reading)

    def _again(self, tool: str) -> str:
        """Names the tools that read what a tool writes: those of the same key, if there are any."""
        same = [name for name in self.keys if name in self.reads and self.keys[name] == self.keys[tool]]
        return " or ".join(same or sorted(self.reads))

    def _run(self, tool: str, run: Run | None) -> Run | None:
        if self.hold == "call":
            return None
        found = run or current_run.get()
        if found is not None and found.ended:
            found = None
        if found is None and self.hold == "run" and not self._warned:
            self._warned = True
            logger.warning("the tool %s is called outside of a run: its lease ends with the call", tool)
        return found

    def _alone(self, tool: str, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the options of a lease for a single call, outside of a run: nothing that it has read is known."""
        if self.hold == "commit":
            raise RuntimeError(
                f'hold="commit" compares what the run of an agent has read, and the tool {tool} is called outside of a '
                'run: let the framework run the agent with these leases, or choose hold="call" if each call of a tool '
                "reads and writes by itself"
            )
        return options

    def _key(self, tool: str, arguments: Mapping[str, Any]) -> str:
        try:
            return self.keys[tool].format(**arguments)
        except (AttributeError, LookupError, TypeError):
            raise NoKey(tool, self.keys[tool]) from None

    def _options(self, tool: str) -> dict[str, Any]:
        return {"purpose": tool, **self.options}


def _call(tool: str, arguments: Mapping[str, Any]) -> str:
    """Returns what tells a call from others: the same one again replaces what it has read before."""
    return f"{tool} {json.dumps(arguments, sort_keys=True, default=str)}"
