"""The listening socket, serving, and a prompt shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from donewhen.foundation.errors import ExitCode, MissingExtraError
from donewhen.web.app import application
from donewhen.web.server_state import ServerState
from donewhen.web.viewers import MOST_VIEWERS

_PATIENCE = 3
"""Seconds that running requests get at shutdown."""


def prepare_server(site: ServerState) -> Callable[[socket.socket], None]:
    """Prepare the server, or raise MissingExtraError. The returned function serves until Ctrl-C or SIGTERM."""
    app = application(site)
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("The page", "web") from None
    from donewhen.web.timely_requests import TimelyProtocol

    # uvicorn's log is not for users; the site reports what they need to know.
    quiet = logging.getLogger("uvicorn")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        http=TimelyProtocol,
        ws="none",
        loop="asyncio",
        timeout_keep_alive=20,
        limit_concurrency=2 * MOST_VIEWERS,
        timeout_graceful_shutdown=_PATIENCE,
        h11_max_incomplete_event_size=32 * 1024,
    )
    server = uvicorn.Server(config)

    async def run(listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_ignore_connection_error)
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signal_number, _stop, server)
        # The steps of server.serve(), which would handle the signals itself and raise them again at the end.
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        await server.main_loop()
        # Event streams never end by themselves.
        site.close()
        await server.shutdown(sockets=[listener])
        await _abort_connections(server)

    return lambda listener: asyncio.run(run(listener))


async def _abort_connections(server: Any) -> None:
    """Close what was accepted while the server was shutting down, and let the loop finish closing."""
    for _ in range(3):
        for connection in [*server.server_state.connections]:
            connection.transport.abort()
        await asyncio.sleep(0)


def _stop(server: Any) -> None:
    if server.should_exit:
        # A second signal exits at once. Nothing is lost: records are flushed before they are reported.
        os._exit(ExitCode.INTERRUPTED)
    server.should_exit = True


def _ignore_connection_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignore errors of browsers that disconnected during a request."""
