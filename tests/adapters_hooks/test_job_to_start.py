"""An agent that works without a job is told once which agreed job it could start, or may not stop without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.claude_code.dialect import ClaudeCodeDialect
from donewhen.adapters.command_hooks import HookKind, respond_to_event
from donewhen.config import load
from donewhen.foundation.errors import ConfigError
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.terms_changes import TermsChange
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

ADA, BOT = Approval(Actor("ada", "person")), Actor("bot")


def settings(root: Path, text: str) -> None:
    (root / "donewhen.toml").write_text(f"[stop]\n{text}\n")


@pytest.fixture
def shop(tmp_path: Path) -> tuple[Workspace, Job]:
    """A project with one agreed job, which was not started."""
    settings(tmp_path, "jobs = true")
    workspace = create_project(tmp_path, "Shop")
    job = add_job(workspace, "Prices", criteria=["They are there\n  check: file /prices.csv"], outputs=["/prices.csv"])
    agree_all(workspace, job)
    return workspace, job


def agree_all(workspace: Workspace, job: Job) -> None:
    for proposal in agreement_proposals(workspace, [job]):
        if proposal.agreement.state != "agreed":
            agree(workspace, proposal, ADA)


def stop(workspace: Workspace, session: str = "s-1", kind: HookKind = "stop", **event: Any) -> str | None:
    event |= {"session_id": session, "cwd": str(workspace.root)}
    reason: str | None = respond_to_event(kind, ClaudeCodeDialect(), json.dumps(event), {}, workspace.root).get(
        "reason"
    )
    return reason


def test_with_a_job_ready_and_none_started_the_agent_is_told_once_which_one_and_how(
    shop: tuple[Workspace, Job],
) -> None:
    workspace, job = shop
    reason = stop(workspace) or ""
    assert f"donewhen start {job.id}" in reason
    assert "Prices" in reason
    assert stop(workspace, stop_hook_active=True) is None
    # Another message of the person in the same session, too.
    assert stop(workspace, prompt_id="p2") is None
    assert job.id in (stop(workspace, "s-2") or "")


def test_nobody_is_told_in_a_sub_agent_while_planning_or_with_nothing_to_start(shop: tuple[Workspace, Job]) -> None:
    workspace, job = shop
    assert stop(workspace, kind="subagent-stop", agent_id="a") is None
    assert stop(workspace, permission_mode="plan") is None
    assert start_job(workspace, job.id, BOT).started
    assert "is not done" in (stop(workspace) or "")
    (workspace.root / "prices.csv").write_text("bread\n")
    assert complete(workspace, job.id, BOT).done
    assert stop(workspace) is None
    add_job(workspace, "Not agreed")
    assert stop(workspace, "s-3") is None


def test_an_agent_of_a_loop_has_its_job(shop: tuple[Workspace, Job], monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, job = shop
    monkeypatch.setenv("DONEWHEN_JOB", job.id)
    assert stop(workspace) is None
    monkeypatch.delenv("DONEWHEN_JOB")
    assert job.id in (stop(workspace) or "")


def test_off_tells_nothing_and_on_holds_until_a_job_is_started_and_only_while_one_can_start(
    shop: tuple[Workspace, Job],
) -> None:
    workspace, job = shop
    settings(workspace.root, 'jobs = true\nrequire_job = "off"')
    assert stop(workspace) is None
    settings(workspace.root, 'require_job = "on"')
    agree_all(workspace, job)
    for _ in range(3):
        assert f"donewhen start {job.id}" in (stop(workspace, stop_hook_active=True) or "")
    assert start_job(workspace, job.id, BOT).started
    assert "is not done" in (stop(workspace) or "")
    (workspace.root / "prices.csv").write_text("bread\n")
    assert complete(workspace, job.id, BOT).done
    assert stop(workspace) is None


def test_an_agent_that_loosens_it_in_the_settings_is_held_as_agreed(shop: tuple[Workspace, Job]) -> None:
    workspace, job = shop
    settings(workspace.root, 'jobs = true\nrequire_job = "on"')
    for proposal in agreement_proposals(workspace, [job]):
        agree(workspace, proposal, ADA)
    settings(workspace.root, 'jobs = true\nrequire_job = "off"')
    assert "donewhen contract diff" in (stop(workspace) or "")
    (proposal, *_) = agreement_proposals(workspace, [job])
    assert proposal.agreement.changes == (TermsChange("loosened", "settings.stop.require_job", "on", "off"),)


def test_another_word_is_an_error_of_the_settings(tmp_path: Path) -> None:
    settings(tmp_path, 'require_job = "maybe"')
    with pytest.raises(ConfigError, match="off, ask, on"):
        load(tmp_path)
