"""Addresses, proxies, and servers that are not there."""

from __future__ import annotations

import _thread
import asyncio
import base64
import contextlib
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock import AsyncClient, Client, InterlockError, Refused, Unreachable
from interlock._call import Caller, Servers
from interlock._dial import NotSent, Server, _addresses, connect, parse_server, servers_of
from interlock._threads import _Bounded
from interlock._wire import Broken, Send
from interlock.testing import LocalServer

# Addresses and credentials.


def test_one_rule_for_addresses() -> None:
    for url in ("h:1", "http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", " http://H:1 "):
        assert servers_of(url) == [Server("http", "h", 1)]
    assert [server.port for server in servers_of("http://a:1, ,http://b:2,")] == [1, 2]
    assert [server.port for server in servers_of(["http://a:1\n", ""])] == [1]
    for bad in (
        "http://h/api",
        "http://h/v1/keys",
        "http://h?x",
        "http://h#x",
        "ftp://h",
        "http://",
        "http://h:x",
        "/",
    ):
        with pytest.raises(ValueError, match="address of a server"):
            parse_server(bad)
    for empty in ("", " ", ",", ", ,"):
        with pytest.raises(ValueError, match="no URL of a server"):
            Client(empty)
    for secret in ("http://ann:hunter2@h", "http://:hunter2@h", "http://ann:hunter2@h/api", "ann:hunter2@h:x"):
        with pytest.raises(ValueError) as error:
            parse_server(secret)
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_credential_may_end_with_a_line_break(end: str) -> None:
    caller = Caller(["h:1"], "secret" + end, "acme" + end, None, "a")
    assert caller.headers["Authorization"] == "Bearer secret" and caller.headers["Interlock-Namespace"] == "acme"


@pytest.mark.parametrize("credential", ["xyz uvw", "xyz\nuvw", "\nxyz", "xyz\n\n", "é", "xyz\x00"])
def test_a_credential_that_is_no_line_is_refused(credential: str) -> None:
    with pytest.raises(ValueError, match="the credential has a blank") as error:
        Client("h:1", credential=credential)
    assert credential not in str(error.value)


# Servers that are not there.


@pytest.fixture
def nothing() -> str:
    """An address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def test_a_missing_server_is_told_at_once(nothing: str) -> None:
    """With the way to start one, unless the caller asks to wait."""
    client = Client([nothing, nothing.replace("127.0.0.1", "localhost")])
    for call in (client.status, lambda: client.acquire("k"), lambda: client.effect("t", "x").__enter__()):
        with pytest.raises(Unreachable, match="start one with `interlock serve") as error:
            call()
        assert "refused" in str(error.value).lower()
    client.close()


def test_a_missing_server_is_told_at_once_in_asyncio(nothing: str) -> None:
    async def main() -> None:
        async with AsyncClient(nothing) as client:
            with pytest.raises(Unreachable, match="start one with `interlock serve"):
                async with client.lease("k"):
                    pass

    asyncio.run(main())


def refusals(caller: Caller) -> int:
    """Returns how often a request is sent to servers that refuse connections, until it is given up or pauses."""
    steps = caller.request("getStatus")
    next(steps)
    for count in range(1, 10):
        try:
            effect = steps.throw(NotSent("refused", absent=True))
        except Unreachable:
            return count
        if not hasattr(effect, "target"):
            return 0
    raise AssertionError("it never ends")


def test_a_server_that_was_there_is_waited_for() -> None:
    two = ["h:1", "h:2"]
    assert refusals(Caller(two, None, None, None, "a")) == 2
    assert refusals(Caller(two, None, None, 30.0, "a")) == 0  # asked for
    caller = Caller(two, None, None, None, "a")
    caller.first = False  # one has answered
    assert refusals(caller) == 0


def test_each_server_is_asked_after_a_silent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long wait at a silent server is longer than requests are repeated."""
    clock = [0.0]
    monkeypatch.setattr("interlock._call.now", lambda: clock[0])
    for limit, asked in ((30.0, ["h:1", "h:2", "h:3"] * 2), (0.0, ["h:1"])):
        steps = Caller(["h:1", "h:2", "h:3"], None, None, limit, "a").request("getTicket", {"id": "t"}, wait=55.0)
        effect = next(steps)
        seen: list[str] = []
        with pytest.raises(Unreachable):
            while True:
                if isinstance(effect, Send):
                    seen.append(effect.server.authority)
                    clock[0] += 10.0
                    effect = steps.throw(Broken("no answer"))
                else:
                    effect = steps.send(None)
        assert seen == asked


def test_a_lost_server_is_not_waited_for_when_there_is_another() -> None:
    for urls, limits in ((["h:1"], [5.0] * 4), (["h:1", "h:2"], [1.5, 3.0, 5.0, 5.0])):
        steps = Caller(urls, None, None, 30.0, "a").request("getStatus")
        effect = next(steps)
        seen: list[float] = []
        while len(seen) < len(limits):
            if isinstance(effect, Send):
                seen.append(effect.connect)
                effect = steps.throw(NotSent("no connection"))
            else:
                effect = steps.send(None)
        assert seen == limits


@pytest.fixture
def lost() -> Iterator[str]:
    """An address that answers no attempt to connect: on Linux a listener drops them while its line is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        while True:
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0.3)
            try:
                waiting.connect(listener.getsockname())
            except OSError:  # elsewhere it is refused
                break
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_connection_has_its_own_limit(lost: str, interlock_server: LocalServer) -> None:
    began = time.monotonic()
    with Client([lost, interlock_server.url], retry_for=30.0) as client:
        client.status()

    async def main() -> None:
        async with AsyncClient([lost, interlock_server.url], retry_for=30.0) as client:
            await client.status()

    asyncio.run(main())
    assert time.monotonic() - began < 9  # 5 s each, if it were waited for like the only server


@pytest.fixture
def silent() -> Iterator[tuple[str, threading.Event]]:
    """A server that reads one request, then sets an event and does not answer."""
    asked, over = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            conn, _ = listener.accept()
            with conn:
                conn.recv(1)
                asked.set()
                over.wait()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
        over.set()
        thread.join()


def test_waits_leave_a_silent_server(interlock_server: LocalServer, silent: tuple[str, threading.Event]) -> None:
    """They go on elsewhere when another request has found it silent."""
    url, asked = silent
    with Client([url, interlock_server.url]) as client:
        caller = client._engine.core.caller

        def wait() -> None:
            with pytest.raises(Refused, match="ticket"):
                client._engine.run(caller.request("getTicket", {"id": "t1"}, {"wait_ms": 55_000}, wait=55.0))

        waiter = threading.Thread(target=wait)
        waiter.start()
        assert asked.wait(60)
        caller.servers.failed(0, silent=True)
        waiter.join(30)
        assert not waiter.is_alive()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_tasks_leave_a_silent_server(
    interlock_server: LocalServer, silent: tuple[str, threading.Event], elsewhere: bool
) -> None:
    """Also if a thread has found it silent."""
    url, asked = silent

    async def main() -> None:
        async with AsyncClient([url, interlock_server.url]) as client:
            engine = client._engine
            caller = engine.core.caller
            steps = caller.request("getTicket", {"id": "t1"}, {"wait_ms": 55_000}, wait=55.0)
            waiter = asyncio.create_task(engine.run(steps))
            await asyncio.to_thread(asked.wait, 60)
            if elsewhere:
                await asyncio.to_thread(caller.servers.failed, 0, True)
            else:
                caller.servers.failed(0, silent=True)
            with pytest.raises(Refused, match="ticket"):
                await asyncio.wait_for(waiter, 30)

    asyncio.run(main())


def test_a_worker_waits_for_a_server(interlock_server: LocalServer, nothing: str) -> None:
    """Its first call is no other: a fleet may start before its server."""
    tried = threading.Event()
    with Client(nothing) as client:
        perform = client._engine._perform

        def watched(effect: object) -> object:
            if not hasattr(effect, "target") and type(effect).__name__ == "Pause":
                tried.set()
            return perform(effect)  # type: ignore[arg-type]

        client._engine._perform = watched  # type: ignore[method-assign]
        stop = threading.Event()
        worker = threading.Thread(target=lambda: client.work("pydial", print, stop=stop))
        worker.start()
        assert tried.wait(60)
        stop.set()
        worker.join()


# TLS.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,DNS:server.test", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return key, cert


def relay(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)


class Front:
    """Takes connections, and relays each to an address after a first step of its own. It notes what it has read."""

    def __init__(self, begin: Callable[[Front, socket.socket], tuple[socket.socket, socket.socket] | None]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.begin = begin
        self.heads: list[str] = []
        self.open: list[socket.socket] = []
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(sock,))
            self.threads.append(thread)
            self.open.append(sock)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            pair = self.begin(self, sock)
        except OSError:
            pair = None
        if pair is None:
            sock.close()
            return
        self.open += pair
        back = threading.Thread(target=relay, args=(pair[1], pair[0]))
        back.start()
        relay(*pair)
        back.join()
        for one in pair:
            one.close()

    def head(self, sock: socket.socket) -> bytes:
        """Reads the head of a request, and notes it."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = sock.recv(1 << 16)
            if not more:
                raise OSError
            data += more
        self.heads.append(data.split(b"\r\n\r\n")[0].decode())
        return data

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for sock in list(self.open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in list(self.threads):
            thread.join()
        for sock in self.open:
            sock.close()


def target(server: LocalServer) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)))


@pytest.fixture
def tls(interlock_server: LocalServer, certificate: tuple[Path, Path]) -> Iterator[Front]:
    """The server behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])

    def begin(front: Front, sock: socket.socket) -> tuple[socket.socket, socket.socket]:
        return context.wrap_socket(sock, server_side=True), target(interlock_server)

    front = Front(begin)
    yield front
    front.close()


def trusting(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate[1]))


def test_a_certificate_that_is_not_trusted_is_told_at_once(tls: Front, certificate: tuple[Path, Path]) -> None:
    url = f"https://localhost:{tls.port}"
    with Client(url, retry_for=30) as client, pytest.raises(Unreachable, match="is not trusted") as error:
        client.status()
    assert "ssl_context" in error.value.next_step

    async def main() -> None:
        async with AsyncClient(url, retry_for=30) as client:
            with pytest.raises(Unreachable, match="is not trusted"):
                await client.status()
        async with AsyncClient(url, ssl_context=trusting(certificate)) as client:
            assert (await client.status())["version"]

    asyncio.run(main())
    with Client(url, ssl_context=trusting(certificate)) as client:
        assert client.status()["version"]


def test_a_server_without_tls_is_told_at_once(interlock_server: LocalServer) -> None:
    url = interlock_server.url.replace("http:", "https:")
    with Client(url, retry_for=30) as client, pytest.raises(Unreachable, match="use an address with http"):
        client.status()


def test_a_handshake_has_one_deadline() -> None:
    """Also with a server that says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = Server("https", "127.0.0.1", silent.getsockname()[1])
        began = time.monotonic()
        with pytest.raises(NotSent, match="timed out"):
            connect(server, ssl.create_default_context(), time.monotonic() + 0.2)
        assert time.monotonic() >= began + 0.15


def test_a_name_has_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a name server that says nothing."""
    silent = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args: silent.wait())
    with pytest.raises(NotSent, match="no name server has told the address of server"):
        connect(Server("http", "server.test", 1), None, time.monotonic() + 0.05)
    silent.set()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_an_address_needs_no_name_server(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that begins late on a busy machine is no silent name server."""
    monkeypatch.setattr(_thread, "start_new_thread", lambda *args: pytest.fail("a name server is asked"))
    assert _addresses(host, 7420, time.monotonic())[0][4][:2] == (host, 7420)


def test_a_request_has_one_deadline() -> None:
    """Also one whose parts are taken slowly."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        exchange = _Bounded(ours, 0.2)
        with pytest.raises(TimeoutError):
            exchange.send(b"x" * (1 << 26))


# Proxies.


class Proxied:
    """A proxy of HTTP before the server, which it finds whatever name is asked for."""

    def __init__(self, to: Callable[[], socket.socket], user: str = "", status: str = "200 OK") -> None:
        self.to, self.user, self.status = to, user, status
        self.front = Front(self._begin)
        self.url = f"http://127.0.0.1:{self.front.port}"

    def _begin(self, front: Front, sock: socket.socket) -> tuple[socket.socket, socket.socket] | None:
        data = front.head(sock)
        head = front.heads[-1]
        expected = "Basic " + base64.b64encode(self.user.encode()).decode()
        if self.user and f"Proxy-Authorization: {expected}" not in head:
            sock.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno")
            return None
        other = self.to()
        if head.startswith("CONNECT"):
            sock.sendall(f"HTTP/1.1 {self.status}\r\n\r\n".encode())
            if not self.status.startswith("200"):
                other.close()
                return None
        else:
            method, absolute, rest = data.split(b" ", 2)
            other.sendall(method + b" /" + absolute.split(b"/", 3)[3] + b" " + rest)
        return sock, other


@pytest.fixture
def proxy(interlock_server: LocalServer) -> Iterator[Proxied]:
    made = Proxied(lambda: target(interlock_server))
    yield made
    made.front.close()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)

    def set_to(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return set_to


def proxy_of(url: str, proxy: str | None = None) -> str | None:
    found = parse_server(url, proxy).proxy
    return None if found is None else found.url


def test_which_proxy(environment: Callable[..., None]) -> None:
    environment(
        HTTP_PROXY="http://p:1", https_proxy="p:2", NO_PROXY="a.test, .b.test,*.c.test,d.test:81,10.0.0.0/8,[::2]"
    )
    assert proxy_of("http://x.test") == "http://p:1" and proxy_of("https://x.test") == "http://p:2"
    for direct in ("localhost", "app.localhost", "127.0.0.1", "127.1.2.3", "[::1]", "a.test", "y.a.test", "b.test"):
        assert proxy_of(f"http://{direct}:80") is None, direct
    for direct in ("y.b.test:80", "y.c.test:80", "d.test:81", "10.1.2.3:80", "[::2]:80"):
        assert proxy_of(f"http://{direct}") is None, direct
    for through in ("xa.test", "d.test:82", "11.0.0.1", "[::3]", "test"):
        assert proxy_of(f"http://{through}") == "http://p:1", through
    assert proxy_of("http://127.0.0.1:1", "q:3") == "http://q:3"  # asked for
    assert proxy_of("http://x.test", "") is None
    environment(NO_PROXY="*")
    assert proxy_of("http://x.test") is None


def test_a_proxy_for_all(environment: Callable[..., None]) -> None:
    environment(ALL_PROXY="http://ann:p%40ss@p:1")
    for url in ("http://x.test", "https://x.test"):
        found = parse_server(url, None).proxy
        assert found is not None and found.url == "http://p:1"
        assert found.authorization == "Basic " + base64.b64encode(b"ann:p@ss").decode()
        assert "ann" not in repr(found) and "Basic" not in repr(found)
    assert Servers(["http://x.test"], None).follow("http://x.test:80")


@pytest.mark.parametrize("bad", ["socks5://ann:hunter2@p:1", "https://p:1", "http://", "p:x"])
def test_a_proxy_of_another_kind_is_told(environment: Callable[..., None], bad: str) -> None:
    environment(ALL_PROXY=bad)
    with pytest.raises(ValueError, match="proxy") as error:
        Client("http://x.test")
    assert "hunter2" not in str(error.value)
    Client("http://localhost:1").close()  # which needs none


def turns(url: str, key: str, proxy: str | None, context: ssl.SSLContext | None) -> None:
    """Uses a client of each kind: requests, a wait and a watch."""
    with Client(url, proxy=proxy, ssl_context=context) as client, client.lease(key, wait=5) as lease:
        lease.renew()
        before = lease.commit([{"key": key, "put": 1}])["at"]["index"]
        lease.commit([{"key": key, "put": 2}])
        watched = client.watch(key, start=before)
        assert next(watched)["key"] == key
        watched.close()

    async def main() -> None:
        async with AsyncClient(url, proxy=proxy, ssl_context=context) as client:
            async with client.lease(key, wait=5) as lease:
                await lease.renew()
            watched = client.watch(key, start=before)
            assert (await watched.__anext__())["key"] == key
            await watched.aclose()

    asyncio.run(main())


def test_http_through_a_proxy(proxy: Proxied, key: str) -> None:
    turns("http://localhost:7420", key, proxy.url, None)
    assert proxy.front.heads[0].startswith("POST http://localhost:7420/v1/sessions HTTP/1.1\r\nHost: localhost:7420")


def test_https_through_a_proxy(tls: Front, certificate: tuple[Path, Path], key: str) -> None:
    proxy = Proxied(lambda: socket.create_connection(("127.0.0.1", tls.port)), user="ann:p@ss")
    try:
        turns("https://localhost", key, proxy.url.replace("//", "//ann:p%40ss@"), trusting(certificate))
    finally:
        proxy.front.close()
    assert len(proxy.front.heads) > 3
    assert all(head.startswith("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443") for head in proxy.front.heads)


def errors_of(url: str, proxy: str) -> list[InterlockError]:
    """Returns the errors of both kinds of clients."""
    errors: list[InterlockError] = []
    with Client(url, proxy=proxy) as client, pytest.raises(Unreachable) as error:
        client.status()
    errors.append(error.value)

    async def main() -> None:
        async with AsyncClient(url, proxy=proxy) as client:
            with pytest.raises(Unreachable) as error:
                await client.status()
            errors.append(error.value)

    asyncio.run(main())
    return errors


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_wants_credentials_is_told_at_once(interlock_server: LocalServer, scheme: str) -> None:
    proxy = Proxied(lambda: target(interlock_server), user="ann:secret")
    try:
        for error in errors_of(f"{scheme}://server.test", proxy.url):
            assert f"the proxy {proxy.url} asks for credentials" in str(error) and "user and password" in str(error)
        for error in errors_of(f"{scheme}://server.test", proxy.url.replace("//", "//ann:wrong@")):
            assert "does not take the credentials" in str(error) and "wrong" not in str(error)
    finally:
        proxy.front.close()


def test_a_proxy_that_is_not_there_is_told_at_once(nothing: str) -> None:
    for error in errors_of("https://server.test", nothing):
        assert f"by the proxy {nothing}" in str(error)


def test_a_proxy_that_does_not_connect_is_told(interlock_server: LocalServer) -> None:
    proxy = Proxied(lambda: target(interlock_server), status="503 Service Unavailable")
    try:
        with Client("https://server.test", proxy=proxy.url, retry_for=0) as client, pytest.raises(Unreachable) as error:
            client.status()
        assert "does not connect to server.test:443: 503 Service Unavailable" in str(error.value)
    finally:
        proxy.front.close()
