"""The jobs on disk: two forms that are one model, found from anywhere inside, opened without leaving a trace."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.foundation.errors import UsageError
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.frontmatter import DocumentError
from donewhen.jobs.plan.job import FieldError
from donewhen.jobs.plan.workspace import Form, JobPlace, Workspace, WorkspaceError, find_workspace
from sentences import assert_sentences

PROJECT = """---
schema: theworkshop.plan.v1
kind: project
id: PJ-20260214-001
title: "Payments: the new way"
status: in_progress
agreement_status: agreed
agreed_at: "2026-02-14T09:00:00Z"
agreed_notes: ""
started_at: "2026-02-14T08:00:00Z"
updated_at: "2026-02-14T09:00:00Z"
completed_at: ""
completion_promise: PJ-20260214-001-DONE
github_enabled: false
github_repo: ""
max_parallel_agents: 3
waves: []
workstreams:
  - WS-20260214-001
---

# Payments: the new way

## Goal

## Acceptance Criteria

- Customers can pay.

## Workstreams

## Success Hook

## Progress Log

## Decisions
"""
STREAM = """---
schema: theworkshop.plan.v1
kind: workstream
id: WS-20260214-001
title: Checkout
status: planned
depends_on: []
started_at: ""
updated_at: "2026-02-14T09:00:00Z"
completed_at: ""
completion_promise: WS-20260214-001-DONE
jobs:
  - WI-20260214-001
  - WI-20260214-002
---

# Checkout

## Purpose (How This Supports The Project Goal)

## Jobs

## Dependencies

## Success Hook

## Progress Log
"""
JOB = """---
schema: theworkshop.plan.v1
kind: job
work_item_id: {id}
title: "{title}"
status: {status}
depends_on:{depends}
wave_id: ""
priority: 2
estimate_hours: 1.0
due_date: ""
stakes: high
reward_target: 90
max_iterations: 5
iteration: 1
rework_count: 0
rework_reason: ""
started_at: "2026-02-14T10:00:00Z"
updated_at: "2026-02-14T10:00:00Z"
completed_at: ""
completion_promise: {id}-DONE
outputs:
  - outputs/primary.md
verification_evidence:
  - artifacts/verification.md
reward_last_score: 38
reward_last_eval_at: "2026-02-14T11:00:00Z"
reward_last_next_action: "Write outputs/primary.md: it is missing"
truth_mode: strict
truth_checks:
  - exists_nonempty
  - freshness
  - verification_consistency
truth_required_commands: []
truth_last_status: unknown
truth_last_checked_at: ""
truth_last_failures: []
truth_input_snapshot: artifacts/input-snapshot.json
execution_log_required: true
execution_log_exemption_reason: ""
lesson_capture_required: true
lesson_capture_exemption_reason: ""
github_issue_number: ""
github_issue_url: ""
uat_last_status: ""
uat_open_issues: []
---

# {title}

## Objective

## Inputs

## Outputs

## Acceptance Criteria

- A card is charged once.
- A refused card charges nothing.

## Verification

## Success Hook

## Progress Log

## Relevant Lessons Learned
"""


def of_the_existing_tool(above: Path) -> Path:
    """A workspace exactly as the existing tool writes it."""
    root = above / "PJ-20260214-001-payments-the-new-way"
    stream = root / "workstreams" / "WS-20260214-001-checkout"
    first = stream / "jobs" / "WI-20260214-001-charge-a-card"
    second = stream / "jobs" / "WI-20260214-002-refund-a-card"
    for job in (first, second):
        for name in ("inputs", "outputs", "artifacts", "notes", "logs"):
            (job / name).mkdir(parents=True)
    (root / "plan.md").write_text(PROJECT)
    (stream / "plan.md").write_text(STREAM)
    plan = JOB.format(id="WI-20260214-001", title="Charge: a card", status="in_progress", depends=" []")
    two = JOB.format(id="WI-20260214-002", title="Refund a card #2", status="done", depends="\n  - WI-20260214-001")
    (first / "plan.md").write_text(plan)
    (second / "plan.md").write_text(two)
    (first / "artifacts" / "verification.md").write_text("No blocking issue remains.\n")
    for name in ("outputs", "notes", "logs"):
        (root / name).mkdir()
    (root / "logs" / "execution.jsonl").write_text('{"work_item_id": "WI-20260214-001", "exit_code": 0}\n')
    return root


def everything_in(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file and folder, with content and time of change."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in folder.rglob("*")
    }


@pytest.fixture(params=["small", "big"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    form: Form = request.param
    made = create_project(tmp_path, "Shop", form=form)
    for title in ("Log in", "Log out", "Pay by card"):
        add_job(made, title, workstream="Web" if form == "big" else None)
    return made


def ids(workspace: Workspace) -> list[str]:
    return [place.id for place in workspace.places()]


def test_both_forms_have_a_project_and_jobs_that_are_read_alike(workspace: Workspace) -> None:
    first, second, third = ids(workspace)
    assert workspace.project().title == "Shop"
    assert [workspace.job(name).title for name in (first, second, third)] == ["Log in", "Log out", "Pay by card"]
    assert workspace.project().id.startswith("PJ-")
    assert workspace.folder == workspace.root / ".donewhen"
    assert [place.path.name for place in workspace.places()] == ["plan.md"] * 3


def test_the_two_forms_differ_only_in_where_files_stand(tmp_path: Path) -> None:
    small = create_project(tmp_path, "Shop")
    job = add_job(small, "Log in")
    assert small.where(small.project_file) == "jobs/plan.md"
    assert small.where(job.path) == f"jobs/{job.id}-log-in/plan.md"
    assert list(small.workstream_folders()) == []
    (tmp_path / "x").mkdir()
    big = create_project(tmp_path / "x", "Shop", form="big")
    job = add_job(big, "Log in", workstream="Web")
    stream = next(iter(big.workstream_folders())).name
    assert big.where(big.project_file) == "plan.md"
    assert big.where(job.path) == f"workstreams/{stream}/jobs/{job.id}-log-in/plan.md"
    assert big.where(tmp_path) == str(tmp_path)


def test_a_project_is_found_from_itself_and_from_everywhere_below(workspace: Workspace) -> None:
    job = workspace.job(ids(workspace)[0])
    below = workspace.root / "src" / "deep"
    below.mkdir(parents=True)
    for start in (workspace.root, below, job.folder, job.folder / "outputs", job.folder.parent, workspace.folder):
        assert find_workspace(start) == workspace, start


def test_a_project_is_found_through_a_link_to_it(workspace: Workspace, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(workspace.root, target_is_directory=True)
    assert find_workspace(link).root == workspace.root


def test_the_only_project_in_a_folder_is_meant_there(tmp_path: Path) -> None:
    made = create_project(tmp_path, "Shop", form="big")
    assert find_workspace(tmp_path) == made
    assert find_workspace(tmp_path).form == "big"


def test_a_project_folder_with_another_name_is_known_by_its_workstreams(tmp_path: Path) -> None:
    root = of_the_existing_tool(tmp_path).rename(tmp_path / "payments")
    assert find_workspace(root / "notes").root == root
    assert [place.id for place in find_workspace(root).places()] == ["WI-20260214-001", "WI-20260214-002"]


def test_several_projects_in_a_folder_must_be_told_apart(tmp_path: Path) -> None:
    names = [create_project(tmp_path, title, form="big").root.name for title in ("One", "Two")]
    with pytest.raises(WorkspaceError) as caught:
        find_workspace(tmp_path)
    assert_sentences(caught.value)
    assert all(name in caught.value.message for name in names)
    assert "--project" in str(caught.value.next_step)
    assert find_workspace(tmp_path / names[1]).project().title == "Two"


def test_where_there_are_no_jobs_the_way_to_begin_is_named(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "plan.md").write_text(PROJECT)
    with pytest.raises(WorkspaceError) as caught:
        find_workspace(tmp_path)
    assert_sentences(caught.value)
    assert (caught.value.code, int(caught.value.exit_code)) == ("workspace", 2)
    assert "donewhen init" in str(caught.value.next_step)


def test_a_search_does_not_leave_the_repository(tmp_path: Path) -> None:
    create_project(tmp_path, "Outside")
    inner = tmp_path / "vendored"
    (inner / ".git").mkdir(parents=True)
    with pytest.raises(WorkspaceError) as caught:
        find_workspace(inner)
    assert_sentences(caught.value)


def test_the_command_line_takes_the_project_that_is_named(tmp_path: Path, donewhen: Callable[..., object]) -> None:
    roots = [create_project(tmp_path, title, form="big").root for title in ("One", "Two")]
    unnamed = donewhen(["status"], tmp_path)
    assert (unnamed.returncode, "2 projects" in unnamed.stderr) == (2, True)
    named = donewhen(["status", "--project", str(roots[1])], tmp_path)
    assert named.returncode == 0, named.stderr
    assert "Two" in named.stdout
    assert "One" not in named.stdout


@pytest.mark.parametrize("look", ["status", "why", "audit", "log", "contract"])
def test_a_workspace_of_the_existing_tool_opens_and_nothing_is_left_in_it(
    tmp_path: Path, donewhen: Callable[..., object], look: str
) -> None:
    root = of_the_existing_tool(tmp_path)
    before = everything_in(tmp_path)
    arguments = {"why": ["why", "WI-20260214-001"], "contract": ["contract", "diff"]}.get(look, [look])
    done = donewhen(arguments, root)
    assert done.returncode in (0, 1), done.stderr
    assert everything_in(tmp_path) == before


def test_a_workspace_of_the_existing_tool_says_what_it_says(tmp_path: Path) -> None:
    found = find_workspace(of_the_existing_tool(tmp_path))
    project = found.project()
    assert (project.id, project.title, project.status) == ("PJ-20260214-001", "Payments: the new way", "in_progress")
    first, second = (found.job(name) for name in ("WI-20260214-001", "WI-20260214-002"))
    assert (first.title, first.status, first.stakes, first.iteration) == ("Charge: a card", "in_progress", "high", 1)
    assert [criterion.text for criterion in first.criteria] == [
        "A card is charged once.",
        "A refused card charges nothing.",
    ]
    assert second.depends_on == (first.id,)
    looked = survey_jobs(found)
    assert [job.agreement for job in looked.jobs] == ["unsealed", "unsealed"]
    assert (looked.project_agreement, looked.problems) == ("unsealed", ())


def test_a_rewrite_of_a_foreign_file_changes_the_one_line(tmp_path: Path) -> None:
    found = find_workspace(of_the_existing_tool(tmp_path))
    path = found.place("WI-20260214-002").path
    before = path.read_text()
    after = found.write(found.read(path), path, {"status": "blocked"})
    assert path.read_text() == before.replace("status: done", "status: blocked")
    assert (after.text, after.fields["status"]) == (path.read_text(), "blocked")


def test_a_job_is_found_by_id_by_ending_by_slug_and_by_folder(workspace: Workspace) -> None:
    first = next(iter(workspace.places()))
    for name in (first.id, first.id[-3:], first.id[3:], "log-in", "in", first.path.parent.name):
        assert workspace.place(name) == first, name
        assert isinstance(workspace.place(name), JobPlace)


def test_an_ending_is_made_of_whole_words(workspace: Workspace) -> None:
    for name in ("og-in", "01", "", "-"):
        with pytest.raises(UsageError) as caught:
            workspace.place(name)
        assert_sentences(caught.value)


def test_a_name_that_fits_several_jobs_is_refused_with_all_of_them(workspace: Workspace) -> None:
    again = add_job(workspace, "Also pay by card", workstream="Web" if workspace.form == "big" else None)
    with pytest.raises(UsageError) as caught:
        workspace.job("card")
    assert_sentences(caught.value)
    assert again.folder.name in caught.value.message
    assert ids(workspace)[2] in caught.value.message
    assert workspace.job("also-pay-by-card").id == again.id


def test_a_whole_id_wins_over_a_folder_that_ends_with_it(workspace: Workspace) -> None:
    first = ids(workspace)[0]
    stream = "Web" if workspace.form == "big" else None
    add_job(workspace, f"Do again {first}", workstream=stream)
    assert workspace.job(first).title == "Log in"


def test_a_folder_without_an_id_is_a_job_when_it_has_a_plan(workspace: Workspace) -> None:
    folder = next(iter(workspace.job_folders())) / "by-hand"
    folder.mkdir()
    assert "by-hand" not in ids(workspace)
    (folder / "plan.md").write_text("---\nwork_item_id: WI-20260101-777\ntitle: By hand\n---\n")
    assert "by-hand" in ids(workspace)
    assert workspace.job("by-hand").id == "WI-20260101-777"


def test_links_hidden_folders_and_files_are_not_jobs(workspace: Workspace, tmp_path: Path) -> None:
    above = next(iter(workspace.job_folders()))
    before = ids(workspace)
    job = workspace.place(before[0]).path.parent
    (above / "WI-20260101-001-link").symlink_to(job, target_is_directory=True)
    job.rename(above / ".WI-20260101-002-hidden")
    (above / "WI-20260101-003-file").write_text("x")
    assert ids(workspace) == before[1:]


def test_a_project_whose_folders_are_gone_has_no_jobs(tmp_path: Path) -> None:
    small = Workspace(tmp_path, "small")
    (tmp_path / "workstreams").write_text("a file")
    big = Workspace(tmp_path, "big")
    assert (list(small.places()), list(big.places())) == ([], [])


def test_a_plan_that_states_another_id_than_its_folder_is_refused_with_its_line(workspace: Workspace) -> None:
    path = workspace.place("log-in").path
    path.write_text(path.read_text().replace(f"work_item_id: {ids(workspace)[0]}", "work_item_id: WI-20260214-999"))
    with pytest.raises(WorkspaceError) as e:
        workspace.job("log-in")
    assert_sentences(e.value)
    assert e.value.where == f"{workspace.where(path)}:4"
    assert path.read_text().splitlines()[3] == "work_item_id: WI-20260214-999"


def test_a_plan_without_an_id_is_refused(workspace: Workspace) -> None:
    path = workspace.place("log-in").path
    path.write_text("---\ntitle: Nobody\n---\n")
    with pytest.raises(FieldError) as caught:
        workspace.job("log-in")
    assert_sentences(caught.value)
    assert caught.value.where == workspace.where(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_link(path: Path) -> None:
    target = path.with_name("elsewhere.md")
    target.write_text("---\nwork_item_id: WI-20260214-001\n---\n")
    path.symlink_to(target)


def a_circle(path: Path) -> None:
    path.symlink_to(path)


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as unix_socket:
            unix_socket.bind(path.name)
    finally:
        os.chdir(here)


def nothing(path: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize(
    "replace",
    [
        a_folder,
        a_link,
        a_circle,
        a_fifo,
        a_socket,
        nothing,
    ],
)
def test_a_plan_that_is_no_file_is_named_and_the_others_go_on(
    workspace: Workspace, replace: Callable[[Path], None]
) -> None:
    first, second, third = (place.path for place in workspace.places())
    first.unlink()
    replace(first)
    with pytest.raises(DocumentError) as caught:
        workspace.job_at(first)
    assert_sentences(caught.value)
    assert str(caught.value.where).startswith(workspace.where(first))
    assert [workspace.job_at(path).title for path in (second, third)] == ["Log out", "Pay by card"]
    assert [job.title for job in survey_jobs(workspace).jobs] == ["Log out", "Pay by card"]


@pytest.mark.parametrize("replace", [a_folder, a_link, a_fifo, nothing])
def test_a_plan_that_is_no_file_leaves_no_descriptor_open(
    workspace: Workspace, replace: Callable[[Path], None]
) -> None:
    path = workspace.place("log-in").path
    path.unlink()
    replace(path)
    before = os.listdir("/dev/fd")
    for _ in range(5):
        with pytest.raises(DocumentError):
            workspace.read(path)
        survey_jobs(workspace)
    assert len(os.listdir("/dev/fd")) == len(before)


def test_a_plan_that_is_a_pipe_with_a_silent_writer_is_one_finding(workspace: Workspace) -> None:
    path = workspace.place("log-in").path
    path.unlink()
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        with pytest.raises(DocumentError):
            workspace.job_at(path)
        found = survey_jobs(workspace)
    finally:
        os.close(writer)
    assert [job.title for job in found.jobs] == ["Log out", "Pay by card"]
    assert [(problem.code, problem.where.partition(":")[0]) for problem in found.problems] == [
        ("document", workspace.where(path))
    ]


def test_a_field_that_cannot_be_rewritten_line_by_line_is_refused_with_its_file_and_line(workspace: Workspace) -> None:
    path = workspace.place("log-in").path
    path.write_text("---\nwork_item_id: &a X\nstatus: planned\nother: *a\n---\n")
    before = path.read_bytes()
    with pytest.raises(DocumentError) as caught:
        workspace.write(workspace.read(path), path, {"work_item_id": "Y"})
    assert_sentences(caught.value)
    assert caught.value.where == f"{workspace.where(path)} line 2"
    assert path.read_bytes() == before


def test_writing_what_is_there_already_touches_nothing(workspace: Workspace) -> None:
    path = workspace.place("log-in").path
    before = (path.stat().st_mtime_ns, path.stat().st_ino)
    document = workspace.read(path)
    assert workspace.write(document, path, {"status": "planned"}) is document
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_what_a_killed_writer_left_beside_a_plan_is_swept_by_the_next(workspace: Workspace) -> None:
    path = workspace.place("log-in").path
    left = path.with_name(".donewhen-0123456789abcdef.tmp")
    left.write_text("half")
    mine = path.with_name("notes.tmp")
    mine.write_text("mine")
    workspace.write(workspace.read(path), path, {"status": "planned"})
    assert (left.exists(), mine.exists()) == (False, True)


def test_times_are_written_in_utc_to_the_second(workspace: Workspace) -> None:
    assert len(workspace.now()) == len("2026-02-14T09:00:00Z")
    assert workspace.now().endswith("Z")
