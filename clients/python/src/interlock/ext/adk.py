"""Leases for the tools of Google's ADK: App(..., plugins=[Leases({"refund": "account:{account_id}"})]).

A lease is held to the end of the run, that of runner.run_async. Put the plugin first: another one whose callback
returns a result keeps the callbacks after it from being called. What is left then is released at the end of the run.

session_lease is for a session that several processes may run. The module also has the four classic primitives of
interlock.primitives, which need no ADK.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from google.adk.plugins.base_plugin import BasePlugin

from .._async import AsyncClient, AsyncLease, AsyncLeaseContext
from .._errors import InterlockError
from .._guard import Call, ToolReport, client_for, enter, is_parked, is_report, leave
from ..primitives import Barrier, DistributedLock, ReadWriteLock, Semaphore
from . import Hold, Run, ToolKeys, soon


class Leases(BasePlugin):
    """Runs the tools under leases, each of which is held from the first tool that names it to the end of the run.

    A key that is taken becomes the result of the tool, for the model. hold="call" holds a lease for one call alone.
    With hold="commit" the tools in reads hold none, and the others are refused if the key changed since it was read.
    """

    def __init__(
        self,
        keys: Mapping[str, str],
        client: AsyncClient | None = None,
        hold: Hold = "run",
        reads: Iterable[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(name="interlock")
        self._tools = ToolKeys(keys, client, hold, reads, **options)
        self._calls: dict[tuple[str, str], _Open] = {}
        self._reads: dict[tuple[str, str], Callable[[], None]] = {}
        self._runs: dict[str, Run] = {}

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        id = invocation_context.invocation_id
        run = self._runs[id] = Run(id)
        task = asyncio.current_task()
        if task is not None:  # of a run that is cancelled ADK tells nothing
            task.add_done_callback(lambda _: self._forget(run))

    def _forget(self, run: Run) -> None:
        if self._runs.get(run.id) is run:
            soon(self._finish(run.id, None))

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> Any:
        call, name = Call(), (tool_context.invocation_id, tool_context.function_call_id)
        if tool.name not in self._tools.keys:
            return None
        run = self._runs.setdefault(name[0], Run(name[0]))
        try:
            if tool.name in self._tools.reads:
                self._reads[name] = await self._tools.read(tool.name, tool_args, run)
                return None
            while True:
                lease = await self._tools.acquire(tool.name, tool_args, run)
                open_call = _Open(call, lease)
                try:
                    await self._turn(name[0], open_call)
                except BaseException:
                    with contextlib.suppress(InterlockError):
                        await asyncio.shield(soon(lease._end()))
                    raise
                if lease.held:  # else it was lost while it waited for its turn
                    break
        except InterlockError as error:
            return call.settle(error, _result)
        call.lease = lease
        self._calls[name] = open_call
        enter(lease)
        return None

    async def _turn(self, run: str, mine: _Open) -> None:
        """Waits for the calls of the run that work under the same lease, one after another."""
        while True:
            others = [
                (name, other)
                for name, other in self._calls.items()
                if name[0] == run and other.lease._grant is mine.lease._grant
            ]
            if not others:
                return
            name, other = others[0]
            if other.task is mine.task or other.task is None or other.task.done():
                await self._end(name, None)  # another plugin has kept its end from us
                continue
            ended = asyncio.ensure_future(other.ended.wait())
            try:
                await asyncio.wait({ended, other.task}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended.cancel()

    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> Any:
        name = tool_context.invocation_id, tool_context.function_call_id
        has_read = self._reads.pop(name, None)
        if has_read is not None and not is_report(result):
            has_read()
        if name in self._calls:
            call = self._calls[name].call
            call.result, call.returned = result, True
        return await self._end(name, None)

    async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Any) -> Any:
        name = tool_context.invocation_id, tool_context.function_call_id
        self._reads.pop(name, None)
        return await self._end(name, error)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        await self._finish(invocation_context.invocation_id, None)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Any) -> None:
        await self._finish(invocation_context.invocation_id, error)

    async def _end(self, name: tuple[str, str], error: BaseException | None) -> dict[str, Any] | None:
        """Releases the lease of a call. It returns what the model reads in place of the tool's result, if anything."""
        if name not in self._calls:
            return None
        done = self._calls.pop(name)
        call, lease = done.call, done.lease
        done.ended.set()
        if name[0] in self._runs:
            self._runs[name[0]].writes(lease)
        leave(lease)
        lease._failed(error)
        call.failure = error
        found: InterlockError | None
        try:
            found = await lease._end()
        except InterlockError as failed:
            found = failed
        ended = found if error is None else error
        if ended is None or is_parked(ended):
            return None
        report = call.report(ended)
        return None if report is None else _result(report)

    async def _finish(self, id: str, error: BaseException | None) -> None:
        run = self._runs.pop(id, None)
        for name in [name for name in self._calls if name[0] == id]:
            await self._end(name, error)
        for name in [name for name in self._reads if name[0] == id]:
            del self._reads[name]
        if run is not None:
            await run.end(error)


class _Open:
    """A call that has begun."""

    def __init__(self, call: Call, lease: AsyncLease) -> None:
        self.call, self.lease = call, lease
        self.task = asyncio.current_task()
        self.ended = asyncio.Event()


def _result(report: ToolReport) -> dict[str, Any]:
    """Returns the result for the model, which keeps the parts of the tool's own result that are not text."""
    if not report.returned:
        return {"error": str(report)}
    try:
        json.dumps(report.result)
    except (TypeError, ValueError):
        return {"result": report.result, "notice": report.notice}
    return {"result": str(report)}


def session_lease(
    runner: Any, *, user_id: str, session_id: str, client: AsyncClient | None = None, **options: Any
) -> AsyncLeaseContext:
    """Returns a lease on a session of a runner's app, for an async with block around runner.run_async.

    Runs of one session, in however many processes, then follow each other: each reads all that the earlier ones have
    written, where ADK mixes their events or stops one of them as stale. A lost lease cancels the run.
    """
    chosen: AsyncClient = client_for(client, True, "session_lease")
    key = "/".join(["adk:" + quote(runner.app_name, safe=""), quote(user_id, safe=""), quote(session_id, safe="")])
    return chosen.lease(key, **{"purpose": "run of a session", **options})


__all__ = ["Barrier", "DistributedLock", "Leases", "ReadWriteLock", "Semaphore", "session_lease"]
