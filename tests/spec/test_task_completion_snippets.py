"""The spec's own code, run as it stands with the package name changed.

The specification is not part of this project. Where it stands beside the checkout its blocks are run; elsewhere
these tests are skipped and say so.
"""

from __future__ import annotations
import __future__

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pytest

import donewhen.adapters.claude_agent_sdk as claude
import donewhen.completion as completion
from donewhen.contrib.tools.planning import Plan, PlanStep
from donewhen.filesystem import Filesystem, InMemoryFilesystem
from donewhen.prompt import MarkdownSection, Prompt, PromptTemplate, ToolContext, ToolResult, tool
from donewhen.protocols import ProviderAdapter
from donewhen.runtime import InProcessDispatcher, Session
from donewhen.testing import Script, ScriptedAdapter, ScriptedModel, call, make_context, say

SPEC = Path(__file__).parents[3] / "shared" / "specs" / "task-completion.md"

pytestmark = pytest.mark.skipif(not SPEC.exists(), reason=f"the specification is not beside the checkout: {SPEC}")


@dataclass(frozen=True)
class TestResult:
    __test__ = False
    passed: int
    failed: int


@dataclass(frozen=True)
class MyCustomPlan:
    steps: tuple[Any, ...]


class TestPassing:
    """Stands for the reader's checker where a block uses it before it is defined."""

    __test__ = False

    def check(self, context: completion.TaskCompletionContext) -> completion.TaskCompletionResult:
        return completion.TaskCompletionResult.ok("All 3 tests passing.")


def blocks() -> list[str]:
    if not SPEC.exists():
        return []
    found = re.findall(r"^```python\n(.*?)^```", SPEC.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(one).replace("weakincentives", "donewhen") for one in found]


def block(containing: str) -> str:
    matching = [one for one in blocks() if containing in one]
    assert matching, f"the spec has no block with {containing!r}"
    return matching[0]


def execute(source: str, **names: Any) -> dict[str, Any]:
    namespace: dict[str, Any] = {
        "__name__": __name__,
        "Any": Any,
        "Protocol": Protocol,
        "runtime_checkable": runtime_checkable,
        "dataclass": dataclass,
        "FrozenDataclass": partial(dataclass, frozen=True),
        "Session": Session,
        "InProcessDispatcher": InProcessDispatcher,
        "Filesystem": Filesystem,
        "InMemoryFilesystem": InMemoryFilesystem,
        "ProviderAdapter": ProviderAdapter,
        "Plan": Plan,
        "MyCustomPlan": MyCustomPlan,
        "TestResult": TestResult,
        "TestPassingChecker": TestPassing,
        **{name: getattr(completion, name) for name in completion.__all__},
        **names,
    }
    code = compile(source, str(SPEC), "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
    exec(code, namespace)  # noqa: S102 - running the spec's code is the point
    return namespace


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[[ScriptedModel], list[ScriptedAdapter]]:
    """Let blocks that build a ClaudeAgentSDKAdapter get one that plays a script."""

    def use(model: ScriptedModel) -> list[ScriptedAdapter]:
        made: list[ScriptedAdapter] = []

        def build(*, client_config: claude.ClaudeAgentSDKClientConfig) -> ScriptedAdapter:
            made.append(ScriptedAdapter(model, task_completion_checker=client_config.task_completion_checker))
            return made[-1]

        monkeypatch.setattr(claude, "ClaudeAgentSDKAdapter", build)
        return made

    return use


@pytest.mark.parametrize("number", range(len(blocks())))
def test_every_block_runs_as_it_stands(number: int, scripted: Callable[[ScriptedModel], Any]) -> None:
    scripted(Script(say("done")))
    namespace = execute(blocks()[number], ClaudeAgentSDKAdapter=claude.ClaudeAgentSDKAdapter)
    assert set(namespace) - {"__builtins__"}


def test_the_spec_has_the_blocks_that_are_expected_here() -> None:
    assert len(blocks()) == 13


def test_the_result_type_printed_in_the_spec_is_ours() -> None:
    theirs = execute(block("class TaskCompletionResult"))["TaskCompletionResult"]
    ours = completion.TaskCompletionResult
    assert [(field.name, field.default) for field in fields(ours)][:2] == [
        (field.name, field.default) for field in fields(theirs)
    ]
    for kind in (theirs, ours):
        assert (kind.ok().complete, kind.ok().feedback) == (True, None)
        assert (kind.ok("fine").complete, kind.ok("fine").feedback) == (True, "fine")
        assert (kind.incomplete("no").complete, kind.incomplete("no").feedback) == (False, "no")
        with pytest.raises(AttributeError):
            kind.ok().complete = False


def test_the_context_type_printed_in_the_spec_is_ours() -> None:
    theirs = execute(block("class TaskCompletionContext"))["TaskCompletionContext"]
    ours = completion.TaskCompletionContext
    printed = [(field.name, field.default) for field in fields(theirs)]
    assert [(field.name, field.default) for field in fields(ours)][: len(printed)] == printed
    # What ours has besides comes after these, and can be left out.
    assert [(field.name, field.default) for field in fields(ours)][len(printed) :] == [("session_id", "")]
    assert not hasattr(ours(session=Session()), "__dict__")


def test_a_checker_of_the_printed_protocol_is_a_checker_of_ours_and_the_other_way_round() -> None:
    theirs = execute(block("class TaskCompletionChecker(Protocol)"))["TaskCompletionChecker"]
    assert isinstance(TestPassing(), theirs)
    assert isinstance(TestPassing(), completion.TaskCompletionChecker)
    assert not isinstance(object(), completion.TaskCompletionChecker)


def test_story_1_the_agent_works_until_every_step_of_the_plan_is_done(
    scripted: Callable[[ScriptedModel], list[ScriptedAdapter]],
) -> None:
    script = Script(
        call("planning_setup_plan", objective="ship it", steps=["Implement feature", "Write tests"]),
        say("Done!"),
        call("planning_update_step", step_id=1, status="done"),
        say("Done, really."),
        call("planning_update_step", step_id=2, status="done"),
        say("Now it is done."),
    )
    scripted(script)
    namespace = execute(block("PlanningToolsSection(session=session)"))
    response = namespace["response"]
    assert response.completion.status == "verified"
    assert response.completion.attempts == 3
    assert response.text == "Now it is done."
    held_back = [message.text for message in script.requests[-1].messages if message.role == "user"][1:]
    assert "2 incomplete task(s) out of 2" in held_back[0]
    assert held_back[0].endswith("producing output: Implement feature, Write tests")
    assert "1 incomplete task(s) out of 2" in held_back[1]
    assert held_back[1].endswith("producing output: Write tests")
    assert [step.status for step in namespace["session"][Plan].latest().steps] == ["done", "done"]


@dataclass(frozen=True)
class RunTests:
    failing: int


@tool
def run_tests(params: RunTests, context: ToolContext) -> ToolResult[TestResult]:
    """Run the test suite."""
    result = TestResult(passed=5 - params.failing, failed=params.failing)
    return ToolResult(f"{result.failed} failed", result)


def _prompt() -> Prompt[None]:
    section = MarkdownSection(title="Task", key="task", template="Make the tests pass.", tools=[run_tests])
    return Prompt(PromptTemplate[None](ns="spec", key="story", sections=[section]))


def test_story_2_custom_logic_reads_what_tools_left_in_the_session(
    scripted: Callable[[ScriptedModel], list[ScriptedAdapter]],
) -> None:
    script = Script(
        say("Done!"),
        call("run_tests", failing=2),
        say("Done!"),
        call("run_tests", failing=0),
        say("Done!"),
    )
    scripted(script)
    namespace = execute(block("test_results = context.session[TestResult].latest()"))
    assert isinstance(namespace["TestPassingChecker"](), completion.TaskCompletionChecker)
    response = namespace["adapter"].evaluate(_prompt(), session=Session())
    held_back = [message.text for message in script.requests[-1].messages if message.role == "user"][1:]
    assert held_back == [
        "No test results found. Please run the test suite.",
        "2 tests failing. Fix before completing.",
    ]
    assert response.completion.status == "verified"
    assert response.completion.feedback == "All 5 tests passing."


def test_story_3_both_the_plan_and_the_custom_check_must_pass(
    scripted: Callable[[ScriptedModel], list[ScriptedAdapter]],
) -> None:
    script = Script(say("Done!"), call("run_tests", failing=0), say("Done!"))
    scripted(script)
    story_2 = execute(block("test_results = context.session[TestResult].latest()"))
    namespace = execute(
        block("TestPassingChecker(),  # Custom checker from Story 2"),
        TestPassingChecker=story_2["TestPassingChecker"],
    )
    response = namespace["adapter"].evaluate(_prompt(), session=Session())
    assert script.requests[1].last.text == "No test results found. Please run the test suite."
    assert response.completion.status == "verified"
    assert response.completion.feedback == "No planning tools available. All 5 tests passing."


def test_the_composite_of_the_spec_accepts_the_file_when_the_plan_is_open() -> None:
    source = block("# Any can pass")
    checker = execute(source)["checker"]
    open_plan = Plan("x", steps=(PlanStep(1, "Implement feature"),))
    passing = completion.run_check(checker, make_context(open_plan, files={"output.txt": "x"}))
    failing = completion.run_check(checker, make_context(open_plan, files={}))
    assert passing.complete is True
    assert failing.complete is False
    assert "Implement feature Missing required files: output.txt" in (failing.feedback or "")


def test_the_printed_file_checker_and_its_printed_test_work_together() -> None:
    printed = execute(block("class FileExistsChecker:"))["FileExistsChecker"]
    test_block = block("def test_checker_returns_incomplete_when_files_missing")
    for checker in (printed, completion.FileExistsChecker):
        execute(test_block, FileExistsChecker=checker)["test_checker_returns_incomplete_when_files_missing"]()
        there = make_context(files={"output.txt": "x"})
        assert checker(required_files=("output.txt",)).check(there).feedback == "All required files exist."
        nowhere = make_context()
        assert checker(required_files=("output.txt",)).check(nowhere).feedback == "No filesystem to check."


def test_the_judge_that_the_spec_sketches_can_be_built() -> None:
    checker = execute(block("LLMJudgeChecker("))["checker"]
    assert isinstance(checker, completion.LLMJudgeChecker)
    assert "No TODOs" in checker.criteria
