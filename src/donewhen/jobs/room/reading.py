"""Reads what a job's room is made of at one moment: the agreed files, the files on disk, and the plan of both runs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from donewhen.foundation.git_objects import TreeFile, object_name
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.agreed_tree import AgreedFiles, agreed_files
from donewhen.jobs.room.basis import RoomBasis, basis_of
from donewhen.jobs.room.blobs import Blobs, DiskBlobs, SeveralBlobs, StoredBlobs
from donewhen.jobs.room.disk_tree import DiskTree, read_disk
from donewhen.jobs.room.done_work import files_of_done_jobs
from donewhen.jobs.room.ignore_rules import agreed_ignore_rules
from donewhen.jobs.room.manifests import only_dependencies_differ
from donewhen.jobs.room.names import matches_pattern
from donewhen.jobs.room.room_plan import RoomPlan, plan_room
from donewhen.jobs.room.upstream import UpstreamFiles, upstream_files
from donewhen.jobs.room.work_area import JudgingFiles, WorkArea, judging_files


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

    def is_writable(self, name: str) -> bool:
        """Whether a check may write to a file: it is part of the work."""
        return self.judges.kind_of(name, self.area) == "work"

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
    test_patterns: Collection[str] = (),
    fetch: bool = False,
) -> Iterator[RoomReading | None]:
    """Read what the rooms of a job are made of; None if its checks run in the work tree. With ``fetch``, upstream
    changes are compared with the server."""
    basis = basis_of(workspace, job) if basis is None else basis
    if basis is None:
        yield None
        return
    with agreed_files(workspace, basis.tree) as agreed:
        place = agreed.place
        area = basis.area(place.inside)
        present = basis.present(place.inside)

        def wanted(name: str) -> bool:
            return area.is_output(name) or any(matches_pattern(name, pattern) for pattern in present)

        with agreed_ignore_rules(agreed) as ignored:
            disk = read_disk(
                place.top,
                agreed.files,
                agreed.folders,
                ignored=ignored,
                is_generated=lambda name: place.is_generated(workspace, name),
                wanted=wanted,
                like=agreed.like,
            )
        judges = judging_files(
            place.inside,
            agreed.files,
            agreed.folders,
            basis.named(place.inside),
            collected=collected,
            test_patterns=[*test_patterns],
            installed=installed_names(place.top, disk.environments),
        )
        # The disk first: what is not in the repository would cost a git process for each file.
        blobs = SeveralBlobs(DiskBlobs(str(place.top)), agreed.blobs, StoredBlobs(workspace.folder / "state" / "tree"))

        def plan_with(files: AgreedFiles) -> RoomPlan:
            return _plan(files, disk, area, judges, basis, present)

        plan = plan_with(agreed)
        if plan.two_runs and (done := files_of_done_jobs(workspace, job, plan, judges)):
            agreed = replace(agreed, files={**agreed.files, **done})
            plan = plan_with(agreed)
        upstream = None
        if plan.two_runs and place.has_git:
            upstream = upstream_files(workspace, basis.tree, agreed, plan, fetch=fetch)
            if upstream is not None:
                agreed = replace(agreed, files=upstream.files, committed=upstream.files)
                plan = plan_with(agreed)
        yield RoomReading(basis, agreed, disk, plan, area, judges, blobs, upstream)


def installed_names(top: Path, environments: Collection[str]) -> frozenset[str]:
    """The top-level names that the packages in virtual environments have."""
    names: set[str] = set()
    for environment in environments:
        for folder in (top / environment).glob("lib/python3*/site-packages"):
            with suppress(OSError):
                names |= {entry.partition(".")[0].partition("-")[0] for entry in os.listdir(folder)}  # noqa: PTH208
    return frozenset(names)


def _plan(
    agreed: AgreedFiles,
    disk: DiskTree,
    area: WorkArea,
    judges: JudgingFiles,
    basis: RoomBasis,
    present: Collection[str],
) -> RoomPlan:
    top = agreed.place.top
    files = dict(disk.files)
    agreed_present: dict[str, TreeFile] = {}
    for name, file in disk.files.items():
        # Ignored files that were agreed to be there have the agreed content, or they are not there.
        is_present = any(matches_pattern(name, pattern) for pattern in present)
        if is_present and name not in agreed.files and basis.tree.present.get(name) == file.blob:
            agreed_present[name] = file
    return plan_room(
        {**agreed.files, **agreed_present},
        files,
        area,
        judges,
        accepted=basis.accepted,
        leading_out=disk.leading_out,
        only_dependencies=lambda name: _only_dependencies(top, agreed, name),
        is_same=lambda name: is_same_in_checkout(top, name, agreed.files.get(name)),
    )


def _only_dependencies(top: Path, agreed: AgreedFiles, name: str) -> bool:
    before = next(iter([*agreed.blobs.contents([(name, agreed.files[name].blob)])]))
    try:
        return only_dependencies_differ(name.casefold(), before, (top / name).read_bytes())
    except OSError:
        return False


def is_same_in_checkout(top: Path, name: str, agreed: TreeFile | None) -> bool:
    """Whether a text file differs from the agreed one in its line ends only, which git changes in a checkout."""
    if agreed is None:
        return False
    try:
        content = (top / name).read_bytes()
    except OSError:
        return False
    if b"\r\n" not in content or b"\0" in content[:8000]:
        return False
    return object_name(content.replace(b"\r\n", b"\n"), "blob", agreed.blob) == agreed.blob
