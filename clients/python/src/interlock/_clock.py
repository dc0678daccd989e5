"""The clock of leases: it goes on while the machine sleeps, and no one can set it."""

from __future__ import annotations

import sys
import time
from typing import Final

# time.monotonic stands still on Linux and macOS while a laptop is suspended, and a lease does not.
if sys.platform == "linux":
    _ID: Final = time.CLOCK_BOOTTIME
elif sys.platform == "darwin":
    _ID: Final = time.CLOCK_MONOTONIC
else:
    _ID: Final = None


def now() -> float:
    """Returns seconds since some moment."""
    if _ID is not None:
        return time.clock_gettime(_ID)
    return time.monotonic()
