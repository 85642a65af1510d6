"""Guard a run: the check, the caps and the bypass in one place, for every agent runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from donewhen.completion.checking import AnyChecker, arun_check, run_check
from donewhen.completion.stop_decision import (
    GuardPolicy,
    GuardState,
    StopDecision,
    completion_report,
    decide_stop,
    refused_status,
)
from donewhen.protocols import CompletionReport, TaskCompletionContext
from donewhen.runtime import CompletionChecked, Limits

if TYPE_CHECKING:
    from donewhen.protocols import TaskCompletionResult


@dataclass
class StopGuard:
    """Guards one run: :meth:`decide` at every attempt to stop, :meth:`conclude` when the run has ended anyway."""

    checker: AnyChecker
    limits: Limits = field(default_factory=Limits)
    policy: GuardPolicy = field(default_factory=GuardPolicy)
    state: GuardState = field(default_factory=GuardState)

    def decide(self, context: TaskCompletionContext) -> StopDecision:
        """Decide whether the agent may stop; if not, the decision contains the feedback for it."""
        bypassed = self._bypass_decision()
        return bypassed if bypassed is not None else self._decide_from(self._check(context), context)

    async def adecide(self, context: TaskCompletionContext) -> StopDecision:
        """Like :meth:`decide`, for asynchronous runtimes."""
        bypassed = self._bypass_decision()
        return bypassed if bypassed is not None else self._decide_from(await self._acheck(context), context)

    def conclude(self, context: TaskCompletionContext) -> CompletionReport:
        """Check once more after the run ended without a stop request (turn limit, error), and return the report."""
        bypassed = self._bypass_decision()
        return bypassed.report if bypassed is not None else self._conclude_from(self._check(context), context)

    async def aconclude(self, context: TaskCompletionContext) -> CompletionReport:
        """Like :meth:`conclude`, for asynchronous runtimes."""
        bypassed = self._bypass_decision()
        return bypassed.report if bypassed is not None else self._conclude_from(await self._acheck(context), context)

    def _check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        return run_check(self.checker, context, timeout=self.policy.check_timeout)

    async def _acheck(self, context: TaskCompletionContext) -> TaskCompletionResult:
        return await arun_check(self.checker, context, timeout=self.policy.check_timeout)

    def _bypass_decision(self) -> StopDecision | None:
        bypass = self.limits.bypass()
        if bypass is None:
            return None
        feedback = f"The completion check was skipped because {bypass}; the work is not verified."
        return StopDecision(True, CompletionReport("bypassed", self.state.attempts, feedback, bypass=bypass))

    def _decide_from(self, result: TaskCompletionResult, context: TaskCompletionContext) -> StopDecision:
        decision, self.state = decide_stop(result, self.state, self.policy)
        self._record(decision.allow, result, context)
        return decision

    def _conclude_from(self, result: TaskCompletionResult, context: TaskCompletionContext) -> CompletionReport:
        self.state = GuardState(self.state.attempts + 1)
        self._record(True, result, context)
        return completion_report("verified" if result.complete else refused_status(result), self.state.attempts, result)

    def _record(self, allowed: bool, result: TaskCompletionResult, context: TaskCompletionContext) -> None:
        attempt = self.state.attempts
        event = CompletionChecked(attempt, result.complete, allowed, result.feedback, result.code, context.stop_reason)
        context.session.dispatch(event)
