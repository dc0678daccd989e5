"""Carries out one scenario with the client for threads, or the steps of standard input. Usage: scenario.py FILE|-"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from scenario_value import BodyError, Failed, acquisition, answer, control, drop, granted, judge, resolve

from interlock import CancelToken, Client


class Operation(threading.Thread):
    """An operation that was begun."""

    def __init__(self, runner: Runner, step: dict[str, Any], given: dict[str, Any]) -> None:
        super().__init__()
        self.runner, self.step, self.given = runner, step, given
        self.token = CancelToken()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with self.token:
                self.result = self.runner.do(self.step, self.given)
        except BaseException as error:  # the step decides
            self.error = error


class Runner:
    """The state of a scenario that runs."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.clients: dict[str, Client] = {}
        self.results: dict[str, Any] = {}
        self.begun: dict[str, Operation] = {}
        self.making = threading.Lock()

    def run(self) -> None:
        try:
            for number, step in enumerate(self.scenario["steps"], 1):
                try:
                    self.step(step)
                except Exception as error:
                    raise Failed(f"step {number}: {error!r}") from error
        finally:
            self.end()

    def end(self) -> None:
        for operation in list(self.begun.values()):
            operation.token.cancel()
            operation.join()
        for client in self.clients.values():
            client.close()

    def serve(self) -> None:
        """Carries out the steps that come, each at once, and writes the result of each when it is there."""
        writing = threading.Lock()

        def write(operation: Operation) -> None:
            operation.join()
            del self.begun[operation.step["id"]]
            text = answer(self.results, operation.step, operation.result, operation.error)
            with writing:
                print(text, flush=True)

        try:
            for line in sys.stdin:
                step = json.loads(line)
                if "clients" in step:
                    self.scenario["clients"] = step["clients"]
                    continue
                if "cancel" in step:
                    if begun := self.begun.get(step["cancel"]):
                        begun.token.cancel()
                    continue
                operation = Operation(self, step, resolve(self.results, step.get("with", {})))
                self.begun[step["id"]] = operation
                operation.start()
                threading.Thread(target=write, args=(operation,), daemon=True).start()
        finally:
            self.end()

    def step(self, step: dict[str, Any]) -> None:
        if "control" in step:
            control(step["control"])
            return
        if "join" in step or "cancel" in step:
            operation = self.begun[step.get("join") or step["cancel"]]
            if "cancel" in step:
                operation.token.cancel()
        else:
            operation = Operation(self, step, resolve(self.results, step.get("with", {})))
            operation.start()
            if "start" in step:
                self.begun[step["start"]] = operation
                return
        operation.join()
        judge(self.results, step, operation.step.get("as"), operation.result, operation.error)

    def client(self, name: str) -> Client:
        with self.making:
            if name not in self.clients:
                given = self.scenario["clients"][name]
                options = {
                    option: given[member] / 1000
                    for member, option in {"session_ttl_ms": "session_ttl", "retry_for_ms": "retry_for"}.items()
                    if member in given
                }
                self.clients[name] = Client(os.environ["INTERLOCK_URL"], agent=given["agent"], **options)
            return self.clients[name]

    def do(self, step: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        client = self.client(step["client"])
        operation = step["do"]
        if operation == "acquire":
            keys, options = acquisition(given)
            return granted(client.acquire(*keys, **options))
        if operation == "release":
            given["lease"].release(given.get("outcome"), given.get("note"))
        elif operation == "check":
            given["lease"].check()
        elif operation == "lost":
            if not given["lease"].lost.wait(given["within_ms"] / 1000):
                raise Failed(f"the lease is still held after {given['within_ms']} ms")
            return {"held": given["lease"].held}
        elif operation == "renew":
            given["lease"].renew(given["ttl_ms"] / 1000 if "ttl_ms" in given else None, given.get("progress"))
        elif operation == "check_fence":
            client.check_fence(given["key"], int(given["fence"]))
        elif operation == "read":
            document = client.read(given["key"])
            return {"absent": document.get("absent", False), **document}
        elif operation == "commit":
            return dict(
                client.commit(given["writes"], given.get("reads", ()), given.get("note"), given.get("leases", ()))
            )
        elif operation == "why":
            return dict(client.why(given["key"]))
        elif operation == "fail":
            with contextlib.suppress(BodyError), given["lease"]:
                raise BodyError
        elif operation == "drop":
            drop(self.results, given["name"])
        elif operation == "close":
            self.clients.pop(step["client"]).close()
        else:
            raise Failed(f"there is no operation {operation}")
        return {}


if __name__ == "__main__":
    try:
        if sys.argv[1] == "-":
            Runner({}).serve()
        else:
            Runner(json.loads(Path(sys.argv[1]).read_text())).run()
    except Failed as failure:
        sys.exit(str(failure))
