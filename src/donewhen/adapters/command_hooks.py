"""Answer a runtime's command hook: one event in, one answer out, even on errors.

The dialect of a runtime translates its events and answers; this file is the same for all runtimes. Modules are
imported where they are used, so that an event without a check costs almost nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from donewhen.config import GuardSettings, Settings, has_settings, load
from donewhen.foundation.deadline import DeadlineError, within
from donewhen.foundation.person_folder import HEADS, kept_for

if TYPE_CHECKING:
    from donewhen.adapters.stop_attempts import StopAttempts
    from donewhen.completion.stop_decision import StopDecision
    from donewhen.protocols import StopReason, TaskCompletionResult

HookKind = Literal[
    "stop", "subagent-stop", "pre-tool-use", "task-completed", "stop-failure", "session-end", "session-start"
]
END_KINDS: frozenset[HookKind] = frozenset({"stop-failure", "session-end"})
"""Events at which nothing can be refused: the agent has ended, and the end is recorded."""
CANARY = "donewhen_canary"
"""The event field with which `donewhen doctor` tests that an installed hook is called."""

READING = 20.0
"""Time limit in seconds for reading settings. Only a file system that does not answer takes longer."""
COUNTING = 60.0
"""The same for counting attempts, which waits for a lock."""
NO_EVENT = "the agent runtime sent no event"

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
    turn: str | None = None
    """Identifies the message of the person that the agent works on; None if the runtime doesn't say it."""
    turn_may_repeat: bool = False
    """Whether two messages of the person can have the same ``turn``. Counting then restarts after a cap, too."""
    planning: bool = False
    """Whether the agent only plans and may not write. It is not held back for work, unless it already was."""
    how: str = ""
    """How the agent has ended, if it has."""


class Dialect(Protocol):
    """Translates the events and answers of one runtime."""

    name: str
    end_seconds: float
    """How long a check may take after the end of a session: the runtime waits for it, but not for long."""

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
    if kind == "session-start":
        from donewhen.adapters.session_starts import answer_start

        return answer_start(dialect, stdin, environ)
    # Unreadable events are counted, too. Otherwise a runtime without a cap would be held back forever.
    request = HookRequest(kind, "unreadable", cwd, retried=True)
    settings = Settings(root=cwd)
    work: str | None = None
    try:
        event = within(READING, _parsed, stdin, cwd, kind, what="reading the settings")
        if event is None:
            return dialect.allow(kind)
        if CANARY in event:
            return dialect.refuse(kind, f"canary {str(event[CANARY])[:80]}")
        request = within(READING, dialect.read, kind, event, environ, what="reading the folder of the event")
        if request.exempt is not None:
            return dialect.allow(kind)
        settings = Settings(root=request.cwd)  # used if loading fails
        settings = within(READING, load, request.cwd, what="reading the settings")
        guard = _guard(kind, settings)
        if kind in END_KINDS:
            from donewhen.adapters.session_ends import record_end

            limit = COUNTING + dialect.end_seconds
            within(limit, record_end, request, settings, dialect, what="recording the end")
            return dialect.allow(kind)
        guard = within(READING, _as_agreed, kind, guard, settings, what="reading the agreement")
        if not guard.has_checks:
            return within(READING, _without_checks, request, settings, dialect, what="reading the attempts")
        # Attempts that can't be read are none, and the agent is refused longer.
        with suppress(DeadlineError):
            if request.planning and within(
                COUNTING, _may_plan, request, settings, dialect, what="reading the attempts"
            ):
                return dialect.allow(kind)
            work = within(COUNTING, _work_if_held, request, settings, dialect, what="reading the attempts")
        result = check_request(request, guard, settings, guard.check_timeout)
        if result.complete and guard.jobs:
            from donewhen.adapters.job_to_start import job_to_start

            asked = attempts_of(request, settings, dialect, "stop").name
            told = within(READING, job_to_start, request, guard, settings.root, asked, what="looking for a job")
            if told is not None:
                return dialect.refuse(kind, told)
    except Exception as error:  # noqa: BLE001 - fail closed
        from donewhen.completion.checking import gate_error
        from donewhen.foundation.plain_text import one_line

        result = gate_error(f"donewhen hook {kind}", f"could not be made: {one_line(str(error), 400)}")
        if kind in END_KINDS:
            from donewhen.adapters.session_ends import record_broken_end

            with suppress(DeadlineError):
                within(COUNTING, record_broken_end, request, settings, dialect, result, what="recording the end")
            return dialect.allow(kind)
    try:
        return within(COUNTING, _decided, request, result, settings, dialect, work, what="counting the attempts")
    except DeadlineError:
        return _answer(request, _uncounted(request, result, settings, dialect), dialect)


def _without_checks(request: HookRequest, settings: Settings, dialect: Dialect) -> Answer:
    """Allow the stop if nothing is configured, unless the settings or the jobs were removed that held an agent back."""
    vanished = vanished_jobs_in(settings.root) if request.kind == "stop" else None
    if vanished is not None:
        return _decided(request, vanished, settings, dialect)
    if not (request.retried and was_held_before(request, settings, dialect)):
        return dialect.allow(request.kind)
    return _decided(request, settings_are_gone(), settings, dialect)


def was_held_before(request: HookRequest, settings: Settings, dialect: Dialect) -> bool:
    """Whether this agent was held back and has not been let go since."""
    if not (settings.root / ".donewhen").exists():
        return False
    kind: HookKind = "stop" if request.kind in END_KINDS else request.kind
    return attempts_of(request, settings, dialect, kind).held


def settings_are_gone() -> TaskCompletionResult:
    """The result for an agent that was held back by settings which are no longer there."""
    from donewhen.protocols import ReasonCode, TaskCompletionResult

    return TaskCompletionResult.incomplete(
        "gate_error: the settings that held this agent back are gone or empty. Put them back; if they are wrong, say "
        "so to the person.",
        code=ReasonCode.GATE_ERROR,
    )


def vanished_jobs_in(root: Path) -> TaskCompletionResult | None:
    """The refusal if the jobs are gone after which a stop hook looked here, together with the settings."""
    # Without loading more: most projects with a hook and no settings have no jobs either.
    place = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), root)
    if not any(os.path.lexists(path) for path in kept_for(HEADS, Path(os.path.realpath(place)))):
        return None
    if (root / ".donewhen" / "ledger").is_dir():
        return None
    from donewhen.completion.job_checker import vanished_jobs

    return vanished_jobs(root, guarded_only=True)


def _parsed(stdin: str, cwd: Path, kind: HookKind) -> dict[str, Any] | None:
    """Return the event. If it can't be read, return None if no checks are configured, else raise ValueError."""
    try:
        event = json.loads(stdin)
    except (ValueError, RecursionError) as error:
        problem = f"the event on standard input is not JSON ({error})"
        if stdin == NO_EVENT:
            problem = stdin
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
    """Return the settings table for this kind of event; giving the output and the end of a session count as a stop."""
    return kind.replace("-", "_") if kind in ("subagent-stop", "task-completed") else "stop"


def _as_agreed(kind: HookKind, guard: GuardSettings, settings: Settings) -> GuardSettings:
    """The guard with the look at jobs that a person agreed to, if the settings no longer ask for it.

    An agent can edit the settings; that loosens nothing until a person agrees to it.
    """
    if (guard.jobs and guard.require_job == "on") or not (settings.root / ".donewhen" / "ledger").is_dir():
        return guard
    from donewhen.completion.job_checker import agreed_setting

    if not guard.jobs:
        guard = replace(guard, jobs=agreed_setting(settings.root, f"{_table(kind)}.jobs") is True)
    if guard.require_job != "on" and agreed_setting(settings.root, f"{_table(kind)}.require_job") == "on":
        guard = replace(guard, require_job="on")
    return guard


def check_request(
    request: HookRequest, guard: GuardSettings, settings: Settings, timeout: float
) -> TaskCompletionResult:
    """Run the checks for this event."""
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
        # A sub-agent works for its session.
        session_id=request.session_id.partition(":")[0],
    )
    return run_check(checker_for(guard, str(settings.source), _table(request.kind)), context, timeout=timeout)


def attempts_of(request: HookRequest, settings: Settings, dialect: Dialect, kind: HookKind) -> StopAttempts:
    """The attempts of the session at this kind of event."""
    from donewhen.adapters.stop_attempts import StopAttempts

    # If the project uses donewhen, the record is kept in it, even if its settings are broken or missing.
    local = settings.source is not None or (settings.root / ".donewhen").is_dir() or has_settings(settings.root)
    return StopAttempts(settings.root, dialect.name, request.session_id, kind, local=local)


def _may_plan(request: HookRequest, settings: Settings, dialect: Dialect) -> bool:
    """Whether a planning agent may stop unchecked: not if it was held back for work since the person's message."""
    from donewhen.adapters.stop_attempts import Verdict

    with attempts_of(request, settings, dialect, request.kind).open(retried=request.retried, turn=request.turn) as own:
        if own.state.refusals:
            return False
        own.verdict = Verdict("exempt", _work(request, settings), request.turn)
        return True


def _work_if_held(request: HookRequest, settings: Settings, dialect: Dialect) -> str | None:
    """The fingerprint of the work, if there is an earlier refusal to compare it with."""
    is_held = attempts_of(request, settings, dialect, request.kind).held
    return _work(request, settings) if is_held else None


def _work(request: HookRequest, settings: Settings) -> str | None:
    """The fingerprint of the work at a stop; other events have none."""
    if request.kind not in _WITH_TURNS:
        return None
    return work_in(settings.root, _guard(request.kind, settings).files)


def work_in(root: Path, files: Iterable[str]) -> str | None:
    """The fingerprint of the work in a project; None if it is not known."""
    from donewhen.adapters.work_fingerprint import fingerprint_work

    try:
        return within(READING, fingerprint_work, root, files, what="reading the work")
    except (DeadlineError, OSError):
        return None


def _decided(
    request: HookRequest, result: TaskCompletionResult, settings: Settings, dialect: Dialect, work: str | None = None
) -> Answer:
    """Decide, and count. ``work`` is the fingerprint of the work before the check."""
    from donewhen.adapters.stop_attempts import Verdict
    from donewhen.completion.stop_decision import GuardPolicy, GuardState, decide_stop

    guard = _guard(request.kind, settings)
    policy = GuardPolicy(guard.max_stalled, guard.max_attempts, guard.check_timeout)
    try:
        # A check may write files itself, so the next attempt is compared with what is there after this one.
        checked = _work(request, settings)
        attempts = attempts_of(request, settings, dialect, request.kind)
        with attempts.open(retried=request.retried, turn=request.turn) as record:
            changed = request.kind not in _WITH_TURNS or (None not in (work, record.work) and work != record.work)
            decision, record.state = decide_stop(result, record.state, policy, changed=changed)
            record.work = checked
            record.verdict = None
            if decision.report.status == "verified" and request.kind == "stop":
                record.state, record.verdict = GuardState(), Verdict("verified", checked, request.turn)
            elif decision.report.status == "capped":
                record.record(decision.report)
                if guard.jobs:
                    put_on_record(settings.root, decision.feedback)
                if request.kind in _WITH_TURNS:
                    record.verdict = Verdict("recorded", checked, request.turn)
                if request.kind not in _WITH_TURNS or request.turn_may_repeat:
                    record.state = GuardState()
    except OSError:
        decision = _uncounted(request, result, settings, dialect)
    return _answer(request, decision, dialect)


def _answer(request: HookRequest, decision: StopDecision, dialect: Dialect) -> Answer:
    if not decision.allow:
        return dialect.refuse(request.kind, decision.feedback)
    if decision.report.status == "verified":
        return dialect.allow(request.kind)
    note = f"donewhen let the agent stop UNVERIFIED after {decision.report.attempts} attempts: {decision.feedback}"
    return dialect.allow(request.kind, note)


def put_on_record(root: Path, why: str) -> None:
    """Record an unverified stop in the ledger of the jobs, too. Errors are ignored: the attempts have it already."""
    from donewhen.foundation.errors import DonewhenError
    from donewhen.jobs.lifecycle.setting_aside import record_unverified_stop

    with suppress(DonewhenError, OSError):
        record_unverified_stop(root, why)


def _uncounted(
    request: HookRequest, result: TaskCompletionResult, settings: Settings, dialect: Dialect
) -> StopDecision:
    """Decide without stored state: hold the agent back once, not forever. Letting it go is on record all the same."""
    from donewhen.completion.stop_decision import GuardPolicy, GuardState, decide_stop

    earlier = GuardState(1, 1, 1) if request.retried else GuardState()
    decision = decide_stop(result, earlier, GuardPolicy(max_attempts=1))[0]
    if decision.allow and decision.report.status != "verified":
        with suppress(OSError, DeadlineError):
            own = attempts_of(request, settings, dialect, request.kind)
            within(READING, own.record_without_state, decision.report, what="recording the stop")
    return decision
