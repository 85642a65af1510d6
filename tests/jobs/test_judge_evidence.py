"""A judge's verdict as evidence: asked last and once, on record with all that it rests on, and never alone."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import ADA, BOT, CHECKED, JUDGED, WRITTEN, Court

from donewhen.completion import JobChecker, TaskCompletionContext
from donewhen.completion.checking import run_check
from donewhen.filesystem import HostFilesystem
from donewhen.foundation.errors import UsageError
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.judge.missions import accept_guidance, unread_judge_rules
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.signing import create_key_file, open_key
from donewhen.jobs.lifecycle.promise import verify_promise
from donewhen.jobs.plan.job import Job
from donewhen.judging.guidance import GuidanceChange
from donewhen.judging.labels import ticket_hash
from donewhen.models.roles import ModelError
from donewhen.runtime import Session
from donewhen.testing.models import ScriptedJudge
from sentences import assert_sentences

TOKEN = "ghp_" + "a1B2" * 9
ONE_VOTE = "sampler = [{ temperature = 0.1 }]"


@pytest.fixture
def court(repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Court:
    return Court(repository, git, monkeypatch)


def stop(court: Court) -> tuple[bool, str]:
    """Whether an agent may stop, and what it is told."""
    context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(court.root))
    found = run_check(JobChecker(), context)
    return found.complete, found.feedback or ""


def learn(court: Court, text: str = "A report without a date fails.", *, accepted: bool = True) -> None:
    """One more rule, as learning would make it; by default a person lets the gates follow it."""
    mission = court.mission
    mission.store.seed(mission.initial_guidance())
    guidance = mission.store.apply(
        GuidanceChange(op="add", text=text, rationale="seen", evidence=("a::fail",)), "run-1"
    )
    if accepted:
        assert accept_guidance(court.workspace, "reports", mission, guidance, ADA)


# On record


def test_a_verdict_is_on_record_with_everything_that_it_rests_on(court: Court) -> None:
    court.reason = "it is fine"
    job = court.job(JUDGED)
    question = court.question(job)
    ran = court.ask(job)
    data = ran.entry.data
    assert (ran.reused, ran.passed, ran.entry.type) == (False, True, "ran")
    assert {
        "what": "judge",
        "criterion": "AC-1",
        "mission": "reports",
        "asked_for": True,
        "verdict": "pass",
        "passed": True,
        "needs_human": False,
        "votes": {"pass": 3, "fail": 0, "malformed": 0},
        "agreement": 1.0,
        "margin": 0.5,
        "model": "scripted/1",
        "guidance_step": 0,
        "overridden_by": None,
        "settled": True,
        "key": question.key,
        "parts": dict(question.parts),
    }.items() <= data.items()
    assert data["reason"] == "it is fine"
    assert data["told"] == "the judge says pass (3:0, guidance step 0): it is fine"
    kept = evidence_store(court.workspace).get_json(str(data["ticket"]))
    assert kept["evidence"] == dict(court.ticket(job))
    assert ticket_hash(question.ticket) == question.subject


def test_a_reason_is_kept_without_secrets_and_in_one_line(court: Court) -> None:
    court.reason = f"the token {TOKEN} is in it"
    data = court.ask(court.job(JUDGED)).entry.data
    assert data["reason"] == "the token [redacted] is in it"
    assert TOKEN not in json.dumps(dict(data))


def test_a_fail_is_a_verdict_with_its_reason(court: Court) -> None:
    court.votes, court.reason = "fff", "no numbers"
    job = court.job(JUDGED)
    assert court.codes(job) == {"criterion_failed"}
    status = court.standing(job)
    assert status.state == "failed"
    assert_sentences(status.why)


def test_the_judge_sees_the_ticket_and_the_frozen_guidance(court: Court) -> None:
    job = court.job(JUDGED)
    learn(court, accepted=False)
    court.ask(job)
    request = court.model.rollouts[0]
    assert dict(request.evidence) == dict(court.ticket(job))
    assert request.rules == {"S1": "Only what is shown counts.", "G0": "The report must name its numbers."}


def test_a_judge_can_be_asked_where_a_loop_is_running(court: Court) -> None:
    job = court.job(JUDGED)

    async def inside() -> bool:
        return court.ask(job).passed

    assert asyncio.run(inside())


# Once


def test_the_same_question_is_not_asked_twice(court: Court) -> None:
    job = court.job(JUDGED)
    court.complete(job)
    length = len(court.entries(job))
    court.collect(job)
    again = court.ask(job)
    assert (again.reused, again.output) == (True, "the judge says pass (3:0, guidance step 0): it reads well")
    assert court.asked == 3
    assert len(court.entries(job)) == length


def test_a_verdict_that_leaves_it_to_people_is_not_asked_for_again_either(court: Court) -> None:
    court.votes = "ppf"
    job = court.job(JUDGED)
    for _ in range(3):
        court.complete(job)
    assert court.asked == 3


def test_it_is_asked_again_when_somebody_wants_that(court: Court) -> None:
    job = court.job(JUDGED)
    court.ask(job)
    court.ask(job, again=True)
    assert court.asked == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda court: court.write("report.md", "43 lines.\n"),
        lambda court: court.settings(ONE_VOTE),
        lambda court: learn(court),
    ],
    ids=["ticket", "judge", "guidance"],
)
def test_what_changes_makes_a_verdict_stale_for_its_own_reason(court: Court, change: Callable[[Court], None]) -> None:
    job = court.job(JUDGED)
    court.ask(job)
    change(court)
    status = court.standing(job)
    assert status.state == "stale"
    assert_sentences(status.why)
    before = court.asked
    court.ask(job)
    assert court.asked > before
    assert court.standing(job).state == "passed"


def test_guidance_that_nobody_accepted_changes_nothing(court: Court) -> None:
    job = court.job(JUDGED)
    court.ask(job)
    learn(court, accepted=False)
    assert court.standing(job).state == "passed"


def test_another_mission_for_the_same_words_is_another_question(court: Court) -> None:
    job = court.job(JUDGED)
    court.ask(job)
    (court.root / "missions" / "lenient").mkdir()
    for name in ("mission.toml", "initial_guidance.json", "tickets.jsonl"):
        (court.root / "missions" / "lenient" / name).write_bytes((court.folder / name).read_bytes())
    job = court.edit(job, "judge:reports", "judge:lenient")
    assert court.standing(job).state == "stale"


def test_what_changes_while_it_is_judged_is_not_settled(court: Court) -> None:
    job = court.job(JUDGED)
    court.meanwhile = lambda: court.write("report.md", "something else\n")  # type: ignore[assignment,return-value]
    entry = court.ask(job).entry
    assert (entry.data["settled"], entry.data["passed"]) == (False, True)
    assert court.standing(job).state == "stale"
    court.meanwhile = lambda: None
    court.write("report.md", "42 lines were parsed.\n")
    assert_sentences(court.standing(job).why)
    assert court.complete(job).done


def test_work_that_is_gone_when_the_judge_has_answered_is_not_settled(court: Court) -> None:
    job = court.job(JUDGED)
    court.meanwhile = lambda: (court.root / "report.md").unlink(missing_ok=True)
    entry = court.ask(job).entry
    assert (entry.data["settled"], entry.data["verdict"]) == (False, "pass")
    assert court.standing(job).state != "passed"


# Never alone


def test_a_failing_command_keeps_the_judge_from_being_asked(court: Court) -> None:
    job = court.job(CHECKED, JUDGED)
    court.write("check.sh", "exit 1\n")
    assert court.codes(job) == {"criterion_failed", "criterion_not_shown"}
    assert court.asked == 0
    assert_sentences(court.standing(job, "AC-2").why)


def test_a_failing_verification_command_does_so_too(court: Court) -> None:
    job = court.job(JUDGED, commands=["sh check.sh"])
    court.write("check.sh", "exit 1\n")
    court.complete(job)
    assert court.asked == 0


def test_a_missing_or_empty_output_does_so_too(court: Court) -> None:
    job = court.job(JUDGED, outputs=["/report.md", "/more.md"])
    court.complete(job)
    court.write("more.md", "")
    court.complete(job)
    assert court.asked == 0
    court.write("more.md", "more\n")
    court.complete(job)
    assert court.asked == 3


def test_an_output_that_leads_out_does_so_too(court: Court) -> None:
    job = court.job(JUDGED)
    court.edit(job, "  - /report.md", "  - /report.md\n  - ../../../../etc/passwd")
    court.collect(job)
    assert court.asked == 0


def test_whatever_the_judge_has_said_before_a_check_that_fails_now_dominates(court: Court) -> None:
    job = court.job(CHECKED, JUDGED)
    court.collect(job)
    assert court.standing(job, "AC-2").state == "passed"
    court.write("check.sh", "exit 1\n")
    court.git(court.root, "add", "--all")
    assert court.standing(job, "AC-2").state == "missing"
    assert not court.complete(job).done
    assert court.asked == 3


def test_one_criterion_can_not_be_judged_out_of_turn(court: Court) -> None:
    job = court.job(CHECKED, JUDGED)
    court.write("check.sh", "exit 1\n")
    with pytest.raises(UsageError) as caught:
        court.collect(job, only=court.requirement(job, "AC-2"))
    assert_sentences(caught.value)
    assert court.asked == 0


def test_a_file_that_is_not_as_it_should_be_comes_first(court: Court) -> None:
    job = court.job("It says 43.\n  check: file /report.md matches /43/", JUDGED)
    court.complete(job)
    assert court.asked == 0


def test_two_judges_of_one_job_are_each_asked(court: Court) -> None:
    job = court.job(JUDGED, "It is short, too.\n  check: judge:reports")
    assert court.complete(job).done
    assert court.asked == 6


# What is left to people


@pytest.mark.parametrize(
    "votes",
    [
        "ppf",
        "ffp",
        "pp?",
        "p??",
        "???",
    ],
)
def test_votes_that_do_not_agree_are_never_a_pass(court: Court, votes: str) -> None:
    court.votes = votes
    job = court.job(JUDGED)
    assert court.codes(job) == {"needs_human"}
    status = court.standing(job)
    assert status.state == "needs_human"
    assert_sentences(status.why)
    assert status.entry is not None and status.entry.data["passed"] is False


def test_how_many_votes_must_agree_is_the_missions_to_say(court: Court) -> None:
    court.settings("[manual_review]\nmin_verdict_agreement = 0.6\nspot_check = 0.0")
    court.votes = "ppf"
    assert court.complete(court.job(JUDGED)).done


def test_a_model_that_can_not_be_reached_gives_no_verdict_and_costs_no_iteration(court: Court) -> None:
    def broken(_: object) -> str:
        raise ModelError("The model took too long.")

    court.model = ScriptedJudge(broken, free=True)
    job = court.job(JUDGED)
    before = court.history(job).iteration
    for _ in range(2):
        refused = court.complete(job)
        assert refused.evaluation is not None
        assert {reason.code.value for reason in refused.evaluation.reasons} - {"score_too_low"} == {"judge_unreachable"}
        assert not refused.evaluation.waits_for_person
    assert court.history(job).iteration == before
    assert_sentences(court.standing(job).why[0])


def test_a_model_that_answers_nonsense_was_reached_and_a_person_decides(court: Court) -> None:
    court.model = ScriptedJudge(lambda _: "Well, who knows?", free=True)
    assert court.codes(court.job(JUDGED)) == {"needs_human"}


def test_a_model_that_can_be_reached_again_decides(court: Court) -> None:
    answers = court.model

    def broken(_: object) -> str:
        raise ModelError("The model took too long.")

    job = court.job(JUDGED)
    court.model = ScriptedJudge(broken, free=True)
    assert not court.complete(job).done
    court.model = answers
    court.votes = "ppp"
    assert court.complete(job).done


def test_a_judge_that_was_taught_nothing_passes_nothing(court: Court) -> None:
    from donewhen.judging.competence import first_rule

    (court.folder / "initial_guidance.json").write_text(json.dumps({"G0": first_rule("en")}))
    job = court.job(JUDGED)
    assert court.codes(job) == {"needs_human"}
    assert_sentences(court.standing(job).why[0])


def test_a_judge_that_can_not_read_what_binds_it_passes_nothing(court: Court) -> None:
    toml = court.folder / "mission.toml"
    toml.write_text(toml.read_text().replace('model = "scripted"', 'model = "contrast"'))
    job = court.job(JUDGED)
    assert court.codes(job) == {"needs_human"}
    assert_sentences(court.standing(job).why[0])


DEFAULT = "Unless a rule says otherwise, the verdict is pass."
READ = 'When "sloppy" occurs, the verdict is fail.'


@pytest.mark.parametrize(
    ("rules", "unread"),
    [
        ({"G0": DEFAULT, "G1": "A report with a loose screw always fails.", "G2": READ}, "G1"),
        ({"G0": DEFAULT, "G1": READ, "G2": "Look at the screws."}, "G2"),
        ({"G0": "Good reports pass.", "G1": READ}, "G0"),
        ({"S1": "Look at the screws.", "G0": DEFAULT, "G1": READ}, "S1"),
    ],
)
def test_a_gate_promises_nothing_on_a_verdict_that_an_unread_rule_might_change(
    repository: Path, git: Callable[..., str], rules: dict[str, str], unread: str
) -> None:
    court = Court(repository, git, rules=rules)
    job = court.job(JUDGED)
    assert court.codes(job) == {"needs_human"}
    [reason] = court.standing(job).why
    assert f"can't read {unread}" in reason
    assert unread_judge_rules(court.workspace, [court.read(job)]) == {"reports": (unread,)}


def test_a_gate_promises_on_the_verdict_of_a_judge_that_reads_its_rules(
    repository: Path, git: Callable[..., str]
) -> None:
    other = 'When "wobbly" occurs, the verdict is fail.'
    court = Court(repository, git, rules={"G0": DEFAULT, "G1": READ, "G2": other})
    job = court.job(JUDGED)
    assert court.complete(job).done
    assert unread_judge_rules(court.workspace, [court.read(job)]) == {}


FAILS, PASSES = 'When "wobbly" occurs, the verdict is fail.', 'When "parsed" occurs, the verdict is pass.'


@pytest.mark.parametrize(
    ("rules", "decided"),
    [
        ({}, False),
        ({"G1": FAILS}, False),
        ({"S1": FAILS}, False),
        ({"G1": 'When "nowhere" occurs, the verdict is pass.'}, False),
        ({"G1": PASSES}, True),
        ({"G1": FAILS, "G2": 'When "loose" occurs, the verdict is fail.'}, True),
        ({"S1": FAILS, "G1": 'When "loose" occurs, the verdict is fail.'}, True),
    ],
    ids=["none", "one", "one of the scaffold", "one that does not apply", "one that decides", "two", "one of each"],
)
def test_a_judge_with_one_rule_passes_nothing_by_its_default_alone(
    repository: Path, git: Callable[..., str], rules: dict[str, str], decided: bool
) -> None:
    court = Court(repository, git, rules={"G0": DEFAULT, **rules})
    job = court.job(JUDGED)
    if decided:
        assert court.complete(job).done
    else:
        assert court.codes(job) == {"needs_human"}
        assert court.history(job).iteration == 0


def test_what_its_only_rule_fails_is_failed_all_the_same(repository: Path, git: Callable[..., str]) -> None:
    court = Court(repository, git, rules={"G0": DEFAULT, "G1": 'When "parsed" occurs, the verdict is fail.'})
    assert court.codes(court.job(JUDGED)) == {"criterion_failed"}


def test_a_pass_from_before_unread_rules_counted_is_not_reused(
    repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    court = Court(repository, git, rules={"G0": DEFAULT, "G1": READ, "G2": "Loose screws fail."})
    job = court.job(JUDGED)
    with monkeypatch.context() as earlier:
        # The version that ignored such rules.
        earlier.setattr("donewhen.judging.competence.unread_by_default_model", lambda *_: ())
        earlier.setattr("donewhen.judging.judge.unread_rules", lambda *_: ())
        court.collect(job)
        assert court.standing(job).state == "passed"
    assert court.standing(job).state != "passed"
    assert court.codes(job) == {"needs_human"}


def test_an_override_of_the_mission_decides_and_is_named(court: Court) -> None:
    court.write("missions/reports/last.py", "def say(ticket, vote):\n    return 'pass'\n")
    court.settings('overrides = ["last.py:say"]')
    court.votes = "fff"
    job = court.job(JUDGED)
    data = court.ask(job).entry.data
    assert (data["passed"], data["verdict"], data["overridden_by"]) == (True, "pass", "last.py:say")


def test_waiting_for_a_person_is_neither_an_iteration_nor_a_stalled_try(court: Court) -> None:
    court.votes = "ppf"
    job = court.job(JUDGED)
    for _ in range(6):
        court.complete(job)
    history = court.history(job)
    assert (history.iteration, history.scores, history.auto_blocked) == (0, (), False)
    assert court.entries(job)[-1].data["waits_for_person"] is True
    assert court.entries(job)[-1].data["next"] == "donewhen review"


def test_two_questions_for_people_are_no_iteration_either(court: Court) -> None:
    court.votes = "ppf"
    job = court.job(JUDGED, "Signed.\n  check: manual")
    assert court.codes(job) == {"needs_human"}
    assert court.history(job).iteration == 0


def test_it_is_an_iteration_where_something_else_is_missing_too(court: Court) -> None:
    court.votes = "ppf"
    job = court.job(JUDGED, "Signed.\n  check: manual", "It says 43.\n  check: file /report.md matches /43/")
    assert court.codes(job) == {"needs_human", "criterion_failed", "criterion_not_shown"}
    assert court.history(job).iteration == 1


def test_an_agent_may_rest_while_a_person_has_to_decide(court: Court) -> None:
    court.votes = "ppf"
    job = court.job(JUDGED)
    assert stop(court)[0] is False
    court.complete(job)
    may, message = stop(court)
    assert may
    assert job.id in message
    assert_sentences(message)
    court.write("report.md", "43 lines.\n")
    assert stop(court)[0] is False


def test_a_judge_that_can_not_be_asked_is_on_record_and_shows_nothing(court: Court) -> None:
    job = court.job(WRITTEN, JUDGED)
    (court.folder / "initial_guidance.json").write_text("[]")
    entry = court.ask(job, "AC-2").entry
    assert (entry.data["key"], entry.data["passed"], entry.data["settled"]) == ("", False, False)
    assert_sentences(entry.data["told"])
    assert court.standing(job, "AC-2").state == "missing"


def test_the_record_of_a_judge_that_could_not_be_asked_tells_why(court: Court, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: str) -> ScriptedJudge:
        raise UsageError("There is no such model.")

    monkeypatch.setattr("donewhen.models.executors.open_model", nobody)
    job = court.job(JUDGED)
    court.ask(job)
    assert court.standing(job).state == "missing"
    assert court.standing(job).why == ("There is no such model.",)


def test_asking_keeps_within_the_budget_of_the_mission(court: Court) -> None:
    court.settings("budget = { calls = 2 }")
    job = court.job(JUDGED)
    court.ask(job)
    assert court.standing(job).state == "missing"
    assert court.asked <= 2


def test_what_was_paid_for_is_known_by_the_ledger_and_not_by_a_file_that_anybody_can_write(court: Court) -> None:
    court.model = ScriptedJudge(court._vote, free=False)
    job = court.job(JUDGED)
    court.ask(job)
    court.ask(job)
    assert court.asked == 3
    assert not (court.folder / "runs").exists()
    court.ask(job, again=True)
    assert court.asked == 6


def test_a_criterion_of_an_unknown_mission_is_not_shown(court: Court) -> None:
    job = court.job("It convinces.\n  check: judge:nobody")
    court.ask(job)
    assert court.standing(job).state == "missing"
    assert_sentences(court.standing(job).why[0])


# Worn down


def worn(court: Court, versions: int) -> Job:
    """A job of whose work the judge has not passed so many versions; it would pass the next one."""
    court.votes = "fff"
    job = court.job(JUDGED)
    for number in range(versions):
        court.write("report.md", f"version {number}\n")
        court.ask(job)
        # The same version once more is no other one.
        court.ask(job, again=True)
    court.votes = "ppp"
    court.write("report.md", "the last version\n")
    return job


def test_a_judge_that_gives_in_after_many_versions_leaves_it_to_a_person(court: Court) -> None:
    job = worn(court, 4)
    assert job.max_iterations == 3
    assert court.codes(job) == {"needs_human"}
    assert_sentences(court.standing(job).why[0])
    court.overrule(job, "pass")
    assert court.complete(job).done


def test_as_many_versions_as_there_may_be_tries_are_honest_work(court: Court) -> None:
    assert court.complete(worn(court, 3)).done


def test_votes_that_do_not_agree_are_versions_that_did_not_pass(court: Court) -> None:
    job = worn(court, 3)
    court.votes = "ppf"
    court.write("report.md", "one more\n")
    court.ask(job)
    court.votes = "ppp"
    court.write("report.md", "and the last\n")
    assert court.codes(job) == {"needs_human"}


def test_after_a_person_has_spoken_the_judge_begins_anew(court: Court) -> None:
    job = worn(court, 4)
    court.overrule(job, "fail")
    court.write("report.md", "better now\n")
    assert court.complete(job).done


@pytest.mark.parametrize("who", ["an agent", "a key that nobody agreed to"])
def test_nobody_else_lets_it_begin_anew(court: Court, tmp_path: Path, who: str) -> None:
    job = worn(court, 4)
    by = BOT
    if who != "an agent":
        create_key_file(tmp_path / "key", "pass phrase")
        public, sign = open_key(tmp_path / "key", "pass phrase")
        by = Approval(Actor("mine", "key"), public, sign)
    court.overrule(job, "fail", by)
    court.write("report.md", "better now\n")
    assert court.codes(job) == {"needs_human"}


# All of it


def test_a_pass_opens_the_gate_and_ends_in_a_promise(court: Court) -> None:
    job = court.job(CHECKED, JUDGED)
    done = court.complete(job)
    assert done.promise is not None
    assert verify_promise(court.workspace, done.promise.text, approval_policy(court.workspace)).real
    asked = court.entries(job)[-2]
    assert court.entries(job)[-1].data["judged"] == {
        "AC-2": {"mission": "reports", "state": "passed", "entry": asked.hash, "guidance_step": 0}
    }


def test_a_done_job_that_was_judged_stays_done_whoever_looks(court: Court) -> None:
    job = court.job(JUDGED)
    assert court.complete(job).done
    again = court.complete(job)
    assert (again.done, again.repeated) == (True, True)
    assert court.asked == 3
