"""The client of Interlock: leases, queues and fencing tokens for agents that share things.

from interlock import Client

with Client(agent="billing-7") as client:
    with client.lease("account:12345", purpose="late fee", wait=30) as lease:
        write(fence=lease.fence)
"""

from __future__ import annotations

from ._async import AsyncClient, AsyncJob, AsyncLease, AsyncLeaseContext
from ._errors import (
    Cancelled,
    Closed,
    Deadlock,
    EffectTaken,
    ForkedError,
    Held,
    InterlockError,
    LeaseLost,
    OtherLoop,
    OutcomeUnknown,
    Refused,
    Stale,
    Unreachable,
    WaitTimeout,
)
from ._guard import ToolReport, current_lease, guarded
from ._ops import add, delete, merge, put, seen
from ._sync import CancelToken, Client, EffectClaim, Job, Lease, LeaseContext

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncJob",
    "AsyncLease",
    "AsyncLeaseContext",
    "CancelToken",
    "Cancelled",
    "Client",
    "Closed",
    "Deadlock",
    "EffectClaim",
    "EffectTaken",
    "ForkedError",
    "Held",
    "InterlockError",
    "Job",
    "Lease",
    "LeaseContext",
    "LeaseLost",
    "OtherLoop",
    "OutcomeUnknown",
    "Refused",
    "Stale",
    "ToolReport",
    "Unreachable",
    "WaitTimeout",
    "add",
    "current_lease",
    "delete",
    "guarded",
    "merge",
    "put",
    "seen",
]
