"""Checkpoints of LangGraph that only the holder of a thread's lease writes.

    async with client.lease("thread:42") as lease:
        graph = builder.compile(checkpointer=FencedSaver(saver, lease))
        await graph.ainvoke(question, {"configurable": {"thread_id": "42"}})

For the tools of a graph see interlock.ext.langchain: ToolNode(tools, awrap_tool_call=Leases(...).awrap_tool_call).
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from .._errors import LeaseLost
from .._handle import Handle

#: The name of the fence in the metadata of a checkpoint.
FENCE = "interlock_fence"


class FencedSaver(BaseCheckpointSaver[Any]):
    """A saver that writes under a lease, into another saver, and keeps the fence of the lease beside each checkpoint.

    A write raises LeaseLost if the lease is lost, or if its thread has a checkpoint under a higher fence: then a later
    holder has written, and this process was paused without noticing it. Reads need no lease. The comparison and the
    write are two steps: a process that is paused between them may still write once.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any], lease: Handle) -> None:
        super().__init__(serde=saver.serde)
        self._saver, self._lease = saver, lease

    def _check(self, latest: list[Any]) -> None:
        self._lease.check()
        highest = max((int(found.metadata.get(FENCE, 0)) for found in latest if found is not None), default=0)
        if highest > self._lease.fence:
            message = f"the thread has a checkpoint under fence {highest}, above {self._lease.fence} of this lease"
            raise LeaseLost("fenced", message, self._lease.keys)

    def _enter(self, config: Any) -> None:
        self._check([self._saver.get_tuple(place) for place in _latest(config["configurable"])])

    async def _aenter(self, config: Any) -> None:
        self._check([await self._saver.aget_tuple(place) for place in _latest(config["configurable"])])

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self._enter(config)
        return self._saver.put(config, checkpoint, {**metadata, FENCE: self._lease.fence}, new_versions)

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        await self._aenter(config)
        return await self._saver.aput(config, checkpoint, {**metadata, FENCE: self._lease.fence}, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self._enter(config)
        self._saver.put_writes(config, writes, task_id, task_path)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        await self._aenter(config)
        await self._saver.aput_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        self._enter({"configurable": {"thread_id": thread_id}})
        self._saver.delete_thread(thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._aenter({"configurable": {"thread_id": thread_id}})
        await self._saver.adelete_thread(thread_id)

    # What is read, and what the graph asks of its saver.

    def get_tuple(self, config: Any) -> Any:
        return self._saver.get_tuple(config)

    async def aget_tuple(self, config: Any) -> Any:
        return await self._saver.aget_tuple(config)

    def list(self, config: Any, **selection: Any) -> Iterator[Any]:
        found: Iterator[Any] = self._saver.list(config, **selection)
        return found

    def alist(self, config: Any, **selection: Any) -> AsyncIterator[Any]:
        found: AsyncIterator[Any] = self._saver.alist(config, **selection)
        return found

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self._saver.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> FencedSaver:
        return FencedSaver(self._saver.with_allowlist(extra_allowlist), self._lease)


def _latest(configurable: Any) -> Iterator[Any]:
    """The latest checkpoints to compare with: that of the graph, and in a graph within it also its own."""
    for namespace in sorted({"", configurable.get("checkpoint_ns", "")}):
        yield {"configurable": {"thread_id": configurable["thread_id"], "checkpoint_ns": namespace}}
