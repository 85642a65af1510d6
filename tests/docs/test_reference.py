"""The pages that are made from the code say what the code says."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from donewhen.adapters.claude_agent_sdk import ClaudeAgentSDKClientConfig
from donewhen.adapters.hook_targets import HOOK_TARGETS, HOOK_TIMEOUT
from donewhen.cli._app import app
from donewhen.cli.hook import HOOK_KINDS
from donewhen.completion import REASONS, ReasonCode
from donewhen.config import GuardSettings, Settings, TestSettings
from donewhen.foundation.errors import ExitCode

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def test_generated_pages_and_pictures_are_up_to_date() -> None:
    command = [sys.executable, "-m", "tools.write_docs", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    yield context.command_path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            if not below.hidden:
                yield from commands(below, click.Context(below, context, info_name=name))


@pytest.mark.parametrize(("path", "command"), [*commands(app, click.Context(app, info_name="donewhen"))])
def test_every_command_and_every_option_is_in_the_reference(path: str, command: click.Command) -> None:
    text = page("cli.md")
    assert command is app or f"# {path}\n" in text
    own = text.partition(f"# {path}\n")[2].partition("\n#")[0]
    for param in command.params:
        # Hidden options belong to the scripts of the original tool; their page is the reference of the job files.
        names = param.opts if isinstance(param, click.Option) and not param.hidden else []
        for name in names:
            # The options that every command has are described once.
            assert f"`{name}" in (text if name in ("--json", "--no-color") or command is app else own)


def test_every_reason_code_is_in_the_reference_with_its_meaning() -> None:
    for code in ReasonCode:
        assert f"| `{code.value}` | {REASONS[code].meaning} |" in page("reasons.md")


def test_every_exit_status_is_in_the_reference() -> None:
    for one in ExitCode:
        assert f"| {one.value} | `{one.name}` |" in page("errors.md")


TABLES = {field.name: field for field in fields(Settings) if field.metadata.get("setting", True)}


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("In each of these tables", GuardSettings),
        ("In `tests`", TestSettings),
        *((f"In `[{name}]`", one.default_factory) for name, one in TABLES.items() if one.type != "GuardSettings"),
    ],
)
def test_every_setting_is_in_the_reference_with_its_meaning(heading: str, kind: type[Any]) -> None:
    below = page("settings.md").partition(f"## {heading}: ")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in below.splitlines() if line.startswith("| `")]
    said = {cells[0].strip().strip("`"): cells[-1].strip() for cells in rows}
    assert said.keys() == {field.name for field in fields(kind) if field.metadata.get("setting", True)}
    assert all(said.values())


def test_every_kind_of_stop_is_in_the_reference() -> None:
    for name, one in TABLES.items():
        assert (f"| `[{name}]` |" in page("settings.md")) == (one.type == "GuardSettings")


def test_a_setting_is_described_with_the_default_that_the_code_has() -> None:
    assert GuardSettings().check_timeout < HOOK_TIMEOUT
    assert f"| `check_timeout` | seconds | {GuardSettings().check_timeout:g} |" in page("settings.md")
    assert f"time limit of {HOOK_TIMEOUT} seconds" in page("hooks.md")


def test_every_hook_and_every_event_is_in_the_reference() -> None:
    rows = [line for line in page("hooks.md").splitlines() if line.startswith("| `")]
    for kind in HOOK_KINDS:
        assert any(row.startswith(f"| `{kind}` |") for row in rows)
    for runtime in HOOK_TARGETS.values():
        assert f"{runtime.about.project_folder}/{runtime.about.hook_file}" in page("hooks.md")
        assert runtime.about.home_variable in page("hooks.md")
        for event, name, tool in runtime.events:
            (row,) = [row for row in rows if row.startswith(f"| `{name}` |")]
            assert f"`{event}`" in row
            assert tool is None or f"`{tool}`" in row


def test_every_field_of_the_sdk_configuration_is_on_its_page() -> None:
    text = (
        (ROOT / "docs" / "howto" / "claude-agent-sdk.md").read_text(encoding="utf-8").partition("## Configuration")[2]
    )
    for field in fields(ClaudeAgentSDKClientConfig):
        assert f"`{field.name}`" in text


def documented_paths() -> list[str]:
    """The paths of the reference, and those that the wheel is tested for."""
    source = (ROOT / "tests" / "packaging" / "test_wheel.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DOCUMENTED":
            return sorted({*ast.literal_eval(node.value), *paths_of_the_reference()})
    raise LookupError("tests/packaging/test_wheel.py has no DOCUMENTED")


def paths_of_the_reference() -> list[str]:
    return [line.removeprefix("## ") for line in page("api.md").splitlines() if line.startswith("## donewhen")]


@pytest.mark.parametrize("path", documented_paths())
def test_every_public_name_of_a_documented_path_is_in_the_reference(path: str) -> None:
    text = page("api.md")
    assert f"\n## {path}\n" in text
    own = text.partition(f"\n## {path}\n")[2].partition("\n## ")[0]
    for name in getattr(import_module(path), "__all__", ()):
        assert f"\n### {name}\n" in own or f"`{name}`" in own


def test_every_room_is_in_the_picture_of_the_house() -> None:
    picture = (ROOT / "docs" / "images" / "house.svg").read_text(encoding="utf-8")
    rooms = [path.parent.name for path in (ROOT / "src" / "donewhen").glob("*/__init__.py")]
    assert rooms
    for room in rooms:
        assert f">{room}</text>" in picture


def test_every_dependency_has_its_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    for requirement in [*project["dependencies"], *(one for extra in extras for one in extra)]:
        name = requirement.partition(">")[0].partition("[")[0]
        assert f"| `{name}` |" in text
