"""What the pages say, in every state that a project can be in; and that whatever others wrote is text on them."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from web_kit import ADA, BOT, Server, agree_to, shop

from donewhen.demo.example_mission import make_mission
from donewhen.jobs.board.views import dashboard_path, rebuild_views
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.entries import EventKind
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Workspace
from donewhen.judging.mission import read_mission
from donewhen.learning.after.learn_mission import learn
from donewhen.models.registry import open_model
from sentences import assert_sentences, lines_with, visible

Serve = Callable[..., Server]

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)> javascript:alert(4) "
    "\u202egnp.exe\u2066"
)


def words(page: str) -> str:
    """A page as it reads, without its markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def board(server: Server) -> dict[str, Any]:
    """The data in the served page, which is also what the page fetches after a change."""
    page = server.get("/")
    assert page.status == 200
    data: dict[str, Any] = json.loads(page.text.partition('id="data">')[2].partition("</script>")[0])
    assert data == json.loads(server.get("/board.json").text)
    return data


def finished(workspace: Workspace, job: str) -> None:
    start_job(workspace, job, BOT)
    (workspace.root / "out.txt").write_text("hello\n", encoding="utf-8")
    assert complete(workspace, job, BOT).done


# The board


def test_a_folder_without_jobs_says_how_to_begin(tmp_path: Path, serve: Serve) -> None:
    server = serve(tmp_path)
    for path in ("/", "/review"):
        got = server.get(path)
        assert got.status == 200
        assert "donewhen init" in got.text
    assert_sentences(visible(server.get("/missions").text))


def test_jobs_that_come_later_are_there_without_a_restart(tmp_path: Path, serve: Serve) -> None:
    server = serve(tmp_path)
    assert_sentences(visible(server.get("/").text))
    assert server.get("/board.json").status == 404
    workspace = create_project(tmp_path, "Shop")
    # The page that said how to begin is told to load the board instead of it.
    assert server.get("/", HX_Request="true").headers["hx-refresh"] == "true"
    assert board(server)["jobs"] == {}
    job = add_job(workspace, "Greet", criteria=["It says hello"])
    assert list(board(server)["jobs"]) == [job.id]


def test_the_board_has_jobs_by_status_with_gates_score_and_what_is_next(tmp_path: Path, serve: Serve) -> None:
    workspace, jobs = shop(tmp_path, "Planned one", "Refused one", "Asking one", "Done one", "Cancelled one")
    start_job(workspace, jobs[1].id, BOT)
    assert not complete(workspace, jobs[1].id, BOT).done
    start_job(workspace, jobs[2].id, BOT)
    set_job_aside(workspace, jobs[2].id, BOT, question="Comma or semicolon?")
    finished(workspace, jobs[3].id)
    decide(workspace, workspace.job(jobs[4].id), Decision("cancel", "not wanted"), ADA)
    server = serve(tmp_path)
    shown = board(server)["jobs"]
    assert [shown[job.id]["status"] for job in jobs] == ["planned", "in_progress", "blocked", "done", "cancelled"]
    refused = shown[jobs[1].id]
    gates = {gate["gate"]: gate["open"] for gate in refused["gates"]}
    assert (gates["agreement"], gates["truth"]) == (True, False)
    assert refused["score"] < refused["target"] == 80
    assert shown[jobs[2].id]["blocked_reason"] == "Comma or semicolon?"
    assert shown[jobs[0].id]["next_command"] == f"donewhen start {jobs[0].id}"
    assert all(gate["open"] for gate in shown[jobs[3].id]["gates"])
    assert_sentences(visible(server.get("/").text))


def test_the_served_data_is_that_of_the_dashboard_file(tmp_path: Path, serve: Serve) -> None:
    workspace, (first, second) = shop(tmp_path, "First", "Second")
    finished(workspace, first.id)
    start_job(workspace, second.id, BOT)
    rebuild_views(workspace)
    server = serve(tmp_path)
    assert server.get("/board.json").text == dashboard_path(workspace).read_text(encoding="utf-8")


def test_the_served_board_and_the_file_are_the_same_page(tmp_path: Path, serve: Serve) -> None:
    workspace, (first, _) = shop(tmp_path, "First", "<b>Second</b>")
    finished(workspace, first.id)
    rebuild_views(workspace)
    server = serve(tmp_path, "--reviewer", "ada", person=True)
    file = dashboard_path(workspace, "html").read_text(encoding="utf-8")
    style, script = (server.get(f"/static/dashboard.{kind}").text for kind in ("css", "js"))
    # The file has inside what the server sends beside the page, and a policy and a seal of its own.
    alone = file.replace(f"<style>{style}</style>", "STYLE").replace(f"<script>{script}</script>", "SCRIPT")
    alone = re.sub(r"<meta http-equiv[^\n]*\n", "", alone)
    alone = re.sub(r"<!-- sha256:[0-9a-f]{64} -->\n$", "", alone)
    for person, pages in ((None, server), (server.signed_in("ada"),) * 2):
        base = person.base if person else ""
        served = pages.get("/").text
        served = re.sub(
            r'<link rel="icon"[^\n]*\n<link rel="stylesheet" href="/static/dashboard.css">', "STYLE", served
        )
        scripts = re.findall(r'<script src="/static/([a-z_.]+)" defer></script>', served)
        assert scripts == ["dashboard.js", "live.js", "live_board.js"]
        served = re.sub(r'(?:<script src="/static/[a-z_.]+" defer></script>\n?)+', "SCRIPT\n", served)
        # What only a server can offer: where it is, who reads, and its other pages.
        served = re.sub(rf'<body data-server="{base}" data-mark="[^"]*" data-topics="jobs">', "<body>", served)
        served = re.sub(r'<span class="account">.*?</span>(?=<button)', "", served, flags=re.DOTALL)
        for name in ("review", "missions"):
            served = served.replace(f' <a href="{base}/{name}">{name.title()}</a>', "")
            served = served.replace(f'<a href="{base}/{name}">{name.title()}</a>', "")
        served = re.sub(rf'<a href="{base}/jobs/[^"]*">([^<]*)</a>', r"\1", served)
        assert served == alone


def test_a_page_without_scripts_lists_jobs_with_links_and_dependencies(tmp_path: Path, serve: Serve) -> None:
    workspace, (first,) = shop(tmp_path, "First")
    second = add_job(workspace, "Second", depends_on=[first.id], criteria=["It says hello"])
    html = serve(tmp_path).get("/").text
    listed = html.partition("<noscript>")[2].partition("</noscript>")[0]
    assert re.findall(r'<a href="/jobs/([^"]+)">', listed) == [first.id, second.id]
    assert f"<td>{first.id}</td>" in listed
    assert re.findall(r'<a href="(/\w+)">', listed) == ["/review", "/missions"]
    assert_sentences(visible(html))


def test_two_thousand_jobs_are_listed_without_scripts_up_to_a_limit(tmp_path: Path, serve: Serve) -> None:
    _, (job,) = shop(tmp_path, "Greet")
    plan = job.path.read_text(encoding="utf-8")
    for number in range(2, 2001):
        name = f"{job.id[:-3]}{number:03d}" if number < 1000 else f"{job.id[:-3]}{number}"
        folder = tmp_path / "jobs" / f"{name}-greet"
        folder.mkdir()
        (folder / "plan.md").write_text(plan.replace(job.id, name), encoding="utf-8")
    server = serve(tmp_path)
    assert len(board(server)["jobs"]) == 2000
    html = server.get("/").text
    assert html.partition("</noscript>")[0].count("<tr><td>") == 200
    assert_sentences(lines_with(visible(html), "more jobs"))


def test_files_that_cant_be_read_are_shown_and_stop_nobody(tmp_path: Path, serve: Serve) -> None:
    workspace, (one, other) = shop(tmp_path, "Good one", "Bad one")
    other.path.write_bytes(b"---\nwork_item_id: [\n---\n")
    plan = one.path.read_text(encoding="utf-8")
    one.path.write_text(plan.replace("status: planned", "status: done"), encoding="utf-8")
    server = serve(tmp_path)
    shown = board(server)
    assert [problem["where"] for problem in shown["unread"]] == [workspace.where(other.path), workspace.where(one.path)]
    assert_sentences([problem["says"] for problem in shown["unread"]])
    assert list(shown["jobs"]) == [one.id]
    assert shown["jobs"][one.id]["tampered"] == ["status"]
    broken = server.get(f"/jobs/{other.id}")
    assert broken.status == 500
    assert workspace.where(other.path) in broken.text


def test_a_job_in_progress_whose_plan_is_gone_is_named(tmp_path: Path, serve: Serve) -> None:
    workspace, (one, other) = shop(tmp_path, "One", "Other")
    start_job(workspace, other.id, BOT)
    shutil.rmtree(other.folder)
    shown = board(serve(tmp_path))
    assert list(shown["jobs"]) == [one.id]
    assert other.id in [problem["where"] for problem in shown["unread"]]


# A job


def test_a_job_says_what_its_gates_say_now_and_why(tmp_path: Path, serve: Serve) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    server = serve(tmp_path)
    start_job(workspace, job.id, BOT)
    complete(workspace, job.id, BOT)
    html = server.get(f"/jobs/{job.id}").text
    before = words(html)
    assert_sentences(visible(html))
    assert "criterion_failed" in before
    # No event has happened, but the work has: what is asked now is what is answered.
    (tmp_path / "out.txt").write_text("hello\n", encoding="utf-8")
    html_after = server.get(f"/jobs/{job.id}").text
    after = words(html_after)
    assert_sentences(visible(html_after))
    assert f"donewhen run {job.id}" in after


def test_a_job_that_is_done_shows_its_promise_and_one_that_was_says_so(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "notes.md").write_text("Say hello.\n", encoding="utf-8")
    workspace, (job,) = shop(tmp_path, "Greet", inputs=["/notes.md"])
    finished(workspace, job.id)
    server = serve(tmp_path)
    page = words(server.get(f"/jobs/{job.id}").text)
    assert f"<promise>{job.id}-DONE</promise>" in page
    assert "receipt: sha256:" in page
    assert page.count("weak evidence") == 2, "once beside the promise, once beside the criterion"
    (tmp_path / "notes.md").write_text("Say goodbye.\n", encoding="utf-8")
    html = server.get(f"/jobs/{job.id}").text
    later = words(html)
    assert_sentences(visible(html))
    assert "<promise>" not in later


def test_a_job_shows_what_was_agreed_and_what_has_changed_since(tmp_path: Path, serve: Serve) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    server = serve(tmp_path)
    assert_sentences(visible(server.get(f"/jobs/{job.id}").text))
    plan = job.path.read_text(encoding="utf-8")
    line = next(n for n, one in enumerate(plan.splitlines(), 1) if one.startswith("reward_target:"))
    job.path.write_text(plan.replace("reward_target: 80", "reward_target: 10"), encoding="utf-8")
    page = words(server.get(f"/jobs/{job.id}").text)
    assert "voided" in page
    assert "loosened reward_target 80 10" in page
    assert f"{workspace.where(job.path)}:{line}" in page
    assert "Sealed by ada (person)" in page


def test_a_job_shows_its_evidence_with_what_was_put_out_and_the_ledger_with_who_and_when(
    tmp_path: Path, serve: Serve
) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    (tmp_path / "check.sh").write_text("seq 1 5000; echo the last line; test -s out.txt\n", encoding="utf-8")
    start_job(workspace, job.id, BOT)
    complete(workspace, job.id, BOT)
    html = serve(tmp_path).get(f"/jobs/{job.id}").text
    page = words(html)
    assert_sentences(visible(html))
    assert "the last line" in page
    assert "characters omitted …]" in page
    assert re.search(r"agreed sealed as [0-9a-f]{12} ada \(person\)", page)
    assert re.search(r"refused score \d+, closed: [a-z, ]+ bot \(agent\)", page)
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", page)


def test_dependencies_are_named_in_both_directions(tmp_path: Path, serve: Serve) -> None:
    workspace, (first,) = shop(tmp_path, "First")
    second = add_job(workspace, "Second", depends_on=[first.id], criteria=["It says hello"])
    server = serve(tmp_path)
    html = server.get(f"/jobs/{first.id}").text
    text = words(html)
    assert second.id in text
    assert_sentences(visible(html))
    assert f"Waits for {first.id} First open" in words(server.get(f"/jobs/{second.id}").text)


# Missions


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned") / "shop"
    folder.mkdir()
    shop(folder, "Greet")
    make_mission(folder / "missions" / "reports", 120)
    learn(read_mission(folder / "missions" / "reports"), open_model("contrast"))
    return folder


def test_a_mission_shows_what_its_judge_has_learned_and_how(learned: Path, serve: Serve) -> None:
    server = serve(learned)
    html = server.get("/missions").text
    listed = words(html)
    assert re.search(r"reports guidance step [1-9]", listed)
    assert re.search(r"Right in \d+ of \d+; lets \d+ of \d+ bad ones through", listed)
    assert re.search(r"Right in \d+ of \d+; lets \d+ of", words(server.get("/missions/reports").text))
    assert_sentences(visible(html))
    html_page = server.get("/missions/reports").text
    page = words(html_page)
    for part in (
        "Learning curve",
        "Rules",
        "Trials on unseen tickets",
        "Cost",
        "Drift",
        "History of the guidance",
        "Runs",
    ):
        assert part in page, part
    assert_sentences(lines_with(visible(html_page), "G1 ", " step "))
    assert re.search(r"Step 1 add .{10,80} G1 ", page)


def test_a_run_shows_how_far_it_has_come(learned: Path, serve: Serve, tmp_path: Path) -> None:
    server = serve(learned)
    (run,) = (learned / "missions" / "reports" / "runs").glob("2*")
    page = words(server.get(f"/missions/reports/runs/{run.name}").text)
    assert "finished" in page
    assert re.search(r"calls [\d,]+", page)
    assert re.search(r"epoch 1 (\d+) of \1 ", page)
    assert server.get("/missions/reports/runs/none").status == 404
    assert server.get("/missions/none/runs/none").status == 404


def test_a_run_that_is_at_work_is_shown_from_the_events_it_has(learned: Path, serve: Serve, tmp_path: Path) -> None:
    make_mission(tmp_path / "missions" / "reports", 120)
    (done,) = (learned / "missions" / "reports" / "runs").glob("2*")
    lines = (done / "events.jsonl").read_bytes().splitlines(keepends=True)
    run = tmp_path / "missions" / "reports" / "runs" / done.name
    run.mkdir(parents=True)
    cut_off = next(at for at, one in enumerate(lines) if b'"type":"selected"' in one)
    (run / "events.jsonl").write_bytes(b"".join(lines[:cut_off]) + lines[cut_off][:40])
    server = serve(tmp_path)
    html = server.get(f"/missions/reports/runs/{done.name}").text
    page = words(html)
    assert "running" in page
    assert_sentences(visible(html))
    (run / "events.jsonl").write_bytes(b"".join(lines))
    assert "finished" in words(server.get(f"/missions/reports/runs/{done.name}").text)


def test_a_folder_that_is_itself_a_mission_is_shown_as_one(learned: Path, serve: Serve, tmp_path: Path) -> None:
    make_mission(tmp_path / "alone", 60)
    server = serve(tmp_path / "alone")
    assert_sentences(visible(server.get("/").text))
    assert "alone" in words(server.get("/missions").text)
    assert_sentences(visible(server.get("/missions/alone").text))


def test_a_mission_that_cant_be_read_says_why_and_hides_no_other(learned: Path, serve: Serve, tmp_path: Path) -> None:
    make_mission(tmp_path / "missions" / "good", 60)
    broken = tmp_path / "missions" / "broken"
    broken.mkdir()
    (broken / "mission.toml").write_text("mission = 5\n", encoding="utf-8")
    (broken / "mission.toml").write_text("mission = 5\n", encoding="utf-8")
    server = serve(tmp_path)
    page = words(server.get("/missions").text)
    assert "good" in page
    assert "mission.toml" in page
    assert server.get("/missions/broken").status == 500


def test_looking_runs_nobodys_code(tmp_path: Path, serve: Serve) -> None:
    folder = tmp_path / "missions" / "reports"
    make_mission(folder, 60)
    (folder / "own.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef rule(ticket, vote):\n    return None\n", encoding="utf-8"
    )
    settings = folder / "mission.toml"
    settings.write_text(settings.read_text(encoding="utf-8") + '\noverrides = ["own.py:rule"]\n', encoding="utf-8")
    workspace, _ = shop(tmp_path)
    job = add_job(workspace, "Greet", criteria=["It reads well\n  check: judge:reports"], outputs=["/out.txt"])
    agree_to(workspace, [job])
    start_job(workspace, job.id, BOT)
    (tmp_path / "out.txt").write_text("hello\n", encoding="utf-8")
    server = serve(tmp_path)
    for path in ("/", f"/jobs/{job.id}", "/review", "/missions", "/missions/reports"):
        assert server.get(path).status == 200, path
    assert not (tmp_path / "ran").exists()


# What others wrote


def test_whatever_others_wrote_is_text(tmp_path: Path, serve: Serve) -> None:
    workspace, (job,) = shop(tmp_path, HOSTILE)
    name = "<img src=x onerror=alert(5)>.txt"
    hostile = add_job(
        workspace, HOSTILE, criteria=[f"{HOSTILE}\n  check: run sh check.sh"], outputs=[f"/{name}"], depends_on=[job.id]
    )
    (tmp_path / "check.sh").write_text(f"cat <<'E'\n{HOSTILE}\n\x1b[31mred\x1b[0m\nE\nexit 1\n", encoding="utf-8")
    agree_to(workspace, [hostile])
    start_job(workspace, job.id, BOT)
    complete(workspace, job.id, BOT)
    set_job_aside(workspace, job.id, BOT, question=HOSTILE)
    server = serve(tmp_path)
    for path in (
        "/",
        f"/jobs/{job.id}",
        f"/jobs/{hostile.id}",
        "/review",
        "/?q=%3Cscript%3Ealert(1)%3C/script%3E",
    ):
        page = server.get(path).text
        assert "alert(1)" in page, path
        for tag in ("<script>", "<img src=x", "<svg onload", "\u202e", "\u2066", "\x1b"):
            assert tag not in page, (path, tag)
        assert re.findall(r'href="javascript:', page) == []


def test_entries_that_no_gate_has_written_spoil_no_page(tmp_path: Path, serve: Serve) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    nonsense: list[tuple[EventKind, dict[str, object]]] = [
        ("ran", {"what": "judge", "votes": {"<b>many</b>": 3}, "mission": "<b>many</b>"}),
        ("ran", {"what": "judge", "ticket": "sha256:../../etc/passwd", "told": "<b>many</b>"}),
        ("ran", {"what": "command", "output": "sha256:../../etc/passwd", "ending": "<b>many</b>"}),
        ("ran", {}),
        ("evaluated", {"gates": {"<b>many</b>": ["<b>many</b>"], "reward": ["nonsense"]}}),
        ("refused", {"gates": {}, "score": None}),
        ("decided", {"decision": "ask"}),
        ("unverified", {}),
    ]
    for kind, data in nonsense:
        workspace.ledger.append(job.id, kind, data, BOT)
    server = serve(tmp_path)
    for path in ("/", "/board.json", f"/jobs/{job.id}"):
        got = server.get(path)
        assert got.status == 200, (path, got.text[-800:], server.screen)
        assert "<b>many" not in got.text


def test_tickets_and_rules_of_a_mission_are_text(tmp_path: Path, serve: Serve) -> None:
    folder = tmp_path / "missions" / "reports"
    make_mission(folder, 60)
    rules = folder / "initial_guidance.json"
    rules.write_text('{"S1": "<script>alert(1)</script>", "G0": "<img src=x onerror=alert(2)>"}', encoding="utf-8")
    page = serve(tmp_path).get("/missions/reports").text
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page and "<img src=x" not in page
