"""The cost of a clean room, compared with `git worktree add` of the same commit."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.agreeing import agree_to
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.reading import read_rooms
from donewhen.jobs.room.rooms import Room

FILES, ROUNDS = 10_000, 5
_A_FOLDER = 50


def rooms_benchmark() -> None:
    """Print the table."""
    print(f"CPU time of a room of {FILES} files, compared with `git worktree add` (medians of {ROUNDS})")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder)) / "project"
        workspace, job = _project(root)
        tree = Path(folder) / "tree"
        worktree = statistics.median(_cpu(lambda: _add_worktree(root, tree)) for _ in range(ROUNDS))
        place = Path(folder) / "room"
        cold = statistics.median(_cpu(lambda: _lay_out(workspace, job, place, fresh=True)) for _ in range(ROUNDS))
        warm = statistics.median(_cpu(lambda: _lay_out(workspace, job, place, fresh=False)) for _ in range(ROUNDS))
    for label, cost in (("cold", cold), ("warm", warm)):
        print(f"  {label:26} {cost / worktree:5.2f} ×   ({1000 * cost:6.0f} ms on {1000 * worktree:.0f} ms)")
    print()


def _project(root: Path) -> tuple[Workspace, Job]:
    root.mkdir()
    for number in range(FILES):
        path = root / "src" / f"package{number // _A_FOLDER}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"VALUE = {number}\n" * 100)
    workspace = create_project(root, "Benchmark")
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    for arguments in (("init", "--quiet"), ("add", "--all"), (*identity, "commit", "--quiet", "--message", "all")):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    criterion = "It compiles\n  check: run python -m compileall src/package1"
    job = add_job(workspace, "Work", criteria=[criterion], outputs=["/src/package1/module50.py"])
    agree_to(workspace, [job], Approval(Actor("ada", "person")))
    (root / "src" / "package1" / "module50.py").write_text("VALUE = 1\n")
    return workspace, workspace.job(job.id)


def _add_worktree(root: Path, tree: Path) -> None:
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree)], cwd=root, check=True)
    shutil.rmtree(tree)
    subprocess.run(["git", "worktree", "prune"], cwd=root, check=True)


def _lay_out(workspace: Workspace, job: Job, folder: Path, *, fresh: bool) -> None:
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    with read_rooms(workspace, job) as reading:
        assert reading is not None
        room = Room(
            folder, reading.plan.agreed, reading.agreed, reading.blobs, reading.is_writable, commit=reading.commit
        )
        room.prepare()


def _cpu(action: Callable[[], None]) -> float:
    before = _used()
    action()
    return _used() - before


def _used() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, kinds))
