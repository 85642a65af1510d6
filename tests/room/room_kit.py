"""A real repository with an agreed job in it, and somebody who can edit every file and tries to get a promise."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from donewhen.jobs.ledger.approval import Approval, person_at_terminal, unproved_actor
from donewhen.jobs.ledger.entry_content import ChangesAccepted, CommandRun, RoomRun
from donewhen.jobs.lifecycle.agreeing import agree_to
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import parse_document, rewrite_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen_kit import git_command
from lean_python import lean_python

PYTHON = sys.executable
PYTEST = f"{lean_python()} -m pytest -q -p no:cacheprovider"

PRICE = "src/shop/price.py"
BAD = "def total(prices):\n    return 0\n"
LAZY = "# done\ndef total(prices):\n    return 0\n"
"""Another content that is as bad: an output has to change."""
GOOD = "def total(prices):\n    return sum(prices)\n"
CHECK = "import sys\n\nsys.path.insert(0, 'src')\nfrom shop.price import total\n\nsys.exit(total([1, 2]) != 3)\n"
TESTS = """\
import sys

sys.path.insert(0, "src")
from shop.price import total


def test_total():
    assert total([1, 2]) == 3


def test_empty():
    assert total([]) == 0
"""
HOLLOW = "def test_total():\n    assert True\n\n\ndef test_empty():\n    assert True\n"
"""The same ids, and nothing in them."""
ENDS = "import os\nos._exit(0)\n"
"""A module that ends the program that imports it with success."""
FORGES = """\
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.outcome = "passed"
    report.longrepr = None
"""
"""A test plug-in for which every test passes."""

SHOP = {
    "src/shop/__init__.py": "",
    PRICE: BAD,
    "tests/test_price.py": TESTS,
    "check.py": CHECK,
    ".gitignore": "__pycache__/\n.venv/\nnode_modules/\nbuild/\n",
}
RUN_TESTS = f"The tests pass\n  check: run {PYTEST}"
RUN_CHECK = f"The check passes\n  check: run {PYTHON} check.py"


@dataclass(frozen=True)
class Answer:
    """What came of an attempt to complete the job."""

    done: bool
    codes: frozenset[str]
    rooms: tuple[RoomRun, ...] = ()
    """The commands that were run for it."""
    why: tuple[str, ...] = ()

    @property
    def outside(self) -> set[str]:
        """The files that were not in the first run, besides tests."""
        return {name for room in self.rooms for name in room.outside}

    @property
    def tests(self) -> set[str]:
        return {name for room in self.rooms for name in room.tests}


class Bench:
    """A project with one job or more."""

    def __init__(
        self, root: Path, files: Mapping[str, str] = SHOP, *, git: bool = True, inside: str = "", **more: str
    ) -> None:
        self.top = root
        root.mkdir(parents=True, exist_ok=True)
        self.root = root / inside
        self.root.mkdir(parents=True, exist_ok=True)
        self.has_git = git
        if git:
            self.git("init", "-q", "-b", "main")
        for name, text in {**files, **more}.items():
            self.write(name, text)
        self.workspace: Workspace = create_project(self.root, "Shop")
        self.commit()
        self._before: dict[Path, bytes | str | None] = {}
        self.tried: dict[str, Answer] = {}

    def git(self, *arguments: str) -> str:
        return git_command(self.top, *arguments)

    def commit(self, message: str = "Work") -> str:
        if not self.has_git:
            return ""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def job(
        self,
        *criteria: str,
        outputs: Sequence[str] = (f"/{PRICE}",),
        work: Sequence[str] | None = None,
        title: str = "Sum",
        agreed: bool = True,
        **fields: Value,
    ) -> Job:
        """A job that a person agreed to and that was started."""
        given = criteria or (RUN_TESTS, RUN_CHECK)
        job = add_job(self.workspace, title, criteria=given, outputs=outputs, work=work)
        self.fields(job, max_iterations=200, **fields)
        self.commit("Plan")
        if agreed:
            self.agree(job)
            assert start_job(self.workspace, job.id, unproved_actor()).started
        self._before.clear()
        return self.workspace.job(job.id)

    def agree(self, *jobs: Job) -> None:
        agree_to(self.workspace, [self.workspace.job(job.id) for job in jobs], Approval(person_at_terminal()))

    def fields(self, job: Job, **values: Value) -> None:
        """Type values into a plan's frontmatter."""
        raw = job.path.read_bytes()
        job.path.write_bytes(rewrite_fields(parse_document(raw, str(job.path)), values))

    def plan(self, job: Job, old: str, new: str) -> None:
        """Replace text in a plan."""
        text = job.path.read_text()
        assert old in text, old
        self._keep(job.path)
        job.path.write_text(text.replace(old, new, 1))

    # What the agent does. Everything can be undone, so that many tricks are tried on one agreement.

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        self._keep(path)
        if path.is_symlink():
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def remove(self, name: str) -> None:
        path = self.root / name
        self._keep(path)
        path.unlink()

    def link(self, name: str, target: str) -> None:
        path = self.root / name
        self._keep(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path):
            path.unlink()
        path.symlink_to(target)

    def work(self) -> None:
        """The honest work."""
        self.write(PRICE, GOOD)

    def undo(self) -> None:
        for path, content in reversed(self._before.items()):
            if path.is_symlink() or (path.exists() and not isinstance(content, bytes)):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            if isinstance(content, str):
                path.symlink_to(content)
            elif content is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            folder = path.parent
            while folder != self.root and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
                folder = folder.parent
        self._before.clear()

    def _keep(self, path: Path) -> None:
        before = getattr(self, "_before", None)
        if before is None or path in before:
            return
        if path.is_symlink():
            before[path] = os.readlink(path)
        else:
            before[path] = path.read_bytes() if path.is_file() else None

    def complete(self, job: Job) -> Answer:
        """Try to complete the job."""
        ran = self.workspace.ledger.read(job.id).entries
        result = complete(self.workspace, job.id, unproved_actor())
        entries = self.workspace.ledger.read(job.id).entries[len(ran) :]
        runs = [entry.content for entry in entries if isinstance(entry.content, CommandRun)]
        codes = () if result.evaluation is None else (reason.code for reason in result.evaluation.reasons)
        return Answer(
            result.done,
            frozenset(map(str, codes)) - {"score_too_low"},
            tuple(run.room for run in runs if isinstance(run.room, RoomRun)),
            tuple(run.told for run in runs if isinstance(run.told, str)),
        )

    def accepted(self, job: Job) -> int:
        entries = self.workspace.ledger.read(job.id).entries
        return sum(isinstance(entry.content, ChangesAccepted) for entry in entries)

    def refuses(self, job: Job, tricks: Mapping[str, Callable[[Bench], object]]) -> dict[str, Answer]:
        """Play each trick, with bad work, and undo it. None may get a promise; then the honest work does.

        That it does shows that the tricks were refused for what they are.
        """
        answers: dict[str, Answer] = {}
        for name, play in tricks.items():
            self.write(PRICE, LAZY)
            play(self)
            answers[name] = self.complete(job)
            assert not answers[name].done, f"{name}: got a promise"
            self.undo()
        self.work()
        honest = self.complete(job)
        assert honest.done, honest
        return answers


def files(**changes: str) -> Callable[[Bench], None]:
    """A trick that writes files; `__` in a name is a slash. See also ``wrote``."""
    return wrote({name.replace("__", "/"): text for name, text in changes.items()})


def wrote(changes: Mapping[str, str | None]) -> Callable[[Bench], None]:
    """A trick that writes files, or removes them."""

    def play(bench: Bench) -> None:
        for name, text in changes.items():
            if text is None:
                bench.remove(name)
            else:
                bench.write(name, text)

    return play
