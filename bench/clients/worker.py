"""One run of the bench of clients in Python: a load on one service by one client. The result is a line of JSON.

The clients are those of Interlock (the name interlock) and redis-py's Lock (the name redis), for threads and asyncio.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Awaitable, Callable

TTL = 30.0
SETTLED = 1.0  # how long after the last lease its client is left alone


class Clock:
    """Collects the times of cycles between the warm-up and the end."""

    def __init__(self, warm: float, seconds: float) -> None:
        self.begin = time.monotonic() + warm
        self.end = self.begin + seconds
        self.took: list[list[float]] = []

    def caller(self) -> list[float]:
        times: list[float] = []
        self.took.append(times)
        return times

    def add(self, times: list[float], began: float) -> bool:
        """Notes a cycle, and reports whether there is time for another one."""
        now = time.monotonic()
        if began >= self.begin and now <= self.end:
            times.append(now - began)
        return now < self.end

    def report(self) -> dict[str, float]:
        every = sorted(one for times in self.took for one in times)
        if not every:
            raise SystemExit("no cycle was complete within the time")
        return {
            "cycles": len(every) / (self.end - self.begin),
            "p50": 1e6 * every[len(every) // 2],
            "p99": 1e6 * every[min(len(every) - 1, len(every) * 99 // 100)],
        }


def threads(callers: int, clock: Clock, cycle: Callable[[str], None]) -> None:
    failed: list[BaseException] = []

    def call(key: str) -> None:
        times = clock.caller()
        try:
            going = True
            while going and not failed:
                began = time.monotonic()
                cycle(key)
                going = clock.add(times, began)
        except BaseException as error:
            failed.append(error)

    running = [threading.Thread(target=call, args=(f"bench:{i}",)) for i in range(callers)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    if failed:
        raise failed[0]


async def tasks(callers: int, clock: Clock, cycle: Callable[[str], Awaitable[None]]) -> None:
    async def call(key: str) -> None:
        times = clock.caller()
        going = True
        while going:
            began = time.monotonic()
            await cycle(key)
            going = clock.add(times, began)

    await asyncio.gather(*(call(f"bench:{i}") for i in range(callers)))


def interlock_threads(url: str, callers: int, clock: Clock) -> None:
    from interlock import Client

    with Client(url, agent="bench", session_ttl=TTL) as client:

        def cycle(key: str) -> None:
            with client.lease(key):
                pass

        threads(callers, clock, cycle)


async def interlock_asyncio(url: str, callers: int, clock: Clock) -> None:
    from interlock import AsyncClient

    async with AsyncClient(url, agent="bench", session_ttl=TTL) as client:

        async def cycle(key: str) -> None:
            async with client.lease(key):
                pass

        await tasks(callers, clock, cycle)


def redis_threads(url: str, callers: int, clock: Clock) -> None:
    import redis

    with redis.Redis.from_url(url) as client:

        def cycle(key: str) -> None:
            with client.lock(key, timeout=TTL):
                pass

        threads(callers, clock, cycle)


async def redis_asyncio(url: str, callers: int, clock: Clock) -> None:
    import redis.asyncio

    async with redis.asyncio.Redis.from_url(url) as client:

        async def cycle(key: str) -> None:
            async with client.lock(key, timeout=TTL):
                pass

        await tasks(callers, clock, cycle)


def used() -> tuple[float, float]:
    return time.process_time(), time.monotonic()


def share(before: tuple[float, float], after: tuple[float, float]) -> dict[str, float]:
    return {"core": 100 * (after[0] - before[0]) / (after[1] - before[1])}


def hold_threads(url: str, leases: int, seconds: float) -> dict[str, float]:
    from interlock import Client

    with Client(url, agent="bench", session_ttl=TTL) as client:
        held = [client.acquire(f"hold:{i}") for i in range(leases)]
        time.sleep(SETTLED)
        before = used()
        time.sleep(seconds)
        result = share(before, used())
        for lease in held:
            lease.check()
        return result


async def hold_asyncio(url: str, leases: int, seconds: float) -> dict[str, float]:
    from interlock import AsyncClient

    async with AsyncClient(url, agent="bench", session_ttl=TTL) as client:
        held = [await client.acquire(f"hold:{i}") for i in range(leases)]
        await asyncio.sleep(SETTLED)
        before = used()
        await asyncio.sleep(seconds)
        result = share(before, used())
        for lease in held:
            lease.check()
        return result


def main() -> None:
    client, shape, url, load, warm, seconds = sys.argv[1:]
    count, length = int(load), float(seconds)
    if client == "hold":
        held = hold_threads(url, count, length) if shape == "threads" else asyncio.run(hold_asyncio(url, count, length))
        print(json.dumps(held))
        return
    clock = Clock(float(warm), length)
    if shape == "threads":
        {"interlock": interlock_threads, "redis": redis_threads}[client](url, count, clock)
    else:
        asyncio.run({"interlock": interlock_asyncio, "redis": redis_asyncio}[client](url, count, clock))
    print(json.dumps(clock.report()))


if __name__ == "__main__":
    main()
