"""The shell for asyncio: one task keeps the leases of a client alive."""

from __future__ import annotations

import asyncio
import itertools
import ssl
import weakref
from collections.abc import AsyncGenerator, Generator
from typing import Any, TypeVar

from . import _life
from ._call import Caller
from ._core import Core
from ._errors import Closed, ForkedError
from ._http1 import Connection, Connections
from ._types import Written
from ._watch import SILENT, Emit, Line, Open, WatchEffect
from ._wire import Effect, Idle, LockSession, Pause, Send, Steps

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

    def __init__(self, caller: Caller, session_ttl: float | None, context: ssl.SSLContext | None) -> None:
        self.connections = Connections(context)
        self.session_lock = asyncio.Lock()
        self.woken = asyncio.Event()
        self.keeper: asyncio.Task[None] | None = None
        self.core = Core(caller, session_ttl, self.wake, self.session_lock.release)
        _life.add(self)

    def wake(self) -> None:
        """Has the keeper look again. The first call starts it."""
        self.woken.set()
        if self.keeper is None and not self.core.closed:
            self.keeper = asyncio.get_running_loop().create_task(self.run(self.core.keep()), name="interlock-keeper")

    async def run(self, steps: Steps[T]) -> T:
        """Carries out steps, and returns their result. A cancellation goes into the steps, and comes out of them."""
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
        if isinstance(effect, LockSession):
            await self.session_lock.acquire()
        elif isinstance(effect, Pause):
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
        try:
            if not self.core.closed:
                await self.run(self.core.close())
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
        self.connections.close()
        _life.remove(self)

    def close(self) -> None:
        """Learns of the exit of the interpreter: the event loop has ended, and the leases run out."""
        self.core.closed = True

    def forked(self) -> None:
        """Detaches the engine in the child of a fork: all of it belongs to the parent."""
        self.core.forked = self.core.closed = True
