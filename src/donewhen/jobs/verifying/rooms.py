"""A room: a temporary folder with files of commits, the installed environments, and a repository of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from donewhen.foundation.git import CommittedFile
from donewhen.foundation.plain_text import join_limited
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.cases import CaseReason
from donewhen.jobs.verifying.checkout_state import (
    copy_ignored_outputs,
    left_out_names,
    link_environments,
    uncommitted_names,
)
from donewhen.jobs.verifying.checkouts import project_in
from donewhen.jobs.verifying.judging_files import JudgingFiles
from donewhen.jobs.verifying.laying_out import init_repository, remove_links_out, write_files
from donewhen.jobs.verifying.work_outputs import WorkOutputs

_MAX_LISTED = 10


@dataclass(frozen=True)
class Room:
    """A folder in which the checks run, and what of the commit or the checkout it lacks or has."""

    workspace: Workspace
    environments: tuple[str, ...]
    links_out: tuple[str, ...]
    """Links that lead out of the repository; they are absent."""
    not_fetched: tuple[str, ...]
    """Files whose content Git LFS has not fetched; their pointers are in their place."""
    copied: tuple[str, ...]
    """Agreed outputs that git ignores, copied from the checkout."""


def make_room(
    base: Base,
    live: Workspace,
    folder: Path,
    files: Mapping[str, CommittedFile],
    judges: JudgingFiles,
    outputs: WorkOutputs,
) -> Room:
    """Write the files and what is installed to a folder; nothing in it leads to other files of the checkout."""
    init_repository(base, folder, base.commit if files is base.files else base.head)
    not_fetched = write_files(base, folder, files.values())
    environments = link_environments(base, folder, judges.steers)
    copied = copy_ignored_outputs(base, folder, outputs)
    links_out = remove_links_out(folder, files, environments)
    return Room(project_in(base, live, folder), environments, tuple(links_out), not_fetched, copied)


def room_notes(base: Base, room: Room | None, *, passed: bool) -> Iterator[CaseReason]:
    """Yield what the checkout has and the commit has not, and what of the commit could not be used."""
    for names, sentence, next_step in (
        (uncommitted_names(base), "Not committed, so not judged: {}.", "git add -A && git commit"),
        (
            base.unreadable,
            "Submodules whose commit is not here are absent: {}.",
            "git submodule update --init --recursive",
        ),
        (room.links_out if room else (), "Links that lead out of the repository are absent: {}.", None),
        (room.not_fetched if room else (), "Content that Git LFS has not fetched is absent: {}.", "git lfs pull"),
        (room.copied if room else (), "Agreed outputs that git ignores were taken from this checkout: {}.", None),
        (
            left_out_names(base, [*room.environments, *room.copied]) if room and not passed else (),
            "Ignored files are in no commit and were left out: {}.",
            "If a check needs one, commit it, or let a person agree to it as an output.",
        ),
    ):
        if names:
            yield CaseReason(FindingCode.GIT, sentence.format(join_limited(names, _MAX_LISTED)), "", next_step)
