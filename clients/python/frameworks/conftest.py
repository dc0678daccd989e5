"""What the tests of all frameworks share: a tool, and the cases that each has to pass."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from interlock import (
    AsyncClient,
    Client,
    Closed,
    EffectTaken,
    Held,
    InterlockError,
    LeaseLost,
    OutcomeUnknown,
    Refused,
    Stale,
    Unreachable,
    current_lease,
    ext,
)
from interlock.testing import LocalServer

pytest_plugins = ["interlock.pytest_plugin"]

KEY = "account:7"


class Tool:
    """The body of a tool that must not run twice at once."""

    def __init__(self) -> None:
        self.runs = self.failures = self.inside = 0
        self.raises = False
        self.waits: asyncio.Event | None = None
        #: What it does in place of its work.
        self.body: Callable[[], Any] | None = None
        #: What the model passes.
        self.arguments = {"account_id": "7"}

    async def run(self, account_id: str) -> Any:
        self.inside += 1
        try:
            assert self.inside == 1, "two calls at once"
            current_lease().check()
            if self.body is not None:
                await asyncio.sleep(0)
                return self.body()
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


class Bank:
    """An account of 100, for an agent that reads it with one tool, thinks, and writes it with another."""

    def __init__(self, options: dict[str, Any] | None = None, readers: int = 1) -> None:
        self.balance = 100
        #: How the leases are held, and how many agents read before one of them goes on.
        self.options, self.readers = options or {}, readers
        self.reads = 0
        self.all_read = asyncio.Event()
        #: What happens after the first read; the second one fails then.
        self.between: Callable[[], None] | None = None

    async def get_balance(self, client: AsyncClient) -> str:
        found = self.balance
        if self.between is not None and self.reads == 1:
            self.reads += 1
            raise ValueError("the bank is closed")
        if self.between is not None and self.reads == 0:  # in a thread that is no part of the run
            await asyncio.get_running_loop().run_in_executor(None, self.between)
        await client.status()
        self.reads += 1
        if self.reads == self.readers:
            self.all_read.set()
        await self.all_read.wait()
        return str(found)

    async def set_balance(self, client: AsyncClient, balance: int) -> str:
        await client.status()
        self.balance = balance
        return f"it is {balance}"


#: The tools of such an agent.
BANK_KEYS = {"get_balance": "account:{account_id}", "set_balance": "account:{account_id}"}
#: How such an agent works without waiting for others that think.
COMMIT: dict[str, Any] = {"hold": "commit", "reads": ["get_balance"]}


def next_call(results: list[str], change: int) -> tuple[str, dict[str, Any]] | None:
    """Returns what the model calls after the results of its tools: it adds to the balance, and does as it is told.

    With a change of 0 it reads a second time, and goes by the first read if the second one fails.
    """
    if change == 0 and len(results) == 1:
        return "get_balance", {"account_id": "7"}
    if change == 0 and len(results) == 2:
        return "set_balance", {"account_id": "7", "balance": int(results[0])}
    if not results or "Call get_balance again" in results[-1]:
        return "get_balance", {"account_id": "7"}
    if results[-1].isdigit():
        return "set_balance", {"account_id": "7", "balance": int(results[-1]) + change}
    return None


#: Runs such an agent, which adds to the balance.
Turn = Callable[[Bank, AsyncClient, int], Awaitable[None]]


@pytest.fixture(params=["run", "commit"])
def sums(interlock_server: LocalServer, other: Client, request: Any) -> Callable[[Turn], None]:
    """Has two agents change one account at once, 20 times. Nothing is lost, and nothing stays taken.

    With hold="commit" both have read before one writes, so the other one is refused once and reads again.
    """
    options, readers, reads = (COMMIT, 2, 3) if request.param == "commit" else ({}, 1, 2)

    async def run(turn: Turn) -> None:
        url = interlock_server.url
        async with AsyncClient(url, agent="one") as one, AsyncClient(url, agent="two") as two:
            for _ in range(20):
                bank = Bank(options, readers)
                await asyncio.gather(turn(bank, one, 50), turn(bank, two, -20))
                assert (bank.balance, bank.reads) == (130, reads)
            (await asyncio.to_thread(other.acquire, KEY, wait=30)).release()
            # The agent is part of what holds the key around it.
            async with one.lease(KEY):
                bank = Bank(options)
                await asyncio.wait_for(turn(bank, one, 50), 60)
                assert bank.balance == 150

    return lambda turn: asyncio.run(run(turn))


@pytest.fixture
def failed_read(interlock_server: LocalServer, other: Client) -> Callable[[Turn], None]:
    """Has somebody else write after an agent has read, and its second read fail. The first one is out of date."""

    async def run(turn: Turn) -> None:
        bank = Bank(COMMIT)

        def write() -> None:
            with other.lease(KEY):
                bank.balance = 65

        bank.between = write
        async with AsyncClient(interlock_server.url, agent="one") as one:
            await turn(bank, one, 0)
        assert (bank.balance, bank.reads) == (65, 3)

    return lambda turn: asyncio.run(run(turn))


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


def lose(client: AsyncClient | Client) -> None:
    """Has the lease of the running tool be lost, too late to cancel the tool. Its key is free at once."""
    core, grant = client._engine.core, current_lease()._grant
    grant.listeners.clear()
    core.end(grant, "revoked", "an operator has revoked it")
    server = core.caller.servers.all[0]
    url = f"{server.url}/v1/leases/{grant.id}/release"
    request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def thrower(error: BaseException) -> Callable[[], Any]:
    def body() -> Any:
        raise error

    return body


CHECK = "Check before you repeat it."
LOST = f"The lease on {KEY} was lost meanwhile (an operator has revoked it): others may have written. {CHECK}"


def _errors() -> list[InterlockError]:
    """Errors that a tool may meet on its way."""
    advice = {"action": "stop", "retry_after_ms": 0, "message": "acquire again"}
    problem: Any = {"code": "held", "detail": "ledger:1 is held", "advice": advice}
    refusals = [kind(problem) for kind in (Held, Refused, EffectTaken, Stale)]
    lost = LeaseLost("expired", "ledger:1 was not confirmed", ("ledger:1",))
    return [*refusals, lost, OutcomeUnknown("no answer"), Unreachable("no server"), Closed()]


def within(play: Callable[[Callable[[], Any]], str], client: AsyncClient | Client) -> Iterator[tuple[str, str]]:
    """Plays a tool that does various things under its lease. It returns what the model read, and what it should."""
    for error in _errors():
        yield play(thrower(error)), f"It may have been done in part: {error.message}. {CHECK}"

    def checks() -> None:
        lose(client)
        current_lease().check()

    yield play(checks), f"It may have been done in part: an operator has revoked it. {CHECK}"

    def ends() -> str:
        lose(client)
        return "refunded 7"

    yield play(ends), f"It returned: refunded 7. {LOST}"


@pytest.fixture
def reports(interlock_server: LocalServer, other: Client) -> Callable[..., None]:
    """Compares what the model reads of a call that does not simply return, before and within its tool.

    With media the tool returns such, and the model reads of the loss beside it.
    """

    def check(agent: Agent, media: Any = None) -> None:
        def play(body: Callable[[], Any]) -> str:
            async def run() -> str:
                tool.body = body
                text = await agent(tool, client, 0)
                await asyncio.gather(*ext._ends)  # LangChain does not wait for what its callbacks have begun
                return text

            return loop.run_until_complete(run())

        with asyncio.Runner() as runner:
            loop, tool = runner.get_loop(), Tool()
            client = AsyncClient(interlock_server.url, agent="one")
            try:
                with other.lease(KEY, purpose="phone call"):
                    text = play(lambda: pytest.fail("it ran"))
                assert text.startswith(f"Not done: {KEY} is held by elsewhere") and "before you repeat" not in text
                for text, expected in within(play, client):
                    assert text == expected
                if media is not None:
                    text = play(lambda: (lose(client), media)[1])
                    assert LOST in text and "It returned" not in text and "image" in text
                # An error of the tool's own is left to the framework.
                with contextlib.suppress(Exception):
                    text = play(thrower(ValueError("the bank is closed")))
                    assert "done" not in text and "returned" not in text
            finally:
                loop.run_until_complete(client.close())

    return check
