"""Leases for the tools of Google's ADK: App(..., plugins=[Leases({"refund": "account:{account_id}"})]).

Put the plugin first: another one whose callback returns a result keeps the callbacks after it from being called. What
is left then is released at the end of the run.

session_lease is for a session that several processes may run. The module also has the four classic primitives of
interlock.primitives, which need no ADK.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from google.adk.plugins.base_plugin import BasePlugin

from .._async import AsyncClient, AsyncLease, AsyncLeaseContext
from .._errors import InterlockError
from .._guard import Call, ToolReport, client_for, enter, is_parked, leave
from ..primitives import Barrier, DistributedLock, ReadWriteLock, Semaphore
from . import ToolKeys


class Leases(BasePlugin):
    """Runs each of the tools under a lease. A key that is taken becomes the result of the tool, for the model."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | None = None, **options: Any) -> None:
        super().__init__(name="interlock")
        self._tools = ToolKeys(keys, client, **options)
        self._calls: dict[tuple[str, str], tuple[Call, AsyncLease]] = {}

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> Any:
        call = Call()
        try:
            lease = await self._tools.acquire(tool.name, tool_args)
        except InterlockError as error:
            return call.settle(error, _result)
        if lease is not None:
            call.lease = lease
            self._calls[tool_context.invocation_id, tool_context.function_call_id] = call, lease
            enter(lease)
        return None

    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> Any:
        name = tool_context.invocation_id, tool_context.function_call_id
        if name in self._calls:
            call, _ = self._calls[name]
            call.result, call.returned = result, True
        return await self._end(name, None)

    async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Any) -> Any:
        return await self._end((tool_context.invocation_id, tool_context.function_call_id), error)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        await self._finish(invocation_context, None)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Any) -> None:
        await self._finish(invocation_context, error)

    async def _end(self, name: tuple[str, str], error: BaseException | None) -> dict[str, Any] | None:
        """Releases the lease of a call. It returns what the model reads in place of the tool's result, if anything."""
        if name not in self._calls:
            return None
        call, lease = self._calls.pop(name)
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

    async def _finish(self, context: Any, error: BaseException | None) -> None:
        for name in [name for name in self._calls if name[0] == context.invocation_id]:
            await self._end(name, error)


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
