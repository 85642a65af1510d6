"""May this agent stop? The checkers, and what guards a stop with them."""

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
from donewhen.protocols import (
    REASONS,
    CompletionReport,
    CompletionStatus,
    ReasonCode,
    TaskCompletionChecker,
    TaskCompletionContext,
    TaskCompletionResult,
)

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
