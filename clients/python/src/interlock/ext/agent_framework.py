"""Leases for the tools of Microsoft's Agent Framework: Agent(..., middleware=[Leases({"refund": "account:{id}"})])."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportGeneralTypeIssues=false

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from agent_framework import AgentMiddleware, Content, FunctionMiddleware

from .._async import AsyncClient
from .._guard import ToolReport
from . import Hold, Run, ToolKeys, current_run, run_scope


class _Runs(AgentMiddleware):
    """Tells the beginning and the end of each run."""

    async def process(self, context: Any, call_next: Any) -> None:
        if not context.stream:
            async with run_scope():
                await call_next()
            return
        run = Run()
        before = current_run.get()
        current_run.set(run)  # the stream is read in this context

        async def end() -> None:
            current_run.set(before)
            await run.end()

        try:
            await call_next()
        except BaseException:
            await end()
            raise
        context.result.with_cleanup_hook(end)


class _Tools(FunctionMiddleware):
    """Runs each of the tools under its lease."""

    def __init__(self, tools: ToolKeys) -> None:
        self._tools = tools

    async def process(self, context: Any, call_next: Any) -> None:
        given = context.arguments
        arguments = given if isinstance(given, Mapping) else given.model_dump()

        async def body() -> Any:
            await call_next()
            return context.result

        context.result = await self._tools.run(context.function.name, arguments, body, _result)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the framework calls bundles experimental
    from agent_framework import MiddlewareBundle

    class Leases(MiddlewareBundle):
        """Runs the tools under leases, each of which is held from the first tool that names it to the end of the run.

        A key that is taken becomes the result of the tool, for the model. hold="call" holds a lease for one call alone.
        With hold="commit" the tools in reads hold none, and the others are refused if the key changed since they read
        it.
        """

        def __init__(
            self,
            keys: Mapping[str, str],
            client: AsyncClient | None = None,
            hold: Hold = "run",
            reads: Iterable[str] = (),
            **options: Any,
        ) -> None:
            tools = _Tools(ToolKeys(keys, client, hold, reads, **options))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                super().__init__([_Runs(), tools] if hold != "call" else [tools])


def _result(report: ToolReport) -> Any:
    """Returns the result for the model, which keeps the parts of the tool's own result that are not text."""
    parts = report.result if isinstance(report.result, list) else [report.result]
    if not parts or not all(isinstance(part, Content) for part in parts):
        return str(report)
    if all(part.type == "text" for part in parts):
        return report.about("\n".join(part.text for part in parts))
    return [*parts, Content.from_text(report.notice)]
