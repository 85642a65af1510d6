"""The outermost middleware: host check, token, sessions, security headers and unexpected errors."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl

from donewhen.foundation.crash_log import write_crash_log
from donewhen.web.access_rules import COOKIE, HEADERS, constant_time_equal, host_allowed, is_let_in, same_origin
from donewhen.web.rendering import render_template
from donewhen.web.server_state import Application, Message, Receive, Scope, Send, ServerState

SESSION = "donewhen.session"
"""The key of the session (or None) in a request's scope."""
_FIXED = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_OURS = frozenset(name for name, _ in _FIXED)


class AccessMiddleware:
    """The outermost part of the application."""

    def __init__(self, site: ServerState, inner: Application) -> None:
        self._site = site
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                kept = [pair for pair in message.get("headers", []) if pair[0].lower() not in _OURS]
                message = {**message, "headers": kept + _FIXED}
            await send(message)

        try:
            await self._handle(scope, receive, guarded)
        except Exception as error:  # noqa: BLE001 - the server reports any error and continues
            await self._site.tell(f"The page {scope['path']} could not be shown: {type(error).__name__}: {error}")
            if log := write_crash_log(error, ["donewhen", "serve"]):
                await self._site.tell(f"Crash log: {log}")
            if os.environ.get("DONEWHEN_DEBUG"):
                for line in "".join(traceback.format_exception(error)).splitlines():
                    await self._site.tell(line)
            if not begun:
                await _send_message(scope, guarded, 500, "Internal error. Details are in the server's terminal.")

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        site, path, cookies = self._site, scope["path"], _cookies(headers)
        if not host_allowed(headers.get("host"), site.door):
            await _send_message(scope, send, 421, "This server does not accept that host name.")
        elif path == "/open" and scope["method"] in ("GET", "HEAD"):
            await self._open(scope, send)
        elif not is_let_in(site.door, cookies):
            await _send_message(
                scope, send, 401, "The access token is missing. Open the link printed in the server's terminal."
            )
        elif scope["method"] not in ("GET", "HEAD") and not same_origin(headers):
            await _send_message(
                scope, send, 403, "The request did not come from a form of this page, so nothing was changed."
            )
        elif path.startswith("/as/"):
            await self._handle_session(scope, receive, send, cookies)
        else:
            await self._inner({**scope, SESSION: None}, receive, send)

    async def _handle_session(self, scope: Scope, receive: Receive, send: Send, cookies: Mapping[str, str]) -> None:
        identifier, _, rest = scope["path"].removeprefix("/as/").partition("/")
        session = self._site.people.session(identifier, cookies)
        if session is None:
            message = "You are not signed in. Open the link in the server's terminal, or continue without signing in: /"
            await _send_message(scope, send, 403, message)
            return
        path = f"/{rest}"
        await self._inner({**scope, "path": path, "raw_path": path.encode(), SESSION: session}, receive, send)

    async def _open(self, scope: Scope, send: Send) -> None:
        """Handle the link with the token: set a cookie and redirect to a URL without the token."""
        received = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("token", "")
        token = self._site.door.token
        if token is None or not constant_time_equal(received, token):
            await _send_message(scope, send, 403, "This is not the access token of this server.")
            return
        headers = [(b"location", b"/"), (b"set-cookie", cookie(COOKIE, token, "/").encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def cookie(name: str, value: str, path: str) -> str:
    """Return a cookie that scripts can't read and other sites can't make a browser send."""
    return f"{name}={value}; Path={path}; HttpOnly; SameSite=Strict"


async def _send_message(scope: Scope, send: Send, status: int, message: str) -> None:
    """Send a page without any project data."""
    body = render_template("plain.html", {"status": status, "message": message}).encode()
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _cookies(headers: Mapping[str, str]) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}
