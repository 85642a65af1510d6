"""The one writer: it repairs before it appends, keeps what is on disk, and says what stands when something fails."""

from __future__ import annotations

import ast
import os
from contextlib import suppress
from pathlib import Path

import pytest

import donewhen
from donewhen.foundation.notices import notices_to
from donewhen.jobs.board.views import dashboard_path, update_views
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.frontmatter import DocumentError
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.snapshot import snapshot_of
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import RecordedError, operation, writing
from sentences import assert_sentences

BOT = Approval(Actor("bot"))
SOURCE = Path(donewhen.__file__).parent


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    (tmp_path / ".git").mkdir()
    return create_project(tmp_path, "Shop")


@pytest.fixture
def job(shop: Workspace) -> Job:
    job = add_job(shop, "Parser", criteria=["The log is parsed."])
    with writing(shop, job.path) as plan:
        plan.append("evaluated", {"score": 1}, BOT)
    return shop.job_at(job.path)


def test_an_edit_of_the_plan_after_the_snapshot_is_kept(shop: Workspace, job: Job) -> None:
    snapshot = snapshot_of(shop)
    snapshot.job_at(job.path)
    snapshot.ledger.read(job.id)
    job.path.write_text(f"{job.path.read_text()}\nWritten by hand.\n")
    with writing(snapshot, job.path, job.id) as plan:
        plan.append("evaluated", {"score": 2}, BOT, {"reward_last_score": 2})
    text = job.path.read_text()
    assert "Written by hand." in text
    assert "reward_last_score: 2" in text
    assert snapshot.job_at(job.path).document.fields["reward_last_score"] == 2


def test_an_entry_without_fields_of_the_plan_reads_no_plan_again(shop: Workspace, job: Job) -> None:
    snapshot = snapshot_of(shop)
    snapshot.read(job.path)
    snapshot.ledger.read(job.id)
    job.path.unlink()
    with writing(snapshot, job.path, job.id) as plan:
        entry = plan.append("evaluated", {"score": 2}, BOT)
    assert shop.ledger.read(job.id).entries[-1] == entry
    with pytest.raises(DocumentError), writing(snapshot, job.path, job.id) as plan:
        plan.append("evaluated", {"score": 3}, BOT, {"reward_last_score": 3})
    assert shop.ledger.read(job.id).entries[-1] == entry


def test_a_plan_that_can_not_be_rewritten_leaves_the_ledger_alone(shop: Workspace, job: Job) -> None:
    text = job.path.read_text()
    job.path.write_text(text.replace("status: planned", "status: &anchor planned\nmirrored: *anchor"))
    chain = shop.ledger.read(job.id)
    with pytest.raises(DocumentError), writing(shop, job.path, job.id) as plan:
        plan.append("evaluated", {"score": 2}, BOT, {"status": "in_progress"})
    assert shop.ledger.read(job.id) == chain


def test_another_writer_in_between_is_seen(shop: Workspace, job: Job) -> None:
    snapshot = snapshot_of(shop)
    snapshot.job_at(job.path)
    snapshot.ledger.read(job.id)
    with writing(shop, job.path) as other:
        other.append("evaluated", {"score": 2}, BOT, {"reward_last_score": 2})
    with writing(snapshot, job.path, job.id) as plan:
        assert plan.job.document.fields["reward_last_score"] == 2
        plan.append("evaluated", {"score": 3}, BOT)
    entries = shop.ledger.read(job.id).entries
    assert [entry.data["score"] for entry in entries] == [1, 2, 3]
    assert shop.ledger.read(job.id).breaks == ()


def test_a_chain_that_git_replaces_during_an_operation_is_opened_again(shop: Workspace, job: Job) -> None:
    path = shop.ledger.path_of(job.id)
    with operation(shop):
        with writing(shop, job.path) as plan:
            plan.append("evaluated", {"score": 2}, BOT)
        content = path.read_bytes()
        path.with_suffix(".new").write_bytes(content)
        path.with_suffix(".new").replace(path)
        with writing(shop, job.path) as plan:
            plan.append("evaluated", {"score": 3}, BOT)
    assert path.read_bytes().startswith(content)
    assert [entry.data["score"] for entry in shop.ledger.read(job.id).entries] == [1, 2, 3]


def test_an_operation_keeps_no_file_open(shop: Workspace, job: Job) -> None:
    def descriptors() -> set[str]:
        found = set()
        for name in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):
                found.add(os.readlink(f"/proc/self/fd/{name}"))
        return found

    with pytest.raises(KeyError), operation(shop):
        with writing(shop, job.path) as plan:
            plan.append("evaluated", {"score": 2}, BOT)
        assert str(shop.ledger.path_of(job.id)) in descriptors()
        raise KeyError
    assert str(shop.ledger.path_of(job.id)) not in descriptors()


def test_views_that_exist_are_refreshed_once_by_whatever_writes(
    shop: Workspace, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not dashboard_path(shop).exists()
    with writing(shop, job.path) as plan:
        plan.append("evaluated", {"score": 2}, BOT, {"status": "blocked"})
    assert not dashboard_path(shop).exists()
    update_views(shop, shop.job_at(job.path))
    calls = []
    import donewhen.jobs.board.views as views

    real = views.update_views
    monkeypatch.setattr(views, "update_views", lambda *given: calls.append(given) or real(*given))
    with operation(shop):
        for score in (3, 4, 5):
            with writing(shop, job.path) as plan:
                plan.append("evaluated", {"score": score}, BOT, {"status": "in_progress"})
    assert len(calls) == 1
    assert b'"in_progress"' in dashboard_path(shop).read_bytes()


def test_views_that_can_not_be_written_are_a_notice_and_no_error(shop: Workspace, job: Job) -> None:
    update_views(shop, job)
    dashboard_path(shop).unlink()
    dashboard_path(shop).mkdir()
    notices: list[str] = []
    with notices_to(notices.append), writing(shop, job.path) as plan:
        entry = plan.append("evaluated", {"score": 2}, BOT, {"reward_last_score": 2})
    assert shop.ledger.read(job.id).entries[-1] == entry
    assert shop.job_at(job.path).document.fields["reward_last_score"] == 2
    assert_sentences(*notices)


def test_a_plan_that_can_not_be_written_is_said_to_be_recorded_and_a_repeat_is_harmless(
    shop: Workspace, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Workspace, "write_plan", full)
        with pytest.raises(RecordedError) as caught, writing(shop, job.path) as plan:
            plan.append("decided", {"decision": "block", "reason": "x"}, BOT, {"status": "blocked"})
    assert_sentences(caught.value)
    chain = shop.ledger.read(job.id)
    assert chain.entries[-1].type == "decided"
    assert shop.job_at(job.path).status == "planned"
    other = Approval(Actor("somebody else"))
    for approval, data in ((BOT, {"decision": "block", "reason": "y"}), (other, {"decision": "block", "reason": "x"})):
        assert not _repeats(shop, job, approval, data)
    with writing(shop, job.path) as plan:
        again = plan.append("decided", {"decision": "block", "reason": "x"}, BOT, {"status": "blocked"})
    assert again == chain.entries[-1]
    assert shop.ledger.read(job.id) == chain
    assert shop.job_at(job.path).status == "blocked"


def test_an_attempt_is_counted_again_even_if_the_plan_was_set_back(shop: Workspace, job: Job) -> None:
    for kind in ("refused", "started"):
        before = job.path.read_bytes()
        entries = []
        for _ in range(2):
            job.path.write_bytes(before)
            with writing(shop, job.path) as plan:
                entries.append(plan.append(kind, {}, BOT, {"status": "in_progress", "iteration": 1}))
        assert entries[0].seq + 1 == entries[1].seq


def _repeats(shop: Workspace, job: Job, approval: Approval, data: dict[str, str]) -> bool:
    """Whether an entry would be taken for a repeat; nothing is written."""
    with writing(shop, job.path) as plan:
        repeated = plan._is_repeated("decided", data, approval)
    document = shop.read(job.path)
    shop.write(document, job.path, {"status": "planned"})
    return repeated


def _calls(path: Path) -> set[str]:
    """The names of the methods and functions that a file calls."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Attribute | ast.Name):
                owner = called.value.attr if isinstance(called.value, ast.Attribute) else called.value.id
                found.add(f"{owner}.{called.attr}")
    return found


def test_nothing_else_locks_a_plan_or_appends_to_a_chain() -> None:
    appending, locking = set(), set()
    for path in SOURCE.rglob("*.py"):
        calls = _calls(path)
        name = path.relative_to(SOURCE).as_posix()
        if calls & {"ledger.append", "_ledger.append"}:
            appending.add(name)
        if calls & {"workspace.locked", "live.locked", "snapshot.locked", "tree.locked"}:
            locking.add(name)
    assert appending == {"jobs/record/writing.py"}
    # New plans are made while nobody else makes one, and an audit reads again while nobody writes.
    assert locking == {"jobs/record/writing.py", "jobs/plan/creating.py", "jobs/audit/audit.py"}
