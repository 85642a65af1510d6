"""What may come from the branch: the agreed work area of each job that is not done on the base yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from donewhen.foundation.git import CommittedFile
from donewhen.foundation.git_objects import TreeFile, folders_of
from donewhen.jobs.contract.agreement import Seal
from donewhen.jobs.contract.inputs import is_own_file
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.basis import RoomBasis, accepted_changes, basis_from_seal
from donewhen.jobs.room.built_files import built_files
from donewhen.jobs.room.done_work import files_made_by
from donewhen.jobs.room.judging_names import NamedFile
from donewhen.jobs.room.manifests import only_dependencies_differ
from donewhen.jobs.room.nested_commands import with_nested
from donewhen.jobs.room.reading import installed_names, patterns_of_tests
from donewhen.jobs.room.room_plan import RoomPlan, Tree, plan_room
from donewhen.jobs.room.test_data import data_of_tests
from donewhen.jobs.room.work_area import JudgingFiles, WorkArea, judging_files
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.checkouts import Files, is_compiled
from donewhen.jobs.verifying.room_content import committed_files


@dataclass(frozen=True)
class PlannedFiles:
    """The files of a strict folder: everything as on the base, except the work of one job and of those done before."""

    files: Files
    plan: RoomPlan
    area: WorkArea
    judges: JudgingFiles
    before: Tree
    """The files as they were before the work of the job."""

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


class Planner:
    """Decides for each file whether it comes from the base or from the branch, by the work area of one job."""

    def __init__(
        self,
        base: Base,
        contract: Workspace,
        branch: Files,
        *,
        collected: Collection[str],
        environments: Collection[str],
    ) -> None:
        """``collected`` are files that judge whatever they are named; ``environments`` hold installed packages."""
        # What donewhen writes is no part of the work. It stays as on the base.
        self._own = {name for name in {*base.files, *branch} if is_own_file(contract, base.inside, name)}
        self._base = base
        self._branch = branch
        self._before = _tree(base.files, lambda name: name not in self._own and not is_compiled(name))
        self._after = _tree(branch, lambda name: name not in self._own)
        self._folders = folders_of(self._before)
        self._collected = collected
        self._environments = environments
        self._read = cache(base.content)

    def plan(self, basis: RoomBasis, named: Iterable[Sequence[NamedFile]]) -> PlannedFiles:
        """The files for one job. ``named`` are the files that its checks name."""
        inside = self._base.inside
        judges = judging_files(
            inside,
            self._before,
            self._folders,
            with_nested(named, inside, self._before, self._read),
            collected=self._collected,
            test_patterns=patterns_of_tests(committed_files(self._base, self._before), basis),
            installed=installed_names(self._base.top, self._environments, basis.commands),
            built=built_files(inside, self._before, self._read),
        )
        return self._planned(self._before, basis, basis.area(inside), judges)

    def with_work_of_others(
        self, planned: PlannedFiles, basis: RoomBasis, made: Iterable[tuple[str, str]]
    ) -> PlannedFiles:
        """The same with the work of other jobs, which are names with the names of their contents."""
        others = files_made_by(made, planned.plan, planned.judges)
        if not others:
            return planned
        return self._planned({**self._before, **others}, basis, planned.area, planned.judges)

    def _planned(self, before: Tree, basis: RoomBasis, area: WorkArea, judges: JudgingFiles) -> PlannedFiles:
        plan = self._plan(before, basis, area, judges)
        data = data_of_tests(plan, judges, area, before, self._contents)
        if data:
            judges = replace(judges, collected=judges.collected | data)
            plan = self._plan(before, basis, area, judges)
        files = {name: file for name, file in self._base.files.items() if name in self._own}
        planned = PlannedFiles(files, plan, area, judges, before)
        for name, file in plan.agreed.items():
            now = self._branch.get(name)
            # In a commit, the mode of a program is part of the work, too.
            mode = now.mode if now is not None and now.blob == file.blob and planned.is_work(name) else file.mode
            files[name] = CommittedFile(name, mode, file.blob)
        return planned

    def _contents(self, names: Iterable[str]) -> Iterator[bytes]:
        return (self._read(name) or b"" for name in names if name in self._before)

    def _plan(self, before: Tree, basis: RoomBasis, area: WorkArea, judges: JudgingFiles) -> RoomPlan:
        return plan_room(
            before,
            self._after,
            area,
            judges,
            accepted=basis.accepted,
            only_dependencies=lambda name: _only_dependencies(self._base, name, self._branch),
        )


def _is_signed(entry: Entry, known: Collection[str]) -> bool:
    # Anybody can write on the branch that a person or a CI run has accepted something.
    return entry.by.kind == "key" and entry.hash not in known


def _tree(files: Mapping[str, CommittedFile], has: Callable[[str], bool]) -> dict[str, TreeFile]:
    return {name: TreeFile(file.mode, file.blob) for name, file in files.items() if has(name)}


def _only_dependencies(base: Base, name: str, branch: Files) -> bool:
    before, after = base.content(name), base.content_of(branch.get(name))
    return before is not None and after is not None and only_dependencies_differ(name.casefold(), before, after)
