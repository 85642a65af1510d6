"""Checkers made of checkers."""

from __future__ import annotations

from collections.abc import Iterable

from donewhen.completion.checking import MAX_FEEDBACK, checker_name, run_check
from donewhen.completion.checking import Checkable as Checkable
from donewhen.completion.functions import as_checker
from donewhen.foundation.plain_text import one_line, shorten_middle
from donewhen.protocols import ReasonCode, TaskCompletionChecker, TaskCompletionContext, TaskCompletionResult

_BULLET = 3
_NOTE = 40
"""Room for the words that say how much was left out."""
_LEAST = 100
"""Feedback that would be shorter than this is cut at its end, because its beginning names the check."""
_SHORTEST = 20
_NO_REASON = "A check failed without saying why."


class CompositeChecker:
    """All of several checkers, or any of them.

    With ``all_must_pass`` the first failure is the answer; with ``collect_all`` as well, every checker is asked
    and the answer lists every failure. Without ``all_must_pass`` the first success is the answer.
    """

    def __init__(self, checkers: Iterable[Checkable], all_must_pass: bool = True, *, collect_all: bool = False) -> None:
        if collect_all and not all_must_pass:
            raise ValueError(
                "collect_all belongs to all_must_pass: without all_must_pass, all failures are listed anyway"
            )
        self.checkers = _as_checkers(checkers)
        self.all_must_pass = all_must_pass
        self.collect_all = collect_all

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        if not self.checkers:
            return TaskCompletionResult.ok("No checkers configured.")
        return self._all(context) if self.all_must_pass else self._any(context)

    def _all(self, context: TaskCompletionContext) -> TaskCompletionResult:
        results: list[TaskCompletionResult] = []
        for checker in self.checkers:
            result = run_check(checker, context)
            if not result.complete and not self.collect_all:
                return result
            results.append(result)
        failures = [result for result in results if not result.complete]
        if len(failures) == 1:
            return failures[0]
        if failures:
            # Each in an equal part of the space, so that every failing check is named.
            share = MAX_FEEDBACK // (len(failures) + 2)
            listed = "\n".join(f"- {_cut(result.feedback or _NO_REASON, share)}" for result in failures)
            return TaskCompletionResult.incomplete(
                f"{len(failures)} of {len(results)} checks failed:\n{listed}", code=_common_code(failures)
            )
        return TaskCompletionResult.ok(_joined(results) or "All checks passed.")

    def _any(self, context: TaskCompletionContext) -> TaskCompletionResult:
        failures: list[TaskCompletionResult] = []
        for checker in self.checkers:
            result = run_check(checker, context)
            if result.complete:
                return result
            failures.append(result)
        return TaskCompletionResult.incomplete(_joined(failures) or "No checks passed.", code=_common_code(failures))


class AtLeast:
    """At least ``n`` of several checkers must pass. It stops as soon as the result is certain."""

    def __init__(self, n: int, checkers: Iterable[Checkable]) -> None:
        self.n = n
        self.checkers = _as_checkers(checkers)
        if not 1 <= n <= len(self.checkers):
            raise ValueError(f"n must be between 1 and the number of checkers ({len(self.checkers)}), not {n}")

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        passed: list[TaskCompletionResult] = []
        failed: list[TaskCompletionResult] = []
        for checker in self.checkers:
            result = run_check(checker, context)
            (passed if result.complete else failed).append(result)
            if len(passed) == self.n:
                return TaskCompletionResult.ok(_joined(passed) or f"At least {self.n} checks passed.")
            if len(self.checkers) - len(failed) < self.n:
                break
        return TaskCompletionResult.incomplete(
            f"At least {self.n} of {len(self.checkers)} checks must pass, which {len(failed)} failed check(s) make "
            f"impossible: {_joined(failed) or 'they gave no reason.'}",
            code=_undecided(failed) or ReasonCode.TOO_FEW_PASSED,
        )


class Not:
    """Complete when ``checker`` is not. A check that could not be made stays incomplete: it decides nothing."""

    def __init__(self, checker: Checkable, *, feedback: str | None = None) -> None:
        self.checker = as_checker(checker)
        self.feedback = feedback

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        result = run_check(self.checker, context)
        if result.complete:
            reason = f" ({result.feedback.removesuffix('.')})" if result.feedback else ""
            return TaskCompletionResult.incomplete(
                self.feedback or f"{checker_name(self.checker)} must not be met, but it is{reason}.",
                code=ReasonCode.NOT_WANTED,
            )
        if result.code is not None and result.code.undecided:
            return result
        return TaskCompletionResult.ok(f"{checker_name(self.checker)} is not met, as required.")


def _cut(feedback: str, share: int) -> str:
    """Feedback for a list in which every failing check is named."""
    room = max(_SHORTEST, share - _BULLET)
    if len(feedback) <= room:
        return feedback
    return shorten_middle(feedback, room - _NOTE) if room - _NOTE >= _LEAST else one_line(feedback, room)


def _as_checkers(checkers: object) -> tuple[TaskCompletionChecker, ...]:
    if not isinstance(checkers, Iterable) or isinstance(checkers, str):
        raise TypeError(f"checkers must be a tuple of checkers, not {type(checkers).__name__}")
    return tuple(as_checker(checker) for checker in checkers)


def _joined(results: list[TaskCompletionResult]) -> str:
    return " ".join(result.feedback for result in results if result.feedback)


def _undecided(failures: list[TaskCompletionResult]) -> ReasonCode | None:
    return next((failure.code for failure in failures if failure.code is not None and failure.code.undecided), None)


def _common_code(failures: list[TaskCompletionResult]) -> ReasonCode | None:
    """Return the code for several failures; a check that could not be made takes precedence over a plain failure."""
    return _undecided(failures) or next((failure.code for failure in failures if failure.code is not None), None)
