"""An agent in Codex that works on a job by the tools of `donewhen mcp`: the real CLI starts the real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_codex import Project

from donewhen.jobs.plan.workspace import find_workspace
from donewhen.testing import ToolCall
from donewhen.testing.responses_api import Reply, shell

pytestmark = pytest.mark.codex


def tool(name: str, **arguments: Any) -> Reply:
    return Reply(tools=(ToolCall(f"mcp__donewhen.{name}", arguments),))


def test_an_agent_in_codex_lists_jobs_is_refused_and_completes(tmp_path: Path, as_person: Callable[..., Any]) -> None:
    pytest.importorskip("mcp.server", reason="LOUD: donewhen[mcp] is not installed, so the MCP server is NOT tested")
    project = Project(tmp_path)
    project.settings("")
    (project.root / ".git").mkdir()
    criterion = "The report says so :: file /report.txt matches /^ALL GOOD$/"
    assert project.donewhen("init", "--title", "Shop").returncode == 0
    assert project.donewhen("add", "Report", "--criterion", criterion, "--output", "/report.txt").returncode == 0
    assert as_person(["agree"], project.root).status == 0
    workspace = find_workspace(project.root)
    (job,) = (place.id for place in workspace.places())
    before = len(workspace.ledger.read(job).entries)
    script = [
        tool("list_jobs"),
        tool("start_job", job=job),
        tool("complete_job", job=job),
        shell("echo 'ALL GOOD' > report.txt"),
        tool("run_evidence", job=job, by="ada", kind="person"),
        tool("complete_job", job=job),
        Reply("Done."),
    ]
    server, errors = project.run(
        script,
        *("-c", f"mcp_servers.donewhen.command={json.dumps(sys.executable)}"),
        *("-c", 'mcp_servers.donewhen.args=["-m", "donewhen", "mcp"]'),
        # On a busy machine the server needs a while, and the scripted model asks at once.
        *("-c", "mcp_servers.donewhen.required=true"),
        *("-c", "mcp_servers.donewhen.startup_timeout_sec=150"),
        *("-c", "mcp_servers.donewhen.tool_timeout_sec=150"),
    )
    calls = server.calls()
    assert len(calls) == len(script), errors
    lines = [request.tool_results[0].text for request in calls[1:]]
    assert json.dumps(f'start_job(job="{job}")') in lines[0]
    assert "criterion_failed" in lines[2]
    assert "<promise>" not in lines[2]
    assert "unknown field `by`" in lines[4]
    assert f"<promise>{job}-DONE</promise>" in lines[5]
    assert workspace.job(job).status == "done"
    since = workspace.ledger.read(job).entries[before:]
    assert {one.by.kind for one in since} == {"agent"}
    assert [one.type for one in since if one.type in ("refused", "completed")] == ["refused", "completed"]
