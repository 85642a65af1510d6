"""What a branch did to the contract and the record of its base: said without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.contract.agreement import Seal, location_of_change
from donewhen.jobs.contract.mission_folders import mission_folders
from donewhen.jobs.contract.terms import Terms, TermsChange, compare_terms, job_terms, project_terms
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.job import Job, read_job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.cases import CaseReason
from donewhen.jobs.verifying.claimed_completions import missing_proof


class BranchClaim(NamedTuple):
    """What the branch says about a job."""

    job: Job | None
    where: str
    status: str
    completed: Entry | None
    """The completion on the branch that the base does not have."""
    reasons: tuple[CaseReason, ...]
    """How the branch's plan asks for less than what was agreed on the base."""

    @property
    def done(self) -> bool:
        return self.status == "done" or self.completed is not None


def claim_of(
    base: Base, branch: Workspace, job: Job, where: str, seal: Seal | None, policy: Policy, known: set[str]
) -> BranchClaim:
    """What the branch says about a job of the base; ``known`` are the hashes of the base's entries."""
    entries = branch.ledger.read(job.id).entries
    history = history_of(job.id, entries, policy)
    completed = history.completed if history.completed and history.completed.hash not in known else None
    try:
        found = branch.job(job.id)
    except DonewhenError as error:
        if f"{base.inside}{where}" not in base.forked:
            return BranchClaim(None, where, history.status, completed, ())
        code = FindingCode.JOB_MISSING if error.code == "usage" else error.code
        message = f"{job.id} can't be read on the branch: {error.message}"
        reason = CaseReason(code, message, error.where or where, "Restore its plan file from the base branch.")
        return BranchClaim(None, where, history.status, completed, (reason,))
    place = branch.where(found.path)
    reasons: list[CaseReason] = []
    is_older = base.is_behind and _terms_before(base, found, place) == job_terms(found)
    for term in compare_terms(seal.terms, job_terms(found)) if seal is not None and not is_older else ():
        if term.voids:
            message = " → ".join(part for part in (term.before, term.after or "nothing") if part)
            said = f"{job.id}: {term.field} was {term.kind} on the branch: {message}."
            reasons.append(_voided(said, _located(term, found, place, branch)))
    status = "done" if "done" in (found.status, history.status) else found.status
    return BranchClaim(found, place, status, completed, tuple(reasons))


def project_reasons(branch: Workspace, seal: Seal, before: Workspace | None) -> Iterator[CaseReason]:
    """How the branch's project, settings, hooks and judges ask for less than what was agreed on the base.

    ``before`` is the contract as it was when the branch left the base; None where that has not changed since.
    """
    project = branch.project()
    settings = branch.settings()
    terms = _project_terms(branch)
    if before is not None and _project_terms(before) == terms:
        return
    for term in compare_terms(seal.terms, terms):
        if term.voids:
            message = " → ".join(part for part in (term.before, term.after or "nothing") if part)
            said = f"{project.id}: {term.field} was {term.kind} on the branch: {message}."
            yield _voided(said, location_of_change(term, project, branch.where(project.path), settings))


def receipt_reasons(branch: Workspace, job: Job, claim: BranchClaim, policy: Policy) -> Iterator[CaseReason]:
    """Why a completion on the branch can't be a real one."""
    if claim.completed is None:
        if claim.status == "done":
            message = f"{job.id} says done, and the ledger on the branch has no completion."
            yield _receipt(message, _status_line(claim))
        return
    problems = list(missing_proof(job, branch.ledger.read(job.id).entries, claim.completed, policy))
    if problems:
        message = f"The receipt {claim.completed.hash[:19]}… of {job.id} rests on nothing: {'; '.join(problems)}."
        yield _receipt(message, _status_line(claim))


def record_reasons(base: Base, branch: Workspace) -> Iterator[CaseReason]:
    """Why the record on the branch can't be believed: it is not a continuation of the base's, or does not hold."""
    folder = f"{base.inside}{branch.where(branch.folder / 'ledger')}/"
    chains = [one for name, one in base.files.items() if name.startswith(folder) and name.endswith(".jsonl")]
    # One question for all of them: there may be thousands.
    for one, theirs in zip(chains, base.contents(chains), strict=True):
        path = base.top / one.name
        now = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        yield from _chain_reasons(base, one.name, now, theirs)
    for found in audit_workspace(branch).findings:
        # What was loosened is told against the base's own agreement.
        if found.severity == "error" and found.code != FindingCode.VOIDED:
            yield CaseReason(str(found.code), found.message, found.where, found.next)


def _project_terms(workspace: Workspace) -> Terms:
    settings = workspace.settings()
    return project_terms(workspace.project(), settings, mission_folders(workspace.root, settings))


def _terms_before(base: Base, job: Job, where: str) -> Terms | None:
    """The terms of a job when the branch left the base."""
    raw = base.content_before(f"{base.inside}{where}")
    try:
        return None if raw is None else job_terms(read_job(parse_document(raw, where), job.path, where))
    except DonewhenError:
        return None


def _chain_reasons(base: Base, name: str, now: bytes, theirs: bytes) -> Iterator[CaseReason]:
    """A chain may only grow. Where the base's has grown since the branch left it, the two can't be joined."""
    where = name.removeprefix(base.inside)
    before = base.content_before(name) or b"" if base.is_behind else theirs
    if now.startswith(theirs) or (now.startswith(before) and theirs.startswith(now)):
        return
    if now.startswith(before) and theirs.startswith(before) and theirs != before:
        message = f"The chain went on both here and on {base.ref}, so the two can't be merged."
        yield CaseReason(FindingCode.GIT, message, where, f"git rebase {base.ref}, and complete the job again")
        return
    message = "The chain on the branch does not continue that of the base: entries are gone or were changed."
    yield CaseReason(FindingCode.REWRITTEN, message, where, _next(FindingCode.REWRITTEN))


def _located(change: TermsChange, job: Job, place: str, branch: Workspace) -> str:
    """Where a change stands; the plan file where the branch's settings can't be read, which is told besides."""
    try:
        return location_of_change(change, job, place, branch.settings())
    except DonewhenError:
        return place


def _status_line(claim: BranchClaim) -> str:
    line = None if claim.job is None else claim.job.document.line_of("status")
    return f"{claim.where}:{line}" if line else claim.where


def _voided(told: str, where: str) -> CaseReason:
    next_step = "Undo the edit, or let a person agree to it on the base branch first."
    return CaseReason(FindingCode.VOIDED, told, where, next_step)


def _receipt(told: str, where: str) -> CaseReason:
    return CaseReason(FindingCode.RECEIPT_UNFOUNDED, told, where, _next(FindingCode.RECEIPT_UNFOUNDED))


def _next(code: FindingCode) -> str:
    return FINDINGS[code].next_step
