"""Agreeing to jobs: the terms, the files as they are, and the tests that there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import join_limited
from donewhen.jobs.contract.agreeing import AgreementProposal, agree, agreement_proposals
from donewhen.jobs.contract.agreement import AgreementProblem, approval_policy, current_seal
from donewhen.jobs.evidence.environment import listing_once
from donewhen.jobs.evidence.records import UnusableRecord, read_outcomes
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.evidence.store import evidence_store
from donewhen.jobs.evidence.test_ids import with_older_ids
from donewhen.jobs.evidence.two_runs import compare_outcomes
from donewhen.jobs.gates.weighing import default_need_from_now
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Agreed, AgreedBaseline, AgreedTree
from donewhen.jobs.ledger.evidence_levels import NeededLevel
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.lifecycle.agreed_now import AgreedNow, agreed_baselines, agreed_now
from donewhen.jobs.lifecycle.reachable_levels import unreachable_levels
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.project_job import project_as_job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.writing import writing
from donewhen.jobs.room.basis import basis_of
from donewhen.jobs.room.judging_names import named_files
from donewhen.jobs.room.proposing import project_names, propose_work_area

_MAX_LISTED = 5


@dataclass(frozen=True)
class FullProposal:
    """What a person is asked to agree to."""

    terms: AgreementProposal
    now: AgreedNow
    baselines: dict[str, AgreedBaseline] = field(default_factory=dict)
    lost_tests: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Tests of the earlier agreement that are gone, by command."""

    @property
    def unknown_tests(self) -> dict[str, str]:
        """The commands whose tests could not be run in the agreed tree, and why."""
        return {name: baseline.why for name, baseline in self.baselines.items() if baseline.why}

    @property
    def needed_by_stakes(self) -> NeededLevel | None:
        """How strong the evidence for every criterion has to be, by the stakes of the job."""
        return default_need_from_now(self.terms.plan) if isinstance(self.terms.plan, Job) else None

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Which criteria need evidence that their checks can't give here."""
        plan = self.terms.plan
        if not isinstance(plan, Job):
            return ()
        return tuple(unreachable_levels(plan, self.baselines, self.now.environment))


def lacks_work_area(workspace: Workspace, job: Job) -> bool:
    """Whether a job that is not done was agreed to without a work area, by an older version."""
    entries, policy = workspace.ledger.read(job.id).entries, approval_policy(workspace)
    history = history_of(job.id, entries, policy)
    is_open = history.completed is None and history.status not in ("done", "cancelled")
    return is_open and current_seal(job.id, entries, policy) is not None and basis_of(workspace, job) is None


def lacks_tree(workspace: Workspace, proposal: AgreementProposal) -> bool:
    """The same for a proposal."""
    return isinstance(proposal.plan, Job) and lacks_work_area(workspace, proposal.plan)


def propose_work_areas(workspace: Workspace, jobs: Iterable[Job], *, named: bool = False) -> tuple[Job, ...]:
    """The jobs, each with a proposed work area if its plan has none and it was never agreed to, and with ``named`` also
    if it was agreed to without one. Nothing is written: that is done when somebody agrees."""
    proposed: list[Job] = []
    names: tuple[str, ...] | None = None
    for job in jobs:
        agreed = any(entry.type == "agreed" for entry in workspace.ledger.read(job.id).entries)
        if job.work is None and (not agreed or (named and lacks_work_area(workspace, job))):
            names = project_names(workspace) if names is None else names
            job = replace(job, work=propose_work_area(names, named_by_checks(job)))
        proposed.append(job)
    return tuple(proposed)


def write_work_area(workspace: Workspace, job: Job) -> Job:
    """Write the work area of a job into its plan, if the plan has none."""
    if job.work is None or workspace.job_at(job.path).work is not None:
        return job
    with writing(workspace, job.path, job.id) as plan:
        plan.write_fields({"work": list(job.work)})
    return workspace.job_at(job.path)


def named_by_checks(job: Job) -> frozenset[str]:
    """The files that the commands of a job name."""
    commands = []
    with suppress(DonewhenError):
        commands = [requirement.check.argv for requirement in requirements_of(job) if requirement.check.kind == "run"]
    return frozenset(file.name for argv in commands for file in named_files(argv))


def full_proposals(
    workspace: Workspace,
    proposals: Sequence[AgreementProposal],
    *,
    baselines: bool = True,
    on_progress: Callable[[str], None] = lambda _: None,
) -> tuple[FullProposal, ...]:
    """Find out what else would be agreed to. With ``baselines``, each command that reports tests is run once."""
    with listing_once():
        return tuple(_full_proposals(workspace, proposals, baselines, on_progress))


def _full_proposals(
    workspace: Workspace,
    proposals: Sequence[AgreementProposal],
    baselines: bool,
    on_progress: Callable[[str], None],
) -> Iterator[FullProposal]:
    # By the files that the tests are run on: jobs that are agreed together share them.
    known: dict[str, dict[str, AgreedBaseline]] = {}
    for proposal in proposals:
        job = proposal.plan if isinstance(proposal.plan, Job) else project_as_job(proposal.plan)
        if job is None:
            yield FullProposal(proposal, AgreedNow(AgreedTree()))
            continue
        now = agreed_now(workspace, job)
        if not isinstance(proposal.plan, Job):
            # Its jobs make the changes.
            now = replace(now, begun=(), uncommitted=(), ahead=())
        found = FullProposal(proposal, now)
        if baselines and not now.uncommitted and isinstance(proposal.plan, Job):
            shared = known.setdefault(now.tree.commit or now.tree.list or "", {})
            tests = agreed_baselines(workspace, job, now, known=shared, on_progress=on_progress)
            found = replace(found, baselines=tests, lost_tests=dict(_lost_tests(workspace, proposal, tests)))
        yield found


def _lost_tests(
    workspace: Workspace, proposal: AgreementProposal, now: Mapping[str, AgreedBaseline]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The tests of the agreement before this one that are gone or skipped now."""
    seal = proposal.agreement.seal
    before = seal.entry.content.baselines if seal is not None and isinstance(seal.entry.content, Agreed) else {}
    store = evidence_store(workspace)
    for name, baseline in now.items():
        if name in before and before[name].outcomes and baseline.outcomes:
            old, new = read_outcomes(store, before[name].outcomes), read_outcomes(store, baseline.outcomes)
            if not isinstance(old, UnusableRecord) and not isinstance(new, UnusableRecord):
                loss = compare_outcomes(old, with_older_ids(new, old))
                if loss:
                    yield name, (*loss.lost, *loss.skipped)


def tree_problems(proposal: FullProposal) -> Iterator[AgreementProblem]:
    """What of the files prevents agreeing."""
    if proposal.now.uncommitted:
        names = join_limited(proposal.now.uncommitted, _MAX_LISTED)
        message = f"{len(proposal.now.uncommitted)} changed file(s) outside the work area are not committed: {names}."
        message = " ".join((message, *proposal.now.notes))
        yield AgreementProblem(FindingCode.UNCOMMITTED, message, proposal.terms.where)


def agree_fully(workspace: Workspace, proposal: FullProposal, approval: Approval, *, notes: str = "") -> Entry:
    """Seal the proposed terms with the files and tests that they are about."""
    if isinstance(proposal.terms.plan, Job):
        write_work_area(workspace, proposal.terms.plan)
    tree = proposal.now.tree
    found = tree if tree.commit is not None or tree.list is not None else None
    return agree(
        workspace,
        proposal.terms,
        approval,
        notes=notes,
        tree=found,
        baselines=proposal.baselines,
        environment=proposal.now.environment,
    )


def agree_to(
    workspace: Workspace,
    jobs: Iterable[Job],
    approval: Approval,
    *,
    notes: str = "",
    on_progress: Callable[[str], None] = lambda _: None,
) -> tuple[Entry, ...]:
    """Agree to the project and these jobs as they are now: what `donewhen agree` does, without questions.

    Raise DonewhenError if something prevents it.
    """
    entries: list[Entry] = []
    proposals = [
        proposal
        for proposal in agreement_proposals(workspace, propose_work_areas(workspace, jobs))
        if proposal.agreement.state != "agreed"
    ]
    for proposal in full_proposals(workspace, proposals, on_progress=on_progress):
        problems = [*proposal.terms.problems, *tree_problems(proposal)]
        if problems:
            raise DonewhenError(problems[0].message, where=problems[0].where, next_step="Fix it, then agree again.")
        entries.append(agree_fully(workspace, proposal, approval, notes=notes))
    return tuple(entries)
