"""Listening, and leaving: a socket that is ours before anything is promised, and an end that keeps nobody waiting."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from donewhen.foundation.errors import DonewhenError, ExitCode, MissingExtraError
from donewhen.web.app import application
from donewhen.web.server_state import ServerState
from donewhen.web.viewers import MOST_VIEWERS

_PATIENCE = 3
"""Seconds for answers that are under way when the end comes."""


class AddressError(DonewhenError):
    """The page can't be served under this address."""

    code = "address"
    exit_code = ExitCode.USAGE


def listening(host: str, port: int) -> socket.socket:
    """A socket on this address; port 0 is one that is free."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise AddressError(f"There is no address {host!r}: {error}.", next_step="Give another --host.") from None
    family, kind, number, _, address = found[0]
    listener = socket.socket(family, kind, number)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        where = f"{host}:{port}"
        if error.errno == errno.EADDRINUSE:
            raise AddressError(
                "Somebody is listening there already; it may be this page in another terminal.",
                where=where,
                next_step="Open it, or take another port: donewhen serve --port 0",
            ) from None
        raise AddressError(f"Can't listen there: {error.strerror}.", where=where, next_step="Try --port 0.") from None
    return listener


def url_of(listener: socket.socket) -> str:
    """The address for a browser."""
    host, port = listener.getsockname()[:2]
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            # Everywhere is nowhere one can go to.
            host = "127.0.0.1" if listener.family == socket.AF_INET else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def prepare_server(site: ServerState) -> Callable[[socket.socket], None]:
    """Everything that serving takes, or what is missing. What is returned serves until Ctrl-C or SIGTERM."""
    app = application(site)
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("The page", "web") from None
    # What it has to say is for its developers; the site tells what people need to know.
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
        http="h11",
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
        loop.set_exception_handler(_said_elsewhere)
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, _stop, server)
        # The steps of server.serve(), which would take the signals itself, and raise them again in the end.
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        await server.main_loop()
        # Streams never end by themselves.
        site.close()
        await server.shutdown(sockets=[listener])

    return lambda listener: asyncio.run(run(listener))


def _stop(server: Any) -> None:
    if server.should_exit:
        # Twice is: at once. Nothing here is lost by that: what is on record was flushed before anybody was told.
        os._exit(ExitCode.INTERRUPTED)
    server.should_exit = True


def _said_elsewhere(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A browser that vanished in the middle of something is nobody's error."""
