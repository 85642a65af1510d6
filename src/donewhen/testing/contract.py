"""Contract tests for adapters: derive from :class:`AdapterContract`, implement ``play``, and run pytest.

The scenarios are turns of an agent and the messages that its model received; the harness brings the turns to the
runtime. The tests assert on what the *model's side* received, because only that holds an agent back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from donewhen.adapters.scripted import ModelError, Turn, call, finish, say
from donewhen.completion import (
    Checkable,
    FileExistsChecker,
    GuardPolicy,
    ReasonCode,
    TaskCompletionContext,
    TaskCompletionResult,
)
from donewhen.filesystem import Filesystem
from donewhen.prompt import MarkdownSection, Prompt, PromptTemplate, ToolContext, ToolResult, tool
from donewhen.protocols import CompletionReport, PromptResponse
from donewhen.runtime import Budget, CompletionChecked, Deadline, Session, TokenUsage, ToolInvoked

__all__ = ["AdapterContract", "Played", "Scene", "Turns"]

Turns = Sequence[Turn | ModelError] | Callable[[int], Turn]
"""The model's turns in order, or a function of the turn number (from 0) for a model that never stops by itself."""


@dataclass(frozen=True)
class Scene:
    """The input of a scenario for the harness."""

    turns: Turns
    prompt: Prompt[Any]
    session: Session
    checker: Checkable | None = None
    policy: GuardPolicy = field(default_factory=GuardPolicy)
    deadline: Deadline | None = None
    budget: Budget | None = None
    max_turns: int | None = None


@dataclass(frozen=True)
class Played:
    """The result: the response, and for each turn of the model the text it received just before."""

    response: PromptResponse[Any]
    told: tuple[str, ...]

    @property
    def report(self) -> CompletionReport:
        """How the guarded run ended."""
        assert self.response.completion is not None, "the run was not guarded"
        return self.response.completion


@dataclass(frozen=True)
class Verdict:
    """The structured output of the scenarios that ask for one."""

    summary: str
    score: int


@dataclass(frozen=True)
class Note:
    """What the scenarios' tool writes and keeps in the session."""

    path: str
    text: str


@tool
def contract_write(params: Note, context: ToolContext) -> ToolResult[Note]:
    """Write a file of the workspace."""
    if context.filesystem is None:
        return ToolResult.error("No workspace.")
    context.filesystem.write_text(params.path, params.text)
    return ToolResult(f"Wrote {params.path}.", params)


WRITE = call("contract_write", path="out.txt", text="the work")
FILES = FileExistsChecker(("out.txt",), strict=True)
MISSING = "Missing required files: out.txt"


def contract_prompt(output: type[Any] | None = None, checker: Checkable | None = None) -> Prompt[Any]:
    """The prompt of the scenarios."""
    section = MarkdownSection(title="Task", key="task", template="Write out.txt.", tools=[contract_write])
    template = PromptTemplate[output](  # type: ignore[valid-type]
        ns="contract",
        key="scene",
        sections=[section],
        task_completion_checker=checker,  # type: ignore[arg-type]
    )
    return Prompt(template)


class Watching:
    """A checker that records its contexts."""

    def __init__(self, inner: FileExistsChecker) -> None:
        self._inner = inner
        self.contexts: list[TaskCompletionContext] = []

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        self.contexts.append(context)
        return self._inner.check(context)


class Raising:
    """A checker that raises."""

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        raise RuntimeError("the checker is broken")


# The assertions below are the product: this class is a test kit.
# ruff: noqa: S101
class AdapterContract(ABC):
    """The scenarios. Each gets a fresh workspace without ``out.txt``."""

    @abstractmethod
    def play(self, scene: Scene) -> Played:
        """Run the scene on the adapter under test, with the model's side following its turns."""

    @property
    @abstractmethod
    def filesystem(self) -> Filesystem:
        """The workspace of the current test."""

    def scene(self, turns: Turns, checker: Checkable | None = FILES, **more: Any) -> Scene:
        """A scene with the usual prompt and a new session."""
        prompt = contract_prompt(more.pop("output", None), more.pop("on_template", None))
        return Scene(turns, prompt, Session(), checker, **more)

    def test_a_stop_is_held_until_the_work_is_done(self) -> None:
        scene = self.scene([say("Done!"), WRITE, say("Done, really.")])
        played = self.play(scene)
        assert MISSING in played.told[1]
        assert "Wrote out.txt." in played.told[2]
        assert len(played.told) == 3
        assert played.report.status == "verified"
        assert played.report.attempts == 2
        assert played.response.text == "Done, really."
        assert played.response.stop_reason == "end_turn"
        assert self.filesystem.read_text("out.txt") == "the work"

    def test_what_happened_is_in_the_session(self) -> None:
        scene = self.scene([say("Done!"), WRITE, say("Done, really.")])
        self.play(scene)
        assert scene.session[Note].latest() == Note("out.txt", "the work")
        assert [(event.name, event.success) for event in scene.session[ToolInvoked].all()] == [("contract_write", True)]
        checks = [
            (event.complete, event.allowed, event.stop_reason) for event in scene.session[CompletionChecked].all()
        ]
        assert checks == [(False, False, "end_turn"), (True, True, "end_turn")]

    def test_structured_output_is_denied_until_the_work_is_done(self) -> None:
        early, late = finish(summary="early", score=1), finish(summary="late", score=2)
        played = self.play(self.scene([early, WRITE, late], output=Verdict))
        assert MISSING in played.told[1]
        assert len(played.told) == 3
        assert played.response.output == Verdict("late", 2)
        assert played.response.stop_reason == "structured_output"
        assert played.report.status == "verified"

    def test_output_that_does_not_fit_is_tried_again(self) -> None:
        turns = [WRITE, finish(summary="no score"), finish(summary="fits", score=3)]
        played = self.play(self.scene(turns, output=Verdict))
        assert "score" in played.told[2]
        assert played.response.output == Verdict("fits", 3)

    def test_an_agent_that_ends_its_turn_without_the_output_is_asked_for_it(self) -> None:
        played = self.play(self.scene([WRITE, say("Done!"), finish(summary="s", score=1)], output=Verdict))
        assert "StructuredOutput" in played.told[2]
        assert played.response.output == Verdict("s", 1)

    def test_an_agent_that_makes_no_progress_is_let_go_as_capped(self) -> None:
        played = self.play(self.scene(lambda turn: say("Done!"), policy=GuardPolicy(max_stalled=3)))
        assert [MISSING in text for text in played.told] == [False, True, True, True]
        assert played.report.status == "capped"
        assert played.report.attempts == 4
        assert MISSING in (played.report.feedback or "")

    def test_outputs_without_progress_are_capped_too(self) -> None:
        played = self.play(
            self.scene(lambda turn: finish(summary="s", score=turn), output=Verdict, policy=GuardPolicy(max_stalled=7))
        )
        assert len(played.told) == 8
        assert played.report.status == "capped"

    def test_a_checker_that_raises_holds_the_agent_back(self) -> None:
        played = self.play(self.scene(lambda turn: say("Done!"), Raising(), policy=GuardPolicy(max_stalled=2)))
        assert "gate_error" in played.told[1]
        assert "the checker is broken" in played.told[1]
        assert len(played.told) == 3
        assert (played.report.status, played.report.code) == ("capped", ReasonCode.GATE_ERROR)

    def test_a_spent_budget_bypasses_the_check(self) -> None:
        watching = Watching(FILES)
        turn = Turn("Done!", usage=TokenUsage(400, 10))
        played = self.play(self.scene([turn], watching, budget=Budget(max_total_tokens=300)))
        assert watching.contexts == []
        assert played.report.status == "bypassed"
        assert played.report.bypass is not None
        assert (played.report.bypass.kind, played.report.bypass.dimension) == ("budget", "total_tokens")

    def test_a_run_ends_when_its_budget_is_spent_between_tools(self) -> None:
        turn = Turn(calls=call("contract_write", path="a.txt", text="x").calls, usage=TokenUsage(100, 10))
        played = self.play(self.scene(lambda number: turn, budget=Budget(max_total_tokens=300)))
        assert len(played.told) <= 4
        assert played.report.status == "bypassed"

    def test_a_deadline_that_has_passed_bypasses_the_check(self) -> None:
        played = self.play(self.scene(lambda turn: say("Done!"), deadline=Deadline.after(-1)))
        assert played.report.status == "bypassed"
        assert played.report.bypass is not None
        assert played.report.bypass.kind == "deadline"

    def test_a_run_that_is_out_of_turns_is_checked_once_more(self) -> None:
        again = call("contract_write", path="other.txt", text="x")
        played = self.play(self.scene(lambda turn: again, max_turns=2))
        assert played.response.stop_reason == "max_turns"
        assert played.report.status == "incomplete"
        assert MISSING in (played.report.feedback or "")

    def test_a_run_whose_model_fails_is_checked_once_more(self) -> None:
        played = self.play(self.scene([WRITE, ModelError("overloaded")]))
        assert played.response.stop_reason == "error"
        assert played.report.status == "verified"
        failed = self.play(self.scene([ModelError("overloaded")], checker=FileExistsChecker(("never.txt",))))
        assert failed.report.status == "incomplete"

    def test_without_a_checker_nothing_is_held_back(self) -> None:
        played = self.play(self.scene([say("Done!")], None))
        assert played.response.completion is None
        assert len(played.told) == 1

    def test_a_checker_on_the_template_guards_as_well(self) -> None:
        played = self.play(self.scene([say("Done!"), WRITE, say("Done!")], None, on_template=FILES))
        assert MISSING in played.told[1]
        assert played.report.status == "verified"

    def test_every_context_has_the_session_the_filesystem_the_adapter_and_the_output(self) -> None:
        watching = Watching(FILES)
        scene = self.scene([say("the last words"), WRITE, finish(summary="s", score=1)], watching, output=Verdict)
        self.play(scene)
        first, second = watching.contexts
        assert first.session is second.session is scene.session
        assert first.filesystem is not None
        assert first.adapter is second.adapter is not None
        assert first.tentative_output == "the last words"
        assert second.tentative_output == {"summary": "s", "score": 1}
        assert (first.stop_reason, second.stop_reason) == ("end_turn", "structured_output")
