"""The connection to a Ray cluster: one that is there, or one of our own on this machine.

A process has one connection, so that all models in it share it. Whatever else Ray does to a process, such as printing,
taking over signals and listening to the world, is kept from it here.
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
"""Seconds for a first connection to a cluster. Ray itself would try for minutes."""
_ON_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_NOT_TOLD = "RAY_DEDUP_LOGS_SKIP_REGEX"
_TRIES = "RAY_NUM_REDIS_GET_RETRIES"


class ExecutorError(DonewhenError):
    """The cluster, or all of its workers, can't be used."""

    code = "executor"
    exit_code = ExitCode.USAGE


_CONNECTED: WeakKeyDictionary[object, str | None] = WeakKeyDictionary()
"""Who uses the connection that was made here, and to which address. The last to leave closes it."""


def import_ray(*, own: bool) -> Any:
    """Ray, which looks at its environment when it is imported. ``own``: for a cluster of our own."""
    # It prints to standard output that a worker was lost: in the middle of the verdicts.
    os.environ.setdefault(_NOT_TOLD, ".")
    if own:
        # It is nobody else's, and tells nobody of itself. Ray would listen on all interfaces, except where it takes
        # clusters to be impossible.
        os.environ.setdefault(_ON_LOOPBACK, "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    else:
        # Each try takes most of a minute where somebody listens who is not Ray; it would make twenty.
        os.environ.setdefault(_TRIES, "1")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("--executor ray", "ray") from None
    return ray


def connect_to_cluster(ray: Any, user: object, address: str | None) -> None:
    """Connect this process, unless it is. Without an address, to a cluster that is made for it."""
    if ray.is_initialized():
        if any(one != address for one in _CONNECTED.values()):
            raise ExecutorError("This process is connected to another Ray cluster.", where=address)
        # Where nobody here has made it, it belongs to the program that we are part of.
        if _CONNECTED:
            _CONNECTED[user] = address
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        options["include_dashboard"] = False
    try:
        _look_for(address)
        with _signals_kept(ray, waiting=address is None):
            ray.init(address=address or "local", **options)
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        raise ExecutorError(
            f"Ray can't be reached: {one_line(redact_secrets(str(error)), 200)}.",
            where=address,
            next_step="Is the cluster there (ray status), and is RAY_AUTH_MODE=token set where it wants a token?"
            if address
            else "Is there room for temporary files, and in /dev/shm? Ray's logs say more.",
        ) from error
    _CONNECTED[user] = address


def leave_cluster(ray: Any, user: object) -> None:
    """Close the connection, if nobody else uses it, and a cluster of our own with it."""
    if user in _CONNECTED:
        del _CONNECTED[user]
        if not _CONNECTED and ray.is_initialized():
            ray.shutdown()


def _look_for(address: str | None) -> None:
    """OSError where nobody listens at an address with a port."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), _REACHING).close()


@contextmanager
def _signals_kept(ray: Any, *, waiting: bool) -> Iterator[None]:
    """Signals mean what they meant before, whatever Ray makes of them. ``waiting``: Ctrl-C is heard when all is there.

    Half of a cluster can't be ended: Ray leaves processes behind that nobody knows of.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        if waiting:
            signal.signal(signal.SIGINT, lambda number, _frame: heard.append(number))
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler if handler is not None else signal.SIG_DFL)
        if heard:
            ray.shutdown()
            signal.raise_signal(heard[0])
