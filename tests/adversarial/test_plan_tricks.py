"""How a plan is made to look finished, each trick played with the real tools next to its innocent twin."""

from __future__ import annotations

from typing import Any

import pytest

from donewhen.completion import PlanBasedChecker, ReasonCode
from donewhen.contrib.tools import PlanningToolsSection
from donewhen.contrib.tools.planning import Plan
from donewhen.prompt import Prompt, PromptTemplate
from donewhen.protocols import PromptResponse
from donewhen.runtime import Session
from donewhen.testing import Script, ScriptedAdapter, Turn, call, say
from sentences import assert_sentences

STRICT = PlanBasedChecker(plan_type=Plan, require_plan=True, allow_empty=False, allow_shrinking=False)
LENIENT = PlanBasedChecker(plan_type=Plan)


def play(checker: PlanBasedChecker, *turns: Turn) -> PromptResponse[None]:
    """Let an agent take these turns, the last of which is its attempt to stop, and see what is said of it."""
    session = Session()
    template = PromptTemplate[None](ns="demo", key="plan", sections=[PlanningToolsSection(session=session)])
    adapter = ScriptedAdapter(Script(*turns), task_completion_checker=checker, max_turns=len(turns))
    return adapter.evaluate(Prompt(template), session=session)


def setup(*steps: str) -> Turn:
    return call("planning_setup_plan", objective="Ship it", steps=list(steps))


def update(step_id: int, status: str) -> Turn:
    return call("planning_update_step", step_id=step_id, status=status)


def cancel(step_id: int, reason: str) -> Turn:
    return call("planning_cancel_step", step_id=step_id, reason=reason)


def verdict(checker: PlanBasedChecker, *turns: Turn) -> tuple[str, ReasonCode | None, str]:
    report = play(checker, *turns, say("done")).completion
    assert report is not None
    return report.status, report.code, report.feedback or ""


class TestShrinking:
    def test_re_creating_the_plan_with_fewer_steps_after_work_began_is_reported(self) -> None:
        turns = (setup("Code", "Tests"), update(1, "done"), setup("Code"), update(3, "done"))
        status, _, feedback = verdict(LENIENT, *turns)
        assert status == "verified"
        assert_sentences(feedback)

    def test_re_creating_the_plan_with_fewer_steps_is_refused_when_strict(self) -> None:
        turns = (setup("Code", "Tests"), update(1, "done"), setup("Code"), update(3, "done"))
        status, code, feedback = verdict(STRICT, *turns)
        assert (status, code) == ("incomplete", ReasonCode.PLAN_SHRUNK)
        assert feedback.endswith(": Tests")

    def test_re_creating_it_again_does_not_wash_the_loss_away(self) -> None:
        turns = (setup("Code", "Tests"), update(1, "done"), setup("Code"), setup("Code"), setup("X"), update(5, "done"))
        assert verdict(STRICT, *turns)[1] is ReasonCode.PLAN_SHRUNK

    def test_dropping_one_of_two_steps_with_the_same_title_is_noticed(self) -> None:
        turns = (setup("Code", "Fix a bug", "Fix a bug"), update(1, "done"), setup("Fix a bug"), update(4, "done"))
        assert verdict(STRICT, *turns)[1] is ReasonCode.PLAN_SHRUNK

    def test_twin_the_same_steps_in_other_spelling_are_not_dropped(self) -> None:
        turns = (
            setup("Code", "Tests"),
            update(1, "done"),
            setup("  tests ", "Docs"),
            update(3, "done"),
            update(4, "done"),
        )
        assert verdict(STRICT, *turns)[0] == "verified"

    def test_twin_a_plan_made_anew_before_work_began_is_no_shrinking(self) -> None:
        assert verdict(STRICT, setup("A", "B", "C"), setup("A"), update(4, "done"))[0] == "verified"

    def test_twin_a_dropped_step_that_is_added_again_and_done_is_no_shrinking(self) -> None:
        turns = (
            setup("Code", "Tests"),
            update(1, "done"),
            setup("Code"),
            update(3, "done"),
            call("planning_add_steps", titles=["Tests"]),
            update(4, "done"),
        )
        assert verdict(STRICT, *turns)[0] == "verified"

    def test_twin_a_dropped_step_that_is_cancelled_with_a_reason_is_no_shrinking(self) -> None:
        turns = (
            setup("Code", "Tests"),
            update(1, "done"),
            setup("Code"),
            update(3, "done"),
            cancel(2, "no tests here"),
        )
        status, _, feedback = verdict(STRICT, *turns)
        assert status == "verified"
        assert "1 cancelled: Tests (no tests here)." in feedback


class TestClosing:
    def test_cancelling_without_a_reason_closes_nothing(self) -> None:
        assert verdict(STRICT, setup("Code"), cancel(1, "  "))[1] is ReasonCode.PLAN_INCOMPLETE

    @pytest.mark.parametrize("status", ["cancelled", "removed", "Done", "complete", ""])
    def test_a_status_that_the_tool_does_not_offer_closes_nothing(self, status: str) -> None:
        assert verdict(STRICT, setup("Code"), update(1, status))[1] is ReasonCode.PLAN_INCOMPLETE

    def test_twin_a_cancelled_step_with_a_reason_is_reported(self) -> None:
        status, _, feedback = verdict(STRICT, setup("Code", "Docs"), update(1, "done"), cancel(2, "there are none"))
        assert status == "verified"
        assert_sentences(feedback)

    def test_a_step_that_is_opened_again_is_open(self) -> None:
        assert verdict(STRICT, setup("Code"), cancel(1, "moot"), update(1, "in_progress"))[0] == "incomplete"


class TestNoPlan:
    def test_without_a_plan_nothing_is_verified_when_strict(self) -> None:
        assert verdict(STRICT)[1] is ReasonCode.PLAN_MISSING

    def test_an_empty_plan_can_not_be_set_up(self) -> None:
        assert verdict(STRICT, setup())[1] is ReasonCode.PLAN_MISSING

    def test_a_plan_of_blank_steps_can_not_be_set_up(self) -> None:
        assert verdict(STRICT, setup(" "))[1] is ReasonCode.PLAN_MISSING


def test_saying_done_does_not_make_it_so() -> None:
    response = play(STRICT, setup("Code"), say("Everything is done."), say("Really."), update(1, "done"), say("Now."))
    assert response.completion is not None
    assert (response.completion.status, response.completion.attempts) == ("verified", 3)


@pytest.mark.parametrize("title", ["\x1b[2J", "a\nb", "\u200b"], ids=repr)
def test_a_step_with_a_hostile_title_still_counts(title: str) -> None:
    arguments: dict[str, Any] = {"objective": "x", "steps": ["Code", title]}
    status, code, feedback = verdict(STRICT, call("planning_setup_plan", **arguments), update(1, "done"))
    assert (status, code) == ("incomplete", ReasonCode.PLAN_INCOMPLETE)
    assert feedback.startswith("You have 1 incomplete task(s) out of 2.")
    assert "\x1b" not in feedback
    assert "\n" not in feedback
