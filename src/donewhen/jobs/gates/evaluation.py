"""Evaluate all gates on the same facts. A closed gate does not stop the others, so the result is complete."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.job_state import waits_for_person
from donewhen.jobs.gates.agreement_gate import agreement_gate
from donewhen.jobs.gates.budget_gate import budget_gate
from donewhen.jobs.gates.dependency_gate import dependency_gate
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.gates.next_action import next_action
from donewhen.jobs.gates.reward_gate import reward_gate
from donewhen.jobs.gates.room_notes import room_notes
from donewhen.jobs.gates.score import Score, score_of
from donewhen.jobs.gates.truth_gate import truth_gate
from donewhen.jobs.ledger.gate_results import GateCode, GateName, GateReason, GateResult


class Evaluation(NamedTuple):
    """The results of all gates, in order, with the score."""

    gates: tuple[GateResult, ...]
    score: Score
    next_action: str
    notes: tuple[str, ...] = ()
    """What is worth knowing and closes no gate."""

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
        """Whether a gate raised an error."""
        return any(reason.code == GateCode.GATE_ERROR for reason in self.reasons)

    @property
    def waits_for_person(self) -> bool:
        """Whether only a person's decision is missing."""
        return waits_for_person([reason.code for reason in self.reasons])

    @property
    def next(self) -> str | None:
        """The command of the first closed gate. The next step of the job is in ``JobView``: it also depends on whether
        the job is set aside, done or waits for others."""
        return next((gate.next for gate in self.gates if not gate.passed), None)


def evaluate(facts: Facts) -> Evaluation:
    """Evaluate every gate. A gate that raises an error is closed, with the error as its reason."""
    score = Score(0, (), ())
    truth = _evaluate_gate("truth", lambda: truth_gate(facts))

    def reward() -> GateResult:
        nonlocal score
        score = score_of(facts)
        return reward_gate(facts, score)

    gates = (
        _evaluate_gate("agreement", lambda: agreement_gate(facts)),
        _evaluate_gate("budget", lambda: budget_gate(facts)),
        _evaluate_gate("dependency", lambda: dependency_gate(facts)),
        truth,
        _evaluate_gate("reward", reward),
    )
    return Evaluation(gates, score, next_action(facts, truth), room_notes(facts.evidence))


def _evaluate_gate(name: GateName, gate: Callable[[], GateResult]) -> GateResult:
    try:
        return gate()
    except Exception as error:
        if os.environ.get("DONEWHEN_DEBUG"):
            raise
        message = one_line(f"The gate raised an error: {type(error).__name__}: {error}", 400)
        return GateResult(name, (GateReason(GateCode.GATE_ERROR, message),), "DONEWHEN_DEBUG=1 donewhen …")
