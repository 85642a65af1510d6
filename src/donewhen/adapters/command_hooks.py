"""Answer a runtime's command hook: one event in, one answer out, even on errors.

The dialect of a runtime translates its events and answers; this file is the same for all runtimes. Modules are
imported where they are used, so that an event without a check costs almost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from donewhen.config import GuardSettings, Settings, has_settings, load

if TYPE_CHECKING:
    from donewhen.completion.stop_decision import StopDecision
    from donewhen.protocols import StopReason, TaskCompletionResult

HookKind = Literal["stop", "subagent-stop", "pre-tool-use", "task-completed"]
CANARY = "donewhen_canary"
"""The event field with which `donewhen doctor` tests that an installed hook is called."""

Answer = dict[str, Any]

# For these events the runtime reports when the user has sent another message, and counting restarts then. For the
# others it restarts after a cap.
_WITH_TURNS = ("stop", "subagent-stop")


class HookRequest(NamedTuple):
    """An event, translated from the runtime's format."""

    kind: HookKind
    session_id: str
    cwd: Path
    output: object = None
    stop_reason: StopReason = "end_turn"
    retried: bool = False
    """Whether the agent was already held back since the last user message."""
    exempt: str | None = None
    """Why the event needs no check; None if it needs one."""


class Dialect(Protocol):
    """Translates the events and answers of one runtime."""

    name: str

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        """Translate an event; raise :class:`ValueError` if it is invalid."""
        ...

    def refuse(self, kind: HookKind, reason: str) -> Answer:
        """Return the answer that refuses the stop or the output, with the reason."""
        ...

    def allow(self, kind: HookKind, note: str | None = None) -> Answer:
        """Return the answer that allows it; ``note`` is shown to the user if the runtime supports that."""
        ...


def existing_folder(named: object) -> Path:
    """Return the folder that an event names; raise :class:`ValueError` if it does not exist."""
    if not isinstance(named, str) or not Path(named).is_absolute() or "\0" in named or not Path(named).is_dir():
        raise ValueError(f"the event's cwd is not a folder: {named!r}")
    return Path(named)


def respond_to_event(kind: HookKind, dialect: Dialect, stdin: str, environ: Mapping[str, str], cwd: Path) -> Answer:
    """Return the answer to one event. It never raises: an internal error refuses the stop."""
    # Unreadable events are counted, too. Otherwise a runtime without a cap would be held back forever.
    request = HookRequest(kind, "unreadable", cwd, retried=True)
    settings = Settings(root=cwd)
    try:
        event = _parsed(stdin, cwd, kind)
        if event is None:
            return dialect.allow(kind)
        if CANARY in event:
            return dialect.refuse(kind, f"canary {str(event[CANARY])[:80]}")
        request = dialect.read(kind, event, environ)
        if request.exempt is not None:
            return dialect.allow(kind)
        settings = Settings(root=request.cwd)  # used if loading fails
        settings = load(request.cwd)
        guard = _guard(kind, settings)
        if not guard.has_checks:
            return _without_checks(request, settings, dialect)
        result = _checked(request, guard, settings)
    except Exception as error:  # noqa: BLE001 - fail closed
        from donewhen.completion.checking import gate_error
        from donewhen.foundation.plain_text import one_line

        result = gate_error(f"donewhen hook {kind}", f"could not be made: {one_line(str(error), 400)}")
    return _decided(request, result, settings, dialect)


def _without_checks(request: HookRequest, settings: Settings, dialect: Dialect) -> Answer:
    """Allow the stop if nothing is configured, unless the agent was held back before the settings were removed."""
    if not (request.retried and (settings.root / ".donewhen").exists()):
        return dialect.allow(request.kind)
    from donewhen.adapters.stop_attempts import StopAttempts
    from donewhen.protocols import ReasonCode, TaskCompletionResult

    if not StopAttempts(settings.root, dialect.name, request.session_id, request.kind).held:
        return dialect.allow(request.kind)
    result = TaskCompletionResult.incomplete(
        "gate_error: the settings that held this agent back are gone or empty. Put them back; if they are wrong, say "
        "so to the person.",
        code=ReasonCode.GATE_ERROR,
    )
    return _decided(request, result, settings, dialect)


def _parsed(stdin: str, cwd: Path, kind: HookKind) -> dict[str, Any] | None:
    """Return the event. If it can't be read, return None if no checks are configured, else raise ValueError."""
    try:
        event = json.loads(stdin)
    except (ValueError, RecursionError) as error:
        problem = f"the event on standard input is not JSON ({error})"
    else:
        if isinstance(event, dict):
            return event
        problem = "the event on standard input is not a JSON object"
    if not _guard(kind, load(cwd)).has_checks:
        return None
    raise ValueError(problem)


def _guard(kind: HookKind, settings: Settings) -> GuardSettings:
    guard: GuardSettings = getattr(settings, _table(kind))
    return guard


def _table(kind: HookKind) -> str:
    """Return the settings table for this kind of event; giving the output counts as a stop."""
    return "stop" if kind == "pre-tool-use" else kind.replace("-", "_")


def _checked(request: HookRequest, guard: GuardSettings, settings: Settings) -> TaskCompletionResult:
    from donewhen.completion.checking import run_check
    from donewhen.completion.from_settings import checker_for
    from donewhen.filesystem.host import HostFilesystem
    from donewhen.protocols import TaskCompletionContext
    from donewhen.runtime.session import Session

    context = TaskCompletionContext(
        session=Session(),
        tentative_output=request.output,
        filesystem=HostFilesystem(settings.root),
        stop_reason=request.stop_reason,
    )
    return run_check(
        checker_for(guard, str(settings.source), _table(request.kind)), context, timeout=guard.check_timeout
    )


def _decided(request: HookRequest, result: TaskCompletionResult, settings: Settings, dialect: Dialect) -> Answer:
    from donewhen.adapters.stop_attempts import StopAttempts
    from donewhen.completion.stop_decision import GuardPolicy, GuardState, decide_stop

    guard = _guard(request.kind, settings)
    policy = GuardPolicy(guard.max_stalled, guard.max_attempts, guard.check_timeout)
    # If the project uses donewhen, the record is kept in it, even if its settings are broken or missing.
    local = settings.source is not None or (settings.root / ".donewhen").is_dir() or has_settings(settings.root)
    attempts = StopAttempts(settings.root, dialect.name, request.session_id, request.kind, local=local)
    try:
        with attempts.open(fresh=not request.retried) as record:
            decision, record.state = decide_stop(result, record.state, policy)
            if decision.report.status == "capped":
                record.record_unverified(decision.report)
                if guard.jobs:
                    _on_record(settings.root, decision.feedback)
                if request.kind not in _WITH_TURNS:
                    record.state = GuardState()
    except OSError:
        decision = _uncounted(result, request)
    if not decision.allow:
        return dialect.refuse(request.kind, decision.feedback)
    if decision.report.status == "verified":
        return dialect.allow(request.kind)
    note = f"donewhen let the agent stop UNVERIFIED after {decision.report.attempts} attempts: {decision.feedback}"
    return dialect.allow(request.kind, note)


def _on_record(root: Path, why: str) -> None:
    """Record an unverified stop in the ledger of the jobs, too. Errors are ignored: the attempts have it already."""
    from donewhen.foundation.errors import DonewhenError
    from donewhen.jobs.lifecycle.setting_aside import record_unverified_stop

    with suppress(DonewhenError, OSError):
        record_unverified_stop(root, why)


def _uncounted(result: TaskCompletionResult, request: HookRequest) -> StopDecision:
    """Decide without stored state: hold the agent back once, not forever."""
    from donewhen.completion.stop_decision import GuardPolicy, GuardState, decide_stop

    earlier = GuardState(1, 1, 1) if request.retried else GuardState()
    return decide_stop(result, earlier, GuardPolicy(max_attempts=1))[0]
