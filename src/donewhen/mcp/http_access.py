"""Who may use the server over HTTP: clients with the token, and no web page of another origin."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from donewhen.foundation.listening import constant_time_equal, host_names
from donewhen.mcp.wire import INVALID_REQUEST, error_reply, receive

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = "/mcp"
_ONCE = ("host", "origin", "authorization", "content-length")
_LONGEST_BODY = 4 * 1024 * 1024


@dataclass(frozen=True)
class Refusal:
    """Why a request is refused: the status and one sentence."""

    status: int
    why: str


def refusal_of(scope: Scope, host: str, token: str) -> Refusal | None:
    """Return why a request is refused; None if it may pass. ``host`` is the address on which the server listens."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in headers and key in _ONCE:
            return Refusal(400, f"The header {key} was sent more than once.")
        headers[key] = value.decode("latin-1")
    if not host_names(headers.get("host"), host):
        return Refusal(421, "This server does not accept that host name.")
    origin = headers.get("origin")
    # Programs send no origin. A page that this server didn't send can't be at its address.
    if origin is not None and origin.lower() != f"http://{headers['host'].lower()}":
        return Refusal(403, "Web pages of another origin may not use this server.")
    if scope["path"] != PATH:
        return Refusal(404, f"There is nothing here. The server's address ends with {PATH}.")
    if not _has_token(headers, token):
        return Refusal(401, "The bearer token is missing or wrong.")
    return None


def _has_token(headers: Mapping[str, str], token: str) -> bool:
    scheme, _, received = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and constant_time_equal(received.strip(), token)


class AccessMiddleware:
    """The outermost part of the application: refuses, and passes on what may pass."""

    def __init__(self, inner: Application, host: str, token: str) -> None:
        self._inner = inner
        self._host = host
        self._token = token
        self._open: set[tuple[bytes, str]] = set()
        """The calls that are not answered yet, by their session and id."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = refusal_of(scope, self._host, self._token)
        if refusal is not None:
            await _refuse(send, refusal)
            return
        if scope["method"] != "POST":
            await self._inner(_without_token(scope), receive, send)
            return
        body = await _body(receive)
        if body is None:
            return
        if isinstance(body, Refusal):
            await _refuse(send, body)
            return
        readable = _readable(body)
        if isinstance(readable, dict):
            await _reply(send, 400, readable)
            return
        headers = [
            (name, value) for name, value in _without_token(scope)["headers"] if name.lower() != b"content-length"
        ]
        length = (b"content-length", str(len(readable)).encode())
        call = _call_of(scope, readable)
        if call is None:
            await self._inner({**scope, "headers": [*headers, length]}, _replay(readable, receive), send)
            return
        if call in self._open:
            # The library would answer only one of them.
            why = "A call with this id has not been answered yet: give every call an id of its own."
            await _reply(send, 400, error_reply(json.loads(readable)["id"], INVALID_REQUEST, why))
            return
        self._open.add(call)
        try:
            await self._inner({**scope, "headers": [*headers, length]}, _replay(readable, receive), send)
        finally:
            self._open.discard(call)


def _call_of(scope: Scope, body: bytes) -> tuple[bytes, str] | None:
    """Identify a call by its session and its id, whose type does not matter to the library; None if it is none."""
    # A body without a message is blank.
    message = json.loads(body) if body.strip() else {}
    if "method" not in message or "id" not in message:
        return None
    session = next((value for name, value in scope["headers"] if name.lower() == b"mcp-session-id"), b"")
    return (session, str(message["id"])) if session else None


def _without_token(scope: Scope) -> Scope:
    """Return the request without its token, so that nothing behind can log it."""
    return {**scope, "headers": [pair for pair in scope["headers"] if pair[0].lower() != b"authorization"]}


def _readable(body: bytes) -> bytes | dict[str, Any]:
    """Return the body with text that every reader accepts, or the reply to a body that is no message."""
    received = receive(body.decode("utf-8", "replace"))
    if received.replies:
        return received.replies[0]
    return json.dumps(received.messages[0]).encode("ascii") if received.messages else body


async def _body(receive: Receive) -> bytes | Refusal | None:
    """Return the whole body; None if the client has gone."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > _LONGEST_BODY:
            return Refusal(413, f"The message is too large: more than {_LONGEST_BODY} bytes.")
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    first = True

    async def replay() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay


async def _refuse(send: Send, refusal: Refusal) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": refusal.why}}
    await _reply(send, refusal.status, error)


async def _reply(send: Send, status: int, document: Mapping[str, Any]) -> None:
    body = json.dumps(document).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
