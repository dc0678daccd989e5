"""The decorator for tools."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from interlock import AsyncClient, Client, Held, current_lease, guarded
from interlock.testing import LocalServer


def test_a_tool_runs_under_its_lease(interlock_client: Client, other: Client, key: str) -> None:
    @guarded("tool:{name}", client=interlock_client, wait=0)
    def tool(name: str, amount: int = 5) -> str:
        """Takes money."""
        lease = current_lease()
        lease.check()
        return f"{lease.key} {amount} {lease.fence > 0}"

    assert tool(key) == f"tool:{key} 5 True"
    assert tool.__doc__ == "Takes money." and list(inspect.signature(tool).parameters) == ["name", "amount"]
    with other.lease(f"tool:{key}"):
        text = tool(name=key)
        assert text.startswith("Not done: ") and "other" in text
    with pytest.raises(LookupError):
        current_lease()


def test_a_tool_that_raises_releases(interlock_client: Client, other: Client, key: str) -> None:
    @guarded("tool:{name}", client=interlock_client, wait=0)
    def tool(name: str) -> str:
        raise ValueError(name)

    with pytest.raises(ValueError):
        tool(key)
    other.acquire(f"tool:{key}", wait=0).release()


def test_a_refusal_can_be_an_error(interlock_client: Client, other: Client, key: str) -> None:
    @guarded("tool:{name}", client=lambda: interlock_client, wait=0, refuse=None)
    def tool(name: str) -> str:
        return name

    with other.lease(f"tool:{key}"), pytest.raises(Held):
        tool(key)


def test_a_deadlock_is_a_text(interlock_client: Client, other: Client, key: str) -> None:
    """The tool would wait for a holder that waits for what its caller holds."""

    @guarded("tool:{name}", client=interlock_client, wait=30)
    def tool(name: str) -> str:
        return "done"

    queued = threading.Event()

    def opposite() -> None:
        with other.lease(f"tool:{key}"):
            other.acquire(f"mine:{key}", wait=30, on_queued=lambda ticket: queued.set()).release()

    with interlock_client.lease(f"mine:{key}"):
        thread = threading.Thread(target=opposite)
        thread.start()
        assert queued.wait(30)
        text = tool(key)
    thread.join()
    assert text.startswith("Not done: ") and "deadlock" in text
    assert tool(key) == "done"


def test_a_key_must_name_arguments() -> None:
    with pytest.raises(TypeError):

        @guarded("tool:{nothing}")
        def tool(name: str) -> str:
            return name


def test_what_cannot_be_guarded(interlock_client: Client) -> None:
    decorate: Any = guarded("tool", client=interlock_client)
    with pytest.raises(TypeError, match="takes a function, and this is a dict: put it below"):
        decorate({"name": "tool"})

    def generator() -> Iterator[int]:
        yield 1

    async def stream() -> AsyncIterator[int]:
        yield 1

    for function in (generator, stream):
        with pytest.raises(TypeError, match="yields, and would run on after its lease"):
            decorate(function)

    @guarded("tool", client=interlock_client)
    async def tool() -> None:
        pass

    with pytest.raises(TypeError, match="tool is awaited, and so needs an AsyncClient"):
        asyncio.run(tool())


def test_the_client_of_the_process(interlock_server: LocalServer, other: Client, key: str) -> None:
    @guarded("tool:{name}", wait=0)
    def tool(name: str) -> str:
        return str(current_lease().key)

    @guarded("tool:{name}", wait=0)
    async def waiting(name: str) -> str:
        return str(current_lease().key)

    assert tool(key) == f"tool:{key}"

    async def main() -> None:
        from interlock import _guard

        assert await waiting(key) == f"tool:{key}"
        await _guard._clients.pop(asyncio.get_running_loop()).close()

    asyncio.run(main())
    from interlock import _guard

    _guard._clients.pop(None).close()


def test_agents_race_for_one_key(interlock_server: LocalServer, key: str) -> None:
    inside = threading.Semaphore(1)
    overlaps: list[int] = []

    def agent() -> None:
        with Client(interlock_server.url) as client:

            @guarded("tool:{name}", client=client)
            def tool(name: str) -> str:
                if not inside.acquire(blocking=False):
                    overlaps.append(1)
                    return "overlap"
                inside.release()
                return "done"

            assert tool(key) == "done"

    threads = [threading.Thread(target=agent) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not overlaps


def test_an_async_tool(interlock_server: LocalServer, other: Client, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:

            @guarded("tool:{name}", client=client, wait=0)
            async def tool(name: str) -> str:
                await asyncio.sleep(0)
                return str(current_lease().key)

            assert await tool(key) == f"tool:{key}"
            assert inspect.iscoroutinefunction(tool)
            with other.lease(f"tool:{key}"):
                assert (await tool(key)).startswith("Not done: ")
            task = asyncio.create_task(tool(key))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(lambda: other.acquire(f"tool:{key}", wait=10).release())

    asyncio.run(main())
