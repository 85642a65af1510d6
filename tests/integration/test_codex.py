"""Codex with the hooks that `donewhen hooks install` writes: the real CLI, a scripted Responses API on loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.codex.app_server import listed_hooks
from donewhen.adapters.stop_record import RECORD, unverified_ends
from donewhen.testing import ResponsesServer
from donewhen.testing.responses_api import Reply, ResponsesRequest, shell
from sentences import assert_sentences, lines_with

pytestmark = pytest.mark.codex

ROOT = Path(__file__).parents[2]
MISSING = "Missing required files: out.txt"
WRITE = shell("echo work > out.txt")
Model = Callable[[ResponsesRequest], Reply] | Sequence[Reply]

_CONFIG = """\
model = "scripted-model"
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{base_url}"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
[features]
plugins = false
apps = false
[analytics]
enabled = false
[feedback]
enabled = false
[otel]
exporter = "none"
metrics_exporter = "none"
trace_exporter = "none"
[projects."{project}"]
trust_level = "trusted"
"""


def codex_program() -> str:
    """The real CLI: on the PATH, or where the Makefile puts it."""
    beside = Path(sys.prefix) / "codex" / "node_modules" / ".bin" / "codex"
    found = str(beside) if beside.exists() else shutil.which("codex")
    if found is None:
        pytest.skip("LOUD: the Codex CLI is not installed, so Codex is NOT tested (npm install @openai/codex)")
    return found


class Project:
    """A project with a Codex home of its own."""

    def __init__(self, folder: Path) -> None:
        self.codex = codex_program()
        self.home = folder / "home"
        self.codex_home = self.home / ".codex"
        self.codex_home.mkdir(parents=True)
        self.root = folder / "project"
        self.root.mkdir()
        self.settings('[stop]\nfiles = ["out.txt"]\n')

    def settings(self, toml: str) -> None:
        (self.root / "donewhen.toml").write_text(toml)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "CODEX_HOME": str(self.codex_home),
            "PATH": f"{Path(self.codex).parent}{os.pathsep}{os.environ['PATH']}",
            "SCRIPTED_API_KEY": "dummy",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
        }

    def donewhen(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "donewhen", *arguments]
        return subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True)

    def run(
        self, model: Model, *flags: str, trust: bool = True, expect_success: bool = True
    ) -> tuple[ResponsesServer, str]:
        """One `codex exec`; the server with what it saw, and what the client printed on standard error."""
        with ResponsesServer(model) as server:
            config = _CONFIG.format(base_url=server.base_url, project=self.root.resolve())
            (self.codex_home / "config.toml").write_text(config)
            # A test plays the person who trusts the hook, for this one run.
            trusted = ("--dangerously-bypass-hook-trust",) if trust else ()
            done = subprocess.run(
                [
                    self.codex,
                    "exec",
                    "--skip-git-repo-check",
                    "--sandbox",
                    "danger-full-access",
                    *trusted,
                    *flags,
                    "Write out.txt.",
                ],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=500,
            )
        assert (done.returncode == 0) is expect_success, done.stderr
        return server, done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def _said(request: ResponsesRequest) -> str:
    return "\n".join(request.last_user_texts)


@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_the_installed_hook_holds_the_agent_until_the_file_is_there(project: Project, scope: str) -> None:
    project.donewhen("hooks", "install", "--codex", scope)
    server, errors = project.run([Reply("Done!"), WRITE, Reply("Done, really.")])
    assert MISSING in _said(server.calls()[1])
    assert len(server.calls()) == 3
    assert "hook: Stop Blocked" in errors
    assert "hook: Stop Failed" not in errors
    assert (project.root / "out.txt").exists()


def test_without_trust_codex_skips_the_hook_silently(project: Project) -> None:
    project.donewhen("hooks", "install", "--codex")
    server, errors = project.run([Reply("Done!")], trust=False)
    assert len(server.calls()) == 1
    assert "hook: Stop" not in errors


def test_codex_has_no_cap_so_ours_lets_go_and_records_it(project: Project) -> None:
    project.donewhen("hooks", "install", "--codex")
    server, _ = project.run(lambda request: Reply("Done!"))
    assert [MISSING in _said(request) for request in server.calls()] == [False] + [True] * 5
    record = json.loads((project.root / ".donewhen" / "state" / "unverified.jsonl").read_text())
    assert (record["status"], record["attempts"]) == ("capped", 6)


def test_where_donewhen_is_missing_the_line_holds_once_and_not_for_ever(project: Project) -> None:
    project.donewhen("hooks", "install", "--codex")
    path = project.root / ".codex" / "donewhen" / "hook"
    path.write_text(path.read_text().replace("program() { ", "program() { /nowhere/"))
    server, _ = project.run(lambda request: Reply("Done!"))
    assert len(server.calls()) == 2
    assert_sentences(_said(server.calls()[1]).splitlines()[-1])


def test_an_answer_through_a_schema_is_held_too(project: Project, tmp_path: Path) -> None:
    project.donewhen("hooks", "install", "--codex")
    schema = tmp_path / "schema.json"
    properties = {"ok": {"type": "boolean"}}
    schema.write_text(
        json.dumps({"type": "object", "properties": properties, "required": ["ok"], "additionalProperties": False})
    )
    server, _ = project.run([Reply('{"ok": false}'), WRITE, Reply('{"ok": true}')], "--output-schema", str(schema))
    assert MISSING in _said(server.calls()[1])


def _stop_hooks(project: Project, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    for name, value in project.environment.items():
        monkeypatch.setenv(name, value)
    hooks = listed_hooks(project.root)
    assert hooks is not None
    return [hook for hook in hooks if hook["eventName"] == "stop"]


def test_doctor_asks_codex_and_tells_untrusted_from_trusted(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    (project.codex_home / "config.toml").write_text("")
    project.donewhen("hooks", "install", "--codex", "--user")
    untrusted = project.donewhen("doctor")
    assert untrusted.returncode == 1
    assert_sentences(lines_with(untrusted.stdout, "codex user trust"))
    (hook,) = _stop_hooks(project, monkeypatch)
    trusted = f"[hooks.state.{json.dumps(hook['key'])}]\ntrusted_hash = {json.dumps(hook['currentHash'])}\n"
    (project.codex_home / "config.toml").write_text(trusted)
    done = project.donewhen("doctor")
    assert_sentences(lines_with(done.stdout, "codex user trust"))
    assert done.returncode == 0


def test_a_hook_trusted_by_its_hash_fires_without_a_flag(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.donewhen("hooks", "install", "--codex", "--user")
    (hook,) = _stop_hooks(project, monkeypatch)
    state = f"hooks.state={{{json.dumps(hook['key'])}={{trusted_hash={json.dumps(hook['currentHash'])}}}}}"
    server, _ = project.run([Reply("Done!"), WRITE, Reply("Done!")], "-c", state, trust=False)
    assert MISSING in _said(server.calls()[1])


def test_a_foreign_hook_keeps_its_trust_when_ours_goes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.donewhen("hooks", "install", "--codex", "--user")
    path = project.codex_home / "hooks.json"
    data = json.loads(path.read_text())
    data["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "true"}]})
    path.write_text(json.dumps(data))
    before = next(hook for hook in _stop_hooks(project, monkeypatch) if hook["command"] == "true")
    project.donewhen("hooks", "uninstall", "--codex", "--user")
    (after,) = _stop_hooks(project, monkeypatch)
    assert (after["key"], after["currentHash"]) == (before["key"], before["currentHash"])


def _ends(project: Project) -> list[tuple[str, str, str | None]]:
    return [(end.status, end.how, end.code) for end in unverified_ends(project.root / ".donewhen" / "state" / RECORD)]


def test_a_session_that_an_error_ends_is_on_record(project: Project) -> None:
    project.donewhen("hooks", "install", "--codex")
    work = Reply(tools=shell("echo work > other.txt").tools)
    project.run(
        lambda request: work if not request.tool_results else Reply("bad request", status=400), expect_success=False
    )
    assert (project.root / "other.txt").exists()
    assert _ends(project) == [("incomplete", "session-end: other", "files_missing")]


def test_a_verified_session_leaves_no_record(project: Project) -> None:
    project.donewhen("hooks", "install", "--codex")
    project.run([Reply("Done!"), WRITE, Reply("Done, really.")])
    assert _ends(project) == []


def test_the_hooks_of_codex_cause_no_warning(project: Project) -> None:
    project.donewhen("hooks", "install", "--codex")
    (project.root / "out.txt").write_text("there")
    _, errors = project.run([Reply("Done!")])
    assert "clamping" not in errors
