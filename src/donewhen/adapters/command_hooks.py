"""Answering a runtime's command hook: one event in, one answer out, whatever happens in between.

What a runtime calls its fields and how it wants to be answered is the business of its dialect; this file knows
only the question. Imports stand where they are used: an event that needs no check must cost next to nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from donewhen.config import GuardSettings, Settings, load

if TYPE_CHECKING:
    from donewhen.completion.decision import StopDecision
    from donewhen.protocols import StopReason, TaskCompletionResult

HookKind = Literal["stop", "subagent-stop", "pre-tool-use", "task-completed"]
CANARY = "donewhen_canary"
"""The field of an event by which `donewhen doctor` proves that an installed hook fires."""

Answer = dict[str, Any]


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


def respond(kind: HookKind, dialect: Dialect, stdin: str, environ: Mapping[str, str], cwd: Path) -> Answer:
    """The answer to one event. It never raises: what goes wrong inside refuses the stop."""
    request = HookRequest(kind, "unknown", cwd)
    settings = Settings(root=cwd)
    try:
        event = _parsed(stdin)
        if CANARY in event:
            return dialect.refuse(kind, f"canary {str(event[CANARY])[:80]}")
        request = dialect.read(kind, event, environ)
        if request.exempt is not None:
            return dialect.allow(kind)
        settings = load(request.cwd)
        guard = _guard(kind, settings)
        if not guard.has_checks:
            return dialect.allow(kind)
        result = _checked(request, guard, settings)
    except Exception as error:  # noqa: BLE001 - fail closed
        from donewhen.completion.checking import gate_error
        from donewhen.foundation.text import one_line

        result = gate_error(f"donewhen hook {kind}", f"could not be made: {one_line(str(error), 400)}")
    return _decided(request, result, settings, dialect)


def _parsed(stdin: str) -> dict[str, Any]:
    try:
        event = json.loads(stdin)
    except ValueError as error:
        raise ValueError(f"the event on standard input is not JSON ({error})") from error
    if not isinstance(event, dict):
        raise ValueError("the event on standard input is not a JSON object")
    return event


def _guard(kind: HookKind, settings: Settings) -> GuardSettings:
    match kind:
        case "stop" | "pre-tool-use":
            return settings.stop
        case "subagent-stop":
            return settings.subagent_stop
        case "task-completed":
            return settings.task_completed


def _checked(request: HookRequest, guard: GuardSettings, settings: Settings) -> TaskCompletionResult:
    from donewhen.completion.checking import run_check
    from donewhen.completion.configured import checker_for
    from donewhen.filesystem.host import HostFilesystem
    from donewhen.protocols import TaskCompletionContext
    from donewhen.runtime.session import Session

    context = TaskCompletionContext(
        session=Session(),
        tentative_output=request.output,
        filesystem=HostFilesystem(settings.root),
        stop_reason=request.stop_reason,
    )
    return run_check(checker_for(guard, str(settings.source)), context, timeout=guard.check_timeout)


def _decided(request: HookRequest, result: TaskCompletionResult, settings: Settings, dialect: Dialect) -> Answer:
    from donewhen.adapters.attempts import Attempts
    from donewhen.completion.decision import GuardPolicy, GuardState, decide_stop

    guard = _guard(request.kind, settings)
    policy = GuardPolicy(guard.max_stalled, guard.max_attempts, guard.check_timeout)
    attempts = Attempts(settings.root, dialect.name, request.session_id, request.kind)
    try:
        with attempts.open(fresh=not request.retried) as record:
            decision, record.state = decide_stop(result, record.state, policy)
            if decision.report.status == "capped":
                record.unverified(decision.report)
                record.state = GuardState()
    except OSError:
        decision = _uncounted(result, request)
    if not decision.allow:
        return dialect.refuse(request.kind, decision.feedback)
    if decision.report.status == "verified":
        return dialect.allow(request.kind)
    note = f"donewhen let the agent stop UNVERIFIED after {decision.report.attempts} attempts: {decision.feedback}"
    return dialect.allow(request.kind, note)


def _uncounted(result: TaskCompletionResult, request: HookRequest) -> StopDecision:
    """Where nothing can be remembered, an agent is held back once, and not for ever."""
    from donewhen.completion.decision import GuardPolicy, GuardState, decide_stop

    earlier = GuardState(1, 1, 1) if request.retried else GuardState()
    return decide_stop(result, earlier, GuardPolicy(max_attempts=1))[0]
