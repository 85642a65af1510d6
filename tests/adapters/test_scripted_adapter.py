"""ScriptedAdapter: the tool-calling loop, really run and really guarded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from donewhen.adapters import ProviderAdapter
from donewhen.adapters.guard_choice import AdapterError
from donewhen.completion import (
    FileExistsChecker,
    GuardPolicy,
    PlanBasedChecker,
    ReasonCode,
    TaskCompletionContext,
    TaskCompletionResult,
)
from donewhen.contrib.tools import PlanningToolsSection
from donewhen.contrib.tools.planning import Plan
from donewhen.filesystem import InMemoryFilesystem
from donewhen.prompt import MarkdownSection, Prompt, PromptTemplate, Tool, ToolContext, ToolResult
from donewhen.runtime import (
    Budget,
    BudgetTracker,
    Bypass,
    CompletionChecked,
    Deadline,
    Session,
    TokenUsage,
    ToolInvoked,
)
from donewhen.testing import (
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
    say,
)
from sentences import assert_sentences


@dataclass(frozen=True)
class Write:
    path: str
    text: str


@dataclass(frozen=True)
class Written:
    path: str


@dataclass(frozen=True)
class Report:
    title: str
    score: int


def write(params: Write, context: ToolContext) -> ToolResult[Written]:
    if params.path == "forbidden":
        raise PermissionError("not there")
    assert context.filesystem is not None
    context.filesystem.write_text(params.path, params.text)
    return ToolResult(f"Wrote {params.path}.", Written(params.path))


SECTION = MarkdownSection(
    title="Task",
    key="task",
    template="Write the file.",
    tools=[Tool("write", "Write a file.", Write, write)],
)
PROMPT = Prompt(PromptTemplate[None](ns="demo", key="write", sections=[SECTION]))
TYPED = Prompt(PromptTemplate[Report](ns="demo", key="report", sections=[SECTION]))


class Answers:
    """Gives the answers in turn and remembers what it was asked with."""

    def __init__(self, *answers: TaskCompletionResult) -> None:
        self.answers = list(answers)
        self.contexts: list[TaskCompletionContext] = []

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        self.contexts.append(context)
        return self.answers[min(len(self.contexts), len(self.answers)) - 1]


OK = TaskCompletionResult.ok("Fine.")


def no(feedback: str = "Go on.") -> TaskCompletionResult:
    return TaskCompletionResult.incomplete(feedback)


def conversation(script: Script, number: int = -1) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in script.requests[number].messages]


class TestUnguarded:
    def test_an_agent_without_a_checker_stops_when_it_wants_to(self) -> None:
        script = Script(say("done", usage=TokenUsage(3, 2, 1)))
        response = ScriptedAdapter(script).evaluate(PROMPT, session=Session())
        assert response.prompt_name == "demo:write"
        assert response.text == "done"
        assert response.output is None
        assert response.stop_reason == "end_turn"
        assert response.usage == TokenUsage(3, 2, 1)
        assert response.completion is None

    def test_the_model_sees_the_prompt_and_the_tools(self) -> None:
        script = Script(say("done"))
        ScriptedAdapter(script).evaluate(PROMPT, session=Session())
        (request,) = script.requests
        assert request.prompt_name == "demo:write"
        assert request.messages == (Message("user", "## 1. Task\n\nWrite the file."),)
        (spec,) = request.tools
        assert (spec.name, spec.description) == ("write", "Write a file.")
        assert set(spec.input_schema["properties"]) == {"path", "text"}

    def test_usage_is_added_up_over_all_turns(self) -> None:
        turns = [Turn(calls=call("write", path="a", text="x").calls, usage=TokenUsage(1, 2, 3))] * 2
        script = Script(*turns, say("done", usage=TokenUsage(10, 20, 30)))
        adapter = ScriptedAdapter(script, filesystem=InMemoryFilesystem())
        assert adapter.evaluate(PROMPT, session=Session()).usage == TokenUsage(12, 24, 36)

    def test_the_last_words_are_kept_when_a_turn_has_none(self) -> None:
        script = Script(Turn("working", call("write", path="a", text="x").calls), say(""))
        adapter = ScriptedAdapter(script, filesystem=InMemoryFilesystem())
        assert adapter.evaluate(PROMPT, session=Session()).text == "working"

    def test_an_adapter_is_a_provider_adapter(self) -> None:
        assert isinstance(ScriptedAdapter(Script()), ProviderAdapter)

    def test_a_hundred_turns_are_the_default(self) -> None:
        assert ScriptedAdapter(Script()).max_turns == 100

    def test_fewer_than_one_turn_can_not_be_meant(self) -> None:
        with pytest.raises(ValueError) as caught:
            ScriptedAdapter(Script(), max_turns=0)
        assert_sentences(caught.value)


class TestTools:
    def test_tools_are_really_called_and_values_land_in_the_session(self) -> None:
        files = InMemoryFilesystem()
        script = Script(call("write", path="a.txt", text="hello"), say("done"))
        session = Session()
        ScriptedAdapter(script, filesystem=files).evaluate(PROMPT, session=session)
        assert files.read_text("a.txt") == "hello"
        assert session[Written].all() == (Written("a.txt"),)
        assert session[ToolInvoked].all() == (
            ToolInvoked("write", {"path": "a.txt", "text": "hello"}, True, "Wrote a.txt."),
        )
        assert script.requests[1].last == Message("tool", "Wrote a.txt.", name="write", is_error=False)

    def test_the_context_of_a_tool_is_that_of_the_run(self) -> None:
        seen: list[ToolContext] = []

        def look(params: Write, context: ToolContext) -> ToolResult[None]:
            seen.append(context)
            return ToolResult("ok")

        section = MarkdownSection(title="T", key="t", template="x", tools=[Tool("look", "Look.", Write, look)])
        files, session = InMemoryFilesystem(), Session()
        adapter = ScriptedAdapter(Script(call("look", path="", text=""), say("done")), filesystem=files)
        adapter.evaluate(Prompt(PromptTemplate[None](ns="a", key="b", sections=[section])), session=session)
        assert seen == [ToolContext(session, files, adapter)]

    def test_several_calls_of_one_turn_are_made_in_their_order(self) -> None:
        calls = tuple(ToolCall("write", {"path": name, "text": name}) for name in "abc")
        session = Session()
        adapter = ScriptedAdapter(Script(Turn("go", calls), say("done")), filesystem=InMemoryFilesystem())
        adapter.evaluate(PROMPT, session=session)
        assert [one.path for one in session[Written].all()] == ["a", "b", "c"]

    @pytest.mark.parametrize(
        "turn",
        [
            call("wriet", path="a"),
            call("StructuredOutput", title="x"),
            call("write", path="a"),
            call("write", path=1, text="x"),
            call("write", path="forbidden", text="x"),
        ],
        ids=["unknown tool", "no output type", "missing argument", "wrong type", "raising tool"],
    )
    def test_a_call_that_fails_is_told_to_the_model_and_the_run_goes_on(self, turn: Turn) -> None:
        script = Script(turn, say("oh"))
        session = Session()
        response = ScriptedAdapter(script, filesystem=InMemoryFilesystem()).evaluate(PROMPT, session=session)
        (invoked,) = session[ToolInvoked].all()
        assert script.requests[1].last == Message("tool", invoked.message, name=turn.calls[0].name, is_error=True)
        assert not invoked.success
        assert_sentences(invoked.message)
        assert session[Written].all() == ()
        assert response.text == "oh"

    def test_all_tools_are_named_when_one_is_not_there(self) -> None:
        script = Script(call("planning"), say("oh"))
        template = PromptTemplate[None](ns="a", key="b", sections=[SECTION, PlanningToolsSection()])
        ScriptedAdapter(script).evaluate(Prompt(template), session=Session())
        assert_sentences(script.requests[1].last.text)

    def test_a_prompt_without_tools_says_that_it_has_none(self) -> None:
        script = Script(call("write"), say("oh"))
        ScriptedAdapter(script).evaluate(Prompt(PromptTemplate[None](ns="a", key="b")), session=Session())
        assert_sentences(script.requests[1].last.text)


class TestGuarded:
    def test_an_agent_that_says_done_too_early_is_told_what_is_missing(self) -> None:
        files = InMemoryFilesystem()
        script = Script(say("Done!"), call("write", path="output.txt", text="x"), say("Now."))
        adapter = ScriptedAdapter(
            script, task_completion_checker=FileExistsChecker(("output.txt",), strict=True), filesystem=files
        )
        response = adapter.evaluate(PROMPT, session=Session())
        assert conversation(script)[1:] == [
            ("assistant", "Done!"),
            ("user", "Missing required files: output.txt"),
            ("assistant", ""),
            ("tool", "Wrote output.txt."),
        ]
        assert response.completion is not None
        assert response.completion.verified is True
        assert response.completion.attempts == 2
        assert response.completion.feedback == "All required files exist."

    def test_the_checker_sees_session_output_files_adapter_and_reason(self) -> None:
        answers = Answers(OK)
        files, session = InMemoryFilesystem(), Session()
        adapter = ScriptedAdapter(Script(say("bye")), task_completion_checker=answers, filesystem=files)
        adapter.evaluate(PROMPT, session=session)
        (context,) = answers.contexts
        assert context.session is session
        assert context.tentative_output == "bye"
        assert context.filesystem is files
        assert context.adapter is adapter
        assert context.stop_reason == "end_turn"

    def test_a_function_may_be_the_checker(self) -> None:
        def ready(context: TaskCompletionContext) -> bool:
            """Say please."""
            return "please" in context.tentative_output

        script = Script(say("done"), say("done, please"))
        response = ScriptedAdapter(script, task_completion_checker=ready).evaluate(PROMPT, session=Session())
        assert script.requests[1].last.text == "ready is not met: Say please."
        assert response.completion is not None
        assert response.completion.verified

    def test_every_check_is_kept_in_the_session(self) -> None:
        session = Session()
        adapter = ScriptedAdapter(Script(say("a"), say("b")), task_completion_checker=Answers(no(), OK))
        adapter.evaluate(PROMPT, session=session)
        assert session[CompletionChecked].all() == (
            CompletionChecked(1, False, False, "Go on.", None, "end_turn"),
            CompletionChecked(2, True, True, "Fine.", None, "end_turn"),
        )

    def test_the_checker_of_the_template_guards_as_well(self) -> None:
        template = PromptTemplate[None](ns="a", key="b", task_completion_checker=Answers(no("Not yet."), OK))
        script = Script(say("a"), say("b"))
        response = ScriptedAdapter(script).evaluate(Prompt(template), session=Session())
        assert script.requests[1].last.text == "Not yet."
        assert response.completion is not None
        assert response.completion.verified

    def test_where_both_have_a_checker_both_must_pass(self) -> None:
        mine, theirs = Answers(no("Mine."), OK, OK), Answers(no("Theirs."), OK)
        template = PromptTemplate[None](ns="a", key="b", task_completion_checker=theirs)
        script = Script(say("a"), say("b"), say("c"))
        adapter = ScriptedAdapter(script, task_completion_checker=mine)
        response = adapter.evaluate(Prompt(template), session=Session())
        assert [script.requests[number].last.text for number in (1, 2)] == ["Mine.", "Theirs."]
        assert response.completion is not None
        assert response.completion.feedback == "Fine. Fine."
        assert response.completion.attempts == 3

    def test_an_agent_that_makes_no_progress_is_let_go_unverified(self) -> None:
        script = Script(say("a"), say("b"), say("c"))
        adapter = ScriptedAdapter(script, task_completion_checker=Answers(no()), policy=GuardPolicy(max_stalled=2))
        response = adapter.evaluate(PROMPT, session=Session())
        assert response.stop_reason == "end_turn"
        assert response.completion is not None
        assert response.completion.status == "capped"
        assert response.completion.verified is False

    def test_a_broken_checker_holds_the_agent_back_and_ends_errored(self) -> None:
        class Broken:
            def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
                raise RuntimeError("boom")

        script = Script(say("a"), say("b"))
        adapter = ScriptedAdapter(script, task_completion_checker=Broken(), max_turns=2)
        response = adapter.evaluate(PROMPT, session=Session())
        assert "gate_error: the completion check Broken raised RuntimeError: boom." in script.requests[1].last.text
        assert response.completion is not None
        assert (response.completion.status, response.completion.code) == ("errored", ReasonCode.GATE_ERROR)

    def test_a_checker_with_a_code_of_its_own_does_not_crash_the_run(self) -> None:
        class Inventive:
            def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
                return TaskCompletionResult(complete=False, feedback="Go on.", code="mine")  # type: ignore[arg-type]

        adapter = ScriptedAdapter(Script(say("a")), task_completion_checker=Inventive(), max_turns=1)
        response = adapter.evaluate(PROMPT, session=Session())
        assert response.completion is not None
        assert response.completion.verified is False

    def test_what_is_no_checker_is_refused(self) -> None:
        adapter = ScriptedAdapter(Script(say("a")), task_completion_checker=PlanBasedChecker)  # type: ignore[arg-type]
        with pytest.raises(TypeError) as caught:
            adapter.evaluate(PROMPT, session=Session())
        assert_sentences(caught.value)

    def test_two_runs_of_one_adapter_are_guarded_apart(self) -> None:
        script = Script(say("a"), say("b"), say("c"), say("d"))
        adapter = ScriptedAdapter(
            script, task_completion_checker=Answers(no(), OK, no(), OK), policy=GuardPolicy(max_stalled=1)
        )
        for _ in range(2):
            completion = adapter.evaluate(PROMPT, session=Session()).completion
            assert completion is not None
            assert (completion.status, completion.attempts) == ("verified", 2)


class TestPlan:
    def test_an_agent_is_held_until_its_plan_is_done(self) -> None:
        session = Session()
        template = PromptTemplate[None](ns="demo", key="plan", sections=[PlanningToolsSection(session=session)])
        script = Script(
            call("planning_setup_plan", objective="Ship", steps=["Code", "Tests"]),
            call("planning_update_step", step_id=1, status="done"),
            say("All done!"),
            call("planning_cancel_step", step_id=2, reason="nothing to test"),
            say("Now it is."),
        )
        adapter = ScriptedAdapter(script, task_completion_checker=PlanBasedChecker(plan_type=Plan))
        response = adapter.evaluate(Prompt(template), session=session)
        assert script.requests[3].last.text == (
            "You have 1 incomplete task(s) out of 2. Please either complete all remaining tasks or update the plan to "
            "remove tasks that are no longer needed before producing output: Tests"
        )
        assert response.completion is not None
        assert (response.completion.feedback or "").startswith("All 2 task(s) in the plan are complete.")
        assert_sentences(response.completion.feedback)

    def test_a_section_without_a_session_is_installed_by_the_run(self) -> None:
        session = Session()
        template = PromptTemplate[None](ns="demo", key="plan", sections=[PlanningToolsSection()])
        script = Script(call("planning_setup_plan", objective="Ship", steps=["Code"]), say("done"))
        ScriptedAdapter(script).evaluate(Prompt(template), session=session)
        assert session[Plan].latest() is not None


class TestStructuredOutput:
    def test_the_output_type_is_offered_as_a_tool(self) -> None:
        script = Script(finish(title="T", score=1))
        ScriptedAdapter(script).evaluate(TYPED, session=Session())
        spec = script.requests[0].tools[-1]
        assert spec.name == "StructuredOutput"
        assert_sentences(spec.description)
        assert spec.input_schema["required"] == ["title", "score"]

    def test_output_that_fits_ends_the_run(self) -> None:
        session = Session()
        response = ScriptedAdapter(Script(finish(title="T", score=1))).evaluate(TYPED, session=session)
        assert response.output == Report("T", 1)
        assert response.stop_reason == "structured_output"
        assert response.completion is None
        assert session[ToolInvoked].latest() == ToolInvoked(
            "StructuredOutput", {"title": "T", "score": 1}, True, "Accepted."
        )

    def test_output_that_does_not_fit_is_refused_and_can_be_given_again(self) -> None:
        script = Script(finish(title="T"), finish(title="T", score="1"), finish(title="T", score=1))
        answers = Answers(OK)
        adapter = ScriptedAdapter(script, task_completion_checker=answers)
        response = adapter.evaluate(TYPED, session=Session())
        assert script.requests[1].last == Message(
            "tool",
            "The output is invalid: Object missing required field `score`",
            name="StructuredOutput",
            is_error=True,
        )
        assert "at `$.score`" in script.requests[2].last.text
        assert response.output == Report("T", 1)
        assert len(answers.contexts) == 1, "output that does not fit is no attempt to stop"

    @pytest.mark.parametrize("error", [ValueError, LookupError, RuntimeError])
    def test_output_that_refuses_itself_is_told_to_the_model_and_the_run_goes_on(self, error: type[Exception]) -> None:
        @dataclass(frozen=True)
        class Picky:
            score: int

            def __post_init__(self) -> None:
                if self.score < 0:
                    raise error("below zero")

        script = Script(finish(score=-1), finish(score=1))
        prompt = Prompt(PromptTemplate[Picky](ns="a", key="b"))
        response = ScriptedAdapter(script).evaluate(prompt, session=Session())
        assert "below zero" in script.requests[1].last.text
        assert response.output == Picky(1)

    def test_output_is_denied_until_the_work_is_complete(self) -> None:
        script = Script(finish(title="T", score=1), finish(title="T", score=2))
        answers = Answers(no("Write the file first."), OK)
        session = Session()
        response = ScriptedAdapter(script, task_completion_checker=answers).evaluate(TYPED, session=session)
        assert script.requests[1].last == Message(
            "tool", "Write the file first.", name="StructuredOutput", is_error=True
        )
        assert response.output == Report("T", 2)
        assert response.stop_reason == "structured_output"
        assert response.completion is not None
        assert (response.completion.status, response.completion.attempts) == ("verified", 2)
        assert [one.success for one in session[ToolInvoked].all()] == [False, True]
        assert [context.tentative_output for context in answers.contexts] == [
            {"title": "T", "score": 1},
            {"title": "T", "score": 2},
        ]
        assert {context.stop_reason for context in answers.contexts} == {"structured_output"}

    def test_output_that_never_gets_complete_is_taken_unverified_in_the_end(self) -> None:
        script = Script(*[finish(title="T", score=1)] * 2)
        adapter = ScriptedAdapter(script, task_completion_checker=Answers(no()), policy=GuardPolicy(max_stalled=1))
        response = adapter.evaluate(TYPED, session=Session())
        assert response.output == Report("T", 1)
        assert response.completion is not None
        assert response.completion.status == "capped"

    def test_calls_after_the_accepted_output_are_not_made(self) -> None:
        turn = Turn("", (*finish(title="T", score=1).calls, *call("write", path="late", text="x").calls))
        files = InMemoryFilesystem()
        ScriptedAdapter(Script(turn), filesystem=files).evaluate(TYPED, session=Session())
        assert not files.exists("late")

    def test_calls_before_and_after_denied_output_are_made(self) -> None:
        write_a, write_b = (call("write", path=name, text="x").calls for name in "ab")
        turn = Turn("", (*write_a, *finish(title="T", score=1).calls, *write_b))
        files = InMemoryFilesystem()
        checker = FileExistsChecker(("b",), strict=True)
        script = Script(turn, finish(title="T", score=1))
        adapter = ScriptedAdapter(script, filesystem=files, task_completion_checker=checker)
        assert adapter.evaluate(TYPED, session=Session()).output == Report("T", 1)
        assert files.exists("a")

    def test_an_agent_that_forgets_its_output_is_reminded(self) -> None:
        script = Script(say("done"), finish(title="T", score=1))
        response = ScriptedAdapter(script).evaluate(TYPED, session=Session())
        assert script.requests[1].last == Message("user", "Please give the result by calling StructuredOutput.")
        assert response.output == Report("T", 1)

    def test_an_incomplete_agent_is_first_told_what_is_missing_and_then_reminded(self) -> None:
        script = Script(say("a"), say("b"), finish(title="T", score=1))
        adapter = ScriptedAdapter(script, task_completion_checker=Answers(no("Missing."), OK))
        response = adapter.evaluate(TYPED, session=Session())
        assert script.requests[1].last.text == "Missing."
        assert_sentences(script.requests[2].last.text)
        assert response.completion is not None
        assert response.completion.attempts == 3

    def test_an_agent_that_never_gives_its_output_is_an_error(self) -> None:
        script = Script(*[say("done")] * 6)
        with pytest.raises(AdapterError) as caught:
            ScriptedAdapter(script).evaluate(TYPED, session=Session())
        assert_sentences(caught.value)
        assert len(script.requests) == 6

    def test_five_reminders_are_given(self) -> None:
        script = Script(*[say("done")] * 5, finish(title="T", score=1))
        assert ScriptedAdapter(script).evaluate(TYPED, session=Session()).output == Report("T", 1)

    def test_an_agent_that_was_capped_may_go_without_output(self) -> None:
        adapter = ScriptedAdapter(
            Script(say("a"), say("b")), task_completion_checker=Answers(no()), policy=GuardPolicy(max_stalled=1)
        )
        response = adapter.evaluate(TYPED, session=Session())
        assert response.output is None
        assert response.stop_reason == "end_turn"
        assert response.completion is not None
        assert response.completion.status == "capped"


class TestEnds:
    @pytest.mark.parametrize(("answer", "status"), [(OK, "verified"), (no(), "incomplete")])
    def test_a_run_out_of_turns_is_checked_once_more(self, answer: TaskCompletionResult, status: str) -> None:
        answers = Answers(answer)
        turn = Turn("still busy", call("write", path="a", text="x").calls)
        adapter = ScriptedAdapter(
            Script(turn, turn), task_completion_checker=answers, filesystem=InMemoryFilesystem(), max_turns=2
        )
        response = adapter.evaluate(PROMPT, session=Session())
        assert response.stop_reason == "max_turns"
        assert response.text == "still busy"
        assert response.completion is not None
        assert (response.completion.status, response.completion.attempts) == (status, 1)
        assert answers.contexts[0].stop_reason == "max_turns"
        assert answers.contexts[0].tentative_output == "still busy"

    def test_a_model_that_fails_ends_the_run_with_its_error(self) -> None:
        answers = Answers(no())
        adapter = ScriptedAdapter(Script(ModelError("overloaded")), task_completion_checker=answers)
        response = adapter.evaluate(PROMPT, session=Session())
        assert response.stop_reason == "error"
        assert response.text == "overloaded"
        assert response.completion is not None
        assert response.completion.status == "incomplete"
        assert answers.contexts[0].stop_reason == "error"
        assert answers.contexts[0].tentative_output is None, "what an API said is not the agent's output"

    def test_without_a_checker_neither_end_has_a_report(self) -> None:
        for script in (Script(ModelError("overloaded")), Script(call("write", path="a", text="x"))):
            adapter = ScriptedAdapter(script, filesystem=InMemoryFilesystem(), max_turns=1)
            assert adapter.evaluate(PROMPT, session=Session()).completion is None

    def test_any_other_exception_of_the_model_goes_through(self) -> None:
        with pytest.raises(ZeroDivisionError):
            ScriptedAdapter(Script(ZeroDivisionError())).evaluate(PROMPT, session=Session())

    def test_an_exhausted_script_is_loud(self) -> None:
        adapter = ScriptedAdapter(Script(say("a")), task_completion_checker=Answers(no("Write it.")))
        with pytest.raises(ScriptExhaustedError) as caught:
            adapter.evaluate(PROMPT, session=Session())
        assert_sentences(caught.value)


class TestLimits:
    def test_a_deadline_that_has_passed_ends_the_run_before_the_model_is_asked(self) -> None:
        script, answers = Script(), Answers(no())
        adapter = ScriptedAdapter(script, task_completion_checker=answers)
        response = adapter.evaluate(PROMPT, session=Session(), deadline=Deadline.after(0, clock=ManualClock()))
        assert script.requests == []
        assert answers.contexts == []
        assert response.stop_reason == "end_turn"
        assert response.text is None
        assert response.completion is not None
        assert (response.completion.status, response.completion.bypass) == ("bypassed", Bypass("deadline"))

    def test_a_deadline_that_passes_on_the_way_lets_the_agent_go(self) -> None:
        clock = ManualClock()

        def slow(request: ModelRequest) -> Turn:
            clock.advance(11)
            return say("done")

        adapter = ScriptedAdapter(Script(slow), task_completion_checker=Answers(no()))
        response = adapter.evaluate(PROMPT, session=Session(), deadline=Deadline.after(10, clock=clock))
        assert response.text == "done"
        assert response.completion is not None
        assert (response.completion.status, response.completion.attempts) == ("bypassed", 0)

    @pytest.mark.parametrize(
        ("budget", "dimension"),
        [
            (Budget(max_input_tokens=10), "input_tokens"),
            (Budget(max_output_tokens=10), "output_tokens"),
            (Budget(max_total_tokens=20), "total_tokens"),
            (Budget(max_cost_usd=1.0), "cost_usd"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_budget_that_is_spent_lets_the_agent_go(self, budget: Budget, dimension: Any) -> None:
        turn = Turn("done", usage=TokenUsage(10, 10), cost_usd=1.0)
        adapter = ScriptedAdapter(Script(turn), task_completion_checker=Answers(no()))
        response = adapter.evaluate(PROMPT, session=Session(), budget=budget)
        assert response.completion is not None
        assert (response.completion.status, response.completion.bypass) == ("bypassed", Bypass("budget", dimension))

    def test_a_spent_budget_ends_the_run_between_tool_calls(self) -> None:
        turn = Turn("", call("write", path="a", text="x").calls, TokenUsage(10, 0))
        script = Script(turn, turn)
        adapter = ScriptedAdapter(script, task_completion_checker=Answers(no()), filesystem=InMemoryFilesystem())
        response = adapter.evaluate(PROMPT, session=Session(), budget=Budget(max_input_tokens=10))
        assert len(script.requests) == 1
        assert response.completion is not None
        assert response.completion.status == "bypassed"

    def test_a_tracker_is_shared_between_runs(self) -> None:
        tracker = BudgetTracker(Budget(max_total_tokens=10))
        script = Script(say("a", usage=TokenUsage(6, 0)), say("b", usage=TokenUsage(4, 0)))
        adapter = ScriptedAdapter(script, task_completion_checker=Answers(OK))
        reports = [adapter.evaluate(PROMPT, session=Session(), budget=tracker).completion for _ in range(2)]
        assert [report.status for report in reports if report is not None] == ["verified", "bypassed"]

    def test_a_spent_budget_lets_an_agent_go_without_its_output_and_without_a_reminder(self) -> None:
        seen: list[Message] = []
        adapter = ScriptedAdapter(
            Script(say("a", usage=TokenUsage(10, 0))), task_completion_checker=Answers(no()), observer=seen.append
        )
        response = adapter.evaluate(TYPED, session=Session(), budget=Budget(max_total_tokens=10))
        assert [message.role for message in seen] == ["user", "assistant"]
        assert response.output is None
        assert response.completion is not None
        assert response.completion.status == "bypassed"

    def test_output_that_comes_with_the_last_token_is_taken_unverified(self) -> None:
        turn = Turn("", finish(title="T", score=1).calls, TokenUsage(10, 0))
        adapter = ScriptedAdapter(Script(turn), task_completion_checker=Answers(no()))
        response = adapter.evaluate(TYPED, session=Session(), budget=Budget(max_total_tokens=10))
        assert response.output == Report("T", 1)
        assert response.completion is not None
        assert response.completion.status == "bypassed"

    def test_limits_end_with_the_run_they_were_given_to(self) -> None:
        script = Script(say("a", usage=TokenUsage(10, 0)), say("b", usage=TokenUsage(10, 0)))
        adapter = ScriptedAdapter(script, task_completion_checker=Answers(OK))
        adapter.evaluate(PROMPT, session=Session(), budget=Budget(max_total_tokens=10))
        second = adapter.evaluate(PROMPT, session=Session()).completion
        assert second is not None
        assert second.status == "verified"


class TestObserver:
    def test_it_is_told_every_message_as_it_is_added(self) -> None:
        seen: list[Message] = []
        script = Script(call("write", path="a", text="x"), say("early"), say("done"))
        adapter = ScriptedAdapter(
            script,
            task_completion_checker=Answers(no(), OK),
            filesystem=InMemoryFilesystem(),
            observer=seen.append,
        )
        adapter.evaluate(PROMPT, session=Session())
        assert [(one.role, one.text) for one in seen] == [
            ("user", "## 1. Task\n\nWrite the file."),
            ("assistant", ""),
            ("tool", "Wrote a."),
            ("assistant", "early"),
            ("user", "Go on."),
            ("assistant", "done"),
        ]
        assert seen[1].calls == call("write", path="a", text="x").calls
