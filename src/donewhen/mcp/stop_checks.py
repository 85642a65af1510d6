"""The tool for the checks of a stop: the same that `donewhen check` and a stop hook run."""

from __future__ import annotations

from donewhen.completion import TaskCompletionContext, run_check
from donewhen.completion.from_settings import checks_for
from donewhen.config import load
from donewhen.filesystem import HostFilesystem
from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.foundation.errors import UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.mcp.answers import StopAnswer, StopCheck
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.params import NoParams
from donewhen.runtime import Session

_AGAIN = "Fix what the failed checks name, then: donewhen check"


def check_stop(call: CallContext, params: NoParams) -> StopAnswer:
    """Run the checks of [stop] in the settings. Records nothing and lets nobody go: a stop hook checks again."""
    settings = load(call.folder)
    checks = checks_for(settings.stop, str(settings.source))
    if not checks:
        raise UsageError(
            "There is nothing to check, and zero checks is not a pass.",
            where=str(settings.source or settings.root),
            next_step="A person writes a [stop] table into donewhen.toml. For a job: donewhen next",
        )
    context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(settings.root))
    results: list[StopCheck] = []
    for number, (label, checker) in enumerate(checks):
        raise_if_cancelled()
        call.on_progress(number, len(checks), one_line(label))
        result = run_check(checker, context, timeout=settings.stop.check_timeout)
        code = None if result.code is None else result.code.value
        results.append(StopCheck(label, result.complete, result.feedback, code))
    raise_if_cancelled()
    passed = all(result.complete for result in results)
    return StopAnswer(passed, results, "You may stop." if passed else _AGAIN)
