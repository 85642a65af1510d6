"""What may come from the branch: the agreed work areas of the jobs that are not done on the base yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from donewhen.foundation.git import CommittedFile
from donewhen.foundation.git_objects import TreeFile, folders_of
from donewhen.jobs.contract.agreement import Seal
from donewhen.jobs.contract.inputs import is_own_file
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.basis import RoomBasis, accepted_changes, basis_from_seal
from donewhen.jobs.room.judging_names import NamedFile
from donewhen.jobs.room.manifests import only_dependencies_differ
from donewhen.jobs.room.nested_commands import with_nested
from donewhen.jobs.room.reading import installed_names
from donewhen.jobs.room.room_plan import RoomPlan, plan_room
from donewhen.jobs.room.work_area import JudgingFiles, WorkArea, judging_files
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.checkouts import Files, is_compiled


@dataclass(frozen=True)
class PlannedFiles:
    """The files of the strict folder: everything as on the base, except the work."""

    files: Files
    plan: RoomPlan
    area: WorkArea
    judges: JudgingFiles

    def is_work(self, name: str) -> bool:
        """Whether a check may change a file."""
        return self.judges.kind_of(name, self.area) == "work"

    @property
    def free(self) -> frozenset[str]:
        """The files whose tests may change."""
        agreed = (name for name in self.plan.agreed if self.area.tests_may_change(name))
        return self.plan.accepted | {*agreed}


def basis_on_base(
    contract: Workspace, branch: Workspace, job: Job, seal: Seal | None, known: Collection[str], policy: Policy
) -> RoomBasis | None:
    """What was agreed on the base about a job's files, with the changes that were accepted since: on the base, or on
    the branch by a key that the base names. None if it was agreed without a work area."""
    entries = contract.ledger.read(job.id).entries
    basis = None if seal is None else basis_from_seal(contract, job, seal, entries, policy)
    if basis is None or seal is None:
        return None
    signed = [entry for entry in branch.ledger.read(job.id).entries if _is_signed(entry, known)]
    return replace(basis, accepted={**basis.accepted, **accepted_changes(job.id, signed, seal.entry.seq, policy)})


def planned_files(
    base: Base,
    contract: Workspace,
    branch: Files,
    open_jobs: Sequence[RoomBasis],
    named: Iterable[Sequence[NamedFile]],
    *,
    collected: Collection[str],
    environments: Collection[str],
) -> PlannedFiles:
    """Decide for each file whether it comes from the base or from the branch. ``named`` are the files that the checks
    of all verified jobs name, ``collected`` further files that judge."""
    # What donewhen writes is no part of the work. It stays as on the base.
    own = {name for name in {*base.files, *branch} if is_own_file(contract, base.inside, name)}
    before = _tree(base.files, lambda name: name not in own and not is_compiled(name))
    after = _tree(branch, lambda name: name not in own)
    area = _joined([basis.area(base.inside) for basis in open_jobs], base.inside)
    judges = judging_files(
        base.inside,
        before,
        folders_of(before),
        with_nested(named, base.inside, before, base.content),
        collected=collected,
        installed=installed_names(base.top, environments),
    )
    accepted: dict[str, str] = {}
    for basis in open_jobs:
        accepted |= basis.accepted
    plan = plan_room(
        before,
        after,
        area,
        judges,
        accepted=accepted,
        only_dependencies=lambda name: _only_dependencies(base, name, branch),
    )
    files = {name: file for name, file in base.files.items() if name in own}
    planned = PlannedFiles(files, plan, area, judges)
    for name, file in plan.agreed.items():
        now = branch.get(name)
        # In a commit, the mode of a program is part of the work, too.
        mode = now.mode if now is not None and now.blob == file.blob and planned.is_work(name) else file.mode
        planned.files[name] = CommittedFile(name, mode, file.blob)
    return planned


def _is_signed(entry: Entry, known: Collection[str]) -> bool:
    # Anybody can write on the branch that a person or a CI run has accepted something.
    return entry.by.kind == "key" and entry.hash not in known


def _joined(areas: Sequence[WorkArea], inside: str) -> WorkArea:
    return WorkArea(
        inside,
        patterns=tuple(pattern for area in areas for pattern in area.patterns),
        outputs=tuple(output for area in areas for output in area.outputs),
        checked=tuple(path for area in areas for path in area.checked),
        may_change=tuple(pattern for area in areas for pattern in area.may_change),
    )


def _tree(files: Mapping[str, CommittedFile], has: Callable[[str], bool]) -> dict[str, TreeFile]:
    return {name: TreeFile(file.mode, file.blob) for name, file in files.items() if has(name)}


def _only_dependencies(base: Base, name: str, branch: Files) -> bool:
    before, after = base.content(name), base.content_of(branch.get(name))
    return before is not None and after is not None and only_dependencies_differ(name.casefold(), before, after)
