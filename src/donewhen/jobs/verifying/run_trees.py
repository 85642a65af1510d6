"""The folders in which jobs are run again: the base, the base with the work, and everything as the branch has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from donewhen.config.settings import VerifySettings
from donewhen.jobs.contract.terms import job_terms
from donewhen.jobs.ledger.entry_content import AgreedTree
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.basis import RoomBasis, basis_for
from donewhen.jobs.room.judging_names import NamedFile
from donewhen.jobs.room.room_plan import RoomPlan
from donewhen.jobs.verifying.agreed_jobs import AgreedJob
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.checkout_state import environment_names
from donewhen.jobs.verifying.checkouts import ChangedJudgingFile, Files, branch_files, work_files
from donewhen.jobs.verifying.judging_files import JudgingFiles, judging_files_of, matches
from donewhen.jobs.verifying.rerun import Memory
from donewhen.jobs.verifying.rooms import Room, make_room
from donewhen.jobs.verifying.work_areas import PlannedFiles, planned_files
from donewhen.jobs.verifying.work_outputs import WorkOutputs, outputs_of


@dataclass(frozen=True)
class RunTree:
    """A folder to run in, with its label and its cached results."""

    room: Room
    label: str
    memory: Memory = field(default_factory=dict)
    plan: RoomPlan | None = None
    """How its files were chosen; None if lists of names decided, or if it has those of one commit."""
    free: frozenset[str] = frozenset()
    """Files whose tests may change."""

    @property
    def workspace(self) -> Workspace:
        return self.room.workspace


@dataclass(frozen=True)
class RunTrees:
    """The folders for all jobs of a verification."""

    base: RunTree
    open_jobs: tuple[RunTree, ...] = ()
    """For jobs that are not done on the base: the work on the base, and the branch if that is something else."""
    done_jobs: tuple[RunTree, ...] = ()
    """For jobs that are done on the base, where all product code comes from the branch."""
    changed: tuple[ChangedJudgingFile, ...] = ()
    """Files of the branch that are not in every folder, because they judge or are outside of the work area."""
    removed: tuple[str, ...] = ()
    """Files that judge, and that the branch removes."""

    def of(self, job: AgreedJob) -> tuple[RunTree, ...]:
        """The folders for a job; the first is the base itself."""
        return (self.base, *(self.done_jobs if job.done else self.open_jobs))

    @property
    def is_planned(self) -> bool:
        """Whether the work areas of the open jobs decided."""
        return any(tree.plan is not None for tree in self.open_jobs)

    @property
    def work(self) -> Room:
        """The folder with everything as on the branch."""
        return (self.open_jobs or self.done_jobs or (self.base,))[-1].room


def run_trees(
    base: Base, live: Workspace, contract: Workspace, chosen: Sequence[AgreedJob], place: Path
) -> RunTrees | None:
    """Lay out the folders for these jobs; None if there are none."""
    if not chosen:
        return None
    open_jobs = [job for job in chosen if not job.done]
    judges = judging_files_of(base, contract, [job.job for job in chosen], [job.job for job in open_jobs])
    outputs = outputs_of(base, contract, [job.job for job in chosen])
    layout = _Layout(base, live, judges, [job.basis for job in chosen if job.basis is not None], place)
    before = layout.room("base", dict(base.files), WorkOutputs())
    branch = branch_files(base, contract)
    planned = _planned(base, contract, branch, chosen, open_jobs)
    if planned is not None:
        judges = judges._replace(is_work=_also_free(judges.is_work, planned))
    listed, listed_changes = work_files(base, contract, judges)
    free = frozenset[str]() if planned is None else planned.free
    own: list[Room] = []

    def own_room(is_work: Callable[[str], bool] | None) -> Room:
        if not own:
            own.append(layout.room("own", branch, outputs, is_work))
        return own[0]

    def pair(label: str, files: Files, *, differs: bool, found: PlannedFiles | None) -> tuple[RunTree, ...]:
        """The work on the base, and everything as on the branch; that folder is made once."""
        is_work = None if found is None else found.is_work
        plan = None if found is None else found.plan
        if not differs and files == branch:
            return (RunTree(own_room(is_work), "", plan=plan, free=free),)
        strict = layout.room("strict" if found is not None else "listed", files, outputs, is_work)
        if not differs:
            return (RunTree(strict, "", plan=plan, free=free),)
        own_label = "With the branch's own tests: " if found is None else "With everything as on the branch: "
        return RunTree(strict, label, plan=plan, free=free), RunTree(own_room(is_work), own_label, free=free)

    of_open: tuple[RunTree, ...] = ()
    of_done: tuple[RunTree, ...] = ()
    if planned is not None:
        label = f"With everything outside the work area as on {base.ref}: "
        of_open = pair(label, planned.files, differs=planned.plan.two_runs, found=planned)
        if len(open_jobs) < len(chosen):
            same = listed == planned.files
            label = f"With the tests of {base.ref}: "
            of_done = of_open if same else pair(label, listed, differs=bool(listed_changes), found=None)
        changes = [*planned.plan.tests, *planned.plan.outside]
        changed = tuple(ChangedJudgingFile(change.name, change.how) for change in changes)
    else:
        of_open = of_done = pair(f"With the tests of {base.ref}: ", listed, differs=bool(listed_changes), found=None)
        changed = listed_changes
    removed = tuple(file.name for file in changed if file.kind == "removed" and judges.judges_on_base(file.name))
    return RunTrees(RunTree(before, f"On {base.ref}: "), of_open, of_done, changed, removed)


def _planned(
    base: Base, contract: Workspace, branch: Files, chosen: Sequence[AgreedJob], open_jobs: Sequence[AgreedJob]
) -> PlannedFiles | None:
    """The files by the work areas of the open jobs; None if there are none, or if one was agreed without an area."""
    bases = [job.basis for job in open_jobs if job.basis is not None]
    if not bases or len(bases) < len(open_jobs):
        return None
    named = [files for job in chosen for files in _named(base, contract, job)]
    defaults = VerifySettings().from_base
    patterns = [pattern for pattern in contract.settings().verify.from_base if pattern not in defaults]
    collected = {name for name in {*base.files, *branch} if any(matches(base, name, pattern) for pattern in patterns)}
    environments = [*environment_names(base)]
    return planned_files(base, contract, branch, bases, named, collected=collected, environments=environments)


def _named(base: Base, contract: Workspace, job: AgreedJob) -> list[tuple[NamedFile, ...]]:
    """The files that the checks of a job name."""
    basis = job.basis or basis_for(contract, job.job, AgreedTree(), job_terms(job.job), {})
    return basis.named(base.inside)


def _also_free(is_work: Callable[[str], bool], planned: PlannedFiles) -> Callable[[str], bool]:
    """Whether a file judges nothing, or may change because a person has agreed to that."""
    return lambda name: is_work(name) or name in planned.free


@dataclass(frozen=True)
class _Layout:
    """What all folders have in common."""

    base: Base
    live: Workspace
    judges: JudgingFiles
    bases: Sequence[RoomBasis]
    place: Path

    def room(self, name: str, files: Files, outputs: WorkOutputs, is_work: Callable[[str], bool] | None = None) -> Room:
        """Make a folder."""
        folder = self.place / name
        folder.mkdir()
        present = {file: blob for basis in self.bases for file, blob in basis.tree.present.items() if blob is not None}
        room = make_room(self.base, self.live, folder, files, self.judges, outputs, is_work=is_work, present=present)
        room.commands = tuple(dict.fromkeys(command for basis in self.bases for command in basis.prepare))
        room.kept = tuple(pattern for basis in self.bases for pattern in basis.present(self.base.inside))
        return room
