"""What a decision looks at is read once before the lock and once under it, and git is hardly ever started."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import donewhen.foundation.git as git_module
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.gates.facts import facts_of
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.agreeing import agree_to
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.snapshot import snapshot_of
from donewhen.jobs.plan.workspace import Workspace

Git = Callable[..., str]
BOT = Actor("bot")
ME = Approval(Actor("ada", "person"))
CHECKED = ("The notice is there.\n  check: file /NOTICE", "It says something.\n  check: run grep -q rights NOTICE")

_LISTENERS: list[Callable[[str, tuple[Any, ...]], None]] = []


@pytest.fixture(scope="session", autouse=True)
def _audited() -> None:
    """An audit hook can't be removed, so there is one, which tells whoever listens."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        for listener in _LISTENERS:
            listener(event, arguments)

    sys.addaudithook(hook)


class Seen:
    """The files of a project that were opened, and the programs that were started."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.opened: Counter[str] = Counter()
        self.started: Counter[str] = Counter()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | Path):
            path = Path(arguments[0])
            if path.is_relative_to(self.root) and not path.is_dir():
                self.opened[path.relative_to(self.root).as_posix()] += 1
        elif event == "subprocess.Popen":
            self.started[Path(os.fsdecode(arguments[0])).name] += 1

    @property
    def read(self) -> dict[str, int]:
        """How often each plan, chain and settings file was opened."""
        kinds = ("plan.md", ".jsonl", "donewhen.toml", "pyproject.toml", "settings.json", "settings.local.json")
        return {
            name: count
            for name, count in self.opened.items()
            if name.endswith((*kinds, "hooks.json")) and not name.startswith("jobs/logs/")
        }


@contextmanager
def seen_in(workspace: Workspace) -> Iterator[Seen]:
    # As in a new process, which has asked git nothing.
    git_module._TRACKED.clear()
    seen = Seen(workspace.root)
    _LISTENERS.append(seen)
    try:
        yield seen
    finally:
        _LISTENERS.remove(seen)


@pytest.fixture
def shop(repository: Path, git: Git) -> Workspace:
    (repository / "donewhen.toml").write_text("[jobs]\ncommand_timeout = 20\n")
    (repository / ".claude").mkdir()
    (repository / ".claude" / "settings.json").write_text("{}\n")
    made = create_project(repository, "Shop")
    git(repository, "add", "-A")
    return made


def agreed(shop: Workspace, title: str = "Ship a notice", **more: Any) -> Job:
    job = add_job(shop, title, **({"criteria": CHECKED, "outputs": ["/NOTICE"]} | more))
    for proposal in agreement_proposals(shop, [job]):
        if proposal.agreement.state != "agreed":
            agree(shop, proposal, ME)
    return job


def written(shop: Workspace, git: Git, text: str = "All rights reserved.\n") -> None:
    (shop.root / "NOTICE").write_text(text)
    git(shop.root, "add", "-A")


@pytest.mark.parametrize("more", [{}, {"inputs": ["/NOTICE"]}], ids=["the whole tree", "declared inputs"])
def test_one_complete_opens_each_file_at_most_three_times_and_starts_git_at_most_twice(
    shop: Workspace, git: Git, more: dict[str, Any]
) -> None:
    job = agreed(shop, **more)
    assert start_job(shop, job.id, BOT).started
    written(shop, git)
    with seen_in(shop) as seen:
        assert complete(shop, job.id, BOT).done
    assert seen.started["git"] <= 2
    assert {name: count for name, count in seen.read.items() if count > 3} == {}
    # It did look: at the plans of job and project, their chains and the settings.
    assert {"donewhen.toml", "jobs/plan.md", shop.where(job.path)} <= set(seen.read)
    assert sum(name.endswith(".jsonl") for name in seen.read) == 2


@pytest.mark.parametrize("again", [False, True], ids=["alone", "with a file outside the work area"])
def test_in_a_room_files_are_opened_no_more_often_and_git_is_started_for_the_rooms_only(
    shop: Workspace, git: Git, again: bool
) -> None:
    git(shop.root, "commit", "-q", "-m", "Before")
    job = add_job(shop, "Ship a notice", criteria=CHECKED, outputs=["/NOTICE"])
    agree_to(shop, [job], ME)
    assert start_job(shop, job.id, BOT).started
    written(shop, git)
    if again:
        (shop.root / "check.sh").write_text("exit 0\n")
    with seen_in(shop) as seen:
        assert complete(shop, job.id, BOT).done
    # To read the agreed tree before the lock and under it, and for the repository of each room.
    assert seen.started["git"] <= (18 if again else 10)
    # Files of the work tree are read as files of the work, too, besides being settings or plans.
    assert {name: count for name, count in seen.read.items() if count > 5} == {}


def test_a_refusal_opens_no_more_than_that_and_a_repetition_neither(shop: Workspace, git: Git) -> None:
    job = agreed(shop)
    start_job(shop, job.id, BOT)
    written(shop, git, "None.\n")
    with seen_in(shop) as seen:
        assert not complete(shop, job.id, BOT).done
    assert seen.started["git"] <= 2
    assert {name: count for name, count in seen.read.items() if count > 3} == {}
    written(shop, git)
    assert complete(shop, job.id, BOT).done
    with seen_in(shop) as seen:
        assert complete(shop, job.id, BOT).repeated
    assert seen.started["git"] <= 2
    assert {name: count for name, count in seen.read.items() if count > 3} == {}


def test_the_plans_and_chains_of_other_jobs_are_opened_at_most_three_times_too(shop: Workspace, git: Git) -> None:
    first = agreed(shop)
    start_job(shop, first.id, BOT)
    written(shop, git)
    assert complete(shop, first.id, BOT).done
    second = agreed(shop, "Print it", criteria=CHECKED[1:], depends_on=[first.id], outputs=["/PRINTED"])
    start_job(shop, second.id, BOT)
    (shop.root / "PRINTED").write_text("All rights reserved, on paper.\n")
    with seen_in(shop) as seen:
        assert complete(shop, second.id, BOT).done
    assert shop.where(first.path) in seen.read
    assert {name: count for name, count in seen.read.items() if count > 3} == {}
    assert seen.started["git"] <= 2


def test_a_job_with_many_commands_opens_no_plan_and_no_chain_more_often(shop: Workspace, git: Git) -> None:
    criteria = [f"It says something ({number}).\n  check: run grep -q r NOTICE -m {number}" for number in range(1, 7)]
    job = agreed(shop, criteria=criteria)
    start_job(shop, job.id, BOT)
    written(shop, git)
    with seen_in(shop) as seen:
        assert complete(shop, job.id, BOT).done
    assert seen.started["grep"] == 6
    assert seen.started["git"] <= 2
    # Settings that git tracks are inputs of the commands, too: they are compared after each of them.
    inputs = {"donewhen.toml", ".claude/settings.json"}
    assert {name: count for name, count in seen.read.items() if count > 3 and name not in inputs} == {}


def test_facts_are_read_once(shop: Workspace, git: Git) -> None:
    job = agreed(shop)
    start_job(shop, job.id, BOT)
    written(shop, git)
    run_as_evidence(shop, job, ["grep", "-q", "rights", "NOTICE"], BOT)
    read = shop.job(job.id)
    with seen_in(shop) as seen:
        facts = facts_of(shop, read)
    assert [status.state for status in facts.evidence] == ["missing", "passed"]
    assert set(seen.read.values()) == {1}
    assert seen.started["git"] <= 1


def test_git_is_asked_again_when_its_index_has_changed(shop: Workspace, git: Git) -> None:
    written(shop, git)
    tracked = git_module.tracked_files
    assert "NOTICE" in (tracked(shop.root) or (None, []))[1]
    git(shop.root, "rm", "-q", "--cached", "NOTICE")
    assert "NOTICE" not in (tracked(shop.root) or (None, []))[1]
    (shop.root / "OTHER").write_text("x")
    git(shop.root, "add", "OTHER")
    assert "OTHER" in (tracked(shop.root) or (None, []))[1]


def test_git_is_asked_every_time_where_the_index_is_not_all_there_is(shop: Workspace, git: Git, tmp_path: Path) -> None:
    written(shop, git)
    git(shop.root, "commit", "-q", "-m", "x")
    git(shop.root, "worktree", "add", "-q", str(tmp_path / "tree"))
    for root in (tmp_path / "tree", shop.root):
        (root / ".gitmodules").touch()
        seen = Seen(root)
        _LISTENERS.append(seen)
        try:
            assert all("NOTICE" in (git_module.tracked_files(root) or (None, []))[1] for _ in range(2))
        finally:
            _LISTENERS.remove(seen)
        assert seen.started["git"] == 2


def test_a_snapshot_stays_what_it_was_and_can_not_be_written(shop: Workspace, git: Git) -> None:
    job = agreed(shop)
    snapshot = snapshot_of(shop)
    assert snapshot_of(snapshot) is snapshot
    plan, chain, settings = snapshot.read(job.path), snapshot.ledger.read(job.id), snapshot.settings()
    start_job(shop, job.id, BOT)
    (shop.root / "donewhen.toml").write_text("[jobs]\ncommand_timeout = 9\n")
    add_job(shop, "Another")
    assert snapshot.read(job.path) is plan
    assert snapshot.ledger.read(job.id) is chain
    assert snapshot.settings() is settings
    assert snapshot.job(job.id).status == "planned"
    assert shop.job(job.id).status == "in_progress"
    for write in (
        lambda: snapshot.write_plan(job.path, b""),
        lambda: snapshot.locked(job.path).__enter__(),
        lambda: snapshot.write(plan, job.path, {"status": "done"}),
    ):
        with pytest.raises(TypeError):
            write()
    snapshot.forget_changed()
    assert snapshot.job(job.id).status == "in_progress"
    assert len(snapshot.ledger.read(job.id).entries) > len(chain.entries)
