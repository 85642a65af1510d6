"""Guard a run: the check, the caps and the bypass in one place, for every agent runtime."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from donewhen.completion.checking import Checkable, arun_check, run_check
from donewhen.completion.functions import as_checker
from donewhen.completion.stop_decision import (
    GuardPolicy,
    GuardState,
    StopDecision,
    completion_report,
    decide_stop,
    refused_status,
)
from donewhen.foundation.plain_text import one_line
from donewhen.protocols import CompletionReport, TaskCompletionContext
from donewhen.runtime import CompletionBypassed, CompletionChecked, Limits

if TYPE_CHECKING:
    from donewhen.protocols import TaskCompletionResult


@dataclass
class StopGuard:
    """Guards one run: :meth:`decide` at every attempt to stop, :meth:`conclude` when the run has ended anyway.

    ``checker`` is a checker or a function of the context; anything else is a TypeError, and so is anything but
    :class:`Limits` and :class:`GuardPolicy` for the other two. Each decision is recorded in
    the context's session as :class:`~donewhen.runtime.CompletionChecked`, or as
    :class:`~donewhen.runtime.CompletionBypassed` if a spent limit bypasses the check. A session that can't record it
    causes a RuntimeWarning, and the decision is the same.
    """

    checker: Checkable
    limits: Limits = field(default_factory=Limits)
    policy: GuardPolicy = field(default_factory=GuardPolicy)
    state: GuardState = field(default_factory=GuardState)

    def __post_init__(self) -> None:
        self.checker = as_checker(self.checker)
        for name, value, expected in (("limits", self.limits, Limits), ("policy", self.policy, GuardPolicy)):
            if not isinstance(value, expected):
                raise TypeError(f"{name} must be {expected.__name__}, not {type(value).__name__}")

    def decide(self, context: TaskCompletionContext) -> StopDecision:
        """Decide whether the agent may stop; if not, the decision contains the feedback for it."""
        bypassed = self._bypass_decision(context)
        return bypassed if bypassed is not None else self._decide_from(self._check(context), context)

    async def adecide(self, context: TaskCompletionContext) -> StopDecision:
        """Like :meth:`decide`, for asynchronous runtimes."""
        bypassed = self._bypass_decision(context)
        return bypassed if bypassed is not None else self._decide_from(await self._acheck(context), context)

    def conclude(self, context: TaskCompletionContext) -> CompletionReport:
        """Check once more after the run ended without a stop request (turn limit, error), and return the report."""
        bypassed = self._bypass_decision(context)
        return bypassed.report if bypassed is not None else self._conclude_from(self._check(context), context)

    async def aconclude(self, context: TaskCompletionContext) -> CompletionReport:
        """Like :meth:`conclude`, for asynchronous runtimes."""
        bypassed = self._bypass_decision(context)
        return bypassed.report if bypassed is not None else self._conclude_from(await self._acheck(context), context)

    def _check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        return run_check(self.checker, context, timeout=self.policy.check_timeout)

    async def _acheck(self, context: TaskCompletionContext) -> TaskCompletionResult:
        return await arun_check(self.checker, context, timeout=self.policy.check_timeout)

    def _bypass_decision(self, context: TaskCompletionContext) -> StopDecision | None:
        bypass = self.limits.bypass()
        if bypass is None:
            return None
        feedback = f"The completion check was skipped because {bypass}; the work is not verified."
        _record_event(context, CompletionBypassed(self.state.attempts, bypass, context.stop_reason))
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
        _record_event(context, event)


def _record_event(context: TaskCompletionContext, event: CompletionChecked | CompletionBypassed) -> None:
    """Record an event in the session. One without reducers keeps it in the slice of its type, too."""
    try:
        problems = [str(error) for error in context.session.dispatch(event).errors]
    except Exception as error:  # noqa: BLE001 - a session that can't record must not change the decision
        problems = [f"{type(error).__name__}: {error}"]
    if problems:
        warnings.warn(
            f"The session did not record the completion check: {one_line('; '.join(problems), 300)}",
            RuntimeWarning,
            stacklevel=4,
        )
