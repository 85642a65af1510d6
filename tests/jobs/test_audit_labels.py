"""Labels that the ledger does not bear out are found: whoever wrote them, and whatever of them was changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import ADA, Court

from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.job import Job
from donewhen.judging.labels import LOG, Label, add_label, label_for, read_label_log
from donewhen.review.queue import review_queue
from donewhen.review.verdicts import record_verdict


@pytest.fixture
def court(repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Court:
    return Court(repository, git, monkeypatch)


@pytest.fixture
def job(court: Court) -> Job:
    """The judge has left it to a person."""
    job = court.job()
    court.votes = "ppf"
    court.settings("[manual_review]\nmin_verdict_agreement = 0.9\nspot_check = 0.0\n")
    court.agree(job)
    court.collect(job)
    return job


def unproved(court: Court) -> int:
    return sum(finding.code == "label_unproved" for finding in audit_workspace(court.workspace).findings)


def rewrite(court: Court, *labels: Label) -> None:
    (court.folder / LOG).write_bytes(b"".join(msgspec.json.encode(label) + b"\n" for label in labels))


def test_a_label_that_a_person_gave_is_proved(court: Court, job: Job) -> None:
    (item,) = review_queue(court.workspace)
    assert record_verdict(court.workspace, item, "fail", ADA).ticket is not None
    assert (len(read_label_log(court.folder)), unproved(court)) == (1, 0)


@pytest.mark.parametrize(
    "change",
    [{"evidence": {"text": "other work"}}, {"label": "pass"}, {"by": "ben"}],
    ids=["the work", "the verdict", "the person"],
)
def test_a_label_that_was_changed_is_not(court: Court, job: Job, change: dict[str, object]) -> None:
    (item,) = review_queue(court.workspace)
    record_verdict(court.workspace, item, "fail", ADA)
    (label,) = read_label_log(court.folder)
    rewrite(court, msgspec.structs.replace(label, **change))
    assert unproved(court) == 1


def test_one_word_is_no_label_of_a_second_work(court: Court, job: Job) -> None:
    (item,) = review_queue(court.workspace)
    record_verdict(court.workspace, item, "fail", ADA)
    (label,) = read_label_log(court.folder)
    rewrite(court, label, msgspec.structs.replace(label, group_id="other", evidence={"text": "other work"}))
    assert unproved(court) == 1


def test_a_key_that_nobody_trusts_proves_no_label(court: Court, job: Job) -> None:
    (item,) = review_queue(court.workspace)
    own = Approval(Actor("own", "key"), "ed25519:own", lambda _: "signed")
    done = record_verdict(court.workspace, item, "pass", own)
    assert (done.counts, done.ticket, item.ticket is not None) == (False, None, True)
    assert item.ticket is not None
    add_label(court.folder, "reports", label_for(item.ticket, "pass", "own", done.entry.at, entry=done.entry.hash))
    assert unproved(court) == 1
