"""Outages: what a client reports, pulls and watches goes on when a server answers again."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from test_end import QUEUE, Worker, returning

from interlock import (
    AsyncClient,
    AsyncJob,
    Cancelled,
    CancelToken,
    Client,
    EffectTaken,
    Job,
)
from interlock import put as write
from interlock._wire import Reply, Send
from interlock.testing import LocalServer

Put = Callable[[str, Any], None]


def until(met: Callable[[], Any]) -> None:
    """Waits for what no event tells. A test that waits in vain is ended by the limit of the run."""
    while not met():
        time.sleep(0.01)


def test_an_effect_is_reported_after_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    with LocalServer() as server, Client(server.url, retry_for=0.1) as client, Client(server.url) as other:
        for name, error in {"done": None, "unknown": ValueError()}.items():
            ends: list[Any] = []
            try:
                with client.effect("charge", name) as claim:
                    server.kill()
                    if error:
                        raise error
                    claim.complete("charged")
                ends.append("own end")
            except ValueError as own:
                ends.append(own)
            assert ends == [error or "own end"] and "is reported when the server is back" in caplog.text
            server.start()
            if error is None:
                with other.effect("charge", name, wait=60) as again:
                    assert again.done and again.result == "charged"
            else:
                with pytest.raises(EffectTaken) as taken:
                    other.claim_effect("charge", name, wait=60)
                assert taken.value.code == "effect_unknown"


def test_the_end_of_an_attempt_is_reported_after_an_outage() -> None:
    with LocalServer() as server, Client(server.url, retry_for=0.1) as client:
        put_at(server, "/v1/queues/q", {**QUEUE, "ttl_ms": 60_000})
        runs: list[int] = []
        out: list[str] = []

        def handle(job: Job) -> str:
            runs.append(1)
            server.kill()
            return "charged"

        def work() -> None:
            client.work("q", handle)
            out.append("returned")

        with Client(server.url) as other:
            task = other.submit("q", claims=["k"])["id"]
            thread = threading.Thread(target=work)
            thread.start()
            until(lambda: client._engine.core.jobs)  # no server has taken the report
            server.start()
            ended = other.task(task, wait=60)
            client.close()
            thread.join()
            assert ended.get("state") == "done" and ended.get("attempt") == 1 and ended.get("result") == "charged"
        assert runs == [1] and out == ["returned"]


def put_at(server: LocalServer, path: str, body: Any) -> None:
    import urllib.request

    request = urllib.request.Request(
        server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="PUT"
    )
    with urllib.request.urlopen(request, timeout=30) as answered:
        answered.read()


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_workers_and_watches_outlive_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    done: set[str] = set()

    async def in_asyncio(url: str, over: threading.Thread) -> None:
        async with AsyncClient(url, retry_for=0.1) as client:

            async def handle(job: AsyncJob) -> None:
                done.add("task in asyncio")

            async def watch() -> None:
                async for _ in client.watch(prefix="k:"):
                    done.add("watch in asyncio")

            both = [asyncio.create_task(client.work("qa", handle)), asyncio.create_task(watch())]
            await asyncio.to_thread(over.join)
            await client.close()
            for one in both:
                await one

    with LocalServer() as server, Client(server.url, retry_for=0.1) as client, Client(server.url) as other:
        put_at(server, "/v1/queues/q", QUEUE)
        put_at(server, "/v1/queues/qa", QUEUE)

        def watch() -> None:
            for _ in client.watch(prefix="k:"):
                done.add("watch")

        def outage() -> None:
            until(lambda: len(client._engine.ending._sockets) == 2)
            server.kill()
            until(lambda: len(warnings_of(caplog)) >= 4)
            server.start()
            other.submit("q")
            other.submit("qa")
            while len(done) < 4:  # a watch from now on has to be there first
                other.commit([write("k:1", 1)], [{"key": "k:1", "version": other.read("k:1")["version"]}])

        work = lambda: client.work("q", lambda job: done.add("task"))  # noqa: E731
        over, worker, watcher = (threading.Thread(target=target) for target in (outage, work, watch))
        for thread in over, worker, watcher:
            thread.start()
        asyncio.run(in_asyncio(server.url, over))
        client.close()
        worker.join()
        watcher.join()
        told = [text for text in warnings_of(caplog) if "until the server is back" in text]
        assert len(done) == 4 and len(told) == 2


def test_closing_ends_a_worker_and_a_watch_without_a_server(caplog: pytest.LogCaptureFixture) -> None:
    with LocalServer() as server:
        put_at(server, "/v1/queues/q", QUEUE)
        client = Client(server.url, retry_for=0.1)
        failures: list[BaseException] = []

        def run(what: Callable[[], Any]) -> threading.Thread:
            def target() -> None:
                try:
                    what()
                except BaseException as error:
                    failures.append(error)

            thread = threading.Thread(target=target)
            thread.start()
            return thread

        threads = [run(lambda: client.work("q", print)), run(lambda: [*client.watch("k")])]
        until(lambda: len(client._engine.ending._sockets) == 2)
        server.kill()
        until(lambda: len(warnings_of(caplog)) >= 2)
        client.close()
        for thread in threads:
            thread.join()
        assert not failures


def test_a_pull_without_an_answer_is_repeated_and_given_back(interlock_client: Client, other: Client, put: Put) -> None:
    """Without that the task would run in nobody's hands for as long as the session lives."""
    put("/v1/queues/pypull", QUEUE)
    token = CancelToken()
    engine = interlock_client._engine
    send = engine._send

    def lose(effect: Send) -> Reply:
        reply = send(effect)
        if effect.target.endswith("/pull") and not token.cancelled:
            token.cancel()
            raise Cancelled
        return reply

    engine._send = lose  # type: ignore[method-assign, assignment]
    task = other.submit("pypull", "x")["id"]
    with pytest.raises(Cancelled), token:
        interlock_client.work("pypull", print)
    worker = Worker(returning(lambda: "ok"))
    worker.runs = 1
    other.work("pypull", worker, stop=worker.stop)
    assert other.task(task, wait=60).get("result") == "ok"
