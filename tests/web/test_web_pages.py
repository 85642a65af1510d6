"""What the pages say, in every state that a project can be in; and that whatever others wrote is text on them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from web_kit import ADA, BOT, Server, agree_to, shop

from donewhen.demo.example_mission import make_mission
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.ledger import EventKind
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


def finished(workspace: Workspace, job: str) -> None:
    start_job(workspace, job, BOT)
    (workspace.root / "out.txt").write_text("hello\n", encoding="utf-8")
    assert complete(workspace, job, BOT).done


# The board


def test_a_folder_without_jobs_says_how_to_begin(tmp_path: Path, serve: Serve) -> None:
    server = serve(tmp_path)
    for path in ("/", "/graph", "/review"):
        got = server.get(path)
        assert got.status == 200
        assert "donewhen init" in got.text
    assert_sentences(visible(server.get("/missions").text))


def test_jobs_that_come_later_are_there_without_a_restart(tmp_path: Path, serve: Serve) -> None:
    server = serve(tmp_path)
    assert_sentences(visible(server.get("/").text))
    workspace = create_project(tmp_path, "Shop")
    assert_sentences(visible(server.get("/").text))
    add_job(workspace, "Greet", criteria=["It says hello"])
    assert "Greet" in server.get("/").text


def test_the_board_shows_jobs_by_status_with_gates_score_and_what_is_next(tmp_path: Path, serve: Serve) -> None:
    workspace, jobs = shop(tmp_path, "Planned one", "Refused one", "Asking one", "Done one", "Cancelled one")
    start_job(workspace, jobs[1].id, BOT)
    assert not complete(workspace, jobs[1].id, BOT).done
    start_job(workspace, jobs[2].id, BOT)
    set_job_aside(workspace, jobs[2].id, BOT, question="Comma or semicolon?")
    finished(workspace, jobs[3].id)
    decide(workspace, workspace.job(jobs[4].id), Decision("cancel", "not wanted"), ADA)
    server = serve(tmp_path)
    page = server.get("/").text
    columns = dict(re.findall(r'<section class="column s-(\w+)">(.*?)</section>', page, re.DOTALL))
    titles = {status: re.findall(r'class="card-title"[^>]*>([^<]+)<', text) for status, text in columns.items()}
    assert titles == {
        "planned": ["Planned one"],
        "in_progress": ["Refused one"],
        "blocked": ["Asking one"],
        "done": ["Done one"],
        "cancelled": ["Cancelled one"],
    }
    html = columns["in_progress"]
    refused = words(html)
    assert "truth closed" in refused and "agreement open" in refused
    assert re.search(r"\d+ of 80", refused)
    assert_sentences(visible(html))
    assert "Comma or semicolon?" in words(columns["blocked"])
    assert f"donewhen start {jobs[0].id}" in words(columns["planned"])
    assert "truth open" in words(columns["done"])


def test_a_job_that_waits_for_another_says_so(tmp_path: Path, serve: Serve) -> None:
    workspace, (first,) = shop(tmp_path, "First")
    second = add_job(workspace, "Second", depends_on=[first.id], criteria=["It says hello"])
    third = add_job(workspace, "Third", criteria=["It says hello"])
    agree_to(workspace, [second])
    html = serve(tmp_path).get("/").text
    page = words(html)
    assert first.id in page
    assert_sentences(visible(html))
    assert third.id in page


def test_the_board_is_searched_filtered_and_paged(tmp_path: Path, serve: Serve) -> None:
    workspace, jobs = shop(tmp_path, "Needle", *(f"Job number {n}" for n in range(1, 60)), agreed=False)
    agree_to(workspace, jobs[:1])
    server = serve(tmp_path)
    assert "All 60 →" in words(server.get("/").text)
    assert "60 jobs found" in words(server.get("/?status=planned").text)
    assert "page 1 of 2" in words(server.get("/?status=planned").text)
    second = words(server.get("/?status=planned&page=2").text)
    assert "Job number 59" in second and "Job number 3 " not in second
    assert "1 job found" in words(server.get("/?q=normal+NEEDLE").text)
    assert "1 job found" in words(server.get("/?agreement=agreed").text)
    assert "0 jobs found" in words(server.get("/?status=done&q=needle").text)
    assert "60 jobs found" in words(server.get("/?status=planned&page=999999999999").text)
    assert server.get("/?page=-1&status=nonsense").status == 200


def test_two_thousand_jobs_are_no_more_to_read_than_two_hundred(tmp_path: Path, serve: Serve) -> None:
    _, (job,) = shop(tmp_path, "Greet")
    plan = job.path.read_text(encoding="utf-8")
    for number in range(2, 2001):
        name = f"{job.id[:-3]}{number:03d}" if number < 1000 else f"{job.id[:-3]}{number}"
        folder = tmp_path / "jobs" / f"{name}-greet"
        folder.mkdir()
        (folder / "plan.md").write_text(plan.replace(job.id, name), encoding="utf-8")
    server = serve(tmp_path)
    page = server.get("/")
    assert "2000 jobs" in words(page.text)
    assert len(page.text) < 60_000
    assert "page 40 of 40" in words(server.get("/?status=planned&page=40").text)
    assert_sentences(lines_with(visible(server.get("/graph").text), "2000"))


def test_files_that_cant_be_read_are_shown_and_stop_nobody(tmp_path: Path, serve: Serve) -> None:
    workspace, (one, other) = shop(tmp_path, "Good one", "Bad one")
    other.path.write_bytes(b"---\nwork_item_id: [\n---\n")
    plan = one.path.read_text(encoding="utf-8")
    one.path.write_text(plan.replace("status: planned", "status: done"), encoding="utf-8")
    server = serve(tmp_path)
    html = server.get("/").text
    page = words(html)
    assert_sentences(visible(html))
    assert workspace.where(other.path) in page
    assert "Good one" in page
    broken = server.get(f"/jobs/{other.id}")
    assert broken.status == 500
    assert workspace.where(other.path) in broken.text


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
    page = server.get("/graph").text
    assert page.count('class="arrow"') == 1
    assert second.id in page
    assert first.id in page
    assert_sentences(visible(page))
    assert f"{second.id} Second waits for {first.id}" in words(page)


def test_a_graph_of_very_many_is_cut_and_says_so(tmp_path: Path, serve: Serve) -> None:
    _, (job,) = shop(tmp_path, "Greet")
    plan = job.path.read_text(encoding="utf-8")
    for number in range(2, 302):
        name = f"{job.id[:-3]}{number:03d}"
        folder = tmp_path / "jobs" / f"{name}-greet"
        folder.mkdir()
        text = plan.replace(job.id, name).replace("depends_on: []", f"depends_on: [{job.id}]")
        assert text.count(job.id) == 1
        (folder / "plan.md").write_text(text, encoding="utf-8")
    page = serve(tmp_path).get("/graph").text
    assert_sentences(lines_with(visible(page), "301"))
    assert page.count('class="node ') == 200


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
    for path in ("/", f"/jobs/{job.id}", "/graph", "/review", "/missions", "/missions/reports"):
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
        "/graph",
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
    for path in ("/", f"/jobs/{job.id}", "/graph"):
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
