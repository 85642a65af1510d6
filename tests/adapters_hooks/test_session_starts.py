"""At the start of a session, the agent's shell is told the session's id; nobody is ever held for it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from donewhen.adapters.claude_code.dialect import ClaudeCodeDialect
from donewhen.adapters.command_hooks import CANARY, respond_to_event


def started(stdin: str, root: Path, **environ: str) -> dict[str, object]:
    return respond_to_event("session-start", ClaudeCodeDialect(), stdin, environ, root)


def event(session: object, root: Path, **more: object) -> str:
    return json.dumps({"session_id": session, "cwd": str(root), "source": "startup", **more})


def test_the_shell_of_the_agent_gets_the_id_of_its_session(tmp_path: Path) -> None:
    variables = tmp_path / "variables.sh"
    variables.write_text("export OTHER=1\n")
    for session in ("s-1", "0f3c-resumed"):
        assert started(event(session, tmp_path), tmp_path, CLAUDE_ENV_FILE=str(variables)) == {}
    shown = subprocess.run(
        ["sh", "-c", f". {variables}; echo $OTHER $DONEWHEN_SESSION"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "1 0f3c-resumed\n"


@pytest.mark.parametrize("session", ["$(touch pwned)", "a b", "a\nb", "", "x" * 101, 7, None])
def test_an_id_that_a_shell_would_read_in_another_way_is_not_written(tmp_path: Path, session: object) -> None:
    variables = tmp_path / "variables.sh"
    assert started(event(session, tmp_path), tmp_path, CLAUDE_ENV_FILE=str(variables)) == {}
    assert not variables.exists()


def test_whatever_goes_wrong_holds_nobody(tmp_path: Path) -> None:
    (tmp_path / "donewhen.toml").write_text("broken")
    assert started("not json", tmp_path) == started("[]", tmp_path) == started(event("s", tmp_path), tmp_path) == {}
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("donewhen.toml")
    for name in ("pipe", "link", "missing/file", "."):
        assert started(event("s", tmp_path), tmp_path, CLAUDE_ENV_FILE=str(tmp_path / name)) == {}
    assert (tmp_path / "donewhen.toml").read_text() == "broken"


def test_doctor_can_see_that_the_hook_is_called(tmp_path: Path) -> None:
    assert "canary 1" in json.dumps(started(event("s", tmp_path, **{CANARY: "1"}), tmp_path))
