"""The gate that asks for the score, and all gates asked together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from donewhen.jobs.contract.agreement import Agreement
from donewhen.jobs.gates import evaluation
from donewhen.jobs.gates.evaluation import evaluate
from donewhen.jobs.gates.facts import Facts, FileFact
from donewhen.jobs.gates.reward_gate import reward_gate
from donewhen.jobs.gates.score import Score
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode, GateReason, GateResult
from donewhen.jobs.plan.job import Job
from donewhen.jobs.record.history import History
from sentences import assert_sentences

MakeFacts = Callable[..., Facts]
MakeJob = Callable[..., Job]
MakeHistory = Callable[..., History]
ID = "WI-20260214-001"
GATES = ["agreement", "budget", "dependency", "truth", "reward"]


def scored(total: int) -> Score:
    return Score(total, (), ())


@pytest.mark.parametrize("total", [80, 81, 100])
def test_a_score_that_reaches_the_target_opens_the_gate(make_facts: MakeFacts, total: int) -> None:
    found = reward_gate(make_facts(), scored(total))
    assert (found.gate, found.passed, found.next) == ("reward", True, None)
    assert str(total) in found.note
    assert_sentences(found.note)


@pytest.mark.parametrize("total", [0, 79])
def test_a_score_below_the_target_closes_the_gate(make_facts: MakeFacts, total: int) -> None:
    found = reward_gate(make_facts(), scored(total))
    (reason,) = found.reasons
    assert (found.gate, reason.code) == ("reward", GateCode.SCORE_TOO_LOW)
    assert str(total) in reason.message
    assert_sentences(reason.message)
    assert reason.where == f"jobs/{ID}-parser/plan.md"
    assert found.next == f"donewhen reward {ID} --explain"


@pytest.mark.parametrize(("stakes", "target"), [("low", 70), ("normal", 80), ("high", 90), ("critical", 95)])
def test_the_target_is_that_of_the_stakes_where_none_is_given(
    make_facts: MakeFacts, make_job: MakeJob, stakes: str, target: int
) -> None:
    facts = make_facts(make_job(stakes=stakes, reward_target=""))
    assert reward_gate(facts, scored(target)).passed
    assert not reward_gate(facts, scored(target - 1)).passed


def test_a_score_that_was_typed_into_the_plan_counts_for_nothing(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = make_job(reward_last_score=100)
    assert not reward_gate(make_facts(job), scored(79)).passed
    low = evaluate(make_facts(job, states={"AC-1": "missing"}, outputs=(FileFact("outputs/primary.md", "missing"),)))
    assert GateCode.SCORE_TOO_LOW in [reason.code for reason in low.reasons]


# All gates together


def test_every_gate_is_asked_in_its_order_and_all_open_is_a_pass(make_facts: MakeFacts) -> None:
    found = evaluate(make_facts())
    assert [gate.gate for gate in found.gates] == GATES
    assert (found.passed, found.broken, found.reasons, found.next) == (True, False, (), None)
    assert found.score.total == 100


def test_all_closed_gates_are_told_and_the_next_command_is_that_of_the_first(
    make_facts: MakeFacts, make_history: MakeHistory
) -> None:
    found = evaluate(
        make_facts(
            agreement=Agreement("proposed", {}, None),
            history=make_history(iteration=4),
            outputs=(FileFact("outputs/primary.md", "missing"),),
            states={"AC-1": "missing"},
        )
    )
    assert [gate.passed for gate in found.gates] == [False] * 5
    assert {reason.code for reason in found.reasons} == {
        GateCode.NOT_AGREED_YET,
        GateCode.BUDGET_EXCEEDED,
        GateCode.OUTPUT_MISSING,
        GateCode.CRITERION_NOT_SHOWN,
        GateCode.SCORE_TOO_LOW,
    }
    assert found.next == f"donewhen agree {ID}"
    assert found.truth.gate == "truth"


def test_the_next_command_skips_the_gates_that_are_open(make_facts: MakeFacts) -> None:
    found = evaluate(make_facts(upstream_changed=("a.md",), job=None))
    assert found.next == f"donewhen start {ID}"


def test_a_full_score_does_not_make_up_for_a_closed_gate(make_facts: MakeFacts) -> None:
    found = evaluate(make_facts(agreement=Agreement("voided", {}, None)))
    assert (found.score.total, found.passed) == (100, False)


@pytest.mark.parametrize("name", GATES)
def test_a_gate_that_breaks_is_closed_and_the_others_are_still_asked(
    make_facts: MakeFacts, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def broken(*_: object) -> GateResult:
        raise RuntimeError("no idea\nat all")

    monkeypatch.delenv("DONEWHEN_DEBUG", raising=False)
    monkeypatch.setattr(evaluation, f"{name}_gate", broken)
    found = evaluate(make_facts())
    assert {gate.gate: gate.passed for gate in found.gates} == {item: item != name for item in GATES}
    assert [(reason.code, reason.message) for reason in found.reasons] == [
        (GateCode.GATE_ERROR, "The gate raised an error: RuntimeError: no idea at all")
    ]
    assert (found.passed, found.broken) == (False, True)
    assert found.next is not None
    assert found.next.startswith("DONEWHEN_DEBUG=1 ")


def test_a_score_that_cannot_be_computed_closes_its_gate_and_is_zero(
    make_facts: MakeFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Facts) -> Score:
        raise ZeroDivisionError

    monkeypatch.delenv("DONEWHEN_DEBUG", raising=False)
    monkeypatch.setattr(evaluation, "score_of", broken)
    found = evaluate(make_facts())
    assert (found.score.total, found.broken) == (0, True)
    assert [gate.gate for gate in found.gates if not gate.passed] == ["reward"]


def test_facts_that_no_gate_expects_are_an_error_and_not_a_pass(
    make_facts: MakeFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DONEWHEN_DEBUG", raising=False)
    found = evaluate(make_facts(outputs=(FileFact("a.md", "unheard of"),)))  # type: ignore[arg-type]
    assert (found.broken, found.passed) == (True, False)


def test_whoever_looks_for_the_mistake_gets_the_traceback(
    make_facts: MakeFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DONEWHEN_DEBUG", "1")
    with pytest.raises(KeyError):
        evaluate(make_facts(outputs=(FileFact("a.md", "unheard of"),)))  # type: ignore[arg-type]


def test_every_code_has_a_meaning_and_a_next_step() -> None:
    assert set(GATE_REASONS) == set(GateCode)
    assert all(len(part) > 10 for reason in GATE_REASONS.values() for part in reason)
    assert all(code.value == code.name.lower() for code in GateCode)


def test_a_result_passes_exactly_when_it_has_no_reason() -> None:
    assert GateResult("truth", ()).passed
    assert not GateResult("truth", (GateReason(GateCode.GATE_ERROR, "x"),)).passed
