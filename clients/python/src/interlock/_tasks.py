"""The shell for asyncio: one task keeps the leases of a client alive."""

from __future__ import annotations

import asyncio
import itertools
import ssl
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial
from typing import Any, TypeVar

from . import _life, _threads
from ._call import Caller
from ._core import MOST_IDLE, Core
from ._errors import Closed, ForkedError, OtherLoop
from ._http1 import Connection, Connections
from ._types import Written
from ._watch import SILENT, Emit, Line, Open, WatchEffect
from ._wire import Effect, Idle, Pause, Send, Steps

T = TypeVar("T")

_flows: weakref.WeakKeyDictionary[asyncio.Task[Any], str] = weakref.WeakKeyDictionary()
_numbers = itertools.count(1)


def task_flow() -> str:
    """Returns the flow of this task. A number of its own: names of tasks need not differ."""
    task = asyncio.current_task()
    if task is None:
        return "main"
    name = _flows.get(task)
    if name is None:
        name = _flows[task] = f"task-{next(_numbers)}"
    return name


class Engine:
    """Carries out steps without blocking the event loop."""

    def __init__(
        self, caller: Caller, session_ttl: float | None, context: ssl.SSLContext | None, thread: bool = False
    ) -> None:
        self.connections = Connections(context)
        self.loop: asyncio.AbstractEventLoop | None = None  # that of the first call
        self.woken = asyncio.Event()
        self.keeper: asyncio.Task[None] | None = None
        self.watcher: asyncio.TimerHandle | None = None
        self.core = Core(caller, session_ttl, self.wake)
        #: What keeps the leases in a thread, in place of a task.
        self.beside = _threads.Engine(caller, session_ttl, context, self.core) if thread else None
        caller.servers.leavers.append(lambda server: self.deliver(partial(self.connections.leave, server))())
        _life.add(self)

    def check_loop(self) -> None:
        """Raises an error if another event loop than the client's runs."""
        if self.core.forked:
            raise ForkedError
        loop = asyncio.get_running_loop()
        if self.loop is None:
            self.loop = loop
        elif self.loop is not loop and not self.core.closed:
            raise OtherLoop(self.loop.is_closed())

    def wake(self) -> None:
        """Has the keeper look again. The first call starts it. A finalizer may call it, in any thread."""
        if self.beside is not None:
            self.beside.wake()
        elif self.loop is not None and self._is_here():
            self.woken.set()
            if (self.keeper is None or self.keeper.done()) and not self.core.closed:
                self.keeper = self.loop.create_task(self._run(self.core.keep()), name="interlock-keeper")
                self._watch(None)
        elif self.loop is not None:
            _soon(self.loop, self.woken.set)

    def _is_here(self) -> bool:
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def deliver(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Returns a function for any thread that calls listener in the event loop."""

        def call() -> None:
            if self.loop is None or self._is_here():
                listener()
            else:
                _soon(self.loop, listener)

        return call

    def _watch(self, due: float | None) -> None:
        """Looks every second whether the event loop stands still: leases are not kept meanwhile."""
        if self.loop is None or self.core.closed:
            return
        if due is not None:
            self.core.stood_still(time.monotonic() - due)
        if self.watcher is not None:
            self.watcher.cancel()
        self.watcher = self.loop.call_later(MOST_IDLE, self._watch, time.monotonic() + MOST_IDLE)

    async def run(self, steps: Steps[T]) -> T:
        """Carries out steps, and returns their result. A cancellation goes into the steps, and comes out of them."""
        try:
            self.check_loop()
        except BaseException:
            steps.close()
            raise
        if self.keeper is not None and self.keeper.done():
            self.wake()  # somebody has cancelled it
        return await self._run(steps)

    async def _run(self, steps: Steps[T]) -> T:
        value: object = None
        thrown: BaseException | None = None
        while True:
            try:
                effect = steps.send(value) if thrown is None else steps.throw(thrown)
            except StopIteration as stop:
                result: T = stop.value
                return result
            value, thrown = None, None
            try:
                value = await self._perform(effect)
            except BaseException as error:  # the steps decide, and clean up
                thrown = error

    async def _perform(self, effect: Effect) -> object:
        if self.core.forked:
            raise ForkedError
        if isinstance(effect, Send):
            return await self.connections.send(effect)
        if isinstance(effect, Pause):
            await asyncio.sleep(effect.seconds)
            if self.connections.closed:
                raise Closed
        elif isinstance(effect, Idle):
            await self._idle(effect.seconds)
        return None

    async def _idle(self, seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, self.woken.set)
        try:
            await self.woken.wait()
        finally:
            timer.cancel()
        self.woken.clear()

    async def follow(self, steps: Generator[WatchEffect, object, None]) -> AsyncGenerator[Written, None]:
        """Carries out the steps of a watch, and yields its writes."""
        self.check_loop()
        stream: Connection | None = None
        value: object = None
        thrown: BaseException | None = None
        try:
            while True:
                try:
                    effect = steps.send(value) if thrown is None else steps.throw(thrown)
                except StopIteration:  # the client is closed
                    return
                value, thrown = None, None
                if isinstance(effect, Emit):
                    yield effect.write
                    continue
                try:
                    self.core.usable()
                    if isinstance(effect, Open):
                        if stream is not None:
                            self.connections.drop(stream)
                        stream = await self.connections.connect(effect.send)
                        self.connections.waiting.add(stream)
                        value = await stream.open(effect.send)
                    elif isinstance(effect, Line):
                        value = await stream.line(SILENT) if stream is not None else ""
                    else:
                        value = await self._perform(effect)
                except BaseException as error:
                    thrown = error
        finally:
            if stream is not None:
                self.connections.drop(stream)
            steps.close()

    async def aclose(self) -> None:
        """Ends the session, the keeper and the connections."""
        if self.core.forked:
            return
        loop = asyncio.get_running_loop()
        if self.loop is not None and self.loop is not loop:
            if not self.loop.is_closed():
                raise OtherLoop(False)
            self.connections.drop_all()
            self.loop, self.keeper = loop, None
        try:
            if not self.core.closed:
                self.loop = loop
                await self._run(self.core.close())
        finally:
            self.abandon()
        keeper = self.keeper
        if keeper is not None and keeper is not asyncio.current_task():
            await asyncio.wait({keeper})
        await asyncio.sleep(0)  # the transports report their end

    def abandon(self) -> None:
        """Ends the keeper and the connections. The leases run out, if the session was not ended."""
        self.core.closed = True
        if self.keeper is not None and not self.keeper.get_loop().is_closed():
            self.keeper.cancel()
        if self.watcher is not None:
            self.watcher.cancel()
        if self.beside is not None:
            self.beside.abandon()
        self.connections.close()
        _life.remove(self)

    def close(self) -> None:
        """Learns of the exit of the interpreter: the event loop has ended, and the leases run out."""
        if self.beside is not None:
            self.beside.close()
        self.core.closed = True

    def forked(self) -> None:
        """Detaches the engine in the child of a fork: all of it belongs to the parent."""
        self.core.forked = self.core.closed = True
        self.core.mutex = threading.RLock()
        if self.beside is not None:
            self.beside.forked()


def _soon(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        pass  # it has ended
