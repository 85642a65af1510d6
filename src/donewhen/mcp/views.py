"""Convert jobs, contracts and evidence to answers of the tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from donewhen.jobs.contract.agreeing import AgreementProposal
from donewhen.jobs.contract.terms import terms_hash
from donewhen.jobs.evidence.commands import EvidenceRun
from donewhen.jobs.evidence.requirements import VERIFICATION
from donewhen.jobs.evidence.requirements import Requirement as Requirement
from donewhen.jobs.gates.evaluation import Evaluation
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.gates.job_view import JobView
from donewhen.jobs.gates.shown_strength import strength_sentences
from donewhen.jobs.ledger.entry_content import CommandRun, JudgeRun, Ran
from donewhen.jobs.ledger.gate_results import GateReason
from donewhen.jobs.ledger.terms_content import plain_terms
from donewhen.mcp.answers import (
    ContractChange,
    ContractView,
    EvidenceItem,
    GateView,
    OutputFile,
    ReasonView,
    RequirementView,
    ShownJob,
    Term,
)

_TAIL_LINES = 40
_TAIL = 3000
_MAX_FILES = 50


def reason_views(reasons: Iterable[GateReason]) -> list[ReasonView]:
    return [ReasonView(reason.code.value, reason.message, reason.where, [*reason.details]) for reason in reasons]


def gate_views(evaluation: Evaluation) -> list[GateView]:
    """Return every gate, open or closed."""
    return [
        GateView(gate.gate, gate.passed, reason_views(gate.reasons), gate.note, gate.next) for gate in evaluation.gates
    ]


def contract_view(proposal: AgreementProposal) -> ContractView:
    """Return the sealed terms, or the current terms if nothing is sealed yet."""
    agreement, seal = proposal.agreement, proposal.agreement.seal
    terms = seal.terms if seal else agreement.terms
    return ContractView(
        job=proposal.chain,
        state=agreement.state,
        hash=terms_hash(terms),
        terms={name: _term(value) for name, value in plain_terms(terms).items()},
        changes=[
            ContractChange(change.kind, change.field, change.before, change.after, proposal.place(change), change.voids)
            for change in agreement.changes
        ],
        agreed_at=seal.entry.at if seal else None,
        agreed_by=f"{seal.entry.who} ({seal.entry.by.kind})" if seal else None,
    )


def job_view(view: JobView, proposal: AgreementProposal, changes: Sequence[str] = ()) -> ShownJob:
    """Return a job with its contract, its requirements, and the current state of its gates."""
    job, evaluation, pause = view.job, view.evaluation, view.pause
    return ShownJob(
        id=job.id,
        title=job.title,
        status=job.status,
        state=view.word,
        code=view.code,
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        score=evaluation.score.total,
        target=job.reward_target,
        passed=evaluation.passed,
        contract=contract_view(proposal),
        needs=[_need(status) for status in view.evidence],
        outputs=[OutputFile(output.path, output.state, output.changed) for output in view.facts.outputs],
        gates=gate_views(evaluation),
        waiting=pause.reason if pause else None,
        next=view.next,
        next_action=evaluation.next_action,
        notes=[*view.notes],
        changes=[*changes][:_MAX_FILES],
    )


def evidence_item(requirement: Requirement, seen: EvidenceRun) -> EvidenceItem:
    """Return one piece of evidence, with the last lines of the command's output."""
    run = seen.entry.read_as(Ran)
    return EvidenceItem(
        name=requirement.name,
        evidence=evidence_source(requirement),
        # If the inputs changed during the run, the result proves nothing.
        passed=run.passed and run.settled,
        reused=seen.reused,
        told=_result_text(seen),
        needs_human=isinstance(run, JudgeRun) and run.needs_human,
        exit_code=run.exit_code if isinstance(run, CommandRun) else None,
        tests={**run.report.numbers()} if isinstance(run, CommandRun) and run.report is not None else {},
        output=_tail(seen.output) if isinstance(run, CommandRun) else "",
    )


def _result_text(seen: EvidenceRun) -> str:
    run = seen.entry.read_as(Ran)
    text = run.told if run.told is not None else "passed" if run.passed else "did not pass"
    if isinstance(run, CommandRun) and not run.passed:
        text = f"{run.ending.replace('_', ' ')}, exit status {run.exit_code}"
    if seen.reused:
        text += " (fresh; not run again)"
    return text if run.settled else f"{text}; its inputs changed while it ran, so it counts as stale"


def _tail(output: str) -> str:
    return "\n".join(output.rstrip().split("\n")[-_TAIL_LINES:])[-_TAIL:]


def _need(status: EvidenceStatus) -> RequirementView:
    requirement = status.requirement
    return RequirementView(
        requirement.name,
        requirement.text,
        requirement.check.kind,
        how_checked(requirement),
        status.state,
        list(status.why),
        None if status.strength is None else status.strength.level,
        list(strength_sentences(status)),
        [] if status.strength is None else list(status.strength.better),
        status.needed,
    )


def evidence_source(requirement: Requirement) -> str:
    """Return the source of the evidence: a command, a file check, or a judge."""
    return requirement.check.normal if requirement.check.kind == "judge" else requirement.evidence


def how_checked(requirement: Requirement) -> str:
    """Describe how a requirement is checked."""
    match requirement.check.kind:
        case "manual":
            return "a person signs it off"
        case "verification":
            return "the job's verification commands decide"
        case "run" if requirement.name != VERIFICATION:
            return f"run {requirement.evidence}"
        case _:
            return evidence_source(requirement)


def _term(value: Any) -> Term:
    """Return a sealed term; other values are converted to text."""
    if isinstance(value, Mapping):
        return {str(name): str(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    return value if isinstance(value, bool | int) else str(value)
