"""Promises: the text printed when a job is done, with a receipt that can be verified against the ledger."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from donewhen.foundation.git import first_commit_with
from donewhen.jobs.board.validity import ValidityChecker
from donewhen.jobs.contract.agreement import project_agreement
from donewhen.jobs.gates.evidence_status import EvidenceStatus, evidence_statuses
from donewhen.jobs.gates.job_view import refutation
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Chain, Entry
from donewhen.jobs.ledger.entry_content import Completed, GateProgram
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.lifecycle.invalidation import code_of
from donewhen.jobs.plan.ids import is_parent
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.project_job import project_as_job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.parents import jobs_below

_PROMISE = re.compile(r"<promise>([A-Za-z0-9][A-Za-z0-9._-]{0,99})-DONE</promise>")
_RECEIPT = re.compile(r"receipt: (sha256:[0-9a-f]{64})")
_REAL = "the ledger has this completion"
_PAST = "it was completed, but the completion is no longer valid"


class Promise(NamedTuple):
    """The id and receipt that are printed when something is done."""

    id: str
    receipt: str

    @property
    def text(self) -> str:
        return f"<promise>{self.id}-DONE</promise>\nreceipt: {self.receipt}"


class PromiseCheck(NamedTuple):
    """Whether a text contains a real promise, and why (not)."""

    id: str | None
    real: bool
    why: str
    gate: GateProgram | None = None
    """What issued a real promise; None if the completion does not say it."""


class InvalidCompletion(NamedTuple):
    """Why a completion is missing or not valid."""

    code: FindingCode
    why: str


def promise_of(chain: str, entry: Entry) -> Promise:
    """Return the promise for a completion entry."""
    return Promise(chain, entry.hash)


def verify_promises(workspace: Workspace, text: str, policy: Policy) -> tuple[PromiseCheck, ...]:
    """Check each promise in a text: its receipt must be a completion in the ledger that is still valid."""
    promises = [*_PROMISE.finditer(text)]
    validities = ValidityChecker(workspace, policy)
    ends = [*(promise.start() for promise in promises[1:]), len(text)]
    checks = (
        _verified(workspace, promise[1], _RECEIPT.search(text, promise.end(), end), policy, validities)
        for promise, end in zip(promises, ends, strict=bool(promises))
    )
    return tuple(checks) or (PromiseCheck(None, False, "the text contains no promise"),)


def verify_promise(workspace: Workspace, text: str, policy: Policy) -> PromiseCheck:
    """Check the promises in a text, and return the first that is not real; if all are, the first."""
    checks = verify_promises(workspace, text, policy)
    return next((check for check in checks if not check.real), checks[0])


def _verified(
    workspace: Workspace, name: str, receipt: re.Match[str] | None, policy: Policy, validities: ValidityChecker
) -> PromiseCheck:
    if receipt is None:
        return PromiseCheck(name, False, "it has no receipt, so anybody could have typed it")
    chain = workspace.ledger.read(name)
    entry = next((entry for entry in chain.entries if entry.hash == receipt[1]), None)
    if chain.whole and (entry is None or entry.type != "completed"):
        return PromiseCheck(name, False, "the ledger has no completion with this receipt")
    completion = current_completion(workspace, name, chain, policy, validities)
    if isinstance(completion, InvalidCompletion):
        return PromiseCheck(name, False, completion.why)
    if completion.hash != receipt[1]:
        return PromiseCheck(name, False, _PAST)
    project = workspace.project()
    job = project_as_job(project) if is_parent(name, project.id) else workspace.job_with_id(name)
    if job is None or job.id != name:
        return PromiseCheck(name, True, _REAL, completion.read_as(Completed).gate)
    statuses = evidence_statuses(workspace, job)
    failed = refutation(workspace, job, completion, statuses)
    if failed:
        return PromiseCheck(name, False, f"no longer true: {failed}")
    moment = _moment(workspace, name, completion, statuses)
    why = f"{_REAL}; it was true {moment}" if moment else _REAL
    return PromiseCheck(name, True, why, completion.read_as(Completed).gate)


def moment_of(workspace: Workspace, job: Job, completion: Entry) -> str:
    """When a job that is still done was completed, if files that its checks depend on have moved on since: *at commit
    COMMIT*, or the time. Empty if nothing has moved on."""
    return _moment(workspace, job.id, completion, evidence_statuses(workspace, job))


def _moment(workspace: Workspace, name: str, completion: Entry, statuses: Sequence[EvidenceStatus]) -> str:
    if all(status.state != "stale" for status in statuses):
        return ""
    commit = first_commit_with(workspace.ledger.file_with(name, completion), completion.hash)
    return f"at commit {commit}" if commit else f"when it was completed ({completion.at})"


def current_completion(
    workspace: Workspace, name: str, chain: Chain, policy: Policy, validities: ValidityChecker | None = None
) -> Entry | InvalidCompletion:
    """Return the completion of this chain if the chain is intact and the completion still valid, else why not.

    ``validities`` may be shared by several completions, so that each job is read once.
    """
    if not chain.whole:
        problem = next(failure for failure in chain.breaks if not failure.torn)
        if problem.other_version:
            return InvalidCompletion(FindingCode.OTHER_VERSION, problem.problem)
        return InvalidCompletion(FindingCode.CHAIN_BROKEN, "the ledger is broken")
    completion = history_of(name, chain.entries, policy).completed
    if completion is None:
        once = any(entry.type == "completed" for entry in chain.entries)
        return InvalidCompletion(FindingCode.NOT_DONE, _PAST if once else "it was never completed")
    validities = validities or ValidityChecker(workspace, policy)
    project = workspace.project()
    if is_parent(name, project.id):
        if project_agreement(workspace, project).state == "voided":
            return InvalidCompletion(FindingCode.VOIDED, "no longer true: the agreement of the project is void")
        return _invalid_parent(workspace, name, validities, completion) or completion
    validity = validities.of(name)
    if validity.by_itself:
        return InvalidCompletion(code_of(validity), f"no longer true: {validity.why}")
    if validity.state != "done":
        return InvalidCompletion(
            FindingCode.DONE_INVALID, "no longer true: something that it depends on has changed since"
        )
    return completion


def _invalid_parent(
    workspace: Workspace, name: str, validities: ValidityChecker, completion: Entry
) -> InvalidCompletion | None:
    """Why the completion of a workstream or project is no longer valid: a job that was done with it no longer is, or
    one is open that it did not know, because it came from another branch."""
    jobs = completion.read_as(Completed).jobs
    for job in jobs_below(workspace, name):
        if job not in jobs and workspace.ledger.read(job).latest("agreed"):
            now = validities.of(job).state
            if now not in ("done", "cancelled"):
                why = f"no longer true: {job}, which it did not include, is {now}"
                return InvalidCompletion(FindingCode.DONE_INVALID, why)
    for job, state in jobs.items():
        validity = validities.of(job)
        if state == "done" and validity.state != "done":
            why = validity.why or {"missing": "its plan is missing"}.get(validity.state, f"it is {validity.state}")
            return InvalidCompletion(FindingCode.DONE_INVALID, f"no longer true: {job} is no longer done ({why})")
    return None
