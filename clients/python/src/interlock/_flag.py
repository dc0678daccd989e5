"""An event that signal handlers and finalizers may set."""

from __future__ import annotations

import _thread
import threading


class Flag(threading.Event):
    """An Event without a lock of its own.

    What it does may be interrupted anywhere by a handler of a signal, or by a finalizer, that uses it, too: with the
    lock of threading.Event that code would wait for itself.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: set[_thread.LockType] = set()

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Sets it, and wakes those that wait."""
        self._is_set = True
        for lock in list(self._waiting):
            try:
                self._waiting.remove(lock)  # the one that removes it releases it
            except KeyError:
                continue
            lock.release()

    def clear(self) -> None:
        """Sets it back."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set, or for so many seconds, and returns whether it is set."""
        if self._is_set:
            return True
        lock = _thread.allocate_lock()
        lock.acquire()
        self._waiting.add(lock)
        try:
            if not self._is_set:
                lock.acquire(True, -1 if timeout is None else min(max(timeout, 0.0), threading.TIMEOUT_MAX))
        finally:
            self._waiting.discard(lock)
        return self._is_set
