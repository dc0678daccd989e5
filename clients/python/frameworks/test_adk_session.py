"""One session of ADK and several runners: each stands for a process, and all have the same sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from interlock import AsyncClient, Client, Held, LeaseLost
from interlock.ext.adk import session_lease
from interlock.testing import LocalServer

USER, SESSION = "ann@example.org", "s/1"
KEY = "adk:bank/ann%40example.org/s%2F1"


class Model(BaseLlm):
    """A fake model that numbers its answers, after those that it has read."""

    model: str = "fake"
    think: Any = None

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
        await self.think()
        answers = sum(content.role == "model" for content in llm_request.contents)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=str(answers + 1))]))


class Place:
    """The sessions, and a server."""

    def __init__(self, url: str) -> None:
        self.url, self.sessions = url, InMemorySessionService()

    async def ask(self, client: AsyncClient, think: Callable[[], Any], wait: float = 30) -> list[str]:
        """Runs the session once, in a runner of its own, and returns the answers that are in the session then."""
        agent = LlmAgent(name="teller", model=Model(think=think))
        runner = Runner(app_name="bank", agent=agent, session_service=self.sessions, auto_create_session=True)
        message = types.Content(role="user", parts=[types.Part(text="next")])
        async with session_lease(runner, user_id=USER, session_id=SESSION, client=client, wait=wait) as lease:
            async for _ in runner.run_async(user_id=USER, session_id=SESSION, new_message=message):
                lease.check()
            session = await self.sessions.get_session(app_name="bank", user_id=USER, session_id=SESSION)
            assert session is not None
            return [str(event.content.parts[0].text) for event in session.events if event.author == "teller"]


async def at_once() -> None:
    pass


def play(server: LocalServer, scene: Callable[[Place, AsyncClient], Any]) -> None:
    async def run() -> None:
        async with AsyncClient(server.url, agent="one") as client:
            await scene(Place(server.url), client)

    asyncio.run(run())


def test_free_and_held(interlock_server: LocalServer, other: Client) -> None:
    async def scene(place: Place, client: AsyncClient) -> None:
        assert await place.ask(client, at_once, wait=0) == ["1"]
        with other.lease(KEY, purpose="run of a session"), pytest.raises(Held, match="elsewhere"):
            await place.ask(client, at_once, wait=0)
        assert await place.ask(client, at_once, wait=0) == ["1", "2"]

    play(interlock_server, scene)


def test_model_raises(interlock_server: LocalServer, other: Client) -> None:
    async def broken() -> None:
        raise ValueError("no answer")

    async def scene(place: Place, client: AsyncClient) -> None:
        with pytest.raises(ValueError, match="no answer"):
            await place.ask(client, broken)
        await asyncio.to_thread(lambda: other.acquire(KEY, wait=0).release())

    play(interlock_server, scene)


def test_cancelled_and_lost(interlock_server: LocalServer, other: Client) -> None:
    async def scene(place: Place, client: AsyncClient) -> None:
        inside = asyncio.Event()

        async def for_long() -> None:
            inside.set()
            await asyncio.sleep(60)

        task = asyncio.ensure_future(place.ask(client, for_long))
        await asyncio.wait_for(inside.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(lambda: other.acquire(KEY, wait=10).release())

        inside.clear()
        async with AsyncClient(place.url) as second:
            task = asyncio.ensure_future(place.ask(second, for_long))
            await asyncio.wait_for(inside.wait(), 30)
            await second.close()
            with pytest.raises(LeaseLost):
                await task

    play(interlock_server, scene)


def test_two_runners_race(interlock_server: LocalServer) -> None:
    async def scene(place: Place, client: AsyncClient) -> None:
        async def for_a_moment() -> None:
            await asyncio.sleep(0.01)

        async with AsyncClient(place.url, agent="two") as second:
            await asyncio.gather(*(place.ask(c, for_a_moment) for c in [client, second] * 3))
        assert await place.ask(client, at_once) == ["1", "2", "3", "4", "5", "6", "7"]

    play(interlock_server, scene)
