"""A small project with real git, agreed and completed in this process."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import Agreed, CommandRun, RoomRun
from donewhen.jobs.lifecycle.agreeing import agree_to
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

AGENT = Actor("bot")
PERSON = Approval(Actor("ada", "person"))
_IDENTITY = ("-c", "user.name=ada", "-c", "user.email=ada@localhost", "-c", "protocol.file.allow=always")


def git(folder: Path, *arguments: str) -> str:
    """Run git as a person does, and fail if it fails."""
    done = subprocess.run(["git", *_IDENTITY, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Checkout:
    """A project in a repository, whose one job has to write `src/done.txt`."""

    def __init__(self, top: Path, *, inside: str = "", init: Sequence[str] = ()) -> None:
        self.top = top
        self.root = top / inside
        self.root.mkdir(parents=True, exist_ok=True)
        if not (top / ".git").exists():
            git(top, "init", "-q", *init)
        self.workspace: Workspace = create_project(self.root, "Demo")

    def write(self, name: str, content: str | bytes, *, program: bool = False) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if program:
            path.chmod(0o755)
        return path

    def commit(self, message: str = "All") -> str:
        git(self.top, "add", "--all")
        git(self.top, "commit", "-q", "--allow-empty", "-m", message)
        return git(self.top, "rev-parse", "HEAD")

    def add(
        self,
        check: str,
        *,
        work: Sequence[str] = ("/src/**",),
        outputs: Sequence[str] = ("/src/done.txt",),
        **fields: object,
    ) -> Job:
        self.write("check.sh", f"set -e\ntest -f src/done.txt\n{check}\n")
        criteria = ("It works.\n  check: run sh check.sh",)
        job = add_job(self.workspace, "Job", criteria=criteria, work=work, outputs=outputs)
        if fields:
            text = job.path.read_text().replace(
                "\nwork:", "".join(f"\n{key}: {value}" for key, value in fields.items()) + "\nwork:", 1
            )
            job.path.write_text(text)
        self.commit()
        return self.workspace.job(job.id)

    def agree(self, job: Job) -> Agreed:
        """Agree to a job and start it."""
        entries = agree_to(self.workspace, [job], PERSON)
        start_job(self.workspace, job.id, AGENT)
        return entries[-1].read_as(Agreed)

    def finish(self, job: Job) -> Completion:
        """Do the work and complete the job."""
        self.write("src/done.txt", "The parser reads every line of the log.\n")
        return complete(self.workspace, job.id, AGENT)

    def last_run(self, job: Job) -> CommandRun:
        entries = self.workspace.ledger.read(job.id).entries
        return next(entry.content for entry in reversed(entries) if isinstance(entry.content, CommandRun))


def outcome(checkout: Checkout, job: Job) -> tuple[bool, str, list[str]]:
    """Whether the job is done, and what its last run recorded: what a person has to decide, and the files outside."""
    done = checkout.finish(job).done
    run = checkout.last_run(job)
    assert run.room is not None
    return done, run.room.needs, run.room.outside


def room_of(checkout: Checkout, job: Job) -> RoomRun:
    """The room of the last run."""
    room = checkout.last_run(job).room
    assert room is not None
    return room
