"""Leases for the tools of Google's ADK: App(..., plugins=[Leases({"refund": "account:{account_id}"})]).

Put the plugin first: another one whose callback returns a result keeps the callbacks after it from being called. What
is left then is released at the end of the run.

session_lease is for a session that several processes may run. The module also has the four classic primitives of
interlock.primitives, which need no ADK.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from google.adk.plugins.base_plugin import BasePlugin

from .._async import AsyncClient, AsyncLease, AsyncLeaseContext
from .._guard import client_for, enter, leave, refusal_text
from ..primitives import Barrier, DistributedLock, ReadWriteLock, Semaphore
from . import REFUSALS, ToolKeys


class Leases(BasePlugin):
    """Runs each of the tools under a lease. A key that is taken becomes the result of the tool, for the model."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | None = None, **options: Any) -> None:
        super().__init__(name="interlock")
        self._tools = ToolKeys(keys, client, **options)
        self._held: dict[tuple[str, str], AsyncLease] = {}

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> Any:
        try:
            lease = await self._tools.acquire(tool.name, tool_args)
        except REFUSALS as error:
            return {"error": refusal_text(error)}
        if lease is not None:
            self._held[tool_context.invocation_id, tool_context.function_call_id] = lease
            enter(lease)
        return None

    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> Any:
        lost = await self._release((tool_context.invocation_id, tool_context.function_call_id), None)
        return None if lost is None else {"error": lost}

    async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Any) -> Any:
        await self._release((tool_context.invocation_id, tool_context.function_call_id), error)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        await self._finish(invocation_context, None)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Any) -> None:
        await self._finish(invocation_context, error)

    async def _release(self, call: tuple[str, str], error: BaseException | None) -> str | None:
        """Releases the lease of a call. It returns a text if the lease was lost before."""
        lease = self._held.pop(call, None)
        if lease is None:
            return None
        leave(lease)
        lease._failed(error)
        loss = await lease._end()
        return None if loss is None else refusal_text(loss)

    async def _finish(self, context: Any, error: BaseException | None) -> None:
        for call in [call for call in self._held if call[0] == context.invocation_id]:
            await self._release(call, error)


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
