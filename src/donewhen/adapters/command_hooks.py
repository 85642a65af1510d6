"""Answer a runtime's command hook: one event in, one answer out, even on errors.

What a runtime calls its fields and how it wants to be answered is the business of its dialect; this file knows
only the question. Imports stand where they are used: an event that needs no check must cost next to nothing.
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
"""The field of an event by which `donewhen doctor` proves that an installed hook fires."""

Answer = dict[str, Any]

# Where the runtime says when a person has spoken again, counting starts anew then. Elsewhere it does after a cap.
_WITH_TURNS = ("stop", "subagent-stop")


class HookRequest(NamedTuple):
    """An event, in our words."""

    kind: HookKind
    session_id: str
    cwd: Path
    output: object = None
    stop_reason: StopReason = "end_turn"
    retried: bool = False
    """Whether this agent was already held back since the person last spoke."""
    exempt: str | None = None
    """Why this event is none of our business, if it is none."""


class Dialect(Protocol):
    """How one runtime writes its events and reads its answers."""

    name: str

    def read(self, kind: HookKind, event: Mapping[str, Any], environ: Mapping[str, str]) -> HookRequest:
        """The event in our words; a :class:`ValueError` when it makes no sense."""
        ...

    def refuse(self, kind: HookKind, reason: str) -> Answer:
        """Not yet: go on, with this reason."""
        ...

    def allow(self, kind: HookKind, note: str | None = None) -> Answer:
        """Go ahead; ``note`` is for the person, where the runtime can show it."""
        ...


def existing_folder(named: object) -> Path:
    """The folder that an event names, or a :class:`ValueError` when there is no such folder."""
    if not isinstance(named, str) or not Path(named).is_absolute() or "\0" in named or not Path(named).is_dir():
        raise ValueError(f"the event's cwd is not a folder: {named!r}")
    return Path(named)


def respond_to_event(kind: HookKind, dialect: Dialect, stdin: str, environ: Mapping[str, str], cwd: Path) -> Answer:
    """Return the answer to one event. It never raises: an internal error refuses the stop."""
    # An event that can't be read is counted like any other, or a runtime without a cap would be held for ever.
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
        settings = Settings(root=request.cwd)  # should loading fail, this is still the place
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
    """Allow the stop if nothing is configured, unless this agent was held back and the settings are gone since."""
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
    """The event; None for one that can't be read where nothing is set up to be checked."""
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
    """The table of the settings that guards this kind of event; giving the output is a stop like any other."""
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
    # What a project has to do with is recorded in it, also when its settings are broken or gone.
    local = settings.source is not None or (settings.root / ".donewhen").is_dir() or has_settings(settings.root)
    attempts = StopAttempts(settings.root, dialect.name, request.session_id, request.kind, local=local)
    try:
        with attempts.open(fresh=not request.retried) as record:
            decision, record.state = decide_stop(result, record.state, policy)
            if decision.report.status == "capped":
                record.unverified(decision.report)
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
    """The jobs' own ledger remembers an unverified stop, too; where it can't, the attempts still do."""
    from donewhen.foundation.errors import DonewhenError
    from donewhen.jobs.lifecycle.rest import record_unverified_stop

    with suppress(DonewhenError, OSError):
        record_unverified_stop(root, why)


def _uncounted(result: TaskCompletionResult, request: HookRequest) -> StopDecision:
    """Without stored state, hold an agent back once, not forever."""
    from donewhen.completion.stop_decision import GuardPolicy, GuardState, decide_stop

    earlier = GuardState(1, 1, 1) if request.retried else GuardState()
    return decide_stop(result, earlier, GuardPolicy(max_attempts=1))[0]
