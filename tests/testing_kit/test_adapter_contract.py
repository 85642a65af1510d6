"""The contract: what it holds an agent of one's own to, and that each of its scenes detects the fault it is for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.scripted import ModelError, ToolCall, Turn
from donewhen.filesystem import Filesystem, HostFilesystem
from donewhen.protocols import CompletionReport
from donewhen.testing import AdapterContract, Played, Scene, SubagentCall
from testing_kit.middleware_agent import Agent, Fault, GuardMiddleware

EVERYTHING = frozenset({"output", "parallel calls", "background work", "sub-agents", "streaming"})


class _Model:
    def __init__(self, turns: Any) -> None:
        self._turns = turns
        self.told: list[str] = []

    def __call__(self, received: str) -> Turn:
        number = len(self.told)
        self.told.append(received)
        turn = self._turns(number) if callable(self._turns) else self._turns[number]
        if isinstance(turn, ModelError):
            raise turn
        return turn


class MiddlewareHarness(AdapterContract):
    """Plays the scenes on the agent with middleware."""

    mode = "middleware"
    features = EVERYTHING
    faults: frozenset[Fault] = frozenset()
    files: HostFilesystem

    @property
    def filesystem(self) -> Filesystem:
        return self.files

    def play(self, scene: Scene) -> Played:
        guard = scene.guard()
        assert guard is not None
        middleware = GuardMiddleware(guard, scene, self.files)
        model = _Model(scene.turns)
        subagents: list[str] = []

        def call(made: ToolCall) -> str:
            return scene.call(made, self.files).message

        def subagent(made: SubagentCall, parents: GuardMiddleware | None) -> None:
            inner = _Model([*made.turns, *made.turns])
            agent = Agent(inner, call, parents, decode=lambda _: None, subagent=subagent, max_turns=2)
            agent.run(str(made.arguments["task"]))
            subagents.extend(inner.told)

        agent = Agent(
            model,
            call,
            middleware,
            decode=lambda made: scene.decoded(made.arguments),
            subagent=subagent,
            max_turns=scene.max_turns,
            wants_output=scene.prompt.render().output is not None,
            faults=self.faults,
        )
        if scene.streamed:
            list(agent.stream(scene.prompt.render().text))
        else:
            agent.run(scene.prompt.render().text)
        return Played.of(
            model.told,
            middleware.report or CompletionReport("verified", 1),
            text=agent.text,
            output=agent.output,
            stop_reason=agent.reason,
            subagents=subagents,
        )


class TestAgentWithMiddleware(MiddlewareHarness):
    """An agent of one's own without a fault keeps the contract."""

    @pytest.fixture(autouse=True)
    def _workspace(self, tmp_path: Path) -> None:
        self.files = HostFilesystem(tmp_path)


FAULTS: list[tuple[Fault, str]] = [
    ("trusts the accepted output", "test_work_that_is_undone_after_the_output_is_not_verified"),
    ("makes the calls in any order", "test_every_call_of_a_turn_is_made"),
    ("leaves background work behind", "test_work_in_the_background_that_undoes_the_work_is_not_verified"),
    ("leaves background work behind", "test_work_in_the_background_that_undoes_it_after_the_output_is_not_verified"),
    ("checks before background work ends", "test_work_in_the_background_that_undoes_the_work_is_not_verified"),
    ("guards sub-agents", "test_a_sub_agent_is_not_held_to_its_parents_work"),
    ("forgets the guard after a sub-agent", "test_a_parent_is_held_after_its_sub_agent_has_ended"),
    ("streams past the guard", "test_a_stop_is_held_in_a_streamed_run_too"),
    ("streams past denied outputs", "test_an_output_is_denied_in_a_streamed_run_too"),
    ("ignores errors in streams", "test_a_streamed_run_whose_model_fails_is_checked_once_more"),
    ("lets go at once", "test_a_stop_is_held_until_the_work_is_done"),
    ("accepts every output", "test_structured_output_is_denied_until_the_work_is_done"),
]


@pytest.mark.parametrize(("fault", "scene"), FAULTS)
def test_a_fault_is_detected_by_the_scene_for_it(tmp_path: Path, fault: Fault, scene: str) -> None:
    harness = MiddlewareHarness()
    harness.files = HostFilesystem(tmp_path)
    harness.faults = frozenset({fault})
    with pytest.raises(AssertionError):
        getattr(harness, scene)()


@pytest.mark.parametrize(
    ("second", "scene"),
    [
        ("second output", "test_a_second_output_after_the_work_was_undone_is_not_verified"),
        ("background", "test_work_that_is_done_in_the_background_is_verified_only_when_it_is_done"),
    ],
)
def test_an_adapter_that_reports_its_first_verdict_is_detected(tmp_path: Path, second: str, scene: str) -> None:
    class First(MiddlewareHarness):
        def play(self, scene: Scene) -> Played:
            played = super().play(scene)
            return replace(played, response=replace(played.response, completion=CompletionReport("verified", 1)))

    harness = First()
    harness.files = HostFilesystem(tmp_path)
    harness.faults = frozenset({"leaves background work behind"})
    with pytest.raises(AssertionError):
        getattr(harness, scene)()


def test_an_adapter_for_which_background_work_is_never_finished_is_detected(tmp_path: Path) -> None:
    class Suspicious(MiddlewareHarness):
        def play(self, scene: Scene) -> Played:
            played = super().play(scene)
            return replace(played, response=replace(played.response, completion=CompletionReport("incomplete", 1)))

    for scene in (
        "test_work_in_the_background_that_harms_nothing_is_no_obstacle",
        "test_work_that_is_undone_and_done_again_after_the_output_is_verified",
        "test_an_output_in_the_same_turn_as_the_work_is_accepted",
    ):
        harness = Suspicious()
        (tmp_path / scene).mkdir()
        harness.files = HostFilesystem(tmp_path / scene)
        with pytest.raises(AssertionError):
            getattr(harness, scene)()


def _collected(kind: type[AdapterContract]) -> set[str]:
    return {name for name in dir(kind) if name.startswith("test_") and callable(getattr(kind, name))}


class _Plain(AdapterContract):
    filesystem = property(lambda self: None)  # type: ignore[assignment]

    def play(self, scene: Scene) -> Played:
        raise NotImplementedError


def test_a_runtime_plays_only_the_scenes_for_what_it_has() -> None:
    class Everything(_Plain):
        features = EVERYTHING

    class Text(_Plain):
        features = frozenset()

    class InOwnAgent(_Plain):
        mode = "middleware"

    everything, plain, text, own = map(_collected, (Everything, _Plain, Text, InOwnAgent))
    assert text < plain < everything
    assert own < plain
    assert {name for name in everything - plain if "background" in name}
    assert not {name for name in plain if "stream" in name or "sub_agent" in name}
    assert plain - own == {
        "test_the_calls_of_tools_are_in_the_session",
        "test_a_spent_budget_bypasses_the_check",
        "test_a_run_ends_when_its_budget_is_spent_between_tools",
        "test_without_a_checker_nothing_is_held_back",
        "test_a_checker_on_the_template_guards_as_well",
        "test_every_context_has_the_session_the_filesystem_the_adapter_and_the_output",
    }
    assert not {name for name in text if "output" in name}


def test_a_scene_that_a_harness_overrides_stays() -> None:
    class Own(_Plain):
        features = frozenset()

        def test_a_sub_agent_is_not_held_to_its_parents_work(self) -> None:
            """In the way of this runtime."""

    assert "test_a_sub_agent_is_not_held_to_its_parents_work" in _collected(Own)


def test_the_contract_names_no_tool_of_one_runtime() -> None:
    import donewhen.testing._contract_scene as scene
    import donewhen.testing.contract as contract

    for module in (contract, scene):
        text = Path(module.__file__).read_text()
        assert not [name for name in ("StructuredOutput", "Bash", "mcp__", "run_in_background") if name in text]
