"""An agent by the Python SDK: one JSON line per call on standard input, one per answer on standard output."""

import asyncio
import json
import sys

import mcp
from mcp.client.client import Client


async def main(url: str) -> None:
    reports = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        reports.append(done)

    async with Client(url) as client:
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            call = json.loads(line)
            reports.clear()
            result = await client.call_tool(call["tool"], call["arguments"], progress_callback=progress)
            answer = {"error": result.is_error, "structured": result.structured_content, "text": result.content[0].text}
            print(json.dumps({**answer, "reports": reports, "revision": client.protocol_version}), flush=True)


asyncio.run(main(sys.argv[1]))
