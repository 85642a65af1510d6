"""An agent in Claude Code that works on a job by the tools of `donewhen mcp`: the real CLI starts the real server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_kit import bundled_cli, clean_environment

from donewhen.jobs.plan.workspace import find_workspace
from donewhen.testing import MessagesServer, ToolCall
from donewhen.testing.messages_api import Reply

pytestmark = pytest.mark.claude


def tool(name: str, **arguments: Any) -> Reply:
    return Reply(tools=(ToolCall(f"mcp__donewhen__{name}", arguments),))


def test_an_agent_lists_jobs_is_refused_completes_and_cannot_agree(
    tmp_path: Path, repository: Path, as_person: Callable[..., Any], donewhen: Callable[..., Any]
) -> None:
    pytest.importorskip("mcp.server", reason="LOUD: donewhen[mcp] is not installed, so the MCP server is NOT tested")
    cli = bundled_cli()
    home = tmp_path / "home"
    donewhen(["init", "--title", "Shop"], repository)
    criterion = "The report says so :: file /report.txt matches /^ALL GOOD$/"
    donewhen(["add", "Report", "--criterion", criterion, "--output", "/report.txt"], repository)
    assert as_person(["agree"], repository).status == 0
    workspace = find_workspace(repository)
    ((job, _),) = workspace.places()
    before = len(workspace.ledger.read(job).entries)
    servers = {"donewhen": {"command": sys.executable, "args": ["-m", "donewhen", "mcp"]}}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    script = [
        tool("list_jobs"),
        tool("start_job", job=job),
        tool("complete_job", job=job),
        Reply(tools=(ToolCall("Bash", {"command": "echo 'ALL GOOD' > report.txt", "description": "Work"}),)),
        tool("agree", job=job),
        tool("run_evidence", job=job, by="ada", kind="person"),
        tool("run_evidence", job=job),
        tool("complete_job", job=job),
        Reply("Done."),
    ]
    with MessagesServer(script) as server:
        done = subprocess.run(
            [
                *(str(cli), "-p", "Do the job.", "--output-format", "json"),
                *("--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", "Bash,mcp__donewhen"),
            ],
            cwd=repository,
            env=clean_environment(server.base_url, home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=500,
        )
    assert done.stdout, done.stderr
    calls = server.calls()
    assert len(calls) == len(script), done.stdout
    lines = [request.tool_results[0] for request in calls[1:]]
    assert [one.is_error for one in lines] == [False, False, False, False, True, True, False, False]
    (listed,) = json.loads(lines[0].text)["jobs"]
    assert (listed["id"], listed["next"]) == (job, f'start_job(job="{job}")')
    refusal = json.loads(lines[2].text)
    assert not refusal["done"]
    assert "criterion_failed" in lines[2].text
    assert "<promise>" not in lines[2].text
    assert "No such tool available: mcp__donewhen__agree" in lines[4].text
    assert "unknown field `by`" in lines[5].text
    assert json.loads(lines[7].text)["promise"] == f"<promise>{job}-DONE</promise>"
    assert workspace.job(job).status == "done"
    since = workspace.ledger.read(job).entries[before:]
    assert {one.by.kind for one in since} == {"agent"}
    assert [one.type for one in since if one.type in ("refused", "completed")] == ["refused", "completed"]
