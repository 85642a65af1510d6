"""The page in a process of its own, somebody to ask it over the wire, and workspaces for it to show."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot", "agent")
PATIENCE = 120.0

# As in tests/conftest.py: a process that has left its parents behind, at a terminal of its own. What appears on the
# terminal is passed on as it comes.
_AT_A_TERMINAL = r"""
import json, os, pty, sys
if os.fork():
    os._exit(0)
argv = json.loads(sys.argv[1])
process, terminal = pty.fork()
if process == 0:
    os.execv(argv[0], argv)
sys.stdout.write(f"pid {process}\n")
sys.stdout.flush()
try:
    while chunk := os.read(terminal, 4096):
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
except OSError:
    pass
_, status = os.waitpid(process, 0)
sys.stdout.write(f"\nended {os.waitstatus_to_exitcode(status)}\n")
sys.stdout.flush()
"""


def missing_extra() -> str:
    """Why the page can't be tested here; empty where it can."""
    missing = [one for one in ("starlette", "uvicorn", "jinja2") if importlib.util.find_spec(one) is None]
    return (
        f"LOUD: the page is NOT tested: {', '.join(missing)} can't be found (pip install '.[web]')" if missing else ""
    )


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass
class Server:
    """The page, running."""

    process: subprocess.Popen[bytes]
    pid: int
    port: int = 0
    screen: str = ""
    """What stands on its terminal so far."""
    status: int | None = None
    _over: bool = field(default=False, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, *, method: str = "GET", **headers: str) -> Got:
        return asked(self.port, method, path, headers=_named(headers))

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Got:
        """A form, as a browser sends it from a page of ours."""
        sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.url, **_named(headers)}
        return asked(self.port, "POST", path, urlencode(fields).encode(), {k: v for k, v in sent.items() if v})

    def link(self, name: str) -> str:
        """The newest link by which somebody signs in, without the server's own address."""
        self.read_until(rf"as={name}&")
        found = re.findall(rf"(/sign-in\?as={name}&secret=\S+)", self.screen)
        return str(found[-1])

    def signed_in(self, name: str) -> Person:
        """Follow the newest link of somebody."""
        query = dict(one.split("=") for one in self.link(name).partition("?")[2].split("&"))
        answer = self.post("/sign-in", query)
        assert answer.status == 303, answer.text
        cookie = answer.headers["set-cookie"].partition(";")[0]
        base = answer.headers["location"].removesuffix("/review")
        page = self.get(f"{base}/review", Cookie=cookie)
        csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', page.text)
        assert csrf is not None
        return Person(self, base, cookie, csrf[1])

    def read_until(self, pattern: str) -> str:
        """Wait until something stands on the terminal."""
        while not re.search(pattern, self.screen):
            assert self._more(), f"It ended, and this never appeared: {pattern}\n{self.screen}"
        return self.screen

    def stop(self, kind: signal.Signals = signal.SIGTERM) -> int:
        """End it; its exit status."""
        if self.status is None:
            if not self._over:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, kind)
            while self._more():
                pass
            ended = re.search(r"ended (-?\d+)\s*\Z", self.screen)
            status = self.process.wait(PATIENCE)
            self.status = int(ended[1]) if ended else status
            assert self.process.stdout is not None
            self.process.stdout.close()
        return self.status

    def _more(self) -> bool:
        """Read on; False at the end."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            assert waiting.select(PATIENCE), f"Nothing more came in {PATIENCE} s:\n{self.screen}"
        chunk = os.read(self.process.stdout.fileno(), 65536)
        self.screen += chunk.decode("utf-8", "replace").replace("\r\n", "\n")
        self._over = not chunk
        return bool(chunk)


class Person(NamedTuple):
    """Somebody who has signed in."""

    server: Server
    base: str
    cookie: str
    csrf: str

    def get(self, path: str) -> Got:
        return self.server.get(f"{self.base}{path}", Cookie=self.cookie)

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Got:
        given = {"csrf": self.csrf, **fields}
        return self.server.post(f"{self.base}{path}", given, **{"Cookie": self.cookie, **headers})


def serving(folder: Path, *arguments: str, person: bool = False, env: Mapping[str, str] | None = None) -> Server:
    """Start the page of a folder on a free port, and wait until it is there."""
    argv = [sys.executable, "-m", "donewhen", "serve", "--port", "0", *arguments]
    hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"NO_COLOR": "1", "PYTHONWARNINGS": "error", **(env or {})}
    started = [sys.executable, "-c", _AT_A_TERMINAL, json.dumps(argv)] if person else argv
    process = subprocess.Popen(
        started,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    server = Server(process, process.pid)
    try:
        server.read_until(r"Ctrl-C ends it\.")
        server.read_until(r"http://\S+?:\d+/")
    except BaseException:
        server.stop()
        raise
    if person:
        server.pid = int(server.screen.split()[1])
    shown = re.search(r"http://\S+?:(\d+)/", server.screen)
    assert shown is not None
    server.port = int(shown[1])
    return server


def asked(
    port: int, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Got:
    """One request, with exactly these headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        given = dict(headers or {})
        connection.putrequest(method, path, skip_host="Host" in given, skip_accept_encoding=True)
        if body is not None and "Content-Length" not in given:
            given["Content-Length"] = str(len(body))
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        return Got(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)
    finally:
        connection.close()


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers from names that Python allows: ``Sec_Fetch_Site``."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


# Workspaces


def shop(folder: Path, *titles: str, agreed: bool = True, **options: Any) -> tuple[Workspace, list[Job]]:
    """A project with jobs that a shell script decides."""
    workspace = create_project(folder, "Shop")
    (folder / "check.sh").write_text("test -s out.txt && echo fine\n", encoding="utf-8")
    options = {"criteria": ["The check passes\n  check: run sh check.sh"], "outputs": ["/out.txt"], **options}
    jobs = [add_job(workspace, title, **options) for title in titles]
    if agreed:
        agree_to(workspace, jobs)
    return workspace, jobs


def agree_to(workspace: Workspace, jobs: Sequence[Job]) -> None:
    for proposal in agreement_proposals(workspace, [workspace.job_at(job.path) for job in jobs]):
        agree(workspace, proposal, ADA)


def path_of(url: str) -> str:
    return urlsplit(url).path


def eventually(check: Any, told: str) -> None:
    """Wait for something that another process does; how long it takes decides nothing but when this gives up."""
    until = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < until, told
        time.sleep(0.05)
