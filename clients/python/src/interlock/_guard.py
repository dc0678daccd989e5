"""The lease of the code that runs now, the decorator for tools, and what a model reads of a call."""

from __future__ import annotations

import asyncio
import collections
import functools
import inspect
import json
import string
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from . import _scope
from ._errors import Cancelled, Deadlock, Held, InterlockError, LeaseLost, Stale
from ._handle import Handle
from ._seen import Free

F = TypeVar("F", bound=Callable[..., Any])

_CHECK = "check before you repeat it"


def enter(lease: Handle) -> None:
    """Makes a lease the current one."""
    lease._place.block = True
    _scope.enter(lease._place)


def leave(lease: Handle) -> None:
    """Ends that."""
    lease._place.block = False
    _scope.leave(lease._place)


def current_lease() -> Any:
    """Returns the innermost lease of the code that runs now. Without one it raises LookupError."""
    for place in reversed(_scope.around()):
        lease = place._handle()
        if place.block and lease is not None:
            return lease
    raise LookupError("no lease is held here: call it in the body of a with block, or of a guarded function")


class NoKey(InterlockError):
    """A model has called a tool without an argument that the key of the tool names."""

    def __init__(self, tool: str, template: str) -> None:
        message = f"the call of {tool} lacks an argument that its key {template} names"
        super().__init__("invalid_request", message, "call it again with all arguments")


#: What becomes a text for the model before a tool has begun.
_REFUSALS = (Deadlock, Held, LeaseLost, NoKey, Stale)


class ToolReport:
    """What is known of a call of a tool that did not simply return. str() is the text for the model."""

    def __init__(self, call: Call, error: InterlockError, notice: str) -> None:
        #: Why it did not simply return.
        self.error = error
        #: Whether the tool has begun: if not, nothing was done.
        self.begun: bool = call.lease is not None
        #: Whether the tool has returned.
        self.returned: bool = call.returned
        #: What it has returned.
        self.result: Any = call.result
        #: The text without the result.
        self.notice = notice

    def about(self, result: Any) -> str:
        """Returns the text, with a result of the tool in the place of its own."""
        if not self.returned:
            return self.notice
        if result is None:
            return f"It returned nothing. {self.notice}"
        shown = _shown(result)
        return f"It returned: {shown}{'' if shown.endswith(('.', '!', '?')) else '.'} {self.notice}"

    def __str__(self) -> str:
        return self.about(self.result)


def _shown(result: Any) -> str:
    if isinstance(result, (dict, list, tuple, bool)):
        try:
            return json.dumps(result, ensure_ascii=False, default=str)
        except (TypeError, ValueError):
            pass  # it has other keys, or contains itself
    return str(result)


class Call:
    """One call of a tool under a lease, and how far it has come.

    Only an error that comes before the tool has begun says "Not done": after that the tool may have acted.
    """

    def __init__(self) -> None:
        self.lease: Handle | Free | None = None
        self.returned = False
        self.result: Any = None
        #: What the tool has raised. The end of its lease may raise another error in its place.
        self.failure: BaseException | None = None

    def report(self, error: BaseException) -> ToolReport | None:
        """Returns what is known after an error, or None if the error is not for the model, but is raised on.

        That holds for cancellations, for errors of the tool itself, and before it has begun for all but refusals.
        """
        if self.failure is not None and not isinstance(error, LeaseLost):
            error = self.failure
        lost = self._lost()
        if not isinstance(error, InterlockError) or isinstance(error, Cancelled):
            if lost:
                _note(error, f"{lost} {_CHECK.capitalize()}.")
            return None
        if self.lease is None:
            return ToolReport(self, error, f"Not done: {error}.") if isinstance(error, _REFUSALS) else None
        # What the error advises, such as to acquire again, is for a caller that nothing was done for.
        error.next_step = _CHECK
        if self.returned:
            keys = ", ".join(self.lease.keys)
            known = lost or f"The end of the lease on {keys} could not be reported ({_fact(error)})."
        else:
            known = f"It may have been done in part: {_fact(error)}."
            if lost and not (isinstance(error, LeaseLost) and error.keys == self.lease.keys):
                known = f"{known} {lost}"
        return ToolReport(self, error, f"{known} {_CHECK.capitalize()}.")

    def settle(self, error: Exception, tell: Callable[[ToolReport], Any]) -> Any:
        """Returns what tell makes of a report, or raises the error that there is none for."""
        if self.returned and is_parked(error):
            return self.result
        report = self.report(error)
        if report is not None:
            return tell(report)
        raised, self.failure = self.failure, None  # it refers to the frame that refers to this
        raise error if raised is None else raised

    def _lost(self) -> str:
        """Says that the lease was lost, if its release has found that."""
        if self.lease is None or self.lease._verdict is None or is_parked(self.lease._verdict):
            return ""
        keys = ", ".join(self.lease.keys)
        return f"The lease on {keys} was lost meanwhile ({_fact(self.lease._verdict)}): others may have written."


def is_report(result: Any) -> bool:
    """Whether a result is the text of a call that did not simply return."""
    if not isinstance(result, str):
        return False
    return result.startswith("Not done: ") or (result.startswith("It ") and result.endswith(f"{_CHECK.capitalize()}."))


def is_parked(error: BaseException | None) -> bool:
    """Whether the lease is not held any more because the tool has parked it."""
    return isinstance(error, LeaseLost) and error.code == "parked"


def _fact(error: InterlockError) -> str:
    """Returns an error without its advice."""
    changes = error.packet["message"] if isinstance(error, Stale) else ""
    return (changes or error.message).rstrip(".")


def _note(error: BaseException, text: str) -> None:
    add = getattr(error, "add_note", None)  # from Python 3.11 on
    if add is not None:
        add(text)


def blocking_call(lease: Callable[[], Any], body: Callable[[], Any], tell: Callable[[ToolReport], Any]) -> Any:
    """Runs the body of a tool under a lease. Returns its result, or what tell makes of a report."""
    call = Call()
    try:
        with lease() as held:
            call.lease = held
            held._call = call
            try:
                with held._place.blocking_turn():
                    call.result = body()
                call.returned = True
            except BaseException as error:
                call.failure = error
                raise
    except Exception as error:
        return call.settle(error, tell)
    return call.result


async def awaited_call(
    lease: Callable[[], Any], body: Callable[[], Awaitable[Any]], tell: Callable[[ToolReport], Any]
) -> Any:
    """Awaits the body of a tool under a lease. Returns its result, or what tell makes of a report."""
    call = Call()
    try:
        async with lease() as held:
            call.lease = held
            held._call = call
            try:
                async with held._place.turn():
                    call.result = await body()
                call.returned = True
            except BaseException as error:
                call.failure = error
                raise
    except Exception as error:
        return call.settle(error, tell)
    return call.result


#: The last texts that say that a tool was not done, with the codes and messages of their errors.
_refused: collections.deque[tuple[str, str, str]] = collections.deque(maxlen=1000)


def _text(report: ToolReport) -> str:
    text = str(report)
    if not report.begun:
        _refused.append((text, report.error.code, report.error.message))
    return text


def _pass_on(result: Any) -> None:
    """Raises what the text of another guarded function stands for, if a tool that calls it has returned that text.

    The tool itself may have acted before that call.
    """
    if isinstance(result, str):
        for text, code, message in tuple(_refused):
            if text == result:
                raise InterlockError(code, message)


def _runs_on(function: Callable[..., Any], how: str) -> TypeError:
    name = function.__qualname__
    return TypeError(f"{name} {how}, and would run on after its lease: return a result instead")


def _ended(function: Callable[..., Any], result: Any) -> Any:
    """Returns a result, unless it is something that has yet to run, or stands for a refusal on the way."""
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        close = getattr(result, "close", None)
        if close is not None:
            close()
        raise _runs_on(function, f"returns a {type(result).__name__}")
    if not getattr(function, "_interlock_guarded", False):  # else nothing else has run
        _pass_on(result)
    return result


def _raise(report: ToolReport) -> Any:
    """Raises the error, whose note says what is known."""
    if report.begun:
        _note(report.error, str(report))
    raise report.error


_clients: dict[Any, Any] = {}


def _default(asynchronous: bool) -> Any:
    """Returns the client of this process, or of the event loop that runs now. The environment configures it."""
    from . import AsyncClient, Client

    place = asyncio.get_running_loop() if asynchronous else None
    found = _clients.get(place)
    if found is None or found.closed:
        found = _clients[place] = AsyncClient() if asynchronous else Client()
    return found


def client_for(given: Any, asynchronous: bool, what: str) -> Any:
    """Returns the client that was given, if it is of the kind that is needed, or the one of this process."""
    from . import AsyncClient, Client

    if given is None:
        return _default(asynchronous)
    if asynchronous and isinstance(given, Client):
        raise TypeError(f"{what} is awaited, and so needs an AsyncClient")
    if not asynchronous and isinstance(given, AsyncClient):
        raise TypeError(f"{what} is not awaited, and so needs a Client")
    return given


def guarded(
    *keys: str, client: Any = None, refuse: Callable[[ToolReport], Any] | None = _text, **options: Any
) -> Callable[[F], F]:
    """Lets a tool run only while it holds a lease.

    A key names arguments of the function in braces: guarded("account:{account_id}"). The lease is acquired before
    the call and released after it; current_lease() returns it.

    A key that is taken and a wait that would never end become a text for the model, "Not done: ...". Once the function
    has begun, a lease that is lost and each error of this package become another text: that it may have been done in
    part, or what it returned. refuse makes something else of the report; None raises the error. Other errors of the
    function, and cancellations, are raised on. options are those of Client.lease. An async function needs an
    AsyncClient. client may be a function that returns one.
    """

    tell = refuse or _raise

    def decorate(function: F) -> F:
        if not inspect.isroutine(function):
            raise TypeError(
                f"guarded takes a function, and this is a {type(function).__name__}: "
                "put it below the decorator of the framework"
            )
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise _runs_on(function, "yields")
        signature = inspect.signature(function)
        fields = {name for key in keys for _, name, _, _ in string.Formatter().parse(key) if name}
        unknown = {name.split(".")[0].split("[")[0] for name in fields} - set(signature.parameters)
        if unknown:
            raise TypeError(
                f"{function.__qualname__} has no argument {', '.join(sorted(unknown))} for the key of guarded"
            )

        def lease_for(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            chosen = client_for(
                client() if callable(client) else client, inspect.iscoroutinefunction(function), function.__name__
            )
            settings = {"purpose": function.__name__, **options}
            return chosen.lease(*(key.format(**bound.arguments) for key in keys), **settings)

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def waiting(*args: Any, **kwargs: Any) -> Any:
                async def body() -> Any:
                    return _ended(function, await function(*args, **kwargs))

                return await awaited_call(lambda: lease_for(args, kwargs), body, tell)

            waiting._interlock_guarded = True  # type: ignore[attr-defined]
            return cast(F, waiting)

        @functools.wraps(function)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            return blocking_call(
                lambda: lease_for(args, kwargs), lambda: _ended(function, function(*args, **kwargs)), tell
            )

        blocking._interlock_guarded = True  # type: ignore[attr-defined]
        return cast(F, blocking)

    return decorate
