"""The ends that no caller asks for: the fork of a process, and the exit of the interpreter."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Protocol


class Engine(Protocol):
    """What has to learn of such an end."""

    def close(self) -> None: ...

    def forked(self) -> None: ...


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def add(engine: Engine) -> None:
    """Has the engine learn of it."""
    _engines.add(engine)


def remove(engine: Engine) -> None:
    """Ends that."""
    _engines.discard(engine)


def _forked() -> None:
    engines = list(_engines)
    _engines.clear()
    for engine in engines:
        engine.forked()


def _exit() -> None:
    for engine in list(_engines):
        engine.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
atexit.register(_exit)
