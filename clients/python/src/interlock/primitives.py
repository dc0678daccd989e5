"""The four classic primitives over leases, for asyncio: each is a name that agents of many processes share.

    lock = DistributedLock(client, "report", ttl=30)
    async with lock.lease() as lease:
        await publish(fence=lease.fence)

Every method returns a lease for an async with block; what it takes is what client.lease takes, such as wait, purpose
and priority.
"""

from __future__ import annotations

from typing import Any

from ._async import AsyncClient, AsyncLease, AsyncLeaseContext


class DistributedLock:
    """A mutex: fair, renewed while it is held, with a check for deadlocks. ttl is the life of a silent holder."""

    def __init__(self, client: AsyncClient, key: str, **options: Any) -> None:
        self._client, self._key, self._options = client, key, options

    def lease(self, **options: Any) -> AsyncLeaseContext:
        """Takes the lock."""
        return self._client.lease(self._key, **{"mode": "exclusive", **self._options, **options})


class ReadWriteLock:
    """A lock for many readers or one writer. The line is fair, so that readers do not starve a writer."""

    def __init__(self, client: AsyncClient, key: str, **options: Any) -> None:
        self._client, self._key, self._options = client, key, options

    def read(self, **options: Any) -> AsyncLeaseContext:
        """Takes the lock as a reader."""
        return self._client.lease(self._key, **{"mode": "shared", **self._options, **options})

    def write(self, **options: Any) -> AsyncLeaseContext:
        """Takes the lock as a writer."""
        return self._client.lease(self._key, **{"mode": "exclusive", **self._options, **options})

    async def downgrade(self, lease: AsyncLease) -> None:
        """Makes a writer a reader, without a moment in which another writer could come in between."""
        await lease.convert({"key": self._key, "mode": "shared"})


class Semaphore:
    """A pool of permits. An operator sets the capacity of the key, by its pattern."""

    def __init__(self, client: AsyncClient, key: str, **options: Any) -> None:
        self._client, self._key, self._options = client, key, options

    def lease(self, permits: int = 1, **options: Any) -> AsyncLeaseContext:
        """Takes permits."""
        return self._client.lease(self._key, **{**self._options, **options, "permits": permits})


class Barrier:
    """A point that a number of parties pass together, again and again."""

    def __init__(self, client: AsyncClient, key: str, parties: int, **options: Any) -> None:
        self._client, self._key, self._parties, self._options = client, key, parties, options

    def lease(self, **options: Any) -> AsyncLeaseContext:
        """Waits until all parties have come. lease.arrive() in the block waits for them at the next phase."""
        return self._client.lease(self._key, **{**self._options, **options, "parties": self._parties})


__all__ = ["Barrier", "DistributedLock", "ReadWriteLock", "Semaphore"]
