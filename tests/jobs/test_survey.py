"""A look at all jobs: what is wrong with one is one finding, and the others are listed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.board.survey import JobRecord, only_job_in_progress, survey_jobs
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.templates import job_plan
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.projection import Mismatch
from donewhen.testing import ManualClock
from sentences import assert_sentences

ME = Approval(Actor("me", "person"))
NOW = "2026-02-14T12:00:00Z"


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    made = create_project(tmp_path / "shop", "Shop")
    for title in ("One", "Two", "Three"):
        add_job(made, title, criteria=["It works", "It is quick"])
    return made


def sealed(workspace: Workspace, *names: str) -> None:
    for proposal in agreement_proposals(workspace, [workspace.job(name) for name in names]):
        agree(workspace, proposal, ME)


def edit(workspace: Workspace, name: str, old: str, new: str) -> Path:
    path = workspace.place(name).path
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def record(workspace: Workspace, title: str) -> JobRecord:
    return next(job for job in survey_jobs(workspace).jobs if job.title == title)


def titles(workspace: Workspace) -> list[str]:
    return [job.title for job in survey_jobs(workspace).jobs]


def test_every_job_is_listed_with_where_it_stands(shop: Workspace) -> None:
    add_job(shop, "Four", stakes="critical", depends_on=["one"])
    four = record(shop, "Four")
    assert (four.status, four.stakes, four.depends_on) == ("planned", "critical", (shop.job("one").id,))
    assert (four.iteration, four.max_iterations, four.agreement, four.events) == (0, 7, "proposed", 0)
    assert (four.path, four.id) == (shop.place("four").path, shop.job("four").id)
    found = survey_jobs(shop)
    assert (found.project.title, found.project_agreement, found.problems) == ("Shop", "proposed", ())
    assert titles(shop) == ["One", "Two", "Three", "Four"]


def test_a_project_without_jobs_has_none(tmp_path: Path) -> None:
    found = survey_jobs(create_project(tmp_path, "Shop"))
    assert (found.jobs, found.problems) == ((), ())


def test_agreement_is_what_the_ledger_and_the_file_come_to(shop: Workspace) -> None:
    sealed(shop, "one", "two")
    assert survey_jobs(shop).project_agreement == "agreed"
    # A new job needs an agreement of its own, also in a project that is agreed.
    assert [job.agreement for job in survey_jobs(shop).jobs] == ["agreed", "agreed", "proposed"]
    edit(shop, "one", "- AC-2: It is quick\n", "- AC-2: It is quick\n- AC-3: It is small\n")
    edit(shop, "two", "- AC-2: It is quick\n", "")
    assert [job.agreement for job in survey_jobs(shop).jobs] == ["agreed", "voided", "proposed"]
    edit(shop, "two", "- AC-1: It works\n", "- AC-1: It works\n- AC-2: It is quick\n")
    assert [job.agreement for job in survey_jobs(shop).jobs] == ["agreed", "agreed", "proposed"]


def test_an_agent_that_agrees_changes_nothing(shop: Workspace) -> None:
    for proposal in agreement_proposals(shop, [shop.job("one")]):
        agree(shop, proposal, Approval(Actor("bot", "agent")))
    assert (record(shop, "One").agreement, record(shop, "One").events) == ("proposed", 1)


def test_a_job_that_says_agreed_by_hand_is_unsealed(shop: Workspace) -> None:
    edit(shop, "one", "status: planned", "status: planned\nagreement_status: agreed")
    assert [job.agreement for job in survey_jobs(shop).jobs] == ["unsealed", "proposed", "proposed"]


def test_where_the_project_says_agreed_by_hand_its_jobs_are_unsealed(shop: Workspace) -> None:
    shop.project_file.write_text(shop.project_file.read_text().replace(": proposed", ": agreed"))
    found = survey_jobs(shop)
    assert (found.project_agreement, {job.agreement for job in found.jobs}) == ("unsealed", {"unsealed"})


def test_a_ci_run_that_nobody_allowed_seals_nothing(shop: Workspace) -> None:
    sealed(shop)
    one = agreement_proposals(shop, [shop.job("one")])[1]
    agree(shop, one, Approval(Actor("robot", "ci")))
    assert record(shop, "One").agreement == "proposed"


BROKEN = {
    "tab": ("title: One", "title: One\n\tx: y", 6, True),
    "colon": ("title: One", "title: One: two", 5, True),
    "bracket": ("wave_id:", "wave_id: [a, b\nx:", None, True),
    "twice": ("title: One", "title: One\ntitle: Two", 6, True),
    "tag": ("title: One", "title: !danger One", 5, True),
    "status": ("status: planned", "status: finished", 6, False),
    "number": ("iteration: 0", "iteration: -1", 15, False),
    "infinite": ("iteration: 0", "iteration: 1e999", 15, False),
    "endless": ("iteration: 0", f"iteration: {'9' * 5000}", 15, False),
    "check": ("  - freshness", "  - nothing", None, False),
    "list": ("truth_checks:", "truth_checks: {a: b}\nx:", None, False),
}


@pytest.mark.parametrize(("old", "new", "line", "column"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_one_finding_with_its_place_and_the_others_are_listed(
    shop: Workspace, old: str, new: str, line: int | None, column: bool
) -> None:
    path = edit(shop, "one", old, new)
    for _ in range(2):
        found = survey_jobs(shop)
        assert [job.title for job in found.jobs] == ["Two", "Three"]
        assert len(found.problems) == 1
        assert found.problems[0].code in ("document", "field")
        name, *place = found.problems[0].where.split(":")
        assert name == shop.where(path)
        assert len(place) == (2 if column else 1)
        assert all(number.isdigit() for number in place)
        assert line is None or int(place[0]) == line


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "document"),
        (b"# no frontmatter", "document"),
        (b"---\na: b\n", "document"),
        (b"---\n\xff\n---\n", "document"),
        (b"---\n---\n", "field"),
        (b"---\n- a\n---\n", "document"),
        (b"\x00" * 100, "document"),
    ],
    ids=["empty", "none", "no end", "not utf-8", "no id", "a list", "zeros"],
)
def test_whatever_a_file_holds_the_others_are_listed(shop: Workspace, content: bytes, code: str) -> None:
    path = shop.place("two").path
    path.write_bytes(content)
    found = survey_jobs(shop)
    assert [job.title for job in found.jobs] == ["One", "Three"]
    assert [(problem.code, problem.where.split(":")[0]) for problem in found.problems] == [(code, shop.where(path))]


def test_an_estimate_without_end_stops_nobody(shop: Workspace) -> None:
    edit(shop, "one", "estimate_hours: 1.0", f"estimate_hours: {'9' * 400}")
    assert titles(shop) == ["One", "Two", "Three"]
    assert record(shop, "One").estimate_hours == 1e6


def test_a_missing_plan_is_one_finding(shop: Workspace) -> None:
    path = shop.place("two").path
    (path.parent / "notes" / "a.md").write_text("A note.\n")
    path.unlink()
    found = survey_jobs(shop)
    assert [(problem.code, problem.where) for problem in found.problems] == [("document", shop.where(path))]
    assert_sentences([problem.message for problem in found.problems])
    assert titles(shop) == ["One", "Three"]


def test_a_plan_that_is_a_link_is_one_finding(shop: Workspace) -> None:
    path = shop.place("two").path
    path.rename(shop.root / "elsewhere.md")
    path.symlink_to(shop.root / "elsewhere.md")
    found = survey_jobs(shop)
    assert [(problem.code, problem.where) for problem in found.problems] == [("document", shop.where(path))]
    assert titles(shop) == ["One", "Three"]


def test_a_ledger_that_can_not_be_read_is_named_and_not_the_plan(shop: Workspace) -> None:
    sealed(shop, "one")
    chain = shop.folder / "ledger" / f"{shop.job('one').id}.jsonl"
    chain.unlink()
    chain.mkdir()
    found = survey_jobs(shop)
    assert [problem.where.split(":")[0] for problem in found.problems] == [shop.where(chain)]
    assert {"Two", "Three"} <= {job.title for job in found.jobs}


def test_a_folder_name_that_is_not_text_stops_nobody(shop: Workspace) -> None:
    folder = shop.place("two").path.parent
    os.rename(os.fsencode(folder), os.fsencode(folder) + b"-\xe4")
    assert titles(shop) == ["One", "Two", "Three"]
    assert titles(shop) == ["One", "Two", "Three"]


def test_a_folder_with_another_id_than_its_plan_is_one_finding(shop: Workspace) -> None:
    folder = shop.place("two").path.parent
    folder.rename(folder.with_name("WI-20260101-050-two"))
    found = survey_jobs(shop)
    assert titles(shop) == ["One", "Three"]
    assert [(problem.code, problem.where.split(":")[0]) for problem in found.problems] == [
        ("workspace", "jobs/WI-20260101-050-two/plan.md")
    ]
    assert "WI-20260101-050" in found.problems[0].message


def test_two_jobs_with_one_id_are_listed_and_named(shop: Workspace) -> None:
    one = shop.place("one").path.parent
    shutil.copytree(one, one.with_name(f"{shop.job('one').id}-copy"))
    found = survey_jobs(shop)
    assert len(found.jobs) == 4
    assert [problem.code for problem in found.problems] == ["duplicate_id"]
    assert_sentences(found.problems[0].message)
    assert f"{one.name}/plan.md" in found.problems[0].message
    assert "-copy/plan.md" in found.problems[0].message


TYPED = {
    "status": ("status: planned", "status: done", "done", "planned"),
    "score": ("reward_last_score: 0", "reward_last_score: 100", 100, 0),
    "truth": ("truth_last_status: unknown", "truth_last_status: pass", "pass", "unknown"),
    "iteration": ("iteration: 0", "iteration: 2", 2, 0),
    "completed": ('completed_at: ""', 'completed_at: "2026-02-14T00:00:00Z"', "2026-02-14T00:00:00Z", ""),
}


@pytest.mark.parametrize(("old", "new", "found", "expected"), TYPED.values(), ids=TYPED.keys())
def test_a_field_that_was_typed_by_hand_is_tampered(
    shop: Workspace, old: str, new: str, found: Any, expected: Any
) -> None:
    sealed(shop, "one", "two")
    edit(shop, "one", old, new)
    assert record(shop, "One").tampered == (Mismatch(new.partition(":")[0], found, expected),)
    assert (record(shop, "Two").tampered, survey_jobs(shop).problems) == ((), ())


def test_the_innocent_twin_of_tampering_is_no_finding(shop: Workspace) -> None:
    sealed(shop, "one", "two")
    edit(shop, "one", "priority: 2", "priority: 1  # urgent")
    edit(shop, "one", "title: One", "title: The first")
    decide(shop, shop.job("two"), Decision("cancel", "not wanted"), ME)
    assert [(job.status, job.tampered) for job in survey_jobs(shop).jobs] == [
        ("planned", ()),
        ("cancelled", ()),
        ("planned", ()),
    ]


def test_a_write_that_was_cut_off_is_not_called_tampered(tmp_path: Path) -> None:
    clock = ManualClock()
    made = create_project(tmp_path / "shop", "Shop", clock=clock)
    path = add_job(made, "One", criteria=["It works"]).path
    for happens in (
        lambda: sealed(made, "one"),
        lambda: decide(made, made.job("one"), Decision("target", "more", 85), ME),
        lambda: decide(made, made.job("one"), Decision("cancel", "not wanted"), ME),
    ):
        clock.advance(60)
        before = path.read_bytes()
        happens()
        after = path.read_bytes()
        path.write_bytes(before)
        assert record(made, "One").tampered == ()
        path.write_bytes(after)
        assert (record(made, "One").tampered, before != after) == ((), True)


def test_a_job_that_the_ledger_does_not_know_is_not_tampered(shop: Workspace) -> None:
    edit(shop, "one", "status: planned", "status: done")
    assert (record(shop, "One").tampered, record(shop, "One").status) == ((), "done")


def test_a_broken_chain_is_a_finding_with_its_line_and_the_job_is_listed(shop: Workspace) -> None:
    sealed(shop, "one")
    decide(shop, shop.job("one"), Decision("split", "too large"), ME)
    chain = shop.folder / "ledger" / f"{shop.job('one').id}.jsonl"
    chain.write_bytes(chain.read_bytes().replace(b"too large", b"too small"))
    found = survey_jobs(shop)
    assert [(problem.code, problem.where) for problem in found.problems] == [("chain_broken", f"{shop.where(chain)}:2")]
    assert titles(shop) == ["One", "Two", "Three"]


def test_a_writer_that_was_cut_off_is_no_broken_chain(shop: Workspace) -> None:
    sealed(shop, "one")
    chain = shop.folder / "ledger" / f"{shop.job('one').id}.jsonl"
    with chain.open("ab") as file:
        file.write(b'{"half')
    assert "chain_broken" not in {problem.code for problem in survey_jobs(shop).problems}


def test_three_broken_files_among_three_hundred_are_three_findings(tmp_path: Path) -> None:
    shop = create_project(tmp_path, "Shop")
    for number in range(1, 301):
        name = f"WI-20260214-{number:03d}"
        folder = tmp_path / "jobs" / f"{name}-job"
        folder.mkdir()
        (folder / "plan.md").write_bytes(job_plan(name, f"Job {number}", NOW, criteria=["It works"]))
    broken = {
        7: b"---\ntitle: a: b\n---\n",
        150: b"---\nwork_item_id: WI-20260214-150\nstakes: extreme\n---\n",
        300: b"\xff\xfe",
    }
    for number, content in broken.items():
        (tmp_path / "jobs" / f"WI-20260214-{number:03d}-job" / "plan.md").write_bytes(content)
    for _ in range(2):
        found = survey_jobs(shop)
        assert len(found.jobs) == 297
        assert [(problem.code, problem.where) for problem in found.problems] == [
            ("document", "jobs/WI-20260214-007-job/plan.md:2:9"),
            ("field", "jobs/WI-20260214-150-job/plan.md:3"),
            ("document", "jobs/WI-20260214-300-job/plan.md:1"),
        ]


def test_the_status_command_lists_the_jobs_and_fails_for_the_broken_one(
    shop: Workspace, donewhen: Callable[..., Any]
) -> None:
    sealed(shop, "one")
    edit(shop, "one", "reward_last_score: 0", "reward_last_score: 100")
    path = edit(shop, "two", "title: Two", "title: Two: too")
    done = donewhen(["status", "--json"], shop.root)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ok"]) == (1, False)
    assert [job["title"] for job in answer["data"]["jobs"]] == ["One", "Three"]
    assert [(finding["code"], finding["where"]) for finding in answer["findings"]] == [
        ("document", f"{shop.where(path)}:5:11"),
        ("tampered", shop.where(shop.place("one").path)),
    ]


def test_the_status_command_is_content_with_jobs_that_are_in_order(
    shop: Workspace, donewhen: Callable[..., Any]
) -> None:
    done = donewhen(["status"], shop.root)
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 planned" in done.stdout


def test_the_job_in_progress_is_found_if_there_is_exactly_one(bench: Any) -> None:
    bench.job("Planned", started=False)
    assert only_job_in_progress(bench.workspace) is None
    first = bench.job("First")
    found = only_job_in_progress(bench.workspace)
    assert found is not None
    assert found.id == first.id
    bench.job("Second")
    assert only_job_in_progress(bench.workspace) is None
