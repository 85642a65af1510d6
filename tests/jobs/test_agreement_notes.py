"""What a person is told before agreeing, although it prevents nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.contract.agreement_notes import agreement_notes
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.agreeing import agree_to
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import parse_document, rewrite_fields

MISSING = "check.py does not exist yet, so whoever does the job also writes what checks it"


def notes(tmp_path: Path, **options: Any) -> list[str]:
    workspace = create_project(tmp_path, "Demo")
    (tmp_path / "there.py").write_text("print(1)\n")
    return [*agreement_notes(workspace, add_job(workspace, "Parser", **{"criteria": ["It works."], **options}))]


@pytest.mark.parametrize(
    "options",
    [
        {"criteria": ["It works.\n  check: run python3 check.py"]},
        {"commands": ["python3 check.py --fast"]},
        {"commands": ["python3 check.py"], "criteria": ["It works.\n  check: run python3 check.py"]},
    ],
    ids=["check", "command", "both"],
)
def test_a_check_that_the_agent_will_write_itself_is_shown(tmp_path: Path, options: dict[str, Any]) -> None:
    assert notes(tmp_path, **options) == [MISSING]


@pytest.mark.parametrize(
    "options",
    [
        {"commands": ["python3 there.py"]},
        {"commands": ["python3 app.py"], "outputs": ["/app.py"]},
        {
            "commands": [
                "pytest -q --cov=shop.py",
                "plan_check.py",
                "curl http://127.0.0.1/a.txt",
                "pip install a==1.2",
            ]
        },
        {"criteria": ["It works.\n  check: file /report.md"]},
        {},
    ],
    ids=["it exists", "it is the work", "no files", "file check", "nothing"],
)
def test_other_commands_are_nothing_unusual(tmp_path: Path, options: dict[str, Any]) -> None:
    assert notes(tmp_path, **options) == []


def test_what_was_typed_before_is_shown(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Demo")
    job = add_job(workspace, "Parser", criteria=["It works."])
    typed = {"status": "in_progress", "iteration": 2, "reward_last_score": 100}
    job.path.write_bytes(rewrite_fields(parse_document(job.path.read_bytes(), str(job.path)), typed))
    says = "its plan already says status: in_progress, iteration: 2, reward_last_score: 100"
    note = f"{says}; that was typed, so it will be removed and counts for nothing"
    assert [*agreement_notes(workspace, workspace.job_at(job.path))] == [note]
    agree_to(workspace, [workspace.job_at(job.path)], Approval(Actor("ada", "person")))
    assert [*agreement_notes(workspace, workspace.job_at(job.path))] == []
