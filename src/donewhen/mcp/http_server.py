"""The MCP server over streamable HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from donewhen.foundation.errors import ExitCode, MissingExtraError
from donewhen.mcp.http_access import AccessMiddleware
from donewhen.mcp.server import make_server, require_package

_PATIENCE = 3
"""Seconds that running requests get at shutdown."""
_MOST_SESSIONS = 100
_MOST_CONNECTIONS = 400


def prepare_http(folder: Path, host: str, token: str) -> Callable[[socket.socket], None]:
    """Prepare the server of a project, or raise MissingExtraError. The returned function serves until a signal ends it.

    ``host`` is the address on which it listens. Every request needs ``token`` as its bearer token.
    """
    require_package()
    try:
        import uvicorn
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    except ImportError:
        raise MissingExtraError("donewhen mcp --http", "mcp") from None
    # Their logs repeat headers and addresses; what users need to know is in the responses.
    for name in ("uvicorn", "mcp", "sse_starlette"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False

    manager = StreamableHTTPSessionManager(make_server(folder), max_sessions=_MOST_SESSIONS)

    class HttpServer(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # uvicorn raises the signals again at the end, so that a normal end would look like a crash.
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, _stop, self)
            yield

    config = uvicorn.Config(
        AccessMiddleware(manager.handle_request, host, token),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        loop="asyncio",
        timeout_keep_alive=20,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_PATIENCE,
        h11_max_incomplete_event_size=32 * 1024,
    )

    async def run(listener: socket.socket) -> None:
        async with manager.run():
            await HttpServer(config).serve(sockets=[listener])

    return lambda listener: asyncio.run(run(listener))


def _stop(server: Any) -> None:
    if server.should_exit:
        # A second signal exits at once. Nothing is lost: records are flushed before they are reported.
        os._exit(ExitCode.INTERRUPTED)
    server.should_exit = True
