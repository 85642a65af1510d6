"""``donewhen hook`` as a runtime calls it: a real process, an event on standard input, an answer on standard output."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import donewhen
from donewhen.adapters.command_hooks import HookKind
from donewhen.foundation import size_limits
from donewhen_kit import run_main
from sentences import assert_sentences

DONEWHEN = [sys.executable, "-m", "donewhen"]
SOURCE = Path(donewhen.__file__).parent.parent
PYTHON = shlex.quote(sys.executable)
KINDS: tuple[HookKind, ...] = ("stop", "subagent-stop", "pre-tool-use", "task-completed")
MISSING = "Missing required files: report.md"
HANG_GUARD = 100.0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def guarded(project: Path) -> Path:
    tables = ("stop", "subagent_stop", "task_completed")
    (project / "donewhen.toml").write_text("".join(f'[{table}]\nfiles = ["report.md"]\n' for table in tables))
    return project


def event(cwd: object, **more: object) -> str:
    asked = {"session_id": "s1", "cwd": str(cwd), "hook_event_name": "Stop", "stop_hook_active": False}
    return json.dumps(asked | more)


def hook(
    *arguments: str, stdin: str | bytes, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    own = {"PATH": os.environ["PATH"], "HOME": str(cwd), "TMPDIR": str(cwd.parent)} | (env or {})
    return run_main(["hook", *arguments], cwd, own, stdin)


def answered(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The answer, which is one line of JSON and nothing else."""
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    assert done.stdout.endswith("\n")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


# Answers


@pytest.mark.parametrize("runtime", ["claude", "codex"])
@pytest.mark.parametrize("kind", ["stop", "subagent-stop", "task-completed"])
def test_an_agent_is_held_back_and_then_let_go(guarded: Path, kind: str, runtime: str) -> None:
    arguments = (kind, "--runtime", runtime)
    assert answered(hook(*arguments, stdin=event(guarded), cwd=guarded)) == {"decision": "block", "reason": MISSING}
    (guarded / "report.md").write_text("done")
    assert answered(hook(*arguments, stdin=event(guarded), cwd=guarded)) == {}


def test_structured_output_is_denied_and_then_left_alone(guarded: Path) -> None:
    asked = event(guarded, tool_name="StructuredOutput", tool_input={"a": 1})
    answer = answered(hook("pre-tool-use", "--runtime", "claude", stdin=asked, cwd=guarded))
    assert answer == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": MISSING,
        }
    }
    (guarded / "report.md").write_text("done")
    assert answered(hook("pre-tool-use", "--runtime", "claude", stdin=asked, cwd=guarded)) == {}
    (guarded / "report.md").unlink()
    other = event(guarded, tool_name="Bash", tool_input={"command": "ls"})
    assert answered(hook("pre-tool-use", "--runtime", "claude", stdin=other, cwd=guarded)) == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ("stop", "--runtime", "claude"),
        ("stop", "--runtime=claude"),
        ("--runtime", "claude", "stop"),
        ("--runtime=claude", "stop"),
    ],
    ids=" ".join,
)
def test_the_runtime_may_be_written_in_every_usual_way(guarded: Path, arguments: tuple[str, ...]) -> None:
    assert answered(hook(*arguments, stdin=event(guarded), cwd=guarded))["decision"] == "block"


def test_it_works_behind_an_option_too(guarded: Path, tmp_path: Path) -> None:
    words = ["-C", str(guarded), "hook", "stop", "--runtime", "claude"]
    done = run_main(words, tmp_path, os.environ, event(guarded))
    assert answered(done) == {"decision": "block", "reason": MISSING}


def test_claudes_project_folder_is_taken_from_the_environment(guarded: Path, tmp_path: Path) -> None:
    told = {"CLAUDE_PROJECT_DIR": str(guarded)}
    done = hook("stop", "--runtime", "claude", stdin=event(tmp_path), cwd=tmp_path, env=told)
    assert answered(done)["decision"] == "block"
    assert (guarded / ".donewhen").is_dir()
    assert not (tmp_path / ".donewhen").exists()


def test_five_processes_hold_the_agent_back_and_the_sixth_lets_it_go_with_a_note(guarded: Path) -> None:
    done = [
        hook("stop", "--runtime", "claude", stdin=event(guarded, stop_hook_active=number > 0), cwd=guarded)
        for number in range(6)
    ]
    assert [answered(one).get("decision") for one in done] == ["block"] * 5 + [None]
    assert set(answered(done[5])) == {"systemMessage"}
    assert "UNVERIFIED" in done[5].stdout


def test_what_a_command_prints_does_not_get_between_the_runtime_and_the_answer(project: Path) -> None:
    # One log line before the JSON, and Codex and Claude Code let the agent go.
    (project / "loud.py").write_text("import sys; print('out'); print('err', file=sys.stderr); raise SystemExit(1)")
    (project / "donewhen.toml").write_text(f"[stop]\ncommands = [{json.dumps(PYTHON + ' loud.py')}]\n")
    answer = answered(hook("stop", "--runtime", "codex", stdin=event(project), cwd=project))
    assert str(PYTHON) in answer["reason"]
    assert_sentences(answer["reason"])


def test_a_command_does_not_eat_the_event_nor_wait_for_the_runtime(project: Path) -> None:
    (project / "reads.py").write_text("import sys; raise SystemExit(sys.stdin.read() != '')")
    (project / "donewhen.toml").write_text(f"[stop]\ncommands = [{json.dumps(PYTHON + ' reads.py')}]\n")
    assert answered(hook("stop", "--runtime", "claude", stdin=event(project), cwd=project)) == {}


@pytest.mark.parametrize("setting", ["error", "default"])
def test_warnings_of_python_do_not_spoil_the_answer(guarded: Path, setting: str) -> None:
    told = {"PYTHONWARNINGS": setting, "PYTHONDEVMODE": "1"}
    done = hook("stop", "--runtime", "codex", stdin=event(guarded), cwd=guarded, env=told)
    assert answered(done)["decision"] == "block"


# Broken events


@pytest.mark.parametrize(
    "stdin",
    [b"", b"hello", b"[]", b'{"session_id": "s1", "cwd": "/t', b"{}", b"\0", b"[" * 100_000, b'{"cwd": "\\u0000"}'],
    ids=lambda value: repr(value[:20]),
)
def test_a_broken_event_is_answered_with_a_block_and_status_0(guarded: Path, stdin: bytes) -> None:
    answer = answered(hook("stop", "--runtime", "codex", stdin=stdin, cwd=guarded))
    assert set(answer) == {"decision", "reason"}
    assert_sentences(answer["reason"])


@pytest.mark.parametrize("encoding", ["utf-8:strict", "utf-8:surrogateescape", "ascii", "latin-1"])
@pytest.mark.parametrize("place", ["in a text", "alone"])
def test_an_event_that_is_no_utf_8_is_answered_with_a_block_too(guarded: Path, place: str, encoding: str) -> None:
    # Which encoding Python would choose for standard input depends on the machine.
    stdin = event(guarded, x="?").encode().replace(b"?", b"\xff\xfe") if place == "in a text" else b"\xff\xfe\0"
    done = hook("stop", "--runtime", "codex", stdin=stdin, cwd=guarded, env={"PYTHONIOENCODING": encoding})
    assert answered(done)["decision"] == "block"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_an_event_is_utf_8_whatever_the_locale_says(tmp_path: Path, encoding: str) -> None:
    folder = tmp_path / "Größe"
    folder.mkdir()
    (folder / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    asked = json.dumps({"session_id": "s1", "cwd": str(folder)}, ensure_ascii=False)
    done = hook("stop", "--runtime", "codex", stdin=asked, cwd=folder, env={"PYTHONIOENCODING": encoding})
    assert answered(done) == {"decision": "block", "reason": MISSING}


def test_a_closed_standard_input_is_answered_with_a_block(guarded: Path) -> None:
    line = f"{shlex.join([*DONEWHEN, 'hook', 'stop', '--runtime', 'codex'])} <&-"
    done = subprocess.run(["sh", "-c", line], cwd=guarded, capture_output=True, text=True, timeout=HANG_GUARD)
    assert answered(done)["decision"] == "block"


def test_an_agent_whose_folder_was_removed_under_it_is_answered(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    before = traces("/.donewhen")
    source = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "TMPDIR": str(tmp_path)}
    line = f"rmdir ../gone; exec {shlex.join([*DONEWHEN, 'hook', 'stop', '--runtime', 'codex'])}"
    done = subprocess.run(
        ["sh", "-c", line],
        input=event(gone),
        cwd=gone,
        env=source,
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
    )
    assert answered(done)["decision"] == "block"
    assert traces("/.donewhen") == before


def traces(folder: str) -> dict[str, int]:
    """What stands there, and when it was last written."""
    return {str(path): path.stat().st_mtime_ns for path in Path(folder).rglob("*")}


@pytest.mark.parametrize(
    "broken",
    [b'{"attempts": 1e999, "refusals": 1, "stalled": 1, "last_reason": null}', b"[" * 100_000, b"\xff", b"{"],
    ids=["infinity", "nested", "no text", "half"],
)
def test_a_broken_state_file_never_lets_an_agent_go(guarded: Path, broken: bytes) -> None:
    asked = event(guarded, stop_hook_active=True)
    hook("stop", "--runtime", "codex", stdin=asked, cwd=guarded)
    (path,) = (guarded / ".donewhen" / "state").glob("attempts-*.json")
    path.write_bytes(broken)
    assert answered(hook("stop", "--runtime", "codex", stdin=asked, cwd=guarded))["reason"] == MISSING


def test_a_huge_event_is_answered(guarded: Path) -> None:
    asked = event(guarded, last_assistant_message="x" * 10_000_000)
    assert answered(hook("stop", "--runtime", "codex", stdin=asked, cwd=guarded))["reason"] == MISSING


# Mistaken command lines


MISTAKES: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "no runtime": ("stop",),
    "a runtime without a name": ("stop", "--runtime"),
    "an unknown runtime": ("stop", "--runtime", "cursor"),
    "an unknown event": ("notification", "--runtime", "claude"),
    "the runtime's own name for the event": ("Stop", "--runtime", "claude"),
    "no event": ("--runtime", "claude"),
    "too many words": ("stop", "now", "--runtime", "claude"),
    "an unknown option": ("stop", "--runtime", "claude", "--fast"),
}


@pytest.mark.parametrize("arguments", MISTAKES.values(), ids=MISTAKES)
def test_a_mistaken_hook_line_holds_the_agent_back_with_status_2_and_a_reason(
    guarded: Path, arguments: tuple[str, ...]
) -> None:
    done = hook(*arguments, stdin=event(guarded), cwd=guarded)
    assert (done.returncode, done.stdout) == (2, "")
    said = " ".join(arguments) or "nothing"
    assert str(said) in done.stderr
    assert_sentences(done.stderr)


@pytest.mark.parametrize("stdin", ["", "hello", '{"stop_hook_active": tr'])
def test_a_mistaken_hook_line_holds_the_agent_back_whatever_the_event_is(guarded: Path, stdin: str) -> None:
    done = hook("stop", stdin=stdin, cwd=guarded)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip()


@pytest.mark.parametrize("mistake", ["nothing", "no runtime", "an unknown event"])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["compact", "spaced"])
def test_a_mistaken_hook_line_does_not_hold_the_agent_back_again(
    guarded: Path, mistake: str, separators: tuple[str, str]
) -> None:
    asked = json.dumps(json.loads(event(guarded, stop_hook_active=True)), separators=separators)
    done = hook(*MISTAKES[mistake], stdin=asked, cwd=guarded)
    assert (done.returncode, done.stdout) == (1, "")
    assert_sentences(done.stderr)


def test_an_agent_cannot_talk_its_way_out_of_a_mistaken_hook_line(guarded: Path) -> None:
    asked = event(guarded, last_assistant_message='"stop_hook_active": true')
    assert hook("stop", stdin=asked, cwd=guarded).returncode == 2


def test_a_mistaken_hook_line_holds_the_agent_back_even_with_an_event_that_is_no_utf_8(guarded: Path) -> None:
    done = hook("stop", stdin=b'{"x": "\xff"}', cwd=guarded, env={"PYTHONIOENCODING": "utf-8:strict"})
    assert done.returncode == 2
    assert_sentences(done.stderr)


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("stop", "--help")], ids=" ".join)
def test_it_explains_itself(project: Path, arguments: tuple[str, ...]) -> None:
    done = hook(*arguments, stdin="", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "usage: donewhen hook stop|subagent-stop|pre-tool-use|task-completed|stop-failure|session-end|session-start "
    )


# Cold start


HEAVY = {"click", "rich", "msgspec", "asyncio", "yaml", "argparse", "typing_extensions", "logging", "hypothesis"}


def modules(folder: Path, stdin: str, runtime: str = "claude", kind: str = "stop") -> tuple[set[str], dict[str, Any]]:
    """What the real process imported, and its answer."""
    argv = [sys.executable, "-I", "-X", "importtime", "-m", "donewhen", "hook", kind, "--runtime", runtime]
    own = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder.parent)}
    done = subprocess.run(argv, input=stdin, cwd=folder, env=own, capture_output=True, text=True, timeout=HANG_GUARD)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert done.stderr.splitlines() == lines
    names = {line.rpartition("|")[2].strip() for line in lines}
    assert "donewhen.cli.hook" in names
    return names, answered(subprocess.CompletedProcess(argv, done.returncode, done.stdout, ""))


def tops(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("runtime", ["claude", "codex"])
def test_a_hook_that_checks_files_imports_nothing_heavy(guarded: Path, runtime: str) -> None:
    names, answer = modules(guarded, event(guarded), runtime)
    assert answer["decision"] == "block"
    assert not tops(names) & HEAVY
    assert "donewhen.completion.files" in names
    assert not {
        name for name in names if name.startswith(("donewhen.completion.suite", "donewhen.completion.llm_judge"))
    }


def test_a_hook_that_runs_a_command_imports_nothing_heavy(project: Path) -> None:
    (project / "donewhen.toml").write_text(f"[stop]\ncommands = [{json.dumps(PYTHON + ' -c pass')}]\n")
    names, answer = modules(project, event(project))
    assert answer == {}
    assert "donewhen.completion.command" in names
    assert not tops(names) & HEAVY


def test_a_hook_that_meets_an_error_imports_nothing_heavy(project: Path) -> None:
    (project / "donewhen.toml").write_text("[stop\n")
    names, answer = modules(project, event(project))
    assert answer["decision"] == "block"
    assert not tops(names) & HEAVY


@pytest.mark.parametrize(
    ("kind", "runtime"), [("stop", "codex"), *((kind, "claude") for kind in KINDS)], ids=lambda value: value
)
def test_a_hook_without_settings_imports_no_checker_and_nothing_to_count_with(
    project: Path, kind: str, runtime: str
) -> None:
    names, answer = modules(project, event(project, tool_name="StructuredOutput"), runtime, kind)
    assert answer == {}
    assert not tops(names) & (HEAVY | {"tomllib", "difflib", "subprocess", "fcntl", "zlib"})
    ours = {name for name in names if name.startswith("donewhen")}
    assert not {name for name in ours if name.startswith(("donewhen.completion", "donewhen.runtime"))}
    assert "donewhen.adapters.stop_attempts" not in ours


def test_a_tool_that_is_none_of_our_business_costs_no_look_at_the_settings(guarded: Path) -> None:
    names, answer = modules(guarded, event(guarded, tool_name="Bash"), kind="pre-tool-use")
    assert answer == {}
    assert "tomllib" not in names
    assert not {name for name in names if name.startswith("donewhen.completion")}


def test_an_event_that_is_too_large_is_answered_with_a_block(guarded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = event(guarded, last_assistant_message="x" * 3_000_000)
    arguments = ("stop", "--runtime", "claude")
    assert answered(hook(*arguments, stdin=text, cwd=guarded))["reason"] == MISSING
    monkeypatch.setattr(size_limits, "HOOK_EVENT", size_limits.HOOK_EVENT._replace(bytes=1_000_000))
    refused = answered(hook(*arguments, stdin=text, cwd=guarded))
    assert refused["decision"] == "block"
    assert "not JSON" in refused["reason"]
