"""Leases for the tools of the OpenAI Agents SDK: tools=[leased(refund, "account:{account_id}")].

A lease is held to the end of the run, that of Runner.run, run_sync or run_streamed. The first leased tool puts a runner
in the place of the SDK's own, which tells the end of each run.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterable
from typing import Any

from agents import FunctionTool, ToolOutputText
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner

from .._async import AsyncClient
from .._errors import InterlockError
from .._guard import ToolReport, is_report
from . import Hold, Run, ToolKeys, current_run, run_scope, soon


def leased(
    tool: FunctionTool,
    key: str,
    client: AsyncClient | None = None,
    hold: Hold = "run",
    reads: Iterable[str] = (),
    **options: Any,
) -> FunctionTool:
    """Returns the tool as one that runs under a lease, which is held to the end of the run.

    A key that is taken is its result, for the model. hold="call" holds the lease for one call alone.
    With hold="commit", reads names the tools that only read: they hold none, and the others are refused if the key
    changed since it was read.
    """
    reads = [reads] if isinstance(reads, str) else list(reads)
    tools = ToolKeys(dict.fromkeys([tool.name, *reads], key), client, hold, reads, **options)
    if hold != "call":
        _watch_runs()

    async def invoke(context: Any, text: str) -> Any:
        try:
            arguments = json.loads(text or "{}")
        except ValueError:
            arguments = {}  # what the model wrote is not JSON
        call = _Call(tool)
        return await tools.run(tool.name, arguments, lambda: call.run(context, text), call.result, failed=call.failed)

    return dataclasses.replace(tool, on_invoke_tool=invoke)


class _Runner(AgentRunner):
    """The SDK's runner, which tells the end of each run."""

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        async with run_scope():
            return await super().run(starting_agent, input, **options)

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        run = Run()
        before = current_run.set(run)
        try:
            result = super().run_streamed(starting_agent, input, **options)
        finally:
            current_run.reset(before)
        task: Any = result.run_loop_task
        if task is not None:
            task.add_done_callback(lambda _: soon(run.end()))
        return result


def _watch_runs() -> None:
    if type(get_default_agent_runner()) is AgentRunner:
        set_default_agent_runner(_Runner())


class _Call:
    """One call of a tool. Of what the tool raises the SDK makes a text of its own, which asks to try again."""

    def __init__(self, tool: FunctionTool) -> None:
        self._invoker: Any = tool.on_invoke_tool
        self._raised: BaseException | None = None

    def failed(self, result: Any) -> bool:
        """Whether a result was made of an error, by the SDK or by a guarded tool."""
        return self._raised is not None or is_report(result)

    async def run(self, context: Any, text: str) -> Any:
        """Runs the tool, and raises what it raises of Interlock's errors."""
        run: Any = getattr(self._invoker, "_invoke_tool_impl", None)
        if run is None:
            return await self._invoker(context, text)

        async def watched(context: Any, text: str) -> Any:
            try:
                return await run(context, text)
            except BaseException as error:
                self._raised = error
                raise

        invoker = copy.copy(self._invoker)
        invoker._invoke_tool_impl = watched
        result = await invoker(context, text)
        if isinstance(self._raised, InterlockError):
            raise self._raised
        return result

    def result(self, report: ToolReport) -> Any:
        """Returns the result for the model, which keeps the parts of the tool's own result that are not text."""
        if report.returned and self._raised is not None:
            return f"{report.result} {report.notice}"
        parts = report.result if isinstance(report.result, list) else [report.result]
        kinds = [part.get("type") if isinstance(part, dict) else getattr(part, "type", None) for part in parts]
        if "image" in kinds or "file" in kinds:
            return [*parts, ToolOutputText(text=report.notice)]
        if parts and all(isinstance(part, ToolOutputText) for part in parts):
            return report.about("\n".join(part.text for part in parts))
        return str(report)
