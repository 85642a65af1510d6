"""The inbox: what a job waits for, what a person can say to it, and that their words reach the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from court_kit import ADA, BOT, Court

from donewhen.completion import JobChecker, TaskCompletionContext
from donewhen.filesystem import HostFilesystem
from donewhen.foundation.errors import UsageError
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.gates.job_view import view_job
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.answering import LONGEST_ANSWER, answer_job
from donewhen.jobs.lifecycle.setting_aside import record_dispute, set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job
from donewhen.jobs.plan.job import Job
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.dispatch import dispatch_call
from donewhen.mcp.tools import BY_NAME
from donewhen.protocols import TaskCompletionResult
from donewhen.review.items import ReviewItem
from donewhen.review.verdicts import RecordedVerdict, record_verdict
from donewhen.runtime import Session

MANUAL = "It reads well.\n  check: manual"
SAYS_43 = "It says 43.\n  check: file /report.md matches /43/"
WORDS = "Use commas, as in the other reports."


def only(court: Court) -> ReviewItem:
    (item,) = court.queue()
    return item


def says(court: Court, choice: Any, words: str = "", by: Approval = ADA) -> RecordedVerdict:
    return record_verdict(court.workspace, only(court), choice, by, words)


def stop(court: Court) -> TaskCompletionResult:
    """What the stop hook says to the agent."""
    context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(court.root))
    return JobChecker(root=court.root).check(context)


def call(court: Court, tool: str, **arguments: Any) -> str:
    """The text of an MCP tool."""
    outcome = dispatch_call(BY_NAME[tool], arguments, CallContext(court.root))
    assert not outcome.failed, outcome.text
    return outcome.text


def asked(court: Court, question: str = "Commas or semicolons?") -> Job:
    job = court.job(SAYS_43)
    set_job_aside(court.workspace, job.id, BOT.by, question=question)
    return court.read(job)


# Questions


def test_an_answer_reaches_the_agent_wherever_it_looks_and_costs_no_iteration(court: Court) -> None:
    job = asked(court)
    assert stop(court).complete
    assert says(court, "answer", WORDS).counts
    assert court.queue() == []
    job = court.read(job)
    assert (job.status, job.iteration) == ("in_progress", 0)
    held = stop(court)
    assert not held.complete
    assert WORDS in (held.feedback or "") and "Commas or semicolons?" in (held.feedback or "")
    for tool, arguments in (("next_action", {"job": job.id}), ("show_job", {"job": job.id}), ("list_jobs", {})):
        assert WORDS in call(court, tool, **arguments), tool
    started = call(court, "start_job", job=job.id)
    assert WORDS in started
    assert court.read(job).iteration == 0


def test_starting_again_without_an_answer_is_an_iteration_as_before(court: Court) -> None:
    job = asked(court)
    assert start_job(court.workspace, job.id, BOT.by).started
    assert court.read(job).iteration == 1
    answered = asked_again(court, job)
    assert start_job(court.workspace, answered.id, BOT.by).started
    assert start_job(court.workspace, answered.id, BOT.by).started
    assert court.read(job).iteration == 2


def asked_again(court: Court, job: Job) -> Job:
    set_job_aside(court.workspace, job.id, BOT.by, question="And now?")
    assert answer_job(court.workspace, job.id, "Go on.", ADA).counts
    return court.read(job)


def test_an_answer_is_shown_until_the_job_is_done_also_after_somebody_tried(court: Court) -> None:
    """The person may run `complete` themselves, before the agent has read anything."""
    job = asked(court)
    says(court, "answer", WORDS)
    assert not court.complete(job).done
    assert WORDS in (stop(court).feedback or "")
    court.write("report.md", "43\n")
    assert court.complete(job).done
    assert WORDS not in call(court, "show_job", job=job.id)


def test_an_agent_is_held_for_an_answer_although_something_else_waits_for_a_person(court: Court) -> None:
    job = court.job(MANUAL)
    set_job_aside(court.workspace, job.id, BOT.by, question="Which format?")
    answer_job(court.workspace, job.id, WORDS, ADA)
    assert WORDS in (stop(court).feedback or "")
    assert court.codes(job) == {"needs_human"}
    assert stop(court).complete


def test_the_answer_of_an_agent_is_recorded_and_answers_nothing(court: Court) -> None:
    job = asked(court)
    assert not says(court, "answer", WORDS, BOT).counts
    assert only(court).kind == "asked"
    assert court.read(job).status == "blocked"
    assert stop(court).complete


@pytest.mark.parametrize("words", ["", "  \n", "x" * (LONGEST_ANSWER + 1)], ids=["empty", "blank", "too long"])
def test_an_answer_that_can_not_be_passed_on_whole_is_refused(court: Court, words: str) -> None:
    asked(court)
    with pytest.raises(UsageError, match=r"empty|longer"):
        says(court, "answer", words)
    assert only(court).kind == "asked"


def test_a_long_answer_arrives_whole(court: Court) -> None:
    job = asked(court)
    words = " ".join(f"word{number}" for number in range(380))
    assert len(words) < LONGEST_ANSWER
    says(court, "answer", words)
    assert words in (stop(court).feedback or "")
    assert court.entries(job)[-1].data["reason"] == words


def test_an_answer_to_a_question_that_was_replaced_is_not_given_to_the_new_one(court: Court) -> None:
    job = asked(court)
    item = only(court)
    set_job_aside(court.workspace, job.id, BOT.by, question="Delete everything?")
    with pytest.raises(UsageError, match="asks something else"):
        record_verdict(court.workspace, item, "answer", ADA, "Yes.")
    assert only(court).question == "Delete everything?"


def test_a_blocked_job_goes_on_with_the_words_of_a_person(court: Court) -> None:
    job = court.job(SAYS_43)
    set_job_aside(court.workspace, job.id, BOT.by, reason="The registry is down.")
    assert only(court).kind == "blocked"
    says(court, "answer", "It is up again.")
    assert court.read(job).status == "in_progress"
    assert "It is up again." in (stop(court).feedback or "")


def test_earlier_answers_are_shown_with_the_next_question(court: Court) -> None:
    job = asked(court)
    says(court, "answer", WORDS)
    set_job_aside(court.workspace, job.id, BOT.by, question="Also in headings?")
    assert WORDS in only(court).evidence["what people said before"]


def test_a_verdict_on_a_dispute_lets_the_agent_go_on_for_nothing(court: Court) -> None:
    job = court.job(SAYS_43)
    assert not court.complete(job).done
    record_dispute(court.workspace, job.id, BOT.by, "42 is right")
    says(court, "fail", "It has to be 43.")
    assert "It has to be 43." in (stop(court).feedback or "")
    assert start_job(court.workspace, job.id, BOT.by).started
    assert court.read(job).iteration == 1


# Sign-offs


def test_a_criterion_for_a_person_is_no_iteration_and_a_legal_stop(court: Court) -> None:
    job = court.job(MANUAL)
    result = court.complete(job)
    assert result.evaluation is not None
    assert {reason.code for reason in result.evaluation.truth.reasons} == {"needs_human"}
    assert (court.read(job).iteration, result.state.word, result.state.next) == (0, "needs_person", "donewhen review")
    assert stop(court).complete


def test_it_waits_in_the_inbox_with_outputs_and_difference(court: Court) -> None:
    job = court.job(MANUAL)
    court.git(court.root, "add", "-A")
    item = only(court)
    assert (item.kind, item.criterion, item.settles) == ("sign_off", "AC-1", ("pass", "fail"))
    assert item.evidence["output report.md"] == "42 lines were parsed.\n"
    assert "+42 lines were parsed." in item.evidence["diff"]
    assert says(court, "pass", "Read it aloud.").counts
    assert court.queue() == []
    assert court.complete(job).done


def test_it_does_not_wait_before_there_is_something_to_look_at(court: Court) -> None:
    job = court.job(MANUAL, SAYS_43, work=None)
    assert court.queue() == []
    court.write("report.md", "42 lines\n")
    assert not court.complete(job).done
    assert court.queue() == []
    court.write("report.md", "43 lines\n")
    court.complete(job)
    assert only(court).kind == "sign_off"


def test_what_is_not_met_goes_back_to_the_agent_with_the_reason_until_the_work_changes(court: Court) -> None:
    job = court.job(MANUAL)
    says(court, "fail", "The second paragraph repeats the first.")
    assert court.queue() == []
    held = stop(court)
    assert not held.complete
    assert "The second paragraph repeats the first." in (held.feedback or "")
    assert court.codes(job) == {"criterion_failed"}
    court.write("report.md", "42 lines were parsed, once.\n")
    assert only(court).kind == "sign_off"
    assert court.codes(job) == {"needs_human"}
    says(court, "pass")
    assert court.complete(job).done


def test_the_refusal_of_an_agent_refuses_nothing(court: Court) -> None:
    job = court.job(MANUAL)
    assert not says(court, "fail", "No.", BOT).counts
    assert court.codes(job) == {"needs_human"}


def test_work_that_changed_since_it_was_shown_is_not_signed_off(court: Court) -> None:
    job = court.job(MANUAL)
    item = only(court)
    court.write("report.md", "Something else.\n")
    with pytest.raises(UsageError, match="changed during the review"):
        record_verdict(court.workspace, item, "pass", ADA)
    assert court.codes(job) == {"needs_human"}


# Budgets


def spent(court: Court) -> Job:
    job = court.job(SAYS_43, stakes="low")
    for _ in range(job.max_iterations + 1):
        court.complete(job)
    assert court.read(job).status == "blocked"
    return court.read(job)


def test_a_job_out_of_budget_waits_with_its_attempts_and_three_decisions(court: Court) -> None:
    job = spent(court)
    item = only(court)
    assert (item.kind, item.settles) == ("out_of_budget", ("raise_budget", "rescope", "cancel"))
    assert "criterion_failed" in item.evidence["the last attempts"]
    assert f"needs {job.reward_target}" in item.evidence["the last attempts"]
    assert [answer.key for answer in item.answers] == ["b", "w", "c"]


def test_a_raised_budget_lets_the_agent_go_on_for_nothing_with_the_reason(court: Court) -> None:
    job = spent(court)
    budget = only(court).budget
    assert says(court, "raise_budget", "The file format was unclear.").counts
    assert court.queue() == []
    before = court.read(job)
    assert before.max_iterations == budget > before.iteration
    assert "The file format was unclear." in (stop(court).feedback or "")
    assert start_job(court.workspace, job.id, BOT.by).started
    assert court.read(job).iteration == before.iteration


def test_rescoping_and_cancelling_are_decisions_too(court: Court) -> None:
    job = spent(court)
    says(court, "rescope", "Only the summary.")
    assert court.queue() == []
    assert court.entries(job)[-1].data["decision"] == "rescope"
    other = court.job(SAYS_43, title="Other", stakes="low")
    for _ in range(other.max_iterations + 1):
        court.complete(other)
    item = next(item for item in court.queue() if item.job == other.id)
    record_verdict(court.workspace, item, "cancel", ADA, "")
    assert court.read(other).status == "cancelled"
    assert [item.job for item in court.queue()] == []


def test_an_agents_proposal_does_not_hide_the_question(court: Court) -> None:
    job = asked(court)
    decide(court.workspace, job, Decision("raise_budget", "Please.", 20), BOT)
    assert only(court).kind == "asked"


# Agreements


def test_jobs_that_nobody_agreed_to_are_one_item(court: Court) -> None:
    titles = [f"Import {number}" for number in range(30)]
    for title in titles:
        add_job(court.workspace, title, criteria=[SAYS_43], outputs=["/report.md"])
    item = only(court)
    assert (item.kind, item.settles, item.next) == ("agreement", (), "donewhen agree")
    assert "30 jobs" in item.question
    assert all(title in item.evidence["not agreed"] for title in titles)
    with pytest.raises(UsageError, match="can't be settled"):
        says(court, "pass")


def test_terms_that_were_loosened_wait_for_an_agreement(court: Court) -> None:
    job = court.job(SAYS_43, started=False, work=None)
    assert court.queue() == []
    court.edit(job, "matches /43/", "matches /4/")
    item = only(court)
    assert (item.kind, item.job) == ("agreement", job.id)
    assert "loosened or removed" in item.evidence["not agreed"]


def test_the_words_of_two_people_are_both_shown_with_their_names(court: Court) -> None:
    job = asked(court)
    says(court, "answer", "Commas.")
    set_job_aside(court.workspace, job.id, BOT.by, question="Sure?")
    says(court, "answer", "Semicolons after all.", Approval(Actor("ben", "person")))
    words = view_job(court.workspace, court.read(job)).words_of_people
    assert [text.split()[0] for text in words] == ["ada", "ben"]
    assert ("Commas." in words[0], "Semicolons after all." in words[1]) == (True, True)


def test_every_answer_is_in_the_ledger_of_a_clone(court: Court, tmp_path: Path) -> None:
    """The agent may work in another clone: what it pulls is all that it needs."""
    job = asked(court)
    says(court, "answer", WORDS)
    court.commit()
    court.git(tmp_path, "clone", "-q", str(court.root), "clone")
    outcome = dispatch_call(BY_NAME["next_action"], {"job": job.id}, CallContext(tmp_path / "clone"))
    assert WORDS in outcome.text
