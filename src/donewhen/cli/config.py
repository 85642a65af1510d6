"""`donewhen config`: show the project's settings and their sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Output
from donewhen.completion.from_settings import checker_for
from donewhen.config import Settings, load
from donewhen.foundation.errors import ExitCode


@click.group()
def command() -> None:
    """Show the project's settings.

    The settings are in donewhen.toml, or under [tool.donewhen] in pyproject.toml, in this folder or the nearest parent.
    """


@command.command()
@common_options
@click.pass_obj
def show(output: Output) -> ExitCode:
    """Print every setting with its value and source. An invalid settings file is an error."""
    settings = load(Path.cwd())
    rows = list(_rows(settings, "", settings))
    for name in ("stop", "subagent_stop", "task_completed"):
        checker_for(getattr(settings, name), str(settings.source), name)
    source = str(settings.source) if settings.source else "no settings file: every stop is allowed"
    output.say(f"# {source}", dim=True)
    width = max(len(f"{name} = {_shown(value)}") for name, value, _ in rows if len(_shown(value)) < 40)
    for name, value, origin in rows:
        given = origin != "default"
        output.say(f"{f'{name} = {_shown(value)}'.ljust(width)}  # {origin}", bold=given, dim=not given)
    values = {name: {"value": value, "source": origin} for name, value, origin in rows}
    data = {"root": str(settings.root), "source": settings.source and str(settings.source), "settings": values}
    return output.finish(ExitCode.PASS, data)


def _rows(table: Any, prefix: str, settings: Settings) -> Iterator[tuple[str, Any, str]]:
    for field in fields(table):
        if not field.metadata.get("setting", True):
            continue
        name, value = f"{prefix}{field.name}", getattr(table, field.name)
        if is_dataclass(value):
            yield from _rows(value, f"{name}.", settings)
        else:
            given = name in settings.given
            yield name, value, str(settings.source) if given else "default"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return "none" if value is None else repr(value) if isinstance(value, str) else str(value)
