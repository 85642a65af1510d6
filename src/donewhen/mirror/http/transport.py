"""Send one HTTP request and read the whole response, with limits on size and time. No redirects, no retries."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import IO, NamedTuple, Protocol

from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.plain_text import one_line

_CHUNK = 1 << 16
LARGEST = 32 << 20
"""Maximum response size: more than a hundred issues with the longest possible bodies."""


class HttpResponse(NamedTuple):
    """A response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoResponse(Exception):  # noqa: N818 - what happened, not a mistake of ours
    """No complete response. ``sent``: the server may have received the request. ``hopeless``: a retry can't help."""

    def __init__(self, why: str, *, sent: bool, hopeless: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.sent = sent
        self.hopeless = hopeless


class Transport(Protocol):
    """Sends requests."""

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse: ...


class HttpTransport:
    """The standard library's client. ``timeout`` applies to the whole response."""

    def __init__(self, *, timeout: float = 30.0, direct: bool = False, clock: Clock = SYSTEM_CLOCK) -> None:
        self._timeout = timeout
        self._clock = clock
        # No proxy for a server on loopback.
        proxies = urllib.request.ProxyHandler({}) if direct else urllib.request.ProxyHandler()
        self._opener = urllib.request.OpenerDirector()
        for handler in (proxies, urllib.request.HTTPHandler(), urllib.request.HTTPSHandler()):
            self._opener.add_handler(handler)

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse:
        # The address was checked: https, or http on this machine.
        request = urllib.request.Request(url, body, dict(headers), method=method)  # noqa: S310
        until = self._clock.monotonic() + self._timeout
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                response_headers = {name.lower(): value for name, value in answer.headers.items()}
                return HttpResponse(answer.status, response_headers, self._read(answer, response_headers, until))
        except urllib.error.URLError as error:
            reason = error.reason if isinstance(error.reason, OSError) else error
            raise _no_response(reason) from error
        except (OSError, http.client.HTTPException) as error:
            raise _no_response(error) from error

    def _read(self, answer: IO[bytes], headers: Mapping[str, str], until: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        while chunk := answer.read1(_CHUNK):  # type: ignore[attr-defined]
            parts.append(chunk)
            size += len(chunk)
            if size > LARGEST:
                raise NoResponse(f"the response is larger than {LARGEST >> 20} MiB", sent=True, hopeless=True)
            if self._clock.monotonic() > until:
                raise NoResponse(f"no complete response after {self._timeout:g} seconds", sent=True)
        announced = headers.get("content-length", "")
        if announced.isdigit() and size < int(announced):
            raise NoResponse("the connection was closed in the middle of the response", sent=True)
        return b"".join(parts)


def _no_response(error: Exception) -> NoResponse:
    if isinstance(error, ssl.SSLCertVerificationError):
        message = f"the certificate is not trusted ({one_line(error.verify_message, 120)})"
        return NoResponse(message, sent=False, hopeless=True)
    if isinstance(error, socket.gaierror):
        return NoResponse("the host name can't be resolved", sent=False)
    if isinstance(error, ConnectionRefusedError):
        return NoResponse("connection refused", sent=False)
    if isinstance(error, TimeoutError):
        return NoResponse("timed out", sent=True)
    if isinstance(error, ConnectionError | http.client.RemoteDisconnected | http.client.IncompleteRead):
        return NoResponse("the connection was closed", sent=True)
    return NoResponse(f"the connection failed ({type(error).__name__}: {one_line(str(error), 120)})", sent=True)
