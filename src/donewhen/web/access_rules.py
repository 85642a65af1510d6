"""Access rules: hosts, origins, tokens, and security headers. Independent of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from donewhen.foundation.listening import constant_time_equal as constant_time_equal
from donewhen.foundation.listening import host_names
from donewhen.foundation.listening import is_loopback as is_loopback

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


def host_allowed(header: str | None, door: AccessPolicy) -> bool:
    """Whether the Host header names this server. Foreign names are refused against DNS rebinding, IPs are not."""
    return host_names(header, door.host)


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
