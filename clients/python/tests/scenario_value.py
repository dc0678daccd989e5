"""References, matching and errors of scenarios: see clients/scenarios/README.md."""

from __future__ import annotations

import gc
import json
import os
import re
import urllib.request
from typing import Any

from interlock import Cancelled, InterlockError, LeaseLost, OutcomeUnknown, Refused, Unreachable, WaitTimeout


class Failed(Exception):
    """The scenario did not go as expected."""


def resolve(results: dict[str, Any], value: Any) -> Any:
    """Replaces the references in a value."""
    if isinstance(value, str) and value.startswith("$"):
        name, _, member = value[1:].partition(".")
        return results[name][member or "lease"]
    if isinstance(value, list):
        return [resolve(results, one) for one in value]
    if isinstance(value, dict):
        return {name: resolve(results, one) for name, one in value.items()}
    return value


def match(where: str, want: Any, got: Any) -> None:
    """Compares a value with what is expected."""
    if isinstance(want, dict):
        if "above" in want:
            if not int(got) > int(want["above"]):
                raise Failed(f"{where} is {got}, and should be above {want['above']}")
            return
        for name in want:
            match(f"{where}.{name}", want[name], got.get(name))
    elif isinstance(want, list):
        if len(want) != len(got):
            raise Failed(f"{where} is {got}, want {len(want)} entries")
        for i, one in enumerate(want):
            match(f"{where}[{i}]", one, got[i])
    elif isinstance(want, str):
        pattern = re.escape(want).replace(r"\*", ".*")
        if not isinstance(got, str) or not re.fullmatch(pattern, got, re.DOTALL):
            raise Failed(f"{where} is {got!r}, want {want!r}")
    elif want != got:
        raise Failed(f"{where} is {got!r}, want {want!r}")


def describe(error: BaseException) -> dict[str, Any]:
    """Returns the members of an error."""
    kinds = [
        (LeaseLost, "lost"),
        (WaitTimeout, "timeout"),
        (Cancelled, "cancelled"),
        (Unreachable, "unreachable"),
        (OutcomeUnknown, "unknown"),
        (Refused, "refused"),
    ]
    found: dict[str, Any] = {"message": str(error)}
    found["kind"] = next((kind for of, kind in kinds if isinstance(error, of)), type(error).__name__)
    if isinstance(error, InterlockError):
        found["code"] = error.code
    if isinstance(error, Refused):
        found["key"] = error.key
        found["holders"] = [
            {"agent": holder["agent"], "purpose": holder.get("purpose", "")} for holder in error.holders
        ]
    return found


def judge(
    results: dict[str, Any], step: dict[str, Any], name: str | None, result: Any, error: BaseException | None
) -> None:
    """Compares the end of an operation with what its step expects."""
    if "error" in step:
        if error is None:
            raise Failed(f"it succeeds with {result}, and should fail with {step['error']}")
        match("error", step["error"], describe(error))
        return
    if error is not None:
        raise error
    if name:
        results[name] = result
    if "expect" in step:
        match("result", resolve(results, step["expect"]), result)


def answer(results: dict[str, Any], step: dict[str, Any], result: Any, error: BaseException | None) -> str:
    """Returns the line about the end of an operation."""
    if error is not None:
        return json.dumps({"id": step["id"], "error": describe(error)})
    if "as" in step:
        results[step["as"]] = result
    return json.dumps({"id": step["id"], "result": {name: result[name] for name in result if name != "lease"}})


class BodyError(Exception):
    """The body of a block fails."""


def drop(results: dict[str, Any], name: str) -> None:
    """Forgets a result, so that nothing refers to its lease any more."""
    del results[name]
    gc.collect()


def control(order: Any) -> None:
    """Has the server or the proxy carry out an order."""
    request = urllib.request.Request(os.environ["INTERLOCK_CONTROL"], json.dumps(order).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def acquisition(given: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Returns the arguments of acquire."""
    options: dict[str, Any] = {
        name: given[name] for name in ("mode", "permits", "purpose", "priority", "flow") if name in given
    }
    for name, option in {"wait_ms": "wait", "ttl_ms": "ttl", "grace_ms": "grace", "max_hold_ms": "max_hold"}.items():
        if name in given:
            options[option] = given[name] / 1000
    return given["keys"], {**options, "any_of": given.get("any", False)}


def granted(lease: Any) -> dict[str, Any]:
    """Returns the result of acquire."""
    return {
        "lease": lease,
        "keys": list(lease.keys),
        "fence": str(lease.fence),
        "changed": lease.changed,
        "notes": [{"agent": note["agent"], "text": note["text"]} for note in lease.notes],
    }
