"""Access rules: hosts, origins, tokens, and security headers. Independent of jobs."""

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
    # Not no-referrer: browsers would then also hide the origin of our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LONGEST_BODY = 16 * 1024
COOKIE = "donewhen"


class AccessPolicy(NamedTuple):
    """The host on which the page is served, and its access token."""

    host: str
    token: str | None = None
    """Required for every page; None on loopback, where everyone on this machine may read."""

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether the host is reachable only from this machine."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def host_allowed(header: str | None, door: AccessPolicy) -> bool:
    """Whether the Host header names this server. Foreign names are refused against DNS rebinding, IPs are not."""
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
    """Whether the request's headers say that it comes from our own page; without such headers it is refused."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is None and origin is None:
        return False
    if site is not None and site != "same-origin":
        return False
    return origin is None or origin.lower() == f"http://{headers.get('host', '').lower()}"


def is_let_in(door: AccessPolicy, cookies: Mapping[str, str]) -> bool:
    """Whether the cookies contain the access token, if one is required."""
    return door.token is None or constant_time_equal(cookies.get(COOKIE, ""), door.token)


def constant_time_equal(received: str, expected: str) -> bool:
    """Compare two strings in constant time."""
    return hmac.compare_digest(received.encode(), expected.encode())


def _host_of(header: str | None) -> str | None:
    if not header or any(character in header for character in "/@\\ ,"):
        return None
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname
