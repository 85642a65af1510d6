"""A room: a temporary folder with files of commits, the installed environments, and a repository of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from donewhen.config.state_folder import FOLDER
from donewhen.foundation.git import CommittedFile
from donewhen.foundation.git_objects import FILE, LINK, TreeFile, folders_of
from donewhen.foundation.plain_text import join_limited
from donewhen.jobs.contract.inputs import is_own_file
from donewhen.jobs.evidence.conditions import command_environment
from donewhen.jobs.evidence.placed_runs import RoomPlace, run_in_place
from donewhen.jobs.evidence.room_session import PrepareFailedError
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.building import changed_files, remove_files
from donewhen.jobs.room.disk_tree import blob_of_file
from donewhen.jobs.room.judging_names import is_test
from donewhen.jobs.room.names import matches_pattern
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.cases import CaseReason
from donewhen.jobs.verifying.checkout_state import (
    copy_ignored_outputs,
    copy_present,
    left_out_names,
    link_environments,
    uncommitted_names,
)
from donewhen.jobs.verifying.checkouts import project_in
from donewhen.jobs.verifying.judging_files import JudgingFiles
from donewhen.jobs.verifying.laying_out import clear_path, init_repository, remove_links_out, write_files
from donewhen.jobs.verifying.work_outputs import WorkOutputs

_MAX_LISTED = 10


@dataclass
class Room:
    """A folder in which the checks run, and what of the commit or the checkout it lacks or has."""

    base: Base
    folder: Path
    workspace: Workspace
    files: dict[str, CommittedFile]
    """The files that it has, without links that lead out."""
    laid_out: dict[str, TreeFile] = field(repr=False)
    """The same with the names of their contents on disk, and what was built; without those that donewhen writes."""
    is_work: Callable[[str], bool]
    """Whether a check may change a file."""
    environments: tuple[str, ...] = ()
    links_out: tuple[str, ...] = ()
    """Links that lead out of the repository; they are absent."""
    not_fetched: tuple[str, ...] = ()
    """Files whose content Git LFS has not fetched; their pointers are in their place."""
    copied: tuple[str, ...] = ()
    """Agreed outputs that git ignores, copied from the checkout."""
    missing: tuple[str, ...] = ()
    """Agreed ignored files that the checkout lacks, or has with another content."""
    built: dict[str, bytes] = field(default_factory=dict, repr=False)
    """Files that no commit has: copied ones, and what the commands below wrote."""
    commands: tuple[tuple[str, ...], ...] = ()
    """Agreed commands that build what the checks need."""
    kept: tuple[str, ...] = ()
    """The patterns of what they build."""
    _written: tuple[str, ...] = ()

    def run(self, argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> ReportedRun:
        """Run a command on the files as they were laid out, and remove what it wrote."""
        self.put_back()
        run = self._run(argv, environment, timeout)
        self._written = tuple(name for name in self.put_back() if not self.is_work(name))
        return run

    def prepare(self) -> None:
        """Run the commands that build what the checks need, once, and keep what they wrote at agreed paths."""
        commands, self.commands = self.commands, ()
        for name in self.built if commands else ():
            # Builders write only what is older than its sources.
            os.utime(self.folder / name, (0, 0))
        settings = self.workspace.settings().jobs
        for argv in commands:
            run = self._run(argv, command_environment(self.workspace), settings.command_timeout)
            if not run.result.succeeded:
                raise PrepareFailedError(argv, run)
        if commands:
            found = [name for name, is_folder in self._unknown() if not is_folder]
            for name in (*found, *self.built):
                if any(matches_pattern(name, pattern) for pattern in self.kept):
                    self.keep(name)
            self.put_back()

    def written(self) -> tuple[str, ...]:
        """The files that the last command has changed, and that are not work."""
        return self._written

    def put_back(self) -> list[str]:
        """Restore the folder, and return the names of the files that differed."""
        changed = changed_files(self.folder, self.laid_out)
        self._remove_unknown()
        remove_files(self.folder, changed)
        write_files(self.base, self.folder, [self.files[name] for name in changed if name in self.files])
        for name in changed:
            if name not in self.files:
                clear_path(self.folder, name).write_bytes(self.built[name])
        return changed

    def test_sources(self) -> dict[str, str]:
        """The Python code of the tests, by names relative to the project."""
        inside = self.base.inside
        names = [name for name, file in self.laid_out.items() if name.endswith(".py") and file.mode != LINK]
        inner = [name.removeprefix(inside) for name in names if name.startswith(inside)]
        root = self.workspace.root
        return {name: (root / name).read_text("utf-8", "replace") for name in inner if is_test(name)}

    def keep(self, name: str) -> None:
        """Keep a file that no commit has."""
        path = self.folder / name
        if path.is_file() and not path.is_symlink():
            self.built[name] = path.read_bytes()
            self.laid_out[name] = TreeFile(FILE, blob_of_file(str(path), self.base.head))

    def _run(self, argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> ReportedRun:
        place = RoomPlace(self.workspace.root, self.base.top, self.workspace.root, self.folder)
        return run_in_place(place, argv, environment, timeout)

    def _remove_unknown(self) -> None:
        unknown = list(self._unknown())
        remove_files(self.folder, [name for name, is_folder in unknown if not is_folder])
        for name, _ in reversed([row for row in unknown if row[1]]):
            with suppress(OSError):
                (self.folder / name).rmdir()

    def _unknown(self) -> Iterator[tuple[str, bool]]:
        known = {*self.files, *self.laid_out}
        folders = folders_of(known)
        skipped = {".git", *self.environments, f"{self.base.inside}{FOLDER}"}
        for place, inner, names in os.walk(self.folder):
            prefix = "" if place == str(self.folder) else f"{Path(place).relative_to(self.folder).as_posix()}/"
            links = [name for name in inner if (Path(place) / name).is_symlink()]
            inner[:] = [name for name in inner if name not in links and f"{prefix}{name}" not in skipped]
            for name in (f"{prefix}{last}" for last in (*names, *links)):
                own = is_own_file(self.workspace, self.base.inside, name)
                if name not in known and name not in skipped and not own:
                    yield name, False
            yield from ((f"{prefix}{name}", True) for name in inner if f"{prefix}{name}" not in folders)


def make_room(
    base: Base,
    live: Workspace,
    folder: Path,
    files: Mapping[str, CommittedFile],
    judges: JudgingFiles,
    outputs: WorkOutputs,
    *,
    is_work: Callable[[str], bool] | None = None,
    present: Mapping[str, str] | None = None,
) -> Room:
    """Write the files and what is installed to a folder; nothing in it leads to other files of the checkout.

    Without ``is_work``, a check must not change any file of a commit. ``present`` are ignored files of the checkout
    that were agreed to be there, with the names of their contents.
    """
    init_repository(base, folder, base.commit if files == base.files else base.head)
    written = write_files(base, folder, files.values())
    environments = link_environments(base, folder, judges.steers)
    copied = copy_ignored_outputs(base, folder, outputs)
    found, missing = copy_present(base, folder, present or {})
    links_out = remove_links_out(folder, files, environments)
    workspace = project_in(base, live, folder)
    links = frozenset(name for name, file in files.items() if file.mode == LINK)
    kept = {name: file for name, file in files.items() if name not in links_out and _is_there(folder, name, links)}
    like = base.head
    laid_out = {
        name: TreeFile(file.mode, blob_of_file(str(folder / name), like) if name in written.fetched else file.blob)
        for name, file in kept.items()
        if not is_own_file(workspace, base.inside, name)
    }
    room = Room(
        base,
        folder,
        workspace,
        kept,
        laid_out,
        (lambda name: name not in files) if is_work is None else is_work,
        environments,
        tuple(links_out),
        written.not_fetched,
        copied,
        missing,
    )
    for name in (*copied, *found):
        room.keep(name)
    return room


def _is_there(folder: Path, name: str, links: Collection[str]) -> bool:
    """Whether a file was not replaced by a folder, or by a link on the way, of the same name."""
    path = folder / name
    if links and any(str(parent) in links for parent in PurePosixPath(name).parents):
        return False
    return path.is_symlink() or path.is_file()


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
            room.missing if room else (),
            "Agreed ignored files are absent, because this checkout does not have them with the agreed content: {}.",
            "Provide them before verifying, or agree again with the files as they are now: donewhen agree",
        ),
        (
            left_out_names(base, [*room.environments, *room.copied]) if room and not passed else (),
            "Ignored files are in no commit and were left out: {}.",
            "If a check needs one, commit it, or let a person agree to it as an output.",
        ),
    ):
        if names:
            yield CaseReason(FindingCode.GIT, sentence.format(join_limited(names, _MAX_LISTED)), "", next_step)
