"""The session of the command around this process: `interlock run` or `interlock task work`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ._core import Core
from ._dial import Server, servers_of
from ._scope import command

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def enclose(core: Core, agent: str | None, join: bool, environment: Mapping[str, str] = os.environ) -> None:
    """Tells a client of the command around this process, if it is one of the same server and namespace.

    The client joins the command's session, unless it is to be another agent.
    """
    session, flow = environment.get("INTERLOCK_SESSION", ""), environment.get("INTERLOCK_FLOW", "")
    caller = core.caller
    if not re.fullmatch("s_[0-9a-f]{32}", session) or not flow:
        return
    if caller.namespace != (environment.get("INTERLOCK_NAMESPACE") or "default"):
        return
    try:
        servers = {_place(server) for server in servers_of(environment.get("INTERLOCK_URL", ""), "")}
    except ValueError:
        return
    if servers.isdisjoint(_place(server) for server in caller.servers.all):
        return
    if join and agent in (None, environment.get("INTERLOCK_AGENT") or agent):
        core.joined = session
    keys = [key for key in environment.get("INTERLOCK_KEYS", "").split("\n") if key]
    fence = environment.get("INTERLOCK_FENCE", "")
    core.command = command(keys, fence, flow, core if core.joined else None)


def _place(server: Server) -> tuple[str, int]:
    return "loopback" if server.host in _LOOPBACK else server.host, server.port
