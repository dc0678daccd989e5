"""What the tests of all frameworks share: a tool, and the cases that each has to pass."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from interlock import AsyncClient, Client, current_lease
from interlock.testing import LocalServer

pytest_plugins = ["interlock.pytest_plugin"]

KEY = "account:7"


class Tool:
    """The body of a tool that must not run twice at once."""

    def __init__(self) -> None:
        self.runs = self.failures = self.inside = 0
        self.raises = False
        self.waits: asyncio.Event | None = None
        #: What the model passes.
        self.arguments = {"account_id": "7"}

    async def run(self, account_id: str) -> str:
        self.inside += 1
        try:
            assert self.inside == 1, "two calls at once"
            current_lease().check()
            if self.raises:
                self.failures += 1
                raise ValueError("the bank is closed")
            if self.waits is not None:
                self.waits.set()
                await asyncio.sleep(60)
            await asyncio.sleep(0.01)
            self.runs += 1
            return f"refunded {account_id}"
        finally:
            self.inside -= 1


#: Runs an agent whose model calls the tool once, and returns what the model got as its result.
Agent = Callable[[Tool, AsyncClient, float], Awaitable[str]]


@pytest.fixture
def other(interlock_server: LocalServer) -> Iterator[Client]:
    """An agent elsewhere."""
    with Client(interlock_server.url, agent="elsewhere") as client:
        yield client


@pytest.fixture
def cases(interlock_server: LocalServer, other: Client) -> Callable[[Agent], None]:
    """Carries out the five cases."""

    def check(agent: Agent) -> None:
        asyncio.run(_cases(agent, interlock_server.url, other))

    return check


@pytest.fixture
def missing(interlock_server: LocalServer) -> Callable[[Agent], None]:
    """Runs an agent whose model forgets the argument that the key names: it reads that, and nothing is run."""

    async def run(agent: Agent) -> None:
        tool = Tool()
        tool.arguments = {}
        async with AsyncClient(interlock_server.url) as client:
            assert "lacks an argument that its key account:{account_id} names" in await agent(tool, client, 0)
        assert tool.runs == 0

    return lambda agent: asyncio.run(run(agent))


async def _cases(agent: Agent, url: str, other: Client) -> None:
    tool = Tool()
    async with AsyncClient(url, agent="one") as one, AsyncClient(url, agent="two") as two:
        # free
        assert await agent(tool, one, 0) == "refunded 7"
        # held
        with other.lease(KEY, purpose="phone call"):
            assert "elsewhere" in await agent(tool, one, 0)
        assert tool.runs == 1
        # the tool raises
        tool.raises = True
        with contextlib.suppress(Exception):  # some frameworks hand it to the caller, others to the model
            await agent(tool, one, 0)
        assert (tool.failures, tool.inside) == (1, 0)
        tool.raises = False
        await asyncio.to_thread(lambda: other.acquire(KEY, wait=10).release())
        # cancelled
        tool.waits = asyncio.Event()
        task: Any = asyncio.ensure_future(agent(tool, one, 0))
        await asyncio.wait_for(tool.waits.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        tool.waits = None
        await asyncio.to_thread(lambda: other.acquire(KEY, wait=10).release())
        # two agents race
        texts = await asyncio.gather(agent(tool, one, 30), agent(tool, two, 30))
        assert list(texts) == ["refunded 7", "refunded 7"]
        assert tool.runs == 3
