"""What the tests of the client share."""

from __future__ import annotations

import itertools
import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interlock import Client, _call, _core, _handle, _ops
from interlock.testing import LocalServer

pytest_plugins = ["interlock.pytest_plugin"]

_numbers = itertools.count(1)


@pytest.fixture
def key() -> str:
    """A key that no other test uses."""
    return f"test:{next(_numbers)}"


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> float:
    """Has the clock of the client stand still, and returns its time: for tests that have no server."""
    for module in _call, _core, _handle, _ops:
        monkeypatch.setattr(module, "now", lambda: 1000.0)
    return 1000.0


@pytest.fixture
def other(interlock_server: LocalServer) -> Iterator[Client]:
    """A second client."""
    with Client(interlock_server.url, agent="other") as client:
        yield client


@pytest.fixture
def put(interlock_server: LocalServer) -> Callable[[str, Any], None]:
    """Does what an operator does."""

    def do(path: str, body: Any) -> None:
        request = urllib.request.Request(
            interlock_server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="PUT"
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    return do
