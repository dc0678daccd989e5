"""Leases for ADK, with a fake model."""

from __future__ import annotations

import asyncio
from typing import Any

from conftest import BANK_KEYS, KEY, LOST, Bank, Tool, lose, next_call
from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import Field

from interlock import AsyncClient, current_lease
from interlock.ext.adk import Leases
from interlock.testing import LocalServer


class Model(BaseLlm):
    """A fake model that calls the tool once."""

    model: str = "fake"
    arguments: dict[str, str] = Field(default_factory=dict)
    found: list[str] = Field(default_factory=list)
    responses: list[Any] = Field(default_factory=list)

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        answers = [p.function_response for c in llm_request.contents for p in c.parts if p.function_response]
        if answers:
            response = answers[0].response
            self.found.append(str(response.get("error") or response.get("result")))
            self.responses.append(answers[0])
            part = types.Part(text="done")
        else:
            part = types.Part(function_call=types.FunctionCall(name="refund", args=self.arguments))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def agent(tool: Tool, client: AsyncClient, wait: float) -> str:
    return str((await play(tool, client, wait)).found[0])


async def play(tool: Tool, client: AsyncClient, wait: float) -> Model:
    async def refund(account_id: str) -> Any:
        """Refunds."""
        return await tool.run(account_id)

    model = Model(arguments=tool.arguments)
    leases = Leases({"refund": "account:{account_id}"}, client=client, wait=wait)
    app = App(name="bank", root_agent=LlmAgent(name="teller", model=model, tools=[refund]), plugins=[leases])
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name="bank", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="refund it")])
    async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        pass
    return model


def test_cases(cases: Any) -> None:
    cases(agent)


def test_reports(reports: Any) -> None:
    reports(agent)


def test_missing_argument(missing: Any) -> None:
    missing(agent)


def test_results_that_are_no_text(interlock_server: LocalServer) -> None:
    image = types.Part.from_bytes(data=b"x", mime_type="image/png")
    results: list[tuple[Any, Any]] = [
        ({"cents": 900}, {"result": f'It returned: {{"cents": 900}}. {LOST}'}),
        (None, {"result": f"It returned nothing. {LOST}"}),
        ({"image": image, "cents": 900}, {"result": {"cents": 900}, "notice": LOST}),
    ]

    async def run() -> None:
        async with AsyncClient(interlock_server.url) as client:
            for result, response in results:
                tool = Tool()

                def body(result: Any = result) -> Any:
                    lose(client)
                    return result

                tool.body = body
                found = (await play(tool, client, 0)).responses[0]
                assert found.response == response
                assert bool(found.parts) == ("notice" in response)

    asyncio.run(run())


class Teller(BaseLlm):
    """A fake model that reads the balance and writes another one."""

    model: str = "fake"
    change: int = 0

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        answers = [p.function_response for c in llm_request.contents for p in c.parts if p.function_response]
        call = next_call(
            [str(answer.response.get("result", answer.response.get("error"))) for answer in answers], self.change
        )
        part = types.Part(text="done")
        if call is not None:
            part = types.Part(function_call=types.FunctionCall(name=call[0], args=call[1]))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


class Errors(BasePlugin):
    """Makes a result of the error of a tool."""

    def __init__(self) -> None:
        super().__init__(name="errors")

    async def on_tool_error_callback(self, *, error: Any, **more: Any) -> Any:
        return {"error": str(error)}


async def turn(bank: Bank, client: AsyncClient, change: int) -> None:
    async def get_balance(account_id: str) -> str:
        """Reads."""
        return await bank.get_balance(client)

    async def set_balance(account_id: str, balance: int) -> str:
        """Writes."""
        return await bank.set_balance(client, balance)

    leases, model = Leases(BANK_KEYS, client=client, wait=60, **bank.options), Teller(change=change)
    actor = LlmAgent(name="teller", model=model, tools=[get_balance, set_balance])
    runner = InMemoryRunner(app=App(name="bank", root_agent=actor, plugins=[leases, Errors()]))
    session = await runner.session_service.create_session(app_name="bank", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="change it")])
    async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        pass


def test_sums(sums: Any) -> None:
    sums(turn)


def test_failed_read(failed_read: Any) -> None:
    failed_read(turn)


class Twice(BaseLlm):
    """A fake model that calls the tool twice at once."""

    model: str = "fake"
    results: list[str] = Field(default_factory=list)

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        answers = [p.function_response for c in llm_request.contents for p in c.parts if p.function_response]
        self.results[:] = sorted(str(one.response.get("error") or one.response.get("result")) for one in answers)
        call = types.FunctionCall(name="refund", args={"account_id": "7"})
        parts = [types.Part(text="done")] if answers else [types.Part(function_call=call) for _ in range(2)]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def test_loss_while_a_call_waits_for_its_turn(interlock_server: LocalServer) -> None:
    """Others may have written after that: the second call of the run does not begin."""
    began: list[int] = []

    async def main() -> list[str]:
        async with AsyncClient(interlock_server.url) as client:

            async def refund(account_id: str) -> str:
                """Refunds."""
                began.append(current_lease().fence)
                await client.status()  # the other call waits for its turn by then
                lose(client)
                return "refunded"

            model, leases = Twice(), Leases({"refund": KEY}, client=client, wait=0)
            actor = LlmAgent(name="teller", model=model, tools=[refund])
            runner = InMemoryRunner(app=App(name="bank", root_agent=actor, plugins=[leases]))
            session = await runner.session_service.create_session(app_name="bank", user_id="u")
            message = types.Content(role="user", parts=[types.Part(text="refund it")])
            async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
                pass
            return model.results

    returned, refused = asyncio.run(main())
    assert returned == f"It returned: refunded. {LOST}"
    assert refused.startswith("Not done: an operator has revoked it, since an earlier call of this run")
    assert len(began) == 1
