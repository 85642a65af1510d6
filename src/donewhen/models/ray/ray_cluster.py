"""The connection to a Ray cluster, an existing one or a private one on this machine.

All models of a process share one connection. This module also stops Ray from printing, from replacing signal handlers
and from listening on public interfaces.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from donewhen.foundation.errors import DonewhenError, ExitCode, MissingExtraError
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.secrets import redact_secrets

_REACHING = 10.0
"""Seconds for the first connection to a cluster. Ray itself would retry for minutes."""
_ON_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_SKIP_LOGS = "RAY_DEDUP_LOGS_SKIP_REGEX"
_TRIES = "RAY_NUM_REDIS_GET_RETRIES"


class ExecutorError(DonewhenError):
    """The cluster, or all of its workers, is unavailable."""

    code = "executor"
    exit_code = ExitCode.USAGE


_CONNECTED: WeakKeyDictionary[object, str | None] = WeakKeyDictionary()
"""Users of the connection made here, with its address. The last one to leave closes it."""


def import_ray(*, own: bool) -> Any:
    """Import Ray after setting the variables that it reads on import. ``own``: for a private cluster."""
    # Ray would print lost workers to stdout, between the verdicts.
    os.environ.setdefault(_SKIP_LOGS, ".")
    if own:
        # Private: no usage statistics. Ray listens on all interfaces, except on systems where it does not support
        # clusters.
        os.environ.setdefault(_ON_LOOPBACK, "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    else:
        # An attempt takes most of a minute if the port is not Ray's, and the default is twenty.
        os.environ.setdefault(_TRIES, "1")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("--executor ray", "ray") from None
    return ray


def connect_to_cluster(ray: Any, user: object, address: str | None) -> None:
    """Connect this process unless it is connected. Without an address, start a private cluster."""
    if ray.is_initialized():
        if any(connected != address for connected in _CONNECTED.values()):
            raise ExecutorError("This process is already connected to another Ray cluster.", where=address)
        # A connection that was not made here belongs to the surrounding program.
        if _CONNECTED:
            _CONNECTED[user] = address
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        options["include_dashboard"] = False
    try:
        _check_port(address)
        with _keep_signal_handlers(ray, waiting=address is None):
            ray.init(address=address or "local", **options)
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        reason = one_line(redact_secrets(str(error)), 200).removesuffix(".")
        raise ExecutorError(
            f"Ray can't be reached: {reason}.",
            where=address,
            next_step="Check that the cluster is running (ray status), and set RAY_AUTH_MODE=token if it needs a token."
            if address
            else "Check the free space for temporary files and in /dev/shm. See also Ray's logs.",
        ) from error
    _CONNECTED[user] = address


def leave_cluster(ray: Any, user: object) -> None:
    """Close the connection if this was its last user; this also stops a private cluster."""
    if user in _CONNECTED:
        del _CONNECTED[user]
        if not _CONNECTED and ray.is_initialized():
            ray.shutdown()


def _check_port(address: str | None) -> None:
    """Raise OSError if the address has a port that refuses connections."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), _REACHING).close()


@contextmanager
def _keep_signal_handlers(ray: Any, *, waiting: bool) -> Iterator[None]:
    """Restore the signal handlers that Ray replaces. ``waiting``: delay Ctrl-C until the cluster is up.

    A half-started cluster can't be stopped: Ray would leave processes behind.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        if waiting:
            signal.signal(signal.SIGINT, lambda number, _frame: received.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        if received:
            ray.shutdown()
            signal.raise_signal(received[0])
