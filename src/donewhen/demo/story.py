"""An impatient agent, a real folder, real tests, and a checker that wants proof."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from donewhen.adapters.scripted import Message, Script, ScriptedAdapter, ToolCall, Turn, call, say
from donewhen.completion import CommandChecker, CompositeChecker, FileExistsChecker, PlanBasedChecker
from donewhen.contrib.tools import PlanningToolsSection
from donewhen.contrib.tools.planning import Plan
from donewhen.filesystem import HostFilesystem
from donewhen.prompt import MarkdownSection, Prompt, PromptTemplate, ToolContext, ToolResult, tool
from donewhen.protocols import PromptResponse
from donewhen.runtime import Session

TASK = "Write slugify.py, and tests for it that pass."
DONE_WHEN = (
    "every step of the agent's plan is closed",
    "slugify.py and test_slugify.py exist and are not empty",
    "the tests pass when donewhen itself runs them",
)

_FIRST_TRY = """\
import re


def slugify(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower())
"""

_TESTS = """\
import unittest

from slugify import slugify


class SlugifyTest(unittest.TestCase):
    def test_words_are_joined(self) -> None:
        self.assertEqual(slugify("Done When"), "done-when")

    def test_edges_are_clean(self) -> None:
        self.assertEqual(slugify("  Done, when?  "), "done-when")
"""

_FIXED = _FIRST_TRY.replace("title.lower())", 'title.lower()).strip("-")')


@dataclass(frozen=True)
class WriteFile:
    path: str
    content: str


@tool
def write_file(params: WriteFile, context: ToolContext) -> ToolResult[None]:
    """Write a file of the workspace."""
    if context.filesystem is None:
        return ToolResult.error("There is no workspace.")
    context.filesystem.write_text(params.path, params.content)
    return ToolResult(f"Wrote {params.path}.")


def _step(number: int) -> ToolCall:
    return ToolCall("planning_update_step", {"step_id": number, "status": "done"})


def impatient_agent() -> Script:
    """What the agent says and does; nothing here knows what the checker will answer."""
    return Script(
        call(
            "planning_setup_plan",
            objective="A slugify function",
            steps=["Write slugify.py", "Write the tests", "Make the tests pass"],
        ),
        Turn(calls=(ToolCall("write_file", {"path": "slugify.py", "content": _FIRST_TRY}), _step(1))),
        say("Done! slugify is implemented and production-ready."),
        Turn("Let me finish the plan.", (_step(2), _step(3))),
        say("All steps are complete and all tests pass. Done!"),
        call("write_file", path="test_slugify.py", content=_TESTS),
        say("I have added comprehensive tests. Everything works. Done!"),
        call("write_file", path="slugify.py", content=_FIXED),
        say("Fixed: separators at the edges are removed now. Done."),
    )


def play(folder: Path, observer: Callable[[Message], object]) -> PromptResponse[None]:
    """Run the story in ``folder``; ``observer`` is told every message."""
    session = Session()
    template = PromptTemplate[None](
        ns="demo",
        key="slugify",
        sections=[
            MarkdownSection(title="Task", key="task", template=TASK, tools=[write_file]),
            PlanningToolsSection(session=session),
        ],
    )
    checker = CompositeChecker(
        checkers=(
            PlanBasedChecker(plan_type=Plan, require_plan=True, allow_empty=False, allow_shrinking=False),
            FileExistsChecker(("slugify.py", "test_slugify.py"), strict=True),
            # -B: the compiled twin of a file that changes twice within a second would be taken for current.
            CommandChecker([sys.executable, "-B", "-m", "unittest"], timeout=60, name="python -m unittest"),
        ),
    )
    adapter = ScriptedAdapter(
        impatient_agent(),
        task_completion_checker=checker,
        filesystem=HostFilesystem(folder),
        observer=observer,
    )
    return adapter.evaluate(Prompt(template), session=session)
