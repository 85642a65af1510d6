"""One view: whatever shows a job says the same about its state, the reason and the next step."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from donewhen.completion import JobChecker
from donewhen.jobs.board.board_states import survey_states
from donewhen.jobs.board.job_state import STATES
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.board.tracker import tracker_path
from donewhen.jobs.board.views import dashboard_path, rebuild_views, update_views
from donewhen.jobs.gates.evidence_status import sign_off
from donewhen.jobs.gates.job_view import view_job
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import WorkspaceError
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.dispatch import dispatch_call
from donewhen.mcp.tool_steps import tool_step
from donewhen.mcp.tools import TOOLS
from donewhen.testing import make_context
from donewhen_kit import git_command, run_main

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from changes_kit import PRICE, shop_with
from job_states_kit import ADA, KINDS, Kind, Stage

Words = tuple[str, str | None, str]
"""A state, a code and a next step."""
WRITTEN = [kind for kind in KINDS if kind.state != "record_broken"]
"""The kinds with a plan that an evaluation writes to."""
_RESTING = {"done", "cancelled", "out_of_budget", "blocked", "asked", "disputed", "needs_person"}


@dataclass(frozen=True)
class Project:
    """A project with a job of every kind."""

    stage: Stage
    jobs: dict[str, Job]

    def cli(self, *arguments: str) -> str:
        return run_main(arguments, self.stage.root).stdout

    def data(self, *arguments: str) -> Any:
        return json.loads(self.cli(*arguments, "--json"))["data"]

    def tool(self, name: str, **arguments: Any) -> Any:
        tool = next(tool for tool in TOOLS if tool.name == name)
        outcome = dispatch_call(tool, arguments, CallContext(self.stage.root))
        assert outcome.data is not None, outcome.text
        return outcome.data

    def listed(self) -> dict[str, Any]:
        return {job["id"]: job for job in self.tool("list_jobs", limit=100)["jobs"]}

    def board(self) -> dict[str, Any]:
        rows: dict[str, Any] = json.loads(dashboard_path(self.stage.workspace).read_text())["jobs"]
        return rows


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    root = tmp_path_factory.mktemp("one") / "repository"
    root.mkdir()
    git_command(root, "init", "-q", "-b", "main")
    with pytest.MonkeyPatch.context() as patch:
        stage = Stage(root, git_command, patch)
        jobs = {kind.name: kind.make(stage) for kind in KINDS}
        made = Project(stage, jobs)
        # Each is evaluated once, which records what the gates say: a survey shows what was recorded.
        for job in jobs.values():
            made.cli("next", job.id)
        rebuild_views(stage.workspace)
        yield made


def shown(data: Any) -> Words:
    return data["state"], data["code"], data["next"]


def in_text(text: str) -> Words:
    state = re.search(r"^state: (\w+)(?: \[(\w+)\])?$", text, re.MULTILINE)
    step = re.search(r"^next: (.*)$", text, re.MULTILINE)
    assert state and step, text
    return state[1], state[2], step[1]


def named(words: tuple[str, str | None, str], job: Job) -> Words:
    state, code, step = words
    return state, code, step.replace("JOB", job.id)


def for_tools(words: Words) -> Words:
    """The same for an agent that has tools: its next step names the tool and not the command."""
    state, code, step = words
    return state, code, tool_step(step)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_everything_that_evaluates_a_job_says_the_same(project: Project, kind: Kind) -> None:
    job = project.jobs[kind.name]
    expected = named(kind.words, job)
    view = view_job(project.stage.workspace, project.stage.read(job))
    assert (view.word, view.code, view.next) == expected
    assert in_text(project.cli("why", job.id)) == expected
    assert shown(project.data("why", job.id)) == expected
    assert shown(project.tool("show_job", job=job.id)) == for_tools(expected)
    assert shown(project.tool("next_action", job=job.id)) == for_tools(expected)
    assert page_of(project, job) == expected
    assert hook_of(project, job, expected) == expected


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_what_records_an_evaluation_says_the_same(project: Project, kind: Kind) -> None:
    job = project.jobs[kind.name]
    expected = named(kind.words, job)
    assert in_text(project.cli("next", job.id)) == expected
    assert shown(project.data("next", job.id)) == expected
    assert shown(project.data("reward", job.id)) == expected
    assert shown(project.tool("check_job", job=job.id)) == for_tools(expected)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_everything_that_shows_many_jobs_says_the_same(project: Project, kind: Kind) -> None:
    job = project.jobs[kind.name]
    expected = ("done", None, "donewhen ready") if kind.unrecorded else named(kind.words, job)
    recorded = survey_states(survey_jobs(project.stage.workspace))[job.id]
    assert (recorded.word, recorded.code, recorded.next) == expected
    # Lists look at the outputs of done jobs, too, but evaluate no gates.
    listed = named(kind.words, job)
    status = {row["id"]: row for row in project.data("status")["jobs"]}
    assert shown(status[job.id]) == listed
    assert shown(project.listed()[job.id]) == for_tools(listed)
    row = project.board()[job.id]
    assert (row["state"], row["code"] or None, row["next_command"]) == expected
    finished = expected[0] in ("done", "cancelled")
    line = next(line for line in project.cli("status", "--all").splitlines() if line.startswith(f"  {job.id} "))
    assert line.split()[1] == listed[0]
    assert (finished and not kind.unrecorded) or line.endswith(f"(next: {listed[2]})")
    assert live_row_of(project, job) == expected


@pytest.mark.parametrize("kind", WRITTEN, ids=[kind.name for kind in WRITTEN])
def test_the_plan_and_the_tracker_end_with_the_same_next_step(project: Project, kind: Kind) -> None:
    job = project.stage.read(project.jobs[kind.name])
    expected = "donewhen ready" if kind.name == "on_reopened" else named(kind.words, job)[2]
    note = str(job.document.fields["reward_last_next_action"])
    assert note.endswith(f"(next: {expected})")
    with io.StringIO(tracker_path(project.stage.workspace).read_text()) as table:
        cells = {row["id"]: row["reward_last_next_action"] for row in csv.DictReader(table)}
    assert cells[job.id] == note


def test_notes_are_shown_by_everything_that_shows_the_gates(tmp_path: Path) -> None:
    shop = shop_with(tmp_path / "shop")
    shop.write("src/shop/price.py", PRICE.format(result="4"))
    shop.write("README.md", "Changed.\n")
    note = "README.md changed outside the work area; the checks pass without it"
    stage = SimpleNamespace(root=shop.root, workspace=shop.workspace)
    project = Project(cast("Stage", stage), {})
    assert project.data("run", shop.id)["runs"]
    assert shop.view.notes == (note,)
    assert f"  note: {note}" in project.cli("why", shop.id).splitlines()
    assert project.data("why", shop.id)["notes"] == [note]
    assert f"  note: {note}" in project.cli("next", shop.id).splitlines()
    assert project.data("next", shop.id)["notes"] == [note]
    assert project.tool("show_job", job=shop.id)["notes"] == [note]
    assert project.tool("check_job", job=shop.id)["notes"] == [note]
    assert f"Note: {note}." in page_text_of(project, shop.job)
    assert project.data("complete", shop.id)["evaluation"]["notes"] == [note]


def page_text_of(project: Project, job: Job) -> str:
    pytest.importorskip("jinja2")
    from donewhen.web.job_page import job_page

    return _rendered(project, job_page, job=job.id)


def page_of(project: Project, job: Job) -> Words:
    """What the page of a job says."""
    text = page_text_of(project, job)
    if "<h2>Done</h2>" in text:
        return "done", None, "donewhen ready"
    found = re.search(
        r'State: <b>([^<]*)</b>(?: <code class="code">(\w+)</code>)?</p><p>Next: <code dir="auto">([^<]*)</code>', text
    )
    assert found, text[:2000]
    return found[1].replace(" ", "_"), found[2], html.unescape(found[3])


def live_row_of(project: Project, job: Job) -> tuple[str, str | None, str]:
    """What the served board gets about a job."""
    pytest.importorskip("jinja2")
    from donewhen.web.board_page import live_board

    row = live_board(_request(project)).board.jobs[job.id]
    return row.state, row.code or None, row.next_command


def _request(project: Project, job: str = "") -> Any:
    from donewhen.web.file_watch import TOPICS
    from donewhen.web.page_request import PageRequest, Surveys
    from donewhen.web.project_folder import ProjectFolder

    return PageRequest(ProjectFolder(project.stage.root), {"job": job}, {}, (1,) * len(TOPICS), Surveys())


def _rendered(project: Project, make: Callable[[Any], Any], job: str = "") -> str:
    from donewhen.web.rendering import render_template

    page = make(_request(project, job))
    return render_template(page.template, {"base": "", "csrf": "", "person": "", "why_not": "", **page.values})


def hook_of(project: Project, job: Job, expected: Words) -> Words:
    """What the stop hook says. It names state and next step if it holds an agent, and lets it go in resting states."""
    result = JobChecker(jobs=[job.id], root=project.stage.root).check(make_context())
    if result.complete:
        assert expected[0] in _RESTING
        return expected
    pattern = r"is not done: .* State: (\w+)(?: \[(\w+)\])?\. Next: (.*?)\.(?: Then run: \S+ \S+ \S+)? \(or,"
    found = re.search(pattern, str(result.feedback))
    assert found, result.feedback
    return found[1], found[2], found[3]


def test_the_hook_holds_an_agent_in_all_states_that_are_no_rest(project: Project) -> None:
    for kind in KINDS:
        job = project.jobs[kind.name]
        result = JobChecker(jobs=[job.id], root=project.stage.root).check(make_context())
        assert result.complete == (kind.state in _RESTING), kind.name


def test_every_state_occurs_in_the_list_of_kinds() -> None:
    assert {kind.state for kind in KINDS} == set(STATES)
    assert len({kind.name for kind in KINDS}) == len(KINDS)


# What only shows in a project of its own


@pytest.fixture
def stage(repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(repository, git, monkeypatch)


def everywhere(stage: Stage, job: Job) -> set[Words]:
    """What a live view, a survey and the dashboard say."""
    view = view_job(stage.workspace, stage.read(job))
    recorded = survey_states(survey_jobs(stage.workspace))[job.id]
    row = json.loads(dashboard_path(stage.workspace).read_text())["jobs"][job.id]
    return {
        (view.word, view.code, view.next),
        (recorded.word, recorded.code, recorded.next),
        (row["state"], row["code"] or None, row["next_command"]),
    }


def test_a_void_project_is_what_all_its_jobs_are_about(stage: Stage) -> None:
    done, planned = stage.done("Done"), stage.new("Planned", started=False)
    (stage.root / "donewhen.toml").write_text("[approval]\nci = true\n")
    rebuild_views(stage.workspace)
    void = {("voided", "agreement_voided", "donewhen contract diff")}
    assert everywhere(stage, done) == everywhere(stage, planned) == void


def test_a_job_is_ready_as_soon_as_its_dependency_is_done(stage: Stage) -> None:
    above = stage.new("Above")
    job = stage.new("Below", started=False, depends_on=[above.id])
    update_views(stage.workspace, job)
    assert everywhere(stage, job) == {("waiting", "dependency_open", "donewhen ready")}
    assert stage.complete(above).done
    assert everywhere(stage, job) == {("ready", "not_started", f"donewhen start {job.id}")}
    assert start_job(stage.workspace, above.id, stage.complete(above).entry.by).started
    assert everywhere(stage, job) == {("waiting", "dependency_open", "donewhen ready")}


def test_a_job_that_was_not_evaluated_since_its_start_has_no_recorded_reason(stage: Stage) -> None:
    job = stage.new("Started", work=False)
    assert everywhere(stage, job) == {
        ("in_progress", "output_missing", f"donewhen why {job.id}"),
        ("in_progress", None, f"donewhen next {job.id}"),
    }


def test_an_evaluation_counts_only_until_something_decides_otherwise(stage: Stage) -> None:
    job = stage.new("Manual", "It reads well.\n  check: manual")
    run_main(["next", job.id], stage.root)
    assert {words[1] for words in everywhere(stage, job)} == {"needs_human"}
    sign_off(stage.workspace, stage.read(job), "AC-1", "It does.", ADA)
    update_views(stage.workspace, stage.read(job))
    recorded = survey_states(survey_jobs(stage.workspace))[job.id]
    assert (recorded.word, recorded.code, recorded.next) == ("in_progress", None, f"donewhen next {job.id}")


def test_a_plan_that_cannot_be_read_is_reported_everywhere_and_hides_no_other_job(stage: Stage) -> None:
    job, other = stage.new("Garbled"), stage.new("Sound", started=False)
    job.path.write_text("---\nid: [\n---\n")
    rebuild_views(stage.workspace)
    project = Project(stage, {})
    assert json.loads(project.cli("why", job.id, "--json"))["findings"]
    assert [problem["where"] for problem in project.tool("list_jobs")["problems"]]
    board = json.loads(dashboard_path(stage.workspace).read_text())
    assert [unread["where"] for unread in board["unread"]] == [stage.workspace.where(job.path)]
    assert list(board["jobs"]) == [other.id]
    with pytest.raises(WorkspaceError):
        JobChecker(root=stage.root).check(make_context())


def test_why_lists_a_missing_output_once_and_does_not_end_with_itself(project: Project) -> None:
    job = project.jobs["refused_again"]
    lines = project.cli("why", job.id).splitlines()
    assert sum("[output_missing]" in line and line.startswith("  ✗ ") for line in lines) == 1
    assert lines[-1] == f"Resolve what is listed above, then: donewhen complete {job.id}"


@pytest.mark.parametrize("name", ["proposed", "agreed"])
def test_why_lists_no_output_of_a_job_that_was_not_started(project: Project, name: str) -> None:
    said = project.cli("why", project.jobs[name].id)
    assert "  ✗ [" not in said
    assert "Resolve what is listed" not in said


def test_a_refusal_says_what_the_job_is_after_it(stage: Stage) -> None:
    job = stage.new("Failing", stage.script("failing", "exit 1\n"), stakes="low")
    for _ in range(2):
        assert stage.complete(job).state.word == "in_progress"
    assert stage.complete(job).state.word == "out_of_budget"
    assert everywhere(stage, job) == {
        ("out_of_budget", "budget_exceeded", f'donewhen decide {job.id} --raise-budget 4 --reason "…"')
    }


def test_only_jobs_in_the_state_ready_are_offered_to_start(project: Project) -> None:
    ready = [row["id"] for row in project.data("status")["jobs"] if row["state"] == "ready"]
    assert project.jobs["agreed"].id in ready
    assert project.data("ready")["ready"] == [job["id"] for job in project.tool("ready_jobs")["ready"]] == ready


def test_a_job_that_waits_for_a_forged_completion_is_not_offered_to_start(stage: Stage) -> None:
    above = stage.new("Above", work=False)
    job = stage.new("Below", started=False, depends_on=[above.id])
    stage.edit(above, "status: in_progress", "status: done")
    project = Project(stage, {})
    assert project.data("next")["job"] == above.id
    assert project.data("ready")["ready"] == []
    rebuild_views(stage.workspace)
    assert everywhere(stage, job) == {("waiting", "dependency_open", "donewhen ready")}
