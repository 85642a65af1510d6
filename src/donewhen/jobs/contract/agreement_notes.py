"""What a person should know before agreeing to a job, although it does not prevent it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.process import split_command
from donewhen.jobs.contract.inputs import locate_path
from donewhen.jobs.ledger.evidence_levels import NEEDED
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.own_commands import checking_commands
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.projection import typed_fields

_LEVEL = re.compile(r"\bneeds:[ \t]*[\w-]{1,20}\Z", re.IGNORECASE)
"""A last line that looks like the level of evidence that is needed, and is none."""
_FILE_NAME = re.compile(r"[^\s:=-][^\s:=]*\.[A-Za-z]{1,5}")


def agreement_notes(workspace: Workspace, job: Job) -> Iterator[str]:
    """What is unusual about a job that nobody has agreed to yet."""
    typed = typed_claims(workspace, job)
    if typed:
        says = ", ".join(f"{name}: {one_line(str(value), 40)}" for name, value in typed.items())
        yield f"its plan already says {says}; that was typed, so it will be removed and counts for nothing"
    for criterion in job.criteria:
        if (level := _LEVEL.search(criterion.text)) is not None:
            yield f"{criterion.id} says {level[0]!r}, which is part of its text: the levels are {', '.join(NEEDED)}"
    made = set()
    for output in job.outputs:
        with suppress(DonewhenError):
            made.add(locate_path(workspace, job, output, "outputs"))
    for name in dict.fromkeys(_files_in_commands(job)):
        path = workspace.root / name
        if path not in made and not path.exists():
            yield f"{name} does not exist yet, so whoever does the job also writes what checks it"


def typed_claims(workspace: Workspace, job: Job) -> dict[str, Value]:
    """What a plan says has happened, although nothing is recorded yet."""
    if workspace.ledger.read(job.id).entries:
        return {}
    fields = job.document.fields
    return {name: fields.get(name) for name in typed_fields(fields)}


def _files_in_commands(job: Job) -> Iterator[str]:
    """The words of commands that are names of files in the project."""
    commands = [criterion.check.argv for criterion in job.criteria if criterion.check is not None]
    for command in checking_commands(job.truth_required_commands):
        with suppress(DonewhenError):
            commands.append(split_command(command))
    for argv in commands:
        yield from (word for word in argv[1:] if _FILE_NAME.fullmatch(word) and not word.startswith("/"))
