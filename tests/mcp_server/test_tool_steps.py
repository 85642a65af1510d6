"""Next steps for an agent with tools."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import donewhen.jobs
from donewhen.mcp.tool_steps import PEOPLES_VERBS, tool_step
from donewhen.mcp.tools import BY_NAME

PERSON = "No tool does this. A person has to: "
SHELL = "No tool does this. In a shell: "


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("donewhen start auth-001", 'start_job(job="auth-001")'),
        ("donewhen why auth-001", 'show_job(job="auth-001")'),
        ("donewhen reward JOB --explain", 'check_job(job="JOB")'),
        ("donewhen contract diff auth-001", 'show_job(job="auth-001")'),
        ("donewhen run auth-001 --criterion AC-2", 'run_evidence(job="auth-001", criterion="AC-2")'),
        ("donewhen run auth-001 --again", 'run_evidence(job="auth-001", again=true)'),
        ("donewhen ready", "ready_jobs()"),
        ("donewhen status", "list_jobs()"),
        ("donewhen check", "check_stop()"),
        ('Ask for it: donewhen ask J-1 --question "…"', 'Ask for it: ask_person(job="J-1", question="…")'),
        ("Start it: donewhen start JOB. Work counts.", 'Start it: start_job(job="JOB"). Work counts.'),
        ("run the verification through donewhen run.", "run the verification through run_evidence."),
        ("block: donewhen block J --reason …, or ask", 'block: block_job(job="J", reason="…"), or ask'),
        ("donewhen agree auth-001", f"{PERSON}donewhen agree auth-001"),
        ("donewhen review", f"{PERSON}donewhen review"),
        (
            'donewhen decide J-1 --raise-budget 4 --reason "…"',
            f'{PERSON}donewhen decide J-1 --raise-budget 4 --reason "…"',
        ),
        ("Start with: donewhen init --jobs", f"{SHELL}Start with: donewhen init --jobs"),
        ("Have a person agree: donewhen agree", "Have a person agree: donewhen agree"),
        ("donewhen lessons add --job J-1", f"{SHELL}donewhen lessons add --job J-1"),
        ("DONEWHEN_DEBUG=1 donewhen next J-1", f"{SHELL}DONEWHEN_DEBUG=1 donewhen next J-1"),
        ("donewhen run-book J-1", f"{SHELL}donewhen run-book J-1"),
        ("Fix the tests.", "Fix the tests."),
        ("", ""),
    ],
)
def test_a_step_names_the_tool(step: str, expected: str) -> None:
    assert tool_step(step) == expected


def test_every_tool_that_a_step_names_exists_and_none_is_a_persons() -> None:
    named = {name for step in _steps() for name in re.findall(r"(\w+)\(", tool_step(step))}
    assert named
    assert named <= BY_NAME.keys()
    assert not PEOPLES_VERBS & BY_NAME.keys()


def test_no_step_of_a_job_leaves_a_command_that_a_tool_does() -> None:
    verbs = "start|run|complete|why|reward|ready|status|ask|block|dispute"
    left = [step for step in _steps() if re.search(rf"(?<!=1 )donewhen ({verbs})\b(?!-)", tool_step(step))]
    assert left == []


def _steps() -> list[str]:
    """Every text in the jobs' code that begins with a command: the next steps."""
    sources = Path(donewhen.jobs.__file__).parent.rglob("*.py")
    found = [
        text
        for source in sources
        for text in re.findall(r'"((?:donewhen|[A-Z][^"]*: donewhen) [a-z][^"(]*)"', source.read_text())
    ]
    return [text.replace("{job}", "J-1").replace("{job.id}", "J-1").replace("{name}", "J-1") for text in found]
