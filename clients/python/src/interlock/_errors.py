"""The errors. Each says in words what the case is, and what comes next: str() is a sentence for a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ._types import Holder, Packet, Problem


class InterlockError(Exception):
    """The base of all errors of this package."""

    def __init__(self, code: str, message: str, next_step: str = "", retry_after: float = 0.0) -> None:
        super().__init__(message)
        #: The stable name of the case; docs/errors.md lists those of the server.
        self.code = code
        #: The case in words.
        self.message = message
        #: What to do next, in words.
        self.next_step = next_step
        #: Seconds after which to come back; 0 when there is no such time.
        self.retry_after = retry_after

    def __str__(self) -> str:
        if not self.next_step:
            return self.message
        return f"{self.message}: {self.next_step}"


class Refused(InterlockError):
    """The server has decided: it did not do what was asked."""

    def __init__(self, problem: Problem) -> None:
        advice = problem["advice"]
        super().__init__(problem["code"], problem["detail"], advice["message"], advice["retry_after_ms"] / 1000)
        #: The whole answer.
        self.problem = problem
        #: An attempt before this one was not answered, and may have been carried out.
        self.unsure = False

    @property
    def key(self) -> str:
        """The key that it is about, if there is one."""
        return self.problem.get("key", "")

    @property
    def holders(self) -> list[Holder]:
        """The holders in the way."""
        return self.problem.get("holders", [])


class Held(Refused):
    """The key is taken: held, at capacity, or out of its rate."""


class WaitTimeout(Held, TimeoutError):
    """The key was taken until the wait was over. The place in line is given up."""


class Stale(Refused):
    """A document has changed since it was read. str() describes the changes, for a prompt."""

    @property
    def packet(self) -> Packet:
        """The changes since the read."""
        return self.problem.get("packet") or {"stale": [], "more": False, "message": ""}

    def __str__(self) -> str:
        return self.packet["message"] or super().__str__()


class Deadlock(Refused):
    """The wait would never end: this request was the victim. Release what others wait for, then ask again."""


class EffectTaken(Refused):
    """Another claimer is about to perform the effect, or its outcome is unknown."""


class LeaseLost(InterlockError):
    """The lease is not held any more, as far as this process can tell. Write nothing under it."""

    def __init__(self, code: str, message: str, keys: tuple[str, ...] = ()) -> None:
        super().__init__(code, message, "write nothing, acquire again, and read again before you decide")
        self.keys = keys


class Unreachable(InterlockError, ConnectionError):
    """No server got the request, so it was certainly not carried out."""

    def __init__(self, message: str, next_step: str = "ask again when there is a server") -> None:
        super().__init__("unreachable", message, next_step)


class OutcomeUnknown(InterlockError):
    """The request was sent, and no answer came: it may have been carried out."""

    def __init__(self, message: str) -> None:
        super().__init__("outcome_unknown", message, "find out what holds before you repeat it")


class Orphaned(InterlockError):
    """The client is of the session of the command around this process, and that session has ended."""

    def __init__(self, why: str) -> None:
        super().__init__(
            "session_ended",
            f"the session of the command around this process has ended ({why})",
            "write nothing more under it, and end this process, or make a client with join=False",
        )


class Closed(InterlockError):
    """The client is closed."""

    def __init__(self) -> None:
        super().__init__("closed", "the client is closed", "make a new one")


class Cancelled(InterlockError):
    """The call was cancelled by its CancelToken. It has left nothing behind."""

    def __init__(self) -> None:
        super().__init__("cancelled", "the call was cancelled")


class ForkedError(InterlockError):
    """The client, or the lease, belongs to the parent of this process."""

    def __init__(self) -> None:
        super().__init__(
            "forked",
            "the client was made before this process was forked, and belongs to its parent",
            "make a client in the child",
        )


class OtherLoop(InterlockError):
    """The client belongs to another event loop: the one of its first call."""

    def __init__(self, ended: bool) -> None:
        which = "an event loop that has ended" if ended else "another event loop"
        super().__init__(
            "other_loop", f"the client was first used in {which}, and belongs to it", "make a client in each event loop"
        )


_HELD = frozenset({"held", "at_capacity", "rate_limited", "too_many_runs", "wait_limit", "barrier_broken"})
_EFFECT = frozenset({"effect_claimed", "effect_unknown"})


def handled(error: BaseException) -> None:
    """Has an error that is dealt with refer to no frames: what keeps it must not keep the leases that they have."""
    error.__traceback__ = None


def refusal(problem: Problem) -> Refused:
    """Returns the error for an answer."""
    code = problem["code"]
    kind: type[Refused] = Refused
    if code in _HELD:
        kind = Held
    elif code == "stale":
        kind = Stale
    elif code == "deadlock":
        kind = Deadlock
    elif code in _EFFECT:
        kind = EffectTaken
    return kind(problem)


def as_problem(body: Any, status: int) -> Problem:
    """Completes an answer that is not as the server writes it, such as that of a proxy in between."""
    known: Mapping[str, Any] = body if isinstance(body, dict) else {}
    code = known.get("code")
    if not isinstance(code, str):
        code = "not_found" if status == 404 else "outcome_unknown" if status >= 500 else "invalid_request"
    given = known.get("advice")
    advice: Mapping[str, Any] = given if isinstance(given, dict) else {}
    problem: dict[str, Any] = dict(known)
    problem.update(
        code=code,
        status=status,
        detail=known.get("detail") or f"the server answers with status {status}",
        retryable=bool(known.get("retryable")),
        advice={
            "action": advice.get("action", "stop"),
            "retry_after_ms": advice.get("retry_after_ms", 0),
            "message": advice.get("message", ""),
        },
    )
    return cast(Problem, problem)
