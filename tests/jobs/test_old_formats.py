"""A project that the version before wrote, with every kind of entry and a learning run, reads as it did then.

``old_formats/format_1.tar.gz`` holds it: the plans, the ledger, the evidence, two missions and a run.
"""

from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.ledger.entries import Actor, EventKind
from donewhen.jobs.ledger.entry_content import CommandRun, FileCheck, JudgeRun, Ran
from donewhen.jobs.lifecycle.promise import promise_of, verify_promise
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.jobs.record.history import history_of
from donewhen.learning.after.replay import replay_run
from donewhen.learning.running.events import read_events
from donewhen.learning.running.run_state import fold_events

ARCHIVE = Path(__file__).parents[1] / "old_formats" / "format_1.tar.gz"
HEADS = {
    "PJ-20260214-001": "sha256:010a5780adb2c3f99921ffbccc71d0f8dbf3f87dda45806148324ec3dd833bd3",
    "WI-20260214-001": "sha256:dd45dad6eeb634e807996656b5d432ffacb9efff6d85f30d6a73ce8d1374ac06",
    "WI-20260214-002": "sha256:4bac157ea095e7da4cfd3d8a22f4e10818e2558bede8b294ed4ea2d85ca19f43",
    "WI-20260214-003": "sha256:0499e9184fef7675e362e8d35a0a68111767609650789fa76e6558f7346bdf7a",
    "WI-20260214-004": "sha256:6b50fd3376e58d055391b49c2e0d78183d735e5ba0e8b7d508fb8711760e7c44",
}
BOT = Actor("bot")


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "shop", filter="data")
    return find_workspace(tmp_path / "shop")


def test_every_entry_is_read_with_the_same_bytes_and_the_same_hash(shop: Workspace) -> None:
    kinds: Counter[str] = Counter()
    for name, head in HEADS.items():
        chain = shop.ledger.read(name)
        assert (chain.breaks, chain.head) == ((), head)
        raw = (shop.folder / "ledger" / f"{name}.jsonl").read_bytes()
        assert b"".join(entry.line() for entry in chain.entries) == raw
        assert {entry.format for entry in chain.entries} == {1}
        kinds.update(entry.type for entry in chain.entries)
    assert set(kinds) == set(get_args(EventKind))


def test_every_kind_of_run_and_decision_is_among_them(shop: Workspace) -> None:
    entries = [entry for name in HEADS for entry in shop.ledger.read(name).entries]
    assert {type(entry.content) for entry in entries if isinstance(entry.content, Ran)} == {
        CommandRun,
        FileCheck,
        JudgeRun,
    }
    assert {entry.data["decision"] for entry in entries if entry.type == "decided"} == {
        "accept_guidance", "ask", "block", "cancel", "dispute", "raise_budget", "rescope", "reviewed", "sign_off",
        "split", "stakes", "target",
    }  # fmt: skip


def test_the_jobs_are_in_the_state_in_which_they_were_left(shop: Workspace) -> None:
    survey = survey_jobs(shop)
    assert survey.problems == ()
    assert {job.title: (job.status, job.recorded, job.agreement, job.tampered) for job in survey.jobs} == {
        "Report": ("done", "done", "agreed", ()),
        "Mail it": ("in_progress", "in_progress", "agreed", ()),
        "Blocked": ("blocked", "blocked", "agreed", ()),
        "Cancelled": ("cancelled", "cancelled", "agreed", ()),
    }
    assert {str(finding.code) for finding in audit_workspace(shop).findings} <= {"anchor_absent"}


def test_its_promise_still_holds(shop: Workspace) -> None:
    policy = approval_policy(shop)
    chain = shop.ledger.read("WI-20260214-001")
    completed = history_of("WI-20260214-001", chain.entries, policy).completed
    assert completed is not None
    assert verify_promise(shop, promise_of("WI-20260214-001", completed).text, policy).real


def test_new_entries_follow_old_ones(shop: Workspace) -> None:
    set_job_aside(shop, "WI-20260214-002", BOT, reason="The server is down")
    assert start_job(shop, "WI-20260214-002", BOT).started
    chain = shop.ledger.read("WI-20260214-002")
    assert chain.breaks == ()
    assert [entry.format for entry in chain.entries[-2:]] == [2, 2]
    assert {str(finding.code) for finding in audit_workspace(shop).findings} <= {"anchor_absent"}


def test_the_learning_run_is_read_and_replayed(shop: Workspace) -> None:
    folder = shop.root / "missions" / "reports"
    (run,) = [path for path in (folder / "runs").iterdir() if path.is_dir()]
    assert fold_events(read_events(run / "events.jsonl")).status == "finished"
    replay = replay_run(run)
    assert (replay.finished, replay.differences, replay.events) == (True, (), 93)
