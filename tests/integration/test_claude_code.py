"""Claude Code with the hooks that `donewhen hooks install` writes: the real CLI, a scripted model on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from claude_kit import bundled_cli, clean_environment

from donewhen.testing import MessagesServer, ToolCall
from donewhen.testing.messages_api import MessagesRequest, Reply

pytestmark = pytest.mark.claude

ROOT = Path(__file__).parents[2]
MISSING = "Missing required files: out.txt"
WRITE = Reply(tools=(ToolCall("Bash", {"command": "echo work > out.txt", "description": "Write the file"}),))
Model = Callable[[MessagesRequest], Reply] | Sequence[Reply]


class Project:
    """A project with hooks installed, and the CLI to run in it."""

    def __init__(self, folder: Path) -> None:
        self.cli = bundled_cli()
        self.home = folder / "home"
        self.home.mkdir()
        self.root = folder / "project"
        self.root.mkdir()
        self.settings('[stop]\nfiles = ["out.txt"]\n')

    def settings(self, toml: str) -> None:
        (self.root / "donewhen.toml").write_text(toml)

    def donewhen(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"HOME": str(self.home)}
        environment.pop("CLAUDE_CONFIG_DIR", None)
        command = [sys.executable, "-m", "donewhen", *arguments]
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=True)

    def run(self, model: Model, *arguments: str, **env: str) -> tuple[MessagesServer, dict[str, Any]]:
        """One `claude -p`; the server with what it saw, and the client's result."""
        with MessagesServer(model) as server:
            done = subprocess.run(
                [
                    str(self.cli),
                    "-p",
                    "Write out.txt.",
                    "--output-format",
                    "json",
                    "--allowedTools",
                    "Bash",
                    *arguments,
                ],
                cwd=self.root,
                env=clean_environment(server.base_url, self.home, **env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=500,
            )
        assert done.stdout, done.stderr
        result = json.loads(done.stdout)
        return server, result[-1] if isinstance(result, list) else result


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_the_installed_hook_holds_the_agent_until_the_file_is_there(project: Project) -> None:
    project.donewhen("hooks", "install", "--claude")
    server, result = project.run([Reply("Done!"), WRITE, Reply("Done, really.")])
    assert server.calls()[1].mentions(MISSING)
    assert len(server.calls()) == 3
    assert result["result"] == "Done, really."
    assert not (project.root / ".donewhen" / "state" / "unverified.jsonl").exists()


def test_it_works_from_the_persons_own_settings_too(project: Project) -> None:
    project.donewhen("hooks", "install", "--claude", "--user")
    server, _ = project.run([Reply("Done!"), WRITE, Reply("Done, really.")])
    assert server.calls()[1].mentions(MISSING)


def test_it_works_as_a_plugin(project: Project) -> None:
    environment = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    plugin = ROOT / "integrations" / "claude-code-plugin"
    server, _ = project.run([Reply("Done!"), WRITE, Reply("Done!")], "--plugin-dir", str(plugin), **environment)
    assert server.calls()[1].mentions(MISSING)
    assert server.calls()[0].mentions("done-when")


def test_after_uninstall_nobody_is_held(project: Project) -> None:
    project.donewhen("hooks", "install", "--claude")
    project.donewhen("hooks", "uninstall", "--claude")
    server, _ = project.run([Reply("Done!")])
    assert len(server.calls()) == 1


def test_after_five_refusals_for_the_same_reason_the_agent_is_let_go_and_it_is_on_record(project: Project) -> None:
    project.donewhen("hooks", "install", "--claude")
    server, _ = project.run(lambda request: Reply("Done!"))
    assert [request.mentions(MISSING) for request in server.calls()] == [False] + [True] * 5
    record = json.loads((project.root / ".donewhen" / "state" / "unverified.jsonl").read_text())
    assert (record["status"], record["code"], record["attempts"]) == ("capped", "files_missing", 6)


def test_settings_that_cannot_be_read_hold_the_agent_and_say_where(project: Project) -> None:
    project.settings("[stop\n")
    hooks = project.root / ".claude"
    hooks.mkdir()
    line = f"{sys.executable} -m donewhen hook stop --runtime claude"
    (hooks / "settings.json").write_text(
        json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line, "timeout": 60}]}]}})
    )

    def model(request: MessagesRequest) -> Reply:
        if request.mentions("donewhen.toml"):
            project.settings('[stop]\nfiles = ["donewhen.toml"]\n')
        return Reply("Done!")

    server, _ = project.run(model)
    assert server.calls()[1].mentions("gate_error")
    assert server.calls()[1].mentions("line 1")
    assert len(server.calls()) == 2


@pytest.mark.parametrize("trick", ["rm donewhen.toml", "echo > donewhen.toml"])
def test_an_agent_that_was_held_cannot_free_itself_by_doing_away_with_the_settings(
    project: Project, trick: str
) -> None:
    project.donewhen("hooks", "install", "--claude")
    away = Reply(tools=(ToolCall("Bash", {"command": trick, "description": "x"}),))
    server, _ = project.run(
        lambda request: away if request.mentions(MISSING) and not request.tool_results else Reply("Done!")
    )
    assert any(
        request.mentions("the settings that held this agent back are gone or empty") for request in server.calls()
    )
    assert (project.root / ".donewhen" / "state" / "unverified.jsonl").exists()


def test_a_command_hook_that_exits_with_2_holds_as_well(project: Project) -> None:
    """What the installed script does where donewhen itself is missing: hold once, then let go."""
    project.donewhen("hooks", "install", "--claude")
    path = project.root / ".claude" / "donewhen" / "hook"
    path.write_text(path.read_text().replace("program() { ", "program() { /nowhere/"))
    server, _ = project.run(lambda request: Reply("Done!"))
    assert len(server.calls()) == 2
    assert server.calls()[1].mentions("donewhen could not be run")


def test_structured_output_is_denied_until_the_file_is_there(project: Project) -> None:
    project.donewhen("hooks", "install", "--claude")
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    early, late = (Reply(tools=(ToolCall("StructuredOutput", {"n": number}),)) for number in (1, 2))
    server, result = project.run([early, WRITE, late], "--json-schema", json.dumps(schema))
    assert server.calls()[1].tool_results[0].is_error
    assert server.calls()[1].mentions(MISSING)
    assert result["structured_output"] == {"n": 2}


def test_a_sub_agent_is_held_by_its_own_settings_and_not_by_its_parents(project: Project) -> None:
    project.settings('[stop]\nfiles = ["out.txt"]\n[subagent_stop]\nfiles = ["sub.txt"]\n')
    project.donewhen("hooks", "install", "--claude")
    launch = {"description": "d", "prompt": "p", "subagent_type": "general-purpose", "run_in_background": False}
    make = Reply(tools=(ToolCall("Bash", {"command": "echo sub > sub.txt", "description": "x"}),))
    sub_turns = iter([Reply("sub done"), make, Reply("sub really done")])
    main_turns = iter([Reply(tools=(ToolCall("Agent", launch),)), WRITE, Reply("Done!")])

    def model(request: MessagesRequest) -> Reply:
        return next(sub_turns if request.kind == "subagent" else main_turns)

    server, _ = project.run(model, "--allowedTools", "Bash,Agent")
    sub = server.calls("subagent")
    assert len(sub) == 3
    assert sub[1].mentions("Missing required files: sub.txt")
    assert not any(request.mentions(MISSING) for request in server.requests)


def test_an_agent_with_a_task_in_the_background_is_not_judged_until_it_ends(project: Project) -> None:
    project.donewhen("hooks", "install", "--claude")
    background = {"command": "sleep 1; echo work > out.txt", "description": "x", "run_in_background": True}

    def model(request: MessagesRequest) -> Reply:
        spoken = any(one["role"] == "assistant" for one in request.body["messages"])
        return Reply("Done!") if spoken else Reply(tools=(ToolCall("Bash", background),))

    server, _ = project.run(model)
    assert not any(request.mentions(MISSING) for request in server.requests)
    assert (project.root / "out.txt").exists()


def test_a_task_of_the_task_list_is_not_completed_before_its_proof_is_there(project: Project) -> None:
    project.settings('[task_completed]\nfiles = ["out.txt"]\n')
    project.donewhen("hooks", "install", "--claude")
    create = Reply(tools=(ToolCall("TaskCreate", {"subject": "Write it", "description": "Write out.txt"}),))
    complete = Reply(tools=(ToolCall("TaskUpdate", {"taskId": "1", "status": "completed"}),))
    server, _ = project.run(
        [create, complete, WRITE, complete, Reply("Done!")],
        "--tools",
        "Bash,TaskCreate,TaskUpdate",
        "--allowedTools",
        "Bash,TaskCreate,TaskUpdate",
    )
    refused, accepted = server.calls()[2], server.calls()[4]
    assert refused.mentions(MISSING)
    assert MISSING not in accepted.tool_results[0].text


def test_the_transcript_in_the_docs_is_what_the_real_client_does(project: Project) -> None:
    project.settings('[stop]\nfiles = ["out.txt"]\ncommands = ["grep -q slug out.txt"]\n')
    project.donewhen("hooks", "install", "--claude")
    placeholder = Reply(
        "Let me write it.", tools=(ToolCall("Bash", {"command": "echo TODO > out.txt", "description": "x"}),)
    )
    real = Reply("Now for real.", tools=(ToolCall("Bash", {"command": "echo slug > out.txt", "description": "x"}),))
    replies = [
        Reply("Done! out.txt is written."),
        placeholder,
        Reply("Done!"),
        real,
        Reply("Done: out.txt has the slug."),
    ]
    server, _ = project.run(replies)
    lines = ["person    Write out.txt."]
    for request, reply in zip(server.calls(), replies, strict=True):
        for text in request.last_user_texts if request is not server.calls()[0] else ():
            if text.startswith("Stop hook feedback:"):
                first, *rest = text.removeprefix("Stop hook feedback:\n").rstrip().split("\n")
                lines += [f"donewhen  Not yet. {first}", *(f"          {line}" for line in rest)]
        lines += [f"agent     {reply.text}"] if reply.text else []
        lines += [f"agent     $ {call.arguments['command']}" for call in reply.tools]
    lines.append("donewhen  (lets the agent go)")
    transcript = "\n".join(lines) + "\n"
    page = ROOT / "docs" / "transcripts" / "claude-code.txt"
    if os.environ.get("DONEWHEN_WRITE_TRANSCRIPTS"):
        page.parent.mkdir(exist_ok=True)
        page.write_text(transcript)
    assert transcript == page.read_text()
