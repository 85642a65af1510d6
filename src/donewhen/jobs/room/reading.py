"""Reads what a job's room is made of at one moment: the agreed files, the files on disk, and the plan of both runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath

from donewhen.config.agent_runtimes import LOCAL_HOOK_FILES, PROJECT_HOOK_FILES, PROJECT_HOOK_SCRIPTS
from donewhen.config.loader import CONFIG_FILE
from donewhen.foundation.executables import safe_path
from donewhen.foundation.files import read_whole
from donewhen.foundation.git_objects import LINK, TreeFile, object_name
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.agreed_tree import AgreedFiles, Place, agreed_files
from donewhen.jobs.room.basis import RoomBasis, basis_of
from donewhen.jobs.room.blobs import Blobs, DiskBlobs, SeveralBlobs, StoredBlobs
from donewhen.jobs.room.built_files import built_files
from donewhen.jobs.room.checkout_forms import CheckedOut, SealedFilters, checked_out
from donewhen.jobs.room.disk_tree import DiskTree, read_disk
from donewhen.jobs.room.done_work import files_of_done_jobs
from donewhen.jobs.room.ignore_rules import agreed_ignore_rules
from donewhen.jobs.room.manifests import only_dependencies_differ
from donewhen.jobs.room.names import matches_pattern
from donewhen.jobs.room.nested_commands import with_nested
from donewhen.jobs.room.room_plan import RoomPlan, Tree, plan_room
from donewhen.jobs.room.sparse import left_out_of_checkout
from donewhen.jobs.room.test_data import data_of_tests
from donewhen.jobs.room.upstream import UpstreamFiles, upstream_files
from donewhen.jobs.room.work_area import JudgingFiles, WorkArea, judging_files
from donewhen.test_reports.collected_files import PYTEST_SETTINGS, collected_patterns
from donewhen.test_reports.test_runners import runner_of


@dataclass(frozen=True)
class RoomReading:
    """Everything that two rooms are made from. Contents can be read while the context of ``read_rooms`` is open."""

    basis: RoomBasis
    agreed: AgreedFiles
    disk: DiskTree
    plan: RoomPlan
    area: WorkArea
    judges: JudgingFiles = field(repr=False)
    blobs: Blobs = field(repr=False)
    upstream: UpstreamFiles | None = None
    """The later commit of the agreed branch that the files come from; None if it is the agreed one."""
    notes: tuple[str, ...] = ()
    """Why some files can't be compared with the agreed ones."""

    def is_writable(self, name: str) -> bool:
        """Whether a check may write to a file: it is part of the work."""
        return self.area.has(name) and self.judges.kind_of(name, self.area) == "work"

    @property
    def present(self) -> Mapping[str, TreeFile]:
        """The ignored files on disk that were agreed to be there, with the content that they had then."""
        return agreed_present(self.disk, self.agreed, self.basis)

    @property
    def agreed_tree(self) -> Tree:
        """Everything as it was agreed."""
        return {**self.agreed.files, **self.present}

    @property
    def watched(self) -> Tree:
        """The files on which the checks depend: all but new files outside the work area that judge nothing, such as a
        note or a log."""
        idle = {
            change.name
            for change in self.plan.changes
            if change.how == "added" and change.kind == "outside" and not self.judges.judges(change.name)
        }
        return {name: file for name, file in self.plan.whole.items() if name not in idle}

    @property
    def commit(self) -> str | None:
        """The commit whose files the rooms have."""
        return self.basis.tree.commit if self.upstream is None else self.upstream.commit


@contextmanager
def read_rooms(
    workspace: Workspace,
    job: Job,
    *,
    basis: RoomBasis | None = None,
    collected: Collection[str] = (),
    fetch: bool = False,
) -> Iterator[RoomReading | None]:
    """Read what the rooms of a job are made of; None if its checks run in the work tree. With ``fetch``, upstream
    changes are compared with the server."""
    basis = basis_of(workspace, job) if basis is None else basis
    if basis is None:
        yield None
        return
    with agreed_files(workspace, basis.tree, job) as committed, ExitStack() as stack:
        place = committed.place
        area = basis.area(place.inside)
        present = basis.present(place.inside)

        def wanted(name: str) -> bool:
            return area.is_output(name) or any(matches_pattern(name, pattern) for pattern in present)

        with agreed_ignore_rules(committed) as ignored:
            disk = read_disk(
                place.top,
                committed.files,
                committed.folders,
                ignored=ignored,
                is_generated=place.record_of_others(workspace, job),
                wanted=wanted,
                like=committed.like,
            )
        judges = judging_files(
            place.inside,
            committed.files,
            committed.folders,
            with_nested(
                basis.named(place.inside),
                place.inside,
                committed.files,
                lambda name: _content(committed, name),
            ),
            collected=collected,
            test_patterns=patterns_of_tests(committed, basis),
            installed=installed_names(place.top, disk.environments, basis.commands),
            built=built_files(place.inside, committed.files, lambda name: _content(committed, name)),
        )
        filters = SealedFilters(basis.tree.filters, safe_path(workspace.root))

        is_sealed = sealed_by_project(workspace, place)

        def in_checkout(files: AgreedFiles) -> CheckedOut:
            return checked_out(files, disk, filters, stack)

        def plan_with(files: AgreedFiles, form: CheckedOut) -> RoomPlan:
            return _plan(files, form, disk, area, judges, basis, is_sealed)

        form = in_checkout(committed)
        agreed = form.agreed
        plan = plan_with(agreed, form)
        if data := data_of_tests(plan, judges, area, committed.files, partial(_contents, committed)):
            judges = replace(judges, collected=judges.collected | data)
            plan = plan_with(agreed, form)
        done: dict[str, TreeFile] = {}
        if plan.two_runs and (done := files_of_done_jobs(workspace, job, plan, judges)):
            agreed = replace(agreed, files={**agreed.files, **done})
            plan = plan_with(agreed, form)
        upstream = None
        if plan.two_runs and place.has_git:
            upstream = upstream_files(workspace, basis.tree, job, agreed, plan, in_checkout, fetch=fetch)
            if upstream is not None:
                files = upstream.files
                form = in_checkout(replace(committed, files=files, committed=files, submodules=upstream.submodules))
                agreed = replace(form.agreed, files={**form.agreed.files, **done})
                plan = plan_with(agreed, form)
        # The disk first: what is not in the repository would cost a git process for each file.
        blobs = SeveralBlobs(DiskBlobs(str(place.top)), agreed.blobs, StoredBlobs(workspace.folder / "state" / "tree"))
        yield RoomReading(basis, agreed, disk, plan, area, judges, blobs, upstream, form.notes)


def _content(agreed: AgreedFiles, name: str) -> bytes:
    return next(iter([*agreed.blobs.contents([(name, agreed.files[name].blob)])]))


def _contents(agreed: AgreedFiles, names: Iterable[str]) -> Iterator[bytes]:
    files = [(name, agreed.files[name].blob) for name in names if agreed.files[name].mode != LINK]
    yield from agreed.blobs.contents(files)


def patterns_of_tests(agreed: AgreedFiles, basis: RoomBasis) -> tuple[str, ...]:
    """Patterns of the files from which the commands collect tests, by the agreed settings."""
    runners = [(runner_of(command), command) for command in basis.commands if command]
    names = [name for name in agreed.files if name.rpartition("/")[2] in PYTEST_SETTINGS] if runners else []
    contents = agreed.blobs.contents([(name, agreed.files[name].blob) for name in names])
    settings = {name: text.decode("utf-8", "replace") for name, text in zip(names, contents, strict=True)}
    found = (pattern for runner, words in runners for pattern in collected_patterns(runner, words, settings))
    return tuple(dict.fromkeys(found))


def sealed_by_project(workspace: Workspace, place: Place) -> Callable[[str], bool]:
    """Whether the project's own agreement seals a file, by what it says: settings, hooks and missions. They are in the
    room as they were committed."""
    missions = f"{PurePosixPath(workspace.settings().judge.missions)}/"
    names = frozenset((CONFIG_FILE, *PROJECT_HOOK_FILES, *PROJECT_HOOK_SCRIPTS, *LOCAL_HOOK_FILES))

    def is_sealed(name: str) -> bool:
        inner = name.removeprefix(place.inside)
        return inner in names or inner.startswith(missions)

    return is_sealed


def installed_names(top: Path, environments: Collection[str], commands: Iterable[Sequence[str]] = ()) -> frozenset[str]:
    """The top-level names that packages have: in virtual environments, and beside the interpreters of commands."""
    programs = dict.fromkeys(word for command in commands for word in command[:2])
    found = (shutil.which(word, path=safe_path(top)) for word in programs if "python" in word)
    prefixes = [Path(program).parent.parent for program in found if program is not None]
    names: set[str] = set()
    for prefix in (*(top / environment for environment in environments), *prefixes):
        for folder in prefix.glob("lib/python3*/*-packages"):
            with suppress(OSError):
                names |= {entry.partition(".")[0].partition("-")[0] for entry in os.listdir(folder)}  # noqa: PTH208
    return frozenset(names)


def _plan(
    agreed: AgreedFiles,
    form: CheckedOut,
    disk: DiskTree,
    area: WorkArea,
    judges: JudgingFiles,
    basis: RoomBasis,
    is_sealed: Callable[[str], bool],
) -> RoomPlan:
    top = agreed.place.top
    files = {name: file for name, file in disk.files.items() if name in agreed.files or not is_sealed(name)}
    return plan_room(
        {**agreed.files, **agreed_present(disk, agreed, basis)},
        {**files, **left_out_of_checkout(agreed, disk.files)},
        area,
        judges,
        accepted=basis.accepted,
        leading_out=disk.leading_out,
        only_dependencies=lambda name: _only_dependencies(top, agreed, name),
        is_same=lambda name: (
            is_sealed(name) or name in form.unmodified or is_same_in_checkout(top, name, agreed.files.get(name))
        ),
    )


def agreed_present(disk: DiskTree, agreed: AgreedFiles, basis: RoomBasis) -> dict[str, TreeFile]:
    """Ignored files that were agreed to be there have the agreed content, or they are not there."""
    patterns = basis.present(agreed.place.inside)
    found: dict[str, TreeFile] = {}
    for name, blob in basis.tree.present.items():
        file = disk.files.get(name)
        is_agreed = file is not None and file.blob == blob and name not in agreed.files
        if file is not None and is_agreed and any(matches_pattern(name, pattern) for pattern in patterns):
            found[name] = file
    return found


def _only_dependencies(top: Path, agreed: AgreedFiles, name: str) -> bool:
    before = next(iter([*agreed.blobs.contents([(name, agreed.files[name].blob)])]))
    try:
        return only_dependencies_differ(name.casefold(), before, read_whole(top / name))
    except OSError:
        return False


def is_same_in_checkout(top: Path, name: str, agreed: TreeFile | None) -> bool:
    """Whether a text file differs from the agreed one in its line ends only, which git changes in a checkout."""
    if agreed is None:
        return False
    try:
        content = read_whole(top / name)
    except OSError:
        return False
    if b"\r\n" not in content or b"\0" in content[:8000]:
        return False
    return object_name(content.replace(b"\r\n", b"\n"), "blob", agreed.blob) == agreed.blob
