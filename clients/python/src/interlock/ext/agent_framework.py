"""Leases for the tools of Microsoft's Agent Framework: Agent(..., middleware=[Leases({"refund": "account:{id}"})])."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_framework import FunctionMiddleware

from .._async import AsyncClient
from .._guard import refusal_text
from . import REFUSALS, ToolKeys


class Leases(FunctionMiddleware):
    """Runs each of the tools under a lease. A key that is taken becomes the result of the tool, for the model."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | None = None, **options: Any) -> None:
        self._tools = ToolKeys(keys, client, **options)

    async def process(self, context: Any, call_next: Any) -> None:
        given = context.arguments
        arguments = given if isinstance(given, Mapping) else given.model_dump()
        try:
            lease = self._tools.lease(context.function.name, arguments)
            if lease is None:
                await call_next()
                return
            async with lease:
                await call_next()
        except REFUSALS as error:
            context.result = refusal_text(error)
