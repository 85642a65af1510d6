"""One test for each rule and scenario of the task-completion specification, in our own words."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta

import pytest

from donewhen.adapters.claude_agent_sdk import ClaudeAgentSDKAdapter, ClaudeAgentSDKClientConfig
from donewhen.completion import (
    CompositeChecker,
    PlanBasedChecker,
    TaskCompletionChecker,
    TaskCompletionContext,
    TaskCompletionResult,
    checker,
)
from donewhen.contrib.tools import PlanningToolsSection
from donewhen.contrib.tools.planning import Plan, PlanStep
from donewhen.filesystem import InMemoryFilesystem
from donewhen.prompt import MarkdownSection, Prompt, PromptTemplate
from donewhen.runtime import Budget, CompletionChecked, Deadline, Session, TokenUsage
from donewhen.testing import ManualClock, Script, ScriptedAdapter, call, finish, make_context, say


@dataclass(frozen=True)
class Report:
    summary: str


def plan_of(*statuses: str) -> Plan:
    return Plan("x", steps=tuple(PlanStep(i, f"Task {i}", status) for i, status in enumerate(statuses, 1)))  # type: ignore[arg-type]


def ok(feedback: str | None = None) -> TaskCompletionChecker:
    return checker(lambda context: TaskCompletionResult.ok(feedback))


def incomplete(feedback: str) -> TaskCompletionChecker:
    return checker(lambda context: TaskCompletionResult.incomplete(feedback))


class Counting:
    """A checker that knows how often it was asked."""

    def __init__(self, *results: TaskCompletionResult) -> None:
        self.results = list(results)
        self.asked: list[TaskCompletionContext] = []

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        self.asked.append(context)
        return self.results.pop(0) if len(self.results) > 1 else self.results[0]


# Results and protocol


def test_a_result_says_whether_it_is_complete_and_why() -> None:
    assert TaskCompletionResult.ok() == TaskCompletionResult(complete=True, feedback=None)
    assert TaskCompletionResult.incomplete("x") == TaskCompletionResult(complete=False, feedback="x")


def test_a_result_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        TaskCompletionResult.ok().complete = False  # type: ignore[misc]


def test_any_object_with_a_check_method_is_a_checker_without_inheritance() -> None:
    assert isinstance(Counting(TaskCompletionResult.ok()), TaskCompletionChecker)


# PlanBasedChecker


def test_without_a_plan_type_the_plan_check_is_a_no_op() -> None:
    result = PlanBasedChecker().check(make_context(plan_of("pending")))
    assert result == TaskCompletionResult.ok("No planning tools available.")


def test_a_session_without_the_plan_slice_is_complete() -> None:
    assert PlanBasedChecker(plan_type=Plan).check(make_context()).complete is True


def test_a_registered_slice_without_a_plan_is_complete() -> None:
    session = Session()
    PlanningToolsSection(session=session)
    assert Plan in session
    result = PlanBasedChecker(plan_type=Plan).check(TaskCompletionContext(session=session))
    assert result == TaskCompletionResult.ok("No plan has been created.")


def test_a_plan_whose_steps_are_all_done_is_complete() -> None:
    assert PlanBasedChecker(plan_type=Plan).check(make_context(plan_of("done", "done"))).complete is True


def test_the_feedback_counts_the_open_tasks_names_them_and_says_how_to_proceed() -> None:
    result = PlanBasedChecker(plan_type=Plan).check(
        make_context(plan_of("done", "pending", "done", "in_progress", "done"))
    )
    assert result.complete is False
    assert result.feedback == (
        "You have 2 incomplete task(s) out of 5. Please either complete all remaining tasks or update the plan to "
        "remove tasks that are no longer needed before producing output: Task 2, Task 4"
    )


def test_at_most_three_titles_are_named_with_an_ellipsis_for_more() -> None:
    three = PlanBasedChecker(plan_type=Plan).check(make_context(plan_of(*["pending"] * 3)))
    four = PlanBasedChecker(plan_type=Plan).check(make_context(plan_of(*["pending"] * 4)))
    assert (three.feedback or "").endswith("output: Task 1, Task 2, Task 3")
    assert (four.feedback or "").endswith("output: Task 1, Task 2, Task 3...")


def test_a_custom_plan_type_is_checked_like_ours() -> None:
    @dataclass(frozen=True)
    class Checklist:
        steps: tuple[PlanStep, ...]

    open_list = Checklist((PlanStep(1, "Sweep"),))
    assert PlanBasedChecker(plan_type=Checklist).check(make_context(open_list)).complete is False
    assert PlanBasedChecker(plan_type=Plan).check(make_context(open_list)).complete is True


def test_the_plan_checker_can_be_used_where_the_planning_tools_are_not_imported() -> None:
    code = (
        "import sys; from donewhen.completion import PlanBasedChecker; PlanBasedChecker();"
        "print(any(name.startswith('donewhen.contrib') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


# CompositeChecker


def test_all_must_pass_is_the_default_and_stops_at_the_first_failure() -> None:
    last = Counting(TaskCompletionResult.ok())
    failure = TaskCompletionResult.incomplete("second")
    result = CompositeChecker(checkers=(ok("first"), Counting(failure), last)).check(make_context())
    assert result is failure
    assert last.asked == []


def test_when_all_pass_their_feedback_is_combined() -> None:
    result = CompositeChecker(checkers=(ok("one."), ok(), ok("two.")), all_must_pass=True).check(make_context())
    assert result == TaskCompletionResult.ok("one. two.")


def test_any_may_pass_stops_at_the_first_success() -> None:
    last = Counting(TaskCompletionResult.ok("last"))
    success = TaskCompletionResult.ok("second")
    checkers = (incomplete("first"), Counting(success), last)
    assert CompositeChecker(checkers=checkers, all_must_pass=False).check(make_context()) is success
    assert last.asked == []


def test_when_none_passes_all_failing_feedback_is_combined() -> None:
    result = CompositeChecker(checkers=(incomplete("a."), incomplete("b.")), all_must_pass=False).check(make_context())
    assert result == TaskCompletionResult.incomplete("a. b.")


# Integration


def _prompt(kind: type | None = None) -> Prompt[object]:
    section = MarkdownSection(title="Task", key="task", template="Work.")
    template = PromptTemplate[kind](ns="spec", key="rule", sections=[section])  # type: ignore[valid-type]
    return Prompt(template)


def test_checking_is_off_by_default() -> None:
    assert ClaudeAgentSDKClientConfig().task_completion_checker is None
    assert ClaudeAgentSDKAdapter().client_config.task_completion_checker is None
    response = ScriptedAdapter(Script(say("done"))).evaluate(_prompt(), session=Session())
    assert response.completion is None


def test_a_checker_is_configured_through_the_client_configuration() -> None:
    plan_checker = PlanBasedChecker(plan_type=Plan)
    adapter = ClaudeAgentSDKAdapter(client_config=ClaudeAgentSDKClientConfig(task_completion_checker=plan_checker))
    assert adapter.client_config.task_completion_checker is plan_checker


def test_incomplete_structured_output_comes_back_to_the_model_as_a_tool_error_with_the_feedback() -> None:
    asked = Counting(TaskCompletionResult.incomplete("Write the tests first."), TaskCompletionResult.ok())
    script = Script(finish(summary="early"), finish(summary="late"))
    response = ScriptedAdapter(script, task_completion_checker=asked).evaluate(_prompt(Report), session=Session())
    answer = script.requests[1].last
    assert (answer.role, answer.is_error, answer.text) == ("tool", True, "Write the tests first.")
    assert response.output == Report("late")
    assert [one.tentative_output for one in asked.asked] == [{"summary": "early"}, {"summary": "late"}]
    assert [one.stop_reason for one in asked.asked] == ["structured_output"] * 2


def test_complete_structured_output_ends_the_run() -> None:
    script = Script(finish(summary="s"), say("never asked"))
    asked = Counting(TaskCompletionResult.ok())
    response = ScriptedAdapter(script, task_completion_checker=asked).evaluate(_prompt(Report), session=Session())
    assert len(script.requests) == 1
    assert response.stop_reason == "structured_output"


def test_an_agent_that_ends_its_turn_too_early_goes_on_with_the_feedback() -> None:
    asked = Counting(TaskCompletionResult.incomplete("Not yet."), TaskCompletionResult.ok("Fine."))
    script = Script(say("done"), say("done again"))
    response = ScriptedAdapter(script, task_completion_checker=asked).evaluate(_prompt(), session=Session())
    assert (script.requests[1].last.role, script.requests[1].last.text) == ("user", "Not yet.")
    assert response.completion is not None
    assert (response.completion.status, response.completion.attempts) == ("verified", 2)


def test_the_checker_sees_session_output_filesystem_adapter_and_reason() -> None:
    session = Session()
    files = InMemoryFilesystem()
    asked = Counting(TaskCompletionResult.ok())
    adapter = ScriptedAdapter(Script(say("the last words")), task_completion_checker=asked, filesystem=files)
    adapter.evaluate(_prompt(), session=session)
    (context,) = asked.asked
    assert context.session is session
    assert context.filesystem is files
    assert context.adapter is adapter
    assert context.tentative_output == "the last words"
    assert context.stop_reason == "end_turn"


def test_the_check_is_skipped_when_the_deadline_has_passed() -> None:
    clock = ManualClock()
    deadline = Deadline.after(timedelta(minutes=1), clock=clock)
    asked = Counting(TaskCompletionResult.incomplete("no"))

    def slow(request: object) -> object:
        clock.advance(61)
        return say("done")

    adapter = ScriptedAdapter(Script(slow), task_completion_checker=asked)  # type: ignore[arg-type]
    response = adapter.evaluate(_prompt(), session=Session(), deadline=deadline)
    assert asked.asked == []
    assert response.completion is not None
    assert (response.completion.status, response.completion.bypass and response.completion.bypass.kind) == (
        "bypassed",
        "deadline",
    )


def test_the_check_is_skipped_when_the_budget_is_spent() -> None:
    asked = Counting(TaskCompletionResult.incomplete("no"))
    adapter = ScriptedAdapter(Script(say("done", usage=TokenUsage(90, 10))), task_completion_checker=asked)
    response = adapter.evaluate(_prompt(), session=Session(), budget=Budget(max_total_tokens=100))
    assert asked.asked == []
    assert response.completion is not None
    assert response.completion.bypass is not None
    assert (response.completion.bypass.kind, response.completion.bypass.dimension) == ("budget", "total_tokens")


def test_the_plan_can_be_cut_down_as_the_feedback_asks() -> None:
    session = Session()
    template = PromptTemplate[None](ns="spec", key="cut", sections=[PlanningToolsSection(session=session)])
    script = Script(
        call("planning_setup_plan", objective="o", steps=["keep", "drop"]),
        call("planning_update_step", step_id=1, status="done"),
        say("done"),
        call("planning_cancel_step", step_id=2, reason="covered by the first"),
        say("done"),
    )
    adapter = ScriptedAdapter(script, task_completion_checker=PlanBasedChecker(plan_type=Plan))
    response = adapter.evaluate(Prompt(template), session=session)
    assert response.completion is not None
    assert response.completion.status == "verified"
    assert "1 cancelled: drop (covered by the first)" in (response.completion.feedback or "")
    assert [one.allowed for one in session[CompletionChecked].all()] == [False, True]
