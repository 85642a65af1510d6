"""Record the end of a session that no stop hook has verified: a limit of the runtime, an error, an interruption.

Nothing can be refused any more. The end is recorded first, because the runtime may not wait for the check.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from donewhen.adapters.command_hooks import (
    HookRequest,
    attempts_of,
    check_request,
    put_on_record,
    settings_are_gone,
    vanished_jobs_in,
    was_held_before,
    work_in,
)
from donewhen.adapters.stop_attempts import Verdict
from donewhen.completion.stop_decision import completion_report, refused_status
from donewhen.protocols import CompletionReport

if TYPE_CHECKING:
    from donewhen.adapters.command_hooks import Dialect
    from donewhen.config import Settings
    from donewhen.protocols import TaskCompletionResult


def record_end(request: HookRequest, settings: Settings, dialect: Dialect) -> None:
    """Record how a session or a turn ended, unless the last stop was about the same state of the same work."""
    if not settings.stop.has_checks:
        problem = vanished_jobs_in(settings.root)
        if problem is None and was_held_before(request, settings, dialect):
            problem = settings_are_gone()
        if problem is not None:
            record_broken_end(request, settings, dialect, problem)
        return
    work = work_in(settings.root, settings.stop.files)
    attempts = attempts_of(request, settings, dialect, "stop")
    how = f"{request.kind}: {request.how}" if request.how else request.kind
    end = os.urandom(8).hex()
    with attempts.open(retried=True, turn=request.turn) as record:
        if _is_covered(record.verdict, work, request.turn):
            if request.kind == "session-end":
                record.forget()
            return
        unknown = CompletionReport(
            "incomplete", record.state.attempts, f"The agent ended without a verified stop ({how}). Not checked."
        )
        record.record(unknown, how, end)
        # Two hooks may see the same end. The other one finds it on record, also while it is checked here.
        record.verdict = Verdict("recorded", work, request.turn)
    # Without the lock, which other sessions wait for.
    result = check_request(request, settings.stop, settings, min(settings.stop.check_timeout, dialect.end_seconds))
    status = "verified" if result.complete else refused_status(result)
    attempts.record(completion_report(status, unknown.attempts + 1, result), how, end)
    if not result.complete and settings.stop.jobs:
        put_on_record(settings.root, result.feedback or how)


def record_broken_end(request: HookRequest, settings: Settings, dialect: Dialect, result: TaskCompletionResult) -> None:
    """Record an end that could not be checked, for example because the settings are invalid."""
    attempts = attempts_of(request, settings, dialect, "stop")
    try:
        with attempts.open(retried=True) as record:
            record.record(completion_report("errored", record.state.attempts, result), request.kind)
    except OSError:
        with suppress(OSError):
            attempts.record_without_state(completion_report("errored", 1, result), request.kind)


def _is_covered(verdict: Verdict | None, work: str | None, turn: str | None) -> bool:
    if verdict is None or work is None or verdict.work != work:
        return False
    return None in (turn, verdict.turn) or turn == verdict.turn
