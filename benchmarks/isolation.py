"""What it costs to run a check kept apart from everything else, at each level, over the same command by itself."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from donewhen.isolation import usable
from donewhen.isolation.levels import LEVELS, Level, Network
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.agreeing import agree_to
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

FILES, ROUNDS = 1_000, 9
_A_FOLDER = 50
_CHECK = ("python", "-m", "unittest", "-q")


def isolation_benchmark() -> None:
    """Print the table."""
    print(f"Time of a check in a room of {FILES} files, over the same command by itself (medians of {ROUNDS})")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder)) / "project"
        environment = _with_programs_of(root)
        with mock.patch.dict(os.environ, environment):
            workspace, job = _project(root)
            levels = [level for level in LEVELS if not usable.why_unusable(level)]
            bare: list[float] = []
            over: dict[Level, list[float]] = {level: [] for level in levels}
            # In turn, so that all of them share what else the machine does.
            for _ in range(ROUNDS):
                own = _seconds(lambda: _run_by_itself(root))
                bare.append(own)
                for level in levels:
                    with _at_most(level):
                        over[level].append(_seconds(lambda: _run(workspace, job)) - own)
    for level in LEVELS:
        if level in over:
            extra, base = statistics.median(over[level]), statistics.median(bare)
            print(f"  {level:26} +{1000 * extra:5.0f} ms on {1000 * base:.0f} ms")
        else:
            print(f"  {level:26} does not work here: {usable.why_unusable(level)}")
    print()


def _project(root: Path) -> tuple[Workspace, Job]:
    for number in range(FILES):
        path = root / "src" / f"package{number // _A_FOLDER}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"VALUE = {number}\n" * 20)
    (root / "test_values.py").write_text(
        "import unittest\n\n\nclass Values(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(True)\n"
    )
    (root / ".gitignore").write_text(".venv/\n__pycache__/\n")
    workspace = create_project(root, "Benchmark")
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    output = "/src/package1/module50.py"
    job = add_job(workspace, "Work", criteria=[f"It works\n  check: run {' '.join(_CHECK)}"], outputs=[output])
    for arguments in (("init", "--quiet"), ("add", "--all"), (*identity, "commit", "--quiet", "--message", "all")):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    agree_to(workspace, [job], Approval(Actor("ada", "person")))
    start_job(workspace, job.id, Actor("bot"))
    (root / output[1:]).write_text("VALUE = 1\n")
    return workspace, workspace.job(job.id)


def _with_programs_of(root: Path) -> dict[str, str]:
    """The variables of somebody who works in a virtual environment of the project."""
    root.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")], check=True)
    return {"PATH": f"{root}/.venv/bin{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(root / ".venv")}


def _run(workspace: Workspace, job: Job) -> None:
    run = run_as_evidence(workspace, job, _CHECK, Actor("bot"), again=True)
    assert run.passed, run.output


def _run_by_itself(root: Path) -> None:
    subprocess.run([root / ".venv" / "bin" / "python", *_CHECK[1:]], cwd=root, check=True, capture_output=True)


def _seconds(action: Callable[[], None]) -> float:
    started = time.monotonic()
    action()
    return time.monotonic() - started


@contextmanager
def _at_most(level: Level) -> Iterator[None]:
    """Meanwhile, better levels count as missing."""
    better = LEVELS[: LEVELS.index(level)]
    real = usable.why_unusable

    def why_unusable(other: Level, network: Network = "own") -> str:
        return "left out for this line" if other in better else real(other, network)

    with mock.patch.object(usable, "why_unusable", why_unusable):
        yield
