"""The transcripts that the real clients write are those that `donewhen last` reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from donewhen.adapters.agent_client import ClientRoom
from donewhen.adapters.hook_targets import HOOK_TARGETS
from donewhen.adapters.transcripts import newest_ending
from donewhen.doctor.firing import run_until, scripted_server

ROOT = Path(__file__).parents[2]
PROMPT = "Say that you are done."


def _program(runtime: str) -> str | None:
    if runtime == "claude":
        sdk = pytest.importorskip("claude_agent_sdk", reason="LOUD: claude-agent-sdk is not installed")
        return shutil.which("claude", path=str(Path(sdk.__file__).parent / "_bundled"))
    return shutil.which("codex", path=f"{ROOT}/.venv/codex/node_modules/.bin:{os.environ['PATH']}")


def _other(variable: str) -> str:
    return "CODEX_HOME" if variable == "CLAUDE_CONFIG_DIR" else "CLAUDE_CONFIG_DIR"


@pytest.mark.parametrize(
    "runtime", [pytest.param("claude", marks=pytest.mark.claude), pytest.param("codex", marks=pytest.mark.codex)]
)
def test_the_last_message_of_a_real_session_is_found(tmp_path: Path, runtime: str) -> None:
    program = _program(runtime)
    if program is None:
        pytest.skip(f"LOUD: the client {runtime} is not installed, so its transcripts are NOT read")
    target = HOOK_TARGETS[runtime]
    home, project = tmp_path / "home", tmp_path / "my pro.j_1"
    home.mkdir()
    project.mkdir()
    subprocess.run(["git", "init", "-q", project], check=True)
    with scripted_server(target.client.api, lambda request: 0.0) as server:
        room = ClientRoom(home, project, server.root_url, {"PATH": os.environ["PATH"]})
        ended, printed = run_until(target.client.start(program, room, PROMPT), project, threading.Event(), 120)
    assert ended, printed
    variable = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}[runtime]
    ending = newest_ending(
        project.resolve(), {variable: str(home / target.about.project_folder), _other(variable): str(tmp_path / "none")}
    )
    assert ending is not None
    assert (ending.runtime, ending.text) == (runtime, "Done.")
