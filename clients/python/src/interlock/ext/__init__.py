"""Leases for the tools of agent frameworks. Each module needs its framework, and nothing else of this package does.

All of them take the keys of tools, by the names of the tools, with arguments in braces:

    Leases({"refund": "account:{account_id}"}, client=client, wait=20)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._async import AsyncClient, AsyncLease, AsyncLeaseContext
from .._guard import _default


class ToolKeys:
    """The keys that tools have to hold while they run."""

    def __init__(self, keys: Mapping[str, str], client: AsyncClient | None = None, **options: Any) -> None:
        self.keys: dict[str, str] = dict(keys)
        self.client = client
        self.options = options

    def lease(self, tool: str, arguments: Mapping[str, Any]) -> AsyncLeaseContext | None:
        """Returns the lease for a call of a tool, or None if the tool needs none."""
        template = self.keys.get(tool)
        if template is None:
            return None
        client: AsyncClient = self.client or _default(True)
        return client.lease(template.format(**arguments), **{"purpose": tool, **self.options})

    async def acquire(self, tool: str, arguments: Mapping[str, Any]) -> AsyncLease | None:
        """Acquires the lease for a call of a tool, where the end of the call is another callback."""
        template = self.keys.get(tool)
        if template is None:
            return None
        client: AsyncClient = self.client or _default(True)
        return await client.acquire(template.format(**arguments), **{"purpose": tool, **self.options})
