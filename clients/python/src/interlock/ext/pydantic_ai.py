"""Leases for the tools of Pydantic AI: Agent(model, capabilities=[Leases({"refund": "account:{account_id}"})])."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pydantic_ai import BinaryContent, FileUrl, ToolReturn
from pydantic_ai.capabilities import AbstractCapability

from .._async import AsyncClient
from .._guard import ToolReport
from . import ToolKeys


class Leases(AbstractCapability[Any]):
    """Runs each of the tools under a lease. A key that is taken becomes the result of the tool, for the model."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | None = None, **options: Any) -> None:
        self._tools = ToolKeys(keys, client, **options)

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
