"""Ways in which the entries of a settings file are dead: one function for each. They read, and run nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from donewhen.adapters.command_hooks import END_KINDS
from donewhen.adapters.diagnosis import Diagnosis
from donewhen.adapters.dialects import dialect_of
from donewhen.config import Settings
from donewhen.config.agent_runtimes import value_at
from donewhen.doctor.hook_settings import (
    RuntimeSettings,
    SettingsFile,
    entries_in,
    is_ours,
    mentions_donewhen,
)

_KEYS = frozenset({"type", "command", "timeout", "async", "if", "name", "description", "statusMessage"})
"""Keys of an entry that are written by install, have a check of their own, or only describe the entry."""
_TABLES = {"subagent-stop": "subagent_stop", "task-completed": "task_completed"}
_TOOL_KIND = "pre-tool-use"

EntryCheck = Callable[[RuntimeSettings, SettingsFile, Settings], Iterator[Diagnosis]]


def missing_event(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """There are hooks of ours, but none for an event that has checks."""
    entries = entries_in(file)
    if not any(is_ours(entry) or mentions_donewhen(entry) for entry in entries):
        return
    here = {(entry.event, entry.kind) for entry in entries if is_ours(entry)}
    missing = [(event, kind) for event, kind, _ in runtime.target.events if (event, kind) not in here]
    dead = [event for event, kind in missing if _has_checks(kind, settings)]
    if dead:
        yield _broken(
            runtime, file, "missing event", f"no hook for {', '.join(dead)}, so that is never checked or recorded"
        )
    elif missing and here:
        events = ", ".join(event for event, _ in missing)
        yield Diagnosis(
            f"{runtime.name} {file.where} events",
            "note",
            f"no hook for {events}; install adds it",
            _install(runtime, file),
        )


def misplaced(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """An entry is where the runtime doesn't look for hooks."""
    for entry in entries_in(file):
        if entry.event is None and entry.kind is not None:
            detail = f"{entry.place} is not a place where {runtime.target.title} looks for hooks"
            advice = None if entry.place.startswith("hooks.") else f"Remove {entry.place} from {file.path}."
            yield _broken(runtime, file, "misplaced", detail, advice)


def wrong_event(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """An entry is under an event that never occurs, or is the line of another event or another runtime."""
    for entry in entries_in(file):
        if not is_ours(entry) or (entry.event, entry.kind) in {
            (event, kind) for event, kind, _ in runtime.target.events
        }:
            continue
        expected = runtime.with_kind(entry.kind or "")
        detail = (
            f"{entry.place} calls `hook {entry.kind}`, which belongs to {' or '.join(expected)}"
            if expected
            else f"{entry.place} calls `hook {entry.kind}`, which {runtime.target.title} has no event for"
        )
        yield _broken(runtime, file, "event", detail)


def wrong_runtime(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """The line answers in the format of another runtime."""
    pattern = re.compile(r"--runtime[ =]([\w-]+)")
    for entry in entries_in(file):
        named = pattern.search(entry.command) if is_ours(entry) else None
        if named is not None and named[1] != runtime.name:
            yield _broken(runtime, file, "runtime", f"{entry.place} says --runtime {named[1]}, not {runtime.name}")


def mistyped(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """The type or the timeout of an entry is not what the runtime expects."""
    for entry in entries_in(file):
        if not is_ours(entry):
            continue
        if entry.hook.get("type") != "command":
            detail = f"the type of {entry.place} is {_shown(entry.hook.get('type'))}, not 'command'"
            yield _broken(runtime, file, "type", detail)
        timeout = entry.hook.get("timeout")
        if "timeout" in entry.hook and not _is_number(timeout):
            yield _broken(runtime, file, "type", f"the timeout of {entry.place} is {_shown(timeout)}, not a number")


def asynchronous(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """The runtime doesn't wait for the answer."""
    for entry in entries_in(file):
        if is_ours(entry) and entry.hook.get("async") not in (None, False):
            yield _broken(runtime, file, "async", f"{entry.place} has `async`, so its answer comes too late to hold")


def conditional(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """The runtime calls the hook only under a condition."""
    for entry in entries_in(file):
        if is_ours(entry) and entry.hook.get("if") is not None:
            detail = f"{entry.place} has `if` {_shown(entry.hook['if'])}: a hook with a condition is skipped at a stop"
            yield _broken(runtime, file, "condition", detail)


def never_matching(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """The matcher excludes what the hook is for, such as a tool, or some of the ends of a session."""
    tools: dict[tuple[str | None, str | None], str | None] = {
        (event, kind): tool for event, kind, tool in runtime.target.events
    }
    for entry in entries_in(file):
        tool = tools.get((entry.event, entry.kind))
        matcher = entry.group.get("matcher")
        if not is_ours(entry) or matcher in (None, "", "*"):
            continue
        if not isinstance(matcher, str):
            yield _broken(runtime, file, "matcher", f"the matcher of {entry.place} is {_shown(matcher)}, not a text")
        elif tool is not None and not _matches(matcher, tool):
            detail = f"the matcher {matcher!r} of {entry.place} does not match {tool}"
            yield _broken(runtime, file, "matcher", detail)
        elif tool is None and entry.event not in runtime.target.client.events_without_matcher and matcher != ".*":
            seen = "recorded" if entry.kind in END_KINDS else "checked"
            detail = f"{entry.place} has the matcher {matcher!r}, so what it does not match is not {seen}"
            yield _broken(runtime, file, "matcher", detail)


def run_otherwise(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """The line is not run in the project, with the usual variables and a POSIX shell."""
    for entry in entries_in(file):
        keys = sorted(runtime.target.client.run_keys & set(entry.hook)) if is_ours(entry) else []
        keys = [key for key in keys if (key, entry.hook[key]) != ("shell", "bash")]
        if keys:
            detail = f"{entry.place} has `{keys[0]}` {_shown(entry.hook[keys[0]])}, with which the line may not run"
            yield _broken(runtime, file, "run", detail)


def disabled_by_name(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """A settings file names the hook, or its command line, in a list of disabled hooks."""
    key = runtime.target.about.disabled_hooks
    if key is None:
        return
    disabled = {name: other for other in runtime.files for name in _texts(value_at(other.data, key))}
    for entry in entries_in(file):
        names = (entry.hook.get("name"), entry.hook.get("command")) if is_ours(entry) else ()
        by = next((disabled[name] for name in names if isinstance(name, str) and name in disabled), None)
        if by is not None:
            detail = f"{key} in {by.path} disables {entry.place}"
            yield _broken(runtime, file, "disabled", detail, f"Remove the hook from {key} in {by.path}.")


def unknown_keys(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """Keys that install does not write: what they do depends on the runtime."""
    for entry in entries_in(file):
        keys = sorted(set(entry.hook) - _KEYS - runtime.target.client.run_keys) if is_ours(entry) else []
        if keys:
            yield Diagnosis(
                f"{runtime.name} {file.where} keys",
                "note",
                f"{entry.place} has {', '.join(keys)}, which donewhen does not write",
                _install(runtime, file),
            )


def short_timeout(runtime: RuntimeSettings, file: SettingsFile, settings: Settings) -> Iterator[Diagnosis]:
    """The runtime gives up before the check does, and lets the agent go."""
    tables = (settings.stop, settings.subagent_stop, settings.task_completed)
    longest = max(table.check_timeout for table in tables)
    end_seconds = dialect_of(runtime.name).end_seconds
    for entry in entries_in(file):
        timeout = entry.hook.get("timeout", 0)
        if not is_ours(entry) or not _is_number(timeout):
            continue
        detail = None
        seconds = timeout / runtime.target.about.timeouts_per_second
        most = runtime.target.client.longest_timeout
        if "timeout" not in entry.hook:
            detail = f"{entry.place} has no timeout, so the runtime's own limit applies"
        elif most is not None and timeout > most:
            detail = f"the timeout of {entry.event}, {timeout}, is above {most}: the runtime's timer ends at once then"
        elif entry.kind in END_KINDS and seconds <= end_seconds:
            detail = (
                f"the timeout of {entry.event}, {seconds:g} s, is not above the {end_seconds:g} s that a check of an "
                "end may take, so the end may not be recorded"
            )
        elif entry.kind not in END_KINDS and seconds <= longest:
            detail = (
                f"the timeout of {entry.event}, {seconds:g} s, is not above check_timeout, {longest:g} s: a runtime "
                "releases the agent when its hook times out"
            )
        if detail is not None:
            yield _broken(runtime, file, "timeout", detail)
            return


ENTRY_CHECKS: tuple[EntryCheck, ...] = (
    missing_event,
    misplaced,
    wrong_event,
    wrong_runtime,
    mistyped,
    asynchronous,
    conditional,
    never_matching,
    run_otherwise,
    disabled_by_name,
    unknown_keys,
    short_timeout,
)


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_checks(kind: str, settings: Settings) -> bool:
    if kind == "session-start":
        # It checks nothing, and settings of earlier versions don't have it.
        return False
    # The stop is what hooks are installed for, with or without checks so far.
    table = _TABLES.get(kind, "stop")
    return kind == "stop" or getattr(settings, table).has_checks


def _matches(matcher: str, tool: str) -> bool:
    try:
        return re.fullmatch(matcher, tool) is not None
    except re.error:
        return False


def _broken(
    runtime: RuntimeSettings, file: SettingsFile, name: str, detail: str, advice: str | None = None
) -> Diagnosis:
    where = "" if file.where == "project" else f" in {file.path}"
    return Diagnosis(
        f"{runtime.name} {file.where} {name}", "broken", f"{detail}{where}", advice or _install(runtime, file)
    )


def _install(runtime: RuntimeSettings, file: SettingsFile) -> str:
    if file.where == "local":
        return f"Remove the entry from {file.path}; donewhen hooks install --{runtime.name} writes the shared file."
    return f"donewhen hooks install --{runtime.name}{' --user' if file.where == 'user' else ''}"


def _shown(value: Any) -> str:
    return repr(value)[:60]
