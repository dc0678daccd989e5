"""The seat: a process that is started again goes on with the leases of the process before."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from interlock import AsyncClient, Client
from interlock.testing import LocalServer

HOLDS = """
import sys, time
from interlock import Client
client = Client(sys.argv[1], agent="billing", seat=sys.argv[2])
lease = client.acquire(sys.argv[3])
print(lease.fence, flush=True)
sys.stdin.read()
"""


def killed(server: LocalServer, path: Path, key: str) -> int:
    """Returns the fence of a process that was killed with a lease on the key."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, server.url, str(path), key], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        fence = int(holder.stdout.readline())
        with pytest.raises(BlockingIOError, match="still runs"):
            Client(server.url, seat=path)
        holder.kill()
    return fence


def test_the_next_process_goes_on_ahead_of_the_line(interlock_server: LocalServer, key: str, tmp_path: Path) -> None:
    path = tmp_path / "seat"
    fence = killed(interlock_server, path, key)
    assert path.stat().st_mode & 0o777 == 0o600
    queued, fences = threading.Event(), list[int]()

    def wait() -> None:
        with Client(interlock_server.url) as other:
            with other.lease(key, wait=60, on_queued=lambda ticket: queued.set()) as lease:
                fences.append(lease.fence)

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert queued.wait(60)
    with Client(interlock_server.url, agent="billing", seat=path) as client:
        with client.lease(key, wait=0) as lease:
            assert lease.fence > fence and not fences
    waiter.join()
    assert fences and fences[0] > lease.fence
    assert path.read_bytes() == b""


def test_the_next_process_in_asyncio(interlock_server: LocalServer, key: str, tmp_path: Path) -> None:
    path = tmp_path / "seat"
    fence = killed(interlock_server, path, key)

    async def go_on() -> None:
        async with AsyncClient(interlock_server.url, agent="billing", seat=path) as client:
            async with client.lease(key, wait=0) as lease:
                assert lease.fence > fence

    asyncio.run(go_on())
    assert path.read_bytes() == b""


def test_a_seat_without_a_session_takes_nothing_over(interlock_server: LocalServer, key: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(OSError, match="is no file"):
        Client(interlock_server.url, seat=tmp_path / "pipe")
    path = tmp_path / "seat"
    path.write_text("no session")
    path.chmod(0o644)
    with pytest.raises(PermissionError, match="chmod 600"):
        Client(interlock_server.url, seat=path)
    path.chmod(0o600)
    for _ in range(2):
        with Client(interlock_server.url, seat=path) as client, client.lease(key, wait=0):
            assert path.read_text().startswith("s_")
