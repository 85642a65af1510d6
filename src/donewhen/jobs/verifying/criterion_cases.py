"""The results of one criterion, with all folders that it was checked in, and of the commands that build them."""

from __future__ import annotations

from donewhen.foundation.plain_text import plain_text
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.board.job_state import OF_MACHINE
from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement
from donewhen.jobs.evidence.room_session import PrepareFailedError
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.gates.truth_gate import CRITERION_CODES, status_sentence
from donewhen.jobs.ledger.entry_content import CommandRun
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying.agreed_jobs import AgreedJob
from donewhen.jobs.verifying.cases import CaseKind, CaseReason, Outcome, VerificationCase
from donewhen.jobs.verifying.decisions import Results, acceptance_step
from donewhen.jobs.verifying.run_trees import RunTree

_MAX_LINES = 20


def criterion_case(job: AgreedJob, results: Results, place: int) -> VerificationCase:
    requirement = results[0][1][place].requirement
    kind: CaseKind = "command" if requirement.name == VERIFICATION else "criterion"
    name = f"`{requirement.evidence}`" if kind == "command" else requirement.name
    reasons: list[CaseReason] = []
    output = ""
    for tree, evidence in results:
        status = evidence[place]
        if status.state == "passed":
            continue
        code = GateCode.COMMAND_NOT_PASSED if kind == "command" else CRITERION_CODES[status.state]
        label, step = tree.label, next_step(job, code)
        if status.code in OF_MACHINE or status.code == GateCode.RUN_NOT_TRUSTED:
            code, step = status.code, next_step(job, status.code)
        elif status.code is not None:
            code, label, step = status.code, "", acceptance_step(job.job.id, status.code)
        reasons.append(CaseReason(code, f"{label}{status_sentence(status)}", _line_of(job, requirement), step))
        output = output or _output_end(tree.workspace, status)
    messages = [reason.message.removeprefix(tree.label) for reason, (tree, _) in zip(reasons, results, strict=False)]
    if len(messages) > 1 and len(set(messages)) == 1:
        # The message is the same with either set of tests, so it needs no label.
        reasons = [reasons[0]._replace(message=messages[0])]
    hindered = bool(reasons) and all(reason.code in OF_MACHINE for reason in reasons)
    outcome: Outcome = "error" if hindered else "failed" if reasons else "passed"
    return VerificationCase(name, kind, outcome, tuple(reasons), requirement.text, output)


def prepare_case(job: AgreedJob, tree: RunTree, error: PrepareFailedError) -> VerificationCase:
    code = error.hindrance or GateCode.COMMAND_NOT_PASSED
    reason = CaseReason(code, f"{tree.label}{error.message}.", job.claim.where, next_step(job, code))
    output = _last_lines(tree.workspace, redact_secrets(error.run.result.output))
    outcome: Outcome = "failed" if error.hindrance is None else "error"
    return VerificationCase("prepare", "command", outcome, (reason,), output=output)


def next_step(job: AgreedJob, code: GateCode) -> str:
    return GATE_REASONS[code].next_step.replace("JOB", job.job.id)


def _line_of(agreed_job: AgreedJob, requirement: Requirement) -> str:
    """The line of a requirement in the branch's plan; the plan file if it is no longer there."""
    job = agreed_job.claim.job
    if job is None:
        return agreed_job.claim.where
    line = next((criterion.line for criterion in job.criteria if criterion.text == requirement.text), None)
    line = line or next((criterion.line for criterion in job.criteria if criterion.id == requirement.name), None)
    if requirement.name == VERIFICATION:
        line = job.document.line_of("truth_required_commands")
    return f"{agreed_job.claim.where}:{line}" if line else agreed_job.claim.where


def _output_end(tree: Workspace, status: EvidenceStatus) -> str:
    run = None if status.entry is None else status.entry.content
    content = evidence_store(tree).get(run.output) if isinstance(run, CommandRun) and run.output else None
    return _last_lines(tree, (content or b"").decode("utf-8", "replace"))


def _last_lines(tree: Workspace, output: str) -> str:
    text = plain_text(output).replace(str(tree.root), ".")
    return "\n".join(text.rstrip().splitlines()[-_MAX_LINES:])
