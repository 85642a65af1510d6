"""What prevents agreeing to a work area, and what a person is shown about one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.contract.agreeing import agreement_proposals
from donewhen.jobs.contract.terms import compare_terms, job_terms
from donewhen.jobs.lifecycle.agreeing import propose_work_areas
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import parse_document, rewrite_fields
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace


def made(root: Path, **fields: Any) -> tuple[Workspace, Job]:
    workspace = create_project(root, "Demo")
    job = add_job(workspace, "Parser", criteria=["It works.\n  check: run true"], work=fields.pop("work", []))
    raw = rewrite_fields(parse_document(job.path.read_bytes(), "plan.md"), fields)
    job.path.write_bytes(raw)
    return workspace, workspace.job(job.id)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"work": ["../other/**"]}, "path_outside"),
        ({"work": ["/"]}, "path_outside"),
        ({"work": ["//docs/**"]}, "path_outside"),
        ({"present": ["/a/../../b"]}, "path_outside"),
        ({"tests_may_change": ["//tests/**"]}, "path_outside"),
        ({"work": ["/src/\u202eshop/**"]}, "hidden_character"),
        ({"prepare": ["make\u200b gen"]}, "hidden_character"),
        ({"prepare": ["make gen && make more"]}, "command"),
    ],
)
def test_it_can_not_be_agreed_to(tmp_path: Path, fields: dict[str, Any], code: str) -> None:
    workspace, job = made(tmp_path, **fields)
    assert code in {problem.code for problem in agreement_proposals(workspace, [job])[1].problems}


def test_the_repository_can_be_named_where_there_is_one(tmp_path: Path, git: Any) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "shop").mkdir()
    workspace, job = made(tmp_path / "shop", work=["//docs/**", "/src/shop/**"])
    assert agreement_proposals(workspace, [job])[1].problems == ()


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ({"work": ["/a/**"]}, {"work": ["/a/**", "/b/**"]}, "loosened"),
        ({"work": ["/a/**", "/b/**"]}, {"work": ["/a/**"]}, "tightened"),
        ({"present": ["/a"]}, {"present": ["/a", "/b"]}, "loosened"),
        ({"tests_may_change": []}, {"tests_may_change": ["/tests/**"]}, "loosened"),
        ({"prepare": ["make a"]}, {"prepare": ["make b"]}, "loosened"),
        ({"prepare": ["make a"]}, {"prepare": []}, "loosened"),
        ({"outputs": ["/caf\u00e9.md"]}, {"outputs": ["/cafe\u0301.md"]}, None),
    ],
)
def test_more_room_for_the_work_loosens_the_agreement(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], kind: str | None
) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    old, new = (
        job_terms(made(tmp_path / name, **fields)[1]) for name, fields in (("before", before), ("after", after))
    )
    assert {change.kind for change in compare_terms(old, new)} == ({kind} if kind else set())


def test_a_proposal_has_packages_documentation_and_tests_and_never_an_import_root(tmp_path: Path) -> None:
    for name in ("src/shop/price.py", "docs/index.md", "tests/test_price.py", "check.py", "tools/gen.py", "app.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    workspace = create_project(tmp_path, "Demo")
    job = add_job(workspace, "Parser", criteria=["It works.\n  check: run python3 check.py"])
    (proposed,) = propose_work_areas(workspace, [job])
    assert proposed.work == ("/src/shop/**", "/docs/**", "/tests/**", "/app.py")
    assert "\nwork:" not in job.path.read_text()
