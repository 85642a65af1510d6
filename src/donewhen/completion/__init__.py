"""Completion checkers, and the guard that runs them when an agent wants to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazy_attributes

if TYPE_CHECKING:
    from donewhen.completion.checking import AsyncTaskCompletionChecker, arun_check, run_check
    from donewhen.completion.command import CommandChecker
    from donewhen.completion.composite import AtLeast, Checkable, CompositeChecker, Not
    from donewhen.completion.files import FileExistsChecker
    from donewhen.completion.functions import CallableChecker, as_checker, checker
    from donewhen.completion.guard import StopGuard
    from donewhen.completion.job_checker import JobChecker
    from donewhen.completion.llm_judge import JudgeAnswer, LLMJudgeChecker
    from donewhen.completion.plan import PlanBasedChecker
    from donewhen.completion.stop_decision import GuardPolicy, GuardState, StopDecision, decide_stop
    from donewhen.completion.suite import TestSuiteChecker
    from donewhen.protocols import (
        REASONS,
        CompletionReport,
        CompletionStatus,
        ReasonCode,
        TaskCompletionChecker,
        TaskCompletionContext,
        TaskCompletionResult,
    )
    from donewhen.test_reports.junit import ReportError, SuiteReport, read_junit
    from donewhen.test_reports.suite_baseline import SuiteBaseline

# A hook that needs one checker must not pay for all of them: each name is imported when it is first used.
_FILE_OF = {
    "AsyncTaskCompletionChecker": "checking",
    "AtLeast": "composite",
    "CallableChecker": "functions",
    "Checkable": "composite",
    "CommandChecker": "command",
    "CompositeChecker": "composite",
    "FileExistsChecker": "files",
    "GuardPolicy": "stop_decision",
    "GuardState": "stop_decision",
    "decide_stop": "stop_decision",
    "JobChecker": "job_checker",
    "JudgeAnswer": "llm_judge",
    "LLMJudgeChecker": "llm_judge",
    "Not": "composite",
    "PlanBasedChecker": "plan",
    "StopDecision": "stop_decision",
    "StopGuard": "guard",
    "TestSuiteChecker": "suite",
    "arun_check": "checking",
    "as_checker": "functions",
    "checker": "functions",
    "run_check": "checking",
}

_PROTOCOLS = (
    "REASONS",
    "CompletionReport",
    "CompletionStatus",
    "ReasonCode",
    "TaskCompletionChecker",
    "TaskCompletionContext",
    "TaskCompletionResult",
)

_OTHER_MODULES = {
    **dict.fromkeys(_PROTOCOLS, "donewhen.protocols"),
    **dict.fromkeys(("ReportError", "SuiteReport", "read_junit"), "donewhen.test_reports.junit"),
    "SuiteBaseline": "donewhen.test_reports.suite_baseline",
}

__getattr__ = lazy_attributes(__name__, _FILE_OF, _OTHER_MODULES)

__all__ = [
    "REASONS",
    "AsyncTaskCompletionChecker",
    "AtLeast",
    "CallableChecker",
    "Checkable",
    "CommandChecker",
    "CompletionReport",
    "CompletionStatus",
    "CompositeChecker",
    "FileExistsChecker",
    "GuardPolicy",
    "GuardState",
    "JobChecker",
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
    "decide_stop",
    "read_junit",
    "run_check",
]
