"""HTTP/1.1 over the streams of asyncio: as much of it as a client of one API needs."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from typing import Any

from ._dial import NotSent, Server, reach, refused
from ._wire import Broken, Reply, Send

#: How many idle connections are kept. Those that were used last are used first, so the server ends the others.
IDLE = 64
#: The longest line of a head, in bytes.
LINE = 1 << 16


class Connection:
    """One connection to a server. A request that fails, or is cancelled, ends it."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.reader = reader
        self.writer = writer
        self.chunked = False
        self.rest = bytearray()  # of an answer that is read line by line

    def fresh(self) -> bool:
        """Reports whether it is open, and has nothing that was not asked for."""
        return not self.reader.at_eof() and not self.writer.is_closing()

    def abort(self) -> None:
        """Ends it at once."""
        try:
            self.writer.transport.abort()
        except RuntimeError:
            pass  # its event loop has ended, and so has it

    async def exchange(self, send: Send, end: float) -> tuple[Reply, bool]:
        """Sends a request, and returns its answer, and whether the connection can be used again.

        end is the moment of the event loop until which the answer has to be whole.
        """
        late = asyncio.get_running_loop().call_at(end, self.abort)
        usable = False
        try:
            self.writer.write(head(send) + send.body)
            await self.writer.drain()
            reply, usable = await self._answer()
            return reply, usable
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise Broken(f"{send.server.url}: {error or type(error).__name__}") from error
        finally:
            late.cancel()
            if not usable:
                self.abort()

    async def open(self, send: Send) -> Reply:
        """Sends a request whose answer is read line by line. An answer without success is read whole."""
        late = asyncio.get_running_loop().call_later(send.timeout, self.abort)
        try:
            self.writer.write(head(send))
            await self.writer.drain()
            _, status = _status(await self._line())
            headers = await self._headers()
            self.chunked = headers.get("transfer-encoding", "").lower() == "chunked"
            body = b""
            if status != 200:
                body = await (
                    self._chunks() if self.chunked else self.reader.read(int(headers.get("content-length", -1)))
                )
            return Reply(status, headers, body)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise Broken(f"{send.server.url}: {error or type(error).__name__}") from error
        finally:
            late.cancel()

    async def line(self, silent: float) -> str:
        """Returns the next line of an open answer; nothing at its end."""
        late = asyncio.get_running_loop().call_later(silent, self.abort)
        try:
            while b"\n" not in self.rest:
                if self.chunked:
                    size = int((await self._line()).split(";")[0], 16)
                    more = await self.reader.readexactly(size)
                    await self._line()
                else:
                    more = await self.reader.read(LINE)
                if not more:
                    return ""
                self.rest += more
            line, _, rest = bytes(self.rest).partition(b"\n")
            self.rest = bytearray(rest)
            return line.decode() + "\n"
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise Broken(f"the stream broke: {error or type(error).__name__}") from error
        finally:
            late.cancel()

    async def _answer(self) -> tuple[Reply, bool]:
        while True:
            version, status = _status(await self._line())
            headers = await self._headers()
            if status >= 200 or status == 101:
                break
        usable = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        if status in (204, 304):
            return Reply(status, headers, b""), usable
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return Reply(status, headers, await self._chunks()), usable
        if "content-length" in headers:
            return Reply(status, headers, await self.reader.readexactly(int(headers["content-length"]))), usable
        return Reply(status, headers, await self.reader.read()), False

    async def _line(self) -> str:
        line = await self.reader.readuntil(b"\n")
        return line.decode("latin-1").rstrip("\r\n")

    async def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        while line := await self._line():
            name, colon, value = line.partition(":")
            if not colon:
                raise ValueError("a line of the head has no colon")
            headers[name.strip().lower()] = value.strip()
        return headers

    async def _chunks(self) -> bytes:
        body = bytearray()
        while size := int((await self._line()).split(";")[0], 16):
            body += await self.reader.readexactly(size)
            await self._line()
        await self._headers()  # the trailer
        return bytes(body)


def head(send: Send) -> bytes:
    """Returns the head of a request."""
    server = send.server
    target = server.url + send.target if server.forwarded else send.target
    lines = [f"{send.method} {target} HTTP/1.1", f"Host: {server.authority}"]
    if server.forwarded and server.proxy is not None and server.proxy.authorization:
        lines.append(f"Proxy-Authorization: {server.proxy.authorization}")
    lines += [f"{name}: {value}" for name, value in send.headers.items()]
    if send.body or send.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(send.body)}")
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("the request has a line break where none may be")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _status(line: str) -> tuple[str, int]:
    version, _, rest = line.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(f"this is no answer of HTTP/1.1: {line[:40]!r}")
    return version, int(rest[:3])


class Connections:
    """Connections that are kept open between requests."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.context = context
        self.idle: list[Connection] = []
        self.waiting: set[Connection] = set()  # for something that may take long
        self.closed = False

    async def send(self, send: Send) -> Reply:
        """Carries out a request on an idle connection, or on a new one."""
        end = asyncio.get_running_loop().time() + send.timeout
        conn = self._take(send.server) or await self.connect(send)
        if send.poll:
            self.waiting.add(conn)
        try:
            reply, usable = await conn.exchange(send, end)
        finally:
            self.waiting.discard(conn)
        if usable and not self.closed and len(self.idle) < IDLE:
            self.idle.append(conn)
        else:
            conn.abort()
        return reply

    def _take(self, server: Server) -> Connection | None:
        for i in range(len(self.idle) - 1, -1, -1):
            if self.idle[i].server == server:
                conn = self.idle.pop(i)
                if conn.fresh():
                    return conn
                conn.abort()
        return None

    async def connect(self, send: Send) -> Connection:
        """Returns a new connection."""
        server = send.server
        opening = asyncio.ensure_future(self._open(server, min(send.connect, send.timeout)))
        try:
            # Unlike wait_for of Python 3.10 and 3.11, this never swallows a cancellation.
            await asyncio.wait({opening}, timeout=min(send.connect, send.timeout))
            if not opening.done():
                raise NotSent(f"{server.url}: no connection within {min(send.connect, send.timeout):g} s")
            reader, writer = opening.result()
        except OSError as error:
            raise refused(server, error) from error
        except BaseException:
            opening.add_done_callback(_discard)
            opening.cancel()
            raise
        return Connection(server, reader, writer)

    async def _open(self, server: Server, seconds: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        tls: dict[str, Any] = {}
        if server.scheme == "https":
            tls = {"ssl": self.context or ssl.create_default_context(), "server_hostname": server.host}
        if server.proxy is None:
            return await asyncio.open_connection(server.host, server.port, limit=LINE, **tls)
        loop = asyncio.get_running_loop()
        reaching = loop.run_in_executor(None, reach, server, time.monotonic() + seconds)
        try:
            sock = await asyncio.shield(reaching)
        except asyncio.CancelledError:
            reaching.add_done_callback(_drop)
            raise
        sock.setblocking(False)
        try:
            return await asyncio.open_connection(sock=sock, limit=LINE, **tls)
        except BaseException:
            sock.close()
            raise

    def close(self) -> None:
        """Ends all idle connections, and those that wait."""
        self.closed = True
        self.drop_all()

    def drop_all(self) -> None:
        """Ends them, and lets others be made."""
        idle, self.idle = self.idle, []
        for conn in [*idle, *self.waiting]:
            conn.abort()

    def leave(self, server: Server) -> None:
        """Ends those that wait at a server."""
        for conn in [*self.waiting]:
            if conn.server == server:
                conn.abort()

    def drop(self, conn: Connection) -> None:
        """Ends a connection that waits."""
        self.waiting.discard(conn)
        conn.abort()


def _drop(reaching: asyncio.Future[socket.socket]) -> None:
    """Ends a connection to a proxy that came too late."""
    if not reaching.cancelled() and reaching.exception() is None:
        reaching.result().close()


def _discard(opening: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
    """Ends a connection that came too late."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result()[1].transport.abort()
