"""An agent in Codex that works on a job: the real CLI, the installed hook, and `[stop] jobs = true`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_codex import Project

from donewhen.jobs.plan.workspace import find_workspace
from donewhen.testing.responses_api import Reply, shell
from sentences import assert_sentences

pytestmark = pytest.mark.codex


def test_an_agent_in_codex_is_held_by_its_job_completes_it_and_is_let_go(
    tmp_path: Path, as_person: Callable[..., Any]
) -> None:
    project = Project(tmp_path)
    project.settings("[stop]\njobs = true\n")
    (project.root / ".git").mkdir()
    criterion = "The report says so :: file /report.txt matches /^ALL GOOD$/"
    for arguments in (
        ("hooks", "install", "--codex"),
        ("init", "--title", "Shop"),
        ("add", "Report", "--criterion", criterion, "--output", "/report.txt"),
    ):
        assert project.donewhen(*arguments).returncode == 0
    assert as_person(["agree"], project.root).status == 0
    workspace = find_workspace(project.root)
    (job,) = (place.id for place in workspace.places())
    assert project.donewhen("start", job).returncode == 0
    complete = f"{Path(sys.executable).parent / 'donewhen'} complete {job}"
    server, errors = project.run([Reply("Done!"), shell(f"echo 'ALL GOOD' > report.txt && {complete}"), Reply("Done.")])
    calls = server.calls()
    assert len(calls) == 3
    text = "\n".join(calls[1].last_user_texts)
    assert str(job) in text
    assert_sentences(text)
    assert "hook: Stop Blocked" in errors
    assert "hook: Stop Failed" not in errors
    assert workspace.job(job).status == "done"
    assert workspace.ledger.read(job).entries[-1].type == "completed"
