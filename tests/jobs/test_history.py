"""What a chain comes to: how a job stands, how often it was tried, what it was completed with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.record.history import History, history_of

MakeEntry = Callable[..., Entry]
CHAIN = "WI-20260214-001"
ADA = Actor("ada", "person")
CI = Actor("pipeline", "ci")


@pytest.fixture
def fold(make_entry: MakeEntry) -> Callable[..., History]:
    """``fold(("started", {…}), ("ran", {}, ADA))``: the history of these events."""

    def folded(*events: tuple[Any, ...], policy: Policy = Policy()) -> History:  # noqa: B008
        entries = [
            make_entry(event[0], place, event[2] if len(event) > 2 else Actor("bot"), **event[1])
            for place, event in enumerate(events, 1)
        ]
        return history_of(CHAIN, entries, policy)

    return folded


Fold = Callable[..., History]
STARTED = ("started", {"writes": {"status": ["planned", "in_progress"]}})
DONE = ("completed", {"score": 97, "writes": {"status": ["in_progress", "done"]}})
BLOCKED = ("refused", {"auto_blocked": True, "score": 40, "writes": {"status": ["in_progress", "blocked"]}})


def refused(score: object = 50, **data: object) -> tuple[str, dict[str, object]]:
    return ("refused", {"score": score, **data})


def decided(kind: str, by: Actor = ADA) -> tuple[str, dict[str, str], Actor]:
    return ("decided", {"decision": kind, "reason": "because"}, by)


def test_without_events_a_job_is_planned_and_nothing_has_happened(fold: Fold) -> None:
    found = fold()
    assert found == History("planned", 0, None, None, False, False, (), None)
    assert not found.done


def test_status_and_iteration_are_what_was_written_last(fold: Fold) -> None:
    found = fold(
        STARTED,
        ("refused", {"writes": {"iteration": [0, 1], "status": ["in_progress", "in_progress"]}}),
        ("refused", {"writes": {"iteration": [1, 2]}}),
        ("evaluated", {"writes": {"reward_last_score": [0, 70]}}),
    )
    assert (found.status, found.iteration) == ("in_progress", 2)


def test_what_was_taken_over_from_an_older_plan_counts_until_something_is_written(fold: Fold) -> None:
    adopted = ("agreed", {"adopted": {"status": "in_progress", "iteration": 2}}, ADA)
    assert (fold(adopted).status, fold(adopted).iteration) == ("in_progress", 2)
    both = ("agreed", {"adopted": {"status": "blocked"}, "writes": {"status": ["blocked", "planned"]}}, ADA)
    assert fold(both).status == "planned"


def test_fields_that_are_not_projected_are_not_adopted(fold: Fold) -> None:
    assert fold(STARTED, ("evaluated", {"adopted": {"title": "done"}})).status == "in_progress"


def test_the_last_start_is_the_one_that_counts(fold: Fold) -> None:
    found = fold(STARTED, ("ran", {}), STARTED)
    assert found.started is not None
    assert found.started.seq == 3


def test_a_completion_stands(fold: Fold) -> None:
    found = fold(STARTED, DONE, ("ran", {}), ("evaluated", {}))
    assert found.completed is not None
    assert (found.done, found.status, found.completed.seq) == (True, "done", 2)


@pytest.mark.parametrize(
    "event",
    [
        STARTED,
        ("invalidated", {"writes": {"status": ["done", "in_progress"]}}),
        ("refused", {"score": 90, "writes": {"status": ["done", "in_progress"]}}),
        ("decided", {"decision": "cancel", "writes": {"status": ["done", "cancelled"]}}, ADA),
    ],
    ids=["started-again", "invalidated", "refused", "cancelled"],
)
def test_a_completion_stands_no_longer_than_the_status_does(fold: Fold, event: tuple[Any, ...]) -> None:
    found = fold(STARTED, DONE, event)
    assert found.status != "done"
    assert (found.done, found.completed) == (False, None)


def test_a_job_can_be_completed_again(fold: Fold) -> None:
    found = fold(STARTED, DONE, ("invalidated", {}), DONE)
    assert found.completed is not None
    assert found.completed.seq == 4


def test_a_budget_that_ran_out_is_known_until_somebody_decides(fold: Fold) -> None:
    assert fold(STARTED, refused()).auto_blocked is False
    found = fold(STARTED, BLOCKED)
    assert (found.auto_blocked, found.decided_since_block) == (True, False)


@pytest.mark.parametrize("kind", ["raise_budget", "rescope", "split", "stakes", "target"])
def test_a_decision_of_a_person_frees_a_blocked_job(fold: Fold, kind: str) -> None:
    assert fold(STARTED, BLOCKED, decided(kind)).decided_since_block is True


@pytest.mark.parametrize("kind", ["cancel", "sign_off", "block", "ask"])
def test_other_decisions_do_not_free_it(fold: Fold, kind: str) -> None:
    assert fold(STARTED, BLOCKED, decided(kind)).decided_since_block is False


def test_an_agents_decision_is_a_proposal(fold: Fold) -> None:
    assert fold(STARTED, BLOCKED, decided("raise_budget", Actor("bot"))).decided_since_block is False


def test_a_pipeline_decides_only_where_a_person_allowed_it(fold: Fold) -> None:
    events = (STARTED, BLOCKED, decided("raise_budget", CI))
    assert fold(*events).decided_since_block is False
    assert fold(*events, policy=Policy(ci=True)).decided_since_block is True


def test_a_decision_from_before_the_block_does_not_count_and_one_counts_for_one_block(fold: Fold) -> None:
    assert fold(STARTED, decided("raise_budget"), BLOCKED).decided_since_block is False
    assert fold(STARTED, BLOCKED, decided("rescope"), BLOCKED).decided_since_block is False


def test_the_scores_are_those_of_the_tries_and_not_of_mere_looks(fold: Fold) -> None:
    found = fold(STARTED, refused(40), ("evaluated", {"score": 99}), refused(60), ("ran", {"score": 1}))
    assert found.scores == (40, 60)


def test_a_refusal_without_a_score_adds_none(fold: Fold) -> None:
    assert fold(STARTED, refused(None)).scores == ()


def test_a_try_in_which_a_gate_broke_has_no_score(fold: Fold) -> None:
    broken = refused(0, gates={"truth": [], "reward": ["gate_error"]})
    assert fold(STARTED, refused(70), broken, refused(75, gates={"truth": ["criterion_failed"]})).scores == (70, 75)


def test_tries_from_before_the_last_completion_are_not_rework_of_what_came_after(fold: Fold) -> None:
    """A job that is invalidated again and again through no fault of its own, and completed at once each time."""
    found = fold(STARTED, refused(60), DONE, ("invalidated", {}), DONE, ("invalidated", {}), refused(80))
    assert found.scores == (80,)


@pytest.mark.parametrize("kind", ["block", "ask"])
def test_a_job_that_rests_says_why(fold: Fold, kind: str) -> None:
    found = fold(STARTED, decided(kind, Actor("bot")))
    assert found.waiting is not None
    assert (found.waiting.data["decision"], found.waiting.seq) == (kind, 2)


@pytest.mark.parametrize("event", [STARTED, refused(), DONE, decided("rescope")], ids=lambda event: event[0])
def test_it_rests_until_something_happens(fold: Fold, event: tuple[Any, ...]) -> None:
    assert fold(STARTED, decided("block"), event).waiting is None


@pytest.mark.parametrize("kind", ["ran", "evaluated", "agreed", "invalidated", "unverified", "overridden"])
def test_a_look_does_not_end_the_rest(fold: Fold, kind: str) -> None:
    assert fold(STARTED, decided("ask"), (kind, {})).waiting is not None


@pytest.mark.parametrize("by", [Actor("bot"), Actor("ada", "person")], ids=["agent", "person"])
def test_a_question_waits_for_its_answer_whatever_is_decided_about_the_work(fold: Fold, by: Actor) -> None:
    found = fold(STARTED, decided("ask", Actor("bot")), decided("sign_off", by), decided("accept_changes", by))
    assert found.waiting is not None
    assert found.answer is None


def test_only_a_persons_answer_ends_the_rest_and_it_is_new_until_the_agent_goes_on(fold: Fold) -> None:
    asked = (STARTED, decided("ask", Actor("bot")))
    assert fold(*asked, decided("answer", Actor("bot"))).waiting is not None
    answered = fold(*asked, decided("answer"))
    assert (answered.waiting, answered.answer is not None and answered.answer.seq) == (None, 3)
    assert fold(*asked, decided("answer"), ("ran", {})).answer is not None
    for event in (STARTED, refused(), DONE, decided("ask", Actor("bot"))):
        assert fold(*asked, decided("answer"), event).answer is None
