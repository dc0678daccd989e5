"""A bank in which a charge has two steps: it reads the balance, and some time later writes what is left of it.

Two charges at once would lose one of them. A lease on the account keeps them apart.
"""

from __future__ import annotations

import asyncio
import time

from interlock import current_lease

balances = {"7": 100}


async def charge(account_id: str, amount: int) -> str:
    """Charges a fee to an account."""
    balance = balances[account_id]
    await asyncio.sleep(0.05)
    return write(account_id, balance - amount)


def charge_blocking(account_id: str, amount: int) -> str:
    """Charges a fee to an account, in a thread."""
    balance = balances[account_id]
    time.sleep(0.05)
    return write(account_id, balance - amount)


def write(account_id: str, balance: int) -> str:
    """Writes a balance. A real bank would get the fence with it, and refuse a lower one than it has seen."""
    balances[account_id] = balance
    return f"{balance} left, under fence {current_lease().fence}"
