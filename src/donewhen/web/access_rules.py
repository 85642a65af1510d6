"""Who may ask, and what browsers are told not to do with the answer. Nothing here knows about jobs."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

HEADERS: dict[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: with that, browsers hide the origin of our own forms, too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LONGEST_BODY = 16 * 1024
COOKIE = "donewhen"


class AccessPolicy(NamedTuple):
    """Where the page can be reached, and what it takes."""

    host: str
    token: str | None = None
    """Without it nothing is shown; None on loopback, where all of this machine may look."""

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def host_allowed(header: str | None, door: AccessPolicy) -> bool:
    """Whether a request names this server: a page elsewhere can point its own name to this machine, not an address."""
    name = _host_of(header)
    if name is None:
        return False
    if is_loopback(name):
        return True
    if door.loopback:
        return False
    if name == door.host.strip("[]").lower():
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that a request comes from our own page; a client that says nothing is refused."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is None and origin is None:
        return False
    if site is not None and site != "same-origin":
        return False
    return origin is None or origin.lower() == f"http://{headers.get('host', '').lower()}"


def is_let_in(door: AccessPolicy, cookies: Mapping[str, str]) -> bool:
    """Whether somebody may look."""
    return door.token is None or constant_time_equal(cookies.get(COOKIE, ""), door.token)


def constant_time_equal(given: str, expected: str) -> bool:
    """Compared in a time that tells nothing."""
    return hmac.compare_digest(given.encode(), expected.encode())


def _host_of(header: str | None) -> str | None:
    if not header or any(one in header for one in "/@\\ ,"):
        return None
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname
