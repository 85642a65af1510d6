"""The reward gate: the score reaches the agreed target."""

from __future__ import annotations

from donewhen.jobs.board.job_state import step_for
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.gates.score import Score, score_words
from donewhen.jobs.ledger.gate_results import GateCode, GateReason, GateResult


def reward_gate(facts: Facts, score: Score) -> GateResult:
    """Open when the score reaches the target. Points never make up for another gate that is closed."""
    target = facts.job.reward_target
    if score.total >= target:
        return GateResult("reward", (), note=score_words(score.total, target))
    message = f"The score is {score_words(score.total, target)}."
    reason = GateReason(GateCode.SCORE_TOO_LOW, message, facts.where)
    return GateResult("reward", (reason,), step_for(reason.code, facts.job.id))
