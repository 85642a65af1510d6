"""One real client with the hooks of donewhen: a project, a home, a scripted model, and what came of a run."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from donewhen.adapters.agent_client import ClientRoom
from donewhen.adapters.hook_targets import HOOK_TARGETS
from donewhen.adapters.scripted import ToolCall
from donewhen.testing import gemini_api, messages_api, responses_api
from donewhen.testing._loopback import LoopbackServer, RecordedRequest

MISSING = "Missing required files: out.txt"
SETTINGS = '[stop]\nfiles = ["out.txt"]\n'
_PATIENCE = 120.0
_AFTERWARDS = 5.0


@dataclass(frozen=True)
class Turn:
    """What the model does, for any API: a text, a command line, a call of a tool, or an error of the API."""

    text: str = ""
    command: str | None = None
    tool: ToolCall | None = None
    status: int = 200
    delay: float = 0.0


DONE = Turn("Done!")
WRITE = Turn(command="echo work > out.txt")
Model = Callable[[RecordedRequest], Turn]


@dataclass
class Played:
    """What a run showed. ``calls`` are the model calls of conversations."""

    calls: Sequence[RecordedRequest]
    status: int | None
    output: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def asked_again(self, reason: str = MISSING) -> int:
        """How often the model was asked with the reason in the conversation."""
        return sum(call.mentions(reason) for call in self.calls)


class ClientMissingError(Exception):
    """The client is not installed."""


def client_program(name: str) -> Path:
    """The program of a runtime's client: where the Makefile puts it, or on the PATH."""
    if name == "sdk":
        name = "claude"
    places = [Path(sys.prefix) / folder / "node_modules" / ".bin" / name for folder in (name, "node-clients")]
    if name == "claude" and (spec := importlib.util.find_spec("claude_agent_sdk")) and spec.origin:
        places.append(Path(spec.origin).parent / "_bundled" / "claude")
    on_path = shutil.which(name)
    found = next((place for place in (*places, *([Path(on_path)] if on_path else [])) if place.exists()), None)
    if found is None:
        raise ClientMissingError(f"{name} is not installed")
    return found


def client_version(name: str) -> str:
    """The version that the client reports, in one word."""
    if name == "sdk":
        return metadata.version("claude-agent-sdk")
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"], "COPILOT_OFFLINE": "true", "TERM": "dumb"}
        done = subprocess.run(
            [client_program(name), "--version"], env=environment, capture_output=True, text=True, timeout=60
        )
    words = [word.rstrip(".") for word in done.stdout.split() if word[:1].isdigit()]
    return words[0] if words else "unknown"


class Stage:
    """A project with installed hooks, and a home of its own."""

    def __init__(self, name: str, folder: Path, *, scope: str = "project") -> None:
        self.name = name
        self.target = HOOK_TARGETS[name]
        self.program = client_program(name)
        self.home = folder / "home"
        self.root = folder / "project"
        for new in (self.home, self.root):
            new.mkdir(parents=True)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        if name == "copilot":
            (self.home / ".copilot").mkdir()
            (self.home / ".copilot" / "config.json").write_text(json.dumps({"trustedFolders": [str(self.root)]}))
        self.settings(SETTINGS)
        environment = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        subprocess.run(
            [sys.executable, "-m", "donewhen", "hooks", "install", f"--{name}", f"--{scope}"],
            cwd=self.root,
            env=environment,
            check=True,
            capture_output=True,
        )

    def settings(self, toml: str) -> None:
        (self.root / "donewhen.toml").write_text(toml)

    def break_donewhen(self) -> None:
        """Let the installed script start a program that is not there."""
        script = self.target.script("project", self.root, {})
        lines = script.read_text().splitlines()
        script.write_text(
            "\n".join(
                'program() { /nowhere/donewhen "$@"; }' if line.startswith("program()") else line for line in lines
            )
            + "\n"
        )

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The record of ends that were not verified; a later row of an end replaces the earlier one."""
        path = self.root / ".donewhen" / "state" / "unverified.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        rows = [json.loads(line) for line in lines]
        last = {row.get("end") or number: row for number, row in enumerate(rows)}
        return list(last.values())

    def play(
        self,
        model: Model,
        *,
        flags: Sequence[str] = (),
        folder: Path | None = None,
        interrupt: tuple[threading.Event, signal.Signals] | None = None,
        patience: float = _PATIENCE,
    ) -> Played:
        """One run of the client with one prompt. ``interrupt``: send this signal when the event is set."""
        with _server(self.name, model) as server:
            inherited = {"PATH": f"{self.program.parent}{os.pathsep}{os.environ['PATH']}"}
            room = ClientRoom(self.home, self.root, server.root_url, inherited)
            start = self.target.client.start(str(self.program), room, "Write out.txt.")
            with tempfile.TemporaryFile() as output:
                process = subprocess.Popen(
                    _with_flags(self.name, start.arguments, flags),
                    cwd=folder or self.root,
                    env=start.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                status = _wait(process, patience, interrupt)
                output.seek(0)
                text = output.read().decode(errors="replace")
            # Auxiliary calls, such as those for a title, have no tools.
            calls = [request for request in server.requests if request.method == "POST" and request.body.get("tools")]
        return Played(calls, status, text, self.rows)


def _wait(
    process: subprocess.Popen[bytes], patience: float, interrupt: tuple[threading.Event, signal.Signals] | None
) -> int | None:
    try:
        if interrupt is not None and interrupt[0].wait(patience):
            # To the whole group, as a terminal does, and as `timeout` does.
            os.killpg(process.pid, interrupt[1])
        status = process.wait(patience)
        _wait_for_group(process.pid)
        return status
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for_group(group: int) -> None:
    """Hooks at the end of a session may outlive the client for a moment."""
    deadline = time.monotonic() + _AFTERWARDS
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(0.05)


def _with_flags(name: str, arguments: tuple[str, ...], flags: Sequence[str]) -> list[str]:
    program, *rest = arguments
    if name == "claude":
        return [program, "--allowedTools", "Bash,Agent", *flags, *rest]
    if name == "codex":
        *options, prompt = rest
        return [program, *options, *flags, prompt]
    if "--continue" in flags:
        # It can't be given for a session that is resumed; a stage trusts its own folder.
        rest.remove("--trust-folder")
    return [program, *flags, *rest]


def _tools(name: str, turn: Turn) -> tuple[ToolCall, ...]:
    """The tool calls of a turn, with the name that the runtime has for its shell."""
    if turn.tool is not None:
        return (turn.tool,)
    if turn.command is None:
        return ()
    match name:
        case "codex":
            return (ToolCall("exec_command", {"cmd": turn.command}),)
        case "gemini":
            return (ToolCall("run_shell_command", {"command": turn.command, "description": "x"}),)
        case "copilot":
            return (ToolCall("bash", {"command": turn.command, "description": "x"}),)
    return (ToolCall("Bash", {"command": turn.command, "description": "x"}),)


def _server(name: str, model: Model) -> LoopbackServer[Any, Any]:
    replies: dict[str, Any] = {"messages": messages_api, "gemini": gemini_api, "responses": responses_api}
    servers: dict[str, Any] = {
        "messages": messages_api.MessagesServer,
        "gemini": gemini_api.GeminiServer,
        "responses": responses_api.ResponsesServer,
    }
    api = HOOK_TARGETS[name].client.api

    def reply(request: RecordedRequest) -> object:
        turn = model(request)
        return replies[api].Reply(turn.text, _tools(name, turn), status=turn.status, delay=turn.delay)

    server: LoopbackServer[Any, Any] = servers[api](reply)
    return server
