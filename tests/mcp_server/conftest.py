"""A shop with jobs that a person has agreed to, and the real client at a real `donewhen mcp` process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

ADA = Approval(Actor("ada", "person"))
WRITTEN = "The report is written.\n  check: file /report.txt matches /^ALL GOOD$/"
RUNS = "The check runs.\n  check: run sh check.sh"


class Shop:
    """A project in a repository. Everything that is not the setup's is done by whoever calls tools."""

    def __init__(self, root: Path, *, settings: str = "") -> None:
        self.root = root
        (root / "donewhen.toml").write_text(settings)
        (root / "check.sh").write_text("cat report.txt\n")
        self.workspace: Workspace = create_project(root, "Shop")

    def job(
        self,
        title: str = "Report",
        *,
        criteria: Sequence[str] = (WRITTEN, RUNS),
        outputs: Sequence[str] = ("/report.txt",),
        agreed: bool = True,
        started: bool = True,
        **options: Any,
    ) -> Job:
        """A job, agreed to by a person unless that is what is tested."""
        job = add_job(self.workspace, title, criteria=criteria, outputs=outputs, **options)
        if agreed:
            for proposal in agreement_proposals(self.workspace, [job]):
                agree(self.workspace, proposal, ADA)
        if agreed and started:
            assert start_job(self.workspace, job.id, Actor("setup")).started
        return self.read(job)

    def read(self, job: Job) -> Job:
        return self.workspace.job_at(job.path)

    def entries(self, job: Job) -> tuple[Entry, ...]:
        chain = self.workspace.ledger.read(job.id)
        assert not chain.breaks
        return chain.entries

    def work(self, text: str = "ALL GOOD\n") -> None:
        (self.root / "report.txt").write_text(text)

    def command(self, *more: str) -> list[str]:
        return [sys.executable, "-m", "donewhen", "mcp", "--project", str(self.root), *more]


class Caller:
    """The real client; what it gets is compared with the schemas of the tools by the client itself."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.progress: list[tuple[float, float | None, str | None]] = []

    async def __call__(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that is expected to answer."""
        found = await self.raw(tool, arguments)
        assert not found.is_error, found.content[0].text
        assert found.content[0].text
        data: dict[str, Any] = found.structured_content
        return data

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that is expected to be an error; what it says."""
        found = await self.raw(tool, arguments)
        assert found.is_error, found.structured_content
        assert found.structured_content is None
        text: str = found.content[0].text
        return text

    async def raw(self, tool: str, arguments: dict[str, Any], **options: Any) -> Any:
        async def note(done: float, of: float | None, what: str | None) -> None:
            self.progress.append((done, of, what))

        return await self.client.call_tool(tool, arguments, progress_callback=note, **options)


@asynccontextmanager
async def connected(command: Sequence[str], cwd: Path | None = None, **env: str) -> AsyncIterator[Caller]:
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    place = StdioServerParameters(command=command[0], args=list(command[1:]), env=env, cwd=cwd)
    with Path(os.devnull).open("w") as nowhere:
        async with Client(stdio_client(place, errlog=nowhere)) as client:
            yield Caller(client)


class HttpProcess:
    """A real `donewhen mcp --http` process on a free port."""

    def __init__(self, command: Sequence[str], **env: str) -> None:
        self.process = subprocess.Popen(
            [*command, "--http", "127.0.0.1:0"],
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        assert self.process.stderr
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.url = line.split()[-1]
        self.where = self.process.stderr.readline()

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """End the server; its status and the rest of its output."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@asynccontextmanager
async def connected_over_http(url: str, token: str) -> AsyncIterator[Caller]:
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield Caller(client)


@pytest.fixture
def http() -> Iterator[Callable[..., HttpProcess]]:
    """``server = http(shop.command(), DONEWHEN_MCP_TOKEN=…)``: a process that ends with the test."""
    pytest.importorskip("mcp.server", reason="LOUD: donewhen[mcp] is not installed, so the MCP server is NOT tested")
    started: list[HttpProcess] = []

    def start(command: Sequence[str], **env: str) -> HttpProcess:
        started.append(HttpProcess(command, **env))
        return started[-1]

    yield start
    for server in started:
        server.process.kill()
        server.process.communicate()


@pytest.fixture
def http_client() -> Callable[..., Any]:
    """``async with http_client(server.url, token) as call``: the real client over streamable HTTP."""
    return connected_over_http


@pytest.fixture
def shop(repository: Path) -> Shop:
    return Shop(repository)


@pytest.fixture
def make_shop() -> Callable[..., Shop]:
    return Shop


@pytest.fixture
def client() -> Callable[..., Any]:
    """``async with client(shop.command()) as call: await call("list_jobs")``: a process and the real client."""
    pytest.importorskip("mcp.server", reason="LOUD: donewhen[mcp] is not installed, so the MCP server is NOT tested")
    return connected


@pytest.fixture
def play() -> Callable[[Callable[[], Awaitable[None]]], None]:
    """Run what a test does with the client."""

    def run(scene: Callable[[], Awaitable[None]]) -> None:
        import anyio

        anyio.run(scene)

    return run
