"""Leases for the tools of Pydantic AI: Agent(model, capabilities=[Leases({"refund": "account:{account_id}"})]).

A lease is held to the end of the run, from agent.run and its like to their result.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_ai import BinaryContent, FileUrl, ToolReturn
from pydantic_ai.capabilities import AbstractCapability

from .._async import AsyncClient
from .._guard import ToolReport
from . import Hold, ToolKeys, current_run, run_scope


class Leases(AbstractCapability[Any]):
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
        self._tools = ToolKeys(keys, client, hold, reads, **options)

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        around = current_run.get()
        if around is not None and around.id == ctx.run_id:  # of another one of these in the same run
            return await handler()
        async with run_scope(ctx.run_id):
            return await handler()

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return await self._tools.run(tool_def.name, args, lambda: handler(args), _result)


def _result(report: ToolReport) -> Any:
    """Returns the result for the model, which keeps the parts of the tool's own result that are not text."""
    result = report.result
    if isinstance(result, ToolReturn):
        return dataclasses.replace(result, return_value=_told(report, result.return_value))
    return _told(report, result)


def _told(report: ToolReport, value: Any) -> Any:
    parts = value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(part, (BinaryContent, FileUrl)) for part in parts):
        return [*parts, report.notice]
    return report.about(value)
