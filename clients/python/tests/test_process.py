"""The ends of processes: fork, exit, and what is left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings

import pytest

from interlock import Client, ForkedError
from interlock.testing import LocalServer


def in_child(work: str, client: Client, lease: object) -> int:
    """Runs code in the child of a fork, and returns its exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork with threads
        child = os.fork()
    if child == 0:
        try:
            exec(work, {"client": client, "lease": lease, "ForkedError": ForkedError, "Client": Client})
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_fork_detaches_the_child(interlock_server: LocalServer, interlock_client: Client, key: str) -> None:
    with interlock_client.lease(key) as lease:
        work = """
for call in (lease.check, lambda: client.acquire("x"), client.status, lease.renew, lease.release):
    try:
        call()
    except ForkedError as error:
        assert "child" in str(error)
    else:
        raise AssertionError(call)
assert not lease.held and client.closed
client.close()
with Client() as own:
    own.acquire("child:1", wait=0).release()
"""
        assert in_child(work, interlock_client, lease) == 0
        lease.check()
        interlock_client.check_fence(key, lease.fence)
    interlock_client.acquire(key, wait=0).release()


def test_multiprocessing_by_fork(interlock_server: LocalServer, interlock_client: Client, key: str) -> None:
    with interlock_client.lease(key) as lease, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process = multiprocessing.get_context("fork").Process(target=lambda: None)
        process.start()
        process.join()
        assert process.exitcode == 0
        interlock_client.check_fence(key, lease.fence)


@pytest.mark.parametrize("ending", ["", "sys.exit(3)", "raise KeyboardInterrupt"], ids=["end", "exit", "interrupt"])
def test_exit_frees_what_is_held(interlock_server: LocalServer, other: Client, key: str, ending: str) -> None:
    program = f"""
import sys
from interlock import Client
client = Client(agent="exits")
lease = client.acquire({key!r})
print("held", flush=True)
{ending}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "held\n"
    other.acquire(key, wait=0).release()


def crowd(url: str, key: str, most: int) -> None:
    with Client(url) as client:
        threads = [threading.Thread(target=lambda: client.acquire(key).release()) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert threading.active_count() <= most


def test_nothing_is_left_behind(interlock_server: LocalServer, key: str) -> None:
    before = threading.active_count()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            crowd(interlock_server.url, key, before + 1)  # one keeper
        gc.collect()
    assert threading.active_count() == before


def test_module_reports_version_and_reachability(interlock_server: LocalServer) -> None:
    command = [sys.executable, "-m", "interlock"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "interlock-client 0." in done.stdout and "answers" in done.stdout
    done = subprocess.run([*command, "http://127.0.0.1:1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "no server answered" in done.stdout
