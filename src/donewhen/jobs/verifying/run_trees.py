"""The folders in which jobs are run again: the base, the base with the work, and everything as the branch has it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from donewhen.config.settings import VerifySettings
from donewhen.jobs.ledger.entry_content import AgreedEnvironment
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.basis import RoomBasis
from donewhen.jobs.room.built_files import BuiltFiles
from donewhen.jobs.room.room_plan import RoomPlan
from donewhen.jobs.verifying.agreed_jobs import AgreedJob
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.checkout_state import environment_names
from donewhen.jobs.verifying.checkouts import ChangedJudgingFile, Files, branch_files, work_files
from donewhen.jobs.verifying.judging_files import JudgingFiles, judging_files_of, matches
from donewhen.jobs.verifying.rooms import Room, make_room
from donewhen.jobs.verifying.work_areas import PlannedFiles, Planner
from donewhen.jobs.verifying.work_outputs import WorkOutputs, outputs_of


@dataclass(frozen=True)
class RunTree:
    """A folder to run in for one job, with its label."""

    room: Room
    label: str
    plan: RoomPlan | None = None
    """How its files were chosen; None if lists of names decided, or if it has those of one commit."""
    free: frozenset[str] = frozenset()
    """Files whose tests may change."""
    is_work: Callable[[str], bool] | None = None
    """Whether a check of the job may change a file; None if none of the commit."""

    planned: PlannedFiles | None = None
    """What the work is in it; None if lists of names decided, or if it has the files of one commit."""

    @property
    def workspace(self) -> Workspace:
        return self.room.workspace

    def enter(self) -> None:
        """Have the folder have the files of this job's room."""
        self.room.enter(self.is_work)


@dataclass(frozen=True)
class RunTrees:
    """The folders for all jobs of a verification."""

    of_jobs: Mapping[str, tuple[RunTree, ...]]
    """For each job the base itself, then the work on the base, and the branch if that is something else."""
    changed: tuple[ChangedJudgingFile, ...] = ()
    """Files of the branch that are not in every folder, because they judge or are outside of the work area."""
    removed: tuple[str, ...] = ()
    """Files that judge, and that the branch removes."""

    def of(self, job: AgreedJob) -> tuple[RunTree, ...]:
        """The folders for a job; the first is the base itself."""
        return self.of_jobs[job.job.id]

    @property
    def base(self) -> RunTree:
        return next(iter(self.of_jobs.values()))[0]

    @property
    def is_planned(self) -> bool:
        """Whether the work area of a job decided."""
        return any(tree.plan is not None for trees in self.of_jobs.values() for tree in trees)

    @property
    def rooms(self) -> list[Room]:
        """The rooms that have work of the branch."""
        return [tree.room for trees in self.of_jobs.values() for tree in trees[1:]]


def run_trees(
    base: Base, live: Workspace, contract: Workspace, chosen: Sequence[AgreedJob], place: Path
) -> RunTrees | None:
    """Lay out the folders for these jobs; None if there are none."""
    if not chosen:
        return None
    open_jobs = [job for job in chosen if not job.done]
    judges = judging_files_of(base, contract, [job.job for job in chosen], [job.job for job in open_jobs])
    branch = branch_files(base, contract)
    planned = _planned(base, contract, branch, open_jobs)
    # A person has agreed that these tests change, for whichever job.
    free = frozenset(name for found in planned.values() for name in found.free)
    if planned:
        judges = judges._replace(is_work=_also_free(judges.is_work, free))
    listed, listed_changes = work_files(base, contract, judges)
    layout = _Layout(base, live, judges, outputs_of(base, contract, [job.job for job in chosen]), place)
    of_jobs: dict[str, tuple[RunTree, ...]] = {}
    for job in chosen:
        found = planned.get(job.job.id)
        files, differs = (listed, bool(listed_changes)) if found is None else (found.files, found.plan.two_runs)
        before = RunTree(layout.room("base", dict(base.files), job.basis), f"On {base.ref}: ")
        of_jobs[job.job.id] = (before, *_work_trees(layout, job, files, branch, found, free, differs=differs))
    if planned:
        kept = [change for found in planned.values() for change in (*found.plan.tests, *found.plan.outside)]
        changed = tuple(dict.fromkeys(ChangedJudgingFile(change.name, change.how) for change in kept))
    else:
        changed = listed_changes
    removed = tuple(file.name for file in changed if file.kind == "removed" and judges.judges_on_base(file.name))
    return RunTrees(of_jobs, changed, removed)


def _work_trees(
    layout: _Layout,
    job: AgreedJob,
    files: Files,
    branch: Files,
    planned: PlannedFiles | None,
    free: frozenset[str],
    *,
    differs: bool,
) -> tuple[RunTree, ...]:
    """The work on the base, and everything as on the branch if that is something else."""
    is_work = None if planned is None else planned.is_work
    plan = None if planned is None else planned.plan
    rules = None if planned is None else planned.judges.built
    if not differs and files == branch:
        return (RunTree(layout.room("own", branch, job.basis, rules), "", plan, free, is_work, planned),)
    strict = layout.room("strict", files, job.basis, rules)
    if not differs:
        return (RunTree(strict, "", plan, free, is_work, planned),)
    ref = layout.base.ref
    label, own_label = f"With the tests of {ref}: ", "With the branch's own tests: "
    if planned is not None:
        label = f"With everything outside the work area as on {ref}: "
        own_label = "With everything as on the branch: "
    own = layout.room("own", branch, job.basis, rules)
    return RunTree(strict, label, plan, free, is_work, planned), RunTree(own, own_label, None, free, is_work)


def _planned(base: Base, contract: Workspace, branch: Files, open_jobs: Sequence[AgreedJob]) -> dict[str, PlannedFiles]:
    """The files by the work area of each open job; those agreed without an area are left out."""
    bases = {job.job.id: job.basis for job in open_jobs if job.basis is not None}
    if not bases:
        return {}
    defaults = VerifySettings().from_base
    patterns = [pattern for pattern in contract.settings().verify.from_base if pattern not in defaults]
    collected = {name for name in {*base.files, *branch} if any(matches(base, name, pattern) for pattern in patterns)}
    planner = Planner(base, contract, branch, collected=collected, environments=[*environment_names(base)])
    alone = {name: planner.plan(basis, basis.named(base.inside)) for name, basis in bases.items()}
    # As in a local room, the work of the other jobs belongs to what one is judged on: they are judged here, too.
    made = {name: [(change.name, change.blob) for change in planned.plan.work] for name, planned in alone.items()}
    return {
        name: planner.with_work_of_others(
            alone[name], basis, [row for other, rows in made.items() if other != name for row in rows]
        )
        for name, basis in bases.items()
    }


def _also_free(is_work: Callable[[str], bool], free: Collection[str]) -> Callable[[str], bool]:
    """Whether a file judges nothing, or may change because a person has agreed to that."""
    return lambda name: is_work(name) or name in free


@dataclass
class _Layout:
    """Makes the rooms. Those with the same files and the same preparation are one; others take turns in a folder."""

    base: Base
    live: Workspace
    judges: JudgingFiles
    outputs: WorkOutputs
    place: Path
    made: dict[str, list[tuple[_Wanted, Room]]] = field(default_factory=dict)

    def room(self, folder: str, files: Files, basis: RoomBasis | None, rules: BuiltFiles | None = None) -> Room:
        """The room with these files in a folder."""
        wanted = _wanted(self.base, files, basis)
        others = self.made.setdefault(folder, [])
        for known, room in others:
            if known == wanted:
                return room
        if not others:
            (self.place / folder).mkdir()
        room = make_room(
            self.base,
            self.live,
            self.place / folder,
            files,
            self.judges,
            WorkOutputs() if folder == "base" else self.outputs,
            present=wanted.present,
            filters=wanted.filters,
            rules=rules,
            beside=others[0][1] if others else None,
        )
        room.commands, room.kept, room.around = wanted.commands, wanted.kept, wanted.around
        others.append((wanted, room))
        return room


class _Wanted(NamedTuple):
    """What a room is made of."""

    files: Files
    present: Mapping[str, str]
    filters: Mapping[str, str]
    commands: tuple[tuple[str, ...], ...]
    kept: tuple[str, ...]
    around: AgreedEnvironment | None


def _wanted(base: Base, files: Files, basis: RoomBasis | None) -> _Wanted:
    if basis is None:
        return _Wanted(files, {}, {}, (), (), None)
    present = {name: blob for name, blob in basis.tree.present.items() if blob is not None}
    # What is around them matters only to the commands that build something.
    around = basis.environment if basis.prepare else None
    return _Wanted(files, present, basis.tree.filters, basis.prepare, basis.present(base.inside), around)
