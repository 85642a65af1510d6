"""The one hint that the plan shows: nine conditions, the first that fails, always in the same words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from donewhen.jobs.board.views import ViewFact
from donewhen.jobs.gates.facts import Facts, FileFact
from donewhen.jobs.gates.next_action import next_action
from donewhen.jobs.gates.truth_gate import truth_gate
from donewhen.jobs.issues.mirror_status import MirrorFact
from donewhen.jobs.ledger.gate_results import GateCode, GateReason, GateResult
from donewhen.jobs.plan.job import Job
from sentences import assert_sentences

MakeFacts = Callable[..., Facts]
MakeJob = Callable[..., Job]

TRUE = GateResult("truth", ())
FALSE = GateResult(
    "truth",
    (GateReason(GateCode.CRITERION_FAILED, "AC-1 is failed."), GateReason(GateCode.CRITERION_STALE, "AC-2 is stale.")),
)
WORDS = [
    "Resolve truth failures: AC-1 is failed.",
    "Produce the missing outputs: outputs/primary.md",
    "Add the missing verification evidence: proof.md",
    "Replace placeholder or weak acceptance criteria.",
    "Write a verification plan that can be carried out.",
    "Refresh the task tracker and the dashboard.",
    "Log execution evidence: run the verification through donewhen run.",
    "Link the GitHub issue of this job: never mirrored; donewhen github sync brings it up to date.",
    "Final check: read the result once more, note progress, then complete.",
]


def lacking(make_facts: MakeFacts, make_job: MakeJob, first: int) -> tuple[Facts, GateResult]:
    """Facts in which the conditions from ``first`` on all fail, and those before it hold."""
    prose = make_job(criteria=["It reads well."])
    # A job that people alone decide needs no execution log, and one with a check needs no plan in words.
    facts = make_facts(prose if first <= 5 else make_job())
    if first <= 8:
        facts = facts._replace(mirror=MirrorFact(enabled=True, current=False, why="never mirrored"))
    if first <= 7:
        facts = facts._replace(runs=0)
    if first <= 6:
        facts = facts._replace(views=ViewFact(tracker=True, dashboard=False))
    if first <= 5:
        facts = facts._replace(sections={"verification": "TBD"})
    if first <= 4:
        weak = make_job(criteria=["It reads well.", "TBD"])
        facts = facts._replace(job=weak)
    if first <= 3:
        facts = facts._replace(evidence_files=(FileFact("proof.md", "missing"),))
    if first <= 2:
        facts = facts._replace(outputs=(FileFact("outputs/primary.md", "empty"),))
    return facts, FALSE if first <= 1 else TRUE


@pytest.mark.parametrize("step", range(1, 10))
def test_the_first_condition_that_fails_is_told_whatever_else_fails(
    make_facts: MakeFacts, make_job: MakeJob, step: int
) -> None:
    facts, truth = lacking(make_facts, make_job, step)
    assert next_action(facts, truth) == WORDS[step - 1]


def test_only_outputs_that_are_not_good_are_named(make_facts: MakeFacts, make_job: MakeJob) -> None:
    files = (FileFact("a.md", "good"), FileFact("b.md", "empty"), FileFact("c.md", "not_a_file"))
    facts = make_facts(make_job(outputs=["a.md", "b.md", "c.md"]), outputs=files)
    assert_sentences(next_action(facts, TRUE))


def test_evidence_that_is_missing_is_named_once(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = make_job(criteria=["It works.", "It is quick."], commands=["sh a.sh", "sh b.sh"], truth_mode="off")
    facts = make_facts(
        job,
        states={"verification": "stale", "AC-2": "failed"},
        evidence_files=(FileFact("good.md", "good"), FileFact("proof.md", "missing")),
    )
    assert_sentences(next_action(facts, TRUE))


def test_a_job_without_criteria_needs_some(make_facts: MakeFacts, make_job: MakeJob) -> None:
    facts = make_facts(replace(make_job(), criteria=()))
    assert next_action(facts, TRUE) == "Replace placeholder or weak acceptance criteria."


@pytest.mark.parametrize(
    "views",
    [ViewFact(tracker=False, dashboard=True), ViewFact(tracker=True, dashboard=False)],
    ids=["tracker", "board"],
)
def test_either_view_that_is_not_current_is_refreshed(make_facts: MakeFacts, views: ViewFact) -> None:
    assert next_action(make_facts(views=views), TRUE) == "Refresh the task tracker and the dashboard."


def test_an_execution_log_that_is_not_asked_for_is_no_next_action(make_facts: MakeFacts, make_job: MakeJob) -> None:
    waived = make_facts(make_job(execution_log_required=False), runs=0)
    assert next_action(waived, TRUE).startswith("Final check")


def test_an_execution_log_that_was_exempted_is_no_next_action(make_facts: MakeFacts, make_job: MakeJob) -> None:
    exempt = make_facts(make_job(execution_log_exemption_reason="prose only"), runs=0)
    assert next_action(exempt, TRUE).startswith("Final check")


def test_a_mirror_that_is_off_needs_no_link(make_facts: MakeFacts) -> None:
    assert next_action(make_facts(mirror=MirrorFact(enabled=False, current=False)), TRUE).startswith("Final check")
    assert next_action(make_facts(mirror=MirrorFact(enabled=True, current=True)), TRUE).startswith("Final check")


def test_the_truth_gate_as_it_is_leads_to_the_first_step(make_facts: MakeFacts) -> None:
    facts = make_facts(states={"AC-1": "missing"}, outputs=(FileFact("outputs/primary.md", "missing"),))
    message = next_action(facts, truth_gate(facts))
    assert_sentences(message)


def test_an_output_that_is_a_placeholder_is_to_be_replaced_once_none_is_missing(make_facts: MakeFacts) -> None:
    files = (FileFact("a.md", "good"), FileFact("b.md", "good", template=True))
    assert_sentences(next_action(make_facts(outputs=files), TRUE))
    lacking = make_facts(outputs=(*files, FileFact("c.md", "missing")))
    assert next_action(lacking, TRUE) == "Produce the missing outputs: c.md"
