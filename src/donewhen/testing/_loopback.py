"""Base of the scripted API servers: a loopback port, a script, and a record of requests."""

from __future__ import annotations

import itertools
import json
import socketserver
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from donewhen.adapters.scripted import ScriptExhaustedError

# Clients retry after 429 and 5xx but not after 400, so that an exhausted script ends the run at once.
_SCRIPT_FAILED = 400
_SECRETS = frozenset({"authorization", "proxy-authorization", "x-api-key", "cookie"})


@dataclass(frozen=True)
class RecordedRequest:
    """One request without its credentials. ``at`` is in seconds since the server's start."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at: float

    def mentions(self, text: str) -> bool:
        """Whether ``text`` occurs anywhere in the body."""
        return any(text in string for string in _strings(self.body))


@dataclass(frozen=True)
class HttpAnswer:
    """One HTTP response, sent after ``delay`` seconds, with a ``pause`` between chunks.

    With ``broken_off`` the connection closes half-way; with ``hangs`` it stays open without more data.
    """

    chunks: Sequence[bytes]
    content_type: str = "application/json"
    status: int = 200
    delay: float = 0.0
    retry_after: float | None = None
    broken_off: bool = False
    pause: float = 0.0
    hangs: bool = False


def json_chunks(document: Mapping[str, Any]) -> Sequence[bytes]:
    """One JSON document."""
    return [json.dumps(document).encode()]


def event_chunks(events: Iterable[Mapping[str, Any]]) -> Sequence[bytes]:
    """Server-sent events, each named by its ``type``."""
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


def data_chunks(documents: Iterable[Mapping[str, Any]]) -> Sequence[bytes]:
    """Server-sent events without a name."""
    return [f"data: {json.dumps(document)}\n\n".encode() for document in documents]


def pieces_of(text: str, count: int) -> Sequence[str]:
    """Split a text into about ``count`` non-empty pieces; an empty text is one piece."""
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)] or [text]


def halves(chunks: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Split the chunks in the middle."""
    if len(chunks) == 1:
        middle = len(chunks[0]) // 2
        return [chunks[0][:middle]], [chunks[0][middle:]]
    return chunks[: len(chunks) // 2], chunks[len(chunks) // 2 :]


RequestT = TypeVar("RequestT", bound=RecordedRequest)
ReplyT = TypeVar("ReplyT")


class LoopbackServer(ABC, Generic[RequestT, ReplyT]):
    """Answers requests from a script, and records every request.

    The script is a function of the request, or a sequence of replies and such functions, used in order. When the
    sequence is exhausted, after ``limit`` replies, or when the script raises, the client gets an error that it doesn't
    retry; the end of the ``with`` block then raises, and so does :meth:`check`.
    """

    _record: type[RequestT]

    def __init__(
        self,
        script: Callable[[RequestT], ReplyT] | Sequence[ReplyT | Callable[[RequestT], ReplyT]],
        *,
        limit: int = 200,
    ) -> None:
        self._script = script if callable(script) else tuple(script)
        self._limit = limit
        self._spoken = itertools.count()
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._requests: list[RequestT] = []
        self._failure: Exception | None = None
        self._started = time.monotonic()
        self._http = _HTTPServer(self._exchange, self._fail)

    @property
    def root_url(self) -> str:
        """The server's address, without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def requests(self) -> tuple[RequestT, ...]:
        """All requests so far, in order of arrival."""
        with self._lock:
            return tuple(self._requests)

    def check(self) -> None:
        """Raise if the script was exhausted or raised."""
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.closing.set()
        self._http.shutdown()
        self._http.server_close()
        if error is None:
            self.check()
        elif self._failure is not None:
            error.add_note(f"The server's script had failed before: {self._failure!r}")

    @abstractmethod
    def _answer(self, request: RequestT) -> HttpAnswer:
        """Return the response, using :meth:`_reply` for the script."""

    @abstractmethod
    def _refuse(self, status: int, message: str) -> HttpAnswer:
        """Return an error in the API's format."""

    def _reply(self, request: RequestT) -> ReplyT:
        """Return the script's next reply."""
        self.check()
        turn = next(self._spoken)
        if turn >= self._limit:
            raise _exhausted(f"It gave {turn} replies, which is its limit")
        if not isinstance(self._script, tuple):
            return self._script(request)
        if turn >= len(self._script):
            raise _exhausted(f"It has {len(self._script)} replies")
        line = self._script[turn]
        return line(request) if callable(line) else line

    def _exchange(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> HttpAnswer:
        safe_headers = {name: value for name, value in headers.items() if name not in _SECRETS}
        request = self._record(method, path, safe_headers, _json_object(raw), time.monotonic() - self._started)
        with self._lock:
            self._requests.append(request)
        try:
            return self._answer(request)
        except Exception as error:  # noqa: BLE001 - reported by check()
            self._fail(error)
            return self._refuse(_SCRIPT_FAILED, f"The server's script failed: {error}")

    def _fail(self, error: Exception) -> None:
        with self._lock:
            self._failure = self._failure or error


def _exhausted(why: str) -> ScriptExhaustedError:
    return ScriptExhaustedError(f"SCRIPT EXHAUSTED. {why}, but the client sent another request.")


class _HTTPServer(socketserver.ThreadingTCPServer):
    # Not http.server.HTTPServer, which resolves its own name: that may take seconds without a network.
    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, exchange: Callable[[str, str, Mapping[str, str], bytes], HttpAnswer], fail: Callable[[Exception], None]
    ) -> None:
        self.exchange = exchange
        self.fail = fail
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exception()
        # Clients may disconnect at any time.
        if isinstance(error, Exception) and not isinstance(error, ConnectionError):
            self.fail(error)


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer
    protocol_version = "HTTP/1.1"
    timeout = 60.0

    def _answer(self) -> None:
        # One response per connection, so that no connection outlives a test.
        self.close_connection = True
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.exchange(self.command, self.path.partition("?")[0], headers, raw)
        if self.server.closing.wait(answer.delay):
            return
        self.send_response(answer.status)
        self.send_header("content-type", answer.content_type)
        self.send_header("content-length", str(sum(map(len, answer.chunks))))
        self.send_header("connection", "close")
        if answer.retry_after is not None:
            self.send_header("retry-after", f"{answer.retry_after:g}")
        self.end_headers()
        if self.command == "HEAD":
            return
        for number, chunk in enumerate(
            halves(answer.chunks)[0] if answer.broken_off or answer.hangs else answer.chunks
        ):
            if number and self.server.closing.wait(answer.pause):
                return
            self.wfile.write(chunk)
        if answer.hangs:
            self.server.closing.wait()

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer  # noqa: N815 - found by name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Log nothing: requests are recorded."""


def _json_object(raw: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(raw)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _strings(data: object) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _strings(value)
    elif isinstance(data, list):
        for value in data:
            yield from _strings(value)
