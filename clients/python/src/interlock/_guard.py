"""The lease of the code that runs now, and the decorator for tools."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import string
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ._errors import Deadlock, Held, InterlockError, LeaseLost
from ._handle import Handle

F = TypeVar("F", bound=Callable[..., Any])

#: What becomes a text for the model.
REFUSALS = (Deadlock, Held, LeaseLost)

_leases: contextvars.ContextVar[tuple[Handle, ...]] = contextvars.ContextVar("interlock_leases", default=())


def enter(lease: Handle) -> None:
    """Makes a lease the current one."""
    _leases.set((*_leases.get(), lease))


def leave(lease: Handle) -> None:
    """Ends that."""
    _leases.set(tuple(held for held in _leases.get() if held is not lease))


def current_lease() -> Any:
    """Returns the innermost lease of the code that runs now. Without one it raises LookupError."""
    held = _leases.get()
    if not held:
        raise LookupError("no lease is held here: call it in the body of a with block, or of a guarded function")
    return held[-1]


def refusal_text(error: InterlockError) -> str:
    """Returns a refusal as text for a model: what the case is, and what to do next."""
    return f"Not done: {error}."


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
    *keys: str, client: Any = None, refuse: Callable[[InterlockError], Any] | None = refusal_text, **options: Any
) -> Callable[[F], F]:
    """Lets a tool run only while it holds a lease.

    A key names arguments of the function in braces: guarded("account:{account_id}"). The lease is acquired before
    the call and released after it; current_lease() returns it. A key that is taken, a wait that would never end, and a
    lease that is lost become a text for the model, unless refuse is None: then the error is raised. options are those
    of Client.lease. An async function needs an AsyncClient. client may be a function that returns one.
    """

    def decorate(function: F) -> F:
        if not inspect.isroutine(function):
            raise TypeError(
                f"guarded takes a function, and this is a {type(function).__name__}: "
                "put it below the decorator of the framework"
            )
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__qualname__} yields, and would run on after its lease: return a result instead"
            )
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
                try:
                    async with lease_for(args, kwargs):
                        return await function(*args, **kwargs)
                except REFUSALS as error:
                    if refuse is None:
                        raise
                    return refuse(error)

            return cast(F, waiting)

        @functools.wraps(function)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            try:
                with lease_for(args, kwargs):
                    return function(*args, **kwargs)
            except REFUSALS as error:
                if refuse is None:
                    raise
                return refuse(error)

        return cast(F, blocking)

    return decorate
