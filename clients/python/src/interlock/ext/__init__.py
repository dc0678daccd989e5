"""Leases for the tools of agent frameworks. Each module needs its framework, and nothing else of this package does.

All of them take the keys of tools, by the names of the tools, with arguments in braces:

    Leases({"refund": "account:{account_id}"}, client=client, wait=20)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._async import AsyncClient, AsyncLease, AsyncLeaseContext
from .._errors import InterlockError
from .._guard import REFUSALS as _REFUSALS
from .._guard import client_for
from .._sync import Client, LeaseContext


class NoKey(InterlockError):
    """A model has called a tool without an argument that the key of the tool names."""

    def __init__(self, tool: str, template: str) -> None:
        message = f"the call of {tool} lacks an argument that its key {template} names"
        super().__init__("invalid_request", message, "call it again with all arguments")


#: What becomes the result of a tool, for the model.
REFUSALS = (*_REFUSALS, NoKey)


class ToolKeys:
    """The keys that tools have to hold while they run."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | Client | None = None, **options: Any) -> None:
        self.keys: dict[str, str] = dict(keys)
        self.client = client
        self.options = options

    def lease(self, tool: str, arguments: Mapping[str, Any]) -> AsyncLeaseContext | None:
        """Returns the lease for a call of a tool, or None if the tool needs none."""
        if tool not in self.keys:
            return None
        client: AsyncClient = client_for(self.client, True, tool)
        return client.lease(self._key(tool, arguments), **self._options(tool))

    def blocking(self, tool: str, arguments: Mapping[str, Any]) -> LeaseContext | None:
        """Returns the lease for a call that blocks its thread, or None if the tool needs none."""
        if tool not in self.keys:
            return None
        client: Client = client_for(self.client, False, tool)
        return client.lease(self._key(tool, arguments), **self._options(tool))

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
