"""One request, one answer: whole, small enough and in time. Nothing is followed and nothing is repeated here."""

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
"""A hundred issues with the longest bodies that there can be take less."""


class HttpResponse(NamedTuple):
    """What a server answered; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoResponse(Exception):  # noqa: N818 - what happened, not a mistake of ours
    """There was no whole answer. ``sent`` says whether the server may have got the request, ``hopeless`` whether
    another try is in vain."""

    def __init__(self, why: str, *, sent: bool, hopeless: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.sent = sent
        self.hopeless = hopeless


class Transport(Protocol):
    """What sends a request."""

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse: ...


class HttpTransport:
    """The standard library's client. ``timeout`` is for the whole answer, however slowly it drips."""

    def __init__(self, *, timeout: float = 30.0, direct: bool = False, clock: Clock = SYSTEM_CLOCK) -> None:
        self._timeout = timeout
        self._clock = clock
        # A server on this machine is not asked through a proxy.
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
                shown = {name.lower(): value for name, value in answer.headers.items()}
                return HttpResponse(answer.status, shown, self._read(answer, shown, until))
        except urllib.error.URLError as error:
            reason = error.reason if isinstance(error.reason, OSError) else error
            raise _explained(reason) from error
        except (OSError, http.client.HTTPException) as error:
            raise _explained(error) from error

    def _read(self, answer: IO[bytes], headers: Mapping[str, str], until: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        while chunk := answer.read1(_CHUNK):  # type: ignore[attr-defined]
            parts.append(chunk)
            size += len(chunk)
            if size > LARGEST:
                raise NoResponse(f"its answer is longer than {LARGEST >> 20} MiB", sent=True, hopeless=True)
            if self._clock.monotonic() > until:
                raise NoResponse(f"its answer was not there after {self._timeout:g} seconds", sent=True)
        announced = headers.get("content-length", "")
        if announced.isdigit() and size < int(announced):
            raise NoResponse("the connection was cut in the middle of its answer", sent=True)
        return b"".join(parts)


def _explained(error: Exception) -> NoResponse:
    if isinstance(error, ssl.SSLCertVerificationError):
        message = f"its certificate is not trusted ({one_line(error.verify_message, 120)})"
        return NoResponse(message, sent=False, hopeless=True)
    if isinstance(error, socket.gaierror):
        return NoResponse("its name can't be found", sent=False)
    if isinstance(error, ConnectionRefusedError):
        return NoResponse("it takes no connections", sent=False)
    if isinstance(error, TimeoutError):
        return NoResponse("it did not answer in time", sent=True)
    if isinstance(error, ConnectionError | http.client.RemoteDisconnected | http.client.IncompleteRead):
        return NoResponse("the connection was cut", sent=True)
    return NoResponse(f"the connection failed ({type(error).__name__}: {one_line(str(error), 120)})", sent=True)
