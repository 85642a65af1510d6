"""The budget gate: the job has iterations left."""

from __future__ import annotations

from donewhen.jobs.board.job_state import raise_budget_step
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.ledger.gate_results import GateCode, GateReason, GateResult


def budget_gate(facts: Facts) -> GateResult:
    """Open while the iterations are within the agreed limit; after a block, only after a new decision."""
    job, history = facts.job, facts.history
    limit = job.max_iterations
    if history.status == "cancelled":
        reason = GateReason(GateCode.CANCELLED, f"{job.id} was cancelled.", facts.where)
        return GateResult("budget", (reason,), f'donewhen decide {job.id} --rescope --reason "…"')
    # Any decision since the block allows another attempt; the next refusal blocks again.
    unblocked = history.auto_blocked and history.decided_since_block
    if history.iteration > limit and not unblocked:
        message = f"{job.id} has used {history.iteration} iterations; the limit is {limit}."
    elif history.auto_blocked and not unblocked:
        message = f"{job.id} used up its iterations and needs a decision."
    else:
        return GateResult("budget", (), note=f"iteration {history.iteration} of {limit}")
    step = raise_budget_step(job.id, limit, history.iteration)
    return GateResult("budget", (GateReason(GateCode.BUDGET_EXCEEDED, message, facts.where),), step)
