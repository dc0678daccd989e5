"""Event loops that end, stand still or are another one, and handlers of signals."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable

import pytest

from interlock import AsyncClient, Client, OtherLoop
from interlock._flag import Flag
from interlock.testing import LocalServer


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # what the first loop has left open
@pytest.mark.parametrize("use", ["status", "acquire", "lease", "enter", "watch"])
def test_a_second_loop_is_told_at_its_first_use(interlock_server: LocalServer, key: str, use: str) -> None:
    client = AsyncClient(interlock_server.url)

    async def first() -> None:
        await (await client.acquire(key)).release()

    async def second() -> None:
        if use == "status":
            await client.status()
        elif use == "acquire":
            await client.acquire(key, wait=0)
        elif use == "lease":
            async with client.lease(key):
                pass
        elif use == "enter":
            async with client:
                pass
        else:
            async for _ in client.watch(key):
                pass

    asyncio.run(first())
    for _ in range(2):
        with pytest.raises(OtherLoop, match="first used in an event loop that has ended"):
            asyncio.run(second())
    asyncio.run(client.close())
    assert client.closed
    gc.collect()


def test_another_loop_that_runs_leaves_the_client_alone(interlock_server: LocalServer, key: str) -> None:
    errors: list[BaseException] = []

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client, client.lease(key) as lease:

            def other() -> None:
                for steps in client.status, client.close, lease.release:
                    try:
                        asyncio.run(steps())
                    except OtherLoop as error:
                        errors.append(error)

            thread = threading.Thread(target=other)
            thread.start()
            await asyncio.to_thread(thread.join)
            await lease.renew()

    asyncio.run(main())
    assert len(errors) == 3 and "another event loop" in str(errors[0])


def test_a_keeper_that_somebody_has_cancelled_is_replaced(interlock_server: LocalServer, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            async with client.lease(key):
                keeper = client._engine.keeper
                assert keeper is not None
                keeper.cancel()
                await asyncio.wait({keeper})
                await client.status()
                assert client._engine.keeper is not keeper

    asyncio.run(main())


def test_a_loop_that_stands_still_is_named(
    interlock_server: LocalServer, key: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url, session_ttl=30) as client, client.lease(key):
            assert "stood still" not in caplog.text
            client._engine._watch(time.monotonic() - 9)
            assert "stood still" not in caplog.text
            client._engine._watch(time.monotonic() - 10.5)

    with caplog.at_level(logging.WARNING, "interlock"):
        asyncio.run(main())
    assert "the event loop stood still for 10.5 s, and a lease with a ttl of 30 s needs a heartbeat" in caplog.text


def test_a_thread_keeps_leases_while_the_loop_stands_still(interlock_server: LocalServer, key: str) -> None:
    async def main() -> None:
        told: list[str] = []
        with Client(interlock_server.url, agent="other") as other:
            async with AsyncClient(interlock_server.url, session_ttl=2, keeper="thread") as client:
                async with client.lease(key) as lease:
                    end = time.monotonic() + 4
                    while time.monotonic() < end:  # the loop stands still, and the time of the ttl passes twice
                        other.check_fence(key, lease.fence)
                    lease.check()
                lost = await client.acquire(key + "-2", on_lost=lambda: told.append(threading.current_thread().name))
                client._engine.core.end(lost._grant, "revoked", "x")
                await lost.lost.wait()
                assert told == [threading.current_thread().name]
                thread = threading.Thread(target=lambda: other.acquire(key, wait=60).release())
                thread.start()
                await asyncio.to_thread(thread.join)
        assert not [t for t in threading.enumerate() if t.name == "interlock-keeper"]

    asyncio.run(main())
    with pytest.raises(ValueError, match="task or thread"):
        AsyncClient(keeper="loop")  # type: ignore[arg-type]


def test_a_loss_is_told_in_the_loop(interlock_server: LocalServer, key: str) -> None:
    """Also if a thread has found it."""

    async def main() -> None:
        told: list[threading.Thread] = []
        async with AsyncClient(interlock_server.url, keeper="thread") as client:
            lease = await client.acquire(key, on_lost=lambda: told.append(threading.current_thread()))
            thread = threading.Thread(target=lambda: client._engine.core.end(lease._grant, "revoked", "x"))
            thread.start()
            await lease.lost.wait()
            await asyncio.sleep(0)
            assert told == [threading.current_thread()]

    asyncio.run(main())


# Handlers of signals.


def test_a_flag_wakes_all_that_wait() -> None:
    flag = Flag()
    assert not flag.wait(0)
    ended: list[bool] = []
    threads = [threading.Thread(target=lambda: ended.append(flag.wait())) for _ in range(3)]
    for thread in threads:
        thread.start()
    flag.set()
    for thread in threads:
        thread.join()
    assert ended == [True] * 3 and flag.is_set() and flag.wait() and not flag._waiting
    flag.clear()
    assert not flag.is_set() and not flag.wait(-1)


CALLS: dict[str, Callable[[Client, str], object]] = {
    "read": lambda client, key: client.read(key),
    "lease": lambda client, key: client.acquire(key + "/handler").release(),
    "same": lambda client, key: client.acquire(key).release(),
    "wake": lambda client, key: client._engine.wake(),
    "close": lambda client, key: client.close(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_handler_of_a_signal_may_call_the_client(interlock_server: LocalServer, key: str, name: str) -> None:
    """It comes at any moment of another call, as it follows each function of the package that is entered."""
    assert threading.current_thread() is threading.main_thread()
    hits = 0

    def handler(number: int, frame: object) -> None:
        nonlocal hits
        hits += 1
        CALLS[name](client, key)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        for skip in range(0, 400, 9):
            with Client(interlock_server.url, agent="signals") as client:
                left = skip
                mutex = client._engine.core.mutex

                def trace(frame: object, event: str, arg: object) -> None:
                    nonlocal left
                    left -= 1
                    if left == 0:
                        signal.raise_signal(signal.SIGUSR1)

                try:
                    sys.setprofile(trace)
                    with client.lease(key):
                        pass
                except Exception as error:
                    assert name == "close", error
                finally:
                    sys.setprofile(None)
                assert mutex.acquire(timeout=20)  # a thread of the engine may have it for a moment
                mutex.release()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert hits > 10
