"""The four classic primitives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from interlock import AsyncClient, Held
from interlock.primitives import Barrier, DistributedLock, ReadWriteLock, Semaphore
from interlock.testing import LocalServer


def test_lock(interlock_server: LocalServer, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as one, AsyncClient(interlock_server.url) as two:
            async with DistributedLock(one, key, ttl=5).lease(purpose="report") as lease:
                assert lease.expires_in < 5
                with pytest.raises(Held):
                    await DistributedLock(two, key).lease(wait=0).__aenter__()
            async with DistributedLock(two, key).lease(wait=0):
                pass

    asyncio.run(main())


def test_readers_and_writers(interlock_server: LocalServer, key: str) -> None:
    async def main() -> None:
        async with AsyncClient(interlock_server.url) as one, AsyncClient(interlock_server.url) as two:
            mine, theirs = ReadWriteLock(one, key), ReadWriteLock(two, key)
            async with mine.read(), theirs.read(wait=0):
                with pytest.raises(Held):
                    await DistributedLock(two, key).lease(wait=0, flow="writer").__aenter__()
            async with mine.write() as lease:
                with pytest.raises(Held):
                    await theirs.read(wait=0).__aenter__()
                await mine.downgrade(lease)
                lease.check()
                async with theirs.read(wait=0):
                    pass

    asyncio.run(main())


def test_semaphore(interlock_server: LocalServer, put: Callable[[str, Any], None]) -> None:
    put("/v1/patterns/py-pool", {"pattern": "py-pool:{n}", "capacity": 3})

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as one, AsyncClient(interlock_server.url) as two:
            async with Semaphore(one, "py-pool:1").lease(permits=2):
                async with Semaphore(two, "py-pool:1").lease(wait=0):
                    with pytest.raises(Held):
                        await Semaphore(two, "py-pool:1").lease(wait=0, flow="other").__aenter__()

    asyncio.run(main())


def test_barrier(interlock_server: LocalServer, key: str) -> None:
    phases: list[int] = []

    async def party(client: AsyncClient) -> None:
        async with Barrier(client, key, 3).lease(wait=20) as lease:
            phases.append(1)
            await lease.arrive(wait=20)
            assert phases.count(1) == 3
            phases.append(2)
            lease.check()

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:
            await asyncio.gather(party(client), party(client), party(client))

    asyncio.run(main())
    assert phases == [1, 1, 1, 2, 2, 2]
