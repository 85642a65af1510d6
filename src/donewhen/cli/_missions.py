"""Shared by the verbs for missions: find the mission, print JSON and problems."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from donewhen.cli._output import Finding, Output, harmless_text
from donewhen.foundation.errors import DonewhenError

F = TypeVar("F", bound=Callable[..., Any])

_SHOWN = 20


def mission_argument(command: F) -> F:
    """Add the argument MISSION: a folder, or the name of a mission of the project (default: this folder)."""
    kind = click.Path(path_type=Path)
    return click.argument("mission", required=False, default=".", type=kind, callback=_by_name)(command)


def _by_name(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
    """Resolve a name that is not a folder as a mission of the project."""
    if value.exists() or value.parent != Path():
        return value
    from donewhen.jobs.contract.mission_folders import mission_folders
    from donewhen.jobs.plan.workspace import find_workspace

    with suppress(DonewhenError):
        workspace = find_workspace(Path.cwd())
        found = mission_folders(workspace.root, workspace.settings()).get(value.name)
        if found is not None:
            return Path(os.path.relpath(found))
    return value


def harmless_json(data: object, indent: int | None = None) -> str:
    """Data as JSON that is safe to print on a terminal."""
    return harmless_text(json.dumps(data, ensure_ascii=False, indent=indent))


def show_problems(output: Output, problems: list[Finding], *, everything: bool = False) -> None:
    """Print the problems with their locations; only the first few unless ``everything``."""
    shown = problems if everything else problems[:_SHOWN]
    for problem in shown:
        place = f"{problem.where}: " if problem.where else ""
        output.say(f"✗ {place}{problem.message}", fg="red")
        if problem.next:
            output.say(f"  next: {problem.next}", dim=True)
    if len(problems) > len(shown):
        output.say(f"  … and {len(problems) - len(shown)} more; --all lists them", fg="red")
