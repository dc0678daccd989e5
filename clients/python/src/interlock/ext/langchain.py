"""Leases for the tools of LangChain: create_agent(model, tools, middleware=[Leases({"refund": "account:{id}"})]).

ainvoke and astream need an AsyncClient, invoke and stream a Client. A lease is held to the end of the invocation of the
graph that has the tools. An invocation that stops to ask a person has ended, and its leases with it.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import contextvars
import copy
import dataclasses
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.tracers.context import register_configure_hook
from langgraph.types import Command

from .._async import AsyncClient
from .._errors import InterlockError
from .._guard import ToolReport, is_report
from .._sync import Client, Lease
from . import Hold, Run, ToolKeys, soon


class Leases(AgentMiddleware):
    """Runs the tools under leases, each of which is held from the first tool that names it to the end of the run.

    A key that is taken becomes the result of the tool, for the model. hold="call" holds a lease for one call alone.
    With hold="commit" the tools in reads hold none, and the others are refused if the key changed since it was read.
    """

    def __init__(
        self,
        keys: Mapping[str, str],
        client: AsyncClient | Client | None = None,
        hold: Hold = "run",
        reads: Iterable[str] = (),
        **options: Any,
    ) -> None:
        super().__init__()
        self._tools = ToolKeys(keys, client, hold, reads, **options)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        call, raised = request.tool_call, _Raised()

        def body() -> Any:
            return raised.out_of(handler(raised.watch(request)))

        run = _runs.of(request)
        return self._tools.run_blocking(
            call["name"], call["args"], body, lambda report: _result(report, call), run, _failed
        )

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call, raised = request.tool_call, _Raised()

        async def body() -> Any:
            return raised.out_of(await handler(raised.watch(request)))

        run = _runs.of(request)
        return await self._tools.run(
            call["name"], call["args"], body, lambda report: _result(report, call), run, _failed
        )


class _Runs(BaseCallbackHandler):
    """The invocations of graphs that go on, and their leases. LangChain tells it of each."""

    run_inline = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parents: dict[Any, tuple[Any, bool]] = {}
        self._runs: dict[Any, Run] = {}

    def of(self, request: Any) -> Run | None:
        """Returns the invocation of the graph whose node calls a tool."""
        callbacks = ((getattr(request.runtime, "config", None) or {}).get("callbacks")) if request.runtime else None
        found = getattr(callbacks, "parent_run_id", None)
        with self._lock:
            while found in self._parents:
                parent, is_node = self._parents[found]
                if is_node or parent not in self._parents:
                    found = parent if parent in self._parents else found
                    return self._runs.setdefault(found, Run(str(found)))
                found = parent
        return None

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: Any, parent_run_id: Any = None, tags: Any = None, **more: Any
    ) -> None:
        is_node = any(str(tag).startswith("graph:step:") for tag in tags or ())
        with self._lock:
            self._parents[run_id] = parent_run_id, is_node

    def on_chain_end(self, outputs: Any, *, run_id: Any, **more: Any) -> None:
        self._end(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: Any, **more: Any) -> None:
        self._end(run_id, error)

    def _end(self, run_id: Any, error: BaseException | None) -> None:
        with self._lock:
            self._parents.pop(run_id, None)
            run = self._runs.pop(run_id, None)
        if run is None:
            return
        if all(isinstance(lease, Lease) for lease in run.leases.values()):
            run.end_blocking(error)
        else:
            soon(run.end(error))


_runs = _Runs()
register_configure_hook(contextvars.ContextVar("interlock_runs", default=_runs), inheritable=True)


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


def _failed(result: Any) -> bool:
    """Whether a result was made of an error, by the node or by a guarded tool."""
    return isinstance(result, ToolMessage) and (result.status == "error" or is_report(result.content))


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
