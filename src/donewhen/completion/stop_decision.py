"""Decide from a check's result whether an agent may stop. Pure and cheap to import, because hooks import it."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from donewhen.protocols import CompletionReport, CompletionStatus

if TYPE_CHECKING:
    from donewhen.protocols import TaskCompletionResult

_NO_REASON = (
    "The completion check found the work incomplete but gave no reason. Find out what is missing, and continue."
)


@dataclass(frozen=True)
class GuardPolicy:
    """When an agent is held back, and when it is released.

    It is released, unverified, after ``max_stalled`` refusals in a row with the same feedback (no progress), or
    after ``max_attempts`` refusals in all. Where it is known whether the agent has changed anything, it is also
    released after ``max_stalled`` refusals in a row, and at least 7, without a change, whatever the feedback says.
    A check may take ``check_timeout`` seconds.
    """

    max_stalled: int = 5
    max_attempts: int = 50
    check_timeout: float | None = 600.0

    def __post_init__(self) -> None:
        if self.max_stalled < 1 or self.max_attempts < 1:
            raise ValueError("max_stalled and max_attempts must be at least 1")
        if self.check_timeout is not None and not self.check_timeout > 0:
            raise ValueError(f"check_timeout must be positive, not {self.check_timeout!r}")


_MAX_UNCHANGED = 7
"""Runtimes with a cap of their own let an agent stop after 8 refusals in a row, and nobody records that."""


class GuardState(NamedTuple):
    """The state kept between attempts to stop."""

    attempts: int = 0
    refusals: int = 0
    stalled: int = 0
    last_reason: str | None = None
    """A fingerprint of the last refusal's feedback; the text itself is not kept."""
    unchanged: int = 0
    """Refusals in a row between which the agent changed nothing, as far as is known."""


@dataclass(frozen=True)
class StopDecision:
    """Whether the agent may stop, and the ``feedback`` for it if not.

    Use ``decision.allow``: a decision has no truth value, because ``if guard.decide(context):`` would let every agent
    go.
    """

    allow: bool
    report: CompletionReport

    def __bool__(self) -> NoReturn:
        raise TypeError("a StopDecision has no truth value: use decision.allow")

    @property
    def feedback(self) -> str:
        return self.report.feedback or _NO_REASON


def decide_stop(
    result: TaskCompletionResult, state: GuardState, policy: GuardPolicy, *, changed: bool = True
) -> tuple[StopDecision, GuardState]:
    """Decide from the check's result and the earlier attempts whether the agent may stop; return the new state too.

    ``changed`` is whether the agent has changed anything since the last attempt, or may have.
    """
    attempts = state.attempts + 1
    if result.complete:
        return StopDecision(True, completion_report("verified", attempts, result)), GuardState(attempts)
    reason = _fingerprint(result.feedback or "")
    stalled = state.stalled + 1 if reason == state.last_reason else 1
    unchanged = 1 if changed else state.unchanged + 1
    following = GuardState(attempts, state.refusals + 1, stalled, reason, unchanged)
    capped = (
        following.stalled > policy.max_stalled
        or following.unchanged > max(policy.max_stalled, _MAX_UNCHANGED)
        or following.refusals > policy.max_attempts
    )
    status = "capped" if capped else refused_status(result)
    return StopDecision(capped, completion_report(status, attempts, result)), following


def _fingerprint(feedback: str) -> str:
    """Return a fingerprint that ignores durations and memory addresses, which are no progress."""
    lasting = re.sub(r"\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds)\b|\b0x[0-9a-f]+\b", "", feedback)
    return f"{zlib.crc32(lasting.encode('utf-8', 'replace')):08x}"


def completion_report(status: CompletionStatus, attempts: int, result: TaskCompletionResult) -> CompletionReport:
    return CompletionReport(status, attempts, result.feedback, result.code)


def refused_status(result: TaskCompletionResult) -> CompletionStatus:
    return "errored" if result.code is not None and result.code.is_error else "incomplete"
