"""The addresses of servers and proxies, and how a connection is made: directly, or through a proxy of HTTP."""

from __future__ import annotations

import _thread
import base64
import ipaddress
import socket
import ssl
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment

from ._flag import Flag

#: The longest answer of a proxy to CONNECT, in bytes.
MOST_HEAD = 1 << 16


@dataclass(frozen=True)
class Proxy:
    """A proxy of HTTP."""

    host: str
    port: int
    #: The value of Proxy-Authorization, if its address has a user.
    authorization: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """Its address, without credentials."""
        return f"http://{_bracketed(self.host)}:{self.port}"


@dataclass(frozen=True)
class Server:
    """One address."""

    scheme: str
    host: str
    port: int
    proxy: Proxy | None = field(default=None, compare=False)

    @property
    def authority(self) -> str:
        return f"{_bracketed(self.host)}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def forwarded(self) -> bool:
        """Whether a proxy reads the requests, and makes them in turn."""
        return self.proxy is not None and self.scheme == "http"


class NotSent(Exception):
    """No server got the request."""

    def __init__(self, message: str, absent: bool = False, final: str = "") -> None:
        super().__init__(message)
        #: Nothing listens at the address.
        self.absent = absent
        #: What a caller can do about it, if no repetition mends it.
        self.final = final


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _shown(url: str) -> str:
    """Returns a URL as an error may show it: it may have a password."""
    scheme, mark, rest = url.rpartition("://")
    _, at, host = rest.rpartition("@")
    return repr(f"{scheme}{mark}...@{host}" if at else url)


def parse_server(url: str, proxy: str | None = "") -> Server:
    """Returns the server of a URL; without a scheme it is http. The path of the API may stand in it, and no other.

    proxy is the address of the one to use; None: what the environment says.
    """
    try:
        parts = urlsplit(url if "://" in url else "http://" + url)
        port = parts.port
    except ValueError:
        raise ValueError(
            f"{_shown(url)} is no address of a server: it should look like http://127.0.0.1:7420"
        ) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{_shown(url)} is no address of a server: it should look like http://127.0.0.1:7420")
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"{_shown(url)} has a user or a password: leave them out, and pass credential")
    server = Server(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80))
    if parts.path.rstrip("/") not in ("", "/v1") or parts.query or parts.fragment:
        raise ValueError(f"{_shown(url)} has more than the address of a server: leave out what follows {server.url}")
    return Server(server.scheme, server.host, server.port, _proxy_for(server, proxy))


def servers_of(text: str | list[str], proxy: str | None = "") -> list[Server]:
    """Returns the servers of a list of URLs. A comma at its end, or two, are none."""
    urls = [one.strip() for one in (text.split(",") if isinstance(text, str) else text)]
    return [parse_server(url, proxy) for url in urls if url]


def _proxy_for(server: Server, proxy: str | None) -> Proxy | None:
    if proxy is not None:
        return _parse_proxy(proxy) if proxy else None
    if _is_loopback(server.host):
        return None
    found = getproxies_environment()
    text = found.get(server.scheme) or found.get("all")
    if not text or _bypasses(server, found.get("no", "")):
        return None
    return _parse_proxy(text)


def _parse_proxy(text: str) -> Proxy:
    try:
        parts = urlsplit(text if "://" in text else "http://" + text)
        port = parts.port or 80
    except ValueError:
        raise ValueError(
            f"{_shown(text)} is no address of a proxy: it should look like http://127.0.0.1:3128"
        ) from None
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(
            f"{_shown(text)} is no proxy of this client: it should look like http://127.0.0.1:3128 "
            '(set NO_PROXY, or pass proxy="", to do without)'
        )
    authorization = ""
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(user.encode()).decode()
    return Proxy(parts.hostname, port, authorization)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _bypasses(server: Server, entries: str) -> bool:
    """Reports whether NO_PROXY has the server: by its name, the end of it, its address, or a network."""
    for entry in entries.replace(",", " ").lower().split():
        name, colon, port = entry.rpartition(":")
        if colon and port.isdigit() and "]" not in port and (":" not in name or name.endswith("]")):
            if int(port) != server.port:
                continue
            entry = name
        entry = entry.strip("[]").removeprefix("*.").lstrip(".")
        if entry == "*" or server.host == entry or server.host.endswith("." + entry):
            return True
        try:
            if ipaddress.ip_address(server.host) in ipaddress.ip_network(entry, strict=False):
                return True
        except ValueError:
            continue
    return False


def refused(server: Server, error: OSError) -> NotSent:
    """Returns the failure of a connection."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return NotSent(
            f"the certificate of {server.url} is not trusted ({error.verify_message})",
            final="pass an ssl_context that trusts it, or set SSL_CERT_FILE",
        )
    if isinstance(error, ssl.SSLError) and error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return NotSent(f"what answers at {server.url} does not speak TLS", final="use an address with http")
    place = server.url if server.proxy is None else f"{server.url}, by the proxy {server.proxy.url}"
    absent = isinstance(error, ConnectionRefusedError)
    absent = absent or (isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME)
    return NotSent(f"{place}: {error or type(error).__name__}", absent)


def connect(server: Server, context: ssl.SSLContext | None, end: float) -> socket.socket:
    """Returns a connection that is made until a moment of time.monotonic(). The error is NotSent."""
    try:
        sock = reach(server, end)
        try:
            if server.scheme == "https":
                sock.settimeout(_left(end))
                sock = (context or ssl.create_default_context()).wrap_socket(sock, server_hostname=server.host)
        except BaseException:
            sock.close()
            raise
    except OSError as error:
        raise refused(server, error) from error
    return sock


def reach(server: Server, end: float) -> socket.socket:
    """Returns a connection to a server, or to the proxy that forwards requests to it, without TLS."""
    proxy = server.proxy
    host, port = (server.host, server.port) if proxy is None else (proxy.host, proxy.port)
    failure: OSError = OSError(f"{host} has no address")
    for family, kind, number, _, address in _addresses(host, port, end):
        sock = socket.socket(family, kind, number)
        try:
            sock.settimeout(_left(end))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if proxy is not None and not server.forwarded:
                _tunnel(sock, proxy, server, end)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure


def _addresses(host: str, port: int, end: float) -> list[Any]:
    """Returns the addresses of a host. A name server may be silent for longer than the caller can wait."""
    if _is_number(host):
        return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
    found: list[Any] = []
    done = Flag()

    def resolve() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
        except Exception as error:
            found.append(error)
        done.set()

    try:
        # Not a threading.Thread: that takes a lock of the module, which a call that this one interrupts, as the
        # handler of a signal, may hold. The new thread would wait for it, and this call for the thread.
        _thread.start_new_thread(resolve, ())
    except RuntimeError:  # the interpreter ends
        resolve()
    if not done.wait(_left(end)):
        raise TimeoutError(f"no name server has told the address of {host} in time")
    if isinstance(found[0], Exception):
        raise found[0]
    addresses: list[Any] = found[0]
    return addresses


def _is_number(host: str) -> bool:
    """Whether a host is an address, which no name server is asked for."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _tunnel(sock: socket.socket, proxy: Proxy, server: Server, end: float) -> None:
    lines = [f"CONNECT {server.authority} HTTP/1.1", f"Host: {server.authority}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < MOST_HEAD:
        sock.settimeout(_left(end))
        byte = sock.recv(1)  # what follows the head belongs to TLS
        if not byte:
            raise NotSent(f"the proxy {proxy.url} has closed the connection")
        head += byte
    line = head.split(b"\r\n")[0].decode("latin-1")
    version, _, status = line.partition(" ")
    if not version.startswith("HTTP/1."):
        raise NotSent(f"{proxy.url} is no proxy of HTTP", final="look at HTTPS_PROXY")
    if status[:3] == "407":
        raise unauthorized(proxy)
    if status[:1] != "2":
        raise NotSent(f"the proxy {proxy.url} does not connect to {server.authority}: {status}")


def unauthorized(proxy: Proxy) -> NotSent:
    """Returns the failure of a request that a proxy wants credentials for."""
    what = "does not take the credentials of its address" if proxy.authorization else "asks for credentials"
    return NotSent(f"the proxy {proxy.url} {what}", final="put user and password into its address")


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
