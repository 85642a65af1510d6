"""What only a fresh interpreter shows: what an import costs, and that nothing hung keeps it alive."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

import donewhen.completion
from sentences import assert_sentences

HANG_GUARD = 300.0


def python(code: str) -> subprocess.CompletedProcess[str]:
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(donewhen.completion.__file__))))
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(code)],
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
        check=False,
    )


ABSENT = "donewhen.contrib", "donewhen.adapters", "click", "rich", "msgspec"


@pytest.mark.parametrize(
    "line",
    [
        "import donewhen",
        "import donewhen.completion",
        "from donewhen.completion import *",
        "from donewhen.completion import PlanBasedChecker, CompositeChecker, run_check, StopGuard",
        "from donewhen.completion import LLMJudgeChecker, TestSuiteChecker",
        "import donewhen.completion as c; [getattr(c, name) for name in c.__all__]",
    ],
)
def test_importing_the_checkers_imports_neither_planning_tools_nor_dependencies(line: str) -> None:
    done = python(f"{line}\nimport sys\nprint([name for name in {ABSENT!r} if name in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_a_plan_is_checked_without_the_planning_tools() -> None:
    done = python(
        f"""
        import sys
        from donewhen.completion import PlanBasedChecker, TaskCompletionContext
        from donewhen.runtime import Session

        class Step:
            title, status = "Write tests", "pending"

        class Plan:
            steps = (Step(),)

        session = Session()
        session[Plan].append(Plan())
        print(PlanBasedChecker(plan_type=Plan).check(TaskCompletionContext(session=session)).complete)
        print([name for name in {ABSENT!r} if name in sys.modules])
        """
    )
    assert done.stdout == "False\n[]\n", done.stderr


def test_every_public_name_can_be_imported_and_no_other() -> None:
    for name in donewhen.completion.__all__:
        assert getattr(donewhen.completion, name) is not None
    with pytest.raises(AttributeError) as caught:
        donewhen.completion.TestPassingChecker  # noqa: B018
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    "ask",
    [
        "print(run_check(Hangs(), context, timeout=0.2).code)",
        "print(asyncio.run(arun_check(Hangs(), context, timeout=0.2)).code)",
        "print(run_check(HangsAsync(), context, timeout=0.2).code)",
        "print(asyncio.run(arun_check(HangsAsync(), context, timeout=0.2)).code)",
        "print(run_check(CompositeChecker((Hangs(),)), context, timeout=0.2).code)",
    ],
    ids=["plain", "plain from a loop", "async", "async from a loop", "in a composite"],
)
def test_a_hung_checker_does_not_keep_the_interpreter_alive(ask: str) -> None:
    done = python(
        f"""
        import asyncio, time
        from donewhen.completion import CompositeChecker, arun_check, run_check
        from donewhen.testing import make_context

        class Hangs:
            def check(self, context):
                time.sleep(10_000)

        class HangsAsync:
            async def check(self, context):
                await asyncio.sleep(10_000)

        context = make_context()
        {ask}
        """
    )
    assert done.stdout == "check_timeout\n", done.stderr
    assert done.returncode == 0


def test_a_checker_that_exits_does_not_end_the_program() -> None:
    done = python(
        """
        import sys
        from donewhen.completion import run_check
        from donewhen.testing import make_context

        class Exits:
            def check(self, context):
                sys.exit(0)

        for timeout in (None, 30):
            print(run_check(Exits(), make_context(), timeout=timeout).code)
        """
    )
    assert done.stdout == "gate_error\ngate_error\n", done.stderr
