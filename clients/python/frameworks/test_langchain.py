"""Leases for LangChain, with a fake chat model."""

from __future__ import annotations

from typing import Any

from conftest import Tool
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool as as_tool

from interlock import AsyncClient
from interlock.ext.langchain import Leases


class Model(GenericFakeChatModel):
    """A fake model that accepts tools."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


async def agent(tool: Tool, client: AsyncClient, wait: float) -> str:
    @as_tool
    async def refund(account_id: str) -> str:
        """Refunds."""
        return await tool.run(account_id)

    call = {"name": "refund", "args": {"account_id": "7"}, "id": "c1", "type": "tool_call"}
    model = Model(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("done")]))
    leases = Leases({"refund": "account:{account_id}"}, client=client, wait=wait)
    actor: Any = create_agent(model, [refund], middleware=[leases])
    result = await actor.ainvoke({"messages": [("user", "refund it")]})
    return next(str(m.content) for m in result["messages"] if isinstance(m, ToolMessage))


def test_cases(cases: Any) -> None:
    cases(agent)
