"""A bank whose tools are used in two ways: an agent reads a balance, thinks, and writes another one; or it has one tool
that does all of that, and takes some time.

Two agents at once would lose one of the charges. A lease on the account keeps them apart: for the first way it is held
to the end of the agent's run, for the second it is that of the call. With hold="commit" the first way has no lease
while the agent thinks, and a write is refused if the balance may have changed since the agent has read it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from interlock import current_lease

balances = {"7": 100}


async def get_balance(account_id: str) -> str:
    """Reads the balance of an account."""
    return str(balances[account_id])


async def set_balance(account_id: str, balance: int) -> str:
    """Writes the balance of an account."""
    await asyncio.sleep(0.05)
    return write(account_id, balance)


def decide(results: list[str]) -> tuple[str, dict[str, Any]] | str:
    """Returns what the fake models do after the results of their tools: a call of a tool, or an answer."""
    if not results or "Call get_balance again" in results[-1]:
        return "get_balance", {"account_id": "7"}
    if results[-1].isdigit():
        return "set_balance", {"account_id": "7", "balance": int(results[-1]) - 35}
    return results[-1]


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
