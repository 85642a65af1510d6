"""A shop in a repository: what done means is agreed on main, and an agent works on a branch."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval, person_at_terminal, unproved_actor
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.jobs.verifying import Verification, verify_branch
from donewhen_kit import run_main
from lean_python import lean_python

PYTEST = f"{lean_python()} -m pytest -q -p no:cacheprovider"
NAIVE = "def total(prices):\n    return sum(prices)\n"
HONEST = """def total(prices):
    if min(prices, default=0) < 0:
        raise ValueError("a price is negative")
    return sum(prices)
"""
TESTS = """import pytest

from prices import total


def test_prices_add_up():
    assert total([1, 2]) == 3


def test_negative_prices_are_refused():
    with pytest.raises(ValueError):
        total([-1])
"""


class Shop:
    """The repository, with git and donewhen at hand."""

    def __init__(self, folder: Path, inside: str = "") -> None:
        self.folder = folder
        self.root = folder / inside
        self.root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        self.write(".gitignore", "__pycache__/\n.pytest_cache/\n")
        self.write("prices.py", NAIVE)
        self.write("test_prices.py", TESTS)
        create_project(self.root, "Shop")

    @property
    def workspace(self) -> Workspace:
        return find_workspace(self.root)

    def job(
        self,
        title: str = "Refuse negative prices",
        criteria: Sequence[str] = (f"No test fails\n  check: run {PYTEST}",),
        outputs: Sequence[str] = ("/prices.py",),
        **more: Any,
    ) -> Job:
        """A job that a person agrees to."""
        job = add_job(self.workspace, title, criteria=criteria, outputs=outputs, **more)
        self.agree(job)
        return self.workspace.job(job.id)

    def agree(self, job: Job) -> None:
        """A person agrees to whatever is not agreed."""
        for proposal in agreement_proposals(self.workspace, [self.workspace.job(job.id)]):
            if proposal.agreement.state != "agreed" or proposal.agreement.changes:
                agree(self.workspace, proposal, Approval(person_at_terminal()))

    def commit(self, message: str = "Something") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def branch(self, name: str = "agent") -> None:
        self.commit("What done means")
        self.git("switch", "-q", "-c", name)

    def complete(self, job: Job) -> Completion:
        assert start_job(self.workspace, job.id, unproved_actor()).started
        return complete(self.workspace, job.id, unproved_actor())

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.root / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def plan(self, job: Job) -> str:
        return job.path.relative_to(self.root).as_posix()

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, *arguments], cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def verify(self, *arguments: str, base: str = "main", **env: str) -> subprocess.CompletedProcess[str]:
        """`donewhen verify`, as a step of a CI run has it."""
        hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_BASE_REF"}
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        words = ["verify", *(("--base", base) if base else ()), *arguments]
        return run_main(words, self.root, kept | {"NO_COLOR": "1"} | env)

    def verified(self, *arguments: str, base: str = "main") -> dict[str, Any]:
        """The envelope of `donewhen verify --json`."""
        done = self.verify("--json", *arguments, base=base)
        found: dict[str, Any] = json.loads(done.stdout)
        found["status"] = done.returncode
        return found


def codes(found: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in found["findings"]}


def case(found: dict[str, Any], name: str, job: str | None = None) -> dict[str, Any]:
    """One case, of the project or of a job."""
    groups = [found["data"]["project"]] if job is None else []
    groups += [item["cases"] for item in found["data"]["jobs"] if item["job"] == job]
    cases = [item for group in groups for item in group if item["name"] == name]
    assert len(cases) == 1, [item["name"] for group in groups for item in group]
    return dict(cases[0])


def forge(shop: Shop, job: Job) -> str:
    """Append a completion to the ledger that holds together and rests on nothing, and say so in the plan."""
    data = {"score": 100, "gates": {}, "outputs": {}, "writes": {"status": [job.status, "done"]}}
    entry = shop.workspace.ledger.append(job.id, "completed", data, Actor("Ada", "person"))
    shop.edit(shop.plan(job), f"status: {job.status}", "status: done")
    return entry.hash


def looked(shop: Shop, base: str = "main", **more: Any) -> Verification:
    """What the look itself finds, without the command around it, and without the note that these jobs were agreed
    without a work area; tests of that are in test_room_merges.py."""
    found = verify_branch(shop.workspace, base, **more)
    return found._replace(notes=tuple(note for note in found.notes if note.code != "no_work_area"))


def outcome(found: Verification, job: Job, name: str = "AC-1") -> str:
    """What became of one case of a job."""
    cases = [case for item in found.jobs if item.id == job.id for case in item.cases if case.name == name]
    assert len(cases) == 1, [(job.id, [case.name for case in job.cases]) for job in found.jobs]
    return cases[0].outcome


def messages_by_code(found: Verification) -> dict[str, str]:
    """What is said against the branch, by code."""
    return {reason.code: reason.message for reason in found.reasons}
