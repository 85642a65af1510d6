"""Scripted models, which guard a run gets, and the kit for users' tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from donewhen import testing
from donewhen.adapters.guard_choice import AdapterError, guard_for, prepare_session
from donewhen.completion import (
    CompositeChecker,
    GuardPolicy,
    PlanBasedChecker,
    TaskCompletionContext,
    TaskCompletionResult,
    run_check,
)
from donewhen.contrib.tools import PlanningToolsSection
from donewhen.contrib.tools.planning import Plan
from donewhen.filesystem import InMemoryFilesystem
from donewhen.prompt import Prompt, PromptTemplate
from donewhen.runtime import CompletionChecked, Deadline, Limits, Session, TokenUsage, ToolInvoked
from donewhen.testing import (
    ByPrompt,
    ManualClock,
    Message,
    ModelError,
    ModelRequest,
    Script,
    ScriptedAdapter,
    ScriptExhaustedError,
    ToolCall,
    Turn,
    call,
    finish,
    make_context,
    say,
)
from sentences import assert_sentences


def request(name: str = "a:b") -> ModelRequest:
    return ModelRequest(name, (Message("user", "hello"), Message("user", "again")), ())


class TestScript:
    def test_lines_are_played_in_order_and_requests_remembered(self) -> None:
        script = Script(say("one"), lambda request: say(request.last.text), say("three"))
        asked = request()
        assert [script.respond(asked).text for _ in range(3)] == ["one", "again", "three"]
        assert script.requests == [asked] * 3

    @pytest.mark.parametrize("error", [ModelError("x"), ValueError("y")], ids=repr)
    def test_an_exception_is_raised(self, error: Exception) -> None:
        with pytest.raises(type(error)):
            Script(error).respond(request())

    def test_the_end_is_loud(self) -> None:
        script = Script(say("one"))
        script.respond(request())
        with pytest.raises(ScriptExhaustedError) as caught:
            script.respond(request())
        assert_sentences(caught.value)

    def test_an_empty_script_is_over_at_once(self) -> None:
        with pytest.raises(ScriptExhaustedError) as caught:
            Script().respond(request())
        assert_sentences(caught.value)

    def test_an_exhausted_script_is_no_model_error_that_could_be_taken_for_a_failing_api(self) -> None:
        assert not issubclass(ScriptExhaustedError, ModelError)
        assert issubclass(ScriptExhaustedError, AdapterError)
        assert issubclass(ModelError, AdapterError)


class TestMessages:
    def test_a_message_is_no_error_unless_it_says_so(self) -> None:
        assert Message("user", "x") == Message("user", "x", (), None, False)

    @pytest.mark.parametrize("thing", [say("x"), call("x").calls[0], Message("user", "x"), request()], ids=repr)
    def test_what_was_said_can_not_be_changed(self, thing: object) -> None:
        with pytest.raises(AttributeError):
            thing.text = "y"  # type: ignore[attr-defined]


class TestByPrompt:
    def test_each_prompt_has_its_model(self) -> None:
        model = ByPrompt({"a:b": Script(say("ab")), "*": Script(say("other"))})
        assert model.respond(request("x:y")).text == "other"
        assert model.respond(request("a:b")).text == "ab"

    def test_a_prompt_without_a_model_is_loud(self) -> None:
        with pytest.raises(ScriptExhaustedError) as caught:
            ByPrompt({"a:b": Script(say("ab"))}).respond(request("x:y"))
        assert_sentences(caught.value)


class TestTurns:
    def test_saying_something_is_an_attempt_to_stop(self) -> None:
        assert say("done") == Turn("done", (), TokenUsage(), 0.0)
        assert say("done", usage=TokenUsage(1, 2)).usage == TokenUsage(1, 2)

    def test_calling_names_tool_and_arguments(self) -> None:
        assert call("write", path="a", tool_name="b") == Turn(
            calls=(ToolCall("write", {"path": "a", "tool_name": "b"}),)
        )

    def test_finishing_calls_the_output_tool(self) -> None:
        assert finish(title="T") == Turn(calls=(ToolCall("StructuredOutput", {"title": "T"}),))


class Yes:
    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        return TaskCompletionResult.ok()


PLAIN = Prompt(PromptTemplate[None](ns="a", key="b"))


class TestGuardFor:
    def prompt(self, checker: object) -> Prompt[None]:
        return Prompt(PromptTemplate[None](ns="a", key="b", task_completion_checker=checker))  # type: ignore[arg-type]

    def test_without_a_checker_there_is_no_guard(self) -> None:
        assert guard_for(None, PLAIN, Limits(), GuardPolicy()) is None

    def test_one_checker_is_the_guards_own(self) -> None:
        mine = Yes()
        limits, policy = Limits(Deadline.after(9)), GuardPolicy(max_stalled=7)
        for guard in (guard_for(mine, PLAIN, limits, policy), guard_for(None, self.prompt(mine), limits, policy)):
            assert guard is not None
            assert guard.checker is mine
            assert guard.limits is limits
            assert guard.policy is policy

    def test_two_checkers_must_both_pass_the_configured_one_first(self) -> None:
        mine, theirs = Yes(), PlanBasedChecker()
        guard = guard_for(mine, self.prompt(theirs), Limits(), GuardPolicy())
        assert guard is not None
        assert isinstance(guard.checker, CompositeChecker)
        assert guard.checker.checkers == (mine, theirs)
        assert guard.checker.all_must_pass is True

    def test_inside_a_check_nothing_is_guarded(self) -> None:
        guards: list[object] = []

        class Looks:
            def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
                guards.append(guard_for(Yes(), PLAIN, Limits(), GuardPolicy()))
                return TaskCompletionResult.ok()

        run_check(Looks(), make_context())
        run_check(Looks(), make_context(), timeout=30)
        assert guards == [None, None]
        assert guard_for(Yes(), PLAIN, Limits(), GuardPolicy()) is not None

    @pytest.mark.parametrize("thing", [PlanBasedChecker, "text", 7], ids=repr)
    def test_what_is_no_checker_is_refused(self, thing: object) -> None:
        with pytest.raises(TypeError):
            guard_for(thing, PLAIN, Limits(), GuardPolicy())
        with pytest.raises(TypeError):
            guard_for(None, self.prompt(thing), Limits(), GuardPolicy())


class TestPrepare:
    def test_the_sections_and_the_events_get_their_slices(self) -> None:
        session = Session()
        prompt = Prompt(PromptTemplate[None](ns="a", key="b", sections=[PlanningToolsSection()]))
        prepare_session(prompt, session)
        prepare_session(prompt, session)
        assert Plan in session
        event = ToolInvoked("x", {}, True, "y")
        checked = CompletionChecked(1, True, True, None, None, None)
        for one in (event, event, checked):
            assert session.dispatch(one).handled == 1
        assert session[ToolInvoked].all() == (event, event)
        assert session[CompletionChecked].all() == (checked,)


@dataclass(frozen=True)
class State:
    number: int


class TestMakeContext:
    def test_the_defaults_are_an_agent_that_ends_its_turn(self) -> None:
        context = make_context()
        assert context.session.snapshot().slices == {}
        assert context.tentative_output is None
        assert context.filesystem is None
        assert context.adapter is None
        assert context.stop_reason == "end_turn"

    def test_each_value_is_put_into_the_slice_of_its_type(self) -> None:
        plan = Plan("x")
        context = make_context(State(1), plan, State(2))
        assert context.session[State].all() == (State(1), State(2))
        assert context.session[Plan].latest() is plan

    def test_files_make_a_filesystem_even_when_there_are_none(self) -> None:
        context = make_context(files={"a": "text", "b": b"bytes"})
        assert isinstance(context.filesystem, InMemoryFilesystem)
        assert context.filesystem.read_text("a") == "text"
        assert context.filesystem.read_bytes("b") == b"bytes"
        assert make_context(files={}).filesystem is not None

    def test_everything_else_is_handed_through(self) -> None:
        adapter = ScriptedAdapter(Script())
        context = make_context(output={"a": 1}, adapter=adapter, stop_reason="structured_output")
        assert context.tentative_output == {"a": 1}
        assert context.adapter is adapter
        assert context.stop_reason == "structured_output"


class TestManualClock:
    def test_it_stands_still_until_it_is_told_to_go_on(self) -> None:
        clock = ManualClock()
        before = (clock.now(), clock.monotonic())
        assert (clock.now(), clock.monotonic()) == before == (datetime(2026, 1, 1, tzinfo=UTC), 0.0)
        clock.advance(1.5)
        assert clock.now() == before[0] + timedelta(seconds=1.5)
        assert clock.monotonic() == 1.5

    def test_a_jump_moves_the_wall_clock_only(self) -> None:
        start = datetime(2030, 5, 5, tzinfo=UTC)
        clock = ManualClock(start)
        clock.jump(-60)
        assert clock.now() == start - timedelta(seconds=60)
        assert clock.monotonic() == 0.0

    def test_a_jump_does_not_end_a_deadline_and_time_does(self) -> None:
        clock = ManualClock()
        deadline = Deadline.after(10, clock=clock)
        clock.jump(3600)
        assert deadline.expired is False
        clock.advance(10)
        assert deadline.expired is True


def test_every_public_name_of_the_kit_can_be_imported() -> None:
    for name in testing.__all__:
        assert getattr(testing, name) is not None
