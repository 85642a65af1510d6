"""What becomes of a person's verdict: an entry in the ledger, a labelled ticket, a gate that is overruled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from court_kit import ADA, BEN, BOT, JUDGED, Court, label

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.lifecycle.setting_aside import record_dispute
from donewhen.jobs.plan.job import Job
from donewhen.judging.labels import LABELLED, LOG, add_label, read_label_log
from donewhen.review.verdicts import record_verdict, write_missing_labels
from sentences import assert_sentences

# Somebody who gives a verdict and is killed as soon as the ledger has it.
_KILLED = """
import os, signal, sys
from pathlib import Path
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.workspace import find_workspace
from donewhen.judging import labels
from donewhen.review import verdicts
from donewhen.review.queue import review_queue

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

where = sys.argv[2]
if where == "before the log":
    verdicts.add_label = die
else:
    labels.write_atomically = die
workspace = find_workspace(Path(sys.argv[1]))
(item,) = review_queue(workspace)
verdicts.record_verdict(workspace, item, "fail", Approval(Actor("ada", "person")))
"""


def waiting(court: Court) -> Job:
    """A job that waits for a person."""
    court.votes = "ppf"
    job = court.job(JUDGED)
    court.complete(job)
    return job


def given(court: Court, verdict: Any = "pass", by: Any = ADA, reason: str = "") -> Any:
    (item,) = court.queue()
    return record_verdict(court.workspace, item, verdict, by, reason)


def wrong(court: Court) -> list[str]:
    """What an audit finds wrong."""
    return [finding.message for finding in audit_workspace(court.workspace).findings if finding.severity == "error"]


def test_a_verdict_is_in_the_ledger_and_becomes_a_labelled_ticket(court: Court) -> None:
    job = waiting(court)
    (item,) = court.queue()
    done = given(court, "fail", reason="no sources")
    assert done.counts
    assert job.id in done.told
    assert_sentences(done.told)
    assert done.entry == court.entries(job)[-1]
    assert {
        "criterion": "AC-1",
        "verdict": "fail",
        "reason": "no sources",
        "subject": item.subject,
        "asked": "low_agreement",
        "mission": "reports",
    }.items() <= done.entry.data.items()
    (found,) = read_label_log(court.folder)
    assert (found.label, found.by, found.reason, found.asked) == ("fail", "ada", "no sources", "low_agreement")
    assert (found.entry, found.at, found.cluster) == (done.entry.hash, done.entry.at, job.id)
    assert found.said == item.said
    (ticket,) = court.mission.tickets()
    assert ticket.key == done.ticket
    assert ticket.evidence == item.evidence
    assert not wrong(court)


def test_a_pass_tells_what_to_do_next(court: Court) -> None:
    job = waiting(court)
    text = given(court).told
    assert job.id in text
    assert_sentences(text)
    assert court.complete(job).done


def test_a_verdict_on_a_check_without_a_judge_makes_no_ticket(court: Court) -> None:
    job = court.job("It says 43.\n  check: file /report.md matches /43/")
    court.complete(job)
    record_dispute(court.workspace, job.id, BOT.by, "42 is right")
    done = given(court)
    assert (done.counts, done.ticket) == (True, None)
    assert not (court.folder / LOG).exists()
    assert court.complete(job).done


def test_what_has_changed_meanwhile_is_not_settled_and_not_labelled(court: Court) -> None:
    job = waiting(court)
    (item,) = court.queue()
    court.write("report.md", "quickly exchanged\n")
    with pytest.raises(UsageError) as caught:
        record_verdict(court.workspace, item, "pass", ADA)
    assert_sentences(caught.value)
    assert read_label_log(court.folder) == ()
    assert court.entries(job)[-1].type == "refused"


def test_a_verdict_that_is_none_is_refused(court: Court) -> None:
    waiting(court)
    with pytest.raises(UsageError) as caught:
        given(court, "maybe")
    assert_sentences(caught.value)


def test_a_second_person_may_label_the_same_and_both_stand(court: Court) -> None:
    waiting(court)
    given(court, "pass")
    (item,) = court.queue(by="ben")
    record_verdict(court.workspace, item, "fail", BEN)
    assert sorted(ticket.key.rpartition("::")[2] for ticket in court.mission.tickets()) == ["fail", "pass"]
    assert not wrong(court)


# Spot checks


def checked(court: Court) -> Job:
    court.settings("[manual_review]\nspot_check = 1.0")
    job = court.job(JUDGED)
    assert court.complete(job).done
    return job


def test_a_spot_check_of_the_work_as_it_is_is_about_the_job(court: Court) -> None:
    job = checked(court)
    done = given(court, "fail")
    assert done.entry == next(entry for entry in court.entries(job) if entry.type == "overridden")
    assert job.id in done.told
    assert_sentences(done.told)
    assert court.read(job).status == "in_progress"
    assert court.standing(job).state == "failed"


def test_a_spot_check_of_what_has_changed_since_is_about_the_judge_alone(court: Court) -> None:
    job = checked(court)
    court.write("report.md", "another report\n")
    length = len(court.entries(job))
    done = given(court, "fail")
    assert done.counts and done.ticket is not None
    assert len(court.entries(job)) == length
    entry = court.project_entries()[-1]
    assert (entry.data["decision"], entry.data["value"]["asked"]) == ("reviewed", "spot_check")
    assert_sentences(done.told)
    assert court.queue() == []


def test_a_spot_check_where_nothing_is_left_to_look_at_is_about_the_judge_alone(court: Court) -> None:
    checked(court)
    (court.root / "report.md").unlink()
    assert given(court, "pass").ticket is not None


# Cut off


@pytest.mark.parametrize("where", ["before the log", "before the tickets"])
def test_whoever_is_killed_between_ledger_and_label_has_given_their_verdict(court: Court, where: str) -> None:
    job = waiting(court)
    environment = {name: value for name, value in os.environ.items() if name != "CLAUDECODE"}
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(court.root), where], env=environment)
    assert killed.returncode == -signal.SIGKILL
    assert court.entries(job)[-1].type == "overridden"
    assert court.standing(job).state == "failed"
    assert write_missing_labels(court.workspace) == (1 if where == "before the log" else 0)
    (found,) = read_label_log(court.folder)
    assert (found.label, found.by, found.asked) == ("fail", "ada", "low_agreement")
    assert found.said is not None and found.said.passes == 2
    assert found.entry == court.entries(job)[-1].hash
    (ticket,) = court.mission.tickets()
    assert ticket.label == "fail"
    assert not wrong(court)
    assert write_missing_labels(court.workspace) == 0
    assert len(read_label_log(court.folder)) == 1


def test_catching_up_never_takes_back_what_somebody_said_later(court: Court) -> None:
    job = waiting(court)
    (item,) = court.queue()
    record_verdict(court.workspace, item, "pass", ADA)
    first = (court.folder / LOG).read_bytes()
    record_verdict(court.workspace, item, "fail", ADA)
    (court.folder / LOG).write_bytes((court.folder / LOG).read_bytes().removeprefix(first))
    write_missing_labels(court.workspace)
    assert read_label_log(court.folder)[-1].label == "fail"
    assert [ticket.label for ticket in court.mission.tickets()] == ["fail"]
    assert court.standing(job).state == "failed"


def test_all_labels_can_be_made_again_from_the_ledger(court: Court) -> None:
    waiting(court)
    given(court, "pass", reason="fine")
    before = read_label_log(court.folder)
    (court.folder / LOG).unlink()
    (court.folder / LABELLED).unlink()
    assert write_missing_labels(court.workspace) == 1
    assert read_label_log(court.folder) == before


def test_nothing_is_made_of_what_does_not_count_or_is_no_judges(court: Court) -> None:
    job = waiting(court)
    given(court, "pass", BOT)
    court.overrule(job, "pass")
    plain = court.job("It is there.\n  check: file /plain.md", title="Plain", outputs=["/plain.md"])
    court.overrule(plain, "fail")
    assert write_missing_labels(court.workspace) == 0
    assert read_label_log(court.folder) == ()


def test_a_ticket_or_a_mission_that_is_gone_keeps_nobody_from_catching_up(court: Court) -> None:
    job = waiting(court)
    given(court, "pass")
    (court.folder / LOG).unlink()
    name = str(court.entries(job)[-1].data["ticket"]).partition(":")[2]
    kept = court.workspace.folder / "evidence" / name[:2] / name
    content = kept.read_bytes()
    kept.write_text("something else")
    assert write_missing_labels(court.workspace) == 0
    kept.write_bytes(content)
    (court.folder / "mission.toml").rename(court.folder / "gone.toml")
    assert write_missing_labels(court.workspace) == 0
    (court.folder / "gone.toml").rename(court.folder / "mission.toml")
    assert write_missing_labels(court.workspace) == 1


def test_the_log_is_read_once_however_many_verdicts_there_are(court: Court, monkeypatch: pytest.MonkeyPatch) -> None:
    job = waiting(court)
    (item,) = court.queue()
    for _ in range(5):
        record_verdict(court.workspace, item, "pass", ADA)
    assert job
    read: list[Path] = []
    real = read_label_log

    def counting(folder: Path) -> Any:
        read.append(folder)
        return real(folder)

    monkeypatch.setattr("donewhen.review.verdicts.read_label_log", counting)
    assert write_missing_labels(court.workspace) == 0
    assert len(read) == 1


def test_a_broken_log_is_told_before_anything_is_recorded(court: Court) -> None:
    job = waiting(court)
    (item,) = court.queue()
    add_label(court.folder, "reports", label("A", "pass"))
    (court.folder / LOG).write_text("no label\n\n")
    length = len(court.entries(job))
    with pytest.raises(DonewhenError) as caught:
        record_verdict(court.workspace, item, "pass", ADA)
    assert_sentences(caught.value)
    assert len(court.entries(job)) == length
