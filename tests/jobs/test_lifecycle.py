"""Starting a job, resting honestly, and looking how far it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import UsageError
from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.evidence.requirements import Requirement
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from donewhen.jobs.lifecycle.start import StartResult, start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import rewrite_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.projection import PROJECTED, mismatches
from sentences import assert_sentences

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
AGREED = ("agreement_status", "agreed_at", "agreed_by")
SAYS_YES = "It says yes.\n  check: file outputs/primary.md matches /yes/"


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


def made(shop: Workspace, title: str = "Job", *, sealed: bool = True, **about: object) -> Job:
    job = add_job(shop, title, criteria=[SAYS_YES], **about)  # type: ignore[arg-type]
    if sealed:
        seal(shop, job)
    return job


def seal(shop: Workspace, *jobs: Job) -> None:
    for proposal in agreement_proposals(shop, [shop.job_at(job.path) for job in jobs]):
        agree(shop, proposal, ADA)


def put_out(job: Job, text: str = "yes\n") -> None:
    (job.folder / "outputs" / "primary.md").write_text(text)


def finished(shop: Workspace, job: Job, text: str = "yes\n") -> Completion:
    assert start_job(shop, job.id, BOT).started
    put_out(job, text)
    result = complete(shop, job.id, BOT)
    assert result.done
    return result


def typed(shop: Workspace, path: Path, **fields: Value) -> None:
    path.write_bytes(rewrite_fields(shop.read(path), fields))


def field(shop: Workspace, path: Path, name: str) -> Value:
    return shop.read(path).fields[name]


def kinds(shop: Workspace, chain: str) -> list[str]:
    return [entry.type for entry in shop.ledger.read(chain).entries]


def codes(result: StartResult) -> list[str]:
    return [reason.code.value for reason in result.reasons]


def errors(shop: Workspace) -> list[str]:
    return [
        f"{finding.where}: {finding.message}"
        for finding in audit_workspace(shop).findings
        if finding.severity == "error"
    ]


# Starting


def test_a_start_notes_what_there_is_and_writes_when(shop: Workspace) -> None:
    above = made(shop, "Above")
    finished(shop, above)
    job = made(shop, "Below", depends_on=[above.id])
    put_out(job, "draft\n")
    result = start_job(shop, job.id, BOT)
    assert result.started
    assert result.entry is not None
    assert list(result.entry.data["outputs"]) == [shop.where(job.folder / "outputs" / "primary.md")]
    assert list(result.entry.data["upstream"]) == [shop.where(above.folder / "outputs" / "primary.md")]
    assert (result.job.status, result.job.iteration, result.reasons, result.next) == ("in_progress", 0, (), None)
    assert field(shop, job.path, "started_at")
    assert errors(shop) == []


def test_the_first_start_costs_nothing_and_each_further_one_counts(shop: Workspace) -> None:
    job = made(shop)
    assert start_job(shop, job.id, BOT).job.iteration == 0
    began = field(shop, job.path, "started_at")
    assert [start_job(shop, job.id, BOT).job.iteration for _ in range(2)] == [1, 2]
    assert field(shop, job.path, "started_at") == began


def test_no_job_is_in_progress_beyond_its_budget(shop: Workspace) -> None:
    job = made(shop, stakes="low")
    for _ in range(6):
        start_job(shop, job.id, BOT)
        now = shop.job(job.id)
        assert now.iteration <= now.max_iterations or now.status == "blocked"
    assert codes(start_job(shop, job.id, BOT)) == ["budget_exceeded"]


@pytest.mark.parametrize("typed_in", [False, True], ids=["proposed", "typed"])
def test_nothing_starts_without_an_agreement(shop: Workspace, typed_in: bool) -> None:
    job = made(shop, sealed=False)
    if typed_in:
        typed(shop, shop.project_file, agreement_status="agreed")
    result = start_job(shop, job.id, BOT)
    assert not result.started
    assert set(codes(result)) == {"agreement_unsealed" if typed_in else "not_agreed_yet"}
    assert result.next == f"donewhen agree {job.id}"
    assert (kinds(shop, job.id), shop.job(job.id).status) == ([], "planned")


def test_the_word_of_an_agent_starts_nothing(shop: Workspace) -> None:
    job = made(shop, sealed=False)
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, Approval(BOT))
    assert set(codes(start_job(shop, job.id, BOT))) == {"not_agreed_yet"}


def test_a_loosened_contract_starts_nothing_and_names_the_edit(shop: Workspace) -> None:
    job = made(shop)
    typed(shop, job.path, reward_target=10)
    result = start_job(shop, job.id, BOT)
    assert (codes(result), result.next) == (["agreement_voided"], f"donewhen contract diff {job.id}")
    assert "reward_target" in result.reasons[0].message


def test_what_was_tightened_before_the_start_is_sealed_with_it(shop: Workspace) -> None:
    job = made(shop)
    typed(shop, job.path, reward_target=90)
    assert start_job(shop, job.id, BOT).started
    typed(shop, job.path, reward_target=80)
    assert codes(start_job(shop, job.id, BOT)) == ["agreement_voided"]


def test_a_job_waits_for_those_before_it(shop: Workspace) -> None:
    above = made(shop, "Above")
    job = made(shop, "Below", depends_on=[above.id])
    result = start_job(shop, job.id, BOT)
    assert (codes(result), result.next) == (["dependency_open"], "donewhen ready")
    assert above.id in result.reasons[0].message
    finished(shop, above)
    assert start_job(shop, job.id, BOT).started


def test_a_dependency_that_only_says_done_does_not_help(shop: Workspace) -> None:
    above = made(shop, "Above")
    job = made(shop, "Below", depends_on=[above.id])
    typed(shop, above.path, status="done", completed_at="2026-01-01T00:00:00Z")
    assert codes(start_job(shop, job.id, BOT)) == ["dependency_open"]


@pytest.mark.parametrize("who", [None, Approval(BOT)], ids=["nobody", "an agent"])
def test_no_restart_after_the_budget_ran_out_until_somebody_who_may_decides(
    shop: Workspace, who: Approval | None
) -> None:
    job = made(shop)
    start_job(shop, job.id, BOT)
    for _ in range(4):
        complete(shop, job.id, BOT)
    if who is not None:
        decide(shop, shop.job(job.id), Decision("raise_budget", "more", 9), who)
    result = start_job(shop, job.id, BOT)
    assert codes(result) == ["budget_exceeded"]
    assert str(result.next).startswith(f"donewhen decide {job.id} --raise-budget ")
    assert shop.job(job.id).status == "blocked"
    decide(shop, shop.job(job.id), Decision("raise_budget", "more", 9), ADA)
    again = start_job(shop, job.id, BOT)
    # The restart after a person's decision costs nothing.
    assert (again.started, again.job.status, again.job.iteration) == (True, "in_progress", 4)


def test_a_second_block_needs_a_second_decision(shop: Workspace) -> None:
    job = made(shop)
    start_job(shop, job.id, BOT)
    for _ in range(4):
        complete(shop, job.id, BOT)
    decide(shop, shop.job(job.id), Decision("raise_budget", "more", 5), ADA)
    for _ in range(2):
        complete(shop, job.id, BOT)
    assert shop.job(job.id).status == "blocked"
    assert codes(start_job(shop, job.id, BOT)) == ["budget_exceeded"]


TYPED = {
    "in progress": {"status": "in_progress", "started_at": "2026-02-14T10:00:00Z"},
    "blocked": {"status": "blocked"},
    "cancelled": {"status": "cancelled"},
    "done": {"status": "done", "completed_at": "2026-02-14T10:00:00Z", "truth_last_status": "pass"},
    "scores": {"iteration": 99, "rework_count": 5, "reward_last_score": 100, "reward_last_next_action": "none"},
}


@pytest.mark.parametrize("fields", TYPED.values(), ids=TYPED)
def test_nothing_that_was_typed_before_the_agreement_is_taken_over(shop: Workspace, fields: dict[str, Any]) -> None:
    job = made(shop, sealed=False)
    typed(shop, job.path, **fields)
    seal(shop, job)
    found = shop.job(job.id)
    expected = {name: value for name, value in PROJECTED.items() if name not in AGREED}
    assert {name: found.document.fields.get(name) or PROJECTED[name] for name in expected} == expected
    history = history_of(job.id, shop.ledger.read(job.id).entries, approval_policy(shop))
    assert (history.status, history.iteration, history.started, history.completed) == ("planned", 0, None, None)
    assert start_job(shop, job.id, BOT).started
    assert (shop.job(job.id).status, shop.job(job.id).iteration) == ("in_progress", 0)


def test_what_is_typed_after_the_agreement_is_a_finding_and_what_was_typed_before_is_none(shop: Workspace) -> None:
    job = made(shop, sealed=False)
    typed(shop, job.path, status="in_progress", iteration=1)
    seal(shop, job)
    entries = shop.ledger.read(job.id).entries
    assert mismatches(shop.job(job.id).document.fields, entries) == ()
    typed(shop, job.path, status="in_progress")
    assert [found.field for found in mismatches(shop.job(job.id).document.fields, entries)] == ["status"]


def test_a_cancelled_job_starts_again_only_after_a_decision(shop: Workspace) -> None:
    job = made(shop)
    decide(shop, job, Decision("cancel", "no"), ADA)
    result = start_job(shop, job.id, BOT)
    assert (codes(result), shop.job(job.id).status) == (["cancelled"], "cancelled")
    assert result.next == f'donewhen decide {job.id} --rescope --reason "…"'
    decide(shop, shop.job(job.id), Decision("rescope", "yes after all"), ADA)
    assert start_job(shop, job.id, BOT).started


def test_tests_are_run_once_before_anybody_touches_them(shop: Workspace) -> None:
    (shop.root / "test_a.py").write_text("def test_one(): pass\n")
    job = made(
        shop, commands=["python3 -m pytest -p no:cacheprovider -q test_a.py", "./absent --junit {junit}", "true"]
    )
    lines: list[Requirement] = []
    assert start_job(shop, job.id, BOT, on_progress=lines.append).started
    assert [line.check.argv[0] for line in lines] == ["python3", "./absent"]
    assert kinds(shop, job.id) == ["agreed", "ran", "started"]


def test_a_job_that_is_changed_while_its_tests_run_is_looked_at_again(shop: Workspace) -> None:
    job = made(shop, commands=["./absent --junit {junit}"])

    def meanwhile(_: Requirement) -> None:
        typed(shop, job.path, reward_target=0)

    result = start_job(shop, job.id, BOT, on_progress=meanwhile)
    assert (result.started, codes(result)) == (False, ["agreement_voided"])
    assert "started" not in kinds(shop, job.id)


# Resting


@pytest.mark.parametrize(
    ("said", "kind"), [({"reason": " No key. "}, "block"), ({"question": " Which? "}, "ask")], ids=["block", "ask"]
)
def test_resting_is_recorded_with_its_words(shop: Workspace, said: dict[str, str], kind: str) -> None:
    job = made(shop)
    start_job(shop, job.id, BOT)
    entry = set_job_aside(shop, job.id, BOT, **said)
    assert (entry.type, entry.data["decision"], entry.by) == ("decided", kind, BOT)
    assert entry.data["reason"] == next(iter(said.values())).strip()
    assert shop.job(job.id).status == "blocked"
    assert shop.job(job.id).iteration == 0
    assert errors(shop) == []


@pytest.mark.parametrize("said", [{}, {"reason": " "}, {"question": "\n"}], ids=["nothing", "reason", "question"])
def test_resting_needs_words(shop: Workspace, said: dict[str, str]) -> None:
    job = made(shop)
    with pytest.raises(UsageError) as caught:
        set_job_aside(shop, job.id, BOT, **said)
    assert_sentences(caught.value)
    assert (kinds(shop, job.id), shop.job(job.id).status) == (["agreed"], "planned")


def test_a_job_that_rests_is_taken_up_again_by_a_start(shop: Workspace) -> None:
    job = made(shop)
    start_job(shop, job.id, BOT)
    set_job_aside(shop, job.id, BOT, reason="waiting")
    assert start_job(shop, job.id, BOT).job.status == "in_progress"


def test_an_agent_can_not_undo_a_cancellation_by_blocking(shop: Workspace) -> None:
    job = made(shop)
    decide(shop, job, Decision("cancel", "no"), ADA)
    with pytest.raises(UsageError):
        set_job_aside(shop, job.id, BOT, reason="I want it back")
    assert codes(start_job(shop, job.id, BOT)) == ["cancelled"]


def test_what_is_done_does_not_rest(shop: Workspace) -> None:
    job = made(shop)
    finished(shop, job)
    with pytest.raises(UsageError):
        set_job_aside(shop, job.id, BOT, question="Is it?")
    assert shop.job(job.id).status == "done"


# Looking


def test_a_look_is_shown_in_the_plan_recorded_once_and_never_counted(shop: Workspace) -> None:
    job = made(shop)
    start_job(shop, job.id, BOT)
    before = kinds(shop, job.id)
    seen = [evaluate_and_record(shop, job.id, BOT, collecting=False) for _ in range(3)]
    assert kinds(shop, job.id) == [*before, "evaluated"]
    assert not seen[0].evaluation.passed
    assert field(shop, job.path, "reward_last_score") == seen[0].evaluation.score.total
    assert field(shop, job.path, "truth_last_status") == "fail"
    assert shop.job(job.id).iteration == 0
    put_out(job)
    assert evaluate_and_record(shop, job.id, BOT, collecting=True).evaluation.passed
    assert kinds(shop, job.id) == [*before, "evaluated", "ran", "evaluated"]
    assert (shop.job(job.id).status, shop.job(job.id).iteration) == ("in_progress", 0)
    assert errors(shop) == []


def test_without_collecting_nothing_is_run(shop: Workspace) -> None:
    job = made(shop)
    start_job(shop, job.id, BOT)
    put_out(job)
    seen = evaluate_and_record(shop, job.id, BOT, collecting=False)
    assert {reason.code.value for reason in seen.evaluation.truth.reasons} == {"criterion_not_shown"}
    assert "ran" not in kinds(shop, job.id)


def test_a_look_at_what_is_done_writes_what_it_finds_and_changes_no_status(shop: Workspace) -> None:
    job = made(shop)
    finished(shop, job)
    put_out(job, "no\n")
    found = evaluate_and_record(shop, job.id, BOT, collecting=False).evaluation
    fields = shop.job_at(job.path).document.fields
    assert (found.passed, fields["status"], fields["truth_last_status"]) == (False, "done", "fail")
    assert fields["reward_last_score"] == found.score.total
    before = job.path.read_bytes()
    evaluate_and_record(shop, job.id, BOT, collecting=False)
    assert job.path.read_bytes() == before


def test_a_dozen_looks_do_not_use_up_the_budget(shop: Workspace) -> None:
    job = made(shop)
    start_job(shop, job.id, BOT)
    for number in range(12):
        put_out(job, f"no {number}\n")
        evaluate_and_record(shop, job.id, BOT, collecting=True)
    put_out(job)
    assert complete(shop, job.id, BOT).done
