"""Leases for the tools of LangChain: create_agent(model, tools, middleware=[Leases({"refund": "account:{id}"})])."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage

from .._async import AsyncClient
from .._errors import Held, LeaseLost
from .._guard import refusal_text
from . import ToolKeys


class Leases(AgentMiddleware):
    """Runs each of the tools under a lease, in ainvoke and astream. A key that is taken is an answer for the model."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | None = None, **options: Any) -> None:
        super().__init__()
        self._tools = ToolKeys(keys, client, **options)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = request.tool_call
        lease = self._tools.lease(call["name"], call["args"])
        if lease is None:
            return await handler(request)
        try:
            async with lease:
                return await handler(request)
        except (Held, LeaseLost) as error:
            return ToolMessage(refusal_text(error), name=call["name"], tool_call_id=call["id"], status="error")
