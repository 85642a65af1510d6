"""Server-sent events: one stream per viewer; it ends when the viewer disconnects or the server stops."""

from __future__ import annotations

import asyncio

from donewhen.web.server_state import Receive, Scope, Send, ServerState

_STREAM = (b"content-type", b"text/event-stream; charset=utf-8")


class EventStream:
    """``/events``: notifies browsers which topics have changed, without any content."""

    def __init__(self, site: ServerState) -> None:
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            status = 200 if scope["method"] == "HEAD" else 405
            await _end(send, status, [_STREAM] if status == 200 else [(b"allow", b"GET, HEAD")])
            return
        viewer = self._site.viewers.join()
        if viewer is None:
            await _end(send, 503, [(b"retry-after", b"30")])
            return

        async def wait_for_disconnect() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            viewer.end()

        leaving = asyncio.create_task(wait_for_disconnect())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": [_STREAM]})
            async for message in viewer.messages():
                await send({"type": "http.response.body", "body": message, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            leaving.cancel()
            self._site.viewers.leave(viewer)


async def _end(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
