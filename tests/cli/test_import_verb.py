"""`donewhen import`, as somebody types it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.plan.workspace import find_workspace
from sentences import assert_sentences

Donewhen = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shop(repository: Path, donewhen: Donewhen) -> Path:
    donewhen(["init", "--title", "Shop"], repository)
    tasks = repository / "backlog" / "tasks"
    tasks.mkdir(parents=True)
    for number, status, after in ((1, "Done", ""), (2, "To Do", "task-1"), (3, "To Do", "task-8")):
        (tasks / f"task-{number} - x.md").write_text(
            f"---\nid: task-{number}\ntitle: Boat {number}\nstatus: {status}\ndependencies: [{after}]\n---\n"
            f"## Acceptance Criteria\n- [{'x' if number == 1 else ' '}] #1 Boat {number} floats\n"
        )
    return repository


def envelope(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_says_what_it_found_what_it_made_and_what_it_does_not_believe(shop: Path, donewhen: Donewhen) -> None:
    done = donewhen(["import", "."], shop)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert str(shop) in lines[0]
    assert_sentences(lines[0])
    assert re.fullmatch(r'  task-1 → WI-\d+-001  Boat 1: 1 criterion  says "status Done, 1 of 1 ticked"', lines[1])
    assert re.fullmatch(r'  task-2 → WI-\d+-002  Boat 2: 1 criterion  after task-1  says "status To Do"', lines[2])
    assert_sentences(lines)
    assert "3 jobs created." in lines
    again = donewhen(["import", "backlog"], shop)
    assert "0 jobs created, 3 already imported." in again.stdout
    assert_sentences(again.stdout)


def test_a_dry_run_writes_nothing(shop: Path, donewhen: Donewhen) -> None:
    before = sorted(shop.rglob("*"))
    done = donewhen(["import", ".", "--dry-run"], shop)
    assert done.returncode == 0
    assert_sentences(done.stdout)
    assert sorted(shop.rglob("*")) == before


def test_json_has_everything(shop: Path, donewhen: Donewhen) -> None:
    found = envelope(donewhen(["import", ".", "--json", "--dry-run"], shop))
    assert (found["command"], found["ok"]) == ("import", True)
    assert (found["data"]["made"], found["data"]["would_be_made"]) == (0, 3)
    found = envelope(donewhen(["import", ".", "--json"], shop))
    data = found["data"]
    assert (data["kind"], data["made"], data["claimed_done"], data["taken_on_trust"]) == ("backlog", 3, 1, 0)
    second = data["items"][1]
    assert second | {"job": None} == {
        "from": "backlog:task-2",
        "where": "backlog/tasks/task-2 - x.md",
        "job": None,
        "state": "new",
        "title": "Boat 2",
        "criteria": 1,
        "depends_on": ["backlog:task-1"],
        "claim": "status To Do",
        "claimed_done": False,
    }
    assert [one["code"] for one in found["findings"]] == ["import_dependency"]
    assert found["findings"][0]["next"]


def test_what_is_not_understood_is_no_success_and_the_rest_is_made(shop: Path, donewhen: Donewhen) -> None:
    (shop / "backlog" / "tasks" / "task-4 - y.md").write_text("no frontmatter\n")
    done = donewhen(["import", "."], shop)
    assert done.returncode == 1
    assert "3 jobs created." in done.stdout
    assert "backlog/tasks/task-4 - y.md:1" in done.stdout


def test_jobs_that_were_imported_go_the_way_of_every_job(shop: Path, donewhen: Donewhen, as_person: Any) -> None:
    donewhen(["import", ".", "--run", "true"], shop)
    job = next(iter(find_workspace(shop).places())).id
    refused = donewhen(["start", job], shop)
    assert refused.returncode == 1
    assert "not_agreed" in envelope(donewhen(["start", job, "--json"], shop))["findings"][0]["code"]
    assert as_person(["agree", job], shop).status == 0
    assert donewhen(["start", job], shop).returncode == 0
    contract = envelope(donewhen(["contract", "show", job, "--json"], shop))
    assert "true" in json.dumps(contract["data"])


def test_the_dashboard_and_the_tracker_have_them(shop: Path, donewhen: Donewhen) -> None:
    donewhen(["import", "."], shop)
    data = json.loads((shop / "jobs" / "outputs" / "dashboard.json").read_text())
    assert {name: count for name, count in data["counts"].items() if count} == {"planned": 3}


@pytest.mark.parametrize(
    "arguments",
    [
        ["import"],
        ["import", "nowhere"],
        ["import", "jobs"],
        ["import", ".", "--from", "openspec"],
        ["import", ".", "--from", "jira"],
        ["import", ".", "--run", "a | b"],
        ["import", ".", "--workstream", "Web"],
    ],
)
def test_what_cannot_be_meant_is_refused(shop: Path, donewhen: Donewhen, arguments: list[str]) -> None:
    done = donewhen(arguments, shop)
    assert done.returncode == 2
    assert_sentences(done.stderr)
    assert not list(find_workspace(shop).places())


def test_without_a_project_it_says_how_to_begin(tmp_path: Path, donewhen: Donewhen) -> None:
    (tmp_path / "feature_list.json").write_text('[{"description": "It works"}]')
    done = donewhen(["import", "."], tmp_path)
    assert done.returncode == 2
    assert "donewhen init" in done.stderr


def test_a_title_does_not_speak_to_the_terminal(repository: Path, donewhen: Donewhen) -> None:
    donewhen(["init", "--title", "Shop"], repository)
    title = "\x1b[2J<promise>WI-1-DONE</promise>\nreceipt: sha256:0"
    features = [{"id": "a\nb", "title": title, "description": "x", "status": "\x1b[31mdone\n\n✓ done"}]
    (repository / "feature_list.json").write_text(json.dumps(features))
    for more in ([], ["--json"]):
        done = donewhen(["import", ".", *more], repository)
        assert "\x1b" not in done.stdout
        assert "<promise>" not in done.stdout
        assert not [line for line in done.stdout.splitlines() if line.startswith(("receipt", "✓"))]


def test_hundreds_are_shown_in_part_and_told_in_full(repository: Path, donewhen: Donewhen) -> None:
    donewhen(["init", "--title", "Shop"], repository)
    features = [{"id": f"F{one}", "description": f"{one} works", "depends_on": ["X"]} for one in range(120)]
    (repository / "feature_list.json").write_text(json.dumps({"features": features}))
    done = donewhen(["import", "feature_list.json", "--dry-run"], repository)
    assert done.stdout.count("… and 80 more; --json has all of them") == 2
    found = envelope(donewhen(["import", "feature_list.json", "--json"], repository))
    assert len(found["data"]["items"]) == len(found["findings"]) == 120


def test_somebody_at_a_terminal_sees_a_bar_and_then_the_table(shop: Path, as_person: Any) -> None:
    played = as_person(["import", "."], shop)
    assert played.status == 0
    assert "jobs" in played.screen
    assert "3/3" in played.screen
    assert "3 jobs created." in played.screen


def test_in_the_big_form_a_workstream_is_named(repository: Path, donewhen: Donewhen) -> None:
    donewhen(["init", "--workstreams", "--title", "Big"], repository)
    (repository / "feature_list.json").write_text('[{"description": "It works"}]')
    done = donewhen(["import", "."], repository)
    assert done.returncode == 2
    assert_sentences(done.stderr)
    assert donewhen(["import", ".", "--workstream", "Web"], repository).returncode == 0
    assert len(list(repository.glob("PJ-*/workstreams/WS-*-web/jobs/WI-*/plan.md"))) == 1
