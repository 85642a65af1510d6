"""What a person settles about a job, what it writes and seals, and that it settles nothing else."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import UsageError
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import Agreement
from donewhen.jobs.contract.decisions import Decision, DecisionKind, decide
from donewhen.jobs.contract.terms import TermsChange, job_terms
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.gates.evidence_status import evidence_statuses, sign_off
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.ledger import Ledger
from donewhen.jobs.ledger.terms_content import plain_terms
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import BUDGETS, STAKES, TARGETS, Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.projection import mismatches
from sentences import assert_sentences

ADA = Approval(Actor("ada", "person"))
BOT = Approval(Actor("bot", "agent"))
CI = Approval(Actor("ci", "ci"))
KEY = Approval(Actor("k", "key"), "ed25519:k", lambda subject: "signed")
WHY = "The API changed under us."


class Ticking:
    """A clock on which no two moments are the same."""

    def __init__(self) -> None:
        self._seconds = itertools.count()

    def now(self) -> datetime:
        return datetime(2026, 2, 14, tzinfo=UTC) + timedelta(seconds=next(self._seconds))


class KilledError(Exception):
    """The process ended here."""


@pytest.fixture
def unsealed(tmp_path: Path) -> Workspace:
    """A project with one job, nothing agreed yet."""
    (tmp_path / ".git").mkdir()
    made = create_project(tmp_path, "Demo", clock=Ticking())
    add_job(made, "Parser", criteria=["The log is parsed."], outputs=["a.md", "b.md"])
    return made


@pytest.fixture
def workspace(unsealed: Workspace) -> Workspace:
    """The same, agreed to by a person."""
    for proposal in agreement_proposals(unsealed, [the_job(unsealed)]):
        agree(unsealed, proposal, ADA)
    return unsealed


def the_job(workspace: Workspace) -> Job:
    return workspace.job_at(next(workspace.places()).path)


def standing(workspace: Workspace) -> Agreement:
    return agreement_proposals(workspace, [the_job(workspace)])[1].agreement


def edit(workspace: Workspace, old: str, new: str) -> None:
    path = the_job(workspace).path
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def tampered(workspace: Workspace) -> list[str]:
    job = the_job(workspace)
    return [mismatch.field for mismatch in mismatches(job.document.fields, workspace.ledger.read(job.id).entries)]


EVERY_KIND: list[tuple[DecisionKind, Any, dict[str, Any]]] = [
    ("raise_budget", 6, {"max_iterations": 6}),
    ("target", 60, {"reward_target": 60}),
    ("target", 99, {"reward_target": 99}),
    ("stakes", "low", {"stakes": "low", "reward_target": 70, "max_iterations": 2}),
    ("stakes", "high", {"stakes": "high", "reward_target": 90, "max_iterations": 5}),
    ("cancel", None, {"status": "cancelled"}),
    ("rescope", None, {}),
    ("split", None, {}),
    ("sign_off", {"criterion": "AC-1"}, {}),
]
every_kind = pytest.mark.parametrize(
    ("kind", "value", "written"), EVERY_KIND, ids=[f"{kind} {value}" for kind, value, _ in EVERY_KIND]
)


@every_kind
def test_a_decision_is_recorded_written_and_sealed(
    workspace: Workspace, kind: DecisionKind, value: Any, written: dict[str, Any]
) -> None:
    before, sealed = dict(the_job(workspace).document.fields), standing(workspace).seal
    decided = decide(workspace, the_job(workspace), Decision(kind, f"  {WHY}\n", value), ADA)
    assert decided.counts
    assert dict(decided.writes) == written
    assert (decided.entry.type, decided.entry.by) == ("decided", Actor("ada", "person"))
    assert decided.entry.data["decision"] == kind
    assert decided.entry.data["reason"] == WHY
    assert decided.entry.data.get("value") == value
    assert decided.entry in workspace.ledger.read(the_job(workspace).id).entries
    after = dict(the_job(workspace).document.fields)
    assert after.pop("updated_at") != before.pop("updated_at")
    assert after == before | written
    now = standing(workspace)
    assert (now.state, now.changes) == ("agreed", ())
    terms = {name: said for name, said in written.items() if name != "status"}
    assert now.seal is not None
    assert sealed is not None
    assert plain_terms(now.seal.terms) == {**plain_terms(sealed.terms), **terms}
    assert now.seal.entry == sealed.entry
    assert tampered(workspace) == []


@every_kind
@pytest.mark.parametrize("who", [BOT, CI, KEY], ids=["agent", "ci", "key"])
def test_the_word_of_whoever_may_not_decide_is_only_recorded(
    workspace: Workspace, who: Approval, kind: DecisionKind, value: Any, written: dict[str, Any]
) -> None:
    job, seal = the_job(workspace), standing(workspace).seal
    content = job.path.read_bytes()
    decided = decide(workspace, job, Decision(kind, WHY, value), who)
    assert not decided.counts
    assert dict(decided.writes) == {}
    assert workspace.ledger.head(job.id) == decided.entry.hash
    assert decided.entry.by == who.by
    assert job.path.read_bytes() == content
    assert standing(workspace).seal == seal
    assert tampered(workspace) == []


def test_ci_decides_where_a_person_has_agreed_that_it_may(workspace: Workspace) -> None:
    (workspace.root / "donewhen.toml").write_text("[approval]\nci = true\n")
    assert not decide(workspace, the_job(workspace), Decision("raise_budget", WHY, 6), CI).counts
    agree(workspace, agreement_proposals(workspace, [])[0], ADA)
    assert the_job(workspace).max_iterations == 3
    assert decide(workspace, the_job(workspace), Decision("raise_budget", WHY, 6), CI).counts
    assert (the_job(workspace).max_iterations, standing(workspace).state) == (6, "agreed")


@pytest.mark.parametrize("reason", ["", " \n\t"], ids=["nothing", "white space"])
def test_a_decision_needs_a_reason(workspace: Workspace, reason: str) -> None:
    head = workspace.ledger.head(the_job(workspace).id)
    with pytest.raises(UsageError) as caught:
        decide(workspace, the_job(workspace), Decision("cancel", reason), ADA)
    assert_sentences(caught.value)
    assert workspace.ledger.head(the_job(workspace).id) == head
    assert the_job(workspace).status == "planned"


@pytest.mark.parametrize(
    ("typed", "number", "raises"), [(0, 2, False), (0, 3, False), (0, 4, True), (5, 3, False), (5, 4, True)]
)
def test_a_budget_is_raised_above_what_was_allowed_whatever_was_typed_before_the_agreement(
    unsealed: Workspace, typed: int, number: int, raises: bool
) -> None:
    edit(unsealed, "iteration: 0", f"iteration: {typed}")
    for proposal in agreement_proposals(unsealed, [the_job(unsealed)]):
        agree(unsealed, proposal, ADA)
    decision = Decision("raise_budget", WHY, number)
    if raises:
        assert decide(unsealed, the_job(unsealed), decision, ADA).writes == {"max_iterations": number}
    else:
        head = unsealed.ledger.head(the_job(unsealed).id)
        with pytest.raises(UsageError) as caught:
            decide(unsealed, the_job(unsealed), decision, ADA)
        assert str(number) in str(caught.value)
        assert_sentences(caught.value)
        assert unsealed.ledger.head(the_job(unsealed).id) == head
    assert standing(unsealed).state == "agreed"


def test_a_budget_that_was_typed_in_does_not_stand_in_the_way_of_a_decision(workspace: Workspace) -> None:
    edit(workspace, "max_iterations: 3", "max_iterations: 99")
    decide(workspace, the_job(workspace), Decision("raise_budget", WHY, 6), ADA)
    assert the_job(workspace).max_iterations == 6
    assert (standing(workspace).state, standing(workspace).changes) == ("agreed", ())


@pytest.mark.parametrize("before", STAKES)
@pytest.mark.parametrize("after", STAKES)
def test_target_and_budget_follow_the_stakes_where_they_were_the_defaults(
    unsealed: Workspace, before: Any, after: Any
) -> None:
    edit(unsealed, "stakes: normal", f"stakes: {before}")
    edit(unsealed, "reward_target: 80", f"reward_target: {TARGETS[before]}")
    edit(unsealed, "max_iterations: 3", f"max_iterations: {BUDGETS[before]}")
    decide(unsealed, the_job(unsealed), Decision("stakes", WHY, after), ADA)
    job = the_job(unsealed)
    assert (job.stakes, job.reward_target, job.max_iterations) == (after, TARGETS[after], BUDGETS[after])


@pytest.mark.parametrize(
    ("field", "kept"), [("reward_target: 80", "reward_target"), ("max_iterations: 3", "max_iterations")]
)
def test_what_was_chosen_by_hand_stays_when_the_stakes_change(unsealed: Workspace, field: str, kept: str) -> None:
    edit(unsealed, field, f"{kept}: 77")
    decided = decide(unsealed, the_job(unsealed), Decision("stakes", WHY, "critical"), ADA)
    followed = {"reward_target": 95, "max_iterations": 7}
    del followed[kept]
    assert dict(decided.writes) == {"stakes": "critical", **followed}
    assert the_job(unsealed).document.fields[kept] == 77


@pytest.mark.parametrize(
    ("kind", "value"), [("raise_budget", 6), ("target", 70), ("stakes", "low"), ("rescope", None), ("cancel", None)]
)
def test_a_decision_does_not_heal_what_was_loosened_meanwhile(
    workspace: Workspace, kind: DecisionKind, value: Any
) -> None:
    edit(workspace, "truth_mode: strict", "truth_mode: off")
    edit(workspace, "  - b.md\n", "")
    assert decide(workspace, the_job(workspace), Decision(kind, WHY, value), ADA).counts
    assert standing(workspace).state == "voided"
    assert standing(workspace).voiding == (
        TermsChange("removed", "outputs", "b.md", None),
        TermsChange("loosened", "truth_mode", "strict", "off"),
    )


def test_a_decision_about_one_field_does_not_heal_another_that_a_decision_could(workspace: Workspace) -> None:
    edit(workspace, "reward_target: 80", "reward_target: 10")
    decide(workspace, the_job(workspace), Decision("raise_budget", WHY, 6), ADA)
    assert standing(workspace).voiding == (TermsChange("loosened", "reward_target", "80", "10"),)
    decide(workspace, the_job(workspace), Decision("target", WHY, 75), ADA)
    assert (the_job(workspace).reward_target, standing(workspace).state) == (75, "agreed")


def test_what_was_decided_may_be_tightened_by_hand_and_not_loosened_further(workspace: Workspace) -> None:
    decide(workspace, the_job(workspace), Decision("raise_budget", WHY, 6), ADA)
    edit(workspace, "max_iterations: 6", "max_iterations: 7")
    assert standing(workspace).state == "voided"
    edit(workspace, "max_iterations: 7", "max_iterations: 3")
    run_as_evidence(workspace, the_job(workspace), ["true"], BOT.by)
    assert (the_job(workspace).max_iterations, standing(workspace).state) == (3, "agreed")


def forge(workspace: Workspace, decision: str, changed: dict[str, Any]) -> None:
    """An entry by an agent that refers to a decision, and to terms of the agent's own making."""
    job = the_job(workspace)
    terms = {**plain_terms(job_terms(job)), **changed}
    data = {"how": "decided", "decision": decision, "terms": terms, "hash": digest_of(terms)}
    workspace.ledger.append(job.id, "agreed", data, BOT.by)


@pytest.mark.parametrize(
    ("decision", "approval", "changed"),
    [
        (None, ADA, {"max_iterations": 6}),
        (Decision("raise_budget", "more", 6), BOT, {"max_iterations": 6}),
        (Decision("raise_budget", "more", 6), ADA, {"reward_target": 70}),
        (Decision("raise_budget", "more", 6), ADA, {"max_iterations": 6, "outputs": []}),
        (Decision("raise_budget", "more", 6), ADA, {"max_iterations": 99}),
        (Decision("target", "less", 75), ADA, {"reward_target": 0}),
        (Decision("stakes", "less", "low"), ADA, {"stakes": "low", "reward_target": 0, "max_iterations": 99}),
        (Decision("rescope", "other"), ADA, {"outputs": []}),
        (Decision("cancel", "no"), ADA, {"max_iterations": 99}),
    ],
    ids=["no decision", "an agents", "other field", "one field more", "more iterations", "lower target",
         "more than the stakes", "rescope", "cancel"],
)  # fmt: skip
def test_a_decision_lends_itself_to_nothing_but_what_it_says(
    workspace: Workspace, decision: Decision | None, approval: Approval, changed: dict[str, Any]
) -> None:
    decided = "" if decision is None else decide(workspace, the_job(workspace), decision, approval).entry.hash
    before = standing(workspace).seal.terms
    forge(workspace, decided, changed)
    assert standing(workspace).seal.terms == before


def test_a_decision_is_not_used_again_after_a_person_agreed_to_less(workspace: Workspace) -> None:
    decided = decide(workspace, the_job(workspace), Decision("raise_budget", "more", 6), ADA).entry.hash
    edit(workspace, "max_iterations: 6", "max_iterations: 3")
    agree(workspace, agreement_proposals(workspace, [the_job(workspace)])[1], ADA)
    forge(workspace, decided, {"max_iterations": 6})
    assert standing(workspace).seal.terms.max_iterations == 3


def test_a_decision_about_an_unsealed_job_is_written_and_seals_nothing(unsealed: Workspace) -> None:
    decided = decide(unsealed, the_job(unsealed), Decision("target", WHY, 60), ADA)
    assert decided.counts
    assert the_job(unsealed).reward_target == 60
    assert standing(unsealed).seal is None
    assert tampered(unsealed) == []


def test_cancelling_is_known_to_the_ledger_and_typing_it_is_not(workspace: Workspace) -> None:
    edit(workspace, "status: planned", "status: cancelled")
    assert tampered(workspace) == ["status"]
    edit(workspace, "status: cancelled", "status: planned")
    decide(workspace, the_job(workspace), Decision("cancel", WHY), ADA)
    assert (the_job(workspace).status, tampered(workspace)) == ("cancelled", [])
    decide(workspace, the_job(workspace), Decision("rescope", WHY), ADA)
    assert (the_job(workspace).status, tampered(workspace)) == ("planned", [])


def next_command(workspace: Workspace, name: str) -> None:
    if name == "decision":
        decide(workspace, the_job(workspace), Decision("rescope", WHY), BOT)
    elif name == "run":
        run_as_evidence(workspace, the_job(workspace), ["true"], BOT.by)
    else:
        agree(workspace, agreement_proposals(workspace, [the_job(workspace)])[1], BOT)


SETTLED = {"raise_budget": ("max_iterations", 6), "stakes": ("stakes", "low"), "cancel": ("status", "cancelled")}


@pytest.mark.parametrize("following", ["decision", "run", "agreement"])
@pytest.mark.parametrize("kind", SETTLED)
def test_a_decision_that_did_not_reach_the_file_is_finished_by_the_next_command(
    workspace: Workspace, kind: DecisionKind, following: str
) -> None:
    name, value = SETTLED[kind]
    path = the_job(workspace).path
    before = path.read_bytes()
    decide(workspace, the_job(workspace), Decision(kind, WHY, None if kind == "cancel" else value), ADA)
    path.write_bytes(before)
    assert tampered(workspace) == []
    next_command(workspace, following)
    assert the_job(workspace).document.fields[name] == value
    assert standing(workspace).state == "agreed"
    assert tampered(workspace) == []


@pytest.mark.parametrize("kind", SETTLED)
def test_a_decision_that_was_cut_off_after_its_first_entry_holds_whole(
    workspace: Workspace, kind: DecisionKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, value = SETTLED[kind]
    append = Ledger.append

    def killed(*arguments: Any) -> Any:
        append(*arguments)
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "append", killed)
        with pytest.raises(KilledError):
            decide(workspace, the_job(workspace), Decision(kind, WHY, None if kind == "cancel" else value), ADA)
    next_command(workspace, "decision")
    assert the_job(workspace).document.fields[name] == value
    assert standing(workspace).state == "agreed"


def test_signing_off_is_a_decision_about_the_outputs_as_they_are(workspace: Workspace) -> None:
    job = the_job(workspace)
    (job.folder / "a.md").write_text("one")
    assert [status.state for status in evidence_statuses(workspace, job)] == ["needs_human"]
    sign_off(workspace, job, "AC-1", WHY, BOT)
    assert [status.state for status in evidence_statuses(workspace, job)] == ["needs_human"]
    decided = sign_off(workspace, job, "AC-1", WHY, ADA)
    assert decided.counts
    assert decided.entry.data["value"]["text"] == "The log is parsed."
    assert [status.state for status in evidence_statuses(workspace, job)] == ["passed"]
    (job.folder / "a.md").write_text("two")
    assert [status.state for status in evidence_statuses(workspace, job)] == ["needs_human"]


def test_at_the_command_line_a_person_decides_and_an_agent_proposes(
    workspace: Workspace, as_person: Callable[..., Any], donewhen: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    job = the_job(workspace).id
    words = ["decide", job, "--raise-budget", "6", "--reason", WHY]
    said = donewhen([*words, "--json"], workspace.root)
    assert said.returncode == 1
    answer = json.loads(said.stdout)
    assert [finding["code"] for finding in answer["findings"]] == ["approver"]
    assert the_job(workspace).max_iterations == 3
    assert donewhen([*words, "--cancel"], workspace.root).returncode == 2
    assert as_person(words, workspace.root, answer="another").status == 1
    assert the_job(workspace).max_iterations == 3
    assert as_person(words, workspace.root).status == 0
    assert (the_job(workspace).max_iterations, standing(workspace).state) == (6, "agreed")
