"""Fields that a plan lacks get their defaults when donewhen first writes to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import missing_fields
from donewhen.jobs.plan.workspace import Workspace

REQUIRED = (
    "stakes",
    "reward_target",
    "max_iterations",
    "iteration",
    "rework_count",
    "rework_reason",
    "reward_last_score",
    "reward_last_eval_at",
    "reward_last_next_action",
)


def bare(workspace: Workspace, *, keep: tuple[str, ...] = (), stakes: str = "normal") -> Path:
    """A job whose plan has none of the required fields but those to keep."""
    path = add_job(workspace, "Bare", criteria=["It works"]).path
    text = path.read_text().replace("stakes: normal", f"stakes: {stakes}")
    gone = tuple(f"{name}:" for name in REQUIRED if name not in keep)
    path.write_text("".join(line for line in text.splitlines(keepends=True) if not line.startswith(gone)))
    return path


@pytest.mark.parametrize(
    ("stakes", "target", "budget"), [("low", 70, 2), ("normal", 80, 3), ("high", 90, 5), ("critical", 95, 7)]
)
def test_they_get_the_defaults_of_their_stakes(tmp_path: Path, stakes: str, target: int, budget: int) -> None:
    workspace = create_project(tmp_path, "Shop")
    path = bare(workspace, keep=("stakes",), stakes=stakes)
    assert "reward_target" not in path.read_text()
    for proposal in agreement_proposals(workspace, [workspace.job_at(path)]):
        agree(workspace, proposal, Approval(person_at_terminal()))
    fields = workspace.read(path).fields
    assert (fields["stakes"], fields["reward_target"], fields["max_iterations"]) == (stakes, target, budget)
    assert missing_fields(fields) == {}
    assert audit_workspace(workspace).clean


def test_without_stakes_they_are_normal(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Shop")
    path = bare(workspace)
    assert set(missing_fields(workspace.read(path).fields)) == set(REQUIRED)
    for proposal in agreement_proposals(workspace, [workspace.job_at(path)]):
        agree(workspace, proposal, Approval(person_at_terminal()))
    fields = workspace.read(path).fields
    assert (fields["stakes"], fields["reward_target"], fields["max_iterations"], fields["iteration"]) == (
        "normal",
        80,
        3,
        0,
    )


def test_what_is_there_stays(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Shop")
    path = bare(workspace, keep=("reward_target",))
    path.write_text(path.read_text().replace("reward_target: 80", "reward_target: 85  # agreed by phone"))
    for proposal in agreement_proposals(workspace, [workspace.job_at(path)]):
        agree(workspace, proposal, Approval(person_at_terminal()))
    assert "reward_target: 85  # agreed by phone\n" in path.read_text()


def test_looking_writes_nothing_and_projects_need_none_of_them(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Shop")
    path = bare(workspace)
    before = path.read_bytes()
    assert workspace.job_at(path).reward_target == 80
    assert audit_workspace(workspace).jobs == 1
    assert path.read_bytes() == before
    assert missing_fields(workspace.project().document.fields) == {}
