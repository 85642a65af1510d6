"""Contract tests for adapters: derive from :class:`AdapterContract`, implement ``play``, and run pytest.

The scenarios are turns of an agent and the messages that its model received; the harness brings the turns to the
runtime. The tests assert on what the *model's side* received, because only that holds an agent back.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeVar

from donewhen.adapters.scripted import ModelError, Turn, call, finish, say
from donewhen.completion import Checkable, FileExistsChecker, GuardPolicy, ReasonCode
from donewhen.filesystem import Filesystem
from donewhen.runtime import Budget, CompletionChecked, Deadline, Session, TokenUsage, ToolInvoked
from donewhen.testing._contract_scene import (
    BACKGROUND_DONE,
    FILES,
    MISSING,
    REMOVE,
    WRITE,
    BackgroundCall,
    Feature,
    Note,
    Played,
    Raising,
    Scene,
    SubagentCall,
    Turns,
    Verdict,
    Watching,
    contract_prompt,
)

__all__ = [
    "FILES",
    "MISSING",
    "AdapterContract",
    "BackgroundCall",
    "Feature",
    "Played",
    "Scene",
    "SubagentCall",
    "Turns",
    "Verdict",
    "Watching",
    "contract_prompt",
]

T = TypeVar("T", bound=Callable[..., None])

_PATIENCE = 3.0


def _needs(*features: Feature) -> Callable[[T], T]:
    """Mark a scenario that only runtimes with these features can play."""

    def marked(test: T) -> T:
        test.__dict__["needs"] = frozenset(features)
        return test

    return marked


# The assertions below are the product: this class is a test kit.
# ruff: noqa: S101
class AdapterContract(ABC):
    """The scenarios. Each gets a fresh workspace without ``out.txt``.

    ``features`` says what the runtime has; scenarios that need more are not collected. With ``mode = "middleware"``
    the guard is middleware in a user's own agent: there is no ProviderAdapter, so the scenarios about templates,
    budgets and the events of tools are left out. :meth:`Scene.guard` and :meth:`Played.of` serve such a harness.
    """

    mode: ClassVar[Literal["adapter", "middleware"]] = "adapter"
    features: ClassVar[frozenset[Feature]] = frozenset({"output", "parallel calls"})

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        available = cls.features | ({"adapter"} if cls.mode == "adapter" else frozenset())
        for name, test in vars(AdapterContract).items():
            needed: frozenset[Feature] = getattr(test, "needs", frozenset())
            if name in vars(cls):
                continue
            if needed - available:
                # pytest collects only what can be called.
                setattr(cls, name, None)
            elif needed and getattr(cls, name) is None:
                # A base class has fewer features.
                setattr(cls, name, test)

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
        assert MISSING in _told(played, 1)
        assert "Wrote out.txt." in _told(played, 2)
        assert len(played.told) == 3
        assert played.report.status == "verified"
        assert played.report.attempts == 2
        assert played.response.text == "Done, really."
        assert played.response.stop_reason == "end_turn"
        assert self.filesystem.read_text("out.txt") == "the work"

    @_needs("adapter")
    def test_the_calls_of_tools_are_in_the_session(self) -> None:
        scene = self.scene([say("Done!"), WRITE, say("Done, really.")])
        self.play(scene)
        assert scene.session[Note].latest() == Note("out.txt", "the work")
        assert [(event.name, event.success) for event in scene.session[ToolInvoked].all()] == [("contract_write", True)]

    def test_what_happened_is_in_the_session(self) -> None:
        scene = self.scene([say("Done!"), WRITE, say("Done, really.")])
        self.play(scene)
        checks = [
            (event.complete, event.allowed, event.stop_reason) for event in scene.session[CompletionChecked].all()
        ]
        assert checks == [(False, False, "end_turn"), (True, True, "end_turn")]

    @_needs("output")
    def test_structured_output_is_denied_until_the_work_is_done(self) -> None:
        early, late = finish(summary="early", score=1), finish(summary="late", score=2)
        played = self.play(self.scene([early, WRITE, late], output=Verdict))
        assert MISSING in _told(played, 1)
        assert len(played.told) == 3
        assert played.response.output == Verdict("late", 2)
        assert played.response.stop_reason == "structured_output"
        assert played.report.status == "verified"

    @_needs("output")
    def test_output_that_does_not_fit_is_tried_again(self) -> None:
        turns = [WRITE, finish(summary="no score"), finish(summary="fits", score=3)]
        played = self.play(self.scene(turns, output=Verdict))
        assert "score" in _told(played, 2)
        assert played.response.output == Verdict("fits", 3)

    @_needs("output")
    def test_an_agent_that_ends_its_turn_without_the_output_is_asked_for_it(self) -> None:
        played = self.play(self.scene([WRITE, say("Done!"), finish(summary="s", score=1)], output=Verdict))
        assert _told(played, 2).strip()
        assert len(played.told) == 3
        assert played.response.output == Verdict("s", 1)

    def test_an_agent_that_makes_no_progress_is_let_go_as_capped(self) -> None:
        played = self.play(self.scene(lambda turn: say("Done!"), policy=GuardPolicy(max_stalled=3)))
        assert [MISSING in text for text in played.told] == [False, True, True, True]
        assert played.report.status == "capped"
        assert played.report.attempts == 4
        assert MISSING in (played.report.feedback or "")

    @_needs("output")
    def test_outputs_without_progress_are_capped_too(self) -> None:
        played = self.play(
            self.scene(lambda turn: finish(summary="s", score=turn), output=Verdict, policy=GuardPolicy(max_stalled=7))
        )
        assert len(played.told) == 8
        assert played.report.status == "capped"

    def test_a_checker_that_raises_holds_the_agent_back(self) -> None:
        played = self.play(self.scene(lambda turn: say("Done!"), Raising(), policy=GuardPolicy(max_stalled=2)))
        assert "gate_error" in _told(played, 1)
        assert "the checker is broken" in _told(played, 1)
        assert len(played.told) == 3
        assert (played.report.status, played.report.code) == ("capped", ReasonCode.GATE_ERROR)

    @_needs("adapter")
    def test_a_spent_budget_bypasses_the_check(self) -> None:
        watching = Watching(FILES)
        turn = Turn("Done!", usage=TokenUsage(400, 10))
        played = self.play(self.scene([turn], watching, budget=Budget(max_total_tokens=300)))
        assert watching.contexts == []
        assert played.report.status == "bypassed"
        assert played.report.bypass is not None
        assert (played.report.bypass.kind, played.report.bypass.dimension) == ("budget", "total_tokens")

    @_needs("adapter")
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
        assert self.mode != "adapter" or played.response.stop_reason == "max_turns"
        assert played.report.status == "incomplete"
        assert MISSING in (played.report.feedback or "")

    def test_a_run_whose_model_fails_is_checked_once_more(self) -> None:
        played = self.play(self.scene([WRITE, ModelError("overloaded")]))
        assert self.mode != "adapter" or played.response.stop_reason == "error"
        assert played.report.status == "verified"
        failed = self.play(self.scene([ModelError("overloaded")], checker=FileExistsChecker(("never.txt",))))
        assert failed.report.status == "incomplete"

    @_needs("adapter")
    def test_without_a_checker_nothing_is_held_back(self) -> None:
        played = self.play(self.scene([say("Done!")], None))
        assert played.response.completion is None
        assert len(played.told) == 1

    @_needs("adapter")
    def test_a_checker_on_the_template_guards_as_well(self) -> None:
        played = self.play(self.scene([say("Done!"), WRITE, say("Done!")], None, on_template=FILES))
        assert MISSING in _told(played, 1)
        assert played.report.status == "verified"

    @_needs("adapter", "output")
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

    @_needs("parallel calls")
    def test_every_call_of_a_turn_is_made(self) -> None:
        other = call("contract_write", path="other.txt", text="more")
        played = self.play(self.scene([Turn(calls=(*WRITE.calls, *other.calls)), say("Done!")]))
        assert len(played.told) == 2
        assert _told(played, 1).index("Wrote out.txt.") < _told(played, 1).index("Wrote other.txt.")
        assert (played.report.status, played.report.attempts) == ("verified", 1)

    @_needs("parallel calls", "output")
    def test_an_output_in_the_same_turn_as_the_work_is_accepted(self) -> None:
        played = self._played_with_output(WRITE, finish(summary="s", score=1))
        assert played.response.output is not None
        assert played.report.status == "verified"

    @_needs("parallel calls", "output")
    def test_work_that_is_undone_after_the_output_is_not_verified(self) -> None:
        self._played_with_output(finish(summary="s", score=1), REMOVE)

    @_needs("parallel calls", "output")
    def test_a_second_output_after_the_work_was_undone_is_not_verified(self) -> None:
        self._played_with_output(finish(summary="s", score=1), REMOVE, finish(summary="s", score=2))

    @_needs("parallel calls", "output")
    def test_work_that_is_undone_and_done_again_after_the_output_is_verified(self) -> None:
        played = self._played_with_output(finish(summary="s", score=1), REMOVE, WRITE)
        assert played.report.status == "verified"

    @_needs("background work")
    def test_work_in_the_background_that_undoes_the_work_is_not_verified(self) -> None:
        self._end_truthfully([WRITE, _in_background(REMOVE)], say("Done!"))

    @_needs("background work", "output")
    def test_work_in_the_background_that_undoes_it_after_the_output_is_not_verified(self) -> None:
        self._end_truthfully([WRITE, _in_background(REMOVE)], finish(summary="s", score=1), output=Verdict)

    @_needs("background work")
    def test_work_that_is_done_in_the_background_is_verified_only_when_it_is_done(self) -> None:
        self._end_truthfully([_in_background(WRITE)], say("Done!"))

    @_needs("background work")
    def test_work_in_the_background_that_harms_nothing_is_no_obstacle(self) -> None:
        other = call("contract_write", path="other.txt", text="more")
        played = self._end_truthfully([WRITE, _in_background(other)], say("Done!"))
        assert played.report.status == "verified"

    @_needs("sub-agents")
    def test_a_sub_agent_is_not_held_to_its_parents_work(self) -> None:
        played = self.play(self.scene([_subagent(say("Sub done.")), WRITE, say("Done!")]))
        assert len(played.subagents) == 1
        assert not any(MISSING in text for text in (*played.subagents, *played.told))
        assert (played.report.status, played.report.attempts) == ("verified", 1)

    @_needs("sub-agents")
    def test_a_parent_is_held_after_its_sub_agent_has_ended(self) -> None:
        played = self.play(self.scene([_subagent(say("Sub done.")), say("Done!"), WRITE, say("Done!")]))
        assert MISSING in _told(played, 2)
        assert (played.report.status, played.report.attempts) == ("verified", 2)

    @_needs("streaming")
    def test_a_stop_is_held_in_a_streamed_run_too(self) -> None:
        played = self.play(self.scene([say("Done!"), WRITE, say("Done, really.")], streamed=True))
        assert MISSING in _told(played, 1)
        assert len(played.told) == 3
        assert (played.report.status, played.report.attempts) == ("verified", 2)

    @_needs("streaming", "output")
    def test_an_output_is_denied_in_a_streamed_run_too(self) -> None:
        early, late = finish(summary="early", score=1), finish(summary="late", score=2)
        played = self.play(self.scene([early, WRITE, late], output=Verdict, streamed=True))
        assert MISSING in _told(played, 1)
        assert played.response.output == Verdict("late", 2)
        assert played.report.status == "verified"

    @_needs("streaming")
    def test_a_streamed_run_whose_model_fails_is_checked_once_more(self) -> None:
        played = self.play(self.scene([ModelError("overloaded")], streamed=True))
        assert played.report.status == "incomplete"

    def _played_with_output(self, *calls: Turn) -> Played:
        """Play a turn with several calls in finished work; the verdict must be about the work at the end."""
        mixed = Turn(calls=tuple(made for turn in calls for made in turn.calls))
        return self._end_truthfully([WRITE, mixed], finish(summary="again", score=9), output=Verdict)

    def _end_truthfully(self, turns: list[Turn], last: Turn, **more: Any) -> Played:
        """Play ``turns``, then ``last`` for ever, and compare the verdict with the work at the end of the run."""
        script = [*turns, last]
        played = self.play(
            self.scene(lambda number: script[min(number, len(turns))], policy=GuardPolicy(max_stalled=2), **more)
        )
        there = self.filesystem.exists("out.txt")
        verified = played.report.status == "verified"
        assert there or not verified, "the run ended as verified, but the work is not there"
        if verified and any(isinstance(made, BackgroundCall) for turn in turns for made in turn.calls):
            # What still runs in the background belongs to the run, too.
            patience = threading.Event()
            for _ in range(int(_PATIENCE / 0.05)):
                if self.filesystem.exists(BACKGROUND_DONE):
                    break
                patience.wait(0.05)
            assert self.filesystem.exists("out.txt"), "work in the background undid verified work after the run"
        return played


def _told(played: Played, number: int) -> str:
    """Return what the model received before its turn of this number."""
    assert len(played.told) > number, (
        f"the model was asked {len(played.told)} times, and at least {number + 1} expected"
    )
    return played.told[number]


def _in_background(turn: Turn) -> Turn:
    return Turn(calls=tuple(BackgroundCall(made.name, made.arguments) for made in turn.calls))


def _subagent(*turns: Turn) -> Turn:
    return Turn(calls=(SubagentCall("contract_subagent", {"task": "Look around."}, turns),))
