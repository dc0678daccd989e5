"""Leases for the tools of LangChain: create_agent(model, tools, middleware=[Leases({"refund": "account:{id}"})]).

ainvoke and astream need an AsyncClient, invoke and stream a Client.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from .._async import AsyncClient
from .._errors import InterlockError
from .._guard import ToolReport
from .._sync import Client
from . import ToolKeys


class Leases(AgentMiddleware):
    """Runs each of the tools under a lease. A key that is taken becomes the result of the tool, for the model."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | Client | None = None, **options: Any) -> None:
        super().__init__()
        self._tools = ToolKeys(keys, client, **options)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        call, raised = request.tool_call, _Raised()

        def body() -> Any:
            return raised.out_of(handler(raised.watch(request)))

        return self._tools.run_blocking(call["name"], call["args"], body, lambda report: _result(report, call))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call, raised = request.tool_call, _Raised()

        async def body() -> Any:
            return raised.out_of(await handler(raised.watch(request)))

        return await self._tools.run(call["name"], call["args"], body, lambda report: _result(report, call))


class _Raised:
    """What a tool raises of Interlock's errors. A ToolNode with handle_tool_errors makes a text of its own of them."""

    def __init__(self) -> None:
        self.error: InterlockError | None = None

    def watch(self, request: Any) -> Any:
        """Returns the request with a tool that tells what it raises."""
        tool = request.tool
        if tool is None:
            return request
        watched = copy.copy(tool)

        def invoke(*args: Any, **kwargs: Any) -> Any:
            self.error = None
            try:
                return tool.invoke(*args, **kwargs)
            except InterlockError as error:
                self.error = error
                raise

        async def ainvoke(*args: Any, **kwargs: Any) -> Any:
            self.error = None
            try:
                return await tool.ainvoke(*args, **kwargs)
            except InterlockError as error:
                self.error = error
                raise

        object.__setattr__(watched, "invoke", invoke)  # a tool is a model of pydantic, without these as fields
        object.__setattr__(watched, "ainvoke", ainvoke)
        return request.override(tool=watched)

    def out_of(self, result: Any) -> Any:
        """Returns the result, or raises the error that it was made of."""
        if self.error is not None and isinstance(result, ToolMessage) and result.status == "error":
            raise self.error
        return result


def _result(report: ToolReport, call: Any) -> Any:
    if not report.returned:
        return ToolMessage(str(report), name=call["name"], tool_call_id=call["id"], status="error")
    return _told(report, report.result, call["id"])


def _told(report: ToolReport, result: Any, call: str) -> Any:
    """Returns the result of the tool with the report in its message, wherever that is."""
    if isinstance(result, ToolMessage) and result.tool_call_id == call:
        text: Any = report.about(result.content)
        if result.status == "error":
            text = f"{result.content} {report.notice}"  # the node has made a text of an error
        if not isinstance(result.content, str):
            text = [*result.content, {"type": "text", "text": report.notice}]
        return result.model_copy(update={"content": text})
    if isinstance(result, Command) and isinstance(result.update, (dict, list)):
        return dataclasses.replace(result, update=_told(report, result.update, call))
    if isinstance(result, list):
        return [_told(report, one, call) for one in result]
    if isinstance(result, dict):
        return {key: _told(report, one, call) if isinstance(one, list) else one for key, one in result.items()}
    return result
