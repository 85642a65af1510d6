"""The project's own criteria: they are checked again when a branch claims that the whole project is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.contract.agreement import Seal
from donewhen.jobs.evidence.placed_runs import running_in
from donewhen.jobs.evidence.requirements import Requirement
from donewhen.jobs.evidence.room_session import PrepareFailedError
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.gates.suites import SuiteFact
from donewhen.jobs.gates.truth_gate import suite_reasons
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.project_job import project_as_job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.verifying.agreed_jobs import AgreedJob
from donewhen.jobs.verifying.branch_changes import BranchClaim
from donewhen.jobs.verifying.cases import CaseReason, JobCases, VerificationCase, case_from_reasons
from donewhen.jobs.verifying.criterion_cases import criterion_case, prepare_case
from donewhen.jobs.verifying.decisions import person_decides
from donewhen.jobs.verifying.job_cases import OnProgress, lost_in, run_base_tests
from donewhen.jobs.verifying.rerun import SignedEntries, rerun_criteria
from donewhen.jobs.verifying.run_trees import RunTree
from donewhen.jobs.verifying.work_areas import basis_on_base


def agreed_project(contract: Workspace, branch: Workspace, seal: Seal | None, policy: Policy) -> AgreedJob | None:
    """The project as it was agreed on the base; None if no criterion of it has a check."""
    job = project_as_job(contract.project())
    if job is None or seal is None:
        return None
    entries = contract.ledger.read(job.id).entries
    known = frozenset(entry.hash for entry in entries)
    history = history_of(job.id, branch.ledger.read(job.id).entries, policy)
    where = contract.where(contract.project_file)
    status, branch_job = history.status, None
    try:
        project = branch.project()
        status, branch_job = "done" if project.status == "done" else status, project_as_job(project)
    except DonewhenError:
        # That it can't be read is reported with the contract.
        pass
    completed = history.completed if history.completed and history.completed.hash not in known else None
    done = history_of(job.id, entries, policy).completed is not None
    basis = basis_on_base(contract, branch, job, seal, known, policy)
    return AgreedJob(job, seal, done, known, BranchClaim(branch_job, where, status, completed, ()), where, basis)


def project_not_run(project: AgreedJob) -> JobCases:
    """The project that the branch does not claim to be done, or that was not selected."""
    text = f"Not run: the criteria of the project count once it is done; its status is {project.claim.status}."
    case = VerificationCase("not run", "gate", "skipped", text=text)
    return JobCases(project.job.id, project.job.title, project.claim.where, False, (case,))


def project_cases(
    branch: Workspace,
    policy: Policy,
    trees: Sequence[RunTree],
    project: AgreedJob,
    others: Mapping[str, bool],
    on_progress: OnProgress,
) -> Iterator[VerificationCase]:
    """Yield whether all jobs are done, then the criteria; ``others`` says of each job whether it counts as closed."""
    yield case_from_reasons("jobs", "gate", _open_jobs(project, others))
    signed = SignedEntries(branch.ledger.read(project.job.id).entries, policy)
    base_tree, *work_trees = trees
    run_base_tests(base_tree, project.job, on_progress)
    results: list[tuple[RunTree, tuple[EvidenceStatus, ...]]] = []
    lost: list[SuiteFact] = []
    for tree in work_trees:

        def report(requirement: Requirement, label: str = tree.label) -> None:
            on_progress(f"{project.job.id}  {label}{requirement.evidence}")

        job = project_as_job(tree.workspace.project()) or project.job
        with running_in(tree.room):
            try:
                tree.enter()
                tree.room.prepare()
            except PrepareFailedError as error:
                yield prepare_case(project, tree, error)
                return
            evidence = rerun_criteria(tree.room, job, signed, report)
        lost += lost_in(results[0][0] if results else base_tree, tree, job)
        results.append((tree, evidence))
    decided = person_decides(results, base_tree, project.job)
    reasons = [CaseReason(reason.code, reason.message, project.claim.where) for reason in suite_reasons(lost)]
    yield case_from_reasons("truth", "gate", dict.fromkeys(reasons))
    yield from (criterion_case(project, decided, place) for place in range(len(decided[0][1])))


def _open_jobs(project: AgreedJob, others: Mapping[str, bool]) -> Iterator[CaseReason]:
    for name, closed in others.items():
        if not closed:
            message = f"{project.job.id} is done on the branch, but its job {name} is not."
            next_step = f"Complete it, or cancel it if it is no longer wanted: donewhen decide {name} --cancel"
            yield CaseReason(GateCode.DEPENDENCY_OPEN, message, project.claim.where, next_step)
