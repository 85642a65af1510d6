"""Hooks in a project's terms: what a newer version of donewhen writes replaces what an older one had written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.hook_targets import HOOK_TARGETS
from donewhen.config import Settings
from donewhen.config.hook_script import program_of, script_for
from donewhen.jobs.contract.terms import compare_terms, project_terms
from donewhen.jobs.ledger.terms_content import ProjectTerms
from donewhen.jobs.plan.creating import create_project
from donewhen.jobs.plan.workspace import Workspace

# As an earlier version wrote it.
OLD = (
    """e=$(cat); printf %s "$e" | PROGRAM hook KIND --runtime RUNTIME || { printf %s "$e" | """
    """grep -q '"stop_hook_active": *true' && exit 0; echo "donewhen could not be run, so this stop is not verified. """
    """Install it, or remove its hooks." >&2; exit 2; }"""
)
OLDER = (
    """PROGRAM hook KIND --runtime RUNTIME || { grep -q '"stop_hook_active": *true' && exit 0; echo "donewhen could """
    """not be run, so this stop is not verified. Install it, or remove its hooks." >&2; exit 2; }"""
)
OLDEST = "PROGRAM hook KIND --runtime RUNTIME"
OLD_EVENTS = {
    "claude": {"Stop": "stop", "SubagentStop": "subagent-stop", "TaskCompleted": "task-completed"},
    "codex": {"Stop": "stop", "SubagentStop": "subagent-stop"},
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


SCRIPTS = {"claude": ".claude/donewhen/hook", "codex": ".codex/donewhen/hook"}
GENUINE = script_for("donewhen", ".claude")


def put(root: Path, runtime: str, lines: dict[str, str], timeout: int = 1800) -> None:
    path = HOOK_TARGETS[runtime].path("project", root, {})
    path.parent.mkdir(exist_ok=True)
    hooks: dict[str, Any] = {
        event: [{"hooks": [{"type": "command", "command": line, "timeout": timeout}]}] for event, line in lines.items()
    }
    path.write_text(json.dumps({"hooks": hooks}))


def old_lines(runtime: str, form: str, program: str) -> dict[str, str]:
    return {
        event: form.replace("PROGRAM", program).replace("KIND", kind).replace("RUNTIME", runtime)
        for event, kind in OLD_EVENTS[runtime].items()
    }


def new_lines(root: Path, runtime: str, program: str = "donewhen") -> dict[str, str]:
    script(root, script_for(program, HOOK_TARGETS[runtime].about.project_folder), runtime)
    entries = HOOK_TARGETS[runtime].entries("project", root, {})
    return {entry.event: entry.command for entry in entries if entry.event in OLD_EVENTS[runtime]}


def script(root: Path, content: str, runtime: str = "claude") -> None:
    path = root / SCRIPTS[runtime]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def terms(workspace: Workspace) -> ProjectTerms:
    return project_terms(workspace.project(), Settings(root=workspace.root))


def kinds(before: ProjectTerms, after: ProjectTerms) -> set[str]:
    return {change.kind for change in compare_terms(before, after)}


@pytest.mark.parametrize("form", [OLD, OLDER, OLDEST], ids=["old", "older", "oldest"])
@pytest.mark.parametrize("runtime", ["claude", "codex"])
def test_replacing_an_older_line_is_not_loosening(workspace: Workspace, runtime: str, form: str) -> None:
    root = workspace.root
    put(root, runtime, old_lines(runtime, form, "donewhen"))
    before = terms(workspace)
    put(root, runtime, new_lines(root, runtime))
    after = terms(workspace)
    assert kinds(before, after) == {"tightened", "added"}
    assert any(hook.startswith(f"{SCRIPTS[runtime]}: sha256:") for hook in after.hooks)
    # The way back is a loosening: the older line trusts more.
    assert "removed" in kinds(after, before)


def test_a_program_in_the_project_stays_the_same_program(workspace: Workspace) -> None:
    put(workspace.root, "claude", old_lines("claude", OLD, '"$CLAUDE_PROJECT_DIR"/.venv/bin/donewhen'))
    before = terms(workspace)
    put(workspace.root, "claude", new_lines(workspace.root, "claude", '"$root"/.venv/bin/donewhen'))
    assert kinds(before, terms(workspace)) == {"tightened", "added"}


def test_another_program_is_a_removal(workspace: Workspace) -> None:
    put(workspace.root, "claude", old_lines("claude", OLD, "donewhen"))
    before = terms(workspace)
    put(workspace.root, "claude", new_lines(workspace.root, "claude", "/elsewhere/donewhen"))
    assert "removed" in kinds(before, terms(workspace))


@pytest.mark.parametrize(
    "content",
    [
        "#!/bin/sh\nexit 0\n",
        GENUINE.replace("exit 2", "exit 0"),
        GENUINE + "\n",
        script_for("true #", ".claude"),
        GENUINE.replace('program() { donewhen "$@"; }', 'program() { true; donewhen "$@"; }'),
        script_for("donewhen", ".codex"),
    ],
    ids=["empty", "let go", "longer", "a comment", "something before", "another folder"],
)
def test_a_script_that_donewhen_has_not_written_replaces_nothing(workspace: Workspace, content: str) -> None:
    put(workspace.root, "claude", old_lines("claude", OLD, "donewhen"))
    before = terms(workspace)
    put(workspace.root, "claude", new_lines(workspace.root, "claude"))
    script(workspace.root, content)
    assert "removed" in kinds(before, terms(workspace))


def test_the_script_is_part_of_the_agreement(workspace: Workspace) -> None:
    put(workspace.root, "claude", new_lines(workspace.root, "claude"))
    before = terms(workspace)
    assert before.hooks == terms(workspace).hooks
    script(workspace.root, "#!/bin/sh\nexit 0\n")
    assert "removed" in kinds(before, terms(workspace))
    (workspace.root / SCRIPTS["claude"]).unlink()
    missing = terms(workspace)
    assert ".claude/donewhen/hook: missing" in missing.hooks
    assert "removed" in kinds(before, missing)
    script(workspace.root, GENUINE)
    assert kinds(missing, terms(workspace)) == {"tightened"}
    assert kinds(before, terms(workspace)) == set()


def test_a_line_that_only_looks_like_ours_is_another_hook(workspace: Workspace) -> None:
    put(workspace.root, "claude", old_lines("claude", OLD, "donewhen"))
    before = terms(workspace)
    lines = {event: f"true; {line}" for event, line in new_lines(workspace.root, "claude").items()}
    put(workspace.root, "claude", lines)
    assert "removed" in kinds(before, terms(workspace))


def test_a_line_that_starts_a_script_elsewhere_is_another_hook(workspace: Workspace) -> None:
    put(workspace.root, "claude", old_lines("claude", OLD, "donewhen"))
    before = terms(workspace)
    lines = new_lines(workspace.root, "claude")
    moved = {event: line.replace(".claude/donewhen", "build/donewhen") for event, line in lines.items()}
    put(workspace.root, "claude", moved)
    assert "removed" in kinds(before, terms(workspace))


def test_a_shorter_timeout_is_another_hook(workspace: Workspace) -> None:
    put(workspace.root, "claude", old_lines("claude", OLD, "donewhen"))
    before = terms(workspace)
    put(workspace.root, "claude", new_lines(workspace.root, "claude"), timeout=1)
    assert "removed" in kinds(before, terms(workspace))


def test_a_hook_that_is_gone_is_gone(workspace: Workspace) -> None:
    put(workspace.root, "claude", old_lines("claude", OLD, "donewhen"))
    before = terms(workspace)
    lines = new_lines(workspace.root, "claude")
    del lines["Stop"]
    put(workspace.root, "claude", lines)
    assert "removed" in kinds(before, terms(workspace))


def test_hooks_without_the_script_do_not_name_it(workspace: Workspace) -> None:
    script(workspace.root, GENUINE)
    put(workspace.root, "claude", old_lines("claude", OLD, "donewhen"))
    assert not any(hook.startswith(SCRIPTS["claude"]) for hook in terms(workspace).hooks)


@pytest.mark.parametrize(
    "program", ["donewhen", "'/a b/bin/donewhen'", '"$root"/.venv/bin/donewhen', "python -m donewhen"]
)
def test_a_script_says_what_it_starts(program: str) -> None:
    assert program_of(script_for(program)) == program
