"""May this agent stop? The checkers, and what guards a stop with them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from donewhen.protocols import (
    REASONS,
    CompletionReport,
    CompletionStatus,
    ReasonCode,
    TaskCompletionChecker,
    TaskCompletionContext,
    TaskCompletionResult,
)

if TYPE_CHECKING:
    from donewhen.completion.checking import AsyncTaskCompletionChecker, arun_check, run_check
    from donewhen.completion.command import CommandChecker
    from donewhen.completion.composite import AtLeast, CompositeChecker, Not
    from donewhen.completion.files import FileExistsChecker
    from donewhen.completion.functions import CallableChecker, as_checker, checker
    from donewhen.completion.guard import GuardPolicy, StopDecision, StopGuard
    from donewhen.completion.judge import JudgeAnswer, LLMJudgeChecker
    from donewhen.completion.junit import ReportError, SuiteReport, read_junit
    from donewhen.completion.plan import PlanBasedChecker
    from donewhen.completion.suite import SuiteBaseline, TestSuiteChecker

# A hook that needs one checker must not pay for all of them: each name is imported when it is first used.
_FILE_OF = {
    "AsyncTaskCompletionChecker": "checking",
    "AtLeast": "composite",
    "CallableChecker": "functions",
    "CommandChecker": "command",
    "CompositeChecker": "composite",
    "FileExistsChecker": "files",
    "GuardPolicy": "guard",
    "JudgeAnswer": "judge",
    "LLMJudgeChecker": "judge",
    "Not": "composite",
    "PlanBasedChecker": "plan",
    "ReportError": "junit",
    "StopDecision": "guard",
    "StopGuard": "guard",
    "SuiteBaseline": "suite",
    "SuiteReport": "junit",
    "TestSuiteChecker": "suite",
    "arun_check": "checking",
    "as_checker": "functions",
    "checker": "functions",
    "read_junit": "junit",
    "run_check": "checking",
}


def __getattr__(name: str) -> Any:
    file = _FILE_OF.get(name)
    if file is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{file}"), name)
    globals()[name] = value
    return value


__all__ = [
    "REASONS",
    "AsyncTaskCompletionChecker",
    "AtLeast",
    "CallableChecker",
    "CommandChecker",
    "CompletionReport",
    "CompletionStatus",
    "CompositeChecker",
    "FileExistsChecker",
    "GuardPolicy",
    "JudgeAnswer",
    "LLMJudgeChecker",
    "Not",
    "PlanBasedChecker",
    "ReasonCode",
    "ReportError",
    "StopDecision",
    "StopGuard",
    "SuiteBaseline",
    "SuiteReport",
    "TaskCompletionChecker",
    "TaskCompletionContext",
    "TaskCompletionResult",
    "TestSuiteChecker",
    "arun_check",
    "as_checker",
    "checker",
    "read_junit",
    "run_check",
]
