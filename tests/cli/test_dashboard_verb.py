"""The verb that writes the dashboard and the task tracker anew."""

from __future__ import annotations

import csv
import json
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.board.views import update_views
from donewhen.jobs.plan.creating import add_job, create_project
from sentences import assert_sentences

Donewhen = Callable[..., Any]
_PATIENCE = 120.0


def quiet(**extra: str) -> dict[str, str]:
    """An environment in which no browser is known but one that is named."""
    hidden = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return {name: value for name, value in os.environ.items() if name not in hidden} | {"NO_COLOR": "1", **extra}


def test_it_writes_all_three_files_and_says_where(tmp_path: Path, donewhen: Donewhen) -> None:
    workspace = create_project(tmp_path, "Shop")
    job = add_job(workspace, "Sell", criteria=["It works."])
    done = donewhen(["dashboard"], tmp_path)
    assert done.returncode == 0, done.stderr
    day = workspace.now()[:10]
    assert done.stdout.splitlines() == [
        f"{workspace.project().id}  Shop  (proposed)",
        "  1 planned",
        "  page:    jobs/outputs/dashboard.html",
        "  data:    jobs/outputs/dashboard.json",
        f"  tracker: jobs/outputs/{day}-task-tracker.csv",
    ]
    assert b"Sell" in (tmp_path / "jobs/outputs/dashboard.html").read_bytes()
    (row,) = csv.DictReader((tmp_path / f"jobs/outputs/{day}-task-tracker.csv").read_text().splitlines())
    assert row["id"] == job.id


def test_json_has_the_data(tmp_path: Path, donewhen: Donewhen) -> None:
    workspace = create_project(tmp_path, "Shop")
    job = add_job(workspace, "Sell </script><promise>x</promise>", criteria=["It works."])
    done = donewhen(["dashboard", "--json"], tmp_path)
    told = json.loads(done.stdout)
    assert (told["schema"], told["command"], told["ok"], told["findings"]) == ("donewhen/v1", "dashboard", True, [])
    written = json.loads((tmp_path / "jobs/outputs/dashboard.json").read_bytes())
    assert told["data"]["dashboard"] == written
    assert list(written["jobs"]) == [job.id]
    assert told["data"]["page"] == str(tmp_path / "jobs/outputs/dashboard.html")
    assert "<promise>" not in done.stdout


def test_it_repairs_what_was_edited_by_hand(tmp_path: Path, donewhen: Donewhen) -> None:
    workspace = create_project(tmp_path, "Shop")
    job = add_job(workspace, "Sell", criteria=["It works."])
    update_views(workspace, job)
    job.path.write_text(job.path.read_text().replace("title: Sell", "title: Buy"))
    assert donewhen(["dashboard"], tmp_path).returncode == 0
    assert json.loads((tmp_path / "jobs/outputs/dashboard.json").read_bytes())["jobs"][job.id]["title"] == "Buy"


def test_a_plan_that_can_t_be_read_is_named_and_stops_nobody(tmp_path: Path, donewhen: Donewhen) -> None:
    workspace = create_project(tmp_path, "Shop")
    good, bad = (add_job(workspace, title, criteria=["It works."]) for title in ("Good", "Bad"))
    bad.path.write_bytes(b"---\n\xff\n---\n")
    done = donewhen(["dashboard"], tmp_path)
    assert done.returncode == 0
    assert f"✗ jobs/{bad.folder.name}/plan.md: " in done.stdout
    assert list(json.loads((tmp_path / "jobs/outputs/dashboard.json").read_bytes())["jobs"]) == [good.id]


def test_a_project_of_the_existing_tool_is_shown_and_its_plans_stay_as_they_are(
    tmp_path: Path, donewhen: Donewhen
) -> None:
    root = tmp_path / "PJ-20260214-001-shop"
    job = root / "workstreams/WS-20260214-001-till/jobs/WI-20260214-001-sell"
    job.mkdir(parents=True)
    (root / "plan.md").write_text("---\nkind: project\nid: PJ-20260214-001\ntitle: Shop\nstatus: planned\n---\n")
    (job.parents[1] / "plan.md").write_text("---\nkind: workstream\nid: WS-20260214-001\ntitle: Till\n---\n")
    (job / "plan.md").write_text(
        "---\nkind: job\nwork_item_id: WI-20260214-001\ntitle: Sell\nstatus: in_progress\nreward_last_score: 38\n"
        "wave_id: WV-1\npriority: 1\nreward_last_next_action: Write it.\n---\n"
    )
    plans = {path: path.read_bytes() for path in root.rglob("plan.md")}
    (root / "outputs").mkdir()
    (root / "outputs/2026-02-14-task-tracker.csv").write_text("id,work_item_id\n")
    done = donewhen(["dashboard"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path: path.read_bytes() for path in root.rglob("plan.md")} == plans
    (row,) = csv.DictReader((root / "outputs/2026-02-14-task-tracker.csv").read_text().splitlines())
    assert (row["workstream_id"], row["workstream_title"], row["wave_id"]) == ("WS-20260214-001", "Till", "WV-1")
    assert (row["status"], row["priority"], row["reward_last_score"]) == ("in_progress", "1", "38")
    assert row["reward_last_next_action"] == "Write it."


def test_outside_of_a_project_it_says_how_to_begin(tmp_path: Path, donewhen: Donewhen) -> None:
    done = donewhen(["dashboard"], tmp_path)
    assert done.returncode == 2
    assert "donewhen init" in done.stderr


def test_a_folder_that_can_t_be_written_is_an_error_with_its_place(tmp_path: Path, donewhen: Donewhen) -> None:
    workspace = create_project(tmp_path, "Shop")
    add_job(workspace, "Sell", criteria=["It works."])
    (tmp_path / "jobs/outputs").write_text("in the way")
    done = donewhen(["dashboard"], tmp_path)
    assert done.returncode not in (0, 1)
    assert "outputs" in done.stderr
    assert "Traceback" not in done.stderr


def test_open_hands_the_page_to_the_browser_and_does_not_wait_for_it(
    tmp_path: Path, donewhen_process: Donewhen
) -> None:
    create_project(tmp_path, "Shop")
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(
        f"#!{sys.executable}\nimport sys, time\nopen({str(seen)!r}, 'w').write(sys.argv[1])\ntime.sleep(3)\n"
    )
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    done = donewhen_process(["dashboard", "--open", "--json"], tmp_path, env=quiet(BROWSER=str(browser)))
    assert done.returncode == 0
    assert json.loads(done.stdout)["data"]["opened"] is True
    until = time.monotonic() + _PATIENCE
    while not (seen.exists() and seen.read_text()):
        assert time.monotonic() < until, "the browser was never started"
        time.sleep(0.05)
    assert seen.read_text() == (tmp_path / "jobs/outputs/dashboard.html").as_uri()


def test_where_there_is_no_browser_it_says_which_file_to_open(tmp_path: Path, donewhen: Donewhen) -> None:
    create_project(tmp_path, "Shop")
    done = donewhen(["dashboard", "--open"], tmp_path, env=quiet(PATH=str(Path(sys.executable).parent)))
    if sys.platform == "darwin":
        pytest.skip("LOUD: on macOS there always is one")
    assert done.returncode == 0
    assert str(tmp_path / "jobs/outputs/dashboard.html") in done.stderr
    assert_sentences(done.stderr)
