"""Deciding a stop: the check, the caps and the bypass in one place, for every agent runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from donewhen.completion.checking import AnyChecker, arun_check, run_check
from donewhen.protocols import CompletionReport, CompletionStatus, ReasonCode, TaskCompletionContext
from donewhen.runtime import Bypass, CompletionChecked, Limits

if TYPE_CHECKING:
    from donewhen.protocols import TaskCompletionResult

_NO_REASON = "The completion check found the work incomplete, but did not say why. Check what is missing, and go on."


@dataclass(frozen=True)
class GuardPolicy:
    """How long an agent is held back.

    It is let go, unverified, after ``max_stalled`` refusals in a row with the same feedback (no progress), or
    after ``max_attempts`` refusals in all. A check may take ``check_timeout`` seconds.
    """

    max_stalled: int = 5
    max_attempts: int = 50
    check_timeout: float | None = 600.0

    def __post_init__(self) -> None:
        if self.max_stalled < 1 or self.max_attempts < 1:
            raise ValueError("max_stalled and max_attempts must be at least 1")
        if self.check_timeout is not None and not self.check_timeout > 0:
            raise ValueError(f"check_timeout must be positive, not {self.check_timeout!r}")


@dataclass(frozen=True)
class StopDecision:
    """May the agent stop? If not, ``feedback`` is what to tell it."""

    allow: bool
    report: CompletionReport

    @property
    def feedback(self) -> str:
        return self.report.feedback or _NO_REASON


@dataclass
class StopGuard:
    """Guards one run: :meth:`decide` at every attempt to stop, :meth:`conclude` when the run has ended anyway."""

    checker: AnyChecker
    limits: Limits = field(default_factory=Limits)
    policy: GuardPolicy = field(default_factory=GuardPolicy)
    _attempts: int = field(default=0, init=False)
    _refusals: int = field(default=0, init=False)
    _stalled: int = field(default=0, init=False)
    _last_feedback: str | None = field(default=None, init=False)

    def decide(self, context: TaskCompletionContext) -> StopDecision:
        """The agent wants to stop: allow it, or hold it back with feedback."""
        if (bypass := self.limits.bypass()) is not None:
            return self._bypassed(bypass)
        result = run_check(self.checker, context, timeout=self.policy.check_timeout)
        return self._decided(result, context)

    async def adecide(self, context: TaskCompletionContext) -> StopDecision:
        """The same for asynchronous runtimes."""
        if (bypass := self.limits.bypass()) is not None:
            return self._bypassed(bypass)
        result = await arun_check(self.checker, context, timeout=self.policy.check_timeout)
        return self._decided(result, context)

    def conclude(self, context: TaskCompletionContext) -> CompletionReport:
        """The run ended without asking (turns, an error): check once more, and say how it stands."""
        if (bypass := self.limits.bypass()) is not None:
            return self._bypassed(bypass).report
        result = run_check(self.checker, context, timeout=self.policy.check_timeout)
        return self._concluded(result, context)

    async def aconclude(self, context: TaskCompletionContext) -> CompletionReport:
        """The same for asynchronous runtimes."""
        if (bypass := self.limits.bypass()) is not None:
            return self._bypassed(bypass).report
        result = await arun_check(self.checker, context, timeout=self.policy.check_timeout)
        return self._concluded(result, context)

    def _bypassed(self, bypass: Bypass) -> StopDecision:
        feedback = f"The completion check was skipped because {bypass}; the work is not verified."
        return StopDecision(True, CompletionReport("bypassed", self._attempts, feedback, bypass=bypass))

    def _decided(self, result: TaskCompletionResult, context: TaskCompletionContext) -> StopDecision:
        self._attempts += 1
        if result.complete:
            decision = StopDecision(True, self._report("verified", result))
        else:
            self._refusals += 1
            self._stalled = self._stalled + 1 if result.feedback == self._last_feedback else 1
            self._last_feedback = result.feedback
            capped = self._stalled > self.policy.max_stalled or self._refusals > self.policy.max_attempts
            decision = StopDecision(capped, self._report("capped" if capped else _refused(result), result))
        self._record(decision.allow, result, context)
        return decision

    def _concluded(self, result: TaskCompletionResult, context: TaskCompletionContext) -> CompletionReport:
        self._attempts += 1
        self._record(True, result, context)
        return self._report("verified" if result.complete else _refused(result), result)

    def _report(self, status: CompletionStatus, result: TaskCompletionResult) -> CompletionReport:
        return CompletionReport(status, self._attempts, result.feedback, result.code)

    def _record(self, allowed: bool, result: TaskCompletionResult, context: TaskCompletionContext) -> None:
        context.session.dispatch(
            CompletionChecked(
                self._attempts, result.complete, allowed, result.feedback, result.code, context.stop_reason
            )
        )


def _refused(result: TaskCompletionResult) -> CompletionStatus:
    code: ReasonCode | None = result.code
    return "errored" if code is not None and code.is_error else "incomplete"
