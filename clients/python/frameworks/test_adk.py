"""Leases for ADK, with a fake model."""

from __future__ import annotations

from typing import Any

from conftest import Tool
from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import Field

from interlock import AsyncClient
from interlock.ext.adk import Leases


class Model(BaseLlm):
    """A fake model that calls the tool once."""

    model: str = "fake"
    arguments: dict[str, str] = Field(default_factory=dict)
    found: list[str] = Field(default_factory=list)

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        answers = [p.function_response for c in llm_request.contents for p in c.parts if p.function_response]
        if answers:
            response = answers[0].response
            self.found.append(str(response.get("error") or response.get("result")))
            part = types.Part(text="done")
        else:
            part = types.Part(function_call=types.FunctionCall(name="refund", args=self.arguments))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def agent(tool: Tool, client: AsyncClient, wait: float) -> str:
    async def refund(account_id: str) -> str:
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
    return model.found[0]


def test_cases(cases: Any) -> None:
    cases(agent)


def test_missing_argument(missing: Any) -> None:
    missing(agent)
