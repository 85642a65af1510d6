"""Compare the contract and the record of a branch with those of its base, without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.contract.agreeing import location_of_change
from donewhen.jobs.contract.agreement import Seal
from donewhen.jobs.contract.mission_folders import mission_folders
from donewhen.jobs.contract.terms import TermsChange, compare_terms, job_terms, project_terms
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.terms_content import JobTerms, ProjectTerms
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.job import Job, read_job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.cases import CaseReason
from donewhen.jobs.verifying.claimed_completions import missing_proof

_REWRITTEN = "The chain on the branch does not continue that of the base: entries were removed or changed."


class BranchClaim(NamedTuple):
    """What the branch claims about a job."""

    job: Job | None
    where: str
    status: str
    completed: Entry | None
    """The completion on the branch that the base does not have."""
    reasons: tuple[CaseReason, ...]
    """How the branch's plan requires less than was agreed on the base."""

    @property
    def done(self) -> bool:
        return self.status == "done" or self.completed is not None


def claim_of(
    base: Base, branch: Workspace, job: Job, where: str, seal: Seal | None, policy: Policy, known: set[str]
) -> BranchClaim:
    """Return what the branch claims about a job of the base; ``known`` are the hashes of the base's entries."""
    entries = branch.ledger.read(job.id).entries
    history = history_of(job.id, entries, policy)
    completed = history.completed if history.completed and history.completed.hash not in known else None
    try:
        branch_job = branch.job(job.id)
    except DonewhenError as error:
        if f"{base.inside}{where}" not in base.forked:
            return BranchClaim(None, where, history.status, completed, ())
        code = FindingCode.JOB_MISSING if error.code == "usage" else error.code
        message = f"{job.id} can't be read on the branch: {error.message}"
        reason = CaseReason(code, message, error.where or where, "Restore its plan file from the base branch.")
        return BranchClaim(None, where, history.status, completed, (reason,))
    place = branch.where(branch_job.path)
    reasons: list[CaseReason] = []
    is_older = base.is_behind and _terms_before(base, branch_job, place) == job_terms(branch_job)
    for term in compare_terms(seal.terms, job_terms(branch_job)) if seal is not None and not is_older else ():
        if term.voids:
            change = " → ".join(part for part in (term.before, term.after or "nothing") if part)
            sentence = f"{job.id}: {term.field} was {term.kind} on the branch: {change}."
            reasons.append(_voided_reason(sentence, _location(term, branch_job, place, branch)))
    status = "done" if "done" in (branch_job.status, history.status) else branch_job.status
    return BranchClaim(branch_job, place, status, completed, tuple(reasons))


def project_reasons(branch: Workspace, seal: Seal, before: Workspace | None) -> Iterator[CaseReason]:
    """Yield how the branch's project, settings, hooks and judges require less than was agreed on the base.

    ``before`` is the contract at the fork point; None if it has not changed since.
    """
    project = branch.project()
    settings = branch.settings()
    terms = _project_terms(branch)
    if before is not None and _project_terms(before) == terms:
        return
    for term in compare_terms(seal.terms, terms):
        if term.voids:
            change = " → ".join(part for part in (term.before, term.after or "nothing") if part)
            sentence = f"{project.id}: {term.field} was {term.kind} on the branch: {change}."
            yield _voided_reason(sentence, location_of_change(term, project, branch.where(project.path), settings))


def receipt_reasons(branch: Workspace, job: Job, claim: BranchClaim, policy: Policy) -> Iterator[CaseReason]:
    """Yield why a completion on the branch can't be genuine."""
    if claim.completed is None:
        if claim.status == "done":
            message = f"The status of {job.id} is done, but the ledger on the branch has no completion."
            yield _receipt_reason(message, _status_line(claim))
        return
    problems = list(missing_proof(job, branch.ledger.read(job.id).entries, claim.completed, policy))
    if problems:
        message = f"The receipt {claim.completed.hash[:19]}… of {job.id} is unfounded: {'; '.join(problems)}."
        yield _receipt_reason(message, _status_line(claim))


def record_reasons(base: Base, branch: Workspace) -> Iterator[CaseReason]:
    """Yield why the record on the branch can't be trusted: it does not continue the base's record, or is broken."""
    folder = f"{base.inside}{branch.where(branch.folder / 'ledger')}/"
    ends = (".jsonl", ".json")
    chains = [file for name, file in base.files.items() if name.startswith(folder) and name.endswith(ends)]
    # One call of git for all of each: there may be thousands.
    kept = [file for chain in chains if (file := base.work.get(chain.name)) is not None and file.mode != "120000"]
    now = dict(zip((file.name for file in kept), base.contents(kept), strict=True))
    for file, base_content in zip(chains, base.contents(chains), strict=True):
        yield from _chain_reasons(base, file.name, now.get(file.name, b""), base_content)
    for finding in audit_workspace(branch).findings:
        # Loosened terms are reported against the base's own agreement.
        if finding.severity == "error" and finding.code != FindingCode.VOIDED:
            yield CaseReason(str(finding.code), finding.message, finding.where, finding.next)


def _project_terms(workspace: Workspace) -> ProjectTerms:
    settings = workspace.settings()
    return project_terms(workspace.project(), settings, mission_folders(workspace.root, settings))


def _terms_before(base: Base, job: Job, where: str) -> JobTerms | None:
    """The terms of a job at the fork point."""
    raw = base.content_before(f"{base.inside}{where}")
    try:
        return None if raw is None else job_terms(read_job(parse_document(raw, where), job.path, where))
    except DonewhenError:
        return None


def _chain_reasons(base: Base, name: str, branch_content: bytes, base_content: bytes) -> Iterator[CaseReason]:
    """Yield a reason if a chain was not only appended to, or was appended to on both sides."""
    where = name.removeprefix(base.inside)
    fork_content = base.content_before(name) or b"" if base.is_behind else base_content
    if name.endswith(".json") and branch_content not in (base_content, fork_content):
        # An entry with a file of its own, which never changes; one that only the base has is merged with it.
        yield CaseReason(FindingCode.REWRITTEN, _REWRITTEN, where, _next_step(FindingCode.REWRITTEN))
        return
    if branch_content.startswith(base_content) or (
        branch_content.startswith(fork_content) and base_content.startswith(branch_content)
    ):
        return
    if (
        branch_content.startswith(fork_content)
        and base_content.startswith(fork_content)
        and base_content != fork_content
    ):
        message = f"The chain has new entries both here and on {base.ref}, so the two can't be merged."
        yield CaseReason(FindingCode.GIT, message, where, f"git rebase {base.ref}, and complete the job again")
        return
    yield CaseReason(FindingCode.REWRITTEN, _REWRITTEN, where, _next_step(FindingCode.REWRITTEN))


def _location(change: TermsChange, job: Job, place: str, branch: Workspace) -> str:
    """The location of a change; the plan file if the branch's settings can't be read, which is reported elsewhere."""
    try:
        return location_of_change(change, job, place, branch.settings())
    except DonewhenError:
        return place


def _status_line(claim: BranchClaim) -> str:
    line = None if claim.job is None else claim.job.document.line_of("status")
    return f"{claim.where}:{line}" if line else claim.where


def _voided_reason(message: str, where: str) -> CaseReason:
    next_step = "Undo the edit, or let a person agree to it on the base branch first."
    return CaseReason(FindingCode.VOIDED, message, where, next_step)


def _receipt_reason(message: str, where: str) -> CaseReason:
    return CaseReason(FindingCode.RECEIPT_UNFOUNDED, message, where, _next_step(FindingCode.RECEIPT_UNFOUNDED))


def _next_step(code: FindingCode) -> str:
    return FINDINGS[code].next_step
