"""Leases for the tools of Microsoft's Agent Framework: Agent(..., middleware=[Leases({"refund": "account:{id}"})])."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_framework import Content, FunctionMiddleware

from .._async import AsyncClient
from .._guard import ToolReport
from . import ToolKeys


class Leases(FunctionMiddleware):
    """Runs each of the tools under a lease. A key that is taken becomes the result of the tool, for the model."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | None = None, **options: Any) -> None:
        self._tools = ToolKeys(keys, client, **options)

    async def process(self, context: Any, call_next: Any) -> None:
        given = context.arguments
        arguments = given if isinstance(given, Mapping) else given.model_dump()

        async def body() -> Any:
            await call_next()
            return context.result

        context.result = await self._tools.run(context.function.name, arguments, body, _result)


def _result(report: ToolReport) -> Any:
    """Returns the result for the model, which keeps the parts of the tool's own result that are not text."""
    parts = report.result if isinstance(report.result, list) else [report.result]
    if not parts or not all(isinstance(part, Content) for part in parts):
        return str(report)
    if all(part.type == "text" for part in parts):
        return report.about("\n".join(part.text for part in parts))
    return [*parts, Content.from_text(report.notice)]
