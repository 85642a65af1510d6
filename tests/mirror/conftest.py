"""A project that is mirrored to a double of GitHub, with a clock on which waiting takes no time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.gates.facts import facts_of
from donewhen.jobs.issues.mirror_status import MirrorFact
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Form, Workspace
from donewhen.mirror.http.address import Address
from donewhen.mirror.http.client import Client
from donewhen.mirror.http.transport import HttpTransport
from donewhen.mirror.sync.enabling import enable_mirror
from donewhen.mirror.sync.issue_map import read_map
from donewhen.mirror.sync.opening import Mirror, open_mirror
from donewhen.mirror.sync.parity import Gap, parity_gaps
from donewhen.mirror.sync.remote_issues import read_remote_issues
from donewhen.mirror.sync.sync_plan import SyncPlan
from donewhen.mirror.sync.syncing import SyncResult, read_and_plan, sync

BOT = Actor("bot")
ADA = Approval(Actor("ada", "person"))


def _double() -> ModuleType:
    spec = spec_from_file_location("github_double", Path(__file__).with_name("github_double.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    import sys

    sys.modules["github_double"] = module
    spec.loader.exec_module(module)
    return module


github = _double()


class Hours:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 2, 14, 10, tzinfo=UTC)
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.moment += timedelta(seconds=seconds)


class Place:
    """A project, its mirror, and what was told meanwhile."""

    def __init__(self, root: Path, double: Any, form: Form = "small") -> None:
        self.double = double
        self.clock = Hours()
        self.workspace: Workspace = create_project(root, "Demo", form=form, clock=self.clock)
        self.environ = {"GITHUB_API_URL": double.api, "GH_TOKEN": double.token}
        self.told: list[str] = []
        self.timeout = 20.0
        enable_mirror(self.workspace, double.repo.name, self.environ)

    def job(self, title: str = "Parser", **options: Any) -> Job:
        options.setdefault("criteria", ["The result is written down.\n  check: file outputs/primary.md"])
        return add_job(self.workspace, title, **options)

    def read(self, job: Job) -> Job:
        return self.workspace.job_at(job.path)

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text()
        assert old in text, old
        path.write_text(text.replace(old, new, 1))

    def begin(self, job: Job) -> None:
        for proposal in agreement_proposals(self.workspace, [self.read(job)]):
            agree(self.workspace, proposal, ADA)
        assert start_job(self.workspace, job.id, BOT).started

    def client(self, address: Address, **more: Any) -> Client:
        transport = HttpTransport(timeout=self.timeout, direct=True)
        return Client(address, transport=transport, sleep=self.clock.sleep, jitter=lambda: 0.0, **more)

    def open(self, *, keeping: bool = True, max_wait: float = 300.0) -> Mirror:
        return open_mirror(
            self.workspace,
            keeping=keeping,
            on_progress=self.told.append,
            max_wait=max_wait,
            environ=self.environ,
            client=self.client,
        )

    def sync(self, only: str | None = None, **options: Any) -> SyncResult:
        return sync(self.open(**options), BOT, only=only)

    def plan(self) -> SyncPlan:
        mirror = self.open(keeping=False)
        return read_and_plan(mirror, mirror.known_here(read_map(self.workspace)))[1]

    def gaps(self, only: str | None = None) -> list[Gap]:
        mirror = self.open()
        known = mirror.known_here(read_map(self.workspace))
        looked = read_remote_issues(self.workspace, mirror.project, mirror.api, known, only)
        return [gap for target in looked.targets for gap in parity_gaps(target, looked.found[target.job])]

    def issue(self, number: int = 1) -> dict[str, Any]:
        found: dict[str, Any] = self.double.repo.issues[number]
        return found

    def labels(self, number: int = 1) -> list[str]:
        return sorted(label["name"] for label in self.issue(number)["labels"])

    def fact(self, job: Job) -> MirrorFact:
        return facts_of(self.workspace, self.read(job)).mirror

    def mirrored(self, job: Job) -> list[Entry]:
        return [entry for entry in self.workspace.ledger.read(job.id).entries if entry.type == "mirrored"]


@pytest.fixture
def double() -> Iterator[Any]:
    """A GitHub on loopback."""
    with github.GitHubDouble() as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, double: Any) -> Place:
    """A project that is mirrored, and never was synced."""
    root = tmp_path / "work"
    root.mkdir()
    return Place(root, double)


@pytest.fixture
def big_place(tmp_path: Path, double: Any) -> Place:
    """The same with workstreams."""
    root = tmp_path / "work"
    root.mkdir()
    return Place(root, double, "big")


@pytest.fixture
def trouble() -> Callable[..., Any]:
    """``trouble(status=502)``: what the double does instead of answering."""
    made: Callable[..., Any] = github.Trouble
    return made
