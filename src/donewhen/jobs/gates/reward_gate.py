"""Is the score as high as was agreed?"""

from __future__ import annotations

from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.gates.score import Score
from donewhen.jobs.ledger.gate_results import GateCode, GateReason, GateResult


def reward_gate(facts: Facts, score: Score) -> GateResult:
    """Open when the score reaches the target. The other gates stand beside it: points never make up for them."""
    target = facts.job.reward_target
    if score.total >= target:
        return GateResult("reward", (), note=f"{score.total} of 100, {target} asked for")
    message = f"The score is {score.total}; {target} was agreed."
    reason = GateReason(GateCode.SCORE_TOO_LOW, message, facts.where)
    return GateResult("reward", (reason,), f"donewhen reward {facts.job.id} --explain")
