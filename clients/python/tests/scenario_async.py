"""Carries out one scenario with the client for asyncio, or the steps of standard input.

Usage: scenario_async.py FILE|-
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

from scenario_value import BodyError, Failed, acquisition, answer, control, drop, granted, judge, resolve

from interlock import AsyncClient, Cancelled


class Runner:
    """The state of a scenario that runs."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.clients: dict[str, AsyncClient] = {}
        self.results: dict[str, Any] = {}
        self.begun: dict[str, tuple[dict[str, Any], asyncio.Task[dict[str, Any]]]] = {}

    async def run(self) -> None:
        try:
            for number, step in enumerate(self.scenario["steps"], 1):
                try:
                    await self.step(step)
                except Exception as error:
                    raise Failed(f"step {number}: {error!r}") from error
        finally:
            await self.end()

    async def end(self) -> None:
        begun = [operation for _, operation in self.begun.values()]
        for operation in begun:
            operation.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
        for client in self.clients.values():
            await client.close()

    async def serve(self) -> None:
        """Carries out the steps that come, each at once, and writes the result of each when it is there."""
        try:
            while line := await asyncio.to_thread(sys.stdin.readline):
                step = json.loads(line)
                if "clients" in step:
                    self.scenario["clients"] = step["clients"]
                    continue
                if "cancel" in step:
                    if step["cancel"] in self.begun:
                        self.begun[step["cancel"]][1].cancel()
                    continue
                operation = asyncio.create_task(self.do(step, resolve(self.results, step.get("with", {}))))
                self.begun[step["id"]] = step, operation
                operation.add_done_callback(functools.partial(self.write, step))
        finally:
            await self.end()

    def write(self, step: dict[str, Any], operation: asyncio.Task[dict[str, Any]]) -> None:
        del self.begun[step["id"]]
        error = Cancelled() if operation.cancelled() else operation.exception()
        result = None if error is not None else operation.result()
        print(answer(self.results, step, result, error), flush=True)

    async def step(self, step: dict[str, Any]) -> None:
        if "control" in step:
            await asyncio.to_thread(control, step["control"])
            return
        if "join" in step or "cancel" in step:
            begun, operation = self.begun[step.get("join") or step["cancel"]]
            if "cancel" in step:
                operation.cancel()
        else:
            begun = step
            operation = asyncio.create_task(self.do(step, resolve(self.results, step.get("with", {}))))
            if "start" in step:
                self.begun[step["start"]] = step, operation
                return
        await asyncio.wait({operation})
        cancelled = operation.cancelled()
        error = Cancelled() if cancelled else operation.exception()
        result = None if error is not None else operation.result()
        judge(self.results, step, begun.get("as"), result, error)

    def client(self, name: str) -> AsyncClient:
        if name not in self.clients:
            given = self.scenario["clients"][name]
            options = {
                option: given[member] / 1000
                for member, option in {"session_ttl_ms": "session_ttl", "retry_for_ms": "retry_for"}.items()
                if member in given
            }
            self.clients[name] = AsyncClient(os.environ["INTERLOCK_URL"], agent=given["agent"], **options)
        return self.clients[name]

    async def do(self, step: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        client = self.client(step["client"])
        operation = step["do"]
        if operation == "acquire":
            keys, options = acquisition(given)
            return granted(await client.acquire(*keys, **options))
        if operation == "release":
            await given["lease"].release(given.get("outcome"), given.get("note"))
        elif operation == "check":
            given["lease"].check()
        elif operation == "lost":
            await asyncio.wait_for(given["lease"].lost.wait(), given["within_ms"] / 1000)
            return {"held": given["lease"].held}
        elif operation == "renew":
            await given["lease"].renew(given["ttl_ms"] / 1000 if "ttl_ms" in given else None, given.get("progress"))
        elif operation == "check_fence":
            await client.check_fence(given["key"], int(given["fence"]))
        elif operation == "read":
            document = await client.read(given["key"])
            return {"absent": document.get("absent", False), **document}
        elif operation == "commit":
            return dict(
                await client.commit(given["writes"], given.get("reads", ()), given.get("note"), given.get("leases", ()))
            )
        elif operation == "why":
            return dict(await client.why(given["key"]))
        elif operation == "fail":
            with contextlib.suppress(BodyError):
                async with contextlib.AsyncExitStack() as stack:
                    stack.push_async_callback(given["lease"].release)
                    raise BodyError
        elif operation == "drop":
            drop(self.results, given["name"])
        elif operation == "close":
            await self.clients.pop(step["client"]).close()
        else:
            raise Failed(f"there is no operation {operation}")
        return {}


if __name__ == "__main__":
    try:
        if sys.argv[1] == "-":
            asyncio.run(Runner({}).serve())
        else:
            asyncio.run(Runner(json.loads(Path(sys.argv[1]).read_text())).run())
    except Failed as failure:
        sys.exit(str(failure))
