"""The gate that asks whether it is true: criterion by criterion, check by check, and whether the record is whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.gates.evidence_status import EvidenceStatus, State
from donewhen.jobs.gates.facts import Facts, FileFact
from donewhen.jobs.gates.suites import SuiteFact
from donewhen.jobs.gates.truth_gate import truth_gate
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.lessons.lesson_use import LessonFact
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.job import TRUTH_CHECKS, Job
from donewhen.jobs.record.projection import Mismatch
from sentences import assert_sentences

MakeFacts = Callable[..., Facts]
MakeJob = Callable[..., Job]
ID = "WI-20260214-001"
WHERE = f"jobs/{ID}-parser/plan.md"


def codes(facts: Facts) -> list[GateCode]:
    return [reason.code for reason in truth_gate(facts).reasons]


def checking(make_job: MakeJob, *names: str, **options: object) -> Job:
    """A job with no truth checks but these."""
    return make_job(truth_checks=list(names), **options)


def test_the_gate_is_open_when_all_is_shown(make_facts: MakeFacts) -> None:
    found = truth_gate(make_facts())
    assert (found.gate, found.passed, found.next, found.note) == ("truth", True, None, "")


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [
        ("failed", GateCode.CRITERION_FAILED, "is not met"),
        ("stale", GateCode.CRITERION_STALE, "is stale"),
        ("missing", GateCode.CRITERION_NOT_SHOWN, "has no evidence"),
        ("asserted", GateCode.CRITERION_NOT_SHOWN, "is only claimed"),
    ],
)
def test_a_criterion_without_evidence_closes_the_gate(
    make_facts: MakeFacts, make_job: MakeJob, state: State, code: GateCode, words: str
) -> None:
    job = checking(make_job, criteria=["The log is parsed.", "It is quick."])
    facts = make_facts(job, states={"AC-2": state})
    (reason,) = truth_gate(facts).reasons
    assert (reason.code, reason.message) == (code, f"AC-2 (It is quick.) {words}.")
    assert reason.where == f"{WHERE}:{job.criteria[1].line}"
    by_hand = f'donewhen sign-off {ID} --criterion AC-2 --reason "…"'
    assert truth_gate(facts).next == (f"donewhen why {ID}" if state == "failed" else by_hand)


def test_a_reason_says_why_and_cuts_a_long_criterion_short(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = checking(make_job, criteria=["A long wish. " * 20])
    (requirement,) = requirements_of(job)
    facts = make_facts(job, evidence=(EvidenceStatus(requirement, "stale", ("a.md changed", "b.md is new")),))
    (reason,) = truth_gate(facts).reasons
    assert_sentences(reason.message)
    assert len(reason.message) < 150


@pytest.mark.parametrize("criteria", [["TBD"], ["x", "..."], ["[What must be true for this to be done?]"]])
def test_without_a_criterion_that_says_something_the_gate_is_closed(
    make_facts: MakeFacts, make_job: MakeJob, criteria: list[str]
) -> None:
    facts = make_facts(make_job(criteria=criteria))
    assert codes(facts) == [GateCode.CRITERIA_ABSENT]
    assert_sentences(truth_gate(facts).reasons[0].message)
    assert truth_gate(facts).reasons[0].where == WHERE


def test_a_job_without_any_criteria_is_never_true(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = replace(make_job(), criteria=())
    assert codes(make_facts(job)) == [GateCode.CRITERIA_ABSENT]


def test_one_real_criterion_is_enough_but_a_placeholder_beside_it_must_be_shown_as_well(
    make_facts: MakeFacts, make_job: MakeJob
) -> None:
    job = make_job(criteria=["The log is parsed.", "TBD"])
    assert truth_gate(make_facts(job)).passed
    assert codes(make_facts(job, states={"AC-2": "missing"})) == [GateCode.CRITERION_NOT_SHOWN]


def test_tests_that_are_gone_close_the_gate_and_are_named(make_facts: MakeFacts) -> None:
    suite = SuiteFact("pytest", lost=("t::a", "t::b", "t::c", "t::d", "t::e"), skipped=(), before=5, now=0)
    facts = make_facts(suites=(suite,))
    (reason,) = truth_gate(facts).reasons
    assert reason.code == GateCode.REPORT_TESTS_LOST
    assert reason.message == "5 test(s) are missing from `pytest`: t::a, t::b, t::c and 2 more."
    assert truth_gate(facts).next == f"donewhen why {ID}"


def test_tests_that_are_skipped_now_close_the_gate_and_are_named(make_facts: MakeFacts) -> None:
    suite = SuiteFact("pytest", lost=(), skipped=("t::a", "t::b", "t::c"), before=3, now=3)
    (reason,) = truth_gate(make_facts(suites=(suite,))).reasons
    assert reason.code == GateCode.REPORT_TESTS_SKIPPED
    assert reason.message == "3 test(s) that used to run are skipped in `pytest`: t::a, t::b, t::c."


def test_more_tests_than_before_are_welcome(make_facts: MakeFacts) -> None:
    assert truth_gate(make_facts(suites=(SuiteFact("pytest", (), (), before=3, now=9),))).passed


def test_every_suite_is_looked_at(make_facts: MakeFacts) -> None:
    bad = SuiteFact("b", lost=("t::a",), skipped=("t::b",), before=2, now=1)
    facts = make_facts(suites=(SuiteFact("a", (), (), 1, 1), bad))
    assert codes(facts) == [GateCode.REPORT_TESTS_LOST, GateCode.REPORT_TESTS_SKIPPED]


def test_a_field_that_does_not_say_what_the_ledger_says_closes_the_gate(
    make_facts: MakeFacts, make_job: MakeJob
) -> None:
    job = make_job()
    facts = make_facts(job, tampered=(Mismatch("reward_last_score", 100, 12), Mismatch("agreed_by", "me", "")))
    first, second = truth_gate(facts).reasons
    assert first.code == second.code == GateCode.RECORD_TAMPERED
    assert_sentences(first.message)
    assert first.where == f"{WHERE}:{job.document.line_of('reward_last_score')}"
    assert second.where == WHERE
    assert truth_gate(facts).next == "donewhen audit"


def test_a_ledger_that_does_not_hold_closes_the_gate_and_is_told_first(make_facts: MakeFacts) -> None:
    facts = make_facts(chain_breaks=("line 3 has another hash",), states={"AC-1": "failed"})
    found = truth_gate(facts)
    assert [reason.code for reason in found.reasons] == [GateCode.RECORD_BROKEN, GateCode.CRITERION_FAILED]
    assert_sentences(found.reasons[0].message)
    assert found.next == "donewhen audit"


def test_truth_mode_off_leaves_only_the_record_and_says_so(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = make_job(truth_mode="off")
    found = truth_gate(make_facts(job, states={"AC-1": "failed"}, outputs=(), runs=0))
    assert (found.gate, found.passed) == ("truth", True)
    assert_sentences(found.note)
    tampered = truth_gate(make_facts(job, tampered=(Mismatch("status", "done", "planned"),)))
    assert [reason.code for reason in tampered.reasons] == [GateCode.RECORD_TAMPERED]
    assert tampered.next == "donewhen audit"
    assert_sentences(tampered.note)


def test_every_known_check_can_be_asked_and_is_open_when_all_is_well(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = checking(make_job, *TRUTH_CHECKS, commands=["sh check.sh"])
    assert truth_gate(make_facts(job)).passed


def test_exists_nonempty_asks_for_the_outputs(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = checking(make_job, "exists_nonempty", outputs=["a.md", "b.md"])
    facts = make_facts(job, outputs=(FileFact("a.md", "good"), FileFact("b.md", "empty")))
    (reason,) = truth_gate(facts).reasons
    assert (reason.code, reason.where) == (GateCode.OUTPUT_MISSING, WHERE)
    assert_sentences(reason.message)
    assert truth_gate(facts._replace(job=checking(make_job))).passed


def test_freshness_asks_for_fresh_evidence_and_the_same_upstream(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = checking(make_job, "freshness", commands=["sh all.sh"])
    stale = make_facts(job, states={"verification": "stale"})
    assert [reason.code for reason in truth_gate(stale).reasons] == [GateCode.COMMAND_NOT_PASSED]
    assert_sentences([reason.message for reason in truth_gate(stale).reasons])
    changed = make_facts(job, upstream_changed=("a.md",))
    assert [reason.code for reason in truth_gate(changed).reasons] == [GateCode.UPSTREAM_CHANGED]
    assert_sentences([reason.message for reason in truth_gate(changed).reasons])
    assert truth_gate(changed._replace(job=checking(make_job, commands=["sh all.sh"]))).passed
    assert codes(make_facts(job, states={"verification": "failed"})) == []


def test_a_stale_criterion_is_told_once_though_two_checks_see_it(make_facts: MakeFacts, make_job: MakeJob) -> None:
    facts = make_facts(checking(make_job, "freshness"), states={"AC-1": "stale"})
    assert codes(facts) == [GateCode.CRITERION_STALE]


@pytest.mark.parametrize("check", ["required_command_logged", "verification_consistency"])
@pytest.mark.parametrize("state", ["failed", "stale", "missing"])
def test_a_command_that_has_not_passed_closes_the_gate(
    make_facts: MakeFacts, make_job: MakeJob, check: str, state: State
) -> None:
    job = checking(make_job, check, commands=["sh all.sh"])
    (reason,) = truth_gate(make_facts(job, states={"verification": state})).reasons
    assert (reason.code, reason.where) == (GateCode.COMMAND_NOT_PASSED, WHERE)
    assert reason.message.startswith("`sh all.sh` ")


def test_both_command_checks_together_tell_it_once(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = checking(make_job, "required_command_logged", "verification_consistency", commands=["sh all.sh"])
    assert codes(make_facts(job, states={"verification": "failed"})) == [GateCode.COMMAND_NOT_PASSED]


def test_a_criterion_is_no_command(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = checking(make_job, "required_command_logged")
    assert codes(make_facts(job, states={"AC-1": "failed"})) == [GateCode.CRITERION_FAILED]


def test_execution_is_logged_once_the_gate_has_run_something(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = checking(make_job, "work_item_execution_logged")
    (reason,) = truth_gate(make_facts(job, runs=0)).reasons
    assert reason.code == GateCode.EXECUTION_NOT_LOGGED
    assert_sentences(reason.message)
    assert truth_gate(make_facts(job, runs=1)).passed


def test_a_lesson_is_captured_when_one_is_on_record(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = checking(make_job, "linked_lesson_captured", lesson_capture_required=True)
    lacking = LessonFact(2, 0, lacking=("LL-1 is gone from the file", "LL-2 is not on record since the start"))
    for none, why in ((LessonFact(0, 0), ""), (lacking, ": LL-2 is not on record since the start")):
        (reason,) = truth_gate(make_facts(job, lessons=none)).reasons
        assert reason.code == GateCode.LESSON_NOT_CAPTURED
        assert str(why) in reason.message
        assert_sentences(reason.message)
    assert truth_gate(make_facts(job, lessons=LessonFact(2, 1, ("LL-1",)))).passed


@pytest.mark.parametrize(
    ("check", "field"),
    [("work_item_execution_logged", "execution_log"), ("linked_lesson_captured", "lesson_capture")],
)
def test_what_is_not_required_or_exempted_is_not_asked_for(
    make_facts: MakeFacts, make_job: MakeJob, check: str, field: str
) -> None:
    nothing = {"runs": 0, "lessons": LessonFact(0, 0)}
    asked = checking(make_job, check, **{f"{field}_required": True})
    assert not truth_gate(make_facts(asked, **nothing)).passed
    waived = checking(make_job, check, **{f"{field}_required": False})
    assert truth_gate(make_facts(waived, **nothing)).passed
    exempt = checking(make_job, check, **{f"{field}_required": True, f"{field}_exemption_reason": "prose only"})
    assert truth_gate(make_facts(exempt, **nothing)).passed


def test_a_need_that_no_criterion_of_the_plan_has_is_shown_without_a_line(
    make_facts: MakeFacts, make_job: MakeJob
) -> None:
    job = checking(make_job)
    facts = make_facts(job, states={"AC-1": "missing"})
    other = replace(
        job, criteria=(replace(job.criteria[0], id="AC-9"),), document=parse_document(b"---\na: b\n---\n", WHERE)
    )
    assert truth_gate(facts._replace(job=other)).reasons[0].where == WHERE


@pytest.mark.parametrize(
    ("state", "step"),
    [("failed", f"donewhen why {ID}"), ("stale", f"donewhen run {ID}"), ("missing", f"donewhen run {ID}")],
)
def test_what_can_be_run_is_to_be_run_and_what_failed_is_to_be_looked_at(
    make_facts: MakeFacts, make_job: MakeJob, state: State, step: str
) -> None:
    job = checking(make_job, criteria=["The log is parsed.\n  check: run make check"])
    assert truth_gate(make_facts(job, states={"AC-1": state})).next == step
