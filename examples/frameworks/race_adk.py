"""Two agents of Google ADK charge one account. The model is a fake one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from bank import balances, decide, get_balance, set_balance
from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from interlock import AsyncClient
from interlock.ext.adk import Leases, session_lease


def teller(client: AsyncClient, model: BaseLlm) -> App:
    account = "account:{account_id}"
    leases = Leases({"get_balance": account, "set_balance": account}, client=client, wait=20)
    agent = LlmAgent(name="teller", model=model, tools=[get_balance, set_balance])
    return App(name="bank", root_agent=agent, plugins=[leases])


async def ask(runner: InMemoryRunner, client: AsyncClient, user: str, message: types.Content) -> None:
    async with session_lease(runner, user_id=user, session_id="today", client=client, wait=60):
        async for event in runner.run_async(user_id=user, session_id="today", new_message=message):
            if event.is_final_response():
                print(event.content.parts[0].text)


class FakeModel(BaseLlm):
    """Calls the tools, and repeats the last result."""

    model: str = "fake"

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        parts = [part for content in llm_request.contents for part in content.parts]
        next_step = decide([part.function_response.response["result"] for part in parts if part.function_response])
        if isinstance(next_step, str):
            part = types.Part(text=next_step)
        else:
            part = types.Part.from_function_call(name=next_step[0], args=next_step[1])
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def run(user: str) -> None:
    async with AsyncClient(agent=f"teller-of-{user}") as client:
        runner = InMemoryRunner(app=teller(client, FakeModel()))
        await runner.session_service.create_session(app_name="bank", user_id=user, session_id="today")
        await ask(runner, client, user, types.Content(role="user", parts=[types.Part(text="charge the fee")]))


async def main() -> None:
    await asyncio.gather(run("ann"), run("bob"))
    print("balance", balances["7"])


asyncio.run(main())
