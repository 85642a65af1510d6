"""A room: a temporary folder with files of commits, the installed environments, and a repository of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from donewhen.config.state_folder import FOLDER
from donewhen.foundation.git import CommittedFile
from donewhen.foundation.git_objects import FILE, LINK, TreeFile, folders_of
from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.jobs.contract.inputs import is_own_file
from donewhen.jobs.evidence.placed_runs import RoomPlace, run_in_place
from donewhen.jobs.evidence.room_session import PrepareFailedError
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.evidence.trusted_runs import HELD, AgreedControls
from donewhen.jobs.ledger.entry_content import AgreedEnvironment
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.building import change_files, changed_files, lay_out, marks_of, remove_files, touched_files
from donewhen.jobs.room.building import link_environments as link_installed
from donewhen.jobs.room.built_files import BuiltFiles, age_files
from donewhen.jobs.room.confining import is_mounted
from donewhen.jobs.room.disk_tree import blob_of_file
from donewhen.jobs.room.judging_names import is_settings, is_test
from donewhen.jobs.room.moved_folders import watching_folders
from donewhen.jobs.room.names import matches_pattern
from donewhen.jobs.room.surroundings import Surroundings, surroundings_of
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.cases import CaseReason
from donewhen.jobs.verifying.checkout_state import (
    copy_ignored_outputs,
    copy_present,
    environments_for,
    left_out_names,
    uncommitted_names,
)
from donewhen.jobs.verifying.checkouts import project_in
from donewhen.jobs.verifying.judging_files import JudgingFiles
from donewhen.jobs.verifying.laying_out import clear_path, init_repository
from donewhen.jobs.verifying.room_content import RoomContent, room_content
from donewhen.jobs.verifying.room_reach import is_installed, reach_in_base
from donewhen.jobs.verifying.work_outputs import WorkOutputs

_MAX_LISTED = 10


@dataclass
class _Turn:
    """Which room a folder has the files of now."""

    room: Room | None = None


@dataclass
class Room:
    """A folder in which the checks run, and what of the commit or the checkout it lacks or has."""

    base: Base
    folder: Path
    workspace: Workspace
    content: RoomContent = field(repr=False)
    laid_out: dict[str, TreeFile] = field(repr=False)
    """The files that it has, and what was built; without those that donewhen writes."""
    is_work: Callable[[str], bool]
    """Whether a check may change a file."""
    judging: Callable[[str], bool] = lambda _: False
    """Whether a file judges the work."""
    environments: tuple[str, ...] = ()
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
    around: AgreedEnvironment | None = None
    """What these commands find around them."""
    memory: dict[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """Results of commands on these files, by everything else that they depend on."""
    probed: list[CaseReason] = field(default_factory=list, repr=False)
    """What probing the tests in it has shown."""
    turn: _Turn = field(default_factory=_Turn, repr=False)
    rules: BuiltFiles = field(default_factory=BuiltFiles, repr=False)
    """What `make` builds in it."""
    changed_names: tuple[str, ...] = ()
    """The files that the branch has changed."""
    controls: dict[tuple[str, ...], str] = field(default_factory=dict, repr=False)
    """What controls have said about commands here."""
    agreed: Room | None = field(default=None, repr=False)
    """The room without the work, with which controls are compared."""
    _changed: tuple[str, ...] = ()
    _failure: PrepareFailedError | None = None

    @property
    def files(self) -> Mapping[str, TreeFile]:
        return self.content.files

    def enter(self, is_work: Callable[[str], bool] | None = None) -> None:
        """Have the folder, which may have the files of another room, have those of this one."""
        if is_work is not None:
            self.is_work = is_work
        if self.turn.room is not self:
            self.put_back()

    def run(
        self,
        argv: Sequence[str],
        surroundings: Surroundings,
        timeout: float,
        changed: Mapping[str, bytes | None] | None = None,
    ) -> ReportedRun:
        """Run a command on the files as they were laid out, and remove what it wrote. ``changed`` are files that have
        another content meanwhile, or are missing."""
        self.put_back()
        change_files(self.folder, changed or {})
        marks = marks_of(self.folder, self.laid_out)
        with watching_folders(self.folder, sorted(folders_of(self.laid_out))) as moved:
            run = self._run(argv, surroundings, timeout)
        below = tuple(f"{name}/" for name in moved)
        # One that judges may not be another one even for a while.
        touched = [*touched_files(self.folder, marks), *(name for name in marks if name.startswith(below))]
        touched = [name for name in touched if self.judging(name)]
        self._changed = tuple(dict.fromkeys((*self.put_back(), *touched)))
        self.controls[tuple(argv)] = HELD if run.controls.held == HELD else run.controls.why
        if self.agreed is None:
            return run
        agreed = self.agreed

        def run_without() -> ReportedRun:
            # The rooms have the folder in turn.
            try:
                return agreed.run(argv, surroundings, timeout)
            finally:
                self.put_back()

        known = agreed.controls.get(tuple(argv), "")
        return AgreedControls(known, run_without, lambda name: self.is_work(f"{self.base.inside}{name}")).compare(run)

    def beside(self, agreed: Room) -> Room:
        """This room; its controls are compared with those of a room without the work."""
        self.agreed = None if agreed is self else agreed
        return self

    def prepare(self) -> None:
        """Run the commands that build what the checks need, once, and keep what they wrote at agreed paths."""
        self.enter()
        if self._failure is not None:
            raise self._failure
        commands, self.commands = self.commands, ()
        for name in self.built if commands else ():
            # Builders write only what is older than its sources.
            os.utime(self.folder / name, (0, 0))
        settings = self.workspace.settings().jobs
        for argv in commands:
            run = self._run(argv, surroundings_of(self.workspace, self.around), settings.command_timeout)
            if not run.result.succeeded:
                self._failure = PrepareFailedError(argv, run)
                raise self._failure
        if commands:
            found = [name for name, is_folder in self._unknown() if not is_folder]
            for name in (*found, *self.built):
                if any(matches_pattern(name, pattern) for pattern in self.kept):
                    self.keep(name)
            self.put_back()

    def written(self) -> tuple[str, ...]:
        """The files that the last command has changed, and that are not work."""
        return tuple(name for name in self._changed if not self.is_work(name))

    @property
    def is_untouched(self) -> bool:
        """Whether the last command has changed no file, whoever may change which."""
        return not self._changed

    def put_back(self) -> list[str]:
        """Restore the folder, and return the names of the files that differed."""
        # Before anything is compared or written: a link could lead to other files.
        remove_files(self.folder, self.environments)
        self._remove_unknown()
        changed = changed_files(self.folder, self.laid_out)
        remove_files(self.folder, changed)
        self._write([name for name in changed if name in self.files])
        for name in changed:
            if name not in self.files:
                clear_path(self.folder, name).write_bytes(self.built[name])
        for name in self.environments:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        link_installed(self.folder, self.base.top, self.environments, {})
        age_files(self.folder, self.changed_names, self.rules, self.laid_out)
        self.turn.room = self
        return changed

    def _write(self, names: Sequence[str]) -> None:
        lay_out(self.folder, {name: self.files[name] for name in names}, self.content.blobs, writable=lambda _: True)

    def test_sources(self) -> dict[str, str]:
        """The Python code of the tests, by names relative to the project."""
        self.enter()
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

    def _run(self, argv: Sequence[str], surroundings: Surroundings, timeout: float) -> ReportedRun:
        installed = is_mounted(surroundings) and is_installed(self.base, argv, self.environments)
        # Installed packages are in a room at the repository's own path only while a command runs.
        root = self.base.top / self.base.inside if installed else self.workspace.root
        place = RoomPlace(root, self.base.top, self.workspace.root, self.folder)
        reach = reach_in_base(self.base, argv, self.environments, surroundings)
        around = replace(surroundings, environments=self.environments, reach=reach)
        with self._mounting(around):
            return run_in_place(place, argv, around, timeout)

    @contextmanager
    def _mounting(self, surroundings: Surroundings) -> Iterator[None]:
        """Meanwhile, installed packages are where they have to be in a room at the repository's own path."""
        if not is_mounted(surroundings):
            yield
            return
        top = self.base.top
        remove_files(self.folder, self.environments)
        link_installed(self.folder, top, self.environments, {}, mounted=True)
        try:
            yield
        finally:
            remove_files(self.folder, self.environments)
            link_installed(self.folder, top, self.environments, {})

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
    filters: Mapping[str, str] | None = None,
    rules: BuiltFiles | None = None,
    beside: Room | None = None,
) -> Room:
    """Write the files and what is installed to a folder; nothing in it leads to other files of the checkout.

    Without ``is_work``, a check must not change any file of a commit. ``present`` are ignored files of the checkout
    that were agreed to be there, with the names of their contents; ``filters`` are the agreed commands of git's
    filters, ``rules`` those of agreed makefiles. ``beside`` is a room that takes turns with this one in its folder.
    """
    workspace = project_in(base, live, folder)

    def is_record(name: str) -> bool:
        return is_own_file(workspace, base.inside, name)

    forms = folder.with_name(f"{folder.name}-forms")
    content = room_content(base, live, forms, files, filters or {}, is_record)
    room = Room(
        base,
        folder,
        workspace,
        content,
        {name: file for name, file in content.files.items() if not is_record(name)},
        (lambda name: name not in files) if is_work is None else is_work,
        lambda name: judges.judges_on_base(name) or is_test(name) or is_settings(name),
        environments_for(base, content.files, judges.steers),
        turn=_Turn() if beside is None else beside.turn,
        rules=rules or BuiltFiles(),
        changed_names=tuple(name for name, file in files.items() if base.files.get(name) != file),
    )
    if beside is None:
        init_repository(base, folder, base.commit if files == base.files else base.head)
        lay_out(
            folder,
            {name: file for name, file in content.files.items() if name not in room.laid_out},
            content.blobs,
            writable=lambda _: True,
        )
    room.put_back()
    room.copied = copy_ignored_outputs(base, folder, outputs)
    found, room.missing = copy_present(base, folder, present or {})
    for name in (*room.copied, *found):
        room.keep(name)
    return room


def room_notes(base: Base, rooms: Sequence[Room], *, passed: bool) -> Iterator[CaseReason]:
    """Yield what the checkout has and the commit has not, and what of the commit could not be used."""

    def names_in(names_of: Callable[[Room], Iterable[str]]) -> list[str]:
        return sorted({name for room in rooms for name in names_of(room)})

    environments = names_in(lambda room: room.environments)
    copied = names_in(lambda room: room.copied)
    for names, sentence, next_step in (
        (uncommitted_names(base), "Not committed, so not judged: {}.", "git add -A && git commit"),
        (
            base.unreadable,
            "Submodules whose commit is not here are absent: {}.",
            "git submodule update --init --recursive",
        ),
        (names_in(lambda room: room.content.links_out), "Links that lead out of the repository are absent: {}.", None),
        (
            names_in(lambda room: room.content.forms.not_fetched),
            "Content that Git LFS has not fetched is absent: {}.",
            "git lfs pull",
        ),
        (copied, "Agreed outputs that git ignores were taken from this checkout: {}.", None),
        (
            names_in(lambda room: room.missing),
            "Agreed ignored files are absent, because this checkout does not have them with the agreed content: {}.",
            "Provide them before verifying, or agree again with the files as they are now: donewhen agree",
        ),
        (
            left_out_names(base, [*environments, *copied]) if rooms and not passed else (),
            "Ignored files are in no commit and were left out: {}.",
            "If a check needs one, commit it, or let a person agree to it as an output.",
        ),
    ):
        if names:
            yield CaseReason(FindingCode.GIT, sentence.format(join_limited(names, _MAX_LISTED)), "", next_step)
    yield from _filter_notes(rooms)
    yield from dict.fromkeys(note for room in rooms for note in room.probed)


def _filter_notes(rooms: Sequence[Room]) -> Iterator[CaseReason]:
    """Yield which filters could not be used, so that their files are as they are stored."""
    failed: dict[str, set[str]] = {}
    why: dict[str, str] = {}
    for unfiltered in (found for room in rooms for found in room.content.forms.unfiltered):
        failed.setdefault(unfiltered.filter, set()).update(unfiltered.names)
        why.setdefault(unfiltered.filter, unfiltered.why)
    for name, names in sorted(failed.items()):
        shown = one_line(name, 200)
        listed = join_limited(sorted(names), _MAX_LISTED)
        if not why[name]:
            message = (
                f"The filter {shown} is not part of the agreement, so these files are as they are committed: {listed}."
            )
            yield CaseReason(FindingCode.GIT, message, "", "Agree again where the filter is installed: donewhen agree")
        else:
            message = f"The filter {shown} failed here, so these files are as they are committed: {listed}. {why[name]}"
            yield CaseReason(
                FindingCode.GIT, message, "", "Install the filter, and unlock its files, before verifying."
            )
