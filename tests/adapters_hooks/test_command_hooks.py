"""What a runtime hears when it asks whether an agent may stop: every answer, word for word."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.claude_code.dialect import ClaudeCodeDialect
from donewhen.adapters.codex.dialect import CodexDialect
from donewhen.adapters.command_hooks import CANARY, Dialect, HookKind, respond_to_event
from sentences import assert_sentences

CLAUDE, CODEX = ClaudeCodeDialect(), CodexDialect()
KINDS: tuple[HookKind, ...] = ("stop", "subagent-stop", "pre-tool-use", "task-completed")
STOPS: tuple[HookKind, ...] = ("stop", "subagent-stop", "task-completed")
TABLE = {
    "stop": "stop",
    "pre-tool-use": "stop",
    "subagent-stop": "subagent_stop",
    "task-completed": "task_completed",
}
PYTHON = shlex.quote(sys.executable)


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be counted in a project must not be counted together with an earlier run of these tests."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def guarded(project: Path, kind: HookKind = "stop", text: str = 'files = ["report.md"]') -> Path:
    (project / "donewhen.toml").write_text(f"[{TABLE[kind]}]\n{text}\n", encoding="utf-8")
    return project


def event(cwd: object, **more: object) -> dict[str, Any]:
    """What Claude Code sends, as far as it matters."""
    return {
        "session_id": "0b7e1c58-52a6-4f0c-8a10-2d4b8ef0a111",
        "transcript_path": "/no/such/transcript.jsonl",
        "cwd": str(cwd) if isinstance(cwd, Path) else cwd,
        "hook_event_name": "Stop",
        "stop_hook_active": False,
        "last_assistant_message": "I am done.",
        "background_tasks": [],
        "session_crons": [],
    } | more


def codex_event(cwd: object, **more: object) -> dict[str, Any]:
    """Exactly what Codex 0.166 sends."""
    return {
        "session_id": "01a1de9b-252d-7270-9904-2270a8e19d3e",
        "turn_id": "01a1de9b-254f-79e2-9a63-7f8296dcffd4",
        "transcript_path": None,
        "cwd": str(cwd) if isinstance(cwd, Path) else cwd,
        "hook_event_name": "Stop",
        "model": "scripted-model",
        "permission_mode": "bypassPermissions",
        "stop_hook_active": False,
        "last_assistant_message": None,
    } | more


def tool(cwd: object, name: str = "StructuredOutput", **more: object) -> dict[str, Any]:
    return {
        "session_id": "0b7e1c58-52a6-4f0c-8a10-2d4b8ef0a111",
        "cwd": str(cwd),
        "hook_event_name": "PreToolUse",
        "tool_name": name,
        "tool_input": {"answer": 42},
        "tool_use_id": "toolu_1",
    } | more


def ask(
    kind: HookKind,
    asked: Mapping[str, Any] | str,
    dialect: Dialect = CLAUDE,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> dict[str, Any]:
    """The answer, as the runtime gets it: through JSON."""
    stdin = asked if isinstance(asked, str) else json.dumps(asked)
    folder = cwd
    if folder is None:
        # A broken event leaves its record where the hook was called; never in the repository of these tests.
        here = asked.get("cwd") if isinstance(asked, Mapping) else None
        folder = Path(here) if isinstance(here, str) and "\0" not in here and Path(here).is_dir() else Path(os.devnull)
    answer: dict[str, Any] = json.loads(json.dumps(respond_to_event(kind, dialect, stdin, environ or {}, folder)))
    return answer


def refused(answer: Mapping[str, Any]) -> bool:
    """As Claude Code and Codex read it."""
    specific = answer.get("hookSpecificOutput", {})
    return answer.get("decision") == "block" or specific.get("permissionDecision") == "deny"


def reason(answer: Mapping[str, Any]) -> str:
    assert refused(answer), answer
    specific = answer.get("hookSpecificOutput", {})
    return str(answer.get("reason") or specific.get("permissionDecisionReason"))


# Claude Code


@pytest.mark.parametrize("kind", STOPS)
def test_claude_is_held_back_with_a_block_and_the_reason(project: Path, kind: HookKind) -> None:
    guarded(project, kind)
    assert ask(kind, event(project)) == {"decision": "block", "reason": "Missing required files: report.md"}


@pytest.mark.parametrize("kind", STOPS)
def test_claude_is_let_go_with_an_empty_answer_when_the_work_is_done(project: Path, kind: HookKind) -> None:
    guarded(project, kind)
    (project / "report.md").write_text("done")
    assert ask(kind, event(project)) == {}


def test_claudes_structured_output_is_denied_before_the_tool_runs(project: Path) -> None:
    guarded(project)
    assert ask("pre-tool-use", tool(project)) == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "Missing required files: report.md",
        }
    }


def test_claudes_structured_output_is_left_to_the_usual_permissions_when_the_work_is_done(project: Path) -> None:
    guarded(project)
    (project / "report.md").write_text("done")
    assert ask("pre-tool-use", tool(project)) == {}


@pytest.mark.parametrize("name", ["Bash", "Write", "structuredoutput", "mcp__x__StructuredOutput", "", None, 7])
def test_no_other_tool_is_ever_touched(project: Path, name: Any) -> None:
    guarded(project)
    assert ask("pre-tool-use", tool(project, name)) == {}


def test_no_other_tool_is_touched_when_the_settings_are_broken(project: Path) -> None:
    guarded(project, text="files = [")
    assert ask("pre-tool-use", tool(project, "Bash")) == {}
    assert reason(ask("pre-tool-use", tool(project))).startswith("gate_error: ")


def test_no_other_tool_is_touched_when_the_agents_folder_is_gone(project: Path) -> None:
    # An agent whose folder is gone needs its tools to get out of there.
    assert ask("pre-tool-use", tool(project / "gone", "Bash"), cwd=project) == {}


def test_a_sub_agents_structured_output_is_not_judged_by_its_parents_check(project: Path) -> None:
    # "Present only when the hook fires from within a subagent", says the client of agent_id.
    guarded(project)
    assert ask("pre-tool-use", tool(project, agent_id="a1", agent_type="general-purpose")) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_stop_has_checks_of_its_own(project: Path, kind: HookKind) -> None:
    others = {TABLE[one] for one in KINDS} - {TABLE[kind]}
    for other in sorted(others):
        (project / "donewhen.toml").write_text(f'[{other}]\nfiles = ["report.md"]\n')
        assert ask(kind, tool(project) if kind == "pre-tool-use" else event(project)) == {}
    guarded(project, kind)
    assert refused(ask(kind, tool(project) if kind == "pre-tool-use" else event(project)))


def test_everything_that_is_missing_is_told_at_once(project: Path) -> None:
    fails = f"{PYTHON} -c 'raise SystemExit(3)'"
    guarded(project, text=f"files = ['a', 'b']\ncommands = [{json.dumps(fails)}]")
    told = reason(ask("stop", event(project)))
    assert_sentences(told)


def test_commands_run_in_the_projects_folder_wherever_the_agent_is(project: Path) -> None:
    below = project / "src"
    below.mkdir()
    looks = f"{PYTHON} -c 'import pathlib; raise SystemExit(not pathlib.Path(\"donewhen.toml\").is_file())'"
    guarded(project, text=f"commands = [{json.dumps(looks)}]")
    for dialect, asked in ((CLAUDE, event(below)), (CODEX, codex_event(below))):
        assert ask("stop", asked, dialect, cwd=below) == {}


# Codex


@pytest.mark.parametrize("kind", ["stop", "subagent-stop"])
def test_codex_is_held_back_with_exactly_two_keys(project: Path, kind: HookKind) -> None:
    guarded(project, kind)
    expected = {"decision": "block", "reason": "Missing required files: report.md"}
    assert ask(kind, codex_event(project), CODEX) == expected


@pytest.mark.parametrize("kind", ["stop", "subagent-stop"])
def test_codex_is_let_go_with_an_empty_answer(project: Path, kind: HookKind) -> None:
    guarded(project, kind)
    (project / "report.md").write_text("done")
    assert ask(kind, codex_event(project), CODEX) == {}


def test_codex_tools_are_never_touched(project: Path) -> None:
    # Its structured output goes through Stop.
    guarded(project)
    for name in ("Bash", "StructuredOutput"):
        assert ask("pre-tool-use", codex_event(project, tool_name=name), CODEX) == {}


SITUATIONS: dict[str, tuple[str, str]] = {
    "a missing file": ('[stop]\nfiles = ["a"]\n', "{event}"),
    "a failing command": (f"[stop]\ncommands = [{json.dumps(PYTHON + ' -c raise(SystemExit(1))')}]\n", "{event}"),
    "a command that needs a shell": ('[stop]\ncommands = ["a | b"]\n', "{event}"),
    "a check that raises": ('[stop]\nfiles = ["out/secret"]\n', "{event}"),
    "a file outside": ('[stop]\nfiles = ["../a"]\n', "{event}"),
    "broken settings": ("[stop\n", "{event}"),
    "unknown settings": ("[stopp]\n", "{event}"),
    "no event": ('[stop]\nfiles = ["a"]\n', ""),
    "half an event": ('[stop]\nfiles = ["a"]\n', '{"session_id": "x'),
    "a canary": ('[stop]\nfiles = ["a"]\n', '{"donewhen_canary": "x"}'),
    "an empty canary": ('[stop]\nfiles = ["a"]\n', '{"donewhen_canary": ""}'),
}


@pytest.mark.parametrize(("settings", "stdin"), SITUATIONS.values(), ids=SITUATIONS)
def test_codex_never_gets_a_key_it_does_not_know_nor_a_reason_that_is_blank(
    project: Path, settings: str, stdin: str
) -> None:
    (project / "out").symlink_to("/")
    (project / "donewhen.toml").write_text(settings)
    text = stdin.replace("{event}", json.dumps(codex_event(project, stop_hook_active=True)))
    answers = [ask("stop", text, CODEX, cwd=project) for _ in range(8)]
    assert refused(answers[0])
    for answer in answers:
        assert set(answer) in ({"decision", "reason"}, set())
        if answer:
            assert answer["decision"] == "block"
            assert isinstance(answer["reason"], str)
            assert answer["reason"].strip()


def test_codex_is_asked_about_the_folder_of_its_session_and_not_of_some_claude(project: Path, tmp_path: Path) -> None:
    guarded(project)
    assert refused(ask("stop", codex_event(project), CODEX, {"CLAUDE_PROJECT_DIR": str(tmp_path)}))


# Nothing to do


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
@pytest.mark.parametrize("kind", KINDS)
def test_without_settings_every_stop_is_allowed_without_a_word_or_a_trace(
    project: Path, kind: HookKind, dialect: Dialect
) -> None:
    asked = tool(project) if kind == "pre-tool-use" else event(project)
    assert ask(kind, asked, dialect) == {}
    assert sorted(os.listdir(project)) == [".git"]


def test_settings_without_a_check_allow_every_stop(project: Path) -> None:
    guarded(project, text="max_stalled = 3")
    assert ask("stop", event(project)) == {}


@pytest.mark.parametrize("status", ["running", "pending"])
def test_claude_is_not_judged_while_work_goes_on_in_the_background(project: Path, status: str) -> None:
    # "In-flight background work (running/pending + backgrounded)", says the client.
    guarded(project)
    task = {"id": "b1", "type": "shell", "status": status, "description": "sleep", "command": "sleep 100"}
    assert ask("stop", event(project, background_tasks=[task])) == {}


@pytest.mark.parametrize(
    "tasks", [[], None, "none", 7, True, {"status": "running"}, ["running"], [{"status": "completed"}]], ids=str
)
def test_what_is_no_work_in_the_background_exempts_nobody(project: Path, tasks: object) -> None:
    guarded(project)
    assert refused(ask("stop", event(project, background_tasks=tasks)))


def test_a_sub_agent_that_runs_in_the_background_is_judged_although_it_is_itself_such_work(project: Path) -> None:
    guarded(project, "subagent-stop")
    itself = [
        {"id": "a7", "type": "subagent", "status": "running", "description": "x", "agent_type": "general-purpose"}
    ]
    asked = event(project, agent_id="a7", agent_type="general-purpose", background_tasks=itself)
    assert refused(ask("subagent-stop", asked))


@pytest.mark.parametrize("kind", ["missing", "pipe that nobody writes to", "folder"])
def test_the_transcript_is_never_read(project: Path, tmp_path: Path, kind: str) -> None:
    guarded(project)
    transcript = tmp_path / "transcript.jsonl"
    if kind == "folder":
        transcript.mkdir()
    elif kind != "missing":
        os.mkfifo(transcript)  # reading would never end
    assert reason(ask("stop", event(project, transcript_path=str(transcript)))) == "Missing required files: report.md"
    assert refused(ask("stop", codex_event(project, transcript_path=str(transcript)), CODEX))


def test_an_event_without_a_transcript_or_a_last_message_is_fine(project: Path) -> None:
    guarded(project)
    asked = event(project)
    for name in ("transcript_path", "last_assistant_message", "background_tasks", "session_crons", "hook_event_name"):
        del asked[name]
    assert reason(ask("stop", asked)) == "Missing required files: report.md"


def test_claudes_project_folder_wins_over_the_folder_its_shell_is_in(project: Path, tmp_path: Path) -> None:
    guarded(project)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    here = {"CLAUDE_PROJECT_DIR": str(project)}
    assert refused(ask("stop", event(elsewhere), environ=here))
    assert refused(ask("stop", event(elsewhere / "gone"), environ=here, cwd=tmp_path))
    assert ask("stop", event(project), environ={"CLAUDE_PROJECT_DIR": str(elsewhere)}) == {}
    assert refused(ask("stop", event(project), environ={"CLAUDE_PROJECT_DIR": ""}))


# The canary


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
def test_a_canary_is_answered_with_a_block_and_no_check_is_made(project: Path, dialect: Dialect) -> None:
    guarded(project, text="files = [")
    asked = event(project) | {CANARY: "f00d"}
    assert ask("stop", asked, dialect) == {"decision": "block", "reason": "canary f00d"}
    assert not (project / ".donewhen").exists()


# What goes wrong


NOT_EVENTS: dict[str, str] = {
    "nothing": "",
    "white space": " \n",
    "a word": "hello",
    "half a line": '{"session_id": "abc", "cwd": "/tm',
    "two objects": "{}{}",
    "a log line first": "starting\n{}",
    "an array": "[]",
    "a text": '"stop"',
    "a number": "1",
    "null": "null",
    "a number that is too long": '{"x": ' + "9" * 5000 + "}",
    "a nul": "\0",
    "deeply nested": "[" * 200_000,
    "deeply nested objects": '{"cwd":' * 200_000,
    "a byte order mark": "\ufeff{}",
    "a lone surrogate": '{"cwd": "\\ud800"}',
}


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
@pytest.mark.parametrize("stdin", NOT_EVENTS.values(), ids=NOT_EVENTS)
def test_what_is_no_event_holds_the_agent_back_and_says_that_the_check_is_broken(
    project: Path, stdin: str, dialect: Dialect
) -> None:
    (project / "donewhen.toml").write_text("".join(f'[{TABLE[kind]}]\nfiles = ["report.md"]\n' for kind in STOPS))
    for kind in STOPS:
        told = reason(ask(kind, stdin, dialect, cwd=project))
        assert str(kind) in told
        assert_sentences(told)
        assert len(told) < 1000
        assert "\n" not in told


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
@pytest.mark.parametrize("stdin", ["", "hello", "[]", '{"session_id": "abc'])
def test_what_is_no_event_holds_nobody_back_where_nothing_is_set_up(
    project: Path, stdin: str, dialect: Dialect
) -> None:
    for kind in KINDS:
        assert ask(kind, stdin, dialect, cwd=project) == {}
    assert sorted(os.listdir(project)) == [".git"]


def test_a_huge_event_is_read(project: Path) -> None:
    guarded(project)
    asked = event(project, last_assistant_message="x" * 20_000_000)
    assert reason(ask("stop", asked)) == "Missing required files: report.md"


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
@pytest.mark.parametrize("cwd", [None, 7, True, [], {}, "", "/no/such/folder", "/etc/passwd", "a\0b", "\ud800"])
def test_an_event_whose_folder_is_none_holds_the_agent_back(project: Path, cwd: object, dialect: Dialect) -> None:
    guarded(project)
    told = reason(ask("stop", event(cwd), dialect, cwd=project))
    assert told.startswith("gate_error: ")
    assert_sentences(told)
    assert len(told) < 1000


def test_an_event_whose_folder_has_an_endless_name_holds_the_agent_back(project: Path) -> None:
    told = reason(ask("stop", event("/" + "x" * 9000), cwd=project))
    assert told.startswith("gate_error: ")
    assert len(told) < 1000


def test_an_event_without_a_folder_holds_the_agent_back(project: Path) -> None:
    guarded(project)
    asked = event(project)
    del asked["cwd"]
    assert_sentences(reason(ask("stop", asked, cwd=project)))


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
@pytest.mark.parametrize("value", [None, 7, 1.5, True, "", [], {"a": 1}, "\ud800", "x" * 5000])
def test_fields_of_the_wrong_kind_never_let_an_agent_go(project: Path, value: object, dialect: Dialect) -> None:
    guarded(project)
    names = ("session_id", "turn_id", "transcript_path", "hook_event_name", "last_assistant_message", "session_crons")
    for name in names:
        assert reason(ask("stop", event(project, **{name: value}), dialect)) == "Missing required files: report.md"


def test_the_check_may_raise_and_the_agent_is_still_held_back(project: Path) -> None:
    (project / "out").symlink_to("/")
    guarded(project, text='files = ["out/secret"]')
    told = reason(ask("stop", event(project)))
    assert told.startswith("gate_error: the completion check FileExistsChecker raised PathEscapeError")


@pytest.mark.parametrize(
    "text",
    [
        "[stop]\nfiles = [\n",
        "[stop]\nfile = ['a']\n",
        "[stop]\nfiles = 'a'\n",
        "[stop]\ncommands = ['a | b']\n",
        "[stop.tests]\nrun = 'pytest'\n",
        "[stop]\nmax_stalled = 0\nfiles = ['a']\n",
    ],
)
def test_a_mistake_in_the_settings_holds_the_agent_back_and_names_the_file(project: Path, text: str) -> None:
    (project / "donewhen.toml").write_text(text)
    for dialect, asked in ((CLAUDE, event(project)), (CODEX, codex_event(project))):
        told = reason(ask("stop", asked, dialect))
        assert told.startswith("gate_error: ")
        assert_sentences(told)
        assert "donewhen.toml" in told


def test_a_check_that_takes_too_long_is_abandoned_and_holds_the_agent_back(project: Path) -> None:
    sleeps = f"{PYTHON} -c 'import time; time.sleep(600)'"
    guarded(project, text=f"commands = [{json.dumps(sleeps)}]\ncheck_timeout = 0.2")
    assert reason(ask("stop", event(project))).startswith("check_timeout: ")


def test_output_of_a_command_cannot_drive_the_terminal_or_break_the_answer(project: Path) -> None:
    (project / "bad.py").write_text(
        "import sys; sys.stdout.buffer.write(b'\\x1b[31mred\\xff\\x00\\n'); raise SystemExit(1)"
    )
    guarded(project, text=f"commands = [{json.dumps(PYTHON + ' bad.py')}]")
    told = reason(ask("stop", codex_event(project), CODEX))
    assert "\x1b" not in told
    assert "\0" not in told
    assert "red" in told


@pytest.mark.parametrize("name", ["caf\u00e9", "a b", "a'b", 'a"b', "$HOME", "a\nb", os.fsdecode(b"caf\xe9")])
def test_a_project_in_an_oddly_named_folder_is_judged_like_any_other(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    try:
        (folder / ".git").mkdir(parents=True)
    except OSError:
        pytest.skip("this filesystem has no such names")
    guarded(folder)
    assert reason(ask("stop", event(folder))) == "Missing required files: report.md"
    guarded(folder, text="files = [")
    assert reason(ask("stop", codex_event(folder), CODEX)).startswith("gate_error: ")
