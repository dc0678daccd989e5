"""Two processes run one thread of LangGraph, whose checkpoints have the balance. Each lease is one run."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from interlock import AsyncClient
from interlock.ext.langgraph import FencedSaver


async def charge_thread(client: AsyncClient, builder: StateGraph, saver: BaseCheckpointSaver[Any]) -> None:
    config = {"configurable": {"thread_id": "42"}}
    async with client.lease("thread:42", purpose="charge the fee", wait=20) as lease:
        graph = builder.compile(checkpointer=FencedSaver(saver, lease))
        result = await graph.ainvoke({"fee": 35}, config)
        print(f"{result['balance']} left, under fence {lease.fence}")


class Account(TypedDict, total=False):
    balance: int
    fee: int


async def charge(account: Account) -> Account:
    await asyncio.sleep(0.05)  # a model thinks
    return {"balance": account.get("balance", 100) - account["fee"]}


async def run(name: str, saver: InMemorySaver) -> None:
    builder = StateGraph(Account).add_node("charge", charge).add_edge(START, "charge")
    async with AsyncClient(agent=name) as client:
        await charge_thread(client, builder, saver)


async def main() -> None:
    saver = InMemorySaver()
    await asyncio.gather(run("ann", saver), run("bob", saver))
    latest = await saver.aget_tuple({"configurable": {"thread_id": "42"}})
    print("balance", latest.checkpoint["channel_values"]["balance"])


asyncio.run(main())
