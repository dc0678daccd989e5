"""Two crews of CrewAI charge one account, each in a thread. The model is a fake one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bank import balances, charge_blocking
from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

from interlock import Client, guarded


def teller(client: Client, model: BaseLLM) -> Agent:
    charge = tool("charge")(guarded("account:{account_id}", client=client, wait=20)(charge_blocking))
    return Agent(role="teller", goal="charge fees", backstory="works at a bank", llm=model, tools=[charge])


class FakeModel(BaseLLM):
    """Calls the tool, and repeats its result."""

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        said = messages[-2]
        if said["role"] == "assistant":
            return "Thought: it is done\nFinal Answer: " + said["content"].partition("Observation: ")[2]
        return 'Thought: a fee is due\nAction: charge\nAction Input: {"account_id": "7", "amount": 35}'

    def supports_function_calling(self) -> bool:
        return False


def run(name: str) -> None:
    with Client(agent=name) as client:
        agent = teller(client, FakeModel(model="fake"))
        task = Task(description="charge the fee", expected_output="the balance", agent=agent)
        print(Crew(agents=[agent], tasks=[task]).kickoff())


with ThreadPoolExecutor() as pool:
    list(pool.map(run, ["ann", "bob"]))
print("balance", balances["7"])
