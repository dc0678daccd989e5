"""Leases for the tools of agent frameworks. Each module needs its framework, and nothing else of this package does.

All of them take the keys of tools, by the names of the tools, with arguments in braces:

    Leases({"refund": "account:{account_id}"}, client=client, wait=20)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .._async import AsyncClient, AsyncLease, AsyncLeaseContext
from .._guard import NoKey, ToolReport, awaited_call, blocking_call, client_for
from .._sync import Client, LeaseContext


class ToolKeys:
    """The keys that tools have to hold while they run."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | Client | None = None, **options: Any) -> None:
        self.keys: dict[str, str] = dict(keys)
        self.client = client
        self.options = options

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        body: Callable[[], Awaitable[Any]],
        tell: Callable[[ToolReport], Any] = str,
    ) -> Any:
        """Awaits the body of a tool, under a lease if it needs one. tell makes a result for the model of a report."""
        if tool not in self.keys:
            return await body()

        def lease() -> AsyncLeaseContext:
            client: AsyncClient = client_for(self.client, True, tool)
            return client.lease(self._key(tool, arguments), **self._options(tool))

        return await awaited_call(lease, body, tell)

    def run_blocking(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        body: Callable[[], Any],
        tell: Callable[[ToolReport], Any] = str,
    ) -> Any:
        """Does the same in a thread that it blocks."""
        if tool not in self.keys:
            return body()

        def lease() -> LeaseContext:
            client: Client = client_for(self.client, False, tool)
            return client.lease(self._key(tool, arguments), **self._options(tool))

        return blocking_call(lease, body, tell)

    async def acquire(self, tool: str, arguments: Mapping[str, Any]) -> AsyncLease | None:
        """Acquires the lease for a call of a tool, where the end of the call is another callback."""
        if tool not in self.keys:
            return None
        client: AsyncClient = client_for(self.client, True, tool)
        return await client.acquire(self._key(tool, arguments), **self._options(tool))

    def _key(self, tool: str, arguments: Mapping[str, Any]) -> str:
        try:
            return self.keys[tool].format(**arguments)
        except (AttributeError, LookupError, TypeError):
            raise NoKey(tool, self.keys[tool]) from None

    def _options(self, tool: str) -> dict[str, Any]:
        return {"purpose": tool, **self.options}
