"""The seat of a client: a file that stands for its process across restarts."""

from __future__ import annotations

import logging
import os
import re
import stat
import sys
from typing import BinaryIO

logger = logging.getLogger("interlock")

if sys.platform == "win32":
    import msvcrt

    def _lock(file: BinaryIO) -> None:
        file.seek(1 << 20)  # behind the text, which stays readable
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Seat:
    """The locked file with the id of the session.

    The operating system releases the lock when a process ends, whatever kills that: who has it knows that the process
    before is dead.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):  # such as a pipe, and reading one waits
            self._file.close()
            raise OSError(f"the seat {os.fspath(path)} is no file")
        if os.name == "posix" and os.fstat(self._file.fileno()).st_mode & 0o077:
            self._file.close()
            raise PermissionError(
                f"others may read or write the seat {os.fspath(path)}, which has a secret: chmod 600 it"
            )
        try:
            _lock(self._file)
        except OSError:
            self._file.close()
            raise BlockingIOError(
                f"a process that still runs has the seat {os.fspath(path)}: end it first, or use another seat"
            ) from None
        self._file.seek(0)
        found = re.fullmatch(rb"s_[0-9a-f]{32}", self._file.read(64))
        #: The session of the process before; None if that was closed.
        self.before: str | None = found[0].decode() if found else None

    def note(self, session: str) -> None:
        """Replaces the session in the file. Without that the client goes on, and nothing of it is taken over."""
        try:
            self._file.seek(0)
            self._file.write(session.encode())
        except OSError as error:
            logger.warning("the seat cannot be written, so the next process takes nothing over: %s", error)

    def leave(self, ended: bool) -> None:
        """Releases the seat. After the end of the session there is nothing to be taken over."""
        if self._file.closed:
            return
        if ended:
            self._file.truncate(0)
        self._file.close()


__all__ = ["Seat"]
