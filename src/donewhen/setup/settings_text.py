"""The settings that `donewhen init` writes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from donewhen.setup.test_commands import TestCommand

_HEADER = """\
# What must hold when an agent wants to stop. `donewhen config show` lists all settings.

"""


def stop_table(commands: Sequence[TestCommand], *, jobs: bool, prefix: str = "") -> str:
    """The table with the checks for a stop; ``prefix`` is where it stands in a shared file."""
    lines = [f"[{prefix}stop]"]
    tests = next((command for command in commands if command.reports), None)
    others = [command.text for command in commands if command is not tests]
    if tests is not None:
        lines.append(f"tests = {{ run = {_quoted(tests.text)} }}")
    if others:
        lines.append(f"commands = [{', '.join(map(_quoted, others))}]")
    if jobs:
        lines.append("jobs = true")
    return "\n".join(lines) + "\n"


def settings_file(commands: Sequence[TestCommand], *, jobs: bool) -> str:
    """A new settings file."""
    return _HEADER + stop_table(commands, jobs=jobs)


def _quoted(text: str) -> str:
    # A JSON string is a TOML string, except for the character that TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
