"""Leases for the tools of Pydantic AI: Agent(model, capabilities=[Leases({"refund": "account:{account_id}"})])."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_ai.capabilities import AbstractCapability

from .._async import AsyncClient
from .._guard import refusal_text
from . import REFUSALS, ToolKeys


class Leases(AbstractCapability[Any]):
    """Runs each of the tools under a lease. A key that is taken becomes the result of the tool, for the model."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | None = None, **options: Any) -> None:
        self._tools = ToolKeys(keys, client, **options)

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        try:
            lease = self._tools.lease(tool_def.name, args)
            if lease is None:
                return await handler(args)
            async with lease:
                return await handler(args)
        except REFUSALS as error:
            return refusal_text(error)
