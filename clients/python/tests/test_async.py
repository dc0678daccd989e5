"""Leases in tasks, with a real server."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

import pytest

from interlock import AsyncClient, Client, Held, LeaseLost, WaitTimeout
from interlock.testing import LocalServer

T = TypeVar("T")


def test_life(interlock_server: LocalServer, other: Client, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url, agent="one") as client:
            async with client.lease(key, purpose="late fee") as lease:
                lease.check()
                assert lease.held and lease.key == key and not lease.lost.is_set()
                with pytest.raises(Held):
                    other.acquire(key, wait=0)
                lease.note = "done"
            assert lease.lost.is_set() and not lease.held
            await client.lease(key, wait=0).__aenter__()
            status = await client.status()
            assert status["role"] == "active"
        assert client.closed

    asyncio.run(main())
    with other.lease(key, wait=0) as lease:
        assert lease.notes[0]["text"] == "done"


def test_tasks_take_turns(interlock_server: LocalServer, key: str) -> None:
    inside = 0
    order: list[int] = []

    async def turn(client: AsyncClient, number: int) -> None:
        nonlocal inside
        async with client.lease(key) as lease:
            inside += 1
            assert inside == 1
            await asyncio.sleep(0)
            lease.check()
            order.append(lease.fence)
            inside -= 1

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            await asyncio.gather(*(turn(client, number) for number in range(20)))

    asyncio.run(main())
    assert len(set(order)) == 20 and order == sorted(order)


def test_wait_is_bounded(interlock_server: LocalServer, other: Client, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            with pytest.raises(WaitTimeout):
                await client.acquire(key, wait=0.2)

    lease = other.acquire(key)
    asyncio.run(main())
    assert other.look(key)["length"] == 0
    lease.release()


def test_loss_cancels_the_body() -> None:
    async def main(server: LocalServer) -> None:
        async with AsyncClient(server.url, session_ttl=1, retry_for=0.2) as client:
            reached = False
            with pytest.raises(LeaseLost) as loss:
                async with client.lease("k"):
                    server.pause()
                    await asyncio.sleep(30)
                    reached = True
            server.resume()
            assert not reached and loss.value.code == "expired"
            cancelling = getattr(asyncio.current_task(), "cancelling", lambda: 0)  # from Python 3.11 on
            assert cancelling() == 0
            await asyncio.sleep(0)  # no cancellation is left over

    with LocalServer() as server:
        asyncio.run(main(server))


def test_cancellation_of_the_caller_is_not_a_loss(interlock_server: LocalServer, other: Client, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            held = asyncio.Event()

            async def body() -> None:
                async with client.lease(key):
                    held.set()
                    await asyncio.sleep(30)

            task = asyncio.create_task(body())
            await held.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(lambda: other.acquire(key, wait=10).release())

    asyncio.run(main())


@types.coroutine
def cancelled_at(coroutine: Coroutine[Any, Any, T], point: int) -> Generator[Any, Any, T | None]:
    """Runs a coroutine, and cancels it at one of its await points, by number."""
    value: Any = None
    error: BaseException | None = None
    count = 0
    while True:
        try:
            future = coroutine.send(value) if error is None else coroutine.throw(error)
        except StopIteration as stop:
            result: T = stop.value
            return result
        value, error = None, None
        count += 1
        if count == point:
            if future is not None:
                future._asyncio_future_blocking = False
            error = asyncio.CancelledError()
            continue
        try:
            value = yield future
        except BaseException as thrown:
            error = thrown


@pytest.mark.parametrize("taken", [False, True])
def test_cancellation_at_every_await_leaves_nothing(interlock_server: LocalServer, key: str, taken: bool) -> None:
    """Cancels a lease at each await point of its life, and finds its key free afterwards."""

    async def life(client: AsyncClient, name: str) -> bool:
        async with client.lease(name, wait=20):
            await asyncio.sleep(0)
        return True

    async def attempt(point: int) -> bool:
        name = f"{key}/{point}"
        async with AsyncClient(interlock_server.url, agent="holder") as holder:
            lease = await holder.acquire(name) if taken else None
            async with AsyncClient(interlock_server.url, agent="cancelled") as client:
                if lease is not None:
                    asyncio.get_running_loop().call_later(0.05, lambda: asyncio.ensure_future(lease.release()))
                try:
                    whole = await cancelled_at(life(client, name), point)
                except asyncio.CancelledError:
                    whole = False
                if lease is not None:
                    await lease.release()
                # The client that was cancelled lives on, so that only its keeper can have given the key back.
                await (await holder.acquire(name, wait=10)).release()
                assert (await holder.look(name))["length"] == 0
                return bool(whole)

    async def main() -> int:
        for point in range(1, 200):
            if await asyncio.wait_for(attempt(point), 30):
                return point
        raise AssertionError("it never ends")

    assert asyncio.run(main()) > 5


def test_two_losses_at_once() -> None:
    async def main(server: LocalServer) -> None:
        async with AsyncClient(server.url, session_ttl=1, retry_for=0.2) as client:
            with pytest.raises(LeaseLost):
                async with client.lease("outer") as outer, client.lease("inner") as inner:
                    server.pause()
                    inner._grant.deadline = outer._grant.deadline  # not a moment later
                    await asyncio.sleep(30)
            server.resume()
            await asyncio.sleep(0)

    with LocalServer() as server:
        asyncio.run(main(server))
