"""The task tracker and the dashboard: current, safe to open, and rebuilt where they are broken."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from donewhen.jobs.approval import Approval
from donewhen.jobs.collecting import facts_of
from donewhen.jobs.creating import add_job, init
from donewhen.jobs.decisions import Decision, decide
from donewhen.jobs.facts import ViewFact
from donewhen.jobs.ledger import Actor
from donewhen.jobs.lifecycle import look_at, set_aside
from donewhen.jobs.standing import collect
from donewhen.jobs.tracker import tracker_path
from donewhen.jobs.views import dashboard_path, rebuild, refresh, shown_open

if TYPE_CHECKING:
    from donewhen.jobs.job import Job

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
    rebuild(bench.workspace)
    one, two = tracker(bench)
    assert (one["id"], one["work_item_id"], one["task"], one["status"]) == (first.id, first.id, "First", "done")
    assert (two["id"], two["work_item_id"], two["task"], two["status"]) == (second.id, second.id, "Second", "planned")
    shown = dashboard(bench)
    assert shown["schema"] == "donewhen/dashboard/v2"
    assert list(shown["jobs"]) == [first.id, second.id]
    assert shown["counts"] == {"planned": 1, "in_progress": 0, "blocked": 0, "done": 1, "cancelled": 0}
    project = bench.workspace.project()
    about = {"id": project.id, "title": "Demo", "status": project.status, "agreement": "agreed"}
    assert shown["project"] == about
    assert shown["unread"] == []
    seen = page(bench).texts
    assert [one for one in seen if one.startswith("WI-")] == [first.id, second.id]
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
    set_aside(bench.workspace, third.id, BOT, reason="no network")
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
    assert done["reward_last_next_action"].startswith("Final check")


def test_a_workstream_is_named_in_both_views(tmp_path: Path) -> None:
    workspace = init(tmp_path, "Shop", form="big")
    job = add_job(workspace, "Sell", workstream="Till")
    refresh(workspace, job)
    (row,) = csv.DictReader(io.StringIO(tracker_path(workspace).read_text(), newline=""))
    workstream = job.path.parents[2].name[:15]
    assert (row["workstream_id"], row["workstream_title"]) == (workstream, "Till")
    shown = json.loads(dashboard_path(workspace).read_bytes())["jobs"][job.id]
    assert (shown["workstream"], shown["workstream_title"]) == (workstream, "Till")
    before = dashboard_path(workspace).read_bytes()
    rebuild(workspace)
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
    "run": lambda bench, job: collect(bench.workspace, job, BOT, again=True),
    "look": lambda bench, job: look_at(bench.workspace, job.id, BOT, collecting=True),
    "complete": lambda bench, job: bench.complete(job),
    "block": lambda bench, job: set_aside(bench.workspace, job.id, BOT, reason="no network"),
    "ask": lambda bench, job: set_aside(bench.workspace, job.id, BOT, question="which log?"),
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
    told = as_person([word.replace("JOB", written.id) for word in COMMANDS[command]], bench.root)
    assert told.status == 0, told.screen
    assert bench.workspace.ledger.head(written.id) != before
    assert fresh(bench, written) == CURRENT


def test_a_new_job_is_in_the_views_at_once(bench: Bench, donewhen: Callable[..., Any]) -> None:
    bench.job()
    assert donewhen(["add", "Another", "--criterion", "It works."], bench.root).returncode == 0
    assert fresh(bench, bench.workspace.job("another")) == CURRENT


def test_jobs_that_are_invalidated_are_shown_as_open_again(bench: Bench) -> None:
    first = bench.done("First")
    second = bench.done("Second", depends_on=[first.id])
    assert shown_open(bench.workspace) == frozenset()
    bench.start(first)
    bench.write(first, "The log has 13 lines.\n")
    assert bench.complete(first).done
    assert shown_open(bench.workspace) == {second.id}
    assert fresh(bench, second) == CURRENT


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
    set_aside(bench.workspace, first.id, BOT, reason="no network")
    rebuild(bench.workspace)
    assert shown_open(bench.workspace) == {first.id, second.id}
    assert third.id in dashboard(bench)["jobs"]


def test_a_project_is_done_when_its_last_open_job_was_cancelled_before(bench: Bench) -> None:
    """The views say what is open, so a cancelled job must not stand there as open."""
    first, second = bench.job("First"), bench.job("Second")
    decide(bench.workspace, second, Decision("cancel", "not needed"), ADA)
    bench.write(first)
    assert [one.id for one in bench.complete(first).cascade] == [bench.workspace.project().id]


def test_a_job_whose_folder_is_gone_does_not_stay_in_the_views(bench: Bench) -> None:
    first, second = bench.job("First"), bench.job("Second")
    shutil.rmtree(second.folder)
    bench.write(first)
    bench.complete(first)
    assert second.id not in dashboard(bench)["jobs"]


def test_updating_one_row_reads_no_other_plan(bench: Bench) -> None:
    first, second = bench.job("First"), bench.job("Second")
    bench.edit(second, "title: Second", "title: Renamed")
    refresh(bench.workspace, bench.read(first))
    assert dashboard(bench)["jobs"][second.id]["title"] == "Second"
    assert [one["task"] for one in tracker(bench)] == ["First", "Second"]
    rebuild(bench.workspace)
    assert [one["task"] for one in tracker(bench)] == ["First", "Renamed"]


def test_a_view_that_says_something_else_of_the_job_is_not_current(bench: Bench) -> None:
    job = bench.job()
    path = tracker_path(bench.workspace)
    path.write_text(path.read_text().replace("in_progress", "done"))
    assert fresh(bench, job) == ViewFact(tracker=False, dashboard=True)
    refresh(bench.workspace, bench.read(job))
    path = dashboard_path(bench.workspace)
    path.write_text(path.read_text().replace('"status":"in_progress","stakes"', '"status":"done","stakes"'))
    assert fresh(bench, job) == ViewFact(tracker=True, dashboard=False)


# Broken files


def test_views_that_are_not_there_are_not_current(bench: Bench) -> None:
    job = bench.job(agreed=False)
    shutil.rmtree(bench.workspace.base / "outputs", ignore_errors=True)
    assert fresh(bench, job) == ViewFact(tracker=False, dashboard=False)
    assert shown_open(bench.workspace) == frozenset()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"schema": "donewhen/dashboard/v2"}',
        b'{"schema": "donewhen/dashboard/v2", "jobs": []}',
        b'{"schema": "donewhen/dashboard/v2", "jobs": {"WI-20260214-009": "text"}}',
        b'{"schema": "donewhen/dashboard/v2", "jobs": {"WI-20260214-009": {"status": "done"}}}',
        b'{"schema": "donewhen/dashboard/v2", "jobs": {"WI-20260214-009": {"surplus": "x"}}}',
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
    refresh(bench.workspace, first)
    assert list(dashboard(bench)["jobs"]) == [first.id, second.id]
    assert (fresh(bench, first), fresh(bench, second)) == (CURRENT, CURRENT)


@pytest.mark.parametrize("damage", [{"iteration": "3"}, {"surplus": 1}, {"id": "WI-20260214-077"}, {"gates": [{}]}])
def test_a_job_with_a_value_that_it_can_t_have_is_made_anew(bench: Bench, damage: dict[str, Any]) -> None:
    first, second = bench.job("First"), bench.job("Second")
    shown = dashboard(bench)
    shown["jobs"][second.id] |= damage
    dashboard_path(bench.workspace).write_text(json.dumps(shown))
    refresh(bench.workspace, first)
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
    refresh(bench.workspace, job)
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
    refresh(bench.workspace, first)
    assert [one["work_item_id"] for one in tracker(bench)] == [first.id, second.id]


def test_a_plan_that_cannot_be_read_does_not_keep_the_others_out(bench: Bench) -> None:
    first, second = bench.job("First"), bench.job("Second")
    second.path.write_text("---\nstatus: [\n---\n")
    rebuild(bench.workspace)
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
    refresh(bench.workspace, bench.read(first))
    assert len(tracker_path(bench.workspace).read_text().splitlines()) == 3
    assert (fresh(bench, first), fresh(bench, second)) == (CURRENT, CURRENT)


HOSTILE = "<script>document.title='owned'</script><img src=x onerror=alert(1)>{title} & \"q\" 'q'"


def test_a_hostile_title_is_text_on_the_page(bench: Bench) -> None:
    job = bench.job(HOSTILE)
    plan = bench.workspace.project_file
    plan.write_text(plan.read_text().replace("title: Demo", f"title: {json.dumps(HOSTILE)}"))
    refresh(bench.workspace, job)
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
    hashes = [base64.b64encode(hashlib.sha256(one[1].encode()).digest()).decode() for one in (script, style)]
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
    rebuild(bench.workspace)
    assert dashboard(bench)["jobs"][job.id]["title"] == "Parser next"
    for path in (
        tracker_path(bench.workspace),
        dashboard_path(bench.workspace),
        dashboard_path(bench.workspace, "html"),
    ):
        assert not re.search("\x1b|\\\\u001b|\u202e", path.read_text())
