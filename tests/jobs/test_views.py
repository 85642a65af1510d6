"""The task tracker and the dashboard: current, safe to open, and rebuilt where they are broken."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import donewhen
from donewhen.dashboard.seal import seal_page
from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.board import row_states
from donewhen.jobs.board.row_states import row_in_context
from donewhen.jobs.board.tracker import tracker_path
from donewhen.jobs.board.views import ViewFact, dashboard_path, open_jobs_on_dashboard, rebuild_views, update_views
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.gates.evaluation import evaluate
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.gates.facts import facts_of
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from donewhen.jobs.plan.creating import add_job, create_project
from sentences import assert_sentences

if TYPE_CHECKING:
    from donewhen.dashboard.data import JobRow
    from donewhen.jobs.board.recorded_dependencies import RecordedDependencies
    from donewhen.jobs.contract.agreement import AgreementState
    from donewhen.jobs.plan.job import Job

Bench = Any
ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
CURRENT = ViewFact(tracker=True, dashboard=True)


class Page(HTMLParser):
    """What a browser would see: the texts of cells and headings, and every tag that is there."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.data = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = f"{tag} {dict(attrs).get('id', '')}".strip()
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script data":
            self.data += data
        elif data.strip() and self._inside not in ("script", "style"):
            self.texts.append(data)


def tracker(bench: Bench) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tracker_path(bench.workspace).read_text(), newline="")))


def dashboard(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(dashboard_path(bench.workspace).read_bytes())
    return found


def page(bench: Bench) -> Page:
    return Page(dashboard_path(bench.workspace, "html").read_text(encoding="utf-8"))


def fresh(bench: Bench, job: Job) -> ViewFact:
    return facts_of(bench.workspace, bench.read(job)).views


def test_both_views_have_every_job(bench: Bench) -> None:
    first = bench.done("First")
    second = bench.job("Second", stakes="high", depends_on=[first.id], started=False)
    rebuild_views(bench.workspace)
    one, two = tracker(bench)
    assert (one["id"], one["work_item_id"], one["task"], one["status"]) == (first.id, first.id, "First", "done")
    assert (two["id"], two["work_item_id"], two["task"], two["status"]) == (second.id, second.id, "Second", "planned")
    shown = dashboard(bench)
    assert shown["schema"] == "donewhen/dashboard/v4"
    assert list(shown["jobs"]) == [first.id, second.id]
    assert shown["counts"] == {"planned": 1, "in_progress": 0, "blocked": 0, "done": 1, "cancelled": 0}
    project = bench.workspace.project()
    about = {"id": project.id, "title": "Demo", "status": project.status, "agreement": "agreed"}
    assert shown["project"] == about
    assert shown["unread"] == []
    seen = page(bench).texts
    # The second names the first as its dependency.
    assert [item for item in seen if item.startswith("WI-")] == [first.id, second.id, first.id]
    assert f"{project.id} · agreed · 1 planned · 1 done" in seen


def test_the_tracker_has_the_columns_of_the_existing_tool_in_their_order(bench: Bench) -> None:
    bench.job()
    assert tracker_path(bench.workspace).read_text().splitlines()[0] == (
        "id,work_item_id,workstream_id,workstream_title,wave_id,task,status,priority,due_date,estimate_hours,"
        "depends_on,started_at,completed_at,blocked_reason,rework_count,rework_reason,reward_target,"
        "reward_last_score,reward_last_next_action,notes"
    )


def test_a_row_of_the_tracker_says_what_plan_and_ledger_say(bench: Bench) -> None:
    first, second = bench.done("First"), bench.done("Second")
    third = bench.job("Third", depends_on=[first.id, second.id])
    bench.edit(third, "priority: 2", "priority: 1")
    bench.edit(third, "estimate_hours: 1.0", "estimate_hours: 2.5")
    bench.edit(third, 'due_date: ""', "due_date: 2026-03-01")
    bench.edit(third, 'wave_id: ""', "wave_id: WV-1")
    set_job_aside(bench.workspace, third.id, BOT, reason="no network")
    done, _, row = tracker(bench)
    assert row == {
        "id": third.id,
        "work_item_id": third.id,
        "workstream_id": "",
        "workstream_title": "",
        "wave_id": "WV-1",
        "task": "Third",
        "status": "blocked",
        "priority": "1",
        "due_date": "2026-03-01",
        "estimate_hours": "2.5",
        "depends_on": f"{first.id}, {second.id}",
        "started_at": str(third.document.fields["started_at"]),
        "completed_at": "",
        "blocked_reason": "no network",
        "rework_count": "0",
        "rework_reason": "",
        "reward_target": "80",
        "reward_last_score": "0",
        "reward_last_next_action": "",
        "notes": "",
    }
    assert (done["reward_last_score"], done["completed_at"]) == ("97", str(first.document.fields["completed_at"]))
    assert_sentences(done["reward_last_next_action"])


def test_a_workstream_is_named_in_both_views(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Shop", form="big")
    job = add_job(workspace, "Sell", workstream="Till")
    update_views(workspace, job)
    (row,) = csv.DictReader(io.StringIO(tracker_path(workspace).read_text(), newline=""))
    workstream = job.path.parents[2].name[:15]
    assert (row["workstream_id"], row["workstream_title"]) == (workstream, "Till")
    shown = json.loads(dashboard_path(workspace).read_bytes())["jobs"][job.id]
    assert (shown["workstream"], shown["workstream_title"]) == (workstream, "Till")
    before = dashboard_path(workspace).read_bytes()
    rebuild_views(workspace)
    assert dashboard_path(workspace).read_bytes() == before


def test_the_tracker_is_named_after_its_day_and_an_older_one_is_kept_up(bench: Bench) -> None:
    folder = bench.workspace.base / "outputs"
    assert tracker_path(bench.workspace).name == "2026-02-14-task-tracker.csv"
    folder.mkdir()
    for name in ("2025-01-02-task-tracker.csv", "2025-11-30-task-tracker.csv"):
        (folder / name).write_text("old")
    assert tracker_path(bench.workspace) == folder / "2025-11-30-task-tracker.csv"
    job = bench.job()
    assert fresh(bench, job) == CURRENT
    assert (folder / "2025-01-02-task-tracker.csv").read_text() == "old"
    assert len(list(folder.glob("*.csv"))) == 2


# Current


STEPS: dict[str, Callable[[Bench, Any], object]] = {
    "start": lambda bench, job: bench.start(job),
    "run": lambda bench, job: collect_evidence(bench.workspace, job, BOT, again=True),
    "look": lambda bench, job: evaluate_and_record(bench.workspace, job.id, BOT, collecting=True),
    "complete": lambda bench, job: bench.complete(job),
    "block": lambda bench, job: set_job_aside(bench.workspace, job.id, BOT, reason="no network"),
    "ask": lambda bench, job: set_job_aside(bench.workspace, job.id, BOT, question="which log?"),
}
COMMANDS = {
    "agree": ["agree", "JOB"],
    "raise": ["decide", "JOB", "--raise-budget", "9", "--reason", "why"],
    "stakes": ["decide", "JOB", "--stakes", "high", "--reason", "why"],
    "cancel": ["decide", "JOB", "--cancel", "--reason", "why"],
    "sign-off": ["sign-off", "JOB", "--criterion", "AC-1", "--reason", "I read it"],
}


@pytest.fixture
def written(bench: Bench) -> Job:
    """A job of which something by hand and something by a look has to be shown."""
    job: Job = bench.job(criteria=["It reads well.", "It is there.\n  check: file outputs/primary.md"])
    bench.write(job)
    assert fresh(bench, job) == CURRENT
    return job


@pytest.mark.parametrize("step", STEPS)
def test_the_views_are_current_after_every_step_of_the_work(bench: Bench, written: Job, step: str) -> None:
    before = bench.workspace.ledger.head(written.id)
    STEPS[step](bench, written)
    assert bench.workspace.ledger.head(written.id) != before
    assert fresh(bench, written) == CURRENT


@pytest.mark.parametrize("command", COMMANDS)
def test_the_views_are_current_after_every_word_of_a_person(
    bench: Bench, written: Job, as_person: Callable[..., Any], command: str
) -> None:
    if command == "agree":
        bench.edit(written, "reward_target: 80", "reward_target: 70")
    before = bench.workspace.ledger.head(written.id)
    run = as_person([word.replace("JOB", written.id) for word in COMMANDS[command]], bench.root)
    assert run.status == 0, run.screen
    assert bench.workspace.ledger.head(written.id) != before
    assert fresh(bench, written) == CURRENT


def test_a_new_job_is_in_the_views_at_once(bench: Bench, donewhen: Callable[..., Any]) -> None:
    bench.job()
    assert donewhen(["add", "Another", "--criterion", "It works."], bench.root).returncode == 0
    assert fresh(bench, bench.workspace.job("another")) == CURRENT


def test_jobs_that_are_invalidated_are_shown_as_open_again(bench: Bench) -> None:
    first = bench.done("First")
    second = bench.done("Second", depends_on=[first.id])
    assert open_jobs_on_dashboard(bench.workspace) == frozenset()
    bench.start(first)
    bench.write(first, "The log has 13 lines.\n")
    assert bench.complete(first).done
    assert open_jobs_on_dashboard(bench.workspace) == {second.id}
    assert fresh(bench, second) == CURRENT


def test_a_change_reaches_every_row_that_depends_on_it_and_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bench.job("First")
    second = bench.job("Second", depends_on=[first.id], started=False)
    third = bench.job("Third", depends_on=[second.id], started=False)
    fourth = bench.job("Fourth", depends_on=[bench.job("Fifth").id], started=False)
    reached: list[str] = []

    def noted(row: JobRow, project: AgreementState, dependencies: RecordedDependencies) -> JobRow:
        reached.append(row.id)
        return row_in_context(row, project, dependencies)

    monkeypatch.setattr(row_states, "row_in_context", noted)
    bench.write(first)
    assert bench.complete(first).done
    assert {*reached} == {first.id, second.id, third.id}
    states = {name: row["state"] for name, row in dashboard(bench)["jobs"].items()}
    assert (states[second.id], states[third.id], states[fourth.id]) == ("ready", "waiting", "waiting")


def test_a_job_whose_dependency_is_gone_or_unreadable_says_so_with_the_next_write_of_another(bench: Bench) -> None:
    first, other = bench.done("First"), bench.job("Other")
    second = bench.job("Second", depends_on=[first.id], started=False)

    def code() -> str:
        update_views(bench.workspace, bench.read(other))
        shown = str(dashboard(bench)["jobs"][second.id]["code"])
        rebuild_views(bench.workspace)
        assert shown == dashboard(bench)["jobs"][second.id]["code"]
        return shown

    assert code() == "not_started"
    plan = first.path.read_bytes()
    dashboard_path(bench.workspace).unlink()
    first.path.write_bytes(b"No plan.")
    assert code() == "dependency_invalid"
    shutil.rmtree(first.folder)
    assert code() == "dependency_missing"
    first.folder.mkdir()
    first.path.write_bytes(plan)
    assert code() == "not_started"
    shutil.rmtree(first.folder)
    assert code() == "dependency_missing"


def test_all_rows_follow_the_agreement_of_the_project(bench: Bench) -> None:
    (bench.root / "donewhen.toml").write_text('[stop]\nfiles = ["README.md"]\n')
    first, second = bench.job("First"), bench.job("Second")
    for settings, state in (("", "voided"), ('[stop]\nfiles = ["README.md"]\n', "in_progress")):
        (bench.root / "donewhen.toml").write_text(settings)
        update_views(bench.workspace, bench.read(first))
        rows = dashboard(bench)["jobs"]
        assert (rows[first.id]["state"], rows[second.id]["state"]) == (state, state)


def test_the_dashboard_shows_how_the_project_stands(bench: Bench) -> None:
    job = bench.job()
    assert dashboard(bench)["project"]["status"] == bench.workspace.project().status == "in_progress"
    bench.write(job)
    assert bench.complete(job).cascade
    assert dashboard(bench)["project"]["status"] == bench.workspace.project().status == "done"


def test_open_is_what_is_neither_done_nor_cancelled(bench: Bench) -> None:
    first = bench.job("First")
    second = bench.job("Second", started=False)
    third = bench.done("Third")
    fourth = bench.job("Fourth")
    decide(bench.workspace, fourth, Decision("cancel", "why"), ADA)
    set_job_aside(bench.workspace, first.id, BOT, reason="no network")
    rebuild_views(bench.workspace)
    assert open_jobs_on_dashboard(bench.workspace) == {first.id, second.id}
    assert third.id in dashboard(bench)["jobs"]


def test_a_project_is_done_when_its_last_open_job_was_cancelled_before(bench: Bench) -> None:
    """The views say what is open, so a cancelled job must not stand there as open."""
    first, second = bench.job("First"), bench.job("Second")
    decide(bench.workspace, second, Decision("cancel", "not needed"), ADA)
    bench.write(first)
    assert [item.id for item in bench.complete(first).cascade] == [bench.workspace.project().id]


def test_a_job_whose_folder_is_gone_does_not_stay_in_the_views(bench: Bench) -> None:
    first, second = bench.job("First"), bench.job("Second")
    shutil.rmtree(second.folder)
    bench.write(first)
    bench.complete(first)
    assert second.id not in dashboard(bench)["jobs"]


def test_updating_one_row_reads_no_other_plan(bench: Bench) -> None:
    first, second = bench.job("First"), bench.job("Second")
    bench.edit(second, "title: Second", "title: Renamed")
    update_views(bench.workspace, bench.read(first))
    assert dashboard(bench)["jobs"][second.id]["title"] == "Second"
    assert [row["task"] for row in tracker(bench)] == ["First", "Second"]
    rebuild_views(bench.workspace)
    assert [row["task"] for row in tracker(bench)] == ["First", "Renamed"]


def test_a_view_that_says_something_else_of_the_job_is_not_current(bench: Bench) -> None:
    job = bench.job()
    path = tracker_path(bench.workspace)
    path.write_text(path.read_text().replace("in_progress", "done"))
    assert fresh(bench, job) == ViewFact(tracker=False, dashboard=True)
    update_views(bench.workspace, bench.read(job))
    path = dashboard_path(bench.workspace)
    path.write_text(path.read_text().replace('"status":"in_progress","stakes"', '"status":"done","stakes"'))
    assert fresh(bench, job) == ViewFact(tracker=True, dashboard=False)


def test_a_page_that_says_something_else_than_the_data_is_not_current(bench: Bench) -> None:
    job = bench.job()
    path = dashboard_path(bench.workspace, "html")
    path.write_text(path.read_text().replace('"status":"in_progress"', '"status":"done"'))
    assert fresh(bench, job) == ViewFact(tracker=True, dashboard=False)
    update_views(bench.workspace, bench.read(job))
    assert fresh(bench, job) == CURRENT


EDITS: dict[str, Callable[[bytes], bytes]] = {
    "data": lambda page: page.replace(b'"iteration":0', b'"iteration":1', 1),
    "list": lambda page: page.replace(b"<td>in progress</td>", b"<td>done</td>"),
    "title": lambda page: page.replace(b"<title>Demo</title>", b"<title>All done</title>"),
    "script": lambda page: page.replace(b'"use strict";', b'"use strict"; ', 1),
    "policy": lambda page: page.replace(b"default-src 'none'", b"default-src *"),
    "end": lambda page: page + b"<p>done</p>",
    "cut": lambda page: page[:-100],
    "seal": lambda page: page.rpartition(b"<!-- sha256:")[0],
    "empty": lambda page: b"",
}


FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "data": EDITS["data"],
    "script": EDITS["script"],
    "policy": EDITS["policy"],
    "end": EDITS["end"],
    "before": lambda page: b"<p>done</p>" + page,
    "in the list": lambda page: page.replace(b"<td>in progress</td>", b"<td></noscript><h1>All done</h1></td>"),
    "in the title": lambda page: page.replace(b"<title>", b"<title>All done</title><title>"),
    "beside the data": lambda page: page.replace(b'<script type="application/json"', b"<p>done</p><script type='a'"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_an_edit_is_seen_even_with_a_new_seal(bench: Bench, forgery: str) -> None:
    job = bench.job()
    path = dashboard_path(bench.workspace, "html")
    page = path.read_bytes().rpartition(b"<!-- sha256:")[0]
    path.write_bytes(seal_page(page))
    assert fresh(bench, job) == CURRENT
    assert FORGERIES[forgery](page) != page
    path.write_bytes(seal_page(FORGERIES[forgery](page)))
    assert fresh(bench, job) == ViewFact(tracker=True, dashboard=False)


@pytest.mark.parametrize("edit", EDITS)
def test_any_edit_of_the_page_is_seen(bench: Bench, edit: str) -> None:
    job = bench.job()
    path = dashboard_path(bench.workspace, "html")
    changed = EDITS[edit](path.read_bytes())
    assert changed != path.read_bytes()
    path.write_bytes(changed)
    assert fresh(bench, job) == ViewFact(tracker=True, dashboard=False)
    update_views(bench.workspace, bench.read(job))
    assert fresh(bench, job) == CURRENT


def test_a_page_of_another_state_is_not_current(bench: Bench) -> None:
    job = bench.job()
    path = dashboard_path(bench.workspace, "html")
    earlier = path.read_bytes()
    set_job_aside(bench.workspace, job.id, BOT, reason="no network")
    assert fresh(bench, job) == CURRENT
    path.write_bytes(earlier)
    assert fresh(bench, job) == ViewFact(tracker=True, dashboard=False)


RENDERER = "donewhen.dashboard.page"


def test_facts_and_score_render_no_page(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    job = bench.job()

    def rendered(*_: object) -> bytes:
        raise AssertionError("The page was rendered.")

    for name in ("render_dashboard", "serve_dashboard"):
        monkeypatch.setattr(f"{RENDERER}.{name}", rendered)
    facts = facts_of(bench.workspace, bench.read(job))
    assert facts.views == CURRENT
    components = {component.name: component for component in evaluate(facts).score.components}
    assert components["views"].got == components["views"].possible
    with pytest.raises(AssertionError):
        set_job_aside(bench.workspace, job.id, BOT, reason="no network")


_STOP = f"""
import sys
from donewhen.cli.hook import main
assert main(["stop", "--runtime", "claude"]) == 0
assert "donewhen.jobs.gates.facts" in sys.modules, "the gates were not evaluated"
assert {RENDERER!r} not in sys.modules, "the page's renderer was imported"
"""


def test_the_stop_hook_evaluates_the_gates_and_imports_no_page_renderer(bench: Bench) -> None:
    job = bench.job()
    (bench.root / "donewhen.toml").write_text("[stop]\njobs = true\n")
    event = {"session_id": "s", "cwd": str(bench.root), "hook_event_name": "Stop", "stop_hook_active": False}
    run = subprocess.run(
        [sys.executable, "-c", _STOP], cwd=bench.root, input=json.dumps(event), capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert job.id in json.loads(run.stdout)["reason"]


def test_the_same_state_is_written_in_the_same_bytes_whether_bit_by_bit_or_anew(bench: Bench) -> None:
    first = bench.done("First")
    second = bench.job("Second", depends_on=[first.id])
    bench.complete(second)
    set_job_aside(bench.workspace, second.id, BOT, question="which log?")
    third = bench.job("Third", started=False)
    decide(bench.workspace, third, Decision("cancel", "why"), ADA)
    bench.job("Fourth", agreed=False)
    bench.start(first)
    bench.write(first, "The log has 13 lines.\n")
    bench.complete(first)
    update_views(bench.workspace, bench.read(third), bench.read(bench.workspace.job("fourth")))
    paths = [*sorted((bench.workspace.base / "outputs").glob("[!.]*"))]
    before = {path: (path.read_bytes(), path.stat().st_ino) for path in paths}
    assert len(paths) == 3
    rebuild_views(bench.workspace)
    assert {path: path.read_bytes() for path in paths} == {path: raw for path, (raw, _) in before.items()}
    # What is the same is not written again.
    assert {path: path.stat().st_ino for path in paths} == {path: inode for path, (_, inode) in before.items()}
    for name in ("cache", "index.sqlite"):
        place = bench.workspace.folder / name
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    rebuild_views(bench.workspace)
    assert {path: path.read_bytes() for path in paths} == {path: raw for path, (raw, _) in before.items()}


def test_a_job_that_came_from_elsewhere_is_in_the_views_with_the_next_write(bench: Bench) -> None:
    first = bench.job("First")
    folder = first.folder.parent / "WI-20260214-050-merged"
    shutil.copytree(first.folder, folder)
    plan = folder / "plan.md"
    plan.write_text(plan.read_text().replace(first.id, "WI-20260214-050").replace("title: First", "title: Merged"))
    update_views(bench.workspace, bench.read(first))
    assert dashboard(bench)["jobs"]["WI-20260214-050"]["title"] == "Merged"


def test_a_job_that_can_t_be_read_is_named_and_keeps_nobody_out(bench: Bench) -> None:
    first, second = bench.job("First"), bench.job("Second")
    second.path.write_text("---\nstatus: [\n---\n")
    rebuild_views(bench.workspace)
    (unreadable,) = dashboard(bench)["unread"]
    assert unreadable["where"] == f"jobs/{second.folder.name}/plan.md"
    assert unreadable["says"]
    update_views(bench.workspace, bench.read(first))
    assert dashboard(bench)["unread"] == [unreadable]
    assert list(dashboard(bench)["jobs"]) == [first.id]


# What the dashboard knows of a job


def test_gates_are_shown_as_last_asked_each_reason_with_a_sentence(bench: Bench) -> None:
    job = bench.job()
    assert dashboard(bench)["jobs"][job.id]["gates"] == []
    bench.complete(job)
    shown = dashboard(bench)["jobs"][job.id]
    gates = {gate["gate"]: gate for gate in shown["gates"]}
    assert [name for name, gate in gates.items() if gate["open"]] == ["agreement", "budget"]
    assert gates["truth"]["reasons"][0]["code"] == "criterion_failed"
    assert [reason["code"] for reason in gates["reward"]["reasons"]] == ["score_too_low"]
    assert_sentences(reason["says"] for name in ("truth", "reward") for reason in gates[name]["reasons"])
    assert all(reason["says"] for gate in gates.values() for reason in gate["reasons"])
    assert (shown["iteration"], shown["max_iterations"], shown["target"]) == (1, 3, 80)
    assert_sentences(shown["next_action"])
    bench.write(job)
    bench.complete(job)
    assert all(gate["open"] for gate in dashboard(bench)["jobs"][job.id]["gates"])


def test_all_scores_and_changes_of_status_are_there_with_their_times(bench: Bench) -> None:
    job = bench.job()
    bench.complete(job)
    bench.write(job)
    bench.complete(job)
    shown = dashboard(bench)["jobs"][job.id]
    assert [score["what"] for score in shown["scores"]] == ["refused", "completed"]
    entries = bench.workspace.ledger.read(job.id).entries
    times = {entry.type: entry.at for entry in entries}
    assert shown["scores"][-1] == {"at": times["completed"], "score": shown["score"], "what": "completed"}
    assert shown["moves"] == [
        {"at": times["started"], "status": "in_progress"},
        {"at": times["completed"], "status": "done"},
    ]
    assert shown["receipt"] == entries[-1].hash
    bench.start(job)
    again = dashboard(bench)["jobs"][job.id]
    assert again["receipt"] == ""
    assert [move["status"] for move in again["moves"]] == ["in_progress", "done", "in_progress"]


def test_why_a_job_is_blocked_is_said_while_it_is(bench: Bench) -> None:
    job = bench.job(stakes="low")

    def blocked_reason() -> str:
        return str(dashboard(bench)["jobs"][job.id]["blocked_reason"])

    set_job_aside(bench.workspace, job.id, BOT, question="which\nlog?")
    assert blocked_reason() == tracker(bench)[0]["blocked_reason"] == "which log?"
    collect_evidence(bench.workspace, bench.read(job), BOT, again=True)
    update_views(bench.workspace, bench.read(job))
    assert blocked_reason() == "which log?"
    bench.start(job)
    assert blocked_reason() == ""
    for _ in range(3):
        bench.complete(job)
    assert bench.read(job).status == "blocked"
    assert_sentences(blocked_reason())


@pytest.mark.parametrize(
    ("make", "command"),
    [
        (lambda bench: bench.job(agreed=False), "donewhen agree {}"),
        (lambda bench: bench.job(started=False), "donewhen start {}"),
        (lambda bench: bench.job(), "donewhen next {}"),
        (lambda bench: bench.done(), "donewhen ready"),
    ],
    ids=["proposed", "agreed", "started", "done"],
)
def test_the_next_command_fits_where_a_job_stands(bench: Bench, make: Callable[[Bench], Any], command: str) -> None:
    job = make(bench)
    rebuild_views(bench.workspace)
    assert dashboard(bench)["jobs"][job.id]["next_command"] == command.format(job.id)


def test_an_agreement_that_was_voided_and_a_field_that_was_edited_show(bench: Bench) -> None:
    job = bench.job()
    bench.edit(job, "reward_target: 80", "reward_target: 10")
    bench.edit(job, "status: in_progress", "status: done")
    for bring in (lambda: update_views(bench.workspace, bench.read(job)), lambda: rebuild_views(bench.workspace)):
        bring()
        shown = dashboard(bench)["jobs"][job.id]
        assert (shown["agreement"], shown["tampered"]) == ("voided", ["status"])
    bench.edit(job, "status: done", "status: in_progress")
    update_views(bench.workspace, bench.read(job))
    assert dashboard(bench)["jobs"][job.id]["next_command"] == f"donewhen contract diff {job.id}"


@pytest.mark.parametrize("hours", ["99999999999999999999999", "-3", "true", '"much"', "[]"])
def test_a_plan_with_odd_values_is_shown_all_the_same(bench: Bench, hours: str) -> None:
    job = bench.job(agreed=False)
    bench.edit(job, "estimate_hours: 1.0", f"estimate_hours: {hours}\npriority_: {hours}")
    bench.edit(job, "rework_count: 0", "rework_count: 123456789012345678901234567890")
    rebuild_views(bench.workspace)
    assert dashboard(bench)["jobs"][job.id]["estimate_hours"] in (1.0, 1_000_000.0)
    assert fresh(bench, job) == CURRENT


# The newest events


def test_the_newest_events_of_all_chains_are_there_in_one_sentence_each(bench: Bench) -> None:
    first = bench.job("First")
    set_job_aside(bench.workspace, first.id, Actor("ada", "person"), reason="no network")
    events = dashboard(bench)["events"]
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)
    project = bench.workspace.project().id
    assert {(event["chain"], event["type"]) for event in events} == {
        (project, "agreed"),
        (project, "started"),
        (first.id, "agreed"),
        (first.id, "started"),
        (first.id, "decided"),
    }
    last = events[-1]
    assert (last["chain"], last["by"], last["kind"], last["says"]) == (first.id, "ada", "person", "block: no network")


def test_no_more_than_the_newest_hundred_are_kept_whoever_they_are_about(bench: Bench) -> None:
    first, second = bench.job("First"), bench.job("Second")
    for number in range(60):
        for job in (first, second):
            set_job_aside(bench.workspace, job.id, BOT, reason=f"why {number}")
    events = dashboard(bench)["events"]
    assert len(events) == 100
    assert [event["says"] for event in events[:2]] == ["block: why 10", "block: why 10"]
    assert {event["chain"] for event in events} == {first.id, second.id}
    before = dashboard_path(bench.workspace).read_bytes()
    rebuild_views(bench.workspace)
    assert dashboard_path(bench.workspace).read_bytes() == before


def test_what_a_command_ran_is_among_the_events(bench: Bench, donewhen: Callable[..., Any]) -> None:
    job = bench.job()
    bench.write(job)
    assert donewhen(["run", job.id], bench.root).returncode == 0
    last = dashboard(bench)["events"][-1]
    assert (last["type"], last["chain"]) == ("ran", job.id)
    assert last["says"].startswith("file outputs/primary.md: passed")


# What people write beside it


def noted(bench: Bench, job: Job, note: str, *, separator: str = ",", start: str = "") -> None:
    """Somebody opens the tracker in a spreadsheet, types a note, and saves it."""
    path = tracker_path(bench.workspace)
    rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
    for row in rows:
        if row[0] == job.id:
            row[-1] = note
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator).writerows(rows)
    path.write_text(start + stream.getvalue(), newline="")


@pytest.mark.parametrize("saved", [{}, {"separator": ";"}, {"start": "\ufeff"}, {"separator": "\t", "start": "\ufeff"}])
@pytest.mark.parametrize("note", ["Ask Bo, she knows", 'two\nlines, and "quotes"', "日本語"])
def test_notes_in_the_tracker_are_kept(bench: Bench, note: str, saved: dict[str, str]) -> None:
    first, second = bench.job("First"), bench.job("Second")
    noted(bench, second, note, **saved)
    set_job_aside(bench.workspace, first.id, BOT, reason="no network")
    assert [row["notes"] for row in tracker(bench)] == ["", note]
    rebuild_views(bench.workspace)
    assert [row["notes"] for row in tracker(bench)] == ["", note]
    assert (fresh(bench, first), fresh(bench, second)) == (CURRENT, CURRENT)


def test_a_note_is_no_formula_and_hides_nothing(bench: Bench) -> None:
    job = bench.job()
    noted(bench, job, "=1+1\x1b[31m\u202e")
    for _ in range(2):
        rebuild_views(bench.workspace)
        assert tracker(bench)[0]["notes"] == "'=1+1"
        assert fresh(bench, job) == CURRENT


def test_a_tracker_in_other_columns_is_replaced(bench: Bench) -> None:
    job = bench.job()
    path = tracker_path(bench.workspace)
    path.write_text(f"work_item_id,title,status\n{job.id},Parser,done\n")
    assert not fresh(bench, job).tracker
    update_views(bench.workspace, job)
    assert fresh(bench, job) == CURRENT


def test_views_that_were_removed_or_edited_cost_points_once_and_are_repaired(bench: Bench) -> None:
    job = bench.job()
    bench.write(job)
    tracker_path(bench.workspace).unlink()
    dashboard_path(bench.workspace, "html").write_text("nothing")
    done = bench.complete(job)
    assert done.done
    assert done.evaluation.score.total == 86
    assert fresh(bench, job) == CURRENT


def test_a_workstream_without_a_plan_that_can_be_read_goes_by_its_folder(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Shop", form="big")
    job = add_job(workspace, "Sell", workstream="Till")
    workstream = job.path.parents[2]
    (workstream / "plan.md").unlink()
    for bring in (
        lambda: update_views(workspace, job),
        lambda: update_views(workspace, job),
        lambda: rebuild_views(workspace),
    ):
        bring()
        shown = json.loads(dashboard_path(workspace).read_bytes())["jobs"][job.id]
        assert (shown["workstream"], shown["workstream_title"]) == (workstream.name, "")


# Broken files


def test_views_that_are_not_there_are_not_current(bench: Bench) -> None:
    job = bench.job(agreed=False)
    rebuild_views(bench.workspace)
    shutil.rmtree(bench.workspace.base / "outputs")
    assert fresh(bench, job) == ViewFact(tracker=False, dashboard=False)
    assert open_jobs_on_dashboard(bench.workspace) == frozenset()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"schema": "donewhen/dashboard/v4"}',
        b'{"schema": "donewhen/dashboard/v4", "jobs": []}',
        b'{"schema": "donewhen/dashboard/v4", "jobs": {"WI-20260214-009": "text"}}',
        b'{"schema": "donewhen/dashboard/v4", "jobs": {"WI-20260214-009": {"status": "done"}}}',
        b'{"schema": "donewhen/dashboard/v4", "jobs": {"WI-20260214-009": {"surplus": "x"}}}',
        b'{"schema": "another/v9", "jobs": {"WI-20260214-009": {}}}',
        b"[" * 100_000,
    ],
    ids=[
        "empty",
        "binary",
        "torn",
        "list",
        "null",
        "bare",
        "no-jobs",
        "jobs-list",
        "row-text",
        "row-short",
        "row-other",
        "schema",
        "deep",
    ],
)
def test_a_broken_dashboard_is_rebuilt(bench: Bench, content: bytes) -> None:
    first, second = bench.job("First"), bench.job("Second")
    dashboard_path(bench.workspace).write_bytes(content)
    assert not fresh(bench, first).dashboard
    update_views(bench.workspace, first)
    assert list(dashboard(bench)["jobs"]) == [first.id, second.id]
    assert (fresh(bench, first), fresh(bench, second)) == (CURRENT, CURRENT)


@pytest.mark.parametrize("damage", [{"iteration": "3"}, {"surplus": 1}, {"id": "WI-20260214-077"}, {"gates": [{}]}])
def test_a_job_with_a_value_that_it_can_t_have_is_made_anew(bench: Bench, damage: dict[str, Any]) -> None:
    first, second = bench.job("First"), bench.job("Second")
    shown = dashboard(bench)
    shown["jobs"][second.id] |= damage
    dashboard_path(bench.workspace).write_text(json.dumps(shown))
    update_views(bench.workspace, first)
    assert fresh(bench, second) == CURRENT


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text.replace("work_item_id,", "item,"),
        lambda text: text + text.splitlines()[1] + "\n",
        lambda text: re.sub(r"^(WI-[^,]*),.*$", r"\1,short", text, flags=re.MULTILINE),
        lambda text: re.sub(r"^(WI-.*)$", r"\1,more", text, flags=re.MULTILINE),
        lambda text: text.replace("WI-", "XX-"),
        lambda text: "\udcff",
    ],
    ids=["empty", "header", "twice", "short", "long", "gone", "binary"],
)
def test_a_broken_tracker_is_not_current_and_is_rebuilt(bench: Bench, damage: Callable[[str], str]) -> None:
    job = bench.job()
    path = tracker_path(bench.workspace)
    path.write_bytes(damage(path.read_text()).encode("utf-8", "surrogateescape"))
    assert fresh(bench, job) == ViewFact(tracker=False, dashboard=True)
    update_views(bench.workspace, job)
    assert fresh(bench, job) == CURRENT


def test_a_tracker_with_line_ends_of_another_system_is_still_current(bench: Bench) -> None:
    job = bench.job()
    path = tracker_path(bench.workspace)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert fresh(bench, job).tracker


def test_a_tracker_that_was_deleted_is_written_with_every_job(bench: Bench) -> None:
    first, second = bench.job("First"), bench.job("Second")
    tracker_path(bench.workspace).unlink()
    assert fresh(bench, first) == ViewFact(tracker=False, dashboard=True)
    update_views(bench.workspace, first)
    assert [row["work_item_id"] for row in tracker(bench)] == [first.id, second.id]


def test_a_plan_that_cannot_be_read_does_not_keep_the_others_out(bench: Bench) -> None:
    first, second = bench.job("First"), bench.job("Second")
    second.path.write_text("---\nstatus: [\n---\n")
    rebuild_views(bench.workspace)
    assert fresh(bench, first) == CURRENT


# Hostile words


@pytest.mark.parametrize("title", ["=1+1", "+1", "-1", "@SUM(A1)", "'quoted", "=HYPERLINK(\"x\",'y')"])
def test_no_cell_of_the_tracker_is_a_formula(bench: Bench, title: str) -> None:
    job = bench.job(title)
    (row,) = tracker(bench)
    assert row["task"] == f"'{title}"
    assert not any(value[:1] in ("=", "+", "-", "@") for value in row.values())
    assert dashboard(bench)["jobs"][job.id]["title"] == title
    assert fresh(bench, job) == CURRENT


def test_a_title_with_commas_quotes_and_other_scripts_is_one_cell(bench: Bench) -> None:
    title = 'a, "b"; c — 日本語 \N{PILE OF POO}'
    job = bench.job(title)
    (row,) = tracker(bench)
    assert (row["task"], row["work_item_id"]) == (title, job.id)
    assert fresh(bench, job) == CURRENT


def test_a_row_is_a_line_whatever_stands_in_the_plan(bench: Bench) -> None:
    first, second = bench.job("First"), bench.job("Second")
    forged = f"2026\n{second.id},{second.id},,,,forged,done,2,,1.0,,,,,0,,80,100,,"
    bench.workspace.write(first.document, first.path, {"due_date": forged})
    update_views(bench.workspace, bench.read(first))
    assert len(tracker_path(bench.workspace).read_text().splitlines()) == 3
    assert (fresh(bench, first), fresh(bench, second)) == (CURRENT, CURRENT)


HOSTILE = "<script>document.title='owned'</script><img src=x onerror=alert(1)>{title} & \"q\" 'q'"


def test_a_hostile_title_is_text_on_the_page(bench: Bench) -> None:
    job = bench.job(HOSTILE)
    plan = bench.workspace.project_file
    plan.write_text(plan.read_text().replace("title: Demo", f"title: {json.dumps(HOSTILE)}"))
    update_views(bench.workspace, job)
    seen = page(bench)
    assert "img" not in seen.tags
    assert seen.tags.count("script") == 2
    # As the page's title, and without a script as its heading and the job's cell.
    assert seen.texts.count(HOSTILE) == 3
    assert (seen.tags.count("table"), seen.tags.count("tr")) == (1, 2)
    data = json.loads(seen.data)
    assert (data["project"]["title"], data["jobs"][job.id]["title"]) == (HOSTILE, HOSTILE)


def test_the_page_holds_the_very_bytes_of_the_data_and_they_cannot_end_its_element(bench: Bench) -> None:
    bench.job("</script><!--<script>")
    raw = dashboard_path(bench.workspace).read_bytes()
    assert b"<" not in raw
    assert raw in dashboard_path(bench.workspace, "html").read_bytes()


def test_the_page_may_load_nothing_and_run_only_our_script(bench: Bench) -> None:
    bench.job()
    text = dashboard_path(bench.workspace, "html").read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    script, style = (re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("script", "style"))
    assert script is not None
    assert style is not None
    hashes = [base64.b64encode(hashlib.sha256(item[1].encode()).digest()).decode() for item in (script, style)]
    assert policy[1] == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; base-uri 'none'; "
        "form-action 'none'"
    )
    assert text.index("Content-Security-Policy") < text.index("<title>")
    assert re.findall(r"https?://[^\s\"']*", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(
        r"src=|href=\"(?!#)|@import|url\((?!#)|innerHTML|outerHTML|insertAdjacent|document\.write", text
    )
    assert not re.search(r"\beval\(|new Function|fetch\(|XMLHttpRequest|import\(", text)


def test_a_terminal_escape_in_a_title_reaches_no_view(bench: Bench) -> None:
    job = bench.job(agreed=False)
    bench.edit(job, "title: Parser", 'title: "Par\\e[31mser\\u202e\\nnext"')
    rebuild_views(bench.workspace)
    assert dashboard(bench)["jobs"][job.id]["title"] == "Parser next"
    for path in (
        tracker_path(bench.workspace),
        dashboard_path(bench.workspace),
        dashboard_path(bench.workspace, "html"),
    ):
        assert not re.search("\x1b|\\\\u001b|\u202e", path.read_text())


@pytest.mark.parametrize("name", ["outputs", "outputs/dashboard.html"])
def test_a_link_that_leads_out_of_the_project_is_not_written_through(tmp_path: Path, name: str) -> None:
    workspace = create_project(tmp_path / "project", "Shop")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("mine")
    place = workspace.base / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside if name == "outputs" else outside / "kept")
    with pytest.raises(DonewhenError) as caught:
        rebuild_views(workspace)
    assert_sentences(caught.value)
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_text() == "mine"


# Together


def test_many_processes_at_once_leave_what_one_would_have_written(bench: Bench) -> None:
    jobs = [bench.job(f"Job {number}") for number in range(6)]
    commands = [["block", job.id, "--reason", f"why {job.id}"] for job in jobs] + [["dashboard"], ["dashboard"]]
    environment = {**os.environ, "NO_COLOR": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "donewhen", *command], cwd=bench.root, env=environment, stdout=subprocess.DEVNULL
        )
        for command in commands
    ]
    assert [process.wait(100) for process in running] == [0] * len(commands)
    assert [row["blocked_reason"] for row in tracker(bench)] == [f"why {job.id}" for job in jobs]
    before = {path: path.read_bytes() for path in (bench.workspace.base / "outputs").glob("[!.]*")}
    assert len(before) == 3
    rebuild_views(bench.workspace)
    assert {path: path.read_bytes() for path in before} == before


def test_colours_are_defined_once_for_all_pages() -> None:
    package = Path(donewhen.__file__).parent
    defining = [
        path for path in package.rglob("*.css") if re.search(r"--[a-z_-]+:[^;}]*#[0-9a-f]{3}", path.read_text())
    ]
    assert defining == [package / "dashboard/base.css"]
    named = set(re.findall(r"(--[a-z_-]+):", defining[0].read_text()))
    for path in package.rglob("*.css"):
        assert set(re.findall(r"var\((--[a-z_-]+)", path.read_text())) <= named, path
