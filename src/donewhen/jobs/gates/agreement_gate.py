"""The agreement gate: the project and the job are agreed, and their terms are unchanged since."""

from __future__ import annotations

from collections.abc import Iterator

from donewhen.jobs.board.job_state import AGREEMENT_CODES, agreement_step
from donewhen.jobs.contract.agreement import Agreement
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.ledger.gate_results import GateCode, GateReason, GateResult


def agreement_gate(facts: Facts) -> GateResult:
    """Open when the project and the job are agreed and sealed."""
    reasons = (
        *_reasons(facts.project.id, facts.project_agreement),
        *_reasons(facts.job.id, facts.agreement),
    )
    voided = any(reason.code == GateCode.AGREEMENT_VOIDED for reason in reasons)
    step = agreement_step(voided, None if facts.project_agreement.state == "voided" else facts.job.id)
    return GateResult("agreement", reasons, step if reasons else None)


def _reasons(name: str, agreement: Agreement) -> Iterator[GateReason]:
    if agreement.state == "agreed":
        return
    code = AGREEMENT_CODES[agreement.state]
    if not agreement.voiding:
        yield GateReason(code, f"{name} is {agreement.state}, not agreed.")
    for change in agreement.voiding:
        values = " → ".join(value for value in (change.before, change.after or "nothing") if value)
        yield GateReason(code, f"{name}: {change.field} was {change.kind} since it was agreed: {values}.")
