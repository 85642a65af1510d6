"""`donewhen hooks`: install, remove and check the hooks in agent runtimes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from donewhen.adapters.agent_rules import remove_agent_rules, write_agent_rules
from donewhen.adapters.hook_files import (
    FileChange,
    install_with_script,
    installed_hooks,
    uninstall_with_script,
)
from donewhen.adapters.hook_targets import HOOK_TARGETS, HookTarget, Scope
from donewhen.adapters.stop_attempts import folder_elsewhere
from donewhen.adapters.stop_record import RECORD, UnverifiedEnd, ends_by_record
from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.config import CONFIG_FILE, find_root, load
from donewhen.config.hook_script import is_current
from donewhen.config.state_folder import FOLDER
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.errors import ConfigError, ExitCode, UsageError
from donewhen.foundation.files import read_limited
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.size_limits import HOOK_FILE

_SHOWN = 5
_LISTED = 100


@click.group()
def command() -> None:
    """Install, remove and check the hooks of agent runtimes."""


def _targets(verb: Any) -> Any:
    verb = click.option("--project", "project", is_flag=True, help="This project's settings (the default).")(verb)
    verb = click.option("--user", "user", is_flag=True, help="Your own settings, for all projects.")(verb)
    for runtime in reversed(HOOK_TARGETS.values()):
        verb = click.option(f"--{runtime.name}", runtime.name, is_flag=True, help=f"{runtime.title}.")(verb)
    return common_options(verb)


@command.command("install")
@_targets
@click.option("--dry-run", is_flag=True, help="Show the change without making it.")
@click.pass_obj
def install_command(output: Output, /, user: bool, project: bool, dry_run: bool, **runtimes: bool) -> ExitCode:
    """Add the hooks to the runtime's settings file. Other hooks stay, and a backup is kept beside the file."""
    scope = _scope(user, project)
    findings: list[Finding] = []
    rows: list[dict[str, Any]] = []
    chosen = [*_chosen(runtimes, scope)]
    project_root = find_root(Path.cwd())
    if scope == "project":
        # A file that can't be changed is an error before anything is written.
        write_agent_rules(project_root, for_claude=runtimes["claude"], dry_run=True)
    for runtime, path, root in chosen:
        entries = runtime.entries(scope, root, CALLER_VARIABLES)
        change, script = install_with_script(
            path,
            entries,
            runtime.script(scope, root, CALLER_VARIABLES),
            runtime.script_content(scope, root),
            header=runtime.header,
            keep_places=runtime.positions_matter,
            dry_run=dry_run,
        )
        rows.append(_print_change(output, change, "installed", runtime, dry_run))
        rows += _script_row(output, script, "installed", runtime, dry_run)
        findings += _notices(output, runtime, scope, path)
        findings += _too_old(output, runtime, path)
        findings += _twice(output, runtime, scope, root)
    rules: list[FileChange] = []
    if scope == "project":
        rules = write_agent_rules(project_root, for_claude=runtimes["claude"], dry_run=dry_run)
    data = {"changes": rows, "rules": _rules_rows(output, rules, "written into", dry_run), "dry_run": dry_run}
    findings += _about_settings(output)
    return output.finish(ExitCode.PASS, data, findings)


def _notices(output: Output, runtime: HookTarget, scope: Scope, path: Path) -> list[Finding]:
    """What the person still has to do."""
    notices = [notice for notice in (runtime.notice, runtime.project_notice if scope == "project" else "") if notice]
    for notice in notices:
        output.say(notice)
    code = f"{runtime.name}_trust"
    return [Finding(code, notices[0], where=str(path), next=runtime.client.program)] if notices else []


def _script_row(
    output: Output, change: FileChange, done: str, runtime: HookTarget, dry_run: bool
) -> list[dict[str, Any]]:
    """The script is only mentioned if it changes."""
    return [] if change.nothing else [_print_change(output, change, done, runtime, dry_run)]


def _too_old(output: Output, runtime: HookTarget, path: Path) -> list[Finding]:
    """Warn if the installed client does not understand the file."""
    outdated = runtime.client.too_old()
    if outdated is None:
        return []
    output.say(f"{outdated.message} {outdated.advice}", fg="yellow")
    return [Finding("client_too_old", outdated.message, where=str(path), next=outdated.advice)]


def _twice(output: Output, runtime: HookTarget, scope: Scope, root: Path) -> list[Finding]:
    """Warn if the hooks are installed in both scopes: every stop would be checked and counted twice."""
    other: Scope = "user" if scope == "project" else "project"
    path = runtime.path(other, root, CALLER_VARIABLES)
    if not installed_hooks(path):
        return []
    message = f"{runtime.title} has the hooks in {path} as well, so every stop is checked twice."
    advice = f"donewhen hooks uninstall --{runtime.name} --{other}"
    output.say(f"{message} Keep one: {advice}", fg="yellow")
    return [Finding("installed_twice", message, where=str(path), next=advice)]


def _about_settings(output: Output) -> list[Finding]:
    """Problems with the settings that the hooks read."""
    root = find_root(Path.cwd())
    try:
        if load(root).stop.has_checks:
            return []
    except ConfigError as error:
        output.say(f"The settings are invalid, so every agent is refused: {error}", fg="yellow")
        return [Finding.of(error)]
    message = "No checks are set up yet, so every stop is allowed."
    output.say(f"{message} Write a [stop] table into {root / CONFIG_FILE}.")
    return [Finding("no_checks", message, where=str(root), next=f"Write a [stop] table into {CONFIG_FILE}.")]


@command.command("uninstall")
@_targets
@click.option("--dry-run", is_flag=True, help="Show the change without making it.")
@click.pass_obj
def uninstall_command(output: Output, /, user: bool, project: bool, dry_run: bool, **runtimes: bool) -> ExitCode:
    """Remove the hooks that install has added."""
    scope = _scope(user, project)
    rows: list[dict[str, Any]] = []
    for runtime, path, root in _chosen(runtimes, scope):
        change, script = uninstall_with_script(
            path,
            runtime.script(scope, root, CALLER_VARIABLES),
            header=runtime.header,
            keep_places=runtime.positions_matter,
            dry_run=dry_run,
        )
        rows.append(_print_change(output, change, "removed", runtime, dry_run))
        rows += _script_row(output, script, "removed", runtime, dry_run)
    rules: list[FileChange] = []
    root = find_root(Path.cwd())
    if scope == "project" and not (dry_run or _has_project_hooks(root)):
        rules = remove_agent_rules(root)
    data = {"changes": rows, "rules": _rules_rows(output, rules, "removed from", dry_run), "dry_run": dry_run}
    return output.finish(ExitCode.PASS, data)


def _has_project_hooks(root: Path) -> bool:
    """Whether the project has hooks of any runtime."""
    files = (runtime.path("project", root, CALLER_VARIABLES) for runtime in HOOK_TARGETS.values())
    return any(installed_hooks(path) for path in files)


def _rules_rows(output: Output, changes: list[FileChange], done: str, dry_run: bool) -> list[dict[str, Any]]:
    """The files with rules for agents; only those that change are mentioned."""
    for change in changes:
        if not change.nothing:
            verb = f"would be {done}" if dry_run else done
            output.say(f"Rules for agents: {verb} {change.path}", fg=None if dry_run else "green")
    return [{"path": str(change.path), "changed": not change.nothing} for change in changes]


@command.command("status")
@common_options
@click.pass_obj
def status_command(output: Output) -> ExitCode:
    """Show for each runtime and scope whether the hooks are installed and up to date."""
    root = find_root(Path.cwd())
    rows = []
    findings: list[Finding] = []
    scopes: tuple[Scope, Scope] = ("project", "user")
    for runtime in HOOK_TARGETS.values():
        for scope in scopes:
            path = runtime.path(scope, root, CALLER_VARIABLES)
            state, problem = _state(runtime, scope, root, path)
            rows.append({"runtime": runtime.name, "scope": scope, "path": str(path), "state": state})
            color = {"installed": "green", "outdated": "yellow", "unreadable": "red"}.get(state)
            output.say(f"{runtime.title:12} {scope:8} {state:14} {path}", fg=color)
            if problem is not None:
                findings.append(problem)
                output.say(f"  {problem.message}")
                output.say(f"  next: {problem.next}", dim=True)
    ends = ends_by_record(root, root / FOLDER / "state" / RECORD, folder_elsewhere(root) / RECORD)
    for record, unverified in ends.items():
        _print_unverified(output, record, unverified)
    data = {
        "hooks": rows,
        "unverified_stops": sum(map(len, ends.values())),
        "unverified": [{"file": str(record), **end._asdict()} for record in ends for end in ends[record][-_LISTED:]],
    }
    unreadable = any(row["state"] == "unreadable" for row in rows)
    return output.finish(ExitCode.USAGE if unreadable else ExitCode.PASS, data, findings)


def _state(runtime: HookTarget, scope: Scope, root: Path, path: Path) -> tuple[str, Finding | None]:
    """Whether the hooks are installed in a file, and what to do about it. A file that can't be read is reported, and
    the others are still shown."""
    try:
        found = installed_hooks(path)
    except ConfigError as error:
        return "unreadable", Finding.of(error)
    if not found:
        return "not installed", None
    wanted = runtime.entries(scope, root, CALLER_VARIABLES)
    if set(found) == set(wanted) and _is_own_script(runtime.script(scope, root, CALLER_VARIABLES)):
        return "installed", None
    message = "Its hooks are not those that this version of donewhen installs."
    renew = f"donewhen hooks install --{runtime.name}{' --user' if scope == 'user' else ''}"
    return "outdated", Finding("hooks_outdated", message, where=str(path), next=renew)


def _print_unverified(output: Output, record: Path, ends: list[UnverifiedEnd]) -> None:
    output.say(f"{len(ends)} stop(s) or session(s) ended unverified; see {record}", fg="yellow")
    if len(ends) > _SHOWN:
        output.say(f"  the last {_SHOWN}:")
    for end in ends[-_SHOWN:]:
        why = one_line(f"{f'[{end.code}] ' if end.code else ''}{end.feedback}", 100)
        output.say(f"  {one_line(end.at, 30)} {one_line(end.how, 60)} ({one_line(end.status, 20)}): {why}")


def _is_own_script(path: Path) -> bool:
    """Whether the script is one that this version writes, whatever command it starts donewhen with."""
    try:
        return is_current(read_limited(path, HOOK_FILE).decode())
    except (OSError, ValueError):
        return False


def _scope(user: bool, project: bool) -> Scope:
    if user and project:
        raise UsageError("Give either --user or --project, not both.")
    return "user" if user else "project"


def _chosen(runtimes: Mapping[str, bool], scope: Scope) -> Iterator[tuple[HookTarget, Path, Path]]:
    if not any(runtimes.values()):
        *others, last = (f"--{name}" for name in HOOK_TARGETS)
        raise UsageError("No runtime given.", next_step=f"Give {', '.join(others)} or {last}, or several.")
    root = find_root(Path.cwd())
    for name, runtime in HOOK_TARGETS.items():
        if runtimes.get(name):
            yield runtime, runtime.path(scope, root, CALLER_VARIABLES), root


def _print_change(output: Output, change: FileChange, done: str, runtime: HookTarget, dry_run: bool) -> dict[str, Any]:
    if change.nothing:
        output.say(f"{runtime.title}: nothing to do in {change.path}")
    elif dry_run:
        output.say(f"{runtime.title}: this would change {change.path}", bold=True)
        for line in _diff(change):
            output.say(line, fg="green" if line.startswith("+") else "red" if line.startswith("-") else None)
    else:
        output.say(f"{runtime.title}: {done} in {change.path}", fg="green")
    return {"runtime": runtime.name, "path": str(change.path), "changed": not change.nothing, "diff": _diff(change)}


def _diff(change: FileChange) -> list[str]:
    before, after = ((content or b"").decode().splitlines() for content in (change.before, change.after))
    return list(difflib.unified_diff(before, after, "before", "after", lineterm=""))
