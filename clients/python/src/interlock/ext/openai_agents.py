"""Leases for the tools of the OpenAI Agents SDK: tools=[leased(refund, "account:{account_id}")]."""

# pyright: reportMissingImports=false

from __future__ import annotations

import dataclasses
import json
from typing import Any

from agents import FunctionTool

from .._async import AsyncClient
from .._guard import refusal_text
from . import REFUSALS, ToolKeys


def leased(tool: FunctionTool, key: str, client: AsyncClient | None = None, **options: Any) -> FunctionTool:
    """Returns the tool as one that runs under a lease. A key that is taken is its result, for the model."""
    tools = ToolKeys({tool.name: key}, client, **options)

    async def invoke(context: Any, text: str) -> Any:
        try:
            arguments = json.loads(text or "{}")
        except ValueError:
            arguments = {}  # what the model wrote is not JSON
        try:
            lease: Any = tools.lease(tool.name, arguments)
            async with lease:
                return await tool.on_invoke_tool(context, text)
        except REFUSALS as error:
            return refusal_text(error)

    return dataclasses.replace(tool, on_invoke_tool=invoke)
