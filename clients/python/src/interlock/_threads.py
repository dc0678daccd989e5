"""The shell for threads: blocking sockets, and one thread that keeps the leases of a client alive."""

from __future__ import annotations

import http.client
import io
import itertools
import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import closing
from types import TracebackType
from typing import Any, TypeVar

from . import _life
from ._call import Caller
from ._core import Core
from ._dial import connect
from ._errors import Cancelled, Closed, ForkedError
from ._flag import Flag
from ._http1 import head
from ._types import Written
from ._watch import SILENT, Emit, Line, Open, WatchEffect
from ._wire import Broken, Effect, Idle, Pause, Reply, Send, Server, Steps

T = TypeVar("T")

#: How many idle connections are kept. Those that were used last are used first, so the server ends the others.
IDLE = 64

#: How much of a request is sent at once, in bytes.
PART = 1 << 18

_local = threading.local()
_numbers = itertools.count(1)


def thread_flow() -> str:
    """Returns the flow of this thread. A number of its own: identifiers of threads are used again."""
    name: str | None = getattr(_local, "flow", None)
    if name is None:
        name = _local.flow = f"thread-{next(_numbers)}"
    return name


class CancelToken:
    """Cancels what a thread waits for, from another thread.

    In the body of `with token:` every call of this thread is broken off by token.cancel(), with the error Cancelled.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a handler of a signal may interrupt what it guards
        self._sockets: set[socket.socket] = set()
        self._event = Flag()

    def cancel(self) -> None:
        """Breaks off what is under way, and what is begun later."""
        self._event.set()
        with self._lock:
            for sock in list(self._sockets):
                _shut(sock)

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._event.is_set()

    def __enter__(self) -> CancelToken:
        self._outer: CancelToken | None = getattr(_local, "token", None)
        _local.token = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _local.token = self._outer

    def _add(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.add(sock)
        if self.cancelled:
            _shut(sock)

    def _remove(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(sock)


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is closed already


class Pool:
    """Connections that are kept open between requests. It has no lock, which a handler of a signal might wait for."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.context = context
        self.idle: dict[Server, deque[http.client.HTTPConnection]] = {}
        self.closed = False

    def take(self, server: Server) -> http.client.HTTPConnection:
        idle = self.idle.setdefault(server, deque())
        while True:
            try:
                found = idle.pop()
            except IndexError:
                return self.make(server)
            if _fresh(found):
                return found
            found.close()

    def make(self, server: Server) -> http.client.HTTPConnection:
        """Returns a connection that is not made yet."""
        return http.client.HTTPConnection(server.host, server.port)

    def connected(self, conn: http.client.HTTPConnection, server: Server, seconds: float) -> socket.socket:
        """Makes the connection within so many seconds, if there is none, and returns its socket."""
        held: Any = conn
        if held.sock is None:
            held.sock = connect(server, self.context, time.monotonic() + seconds)
        sock: socket.socket = held.sock
        return sock

    def put(self, server: Server, conn: http.client.HTTPConnection) -> None:
        idle = self.idle.setdefault(server, deque())
        if len(idle) >= IDLE:
            conn.close()
            return
        idle.append(conn)
        if self.closed:
            self.drop()

    def close(self) -> None:
        self.closed = True
        self.drop()

    def drop(self) -> None:
        """Ends the idle connections."""
        for idle in list(self.idle.values()):
            while idle:
                try:
                    idle.pop().close()
                except IndexError:
                    break  # another thread has taken it


def _fresh(conn: http.client.HTTPConnection) -> bool:
    """Reports whether an idle connection is still open: an answer without a request ends it."""
    if conn.sock is None:
        return False
    try:
        poll = select.poll()
        poll.register(conn.sock, select.POLLIN)
        return not poll.poll(0)
    except AttributeError:  # Windows has no poll
        return not select.select([conn.sock], [], [], 0)[0]


class Engine:
    """Carries out steps with blocking calls. It outlives its client by its keeper's last step only."""

    def __init__(
        self, caller: Caller, session_ttl: float | None, context: ssl.SSLContext | None, core: Core | None = None
    ) -> None:
        self.pool = Pool(context)
        self.woken = Flag()
        self.keeping = threading.Lock()  # taken for good by the thread that keeps
        self.keeper: threading.Thread | None = None
        self.parting = CancelToken()  # it breaks off what the keeper waits for
        self.ending = CancelToken()  # it breaks off the waits of all threads, when the client is closed
        self.waits: dict[Server, CancelToken] = {}  # each breaks off those at a server
        self.core = core or Core(caller, session_ttl, self.wake)
        caller.servers.leavers.append(self._leave)
        if core is None:
            _life.add(self)

    def wake(self) -> None:
        """Has the keeper look again. The first call starts it."""
        self.woken.set()
        if self.keeper is None and not self.core.closed:
            # An interrupt may end this call anywhere: so the thread itself says that it keeps.
            threading.Thread(target=self._keep, name="interlock-keeper", daemon=True).start()

    def _keep(self) -> None:
        if not self.keeping.acquire(blocking=False):
            return
        self.keeper = threading.current_thread()
        with self.parting:
            self.run(self.core.keep())

    def run(self, steps: Steps[T]) -> T:
        """Carries out steps, and returns their result."""
        value: object = None
        thrown: BaseException | None = None
        while True:
            try:
                effect = _next(steps, value, thrown)
            except StopIteration as stop:
                result: T = stop.value
                return result
            value, thrown = None, None
            try:
                value = self._perform(effect)
            except BaseException as error:  # the steps decide, and clean up
                thrown = error

    def _perform(self, effect: Effect) -> object:
        if self.core.forked:
            raise ForkedError
        if isinstance(effect, Send):
            return self._send(effect)
        if isinstance(effect, Idle):
            self.woken.wait(effect.seconds)
            self.woken.clear()
        elif isinstance(effect, Pause):
            token: CancelToken | None = getattr(_local, "token", None)
            if (token or self.ending)._event.wait(effect.seconds):
                raise Closed if token is None else Cancelled
        return None

    def _leave(self, server: Server) -> None:
        if token := self.waits.pop(server, None):
            token.cancel()

    def _send(self, send: Send) -> Reply:
        token: CancelToken | None = getattr(_local, "token", None)
        if token is not None and token.cancelled:
            raise Cancelled
        end = time.monotonic() + send.timeout
        conn = self.pool.take(send.server)
        usable = False
        try:
            sock = self.pool.connected(conn, send.server, min(send.connect, send.timeout))
            bounded: Any = _Bounded(sock, end - time.monotonic())
            tokens = [] if token is None else [token]
            if send.poll:
                tokens += [self.ending, self.waits.setdefault(send.server, CancelToken())]
            for one in tokens:
                one._add(sock)
            try:
                bounded.send(head(send) + send.body)
                with closing(http.client.HTTPResponse(bounded, method=send.method)) as answer:
                    answer.begin()
                    body = answer.read()
            except (OSError, http.client.HTTPException) as error:
                raise _broken(send, error) from error
            finally:
                for one in tokens:
                    one._remove(sock)
            usable = not answer.will_close
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, headers, body)
        finally:
            if usable:
                self.pool.put(send.server, conn)
            else:
                conn.close()

    def follow(self, steps: Generator[WatchEffect, object, None]) -> Generator[Written, None, None]:
        """Carries out the steps of a watch, and yields its writes."""
        stream = _Stream(self.pool, self.ending)
        value: object = None
        thrown: BaseException | None = None
        try:
            while True:
                try:
                    effect = steps.send(value) if thrown is None else steps.throw(thrown)
                except StopIteration:  # the client is closed
                    return
                value, thrown = None, None
                if isinstance(effect, Emit):
                    yield effect.write
                    continue
                try:
                    self.core.usable()
                    if isinstance(effect, Open):
                        value = stream.open(effect.send)
                    elif isinstance(effect, Line):
                        value = stream.line()
                    else:
                        value = self._perform(effect)
                except BaseException as error:
                    thrown = error
        finally:
            stream.close()
            steps.close()

    def close(self) -> None:
        """Ends the session, the keeper and the connections."""
        if self.core.forked:
            return
        try:
            if not self.core.closed:
                self.run(self.core.close())
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Ends the keeper and the connections. The leases run out, if the session was not ended."""
        self.core.closed = True
        self.woken.set()
        self.parting.cancel()
        self.ending.cancel()
        keeper = self.keeper
        if keeper is not None and keeper is not threading.current_thread():
            keeper.join(15.0)
        self.pool.close()
        _life.remove(self)

    def forked(self) -> None:
        """Detaches the engine in the child of a fork: all of it belongs to the parent."""
        self.core.forked = self.core.closed = True
        self.core.mutex = threading.RLock()
        self.pool.drop()


class _Bounded(io.RawIOBase):
    """An exchange that has to be over in time: the timeout of a socket is that of each read."""

    def __init__(self, sock: socket.socket, seconds: float) -> None:
        self.sock = sock
        self.end = time.monotonic() + seconds

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def send(self, data: bytes) -> None:
        """Sends a request. sendall of a connection with TLS has its timeout for each part."""
        left = memoryview(data)
        while left:
            self._limit()
            left = left[self.sock.send(left[:PART]) :]

    def _limit(self) -> None:
        seconds = self.end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        self.sock.settimeout(seconds)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._limit()
        return self.sock.recv_into(buffer)


class _Stream:
    """An answer that is read line by line, on a connection of its own."""

    def __init__(self, pool: Pool, ending: CancelToken) -> None:
        self.pool = pool
        self.ending = ending
        self.conn: http.client.HTTPConnection | None = None
        self.answer: http.client.HTTPResponse | None = None
        self.sock: socket.socket | None = None
        self.bounded: _Bounded | None = None

    def open(self, send: Send) -> Reply:
        self.close()
        self.conn = conn = self.pool.make(send.server)
        token: CancelToken | None = getattr(_local, "token", None)
        self.sock = sock = self.pool.connected(conn, send.server, min(send.connect, send.timeout))
        bounded: Any = _Bounded(sock, send.timeout)
        self.bounded = bounded
        self.ending._add(sock)
        if token is not None:
            token._add(sock)
        try:
            bounded.send(head(send))
            self.answer = answer = http.client.HTTPResponse(bounded, method=send.method)
            answer.begin()
            body = b"" if answer.status == 200 else answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise _broken(send, error) from error
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)

    def line(self) -> str:
        if self.answer is None or self.bounded is None:
            return ""
        self.bounded.end = time.monotonic() + SILENT
        try:
            return self.answer.readline().decode()
        except (OSError, ValueError, http.client.HTTPException) as error:
            token: CancelToken | None = getattr(_local, "token", None)
            if token is not None and token.cancelled:
                raise Cancelled from None
            raise Broken(f"the stream broke: {error or type(error).__name__}") from error

    def close(self) -> None:
        answer, self.answer = self.answer, None
        conn, self.conn = self.conn, None
        if self.sock is not None:
            self.ending._remove(self.sock)
        if answer is not None:
            answer.close()
        if conn is not None:
            conn.close()


def _broken(send: Send, error: Exception) -> Exception:
    """Returns the failure of a request that was sent."""
    token: CancelToken | None = getattr(_local, "token", None)
    if token is not None and token.cancelled:
        return Cancelled()
    return Broken(f"{send.server.url}: {error or type(error).__name__}")


def _next(steps: Generator[Effect, object, T], value: object, thrown: BaseException | None) -> Effect:
    return steps.send(value) if thrown is None else steps.throw(thrown)
