"""Files that are too large: each is refused with a sentence about its size, and the others are read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from donewhen.config.project_hooks import file_disabling_hooks
from donewhen.foundation.errors import ExitCode
from donewhen.foundation.size_limits import EVIDENCE, HOOK_FILE, LEDGER_LINE, PLAN_FILE, SETTINGS, SizeLimit
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.ledger import entries as entries_module
from donewhen.jobs.ledger.entries import Actor, verify_chain
from donewhen.jobs.ledger.ledger import Ledger, LedgerError
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.frontmatter import DocumentError
from donewhen.jobs.plan.workspace import Workspace
from donewhen_kit import run_main
from sentences import assert_sentences

BOT = Actor("bot")


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    workspace = create_project(tmp_path, "Shop")
    add_job(workspace, "Small")
    large = add_job(workspace, "Large")
    os.truncate(large.path, 50 << 20)
    return workspace


def test_a_plan_that_is_too_large_is_invalid_and_the_other_jobs_are_listed(shop: Workspace) -> None:
    found = survey_jobs(shop)
    assert [job.title for job in found.jobs] == ["Small"]
    (problem,) = found.problems
    assert problem.code == "document"
    assert "50 MB" in problem.message
    assert "2 MB" in problem.message
    assert problem.where.endswith("-large/plan.md")
    assert_sentences(problem.message)


def test_status_shows_the_other_jobs_beside_a_plan_that_is_too_large(shop: Workspace) -> None:
    done = run_main(["status", "--json"], cwd=shop.root)
    envelope = json.loads(done.stdout)
    assert [job["title"] for job in envelope["data"]["jobs"]] == ["Small"]
    assert any("50 MB" in finding["message"] for finding in envelope["findings"])


def test_a_job_whose_plan_is_too_large_is_refused(shop: Workspace) -> None:
    (path,) = (place.path for place in shop.places() if "large" in str(place.path))
    with pytest.raises(DocumentError) as caught:
        shop.job_at(path)
    assert_sentences(caught.value)
    assert PLAN_FILE.bytes < path.stat().st_size


@pytest.mark.parametrize(
    ("name", "arguments", "limit"),
    [
        ("donewhen.toml", ("status",), SETTINGS),
        ("jobs/notes/lessons-learned.md", ("lessons", "list"), SizeLimit("", 16 << 20, "")),
        ("promise.txt", ("promise", "verify", "promise.txt"), SizeLimit("", 16 << 20, "")),
    ],
)
def test_a_file_that_is_too_large_is_named_with_its_size(
    tmp_path: Path, name: str, arguments: tuple[str, ...], limit: SizeLimit
) -> None:
    create_project(tmp_path, "Shop")
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.truncate(path, limit.bytes * 2)
    done = run_main([*arguments, "--json"], cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    (finding,) = json.loads(done.stdout)["findings"]
    assert f"{limit.bytes >> 20} MB" in finding["message"]
    assert finding["where"].endswith(path.name)
    assert_sentences(finding["message"])


def test_a_settings_file_of_a_runtime_that_is_too_large_counts_as_one_that_disables_hooks(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text("{}")
    assert not file_disabling_hooks(tmp_path)
    os.truncate(path, HOOK_FILE.bytes + 1)
    assert file_disabling_hooks(tmp_path)


def test_an_entry_that_is_too_large_is_not_written_and_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger", tmp_path / "locks")
    ledger.append("WI-1", "started", {"outputs": {"a": "x" * 2000}}, BOT)
    content = (tmp_path / "ledger" / "WI-1.jsonl").read_bytes()
    assert verify_chain("WI-1", content).breaks == ()
    monkeypatch.setattr(entries_module, "LEDGER_LINE", LEDGER_LINE._replace(bytes=1000))
    (failure,) = verify_chain("WI-1", content).breaks
    assert_sentences(failure.problem)
    with pytest.raises(LedgerError) as caught:
        ledger.append("WI-2", "started", {"outputs": {"a": "x" * 2000}}, BOT)
    assert_sentences(caught.value)
    assert ledger.read("WI-2").entries == ()


def test_the_last_line_of_a_chain_is_found_however_long_it_is(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", tmp_path / "locks")
    for size in (10, 8190, 100_000, 1_000_000, 10):
        ledger.append("WI-1", "started", {"outputs": {"a": "x" * size}}, BOT)
    chain = ledger.read("WI-1")
    assert [entry.seq for entry in chain.entries] == [1, 2, 3, 4, 5]
    assert chain.breaks == ()


def test_evidence_that_is_too_large_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("donewhen.jobs.evidence.store.EVIDENCE", EVIDENCE._replace(bytes=1000))
    store = EvidenceStore(tmp_path)
    name = store.put(b"x" * 1000)
    assert store.get(name) == b"x" * 1000
    with pytest.raises(OSError, match="1001 bytes"):
        store.put(b"x" * 1001)
