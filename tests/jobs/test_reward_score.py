"""The score: seven components and two penalties, each with points got, points possible, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from donewhen.jobs.board.views import ViewFact
from donewhen.jobs.gates.facts import Facts, FileFact
from donewhen.jobs.gates.next_action import next_action
from donewhen.jobs.gates.score import TITLES, WEIGHTS, Component, has_verification_plan, score_of, stalled_tries
from donewhen.jobs.gates.truth_gate import truth_gate
from donewhen.jobs.issues.mirror_status import MirrorFact
from donewhen.jobs.lessons.lesson_use import LessonFact
from donewhen.jobs.plan.job import TARGETS, Job
from donewhen.jobs.record.history import History
from donewhen.jobs.record.projection import Mismatch
from sentences import assert_sentences

MakeFacts = Callable[..., Facts]
MakeJob = Callable[..., Job]
MakeHistory = Callable[..., History]

LINKED = MirrorFact(enabled=True, current=True, why="issue 7 says what the plan says")


@pytest.fixture
def full_job(make_job: MakeJob) -> Job:
    """A job to which all seven components apply."""
    return make_job(lesson_capture_required=True)


def part(facts: Facts, name: str) -> Component:
    (found,) = (component for component in score_of(facts).components if component.name == name)
    return found


def points(facts: Facts, name: str) -> tuple[float, int]:
    found = part(facts, name)
    return (found.got, found.possible)


def test_the_weights_are_those_of_the_format_and_come_to_a_hundred(make_facts: MakeFacts, full_job: Job) -> None:
    components = score_of(make_facts(full_job, mirror=LINKED)).components
    assert [(component.name, component.possible) for component in components] == [
        ("acceptance", 40),
        ("verification", 20),
        ("hygiene", 10),
        ("views", 10),
        ("lessons", 5),
        ("execution_log", 10),
        ("parity", 5),
    ]
    assert sum(WEIGHTS.values()) == 100
    assert_sentences(list(TITLES.values()))
    assert list(TITLES) == list(WEIGHTS)


def test_all_that_can_be_got_is_a_hundred_and_every_line_says_why(make_facts: MakeFacts, full_job: Job) -> None:
    score = score_of(make_facts(full_job, mirror=LINKED))
    assert (score.total, score.penalties) == (100, ())
    assert {component.name: component.got for component in score.components} == {
        "acceptance": 40,
        "verification": 20,
        "hygiene": 10,
        "views": 10,
        "lessons": 5,
        "execution_log": 10,
        "parity": 5,
    }
    assert_sentences({component.name: component.why for component in score.components})
    assert all(component.applies for component in score.components)


def test_the_same_facts_give_the_same_score(make_facts: MakeFacts, full_job: Job) -> None:
    def facts() -> Facts:
        return make_facts(full_job, mirror=LINKED, states={"AC-1": "stale"}, runs=0)

    assert score_of(facts()) == score_of(facts())


# Acceptance and outputs


@pytest.mark.parametrize(
    ("states", "outputs", "got"),
    [
        ({}, ("good", "good"), 40),
        ({"AC-1": "failed"}, ("good", "good"), 30),
        ({"AC-1": "stale", "AC-2": "missing"}, ("good", "good"), 20),
        ({}, ("good", "empty"), 30),
        ({}, ("missing", "outside"), 20),
        ({"AC-1": "asserted", "AC-2": "failed"}, ("not_a_file", "missing"), 0),
    ],
    ids=["all", "one-criterion", "no-criterion", "one-output", "no-output", "nothing"],
)
def test_half_of_acceptance_is_for_criteria_that_are_shown_and_half_for_outputs_that_are_there(
    make_facts: MakeFacts, make_job: MakeJob, states: dict[str, str], outputs: tuple[Any, Any], got: float
) -> None:
    job = make_job(criteria=["The log is parsed.", "It is quick."], outputs=["a.md", "b.md"])
    files = tuple(FileFact(name, state) for name, state in zip(job.outputs, outputs, strict=True))
    assert points(make_facts(job, states=states, outputs=files), "acceptance") == (got, 40)


def test_acceptance_counts_what_is_there_in_words(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = make_job(criteria=["The log is parsed.", "It is quick."])
    facts = make_facts(job, states={"AC-1": "failed"}, outputs=(FileFact("outputs/primary.md", "missing"),))
    assert_sentences(part(facts, "acceptance").why)


def test_an_output_that_is_there_and_says_nothing_is_told_and_is_the_next_thing_to_do(
    make_facts: MakeFacts, make_job: MakeJob
) -> None:
    facts = make_facts(make_job(), outputs=(FileFact("outputs/primary.md", "good", template=True),))
    assert_sentences(part(facts, "acceptance").why)
    assert_sentences(next_action(facts, truth_gate(facts)))


def test_a_placeholder_earns_nothing_even_if_somebody_signed_it_off(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = make_job(criteria=["TBD", "It is quick."])
    assert points(make_facts(job), "acceptance") == (30, 40)
    assert points(make_facts(make_job(criteria=["x"])), "acceptance") == (20, 40)


def test_a_job_without_outputs_is_judged_by_its_criteria_alone(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = make_job(criteria=["The log is parsed.", "It is quick."], outputs=[])
    assert points(make_facts(job), "acceptance") == (40, 40)
    assert points(make_facts(job, states={"AC-1": "failed"}), "acceptance") == (20, 40)


def test_a_job_without_criteria_earns_nothing_for_them(make_facts: MakeFacts, make_job: MakeJob) -> None:
    assert points(make_facts(replace(make_job(), criteria=())), "acceptance") == (20, 40)
    assert points(make_facts(replace(make_job(outputs=[]), criteria=())), "acceptance") == (0, 40)


# Verification


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", False),
        ("TBD", False),
        ("- TODO\n\n* ...", False),
        ("-", False),
        ("- x", False),
        ("[How is it verified?]", False),
        ("Compare the counts by hand.", True),
        ("- TBD\n- Compare the counts.", True),
    ],
    ids=["empty", "tbd", "list", "dash", "letter", "template", "words", "mixed"],
)
def test_a_verification_plan_says_something_in_words(
    make_facts: MakeFacts, make_job: MakeJob, text: str, holds: bool
) -> None:
    facts = make_facts(make_job(criteria=["It reads well."]), sections={"verification": text})
    assert has_verification_plan(facts) is holds
    assert points(facts, "verification") == (20 if holds else 10, 20)
    assert_sentences(part(facts, "verification").why)


@pytest.mark.parametrize("check", ["run sh check.sh", "file outputs/primary.md"])
def test_a_command_or_a_file_check_is_a_plan_without_words(
    make_facts: MakeFacts, make_job: MakeJob, check: str
) -> None:
    facts = make_facts(make_job(criteria=[f"It works.\n  check: {check}"]), sections={})
    assert has_verification_plan(facts)


def test_a_heading_that_is_not_there_is_no_plan(make_facts: MakeFacts, make_job: MakeJob) -> None:
    assert not has_verification_plan(make_facts(make_job(criteria=["It reads well."]), sections={}))


@pytest.mark.parametrize("state", ["failed", "stale", "missing", "asserted"])
def test_only_evidence_that_is_fresh_and_good_earns_points(
    make_facts: MakeFacts, make_job: MakeJob, state: str
) -> None:
    job = make_job(criteria=["It works.", "It is quick."], commands=["sh a.sh", "sh b.sh"])
    facts = make_facts(job, states={"verification": state})
    assert points(facts, "verification") == (15, 20)
    assert_sentences(part(facts, "verification").why)


def test_without_anything_to_show_there_is_no_evidence(make_facts: MakeFacts, make_job: MakeJob) -> None:
    facts = make_facts(replace(make_job(), criteria=()))
    assert points(facts, "verification") == (10, 20)


# Hygiene, views, lessons, log, parity


@pytest.mark.parametrize(
    ("wrong", "got", "why"),
    [
        ({"tampered": (Mismatch("status", "done", "planned"),)}, 6, "missing: status as in the ledger"),
        ({"started": None}, 7, "missing: started"),
        ({"progress_lines": 0}, 7, "missing: progress log"),
        ({"started": None, "progress_lines": 0}, 4, "missing: started, progress log"),
    ],
    ids=["tampered", "not-started", "no-progress", "two"],
)
def test_plan_hygiene_is_status_start_and_progress(
    make_facts: MakeFacts, make_history: MakeHistory, wrong: dict[str, Any], got: int, why: str
) -> None:
    begun = {} if "started" not in wrong else {"history": make_history(started=wrong.pop("started"))}
    facts = make_facts(**wrong, **begun)
    assert points(facts, "hygiene") == (got, 10)
    assert part(facts, "hygiene").why == why


@pytest.mark.parametrize(
    ("views", "got", "why"),
    [
        (ViewFact(tracker=True, dashboard=False), 5, "tracker up to date, dashboard missing, edited or outdated"),
        (ViewFact(tracker=False, dashboard=True), 5, "tracker missing, edited or outdated, dashboard up to date"),
        (
            ViewFact(tracker=False, dashboard=False),
            0,
            "tracker missing, edited or outdated, dashboard missing, edited or outdated",
        ),
    ],
    ids=["tracker", "dashboard", "none"],
)
def test_tracker_and_dashboard_each_count_half(make_facts: MakeFacts, views: ViewFact, got: float, why: str) -> None:
    facts = make_facts(views=views)
    assert points(facts, "views") == (got, 10)
    assert part(facts, "views").why == why


ONE, TWO, THREE, FOUR = (f"LL-20260214-00{number}" for number in (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("lessons", "got"),
    [
        (LessonFact(0, 0), 0),
        (LessonFact(1, 0, (), ("LL-1 is gone from the file",)), 0),
        (LessonFact(9, 9, (ONE,), ("LL-1 is gone from the file",)), 5),
        (LessonFact(4, 0, (ONE, TWO, THREE, FOUR)), 5),
        (LessonFact(1, 0, (ONE,), given=(TWO,)), 2.5),
        (
            LessonFact(1, 0, (ONE,), given=(TWO, THREE), answered=(THREE,)),
            3.75,
        ),
        (
            LessonFact(1, 0, (ONE,), given=(TWO,), answered=(TWO,)),
            5,
        ),
        (
            LessonFact(0, 0, given=(TWO,), answered=(TWO,)),
            2.5,
        ),
    ],
    ids=["none", "gone", "one", "many", "given", "half answered", "answered", "only answered"],
)
def test_half_is_for_a_lesson_of_its_own_and_half_for_answers_to_those_it_was_given(
    make_facts: MakeFacts, full_job: Job, lessons: LessonFact, got: float
) -> None:
    facts = make_facts(full_job, lessons=lessons)
    assert points(facts, "lessons") == (got, 5)
    assert_sentences(part(facts, "lessons").why)
    assert part(facts, "lessons").applies


@pytest.mark.parametrize(
    "asked",
    [{"lesson_capture_required": False}, {"lesson_capture_required": True, "lesson_capture_exemption_reason": "x"}],
)
def test_lessons_that_were_given_count_for_all_where_none_is_asked_for(
    make_facts: MakeFacts, make_job: MakeJob, asked: dict[str, object]
) -> None:
    facts = make_facts(make_job(**asked), lessons=LessonFact(0, 0, given=(ONE, TWO), answered=(ONE,)))
    assert points(facts, "lessons") == (2.5, 5)
    assert part(facts, "lessons").applies
    text = part(facts, "lessons").why
    assert str(TWO) in text
    assert_sentences(text)


@pytest.mark.parametrize(("runs", "got"), [(0, 0), (1, 10), (7, 10)])
def test_the_execution_log_counts_what_the_gate_ran(make_facts: MakeFacts, runs: int, got: int) -> None:
    facts = make_facts(runs=runs)
    assert points(facts, "execution_log") == (got, 10)
    text = part(facts, "execution_log").why
    assert str(runs) in text
    assert_sentences(text)


def test_parity_counts_only_while_mirroring_is_on(make_facts: MakeFacts) -> None:
    off = part(make_facts(), "parity")
    assert not off.applies
    assert_sentences(off.why)
    lacking = part(make_facts(mirror=MirrorFact(enabled=True, current=False, why="never mirrored")), "parity")
    assert (lacking.applies, lacking.got, lacking.why) == (True, 0, "never mirrored")
    holding = part(make_facts(mirror=MirrorFact(enabled=True, current=True, why="all as it should be")), "parity")
    assert (holding.applies, holding.got, holding.why) == (True, 5, "all as it should be")


@pytest.mark.parametrize(
    ("field", "name"), [("lesson_capture", "lessons"), ("execution_log", "execution_log")], ids=["lessons", "log"]
)
def test_what_is_not_asked_for_or_exempted_is_left_out_and_says_so(
    make_facts: MakeFacts, make_job: MakeJob, field: str, name: str
) -> None:
    waived = part(make_facts(make_job(**{f"{field}_required": False})), name)
    assert not waived.applies
    assert_sentences(waived.why)
    exempt = make_job(**{f"{field}_required": True, f"{field}_exemption_reason": "prose only"})
    found = part(make_facts(exempt), name)
    assert not found.applies
    assert_sentences(found.why)


# The sum


def test_what_is_left_out_neither_helps_nor_hurts_and_the_rest_is_scaled(
    make_facts: MakeFacts, make_job: MakeJob
) -> None:
    bare = make_job(execution_log_required=False)
    assert score_of(make_facts(bare, runs=0, lessons=LessonFact(0, 0))).total == 100
    # 75 of 80 that can be got: one of two views is not current.
    assert score_of(make_facts(bare, views=ViewFact(tracker=True, dashboard=False))).total == 94


def test_a_hundred_means_that_nothing_is_missing(make_facts: MakeFacts, make_job: MakeJob) -> None:
    job = make_job(criteria=[f"It does thing {number}." for number in range(300)])
    assert score_of(make_facts(job)).total == 100
    assert score_of(make_facts(job, states={"AC-7": "failed"})).total == 99


def test_the_same_gap_weighs_as_much_as_its_share(make_facts: MakeFacts, full_job: Job) -> None:
    gap = {"views": ViewFact(tracker=False, dashboard=False)}
    assert score_of(make_facts(full_job, mirror=LINKED, **gap)).total == 90
    assert score_of(make_facts(**gap)).total == 89  # 80 of 90


@pytest.mark.parametrize(
    ("scores", "stalled"),
    [
        ((), 0),
        ((50,), 0),
        ((50, 60, 70), 0),
        ((50, 50), 1),
        ((50, 40), 1),
        ((50, 40, 45), 2),
        ((50, 40, 60), 0),
        ((50, 40, 60, 60), 1),
        ((0, 0, 0, 0), 3),
    ],
    ids=str,
)
def test_a_try_that_gets_no_further_than_the_best_is_stalled_until_one_does(
    scores: tuple[int, ...], stalled: int
) -> None:
    assert stalled_tries(scores) == stalled


OUTDATED = {"views": ViewFact(tracker=False, dashboard=False)}
"""Without these, 80 of the 90 points that apply are 89."""


@pytest.mark.parametrize(("tries", "points_off"), [(2, 2), (3, 4), (6, 10), (7, 10), (20, 10)])
def test_rework_without_improvement_costs_two_a_time_and_ten_at_most(
    make_facts: MakeFacts, make_history: MakeHistory, tries: int, points_off: int
) -> None:
    score = score_of(make_facts(history=make_history(scores=(89,) * tries), **OUTDATED))
    assert [penalty.points for penalty in score.penalties] == [points_off]
    assert str(tries - 1) in score.penalties[0].why
    assert_sentences(score.penalties[0].why)
    assert score.total == 89 - points_off


@pytest.mark.parametrize(("best", "total"), [(88, 89), (89, 87), (90, 87)], ids=["better", "as good", "worse"])
def test_the_penalty_ends_as_soon_as_the_job_is_better_than_in_its_best_attempt(
    make_facts: MakeFacts, make_history: MakeHistory, best: int, total: int
) -> None:
    assert score_of(make_facts(history=make_history(scores=(best, best - 9)), **OUTDATED)).total == total


def test_a_job_that_lacks_nothing_has_no_penalty_for_rework(make_facts: MakeFacts, make_history: MakeHistory) -> None:
    score = score_of(make_facts(history=make_history(scores=(100,) * 9)))
    assert (score.total, score.penalties) == (100, ())


def test_rework_that_improves_costs_nothing(make_facts: MakeFacts, make_history: MakeHistory) -> None:
    assert score_of(make_facts(history=make_history(scores=(10, 20, 30, 40, 50)))).penalties == ()


def test_a_rework_count_that_was_typed_in_decides_nothing(make_facts: MakeFacts, make_job: MakeJob) -> None:
    assert score_of(make_facts(make_job(rework_count=9))).total == 100


def test_going_over_the_budget_costs_ten(make_facts: MakeFacts, make_history: MakeHistory) -> None:
    assert score_of(make_facts(history=make_history(iteration=3))).penalties == ()
    score = score_of(make_facts(history=make_history(iteration=4)))
    assert [(penalty.points, penalty.why) for penalty in score.penalties] == [(10, "iteration 4 of 3")]
    assert score.total == 90


def test_a_decision_about_the_budget_ends_its_penalty(make_facts: MakeFacts, make_history: MakeHistory) -> None:
    for decided, total in ((False, 90), (True, 100)):
        spent = make_history(iteration=4, auto_blocked=True, decided_since_block=decided)
        assert score_of(make_facts(history=spent)).total == total


def test_both_penalties_add_up_and_the_score_is_never_below_zero(
    make_facts: MakeFacts, make_job: MakeJob, make_history: MakeHistory
) -> None:
    worst = make_history(iteration=9, scores=(97,) * 9, started=None)
    assert score_of(make_facts(history=worst)).total == 77  # 87 of 90 are 97
    nothing = make_facts(
        replace(make_job(), criteria=()),
        history=worst,
        outputs=(FileFact("a.md", "missing"),),
        views=ViewFact(tracker=False, dashboard=False),
        runs=0,
        progress_lines=0,
        sections={},
    )
    assert score_of(nothing).total == 0
    assert [penalty.points for penalty in score_of(nothing).penalties] == [10, 10]


def test_an_unedited_template_scores_low(make_facts: MakeFacts, make_job: MakeJob, make_history: MakeHistory) -> None:
    job = make_job(criteria=[])
    facts = make_facts(
        job,
        states={"AC-1": "missing"},
        outputs=(FileFact("outputs/primary.md", "missing"),),
        history=make_history(status="planned", started=None),
        runs=0,
        progress_lines=0,
        sections={},
    )
    assert score_of(facts).total == 18  # only that nobody tampered, and that the views are current


@pytest.mark.parametrize("stakes", TARGETS)
def test_every_target_can_be_reached_without_mirroring_and_without_lessons(
    make_facts: MakeFacts, make_job: MakeJob, stakes: str
) -> None:
    assert score_of(make_facts(make_job(stakes=stakes, reward_target=""))).total >= 95
