"""What needs a person: each question comes when it should, stays the same, and goes when it is settled."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from court_kit import ADA, BEN, BOT, CHECKED, JUDGED, Court, label, said, write_mission

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.lifecycle.setting_aside import record_dispute, record_unverified_stop, set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.judging.labels import add_label, read_label_log
from donewhen.learning.after.report_data import QueueRow, report_to_json
from donewhen.learning.reflection.hypotheses import PooledHypothesis
from donewhen.learning.running.pool_store import POOL, record_answer, waiting_pool
from donewhen.review.from_jobs import kept_ticket
from donewhen.review.items import KINDS, Kind, ReviewItem
from donewhen.review.queue import find_item, review_queue
from donewhen.review.verdicts import record_verdict

sys.path.insert(0, str(Path(__file__).parents[1] / "reports"))

from report_kit import a_run

from sentences import assert_sentences

SAYS_43 = "It says 43.\n  check: file /report.md matches /43/"
SAYS_44 = "It says 44.\n  check: file /report.md matches /44/"
HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe <b>bold</b> \x00" + "x" * 100_000


def refused(court: Court, *criteria: str) -> Job:
    job = court.job(*criteria)
    court.complete(job)
    return job


def low(court: Court) -> Job:
    court.votes = "ppf"
    return refused(court, JUDGED)


def disputed(court: Court) -> Job:
    job = refused(court, SAYS_43)
    record_dispute(court.workspace, job.id, BOT.by, "42 is right")
    return job


def unverified(court: Court) -> Job:
    job = refused(court, SAYS_43)
    record_unverified_stop(court.root, "the limit of attempts was reached")
    return job


def spot_checked(court: Court) -> Job:
    court.settings("[manual_review]\nspot_check = 1.0")
    job = court.job(JUDGED)
    assert court.complete(job).done
    return job


def reported(court: Court, *rows: QueueRow, run: str = "20260214-001") -> None:
    """The report of a run of learning."""
    folder = court.folder / "runs" / run
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.jsonl").write_text("")
    (folder / "report.json").write_bytes(report_to_json(a_run(queue=rows)))


def noisy(court: Court, count: int = 1) -> None:
    """Tickets of which a run suspects that people have labelled them wrongly."""
    names = [f"T{number:03d}" for number in range(count)]
    rows = [{"group_id": name, "label": "pass", "text": f"what {name} shows"} for name in names]
    lines = [json.dumps({"mission": "reports", "label_source": "cem", **row}) for row in rows]
    (court.folder / "tickets.jsonl").write_text("\n".join(lines) + "\n")
    found = [QueueRow(ticket_key=f"{name}::pass", reason_code="suspected_label_noise", label="pass") for name in names]
    reported(court, *found)


def pooled(number: int = 0, **more: Any) -> PooledHypothesis:
    given: dict[str, Any] = {
        "signature": f"sig{number:04d}",
        "text": f"A report that mentions {number} fails.",
        "falsifier": "one that passes",
        "dimension": "words",
        "cycles": ("1.1.1",),
        "evidence": ("a::fail", "b::fail", "c::fail", "d::fail", "e::fail"),
    }
    return PooledHypothesis(**given | more)


def wait_for(court: Court, *pool: PooledHypothesis) -> None:
    (court.folder / POOL).write_bytes(msgspec.json.encode(pool))


def only(court: Court, **options: Any) -> ReviewItem:
    (item,) = court.queue(**options)
    return item


def given(court: Court, item: ReviewItem, verdict: str = "pass", by: Any = ADA) -> Any:
    return record_verdict(court.workspace, item, verdict, by)  # type: ignore[arg-type]


# Each kind


def test_nothing_needs_a_person_where_all_is_well(court: Court) -> None:
    assert court.queue() == []
    assert court.complete(court.job(JUDGED)).done
    court.job(SAYS_43, title="Open")
    assert court.queue() == []


def test_votes_that_do_not_agree_are_asked_about_with_all_that_was_judged(court: Court) -> None:
    job = low(court)
    item = only(court)
    assert (item.kind, item.job, item.criterion, item.mission) == ("low_agreement", job.id, "AC-1", "reports")
    assert item.evidence == court.ticket(job)
    assert item.question == "AC-1: The report convinces."
    assert item.said is not None
    assert (item.said.verdict, item.said.passes, item.said.fails, item.said.decided) == ("pass", 2, 1, False)
    assert item.settles == ("pass", "fail")
    given(court, item)
    assert court.queue() == []


def test_it_is_asked_no_longer_when_the_work_has_changed(court: Court) -> None:
    low(court)
    court.write("report.md", "43 lines.\n")
    assert court.queue() == []


def test_a_judge_that_agrees_with_itself_again_needs_nobody(court: Court) -> None:
    job = low(court)
    court.votes = "ppp"
    court.ask(job, again=True)
    assert court.queue() == []


def test_what_needs_a_person_does_not_depend_on_the_environment_of_who_looks(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    court.votes = "ppf"
    refused(court, CHECKED, JUDGED)
    monkeypatch.setenv("LANG", "tlh_QO")
    monkeypatch.setenv("HOME", "/nowhere")
    assert court.kinds() == ["low_agreement"]


def test_a_disputed_refusal_is_asked_about_with_what_the_agent_says(court: Court) -> None:
    job = disputed(court)
    item = only(court)
    assert (item.kind, item.job, item.criterion) == ("disputed", job.id, "AC-1")
    assert_sentences(item.why)
    assert item.evidence["output report.md"] == "42 lines were parsed.\n"
    given(court, item)
    assert court.queue() == []


def test_a_stop_that_ended_unverified_is_asked_about_by_criterion(court: Court) -> None:
    job = refused(court, SAYS_43, SAYS_44)
    record_unverified_stop(court.root, "the limit of attempts was reached")
    items = court.queue()
    assert [(item.kind, item.criterion) for item in items] == [("unverified", "AC-1"), ("unverified", "AC-2")]
    assert items[0].why.startswith("the limit of attempts was reached AC-1 failed")
    given(court, items[0], "fail")
    assert [one.criterion for one in court.queue()] == ["AC-2"]
    given(court, items[1], "pass")
    assert court.queue() == []
    assert court.history(job).status == "in_progress"


@pytest.mark.parametrize("what", [low, disputed, unverified, spot_checked])
def test_an_agents_verdict_settles_nothing(court: Court, what: Any) -> None:
    what(court)
    item = only(court)
    done = given(court, item, "pass", BOT)
    assert (done.counts, done.ticket) == (False, None)
    assert [one.id for one in court.queue()] == [item.id]
    assert read_label_log(court.folder) == ()


@pytest.mark.parametrize("end", ["start", "complete"])
def test_an_agent_that_goes_on_is_not_asked_about_any_more(court: Court, end: str) -> None:
    job = unverified(court)
    if end == "start":
        assert start_job(court.workspace, job.id, BOT.by).started
    else:
        court.write("report.md", "43\n")
        assert court.complete(job).done
    assert court.queue() == []


def test_a_question_of_an_agent_is_no_verdict_and_goes_when_work_goes_on(court: Court) -> None:
    job = court.job(SAYS_43)
    set_job_aside(court.workspace, job.id, BOT.by, question="Which format?")
    item = only(court)
    assert (item.kind, item.question, item.settles) == ("asked", "Which format?", ("answer",))
    with pytest.raises(UsageError) as caught:
        given(court, item)
    assert_sentences(caught.value)
    assert start_job(court.workspace, job.id, BOT.by).started
    assert court.queue() == []


def test_a_job_that_is_blocked_for_a_reason_waits_for_words(court: Court) -> None:
    job = court.job(SAYS_43)
    set_job_aside(court.workspace, job.id, BOT.by, reason="the printer is on fire")
    item = only(court)
    assert (item.kind, item.question, item.settles) == ("blocked", "the printer is on fire", ("answer",))


def test_a_few_of_the_sure_verdicts_are_shown_all_the_same(court: Court) -> None:
    job = spot_checked(court)
    item = only(court)
    assert (item.kind, item.job) == ("spot_check", job.id)
    assert_sentences(item.why)
    done = given(court, item)
    assert_sentences(done.told)
    assert court.queue() == []


def test_which_verdicts_are_shown_is_chosen_by_what_was_judged_alone(court: Court) -> None:
    court.settings("[manual_review]\nspot_check = 0.0")
    assert court.complete(court.job(JUDGED)).done
    assert court.queue() == []
    for share, shown in ((1.0, True), (0.0, False)):
        court.settings(f"[manual_review]\nspot_check = {share}")
        assert bool(court.queue()) is shown


def test_a_verdict_of_which_the_ticket_is_gone_is_not_shown(court: Court) -> None:
    job = spot_checked(court)
    entry = next(one for one in court.entries(job) if one.data.get("what") == "judge")
    name = str(entry.data["ticket"]).partition(":")[2]
    (court.workspace.folder / "evidence" / name[:2] / name).write_text("{}")
    assert court.queue() == []


def test_a_verdict_whose_mission_is_gone_is_not_shown(court: Court) -> None:
    spot_checked(court)
    (court.folder / "mission.toml").unlink()
    # Without its judge, the agreement is void.
    assert court.kinds() == ["agreement"]


def test_what_was_left_to_people_is_not_asked_about_where_it_can_not_be_shown(court: Court) -> None:
    low(court)
    (court.root / "report.md").unlink()
    assert court.queue() == []


def test_a_disputed_criterion_whose_judge_is_gone_says_what_is_missing(court: Court) -> None:
    court.votes = "fff"
    job = refused(court, JUDGED)
    record_dispute(court.workspace, job.id, BOT.by, "it is fine")
    (court.folder / "mission.toml").unlink()
    item = next(item for item in court.queue() if item.kind == "disputed")
    assert_sentences(item.evidence["what is missing"])
    with pytest.raises(ConfigError) as caught:
        given(court, item)
    assert_sentences(caught.value)


def test_a_kept_ticket_that_is_none_is_not_shown(court: Court) -> None:
    job = spot_checked(court)
    entry = next(one for one in court.entries(job) if one.data.get("what") == "judge")
    for kept in ({"mission": "reports"}, ["no", "ticket"]):
        name = evidence_store(court.workspace).put_json(kept)
        assert kept_ticket(court.workspace, dataclasses.replace(entry, data={**entry.data, "ticket": name})) is None
    assert kept_ticket(court.workspace, entry) is not None


def test_a_label_that_looks_wrong_is_asked_about_and_then_settled(court: Court) -> None:
    noisy(court)
    item = only(court)
    assert (item.kind, item.mission, item.job) == ("label_noise", "reports", None)
    assert_sentences(item.why)
    assert item.ticket is not None and item.ticket.label is None
    done = given(court, item, "fail")
    assert done.ticket == "T000::fail"
    assert court.queue() == []
    assert [ticket.key for ticket in court.mission.tickets()] == ["T000::fail"]


def test_labels_that_disagree_about_the_rule_are_a_question_of_policy(court: Court) -> None:
    noisy(court)
    row = QueueRow(ticket_key="T000::pass", reason_code="policy_question", label="pass", note="Both <b>are</b>\nso.")
    reported(court, row)
    item = only(court)
    assert item.kind == "policy"
    assert item.why == "It was labelled pass by cem. Both <b>are</b> so."


def test_a_ticket_that_is_gone_is_not_asked_about(court: Court) -> None:
    noisy(court)
    (court.folder / "tickets.jsonl").write_text("")
    assert court.queue() == []


def test_the_newest_report_that_can_be_read_is_asked_from(court: Court) -> None:
    noisy(court)
    reported(court, run="20260214-002")
    assert court.queue() == []
    (court.folder / "runs" / "20260214-002" / "report.json").write_text("half of")
    assert court.kinds() == ["label_noise"]


def test_after_a_hundred_the_next_ones_are_asked_about(court: Court) -> None:
    noisy(court, 103)
    assert len(court.queue()) == 100
    for number in range(100):
        add_label(court.folder, "reports", label(f"T{number:03d}", "pass"))
    assert len(court.queue()) == 3


def test_a_rule_that_is_close_to_being_tried_is_shown(court: Court) -> None:
    wait_for(court, pooled())
    item = only(court)
    assert item.kind == "hypothesis"
    assert_sentences(item.question)
    assert_sentences(item.why)
    done = given(court, item)
    assert_sentences(done.told)
    assert waiting_pool(court.mission)[0].cycles == ("1.1.1", "person:ada")
    assert court.queue() == []


def test_a_rule_that_a_person_finds_wrong_waits_for_new_tickets(court: Court) -> None:
    wait_for(court, pooled(), pooled(1))
    item = next(one for one in court.queue() if one.subject == "sig0000")
    done = given(court, item, "fail")
    assert_sentences(done.told)
    first, second = waiting_pool(court.mission)
    assert (first.fate, first.tried_with) == ("refused", 5)
    assert_sentences(first.why)
    assert second == pooled(1)
    assert [one.subject for one in court.queue()] == ["sig0001"]


def test_an_agents_word_on_a_rule_changes_nothing(court: Court) -> None:
    wait_for(court, pooled())
    assert not given(court, only(court), "pass", BOT).counts
    assert waiting_pool(court.mission) == (pooled(),)


def test_one_person_is_one_cycle_however_often_they_say_it(court: Court) -> None:
    wait_for(court, pooled())
    for _ in range(3):
        record_answer(court.mission, "sig0000", right=True, by="person:ada")
    assert waiting_pool(court.mission)[0].cycles == ("1.1.1", "person:ada")


@pytest.mark.parametrize(
    "more",
    [{"evidence": ("a::fail",)}, {"fate": "refused"}, {"cycles": ()}],
    ids=["too few tickets", "refused", "too few cycles"],
)
def test_what_is_not_close_is_not_shown(court: Court, more: dict[str, Any]) -> None:
    wait_for(court, pooled(**more))
    assert court.queue() == []


def test_a_rule_behind_a_hundred_others_that_are_not_close_is_shown(court: Court) -> None:
    wait_for(court, *(pooled(number, evidence=("a::fail",)) for number in range(150)), pooled(200))
    assert [one.subject for one in court.queue()] == ["sig0200"]


def test_what_one_other_person_has_labelled_is_there_for_a_second_opinion(court: Court) -> None:
    add_label(court.folder, "reports", label("A", "pass", "ada", said=said("pass")))
    add_label(court.folder, "reports", label("B", "pass", "ben"))
    assert court.queue() == []
    item = only(court, by="ben")
    assert (item.kind, item.key, item.labels) == ("second_opinion", "A", ())
    assert "pass" not in item.why
    assert given(court, item, "fail", BEN).ticket == "A::fail"
    assert court.queue(by="ben") == []
    assert [one.key for one in court.queue(by="cem")] == ["B"]


def test_second_opinions_are_asked_for_until_there_are_none_left(court: Court) -> None:
    for number in range(102):
        add_label(court.folder, "reports", label(f"A{number:03d}", "pass", "ada"))
    assert len(court.queue(by="ben")) == 100
    for number in range(2, 102):
        add_label(court.folder, "reports", label(f"A{number:03d}", "pass", "ben"))
    assert {one.key for one in court.queue(by="ben")} == {"A000", "A001"}


# The queue as a whole


def test_every_kind_has_its_words() -> None:
    assert tuple(KINDS) == get_args(Kind)


def test_the_most_urgent_comes_first(court: Court) -> None:
    noisy(court)
    wait_for(court, pooled())
    court.votes = "ppf"
    low(court)
    job = court.job(SAYS_43, title="Other", outputs=["/other.md"])
    set_job_aside(court.workspace, job.id, BOT.by, question="Which format?")
    assert court.kinds() == ["asked", "low_agreement", "label_noise", "hypothesis"]


def test_a_question_keeps_its_name_while_it_is_the_same(court: Court) -> None:
    noisy(court)
    wait_for(court, pooled())
    job = low(court)
    first = {one.id for one in court.queue()}
    assert len(first) == 3
    court.complete(job)
    assert {one.id for one in court.queue()} == first
    court.write("report.md", "another report\n")
    court.complete(job)
    assert len({one.id for one in court.queue()} - first) == 1


def test_an_item_is_found_by_the_beginning_of_its_name(court: Court) -> None:
    low(court)
    item = only(court)
    assert find_item(court.workspace, item.id[:4]) == find_item(court.workspace, item.id)
    for name in ("", "zzz"):
        with pytest.raises(UsageError) as caught:
            find_item(court.workspace, name)
        assert_sentences(caught.value)
    noisy(court, 40)
    clash = next(one.id[0] for one in court.queue() if sum(o.id[0] == one.id[0] for o in court.queue()) > 1)
    with pytest.raises(UsageError) as caught:
        find_item(court.workspace, clash)
    assert_sentences(caught.value)


def test_hostile_text_is_one_plain_line_wherever_there_is_one(court: Court) -> None:
    job = refused(court, SAYS_43)
    court.write("report.md", HOSTILE)
    court.complete(job)
    record_dispute(court.workspace, job.id, BOT.by, HOSTILE)
    court.edit(job, "title: Report", f'title: "{"R" * 5000}"')
    item = only(court)
    for text in (item.title, item.question, item.why):
        assert text.isprintable()
        assert len(text) <= 1000
    assert "\x1b" not in item.evidence["output report.md"]
    assert "\u202e" not in item.evidence["output report.md"]
    assert sum(map(len, item.evidence.values())) <= 40_000


def test_one_mission_that_can_not_be_read_hides_no_other(court: Court) -> None:
    noisy(court)
    broken = write_mission(court.root / "missions" / "broken")
    (broken / "mission.toml").write_text("no TOML")
    kinds = {one.title: one for one in court.queue()}
    assert kinds["The mission broken can't be read"].settles == ()
    assert kinds["The mission broken can't be read"].next == "donewhen mission check broken"
    assert "reports  T000" in kinds


def test_a_broken_log_of_labels_hides_nothing_about_other_missions(court: Court) -> None:
    noisy(court)
    (court.folder / "reviews.jsonl").write_text("no label\n\n")
    other = write_mission(court.root / "missions" / "other")
    (other / POOL).write_bytes(msgspec.json.encode([pooled()]))
    assert sorted(court.kinds()) == ["hypothesis", "unreadable"]


def test_one_job_that_can_not_be_looked_at_hides_no_other(court: Court) -> None:
    job = refused(court, SAYS_43, CHECKED)
    record_dispute(court.workspace, job.id, BOT.by, "42 is right")
    noisy(court)
    court.workspace.write(court.workspace.read(job.path), job.path, {"inputs": ["../../../../etc/passwd"]})
    found = {item.kind: item for item in court.queue()}
    assert {"unreadable", "label_noise"} <= found.keys()
    broken = found["unreadable"]
    assert (broken.job, broken.settles) == (job.id, ())
    assert_sentences(broken.question)
    assert broken.next == f"donewhen plan-check {job.id}"


def test_of_very_many_jobs_only_those_are_read_that_may_need_somebody(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2000):
        name = f"WI-20260101-{number:04d}"
        path = court.root / "jobs" / f"{name}-x" / "plan.md"
        path.parent.mkdir()
        path.write_text(
            f"---\nid: {name}\ntitle: Job {number}\nstatus: planned\noutputs: []\n---\n\n"
            "## Acceptance Criteria\n\n- [ ] AC-1: It is there.\n  check: manual\n"
        )
    low(court)
    court.queue()
    read: list[Path] = []
    real = Workspace.job_at

    def counting(self: Workspace, path: Path) -> Job:
        read.append(path)
        return real(self, path)

    monkeypatch.setattr(Workspace, "job_at", counting)
    assert [one.kind for one in review_queue(court.workspace)] == ["low_agreement", "agreement"]
    assert len(read) <= 3


def test_what_a_person_has_failed_is_not_asked_about_again(court: Court) -> None:
    job = low(court)
    given(court, only(court), "fail")
    court.complete(job)
    assert court.queue() == []
