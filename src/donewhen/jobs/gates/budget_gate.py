"""May it be tried once more?"""

from __future__ import annotations

from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.ledger.gate_results import GateCode, GateReason, GateResult


def budget_gate(facts: Facts) -> GateResult:
    """Open while the iterations are within what was agreed, and after a block only once somebody has decided."""
    job, history = facts.job, facts.history
    limit = job.max_iterations
    if history.status == "cancelled":
        reason = GateReason(GateCode.CANCELLED, f"{job.id} was cancelled.", facts.where)
        return GateResult("budget", (reason,), f'donewhen decide {job.id} --rescope --reason "…"')
    # Whatever was decided since the block gives another try; the next refusal blocks again.
    freed = history.auto_blocked and history.decided_since_block
    if history.iteration > limit and not freed:
        message = f"{job.id} has taken {history.iteration} iterations of {limit}."
    elif history.auto_blocked and not freed:
        message = f"{job.id} ran out of its budget, and nothing has been decided since."
    else:
        return GateResult("budget", (), note=f"iteration {history.iteration} of {limit}")
    step = f'donewhen decide {job.id} --raise-budget {max(limit, history.iteration) + 1} --reason "…"'
    return GateResult("budget", (GateReason(GateCode.BUDGET_EXCEEDED, message, facts.where),), step)
