"""What `agree` shows: few screens for many jobs, everything that is sealed, problems first, and a pager only at a
terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.cli._sealing import batches_of
from donewhen.jobs.contract.agreeing import agreement_proposals
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Workspace

Person = Callable[..., Any]
Donewhen = Callable[..., Any]
_SIZED = ["/bin/sh", "-c", 'stty rows 24 cols 80; exec "$@"', "sh"]
PAGER = "stop reading"


def shop(folder: Path, jobs: int, **options: Any) -> Workspace:
    workspace = create_project(folder, "Shop")
    for number in range(1, jobs + 1):
        add_job(
            workspace,
            f"Part {number}",
            criteria=[f"Part {number} is there\n  check: file /part{number}.md"],
            outputs=[f"/part{number}.md"],
            **options,
        )
    return workspace


def rows(text: str) -> list[str]:
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in text.splitlines()]


def test_ten_jobs_fit_on_two_screens_of_24_rows(tmp_path: Path, donewhen: Donewhen) -> None:
    shop(tmp_path, 10)
    shown = rows(donewhen(["agree"], tmp_path).stdout)
    page = shown[: shown.index("PJ-" + shown[0].split()[0][3:] + ": proposed")]
    assert len(page) <= 48
    for number in range(1, 11):
        at = next(row for row, line in enumerate(page) if line.endswith(f" Part {number}"))
        assert page[at + 1 : at + 4] == [
            f"  │ Part {number} is there",
            f"  └ checked by: file /part{number}.md",
            f"  outputs: /part{number}.md; may also change: nothing",
        ]
    assert sum("needs 80 of 100 points" in line for line in page) == 1


def test_a_job_that_differs_says_how(tmp_path: Path, donewhen: Donewhen) -> None:
    workspace = shop(tmp_path, 3)
    add_job(workspace, "Careful", criteria=["It is there\n  check: file /x.md"], outputs=["/x.md"], stakes="high")
    shown = rows(donewhen(["agree"], tmp_path).stdout)
    at = next(row for row, line in enumerate(shown) if line.endswith(" Careful"))
    job = " ".join(shown[at : at + 8])
    assert "! stakes high (instead of stakes normal)" in job
    assert "! needs 90 of 100 points (instead of needs 80 of 100 points)" in job
    assert "unless a job says otherwise: stakes normal" in " ".join(shown)


def test_every_other_term_is_shown_with_its_job(tmp_path: Path, donewhen: Donewhen) -> None:
    workspace = shop(tmp_path, 1)
    (job,) = [workspace.job_at(place.path) for place in workspace.places()]
    text = job.path.read_text().replace("outputs:", "inputs: [/data.csv]\nread_only: true\noutputs:", 1)
    job.path.write_text(text)
    shown = "\n".join(rows(donewhen(["agree"], tmp_path).stdout))
    assert "  inputs:\n    /data.csv" in shown
    assert "read only" in shown


def test_problems_come_before_everything_else(tmp_path: Path, donewhen: Donewhen) -> None:
    workspace = shop(tmp_path, 2)
    add_job(workspace, "Empty", criteria=["It works\n  check: file /x.md"], outputs=["/x.md"])
    broken = [workspace.job_at(place.path) for place in workspace.places()][-1]
    broken.path.write_text(broken.path.read_text().replace("It works", "TODO"))
    shown = rows(donewhen(["agree"], tmp_path).stdout)
    assert [line.startswith("✗ ") for line in shown[:2]] == [True, False]


def test_what_changed_comes_before_what_is_new(tmp_path: Path, as_person: Person, donewhen: Donewhen) -> None:
    workspace = shop(tmp_path, 1)
    assert as_person(["agree"], tmp_path).status == 0
    (job,) = [workspace.job_at(place.path) for place in workspace.places()]
    job.path.write_text(job.path.read_text().replace("file /part1.md", "file /part1.md matches /a/"))
    add_job(workspace, "New", criteria=["It is there\n  check: file /new.md"], outputs=["/new.md"])
    shown = rows(donewhen(["agree"], tmp_path).stdout)
    changed = next(row for row, line in enumerate(shown) if "changes since" in line)
    new = next(row for row, line in enumerate(shown) if line.endswith(" New"))
    assert changed < new
    assert re.search(r"voided; changes since .+ agreed, just now \(20\d\d-\d\d-\d\d \d\d:\d\d\):", shown[changed])


@pytest.mark.parametrize("columns", ["40", "80", "200"])
@pytest.mark.parametrize("field", ["title", "outputs", "inputs", "criterion"])
def test_no_text_looks_like_a_check(
    tmp_path: Path, donewhen: Donewhen, monkeypatch: pytest.MonkeyPatch, columns: str, field: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    workspace = create_project(tmp_path, "Shop")
    lie = "word " * 20 + "└ checked by: run true " + "word " * 10 + "  └ checked by: run true"
    given: dict[str, Any] = {"title": "T", "outputs": ["/x.md"], "criterion": "The prices add up"}
    given |= {"outputs": [f"/{lie}"]} if field == "outputs" else {} if field == "inputs" else {field: lie}
    job = add_job(workspace, given["title"], criteria=[f"{given['criterion']}\n  check: manual"], outputs=["/x.md"])
    text = job.path.read_text()
    if field == "outputs":
        text = text.replace("- /x.md", f'- "/{lie}"', 1)
    if field == "inputs":
        text = text.replace("outputs:", f'inputs: ["/{lie}"]\noutputs:', 1)
    job.path.write_text(text)
    shown = rows(donewhen(["agree"], tmp_path).stdout)
    checks = [line for line in shown if line.lstrip().startswith("└ checked by:")]
    assert checks == ["  └ checked by: a person"]
    assert max(map(len, shown[:-4])) <= max(int(columns), 50)


def test_hundreds_of_jobs_are_agreed_to_in_batches(tmp_path: Path) -> None:
    workspace = shop(tmp_path, 52)
    proposals = agreement_proposals(workspace, [workspace.job_at(place.path) for place in workspace.places()])
    assert [len(batch) for batch in batches_of(proposals, by_hand=True, each=False)] == [20, 20, 13]
    assert [len(batch) for batch in batches_of(proposals, by_hand=False, each=False)] == [53]
    assert [len(batch) for batch in batches_of(proposals[:25], by_hand=True, each=False)] == [25]


def test_each_batch_has_its_question_and_what_was_sealed_before_stays(tmp_path: Path, as_person: Person) -> None:
    workspace = shop(tmp_path, 26)
    played = as_person(["agree"], tmp_path)
    assert played.status == 0
    assert ("── 1 of 2 ──" in played.screen, "── 2 of 2 ──" in played.screen) == (True, True)
    assert played.screen.count("To agree to this, type") == 2
    proposals = agreement_proposals(workspace, [workspace.job_at(place.path) for place in workspace.places()])
    assert {proposal.agreement.state for proposal in proposals} == {"agreed"}


def test_one_after_the_other_each_with_a_key(tmp_path: Path, as_person: Person) -> None:
    workspace = shop(tmp_path, 3)
    played = as_person(["agree", "--each"], tmp_path, keys=["a", "x", "s", "a", "q"])
    assert played.status == 0
    states = {
        proposal.plan.title: proposal.agreement.state
        for proposal in agreement_proposals(workspace, [workspace.job_at(place.path) for place in workspace.places()])
    }
    assert states == {"Shop": "agreed", "Part 1": "proposed", "Part 2": "agreed", "Part 3": "proposed"}
    assert played.screen.count("To agree job by job under your name, type") == 1


@pytest.mark.parametrize(("keys", "agreed"), [([" ", " ", " ", " "], True), (["a"], True), (["q"], False)])
def test_at_a_terminal_nobody_is_asked_before_they_could_read(
    tmp_path: Path, as_person: Person, keys: list[str], agreed: bool
) -> None:
    workspace = shop(tmp_path, 12)
    played = as_person(["agree"], tmp_path, keys=keys, words=_SIZED)
    first = rows(played.screen.replace("\r", ""))
    assert next(row for row, line in enumerate(first) if PAGER in line) <= 24
    state = agreement_proposals(workspace, [])[0].agreement.state
    assert (played.status, state) == ((0, "agreed") if agreed else (1, "proposed"))
    assert ("You stopped reading. Nothing was agreed." in played.screen) is not agreed


def test_without_a_terminal_there_is_no_pager(tmp_path: Path, donewhen: Donewhen) -> None:
    shop(tmp_path, 12)
    assert PAGER not in donewhen(["agree"], tmp_path).stdout
