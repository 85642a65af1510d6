"""What the scripted API servers share: a port on loopback, a script, and a record of what was asked."""

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

# Clients try again after a 429 or a 5xx, but not after a 400: a script that is over ends the run at once.
_SCRIPT_FAILED = 400
_SECRETS = frozenset({"authorization", "proxy-authorization", "x-api-key", "cookie"})


@dataclass(frozen=True)
class RecordedRequest:
    """One request as the server saw it, without the key. ``at`` counts the seconds from the server's start."""

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
    """One HTTP response, sent after ``delay`` seconds, with a ``pause`` between one chunk and the next.

    One that is ``broken_off`` loses its connection half-way; one that ``hangs`` says nothing more from there on.
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
    """A text in about ``count`` pieces, none of them empty; an empty text is one."""
    size = max(1, -(-len(text) // count))
    return [text[at : at + size] for at in range(0, len(text), size)] or [text]


def halves(chunks: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """What comes before something happens half-way, and what comes after."""
    if len(chunks) == 1:
        middle = len(chunks[0]) // 2
        return [chunks[0][:middle]], [chunks[0][middle:]]
    return chunks[: len(chunks) // 2], chunks[len(chunks) // 2 :]


RequestT = TypeVar("RequestT", bound=RecordedRequest)
ReplyT = TypeVar("ReplyT")


class LoopbackServer(ABC, Generic[RequestT, ReplyT]):
    """Plays a script to whoever asks, and remembers every request.

    The script is a function of the request, or a sequence of replies and such functions, taken in the order in
    which calls come. When a sequence is over, when the script has spoken ``limit`` times or when it raises, the
    client gets an error that it doesn't retry; the end of the ``with`` block then raises, and :meth:`check` does
    so earlier.
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
        """Everything that was asked so far, in the order of arrival."""
        with self._lock:
            return tuple(self._requests)

    def check(self) -> None:
        """Raise if the script was over before the client was, or broke."""
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
            error.add_note(f"The script of the server had failed before: {self._failure!r}")

    @abstractmethod
    def _answer(self, request: RequestT) -> HttpAnswer:
        """The response, from :meth:`_reply` where the script is asked."""

    @abstractmethod
    def _refuse(self, status: int, message: str) -> HttpAnswer:
        """An error in the API's own words."""

    def _reply(self, request: RequestT) -> ReplyT:
        """The script's next word."""
        self.check()
        turn = next(self._spoken)
        if turn >= self._limit:
            raise _over(f"It has spoken {turn} times, which is its limit")
        if not isinstance(self._script, tuple):
            return self._script(request)
        if turn >= len(self._script):
            raise _over(f"It has {len(self._script)} line(s)")
        line = self._script[turn]
        return line(request) if callable(line) else line

    def _exchange(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> HttpAnswer:
        shown = {name: value for name, value in headers.items() if name not in _SECRETS}
        request = self._record(method, path, shown, _json_object(raw), time.monotonic() - self._started)
        with self._lock:
            self._requests.append(request)
        try:
            return self._answer(request)
        except Exception as error:  # noqa: BLE001 - whoever wrote the script learns of it from check()
            self._fail(error)
            return self._refuse(_SCRIPT_FAILED, f"The script of this server failed: {error}")

    def _fail(self, error: Exception) -> None:
        with self._lock:
            self._failure = self._failure or error


def _over(why: str) -> ScriptExhaustedError:
    return ScriptExhaustedError(f"THE SCRIPT IS OVER. {why}, but the client asks again.")


class _HTTPServer(socketserver.ThreadingTCPServer):
    # Not an http.server.HTTPServer: that one looks its own name up, which may take seconds without a network.
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
        # A client may hang up whenever it likes.
        if isinstance(error, Exception) and not isinstance(error, ConnectionError):
            self.fail(error)


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer
    protocol_version = "HTTP/1.1"
    timeout = 60.0

    def _answer(self) -> None:
        # One answer a connection: none is left open behind a test.
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
        """The record is the log."""


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
