"""A Ray cluster of real processes for tests: two nodes on loopback, with a port, a token and a folder of their own."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

HEAD, SECOND = "127.0.0.2", "127.0.0.3"
"""Ray takes 127.0.0.1 for a name of the machine's other address; these are loopback, too."""


class Cluster:
    """Two nodes with one core each. What is in ``env`` is what its workers have, and nothing of it is the driver's."""

    def __init__(self, env: Mapping[str, str]) -> None:
        # Sockets are made in it, and their names may not be long.
        self.folder = Path(tempfile.mkdtemp(prefix="dw-ray-", dir="/tmp"))
        token = self.folder / "token"
        token.write_text(secrets.token_hex(32))
        self.access = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        self._env = os.environ | env | self.access | {"RAY_USAGE_STATS_ENABLED": "0"}
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self.address = f"{HEAD}:{free_port(HEAD)}"

    def start(self) -> None:
        port = self.address.rpartition(":")[2]
        more = ["--head", "--port", port, "--include-dashboard", "false", "--temp-dir", str(self.folder / "r")]
        self._start(HEAD, more)
        until(self._listens, "the head listens")
        self._start(SECOND, ["--address", self.address])
        until(lambda: all(b"Ray runtime started" in self._log(node).read_bytes() for node in self._nodes), "both nodes")

    def _start(self, ip: str, more: list[str]) -> None:
        arguments = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--num-cpus", "1"]
        arguments += ["--node-ip-address", ip, "--object-store-memory", "80000000", *more]
        with self._log(ip).open("wb") as log:
            self._nodes[ip] = subprocess.Popen(
                arguments, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _log(self, ip: str) -> Path:
        return self.folder / f"{ip}.log"

    def _listens(self) -> bool:
        host, _, port = self.address.rpartition(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def kill_node(self, ip: str) -> None:
        """The machine is off."""
        node = self._nodes.pop(ip)
        kill_session(node.pid)
        node.wait()

    def kill_workers(self) -> None:
        """All of our workers, on both nodes, and none of Ray's own processes."""
        found = [pid for node in self._nodes.values() for pid in session(node.pid)]
        workers = [pid for pid in found if command(pid).startswith("ray::RayWorker")]
        assert workers
        _kill(workers)

    def stop(self) -> None:
        for ip in list(self._nodes):
            self.kill_node(ip)
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port(host: str) -> int:
    with socket.socket() as one:
        one.bind((host, 0))
        return int(one.getsockname()[1])


def until(true: Callable[[], bool], what: str, seconds: float = 90) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} seconds: {what}"
        time.sleep(0.1)


def session(leader: int) -> list[int]:
    """The processes that were started by one which has a session of its own, and which still are there."""
    found = []
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] != "Z" and int(fields[3]) == leader:
            found.append(int(path.name))
    return found


def kill_session(leader: int) -> None:
    while found := session(leader):
        _kill(found)
        time.sleep(0.02)


def _kill(found: list[int]) -> None:
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def command(pid: int) -> str:
    """What a process was started with, or what it calls itself now."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
