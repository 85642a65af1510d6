"""Listen on an address of this machine, and tell which Host headers name it."""

from __future__ import annotations

import contextlib
import errno
import hmac
import ipaddress
import socket
from urllib.parse import urlsplit

from donewhen.foundation.errors import DonewhenError, ExitCode


class AddressError(DonewhenError):
    """The server can't listen on this address."""

    code = "address"
    exit_code = ExitCode.USAGE


def listening(host: str, port: int, *, command: str, advice: str) -> socket.socket:
    """Return a listening socket on this address; port 0 means any free port. ``advice`` is the next step if the port is
    in use, possibly by the same ``command``."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise AddressError(f"There is no address {host!r}: {error}.", next_step="Give another host.") from None
    family, kind, number, _, address = addresses[0]
    listener = socket.socket(family, kind, number)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        where = f"{host}:{port}"
        if error.errno == errno.EADDRINUSE:
            raise AddressError(
                f"The port is already in use, possibly by {command} in another terminal.",
                where=where,
                next_step=advice,
            ) from None
        raise AddressError(
            f"Can't listen on this address: {error.strerror}.", where=where, next_step="Try port 0."
        ) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL for a client on this machine."""
    host, port = listener.getsockname()[:2]
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            # The unspecified address is not a valid URL host.
            host = "127.0.0.1" if listener.family == socket.AF_INET else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether the host is reachable only from this machine."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def host_names(header: str | None, served: str) -> bool:
    """Whether a Host header names the server on ``served``. Foreign names are refused against DNS rebinding; an IP
    address can't be rebound, and is refused only by a server on loopback."""
    name = _host_of(header)
    if name is None:
        return False
    if is_loopback(name):
        return True
    if is_loopback(served):
        return False
    if name == served.strip("[]").lower():
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def constant_time_equal(received: str, expected: str) -> bool:
    """Compare two strings in constant time."""
    return hmac.compare_digest(received.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))


def _host_of(header: str | None) -> str | None:
    if not header or any(character in header for character in "/@\\ ,"):
        return None
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname
