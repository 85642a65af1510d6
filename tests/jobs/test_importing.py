"""Importing: jobs that nobody has agreed to, made once, whatever happens meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import UsageError
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.imports import importing
from donewhen.jobs.imports.drafting import MAX_CRITERIA, MAX_CRITERION_LENGTH, MAX_OBJECTIVE_LENGTH
from donewhen.jobs.imports.importing import ImportResult, import_jobs
from donewhen.jobs.imports.selecting import Selection
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Form, Workspace, find_workspace
from sentences import assert_sentences


def feature(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "title": f"Feature {name}", "description": f"{name} works", "passes": False, **fields}


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


def write(workspace: Workspace, *features: dict[str, Any]) -> Path:
    path = workspace.root / "feature_list.json"
    path.write_text(json.dumps(features))
    return path


def imported(workspace: Workspace, *features: dict[str, Any], **options: Any) -> ImportResult:
    return import_jobs(workspace, write(workspace, *features), **options)


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def keys(workspace: Workspace) -> list[object]:
    return [workspace.job_at(place.path).document.fields["imported_from"] for place in workspace.places()]


def test_whatever_the_source_says_the_job_is_planned_and_nothing_is_agreed(shop: Workspace) -> None:
    done = imported(shop, feature("F1", passes=True, status="done"), feature("F2"))
    assert (done.new, done.claimed, done.complete) == (2, 1, True)
    first, second = (shop.job_at(place.path) for place in shop.places())
    assert (first.status, second.status) == ("planned", "planned")
    assert first.document.fields["imported_from"] == "feature-list:F1"
    assert first.document.fields.get("agreement_status") is None
    assert first.document.fields["completed_at"] == ""
    assert not shop.ledger.chains()
    assert_sentences(first.document.body)
    assert [criterion.check for criterion in (*first.criteria, *second.criteria)] == [None, None]


def test_dependencies_are_jobs_and_stand_before(shop: Workspace) -> None:
    done = imported(shop, feature("F1", depends_on=["F2", "F9"]), feature("F2"))
    jobs = {envelope.item.name: envelope.job for envelope in done.made}
    assert str(jobs["F2"]) < str(jobs["F1"])
    assert shop.job(str(jobs["F1"])).depends_on == (jobs["F2"],)
    assert [finding.code for finding in done.findings] == [FindingCode.IMPORT_DEPENDENCY]


def test_a_job_may_depend_on_one_that_was_imported_before(shop: Workspace) -> None:
    first = imported(shop, feature("F1"))
    second = imported(shop, feature("F1"), feature("F2", depends_on=["F1"]))
    assert shop.job(str(second.made[1].job)).depends_on == (first.made[0].job,)


def test_a_command_for_all_is_a_command_of_each(shop: Workspace) -> None:
    imported(shop, feature("F1"), feature("F2"), commands=["make test"])
    assert [shop.job_at(place.path).truth_required_commands for place in shop.places()] == [("make test",)] * 2


def test_a_dry_run_writes_nothing_and_says_the_same(shop: Workspace) -> None:
    features = [feature("F1", depends_on=["F9"]), feature("F2", description="", title="TBD" * 3000)]
    path = write(shop, *features)
    before = tree(shop.root)
    looked = import_jobs(shop, path, dry_run=True)
    assert tree(shop.root) == before
    assert [(envelope.job, envelope.state) for envelope in looked.made] == [(None, "new")] * 2
    assert looked.findings == import_jobs(shop, path).findings


def test_importing_again_makes_nothing_twice(shop: Workspace) -> None:
    imported(shop, feature("F1"), feature("F2"))
    before = tree(shop.root / "jobs")
    again = imported(shop, feature("F1", passes=True), feature("F2"))
    assert [envelope.state for envelope in again.made] == ["there", "there"]
    assert again.new == 0
    assert not again.findings
    assert tree(shop.root / "jobs") == before
    assert imported(shop, feature("F1"), feature("F2"), feature("F3")).new == 1
    assert keys(shop) == ["feature-list:F1", "feature-list:F2", "feature-list:F3"]


def test_what_changed_in_the_source_is_told_and_touches_no_job(shop: Workspace) -> None:
    done = imported(shop, feature("F1", acceptance=["It floats", "It is red"]))
    job = shop.job(str(done.made[0].job))
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, Approval(Actor("ada", "person")))
    before = tree(shop.root / "jobs")
    again = imported(shop, feature("F1", acceptance=["It floats", "It is blue"]))
    assert tree(shop.root / "jobs") == before
    assert [envelope.state for envelope in again.made] == ["changed"]
    (finding,) = again.findings
    assert finding.code == FindingCode.IMPORT_CHANGED
    assert_sentences(finding.message)
    assert job.id in finding.message
    assert finding.where == shop.where(job.path)


def test_other_changes_are_told_as_such(shop: Workspace) -> None:
    imported(shop, feature("F1"))
    (finding,) = imported(shop, feature("F1", priority=1)).findings
    assert_sentences(finding.message)


def test_what_is_gone_from_the_source_is_told(shop: Workspace) -> None:
    done = imported(shop, feature("F1"), feature("F2"))
    add_job(shop, "By hand")
    again = imported(shop, feature("F1"))
    assert [(finding.code, finding.where) for finding in again.findings] == [
        (FindingCode.IMPORT_GONE, shop.where(shop.place(str(done.made[1].job)).path))
    ]


def test_a_part_of_a_source_says_nothing_of_the_rest(shop: Workspace) -> None:
    tasks = shop.root / "backlog" / "tasks"
    tasks.mkdir(parents=True)
    for number in (1, 2):
        (tasks / f"task-{number} - x.md").write_text(
            f"---\nid: task-{number}\n---\n## Acceptance Criteria\n- [ ] One\n"
        )
    import_jobs(shop, shop.root / "backlog")
    assert not import_jobs(shop, tasks / "task-1 - x.md").findings


def test_new_parts_of_a_task_are_told(shop: Workspace) -> None:
    tasks = shop.root / "backlog" / "tasks"
    tasks.mkdir(parents=True)
    (tasks / "task-1 - x.md").write_text("---\nid: task-1\n---\n## Acceptance Criteria\n- [ ] One\n")
    first = import_jobs(shop, shop.root)
    more = "---\nid: task-1.1\nparent_task_id: task-1\n---\n## Acceptance Criteria\n- [ ] One\n"
    (tasks / "task-1.1 - x.md").write_text(more)
    again = import_jobs(shop, shop.root)
    assert again.new == 1
    (finding,) = again.findings
    assert str(first.made[0].job) in finding.message
    assert_sentences(finding.message)
    assert not import_jobs(shop, shop.root).findings


def test_nothing_in_it_is_no_success(shop: Workspace) -> None:
    with pytest.raises(UsageError) as caught:
        imported(shop)
    assert_sentences(caught.value)
    with pytest.raises(UsageError) as caught:
        imported(shop, {"id": "F1"})
    assert_sentences(caught.value)


def test_an_item_without_criteria_becomes_a_job_that_nobody_can_agree_to(shop: Workspace) -> None:
    change = shop.root / "openspec" / "changes" / "paint"
    change.mkdir(parents=True)
    (change / "proposal.md").write_text("# Paint\n\n## Why\n\nRust.\n")
    done = import_jobs(shop, shop.root)
    assert [finding.code for finding in done.findings] == [FindingCode.IMPORT_NO_CRITERIA]
    assert done.complete
    (criterion,) = shop.job(str(done.made[0].job)).criteria
    assert criterion.placeholder


def test_what_is_too_long_is_cut_and_told(shop: Workspace) -> None:
    long = imported(
        shop,
        feature("F1", acceptance=["a" * (MAX_CRITERION_LENGTH + 1)]),
        feature("F2", description="b" * (MAX_OBJECTIVE_LENGTH + 1), acceptance=["x y"]),
        feature("F3", acceptance=["c d"] * (MAX_CRITERIA + 1)),
        feature("F4", acceptance=["a" * MAX_CRITERION_LENGTH]),
    )
    assert [finding.message.split()[0] for finding in long.findings] == ["F1", "F2", "F3"]
    assert {finding.code for finding in long.findings} == {FindingCode.IMPORT_SHORTENED}
    first, _second, third, fourth = (shop.job_at(place.path) for place in shop.places())
    assert len(first.criteria[0].text) == MAX_CRITERION_LENGTH
    assert first.criteria[0].text.endswith("…")
    assert len(third.criteria) == MAX_CRITERIA
    assert fourth.criteria[0].text == "a" * MAX_CRITERION_LENGTH


def test_a_broken_plan_is_still_the_job_that_was_imported(shop: Workspace) -> None:
    done = imported(shop, feature('F"1'), feature("F2"))
    path = shop.place(str(done.made[0].job)).path
    path.write_text(path.read_text().replace("status: planned", "status: [planned"))
    again = imported(shop, feature('F"1', description="Else"), feature("F2"))
    assert again.new == 0


def test_a_changed_item_whose_plan_is_broken_is_told(shop: Workspace) -> None:
    done = imported(shop, feature("F1"))
    path = shop.place(str(done.made[0].job)).path
    path.write_text(path.read_text().replace("status: planned", "status: finished"))
    (finding,) = imported(shop, feature("F1", description="Else")).findings
    assert_sentences(finding.message)


def test_a_plan_that_cannot_be_read_stops_the_import_before_anything_is_made(shop: Workspace) -> None:
    done = imported(shop, feature("F1"))
    path = shop.place(str(done.made[0].job)).path
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError) as caught:
        imported(shop, feature("F1"), feature("F2"))
    assert_sentences(caught.value)
    assert len(list(shop.places())) == 1


def test_a_folder_without_a_plan_is_no_import(shop: Workspace) -> None:
    (shop.root / "jobs" / "WI-20260101-001-gone").mkdir()
    assert imported(shop, feature("F1")).new == 1


def test_a_copied_job_counts_once(shop: Workspace) -> None:
    done = imported(shop, feature("F1"))
    job = shop.job(str(done.made[0].job))
    other = add_job(shop, "Copy")
    other.path.write_bytes(job.path.read_bytes().replace(job.id.encode(), other.id.encode()))
    again = imported(shop, feature("F1"))
    assert [envelope.job for envelope in again.made] == [job.id]


def test_odd_stamps_are_nobodys(shop: Workspace) -> None:
    one, two = add_job(shop, "One"), add_job(shop, "Two")
    one.path.write_text(one.path.read_text().replace("status: planned", "imported_from: [a]\nstatus: planned"))
    broken = two.path.read_text().replace("status: planned", 'imported_from: "a\\q"\nstatus: [planned')
    two.path.write_text(broken)
    assert imported(shop, feature("F1")).new == 1


def test_in_the_big_form_jobs_belong_to_a_workstream(tmp_path: Path, shop: Workspace) -> None:
    big = create_project(tmp_path, "Shop", form="big")
    with pytest.raises(UsageError) as caught:
        imported(big, feature("F1"), dry_run=True)
    assert_sentences(caught.value)
    done = imported(big, feature("F1"), feature("F2"), workstream="Web")
    (stream,) = big.workstream_folders()
    assert [place.id for place in big.places()] == [envelope.job for envelope in done.made]
    assert {place.path.parents[2] for place in big.places()} == {stream}
    assert imported(big, feature("F1"), feature("F3")).new == 1
    with pytest.raises(UsageError) as caught:
        imported(shop, feature("F1"), workstream="Web")
    assert_sentences(caught.value)


def test_others_get_a_turn_and_progress_is_told(shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH", 2)
    seen: list[tuple[int, int]] = []
    done = imported(shop, *(feature(f"F{number}") for number in range(5)), watch=lambda *now: seen.append(now))
    assert seen == [(number, 5) for number in range(6)]
    assert [envelope.job for envelope in done.made] == [place.id for place in shop.places()]


IMPORT = """
import os, sys
from pathlib import Path
from donewhen.jobs.imports.importing import import_jobs
from donewhen.jobs.imports.selecting import Selection
from donewhen.jobs.plan.workspace import find_workspace

root, last = Path(sys.argv[1]), int(sys.argv[2])
steps = 0
def seen(event, arguments):
    global steps
    if event in ("os.mkdir", "os.rename") and "jobs" in str(arguments[0]):
        steps += 1
        if steps == last:
            os.kill(os.getpid(), 9)
sys.addaudithook(seen)
workspace = find_workspace(root)
stream = "Web" if workspace.form == "big" else None
import_jobs(workspace, root / "feature_list.json", workstream=stream)
print(steps)
"""


@pytest.mark.parametrize("form", ["small", "big"])
@pytest.mark.parametrize("step", [1, 4, 7, 8, 9, 12, 16, 21])
def test_killed_in_the_middle_it_leaves_whole_jobs_and_goes_on_the_next_time(
    tmp_path: Path, form: Form, step: int
) -> None:
    workspace = create_project(tmp_path, "Shop", form=form)
    (tmp_path / "feature_list.json").write_text(
        json.dumps([feature("F1", depends_on=["F3"]), feature("F2"), feature("F3")])
    )
    found = subprocess.run([sys.executable, "-c", IMPORT, str(tmp_path), str(step)], capture_output=True, text=True)
    assert found.returncode == -9, found.stderr
    for place in workspace.places():
        assert workspace.job_at(place.path).status == "planned"
    stream = "Web" if form == "big" else None
    done = import_jobs(workspace, tmp_path / "feature_list.json", workstream=stream)
    assert sorted(map(str, keys(workspace))) == ["feature-list:F1", "feature-list:F2", "feature-list:F3"]
    assert not done.findings
    by_name = {envelope.item.name: str(envelope.job) for envelope in done.made}
    assert workspace.job(by_name["F1"]).depends_on == (by_name["F3"],)
    assert not list(workspace.root.rglob(".donewhen-*.new"))
    if form == "big":
        (folder,) = workspace.workstream_folders()
        assert {place.path.parents[2] for place in workspace.places()} == {folder}


def test_two_imports_at_once_double_nothing(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Shop")
    write(workspace, *(feature(f"F{number}") for number in range(60)))
    argv = [sys.executable, "-c", IMPORT, str(tmp_path), "0"]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ended = [(process.communicate(), process.returncode) for process in running]
    assert [status for _, status in ended] == [0, 0, 0], ended
    found = keys(find_workspace(tmp_path))
    assert len(found) == 60
    assert len(set(found)) == 60


def backlog(workspace: Workspace, *tasks: tuple[str, str, str, str]) -> Path:
    """Tasks of Backlog.md: id, status, milestone, and what they depend on."""
    folder = workspace.root / "backlog" / "tasks"
    folder.mkdir(parents=True)
    for name, status, milestone, after in tasks:
        head = f"id: {name}\ntitle: Task {name}\nstatus: {status}\nmilestone: {milestone}\ndependencies: [{after}]\n"
        text = f"---\n{head}---\n\n## Acceptance Criteria\n- [ ] #1 It works\n"
        (folder / f"{name} - T.md").write_text(text)
    return folder.parent


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), ["task-1", "task-2", "task-3"]),
        (Selection(only_open=True), ["task-2", "task-3"]),
        (Selection(statuses=("in progress",)), ["task-2"]),
        (Selection(statuses=("done", "in progress")), ["task-1", "task-2"]),
        (Selection(milestones=("V2",)), ["task-1", "task-3"]),
        (Selection(only_open=True, milestones=("v2",)), ["task-3"]),
    ],
    ids=["all", "open", "status", "two statuses", "milestone", "both"],
)
def test_only_what_is_selected_is_imported(shop: Workspace, selection: Selection, expected: list[str]) -> None:
    tasks = (("task-1", "Done", "v2", ""), ("task-2", "In Progress", "v1", "task-1"), ("task-3", "To Do", "v2", ""))
    source = backlog(shop, *tasks)
    done = import_jobs(shop, source, selection=selection)
    assert [envelope.item.name for envelope in done.made] == expected
    assert sorted(map(str, keys(shop))) == [f"backlog:{name}" for name in expected]
    # What was not selected is neither gone from the source nor missing there.
    assert {finding.code for finding in done.findings} <= {FindingCode.IMPORT_DEPENDENCY}
    dropped = [finding.message for finding in done.findings]
    assert len(dropped) == ("task-2" in expected and "task-1" not in expected)
    assert all("was not selected" in message for message in dropped)
    # The rest comes later, and nothing twice.
    assert import_jobs(shop, source).new == 3 - len(expected)


def test_a_selection_of_nothing_says_what_there_is(shop: Workspace) -> None:
    source = backlog(shop, ("task-1", "Done", "v2", ""))
    with pytest.raises(UsageError) as caught:
        import_jobs(shop, source, selection=Selection(only_open=True))
    assert "Statuses: Done. Milestones: v2." in caught.value.message
    assert list(shop.places()) == []
