"""An agent by the Python SDK: one JSON line per call on standard input, one per answer on standard output.

The arguments are the URL of the server, or the command of a shell that serves the agent, and the agent's name.
"""

import asyncio
import json
import os
import sys

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError


def server_of(target: str, name: str):
    if not target.startswith("http:"):
        return StdioServerParameters(command="sh", args=["-c", target], env=dict(os.environ))
    headers = {"Interlock-Agent": name} if name else {}
    return streamable_http_client(target, http_client=create_mcp_http_client(headers=headers))


async def main(target: str, name: str = "", mode: str = "auto") -> None:
    reports = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        reports.append(done)

    async def answer(client: Client, call: dict) -> dict:
        if "method" in call:
            request = types.Request[dict, str](method=call["method"], params=call["params"])
            await client.session.send_request(request, types.Result)
            return {}
        result = await client.call_tool(
            call["tool"], call["arguments"], progress_callback=progress, meta=call.get("meta")
        )
        return {"error": result.is_error, "structured": result.structured_content, "text": result.content[0].text}

    async with Client(server_of(target, name), mode=mode) as client:
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            reports.clear()
            try:
                got = await answer(client, json.loads(line))
            except MCPError as e:
                got = {"code": e.error.code}
            print(json.dumps({**got, "reports": reports, "revision": client.protocol_version}), flush=True)


asyncio.run(main(*sys.argv[1:]))
