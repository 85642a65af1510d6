"""All gates on one set of facts. Every gate is asked, whatever the others say, so that one look tells everything."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.gates.agreement_gate import agreement_gate
from donewhen.jobs.gates.budget_gate import budget_gate
from donewhen.jobs.gates.dependency_gate import dependency_gate
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.gates.next_action import next_action
from donewhen.jobs.gates.reward_gate import reward_gate
from donewhen.jobs.gates.score import Score, score_of
from donewhen.jobs.gates.truth_gate import truth_gate
from donewhen.jobs.ledger.gate_results import GateCode, GateName, GateReason, GateResult


class Evaluation(NamedTuple):
    """What the gates say, in their order, with the score."""

    gates: tuple[GateResult, ...]
    score: Score
    next_action: str

    @property
    def passed(self) -> bool:
        return all(gate.passed for gate in self.gates)

    @property
    def truth(self) -> GateResult:
        return next(gate for gate in self.gates if gate.gate == "truth")

    @property
    def reasons(self) -> tuple[GateReason, ...]:
        return tuple(reason for gate in self.gates for reason in gate.reasons)

    @property
    def broken(self) -> bool:
        """Whether a gate could not be asked."""
        return any(reason.code == GateCode.GATE_ERROR for reason in self.reasons)

    @property
    def waits_for_person(self) -> bool:
        """Whether nothing is missing but a person's word on what a judge left open."""
        codes = {reason.code for reason in self.reasons}
        return GateCode.NEEDS_HUMAN in codes and codes <= {GateCode.NEEDS_HUMAN, GateCode.SCORE_TOO_LOW}

    @property
    def next(self) -> str | None:
        """The next command: that of the first closed gate."""
        return next((gate.next for gate in self.gates if not gate.passed), None)


def evaluate(facts: Facts) -> Evaluation:
    """Ask every gate. One that breaks is closed, and says so."""
    score = Score(0, (), ())
    truth = _asked("truth", lambda: truth_gate(facts))

    def reward() -> GateResult:
        nonlocal score
        score = score_of(facts)
        return reward_gate(facts, score)

    gates = (
        _asked("agreement", lambda: agreement_gate(facts)),
        _asked("budget", lambda: budget_gate(facts)),
        _asked("dependency", lambda: dependency_gate(facts)),
        truth,
        _asked("reward", reward),
    )
    return Evaluation(gates, score, next_action(facts, truth))


def _asked(name: GateName, gate: Callable[[], GateResult]) -> GateResult:
    try:
        return gate()
    except Exception as error:
        if os.environ.get("DONEWHEN_DEBUG"):
            raise
        told = one_line(f"The gate broke: {type(error).__name__}: {error}", 400)
        return GateResult(name, (GateReason(GateCode.GATE_ERROR, told),), "DONEWHEN_DEBUG=1 donewhen …")
