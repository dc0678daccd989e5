"""The claim to an effect, and the report of what became of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal, cast

from ._api import MAX_REASON_BYTES, MAX_RESULT_BYTES
from ._call import Caller
from ._errors import Refused
from ._report import Unstorable, clip, describe, frozen, mark
from ._types import Effect, EffectAnswer
from ._wire import Steps, new_key

logger = logging.getLogger("interlock")

Outcome = Literal["done", "cancelled", "unknown"]

#: The refusals of a report that one with less text can overcome.
_FORM = frozenset({"invalid_request", "too_long", "body_too_large", "too_many_effects"})
_OPERATIONS = {"done": "completeEffect", "cancelled": "cancelEffect", "unknown": "markEffectUnknown"}


class EffectClaim:
    """The claim to an effect, as the body of a with block has it."""

    def __init__(self, effect: Effect) -> None:
        self.effect = effect
        self.id: str = effect.get("id", "")
        #: Whether it was done before: then do nothing.
        self.done: bool = effect["state"] == "done"
        self.result: Any = effect.get("result")
        self.outcome: Outcome | None = None
        self.reason: str | None = None
        #: Whether its block runs.
        self.runs: bool = False

    def complete(self, result: Any = None) -> None:
        """Notes that it was done. The report is sent at the end of the block.

        It never fails: in the place of a result that cannot be stored, as it is no JSON or has more than 64 KiB, later
        claimers find {"interlock": "result not stored", "reason": ...}.
        """
        self.outcome, self.result = "done", result

    def cancel(self, reason: str) -> None:
        """Notes that it certainly was not done, so that the next claimer may do it."""
        self.outcome, self.reason = "cancelled", reason

    def _report(self, caller: Caller, error: BaseException | None) -> Callable[[], Steps[Effect]]:
        """Returns the report at the end of the block, which error has ended."""
        outcome = self.outcome or ("done" if error is None else "unknown")
        reason = self.reason if error is None or self.reason is not None else describe(error)
        return report(caller, self.id, outcome, self.result, reason)


def report(
    caller: Caller, effect: str, outcome: Outcome, result: Any, reason: str | None
) -> Callable[[], Steps[Effect]]:
    """Returns the steps that report an outcome. They may be carried out several times."""
    bodies: list[dict[str, Any]] = [{}]
    if outcome != "done":
        if reason is not None:
            bodies.insert(0, {"reason": clip(reason, MAX_REASON_BYTES)})
    elif result is not None:
        problem = "the server does not take it"
        try:
            bodies.insert(0, {"result": frozen(result, MAX_RESULT_BYTES)})
        except Unstorable as error:
            problem = str(error)
            logger.warning("the result of an effect is not stored: %s", problem)
        bodies.insert(-1, {"result": mark(problem)})
    tries = [(body, new_key()) for body in bodies]

    def steps() -> Steps[Effect]:
        for body, key in tries:
            try:
                reply = yield from caller.request(_OPERATIONS[outcome], path={"id": effect}, body=body, key=key)
            except Refused as error:
                if error.code not in _FORM or not body:
                    raise
                logger.warning("the report on an effect is sent with less text: %s", error)
            else:
                return cast(EffectAnswer, reply.parse())["effect"]
        raise AssertionError("unreachable")

    return steps


__all__ = ["EffectClaim", "Outcome", "report"]
