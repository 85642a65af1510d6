"""The files that a completed job was built on and made, as its completion records them, and how they differ now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from donewhen.foundation.errors import ConfigError
from donewhen.jobs.contract.inputs import (
    MISSING,
    DeclaresFiles,
    declared_manifest,
    expand_path,
    has_content,
    output_manifest,
    upstream_manifest,
)
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Agreed, Completed, Started
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import failed_again

_BEGINNING = (Started, Agreed)


class RecordedFiles(NamedTuple):
    """The files that a completed job was built on and those that it made, with their hashes at that time."""

    upstream: Mapping[str, str | None]
    declared: Mapping[str, str | None]
    outputs: Mapping[str, str | None] = {}
    at: str = ""
    """The time of the completion."""
    failed_again: bool = False
    """Whether a check has failed since."""


@dataclass(frozen=True)
class MadeOutput:
    """An output as a job has made it."""

    at: str
    content: str | None
    before: frozenset[str | None]
    """What it was when the job began. Who has begun with the output of another was later, whatever the clocks say."""


def changed_since(
    workspace: Workspace,
    job: DeclaresFiles,
    completed: RecordedFiles,
    find: Callable[[str], DeclaresFiles] | None = None,
) -> tuple[str, ...]:
    """The declared inputs and upstream outputs that have changed since the job was completed, except what it made of
    them itself: that counts as its output."""
    changed = (
        *_differing(workspace, completed.upstream, upstream_manifest(workspace, job, find).files),
        *_differing(workspace, completed.declared, declared_manifest(workspace, job).files),
    )
    return tuple(name for name in changed if name not in completed.outputs)


def files_at(completed: Entry | None, entries: Sequence[Entry]) -> RecordedFiles | None:
    """What a job was built on, and what it made, according to its completion."""
    if completed is None:
        return None
    completion = completed.read_as(Completed)
    failed = bool(failed_again(entries, completed))
    return RecordedFiles(completion.upstream, completion.declared, completion.outputs or {}, completed.at, failed)


def outputs_made(completed: Entry | None, entries: Sequence[Entry]) -> dict[str, MadeOutput]:
    """The outputs of a job as it has made them."""
    recorded = files_at(completed, entries)
    if recorded is None:
        return {}
    before = [entry.content.outputs or {} for entry in entries if isinstance(entry.content, _BEGINNING)]
    return {
        path: MadeOutput(recorded.at, value, frozenset(outputs.get(path) for outputs in before) - {None, MISSING})
        for path, value in recorded.outputs.items()
    }


def changed_outputs(workspace: Workspace, job: DeclaresFiles, completed: RecordedFiles) -> dict[str, str]:
    """The outputs that are not as they were when the job was completed, with their hash now. Other files that have
    come into an output folder since don't count."""
    now = output_manifest(workspace, job).files if completed.outputs else {}
    return {
        name: now.get(name, MISSING)
        for name, value in sorted(completed.outputs.items())
        if value != MISSING and now.get(name, MISSING) != value and not has_content(workspace.root / name, value)
    }


def names_of_outputs(workspace: Workspace, job: Job) -> frozenset[str]:
    """The files that a job declares as its outputs, by name."""
    names: set[str] = set()
    for output in job.outputs:
        # The gates report paths that leave the project.
        with suppress(ConfigError):
            names.update(name for name, _ in expand_path(workspace, job, output, "outputs"))
    return frozenset(names)


def _differing(workspace: Workspace, before: Mapping[str, str | None], now: Mapping[str, str]) -> tuple[str, ...]:
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return tuple(name for name in names if not (name in before and has_content(workspace.root / name, before[name])))
