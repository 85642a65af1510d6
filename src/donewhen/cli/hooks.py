"""`donewhen hooks`: install, remove and check the hooks in agent runtimes."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from donewhen.adapters.hook_files import FileChange, install_hooks, installed_hooks, uninstall_hooks
from donewhen.adapters.hook_targets import HOOK_TARGETS, HookTarget, Scope
from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.config import CONFIG_FILE, find_root, load
from donewhen.foundation.errors import ConfigError, ExitCode, UsageError

_TRUST = (
    "Codex runs a hook only after you have trusted it: start `codex` once, choose to review the hooks, and trust "
    "this one. Until then it is skipped silently. `donewhen doctor` asks Codex whether it is trusted."
)
_PROJECT_TRUST = "A project's hooks also need the project itself to be trusted by Codex."


@click.group()
def command() -> None:
    """Install, remove and check the hooks of Claude Code and Codex."""


def _targets(verb: Any) -> Any:
    for option in (
        click.option("--project", "project", is_flag=True, help="This project's settings (the default)."),
        click.option("--user", "user", is_flag=True, help="Your own settings, for all projects."),
        click.option("--codex", "codex", is_flag=True, help="Codex."),
        click.option("--claude", "claude", is_flag=True, help="Claude Code."),
    ):
        verb = option(verb)
    return common_options(verb)


@command.command("install")
@_targets
@click.option("--dry-run", is_flag=True, help="Show the change without making it.")
@click.pass_obj
def install_command(output: Output, claude: bool, codex: bool, user: bool, project: bool, dry_run: bool) -> ExitCode:
    """Add the hooks to the runtime's settings file. Other hooks stay, and a backup is kept beside the file."""
    scope = _scope(user, project)
    findings: list[Finding] = []
    rows: list[dict[str, Any]] = []
    for runtime, path, root in _chosen(claude, codex, scope):
        change = install_hooks(
            path, runtime.entries(scope, root), keep_places=runtime.positions_matter, dry_run=dry_run
        )
        rows.append(_print_change(output, change, "installed", runtime, dry_run))
        if runtime.name == "codex":
            output.say(_TRUST)
            if scope == "project":
                output.say(_PROJECT_TRUST)
            findings.append(Finding("codex_trust", _TRUST, where=str(path), next="codex"))
        findings += _twice(output, runtime, scope, root)
    findings += _about_settings(output)
    return output.finish(ExitCode.PASS, {"changes": rows, "dry_run": dry_run}, findings)


def _twice(output: Output, runtime: HookTarget, scope: Scope, root: Path) -> list[Finding]:
    """Warn if the hooks are installed in both scopes: every stop would be checked and counted twice."""
    other: Scope = "user" if scope == "project" else "project"
    path = runtime.path(other, root, os.environ)
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
def uninstall_command(output: Output, claude: bool, codex: bool, user: bool, project: bool, dry_run: bool) -> ExitCode:
    """Remove the hooks that install has added."""
    scope = _scope(user, project)
    rows = [
        _print_change(
            output,
            uninstall_hooks(path, keep_places=runtime.positions_matter, dry_run=dry_run),
            "removed",
            runtime,
            dry_run,
        )
        for runtime, path, _ in _chosen(claude, codex, scope)
    ]
    return output.finish(ExitCode.PASS, {"changes": rows, "dry_run": dry_run})


@command.command("status")
@common_options
@click.pass_obj
def status_command(output: Output) -> ExitCode:
    """Show for each runtime and scope whether the hooks are installed and up to date."""
    root = find_root(Path.cwd())
    rows = []
    scopes: tuple[Scope, Scope] = ("project", "user")
    for runtime in HOOK_TARGETS.values():
        for scope in scopes:
            path = runtime.path(scope, root, os.environ)
            found = installed_hooks(path)
            wanted = runtime.entries(scope, root)
            state = "not installed" if not found else "installed" if set(found) == set(wanted) else "outdated"
            rows.append({"runtime": runtime.name, "scope": scope, "path": str(path), "state": state})
            color = {"installed": "green", "outdated": "yellow"}.get(state)
            output.say(f"{runtime.title:12} {scope:8} {state:14} {path}", fg=color)
    unverified = root / ".donewhen" / "state" / "unverified.jsonl"
    count = _count_lines(unverified) if unverified.is_file() else 0
    if count:
        output.say(f"{count} stop(s) were released unverified; see {unverified}", fg="yellow")
    return output.finish(ExitCode.PASS, {"hooks": rows, "unverified_stops": count})


def _scope(user: bool, project: bool) -> Scope:
    if user and project:
        raise UsageError("Give either --user or --project, not both.")
    return "user" if user else "project"


def _chosen(claude: bool, codex: bool, scope: Scope) -> Iterator[tuple[HookTarget, Path, Path]]:
    if not (claude or codex):
        raise UsageError("No runtime given.", next_step="Give --claude, --codex, or both.")
    root = find_root(Path.cwd())
    for name, wanted in (("claude", claude), ("codex", codex)):
        if wanted:
            runtime = HOOK_TARGETS[name]
            yield runtime, runtime.path(scope, root, os.environ), root


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


def _count_lines(path: Path) -> int:
    # In pieces: nothing limits how often agents are released.
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
