"""What a model reads of a call that did not simply return: each error, at each moment, in both shells."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from interlock import (
    AsyncClient,
    Cancelled,
    Client,
    Closed,
    Deadlock,
    EffectTaken,
    ForkedError,
    Held,
    InterlockError,
    LeaseLost,
    OutcomeUnknown,
    Refused,
    Stale,
    ToolReport,
    Unreachable,
    WaitTimeout,
    current_lease,
    guarded,
)
from interlock.testing import LocalServer


def refused(kind: type[Refused], code: str, **more: Any) -> Refused:
    problem: Any = {"code": code, "detail": "so it is", **more}
    problem["advice"] = {"action": "stop", "retry_after_ms": 0, "message": "acquire again"}
    return kind(problem)


#: Errors of the package, what they say without their advice, and whether they refuse a lease.
ERRORS: dict[str, tuple[Callable[[], InterlockError], str, bool]] = {
    "held": (lambda: refused(Held, "held"), "so it is", True),
    "wait": (lambda: refused(WaitTimeout, "wait_limit"), "so it is", True),
    "deadlock": (lambda: refused(Deadlock, "deadlock"), "so it is", True),
    "lost": (lambda: LeaseLost("expired", "it was not confirmed", ("other",)), "it was not confirmed", True),
    "refused": (lambda: refused(Refused, "forbidden"), "so it is", False),
    "effect": (lambda: refused(EffectTaken, "effect_unknown"), "so it is", False),
    "stale": (lambda: refused(Stale, "stale", packet={"message": "7 is 8 now."}), "7 is 8 now", True),
    "unreachable": (lambda: Unreachable("no server"), "no server", False),
    "unknown": (lambda: OutcomeUnknown("no answer"), "no answer", False),
    "closed": (Closed, "the client is closed", False),
    "forked": (ForkedError, "the client was made before this process was forked, and belongs to its parent", False),
}
#: Errors that never become a text.
OTHERS: dict[str, Callable[[], BaseException]] = {
    "own": lambda: ValueError("the bank is closed"),
    "token": Cancelled,
    "task": asyncio.CancelledError,
    "interrupt": KeyboardInterrupt,
}


class Refusing:
    """A client whose leases are refused with an error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def lease(self, *keys: str, **options: Any) -> Refusing:
        return self

    def __enter__(self) -> Any:
        raise self.error

    def __exit__(self, *error: Any) -> None:
        pass

    async def __aenter__(self) -> Any:
        raise self.error

    async def __aexit__(self, *error: Any) -> None:
        pass


class Shell:
    """Calls a tool, guarded by a key, whose body is a function of its client."""

    def __init__(self, url: str, key: str, awaited: bool) -> None:
        self.url, self.key, self.awaited = url, key, awaited

    def call(self, body: Callable[[Any], Any], client: Any = None, **options: Any) -> Any:
        if self.awaited:
            return asyncio.run(self._awaited(body, client, options))
        with Client(self.url, agent="teller") as own:

            @guarded(self.key, client=client or own, wait=0, grace=0, **options)
            def tool() -> Any:
                return body(own)

            return tool()

    async def _awaited(self, body: Callable[[Any], Any], client: Any, options: Any) -> Any:
        async with AsyncClient(self.url, agent="teller") as own:

            @guarded(self.key, client=client or own, wait=0, grace=0, **options)
            async def tool() -> Any:
                return body(own)

            return await tool()

    def revoke(self) -> None:
        """Ends the lease on the server. Its holder has not heard of it."""
        body = {"key": self.key, "fence": str(current_lease().fence), "reason": "it was silent"}
        header = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + "/v1/revocations", json.dumps(body).encode(), header)
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    @property
    def lost(self) -> str:
        return f"The lease on {self.key} was lost meanwhile (*): others may have written."

    def says(self, text: str, pattern: str) -> bool:
        """Compares a text with a pattern in which * stands for anything, and that the advice follows."""
        before, _, after = f"{pattern} Check before you repeat it.".partition("*")
        return text.startswith(before) and text.endswith(after)


@pytest.fixture(params=["blocking", "awaited"])
def shell(request: pytest.FixtureRequest, interlock_server: LocalServer, key: str) -> Shell:
    return Shell(interlock_server.url, key, request.param == "awaited")


def thrower(error: BaseException, first: Callable[[], Any] = lambda: None) -> Callable[[Any], Any]:
    def body(client: Any) -> Any:
        first()
        raise error

    return body


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_before_the_tool(shell: Shell, name: str) -> None:
    make, _, refuses = ERRORS[name]
    error = make()

    def body(client: Any) -> None:
        pytest.fail("it ran")

    if refuses:
        assert shell.call(body, Refusing(error)) == f"Not done: {error}."
    with pytest.raises(type(error)) as raised:
        shell.call(body, Refusing(error), **({"refuse": None} if refuses else {}))
    assert raised.value is error and str(error) == str(make())


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_within_the_tool(shell: Shell, name: str) -> None:
    make, says, _ = ERRORS[name]
    in_part = f"It may have been done in part: {says}."
    assert shell.says(shell.call(thrower(make())), in_part)
    assert shell.says(shell.call(thrower(make(), shell.revoke)), f"{in_part} {shell.lost}")
    error = make()
    with pytest.raises(type(error)) as raised:
        shell.call(thrower(error), refuse=None)
    assert raised.value is error and "acquire again" not in str(error)


@pytest.mark.parametrize("name", OTHERS)
def test_an_error_that_is_raised_on(shell: Shell, name: str) -> None:
    make = OTHERS[name]
    for client, first in (Refusing(make()), lambda: None), (None, lambda: None), (None, shell.revoke):
        error = make() if client is None else client.error
        with pytest.raises(type(error)) as raised:
            shell.call(thrower(error, first), client)
        assert str(raised.value) == str(make())
        if name == "own" and sys.version_info >= (3, 11):
            notes = getattr(error, "__notes__", [])
            assert [shell.says(note, shell.lost) for note in notes] == [True] * (first == shell.revoke)


@pytest.mark.parametrize(
    "result, shown",
    [
        ("refunded 900", "It returned: refunded 900."),
        ("All is well.", "It returned: All is well."),
        ({"cents": 900, "to": "Zoë"}, 'It returned: {"cents": 900, "to": "Zoë"}.'),
        ([1, None], "It returned: [1, null]."),
        (False, "It returned: false."),
        (900, "It returned: 900."),
        ({1j: b"x"}, "It returned: {1j: b'x'}."),
        (None, "It returned nothing."),
    ],
)
def test_a_lease_lost_after_the_tool(shell: Shell, result: Any, shown: str) -> None:
    def body(client: Any) -> Any:
        shell.revoke()
        return result

    assert shell.says(shell.call(body), f"{shown} {shell.lost}")
    reports: list[ToolReport] = []
    shell.call(body, refuse=reports.append)
    assert reports[0].begun and reports[0].returned and reports[0].result == result
    assert isinstance(reports[0].error, LeaseLost) and reports[0].error.code == "revoked"
    with pytest.raises(LeaseLost) as raised:
        shell.call(body, refuse=None)
    assert str(raised.value).endswith(": check before you repeat it")
    if sys.version_info >= (3, 11):
        assert shell.says(raised.value.__notes__[0], f"{shown} {shell.lost}")


def test_a_lease_that_its_check_finds_lost(shell: Shell) -> None:
    def body(client: Any) -> Any:
        lease = current_lease()
        client._engine.core.end(lease._grant, "revoked", "an operator has revoked it")
        lease.check()

    assert shell.says(shell.call(body), "It may have been done in part: an operator has revoked it.")


def test_a_report_of_the_end_that_fails(shell: Shell) -> None:
    """The release is refused. What the tool has returned or raised counts."""

    def refusing(*_: Any) -> Any:
        raise refused(Refused, "invalid_request")
        yield

    def body(client: Any) -> str:
        client._engine.core._free = refusing
        return "refunded 900"

    def failing(error: BaseException) -> Callable[[Any], Any]:
        def tool(client: Any) -> Any:
            body(client)
            raise error

        return tool

    failed = f"The end of the lease on {shell.key} could not be reported (*)."
    assert shell.says(shell.call(body), f"It returned: refunded 900. {failed}")
    errors: list[BaseException] = [ValueError("the bank is closed"), asyncio.CancelledError()]
    for error in errors:
        with pytest.raises(type(error)) as raised:
            shell.call(failing(error))
        assert str(raised.value) == str(error)
    held = refused(Held, "held")
    text = shell.call(failing(held))
    assert shell.says(text, "It may have been done in part: so it is.")


def test_a_lease_that_the_tool_parks(interlock_client: Client, key: str) -> None:
    @guarded(key, client=interlock_client, wait=0)
    def tool() -> str:
        return str(current_lease().park(reason="May it be paid?"))

    assert not tool().startswith(("It ", "Not "))


def test_an_end_without_an_answer(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool has ended while it held the lease, and its ttl ends that: there is nothing to tell."""

    def body(client: Any) -> str:
        core = client._engine.core

        def silent(*args: Any) -> Any:
            monkeypatch.undo()
            raise OutcomeUnknown("no answer")
            yield

        monkeypatch.setattr(core, "_free", silent)
        return "refunded 900"

    assert shell.call(body) == "refunded 900"


def test_a_nested_lease_that_is_refused(shell: Shell, other: Client) -> None:
    done: list[str] = []
    ledger = f"ledger:{shell.key}"

    def blocking(client: Any) -> None:
        done.append("debited 3")
        with client.lease(ledger, wait=0):
            pytest.fail("it is held")

    async def waits(client: AsyncClient) -> Any:
        @guarded(shell.key, client=client)
        async def tool() -> None:
            done.append("debited 3")
            async with client.lease(ledger, wait=0):
                pytest.fail("it is held")

        return await tool()

    async def main() -> Any:
        async with AsyncClient(shell.url) as client:
            return await waits(client)

    with other.lease(ledger, purpose="audit"):
        text = asyncio.run(main()) if shell.awaited else shell.call(blocking)
    assert done == ["debited 3"]
    assert shell.says(text, f'It may have been done in part: {ledger} is held by other (live, "audit")*.')


def test_a_guarded_function_that_a_tool_calls(interlock_client: Client, other: Client, key: str) -> None:
    """It returns that it was not done, and the tool returns that. But the tool has acted before."""

    @guarded("ledger:{name}", client=interlock_client, wait=0)
    def credit(name: str) -> str:
        return "credited 3"

    @guarded("account:{name}", client=interlock_client, wait=0)
    def transfer(name: str) -> str:
        return credit(name)

    both = guarded("audit:{name}", client=interlock_client, wait=0)(credit)
    assert transfer(key) == both(key) == "credited 3"
    with other.lease(f"ledger:{key}"):
        text = transfer(key)
        assert text.startswith(f"It may have been done in part: ledger:{key} is held by other")
        assert text.endswith(". Check before you repeat it.")
        assert both(key).startswith(f"Not done: ledger:{key} is held by other")  # nothing else was called


def test_a_cancellation_by_the_loss(interlock_server: LocalServer, key: str) -> None:
    """It is the reason why the tool ended, whatever the tool makes of it. Another cancellation is raised on."""

    async def main() -> None:
        async with AsyncClient(interlock_server.url) as client:

            @guarded("tool:{name}", client=client, wait=0, grace=0)
            async def tool(name: str, catches: bool, outer: bool) -> str:
                grant, task = current_lease()._grant, asyncio.current_task()
                assert task is not None
                loop = asyncio.get_running_loop()
                loop.call_soon(client._engine.core.end, grant, "revoked", "an operator has revoked it")
                if outer:
                    loop.call_soon(task.cancel)
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    if not catches:
                        raise
                return "refunded"

            text = await tool(f"{key}a", False, False)
            assert text == ("It may have been done in part: an operator has revoked it. Check before you repeat it.")
            text = await tool(f"{key}b", True, False)
            assert text == (
                f"It returned: refunded. The lease on tool:{key}b was lost meanwhile (an operator has revoked it): "
                "others may have written. Check before you repeat it."
            )
            if sys.version_info >= (3, 11):  # before it, a task cannot tell two cancellations apart
                task = asyncio.ensure_future(tool(f"{key}c", False, True))
                with pytest.raises(asyncio.CancelledError):
                    await task

    asyncio.run(main())


def test_what_has_yet_to_run_is_no_result(interlock_client: Client, key: str) -> None:
    def numbers() -> Iterator[int]:
        yield 1

    async def stream() -> AsyncIterator[int]:
        yield 1

    async def later() -> int:
        return 1

    for make in numbers, stream, later:

        @guarded(key, client=interlock_client)
        def tool(make: Any = make) -> Any:
            return make()

        with pytest.raises(TypeError, match=r"tool returns a .*, and would run on after its lease"):
            tool()
