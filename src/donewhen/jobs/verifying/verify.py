"""Run the contract of a base branch again on a branch's work. Evidence from the branch is not used."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.validity import DependencyFact
from donewhen.jobs.contract.agreement import Seal, project_seal
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying.agreed_jobs import AgreedJob, agreed_jobs, choose_jobs
from donewhen.jobs.verifying.base_branch import Base, base_of
from donewhen.jobs.verifying.branch_changes import project_reasons, record_reasons
from donewhen.jobs.verifying.cases import CaseReason, JobCases, Verification, VerificationCase, case_from_reasons
from donewhen.jobs.verifying.checkouts import write_claim_folder, write_contract_folder
from donewhen.jobs.verifying.job_cases import OnProgress, job_cases
from donewhen.jobs.verifying.notes import (
    notes_on_base,
    notes_on_changes,
    notes_on_isolation,
    notes_on_jobs,
    notes_on_settings,
)
from donewhen.jobs.verifying.project_cases import agreed_project, project_cases, project_not_run
from donewhen.jobs.verifying.removed_files import removed_files_case
from donewhen.jobs.verifying.rooms import room_notes
from donewhen.jobs.verifying.run_trees import RunTrees, run_trees


def verify_branch(
    live: Workspace,
    ref: str,
    *,
    commit: str = "HEAD",
    jobs: Sequence[str] = (),
    on_progress: OnProgress = lambda _: None,
) -> Verification:
    """Run the contract of ``ref`` again on the work in ``commit``: for every job that it claims is done, or for the
    given jobs and their dependencies. The working tree is neither judged nor written."""
    base = base_of(live, ref, commit)
    with tempfile.TemporaryDirectory(prefix="donewhen-verify-", ignore_cleanup_errors=True) as folder:
        place = Path(os.path.realpath(folder))
        on_progress("the contract")
        contract = write_contract_folder(base, live, _make_folder(place / "contract"))
        agreed_settings = contract.settings()
        branch = write_claim_folder(base, live, _make_folder(place / "claim"))
        project = contract.project()
        project_file = contract.where(contract.project_file)
        seal = project_seal(contract, project)
        policy = Policy.of(seal.terms if seal else None)
        agreed, unreadable = agreed_jobs(base, contract, branch, policy)
        chosen = choose_jobs(agreed, contract, jobs)
        on_progress("the record")
        cases = [
            _contract_case(base, branch, contract, seal, _contract_at_fork(base, branch, place)),
            _record_case(base, branch),
        ]
        whole = agreed_project(contract, branch, seal, policy)
        claimed = whole if whole is not None and whole.claim.done and not jobs else None
        run_again = [*(agreed[name] for name in chosen), *([claimed] if claimed is not None else [])]
        trees = run_trees(base, live, contract, run_again, place)
        verified: dict[str, JobCases] = {}
        if trees is not None:
            verified |= _verify_jobs(base, branch, policy, trees, agreed, chosen, on_progress)
        of_project: list[JobCases] = []
        if trees is not None and claimed is not None:
            closed = {
                name: verified[name].passed if name in verified else job.claim.status == "cancelled"
                for name, job in agreed.items()
            }
            of_project = [_verify_project(branch, policy, trees, claimed, closed, on_progress)]
        elif whole is not None:
            of_project = [project_not_run(whole)]
        cases.append(removed_files_case(base, trees, run_again))
        rest = [_not_claimed(base, job, asked_for=not jobs) for name, job in agreed.items() if name not in verified]
        every = (*verified.values(), *of_project, *rest, *unreadable, *_new_jobs(branch, agreed))
        if not any(cases_of_job.claimed for cases_of_job in every):
            cases.append(case_from_reasons("something is verified", "project", [_nothing_verified(base)]))
        found = Verification(ref, base.commit, tuple(cases), every, (), base.inside, project_file, base.head)
        notes = (
            *notes_on_base(base),
            *notes_on_changes(base, trees, found.reasons),
            *notes_on_jobs(base, [agreed[name] for name in chosen]),
            *room_notes(base, [] if trees is None else trees.rooms, passed=found.passed),
            *(notes_on_isolation([agreed[name] for name in verified]) if verified else ()),
            *notes_on_settings(agreed_settings),
        )
    return found._replace(notes=notes)


def _verify_jobs(
    base: Base,
    branch: Workspace,
    policy: Policy,
    trees: RunTrees,
    agreed: Mapping[str, AgreedJob],
    chosen: Sequence[str],
    on_progress: OnProgress,
) -> Iterator[tuple[str, JobCases]]:
    states: dict[str, DependencyFact] = {}
    for name in chosen:
        job = agreed[name]
        cases = job_cases(base, branch, policy, trees.of(job), job, states, on_progress)
        result = JobCases(name, job.job.title, job.claim.where, True, _collected(cases, job.claim.where))
        why = "" if result.passed else "not done when run again"
        states[name] = DependencyFact(name, "done" if result.passed else "invalid", (name,), why)
        yield name, result


def _verify_project(
    branch: Workspace,
    policy: Policy,
    trees: RunTrees,
    project: AgreedJob,
    closed: Mapping[str, bool],
    on_progress: OnProgress,
) -> JobCases:
    cases = project_cases(branch, policy, trees.of(project), project, closed, on_progress)
    where = project.claim.where
    return JobCases(project.job.id, project.job.title, where, True, _collected(cases, where))


def _collected(cases: Iterator[VerificationCase], where: str) -> tuple[VerificationCase, ...]:
    """All cases; a single one with the error if they could not be evaluated."""
    try:
        return tuple(cases)
    except DonewhenError as error:
        reason = CaseReason(error.code, error.message, error.where or where, error.next_step)
    except Exception as error:
        if os.environ.get("DONEWHEN_DEBUG"):
            raise
        message = one_line(f"The gate failed with {type(error).__name__}: {error}", 400)
        reason = CaseReason(GateCode.GATE_ERROR, message, where, GATE_REASONS[GateCode.GATE_ERROR].next_step)
    return (VerificationCase("gates", "gate", "error", (reason,)),)


def _contract_at_fork(base: Base, branch: Workspace, place: Path) -> Workspace | None:
    """The contract at the fork point; None if that is the base commit or it can't be read."""
    if base.forked is base.files:
        return None
    try:
        return write_contract_folder(
            base._replace(commit=base.fork, files=base.forked), branch, _make_folder(place / "before")
        )
    except DonewhenError:
        return None


def _contract_case(
    base: Base, branch: Workspace, contract: Workspace, seal: Seal | None, before: Workspace | None
) -> VerificationCase:
    if seal is None:
        message = f"Nothing is agreed on {base.ref}, so there is no contract to run."
        where = contract.where(contract.project_file)
        return case_from_reasons(
            "contract", "project", [CaseReason(FindingCode.PROPOSED, message, where, "donewhen agree")]
        )
    try:
        return case_from_reasons("contract", "project", project_reasons(branch, seal, before))
    except DonewhenError as error:
        return case_from_reasons("contract", "project", [_unreadable_reason(branch, error)])


def _record_case(base: Base, branch: Workspace) -> VerificationCase:
    try:
        return case_from_reasons("record", "project", record_reasons(base, branch))
    except DonewhenError as error:
        return case_from_reasons("record", "project", [_unreadable_reason(branch, error)])


def _unreadable_reason(branch: Workspace, error: DonewhenError) -> CaseReason:
    """The reason for a file on the branch that can't be read."""
    where = branch.where(Path(error.where)) if error.where else branch.where(branch.project_file)
    return CaseReason(error.code, error.message, where, error.next_step)


def _new_jobs(branch: Workspace, agreed: Mapping[str, AgreedJob]) -> Iterator[JobCases]:
    """Jobs that exist only on the branch, so they are not agreed on the base."""
    for place in branch.places():
        if place.id in agreed:
            continue
        where = branch.where(place.path)
        try:
            job = branch.job_at(place.path)
        except DonewhenError:
            # The audit of the branch reports it.
            continue
        if job.id in agreed:
            continue
        if job.status != "done":
            case = VerificationCase("agreement", "gate", "skipped", text="New on the branch.")
            yield JobCases(job.id, job.title, where, False, (case,))
            continue
        code = FindingCode.NOT_ON_BASE
        message = f"{job.id} is done on the branch, but it is not agreed on the base branch."
        yield JobCases(
            job.id,
            job.title,
            where,
            True,
            (case_from_reasons("agreement", "gate", [CaseReason(code, message, where, FINDINGS[code].next_step)]),),
        )


def _not_claimed(base: Base, job: AgreedJob, *, asked_for: bool) -> JobCases:
    """A job that is not claimed done: it is skipped, which is not a pass. Changes to its terms are reported."""
    message = f"Not run: its status on the branch is {job.claim.status}."
    if job.claim.done and not asked_for:
        message = "Not run: it is done on the branch, but was not selected."
    elif job.done:
        message = f"Not run: it was done on {base.ref}, but its status on the branch is {job.claim.status}."
    cases = [VerificationCase("not run", "gate", "skipped", text=message)]
    if job.claim.reasons:
        cases.insert(0, case_from_reasons("agreement", "gate", job.claim.reasons))
    return JobCases(job.job.id, job.job.title, job.claim.where, False, tuple(cases))


def _nothing_verified(base: Base) -> CaseReason:
    code = FindingCode.NOTHING_VERIFIED
    message = f"No job of {base.ref} is done on the branch, so nothing was verified."
    return CaseReason(code, message, "", FINDINGS[code].next_step)


def _make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder
