"""Sealing what was agreed, and telling afterwards whether it still is."""

from __future__ import annotations

import dataclasses
import itertools
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.contract.agreeing import AgreementProposal, agree, agreement_proposals, seal_tightened_terms
from donewhen.jobs.contract.agreement import Agreement, current_seal
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.contract.terms import TermsChange, compare_terms, job_terms, terms_hash
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.ledger import LedgerError
from donewhen.jobs.ledger.terms_content import plain_terms
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.projection import mismatches, parent_mismatches
from donewhen.test_reports.suite_baseline import SuiteBaseline
from sentences import assert_sentences

ADA = Approval(Actor("ada", "person"))
BOT = Approval(Actor("bot", "agent"))


class Ticking:
    """A clock on which no two moments are the same."""

    def __init__(self) -> None:
        self._seconds = itertools.count()

    def now(self) -> datetime:
        return datetime(2026, 2, 14, tzinfo=UTC) + timedelta(seconds=next(self._seconds))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A project with one job, nothing agreed yet."""
    (tmp_path / ".git").mkdir()
    made = create_project(tmp_path, "Demo", clock=Ticking())
    add_job(made, "Parser", criteria=["The log is parsed.", "It is fast."], commands=["true", "echo done"])
    return made


@pytest.fixture
def agreed(workspace: Workspace) -> Workspace:
    """The same, agreed to by a person."""
    agree_to(workspace)
    return workspace


def the_job(workspace: Workspace) -> Job:
    return workspace.job_at(next(workspace.places()).path)


def shown(workspace: Workspace) -> tuple[AgreementProposal, AgreementProposal]:
    project, job = agreement_proposals(workspace, [the_job(workspace)])
    return project, job


def agree_to(workspace: Workspace, approval: Approval = ADA) -> tuple[Entry, ...]:
    return tuple(agree(workspace, proposal, approval) for proposal in shown(workspace))


def standing(workspace: Workspace) -> Agreement:
    return shown(workspace)[1].agreement


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def forge(workspace: Workspace, how: str, changed: Mapping[str, Any], **more: Any) -> None:
    """An entry that nobody's command wrote: well-formed, in the chain, and by an agent."""
    job = the_job(workspace)
    terms = {**plain_terms(job_terms(job)), **changed}
    data = {"how": how, "terms": terms, "hash": digest_of(terms), **more}
    workspace.ledger.append(job.id, "agreed", data, Actor("bot", "agent"))


def test_nothing_is_agreed_until_a_person_agrees(workspace: Workspace) -> None:
    assert [item.agreement.state for item in shown(workspace)] == ["proposed", "proposed"]
    entries = agree_to(workspace)
    project, job = shown(workspace)
    assert [item.agreement.state for item in (project, job)] == ["agreed", "agreed"]
    assert [item.agreement.changes for item in (project, job)] == [(), ()]
    for proposal, entry in zip((project, job), entries, strict=True):
        assert entry.type == "agreed"
        assert entry.by == Actor("ada", "person")
        assert entry.data["hash"] == terms_hash(proposal.agreement.terms) == proposal.agreement.seal.hash
        assert proposal.agreement.seal.entry == entry
        fields = proposal.plan.document.fields
        assert fields["agreement_status"] == "agreed"
        if proposal is job:
            assert fields["agreed_by"] == "ada (person)"
            assert fields["agreed_at"] == fields["updated_at"] != ""
            assert mismatches(fields, workspace.ledger.read(proposal.chain).entries) == ()
        else:
            assert fields["agreed_at"] == ""
            assert parent_mismatches(fields, workspace.ledger.read(proposal.chain).entries) == ()


def test_agreeing_again_to_the_same_changes_nothing_but_the_record(agreed: Workspace) -> None:
    first = standing(agreed)
    second = agree_to(agreed)[1]
    assert standing(agreed).state == "agreed"
    assert standing(agreed).seal == (first.seal.terms, second)


def test_an_agents_word_is_recorded_and_counts_for_nothing(workspace: Workspace) -> None:
    before = [proposal.plan.path.read_bytes() for proposal in shown(workspace)]
    entries = agree_to(workspace, BOT)
    assert [entry.by.kind for entry in entries] == ["agent", "agent"]
    assert [workspace.ledger.read(proposal.chain).head for proposal in shown(workspace)] == [
        entry.hash for entry in entries
    ]
    assert [proposal.agreement.state for proposal in shown(workspace)] == ["proposed", "proposed"]
    assert [proposal.agreement.seal for proposal in shown(workspace)] == [None, None]
    assert [proposal.plan.path.read_bytes() for proposal in shown(workspace)] == before


def test_an_agents_word_does_not_bring_back_what_was_voided(agreed: Workspace) -> None:
    edit(the_job(agreed).path, "- AC-2: It is fast.\n", "")
    agree_to(agreed, BOT)
    assert standing(agreed).state == "voided"
    agree_to(agreed)
    assert standing(agreed).state == "agreed"


def test_a_remark_is_kept_with_the_agreement_and_in_no_file_that_branches_share(workspace: Workspace) -> None:
    for proposal in shown(workspace):
        agree(workspace, proposal, ADA, notes="as discussed")
    project, job = shown(workspace)
    assert project.plan.document.fields["agreed_notes"] == ""
    assert "agreed_notes" not in job.plan.document.fields
    assert [proposal.agreement.seal.entry.data["notes"] for proposal in (project, job)] == ["as discussed"] * 2


@pytest.mark.parametrize("where", ["project", "job"])
def test_agreed_typed_by_hand_is_unsealed_and_one_agreement_heals_it(workspace: Workspace, where: str) -> None:
    project, job = shown(workspace)
    if where == "project":
        edit(project.plan.path, "agreement_status: proposed", "agreement_status: agreed")
    else:
        edit(job.plan.path, "status: planned", "status: planned\nagreement_status: agreed")
    assert standing(workspace).state == "unsealed"
    assert shown(workspace)[0].agreement.state == ("unsealed" if where == "project" else "proposed")
    agree_to(workspace, BOT)
    assert standing(workspace).state == "unsealed"
    agree_to(workspace)
    assert [proposal.agreement.state for proposal in shown(workspace)] == ["agreed", "agreed"]


def test_a_workspace_of_the_existing_tool_begins_where_nothing_has_happened(workspace: Workspace) -> None:
    project, job = shown(workspace)
    edit(project.plan.path, "agreement_status: proposed", "agreement_status: agreed")
    edit(project.plan.path, 'agreed_at: ""', "agreed_at: 2026-02-01T00:00:00Z")
    edit(job.plan.path, "status: planned", "status: in_progress")
    edit(job.plan.path, "iteration: 0", "iteration: 2")
    agree_to(workspace)
    for proposal in shown(workspace):
        entries = workspace.ledger.read(proposal.chain).entries
        assert mismatches(proposal.plan.document.fields, entries) == ()
    edit(job.plan.path, "iteration: 0", "iteration: 1")
    fields = the_job(workspace).document.fields
    assert [mismatch.field for mismatch in mismatches(fields, workspace.ledger.read(job.chain).entries)] == [
        "iteration"
    ]


@pytest.mark.parametrize("first", ["run", "decision"])
def test_a_job_of_the_existing_tool_is_adopted_by_whatever_is_recorded_first(workspace: Workspace, first: str) -> None:
    job = the_job(workspace)
    edit(job.path, "status: planned", "status: in_progress")
    if first == "run":
        run_as_evidence(workspace, the_job(workspace), ["true"], Actor("bot", "agent"))
    else:
        decide(workspace, the_job(workspace), Decision("rescope", "why not"), ADA)
    entries = workspace.ledger.read(job.id).entries
    assert len(entries) == 1
    assert mismatches(the_job(workspace).document.fields, entries) == ()


def test_a_new_job_needs_an_agreement_of_its_own(agreed: Workspace) -> None:
    new = add_job(agreed, "Second", criteria=["It prints."])
    assert agreement_proposals(agreed, [new])[1].agreement.state in ("proposed", "unsealed")
    assert agreement_proposals(agreed, [new])[0].agreement.state == standing(agreed).state == "agreed"


def test_what_was_added_stays_agreed_and_once_sealed_can_not_be_taken_back(agreed: Workspace) -> None:
    path = the_job(agreed).path
    original = path.read_text()
    edit(path, "- AC-2: It is fast.\n", "- AC-2: It is fast.\n- AC-3: It is small.\n")
    added = standing(agreed)
    assert (added.state, added.changes) == ("agreed", (TermsChange("added", "criteria", None, "It is small."),))
    path.write_text(original)
    assert standing(agreed).state == "agreed"
    edit(path, "- AC-2: It is fast.\n", "- AC-2: It is fast.\n- AC-3: It is small.\n")
    (entry,) = seal_tightened_terms(agreed, the_job(agreed), Actor("bot", "agent"))
    assert entry.data["changes"] == [{"kind": "added", "field": "criteria", "before": None, "after": "It is small."}]
    assert (standing(agreed).state, standing(agreed).changes) == ("agreed", ())
    assert standing(agreed).seal.entry.by.name == "ada"
    path.write_text(original)
    assert standing(agreed).state == "voided"
    assert standing(agreed).voiding == (TermsChange("removed", "criteria", "It is small.", None),)


def test_only_an_agreement_that_holds_and_has_grown_is_sealed_again(workspace: Workspace) -> None:
    by = Actor("bot", "agent")
    assert seal_tightened_terms(workspace, the_job(workspace), by) == ()
    agree_to(workspace)
    assert seal_tightened_terms(workspace, the_job(workspace), by) == ()
    edit(the_job(workspace).path, "reward_target: 80", "reward_target: 85")
    edit(the_job(workspace).path, "max_iterations: 3", "max_iterations: 4")
    assert standing(workspace).state == "voided"
    assert seal_tightened_terms(workspace, the_job(workspace), by) == ()
    edit(the_job(workspace).path, "max_iterations: 4", "max_iterations: 3")
    (workspace.root / "donewhen.toml").write_text("[stop]\nfiles = ['a']\n")
    sealed = seal_tightened_terms(workspace, the_job(workspace), by)
    assert [entry.data["how"] for entry in sealed] == ["tightened", "tightened"]
    assert [proposal.agreement.changes for proposal in shown(workspace)] == [(), ()]
    assert seal_tightened_terms(workspace, the_job(workspace), by) == ()


def test_what_somebody_loosens_at_the_same_moment_is_not_sealed(
    agreed: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = the_job(agreed)
    edit(job.path, "reward_target: 80", "reward_target: 85")
    locked = Workspace.locked

    @contextmanager
    def late(self: Workspace, path: Path) -> Iterator[None]:
        with locked(self, path):
            edit(job.path, "reward_target: 85", "reward_target: 10")
            yield

    head = agreed.ledger.head(job.id)
    monkeypatch.setattr(Workspace, "locked", late)
    assert seal_tightened_terms(agreed, the_job(agreed), Actor("bot", "agent")) == ()
    assert agreed.ledger.head(job.id) == head
    assert standing(agreed).seal.terms.reward_target == 80


def test_the_next_run_seals_what_was_added_to_the_job(agreed: Workspace) -> None:
    path = the_job(agreed).path
    edit(path, "reward_target: 80", "reward_target: 85")
    run_as_evidence(agreed, the_job(agreed), ["true"], Actor("bot", "agent"))
    edit(path, "reward_target: 85", "reward_target: 80")
    assert standing(agreed).voiding == (TermsChange("loosened", "reward_target", "85", "80"),)


def test_the_next_run_seals_what_was_added_to_the_gates_configuration(agreed: Workspace) -> None:
    settings = agreed.root / "donewhen.toml"
    settings.write_text("[stop]\ncommands = ['make lint']\n")
    assert shown(agreed)[0].agreement.state == "agreed"
    run_as_evidence(agreed, the_job(agreed), ["true"], Actor("bot", "agent"))
    settings.unlink()
    assert shown(agreed)[0].agreement.state == "voided"


@pytest.mark.parametrize("how", ["tightened", "decided", "agreed", "", "anything"])
def test_a_forged_entry_that_loosens_is_ignored(agreed: Workspace, how: str) -> None:
    edit(the_job(agreed).path, "reward_target: 80", "reward_target: 8")
    forge(agreed, how, {})
    assert standing(agreed).voiding == (TermsChange("loosened", "reward_target", "80", "8"),)


def test_a_forged_entry_whose_hash_is_another_is_ignored(agreed: Workspace) -> None:
    forge(agreed, "tightened", {"reward_target": 99}, hash=digest_of({}))
    assert standing(agreed).seal.terms.reward_target == 80
    forge(agreed, "tightened", {"reward_target": 99})
    assert standing(agreed).seal.terms.reward_target == 99


@pytest.mark.parametrize(
    "changed",
    [
        {"stakes": "boundless"},
        {"outputs": 5},
        {"outputs": "outputs/primary.md and more"},
        {"exemptions": ["x"]},
        {"reward_target": "81"},
        {"max_iterations": []},
        {"settings": {}},
        {"baselines": {"x": 1}},
        {"criteria": None},
    ],
    ids=lambda value: next(iter(value)),
)
def test_forged_terms_of_another_shape_are_not_written(agreed: Workspace, changed: dict[str, Any]) -> None:
    before = standing(agreed).seal
    with pytest.raises(LedgerError):
        forge(agreed, "tightened", changed)
    assert standing(agreed).seal == before
    assert standing(agreed).state == "agreed"


def test_what_was_changed_while_it_was_shown_is_not_agreed_to(workspace: Workspace) -> None:
    project, job = shown(workspace)
    edit(job.plan.path, "reward_target: 80", "reward_target: 8")
    (workspace.root / "donewhen.toml").write_text("[approval]\nci = true\n")
    for proposal in (project, job):
        with pytest.raises(DonewhenError) as caught:
            agree(workspace, proposal, ADA)
        assert_sentences(caught.value)
        assert caught.value.where == workspace.where(proposal.plan.path)
        assert workspace.ledger.read(proposal.chain).entries == ()
    assert [proposal.agreement.state for proposal in shown(workspace)] == ["proposed", "proposed"]


def test_what_does_not_matter_may_change_while_it_is_shown(workspace: Workspace) -> None:
    project, job = shown(workspace)
    edit(job.plan.path, "- AC-1: The log is parsed.\n", "- [x] AC-1:  The log is parsed.\n")
    edit(job.plan.path, "priority: 2", "priority: 1 # urgent")
    agree(workspace, project, ADA)
    agree(workspace, job, ADA)
    assert standing(workspace).state == "agreed"
    assert "priority: 1 # urgent" in job.plan.path.read_text()


def test_the_exact_line_of_what_changed_is_named(agreed: Workspace) -> None:
    path = the_job(agreed).path
    edit(path, "reward_target: 80", "reward_target: 70")
    edit(path, "  - echo done\n", "")
    edit(path, 'execution_log_exemption_reason: ""', "execution_log_exemption_reason: none")
    edit(path, "- AC-2: It is fast.\n", "- AC-2: It is fast or not.\n- AC-3: It is fast.\n  check: manual\n")
    lines = path.read_text().splitlines()
    job = shown(agreed)[1]
    found = {
        (change.kind, change.field): job.place(change)
        for change in job.agreement.changes
        if change.after != "It is fast or not."
    }

    def line(beginning: str) -> str:
        return f"{job.where}:{next(number for number, text in enumerate(lines, 1) if text.startswith(beginning))}"

    assert found == {
        ("loosened", "reward_target"): line("reward_target:"),
        ("removed", "commands"): line("truth_required_commands:"),
        ("loosened", "exemptions.execution_log_exemption_reason"): line("execution_log_exemption_reason:"),
        ("removed", "criteria"): line("- AC-3:"),
        ("added", "criteria"): line("- AC-3:"),
    }
    assert job.place(TermsChange("removed", "inputs", "a", None)) == job.where


def test_a_criterion_that_begins_like_another_has_its_own_line(agreed: Workspace) -> None:
    path = the_job(agreed).path
    edit(path, "- AC-2: It is fast.\n", "- AC-2: It is fast.\n- AC-3: It is fast. And small.\n")
    job = shown(agreed)[1]
    (added,) = job.agreement.changes
    number = path.read_text().splitlines().index("- AC-3: It is fast. And small.") + 1
    assert job.place(added) == f"{job.where}:{number}"


def test_criteria_that_are_all_gone_are_missed_where_the_body_begins(agreed: Workspace) -> None:
    path = the_job(agreed).path
    edit(path, "- AC-1: The log is parsed.\n- AC-2: It is fast.\n", "")
    job = shown(agreed)[1]
    first = path.read_text().splitlines().index("---", 1) + 2
    assert [job.place(change) for change in job.agreement.voiding] == [f"{job.where}:{first}"] * 2


@pytest.mark.parametrize(
    ("file", "text", "where"),
    [
        ("donewhen.toml", "# mine\n[approval]\nci = true\n", "donewhen.toml:3"),
        ("pyproject.toml", "[tool.donewhen.stop]\nmax_stalled = 1\n", "pyproject.toml:2"),
        ("donewhen.toml", "[stop]\npass_env = []\n[jobs]\npass_env = ['TOKEN']\n", "donewhen.toml:4"),
        (".claude/settings.json", '{"disableAllHooks": true}', ".claude/settings.json"),
        (".claude/settings.local.json", '{"disableAllHooks": true}', ".claude/settings.local.json"),
    ],
    ids=["settings", "pyproject", "two tables", "hooks", "local hooks"],
)
def test_a_change_of_the_gates_configuration_is_shown_in_its_own_file(
    agreed: Workspace, file: str, text: str, where: str
) -> None:
    (agreed.root / ".claude").mkdir()
    (agreed.root / file).write_text(text)
    project = shown(agreed)[0]
    assert [project.place(change) for change in project.agreement.voiding] == [where]


def test_what_is_gone_from_the_gates_configuration_is_missed_in_its_own_file(workspace: Workspace) -> None:
    hooks = workspace.root / ".codex" / "hooks.json"
    hooks.parent.mkdir()
    command = {"type": "command", "command": "donewhen hook stop --runtime codex"}
    hooks.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [command]}]}}))
    settings = workspace.root / "donewhen.toml"
    settings.write_text("[stop]\nfiles = ['a']\ntests = {run = 'pytest', baseline = 'tests.json'}\n")
    SuiteBaseline(frozenset("ab")).save(workspace.root / "tests.json")
    agree_to(workspace)
    for path in (hooks, settings, workspace.root / "tests.json"):
        path.unlink()
    project = shown(workspace)[0]
    places = {change.field.partition(".")[0]: project.place(change) for change in project.agreement.voiding}
    assert places == {"hooks": ".codex/hooks.json", "settings": "donewhen.toml", "baselines": "tests.json"}
    settings.write_text("[stop]\nmax_stalled = 9\n")
    project = shown(workspace)[0]
    assert {project.place(change) for change in project.agreement.voiding if change.field == "settings.stop.files"} == {
        "donewhen.toml"
    }


@pytest.mark.parametrize(
    ("old", "new", "code", "wording"),
    [
        ("AC-2: It is fast.", "AC-2: TBD", "placeholder", "AC-2"),
        ("AC-2: It is fast.", "AC-2:", "placeholder", "AC-2"),
        ("- AC-1: The log is parsed.\n- AC-2: It is fast.\n", "", "criteria_missing", "no acceptance criteria"),
        ("- echo done", "- echo done | cat", "command", "'|'"),
    ],
    ids=["placeholder", "empty", "missing", "command"],
)
def test_what_says_nothing_can_not_be_agreed_to(
    workspace: Workspace, old: str, new: str, code: str, wording: str
) -> None:
    edit(the_job(workspace).path, old, new)
    project, job = shown(workspace)
    assert project.problems == ()
    (problem,) = job.problems
    assert problem.code == code
    assert wording in problem.message
    lines = the_job(workspace).path.read_text().splitlines()
    names = {"placeholder": "- AC-2:", "command": "truth_required_commands:"}
    if code in names:
        line = next(number for number, text in enumerate(lines, 1) if text.startswith(names[code]))
        assert problem.where == f"{job.where}:{line}"


def test_paths_that_lead_out_of_the_project_can_not_be_agreed_to(workspace: Workspace) -> None:
    edit(the_job(workspace).path, "- outputs/primary.md", "- ../../../elsewhere.md")
    assert [str(problem.code) for problem in shown(workspace)[1].problems] == ["path_outside"]


def test_a_done_that_was_typed_before_anybody_agreed_is_taken_back(workspace: Workspace) -> None:
    edit(the_job(workspace).path, "status: planned", "status: done")
    agree_to(workspace)
    job = the_job(workspace)
    assert job.status == "planned"
    assert mismatches(job.document.fields, workspace.ledger.read(job.id).entries) == ()


def test_a_projects_placeholder_is_a_problem_of_the_project(workspace: Workspace) -> None:
    edit(workspace.project_file, "## Acceptance Criteria\n", "## Acceptance Criteria\n\n- <to be filled>\n")
    project, job = shown(workspace)
    assert [problem.code for problem in project.problems] == ["placeholder"]
    assert job.problems == ()


@pytest.mark.parametrize("next_command", ["decision", "run", "agreement"])
def test_a_write_that_was_cut_short_is_finished_by_the_next_command(workspace: Workspace, next_command: str) -> None:
    path = the_job(workspace).path
    before = path.read_bytes()
    agree_to(workspace)
    after = dict(the_job(workspace).document.fields)
    path.write_bytes(before)
    assert standing(workspace).state == "agreed"
    if next_command == "decision":
        decide(workspace, the_job(workspace), Decision("rescope", "why not"), BOT)
    elif next_command == "run":
        run_as_evidence(workspace, the_job(workspace), ["true"], Actor("bot", "agent"))
    else:
        agree_to(workspace, BOT)
    assert the_job(workspace).document.fields == after
    entries = workspace.ledger.read(the_job(workspace).id).entries
    assert mismatches(the_job(workspace).document.fields, entries) == ()


def test_a_seal_needs_terms_of_its_own(workspace: Workspace) -> None:
    def entry(data: Mapping[str, Any]) -> Entry:
        return Entry(1, None, "agreed", "2026-02-14T00:00:00Z", Actor("ada", "person"), data, "h")

    terms = job_terms(the_job(workspace))
    whole = {"how": "agreed", "terms": plain_terms(terms), "hash": terms_hash(terms)}
    assert current_seal("X", [entry(whole)], Policy()) is not None
    assert current_seal("X", [entry({**whole, "hash": ""})], Policy()) is None
    assert current_seal("X", [entry({"how": "agreed"})], Policy()) is None
    assert current_seal("X", [dataclasses.replace(entry(whole), type="ran")], Policy()) is None
    assert current_seal("X", [], Policy()) is None


def test_the_command_shows_what_changed_and_lets_a_person_agree_again(
    agreed: Workspace, as_person: Callable[..., Any], donewhen: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    path = the_job(agreed).path
    edit(path, "reward_target: 80", "reward_target: 70")
    diff = json.loads(donewhen(["contract", "diff", "--json"], agreed.root).stdout)
    assert [finding["code"] for finding in diff["findings"]] == ["voided"]
    played = as_person(["agree"], agreed.root)
    assert played.status == 0
    assert "reward_target: 80 → 70" in played.screen
    assert standing(agreed).state == "agreed"
    assert compare_terms(standing(agreed).seal.terms, job_terms(the_job(agreed))) == ()
