"""Leases for the tools of LangChain: create_agent(model, tools, middleware=[Leases({"refund": "account:{id}"})]).

ainvoke and astream need an AsyncClient, invoke and stream a Client.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage

from .._async import AsyncClient
from .._guard import refusal_text
from .._sync import Client
from . import REFUSALS, ToolKeys


class Leases(AgentMiddleware):
    """Runs each of the tools under a lease. A key that is taken becomes the result of the tool, for the model."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | Client | None = None, **options: Any) -> None:
        super().__init__()
        self._tools = ToolKeys(keys, client, **options)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = request.tool_call
        try:
            lease = self._tools.blocking(call["name"], call["args"])
            if lease is None:
                return handler(request)
            with lease:
                return handler(request)
        except REFUSALS as error:
            return ToolMessage(refusal_text(error), name=call["name"], tool_call_id=call["id"], status="error")

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = request.tool_call
        try:
            lease = self._tools.lease(call["name"], call["args"])
            if lease is None:
                return await handler(request)
            async with lease:
                return await handler(request)
        except REFUSALS as error:
            return ToolMessage(refusal_text(error), name=call["name"], tool_call_id=call["id"], status="error")
