"""The fixtures of pytest: see interlock.testing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ._sync import Client
from .testing import LocalServer


@pytest.fixture(scope="session")
def interlock_server() -> Iterator[LocalServer]:
    """A server for the whole run. INTERLOCK_URL is its address meanwhile."""
    with LocalServer() as server:
        before = os.environ.get("INTERLOCK_URL")
        os.environ["INTERLOCK_URL"] = server.url
        yield server
        if before is None:
            del os.environ["INTERLOCK_URL"]
        else:
            os.environ["INTERLOCK_URL"] = before


@pytest.fixture
def interlock_client(interlock_server: LocalServer) -> Iterator[Client]:
    """A client for one test. Its leases end with it."""
    with Client(interlock_server.url, agent="test") as client:
        yield client
