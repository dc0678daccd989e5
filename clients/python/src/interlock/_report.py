"""What a client writes into its reports: texts and values that the server takes, wherever they come from."""

from __future__ import annotations

import json
import logging
from typing import Any

from ._api import MAX_REASON_BYTES

#: The longest reason in the mark of a result that is not stored, in bytes.
MARK_BYTES = 200


#: How long a cause of a repeated warning is left out of the log, in seconds.
_MINUTE = 60.0


class Seldom:
    """Logs what may come with each heartbeat: one line a minute for each cause, with the number of those left out."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._said: dict[str, tuple[float, int]] = {}

    def log(self, moment: float, level: int, cause: str, text: str) -> None:
        """Logs a text, unless its cause has had a line in the minute before."""
        last, left_out = self._said.get(cause, (float("-inf"), 0))
        if moment - last < _MINUTE:
            self._said[cause] = last, left_out + 1
            return
        self._said[cause] = moment, 0
        self._logger.log(level, "%s%s", text, f" ({left_out} more since the last line)" if left_out else "")


class Unstorable(ValueError):
    """The value is not one that the server can store. The text is short, and says why."""


def clip(text: object, most: int) -> str:
    """Returns a text that the server takes: without lone surrogates, and of at most so many bytes in UTF-8."""
    whole = text if type(text) is str else _text_of(text)
    paired = whole[:most].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return paired.encode()[:most].decode(errors="ignore")


def _text_of(value: object) -> str:
    try:
        return "".join(str(value))  # of a class of its own it may be
    except Exception as error:
        return f"its text cannot be made ({type(error).__name__})"


def describe(error: BaseException) -> str:
    """Returns an error as the reason of a failure."""
    name, text = type(error).__name__, _text_of(error)
    return clip(f"{name}: {text}" if text else name, MAX_REASON_BYTES)


def frozen(value: Any, most: int | None = None) -> Any:
    """Returns a copy of a value, as JSON has it: of at most so many bytes. The error is Unstorable."""
    try:
        copy = json.loads(json.dumps(value, allow_nan=False))
        size = len(json.dumps(copy, ensure_ascii=False, separators=(",", ":")).encode())
    except Exception as error:  # methods of the value may raise any
        raise Unstorable(clip(describe(error), MARK_BYTES)) from error
    if most is not None and size > most:
        raise Unstorable(f"it has {size} bytes, and the maximum is {most}")
    return copy


def mark(reason: str) -> dict[str, str]:
    """Returns what stands in the place of a result that cannot be stored."""
    return {"interlock": "result not stored", "reason": clip(reason, MARK_BYTES)}
