"""Criteria that a person decides."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.gates.evidence_status import EvidenceStatus, evidence_statuses, sign_off
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

Git = Callable[..., str]
AGENT = Actor("somebody")
PERSON = Approval(Actor("me", "person"))
CI = Approval(Actor("robot", "ci"))


class Place:
    """A repository, and a folder beside it that is no input."""

    def __init__(self, root: Path, git: Git) -> None:
        self.root = root
        self.beside = root.parent / "beside"
        self.beside.mkdir()
        self.workspace: Workspace = create_project(root, "Demo")
        self.git = git
        self.job: Job

    def make(self, *criteria: str, commands: Sequence[str] = ()) -> Job:
        self.job = add_job(self.workspace, "First", criteria=criteria, commands=commands)
        (self.root / "check.sh").write_text("exit 0\n")
        self.git(self.root, "add", "--all")
        return self.job

    def change(self, **fields: Value) -> None:
        self.workspace.write(self.workspace.read(self.job.path), self.job.path, fields)
        self.job = self.workspace.job(self.job.id)

    def all(self) -> list[EvidenceStatus]:
        return list(evidence_statuses(self.workspace, self.job))

    def status(self) -> EvidenceStatus:
        (found,) = self.all()
        return found

    def states(self) -> list[str]:
        return [status.state for status in self.all()]

    def sign(self, approval: Approval, criterion: str = "AC-1") -> bool:
        return sign_off(self.workspace, self.job, criterion, "I looked at it", approval).counts

    def ran(self) -> int:
        return sum(entry.type == "ran" for entry in self.workspace.ledger.read(self.job.id).entries)


@pytest.fixture
def place(repository: Path, git: Git) -> Place:
    return Place(repository, git)


def test_prose_without_any_verification_waits_for_a_person(place: Place) -> None:
    place.make("It works")
    assert place.status().state == "needs_human"
    assert_sentences(place.status().why)
    assert place.sign(PERSON)
    assert (place.status().state, place.status().why) == ("passed", ())


def test_the_word_of_an_agent_is_kept_and_does_not_count(place: Place) -> None:
    place.make("It works\n  check: manual")
    assert not place.sign(Approval(AGENT))
    found = place.status()
    assert found.state == "needs_human"
    assert "somebody (agent)" in found.why[0]
    assert found.entry is not None
    assert place.sign(PERSON)
    assert place.status().state == "passed"


def test_the_word_of_an_agent_does_not_take_back_that_of_a_person(place: Place) -> None:
    place.make("It works\n  check: manual")
    place.sign(PERSON)
    place.sign(Approval(AGENT))
    assert place.status().state == "passed"


def test_a_ci_run_may_sign_off_only_where_a_person_has_agreed_to_it(place: Place) -> None:
    place.make("It works\n  check: manual")
    (place.root / "donewhen.toml").write_text("[approval]\nci = true\n")
    assert not place.sign(CI)
    assert place.status().state == "needs_human"
    for proposal in agreement_proposals(place.workspace, [place.job]):
        agree(place.workspace, proposal, PERSON)
    place.job = place.workspace.job(place.job.id)
    assert place.sign(CI)
    assert place.status().state == "passed"


@pytest.mark.parametrize("name", ["outputs/primary.md", "inputs/data.csv"])
def test_a_sign_off_holds_for_the_outputs_and_declared_inputs_as_they_were(place: Place, name: str) -> None:
    place.make("It works\n  check: manual")
    place.change(inputs=["inputs/data.csv"])
    (place.job.folder / name).write_text("one")
    place.sign(PERSON)
    os.utime(place.job.folder / name, (1, 1))
    (place.root / "check.sh").write_text("exit 1\n")
    assert place.status().state == "passed"
    (place.job.folder / name).write_text("two")
    assert place.status().state == "needs_human"
    assert_sentences(place.status().why)
    (place.job.folder / name).write_text("one")
    assert place.status().state == "passed"


def test_a_sign_off_is_for_the_words_that_were_signed(place: Place) -> None:
    place.make("It works\n  check: manual", "It is fast\n  check: manual")
    place.sign(PERSON)
    assert place.states() == ["passed", "needs_human"]
    text = place.job.path.read_text()
    place.job.path.write_text(text.replace("AC-1: It works", "AC-7: It works"))
    place.job = place.workspace.job(place.job.id)
    assert place.states() == ["passed", "needs_human"]
    place.job.path.write_text(text.replace("AC-1: It works", "AC-1: It works well"))
    place.job = place.workspace.job(place.job.id)
    assert place.states() == ["needs_human", "needs_human"]


def test_another_decision_is_no_sign_off(place: Place) -> None:
    from donewhen.jobs.contract.decisions import Decision, decide

    place.make("It works\n  check: manual")
    decide(place.workspace, place.job, Decision("rescope", "It works"), PERSON)
    decide(place.workspace, place.job, Decision("split", "It works", {"text": "It works"}), PERSON)
    decide(place.workspace, place.job, Decision("sign_off", "It works", {"text": "Another"}), PERSON)
    assert place.status().state == "needs_human"


@pytest.mark.parametrize(
    ("criterion", "check"),
    [
        ("It works\n  check: run sh check.sh", "sh check.sh"),
        ("It is there\n  check: file /x", "file /x"),
        ("It is nice\n  check: judge tone", "judge"),
    ],
)
def test_what_has_a_check_of_its_own_is_not_signed_off(place: Place, criterion: str, check: str) -> None:
    place.make(criterion)
    with pytest.raises(UsageError) as caught:
        place.sign(PERSON)
    assert check in caught.value.message
    assert place.workspace.ledger.read(place.job.id).entries == ()


def test_a_sign_off_needs_a_criterion_that_is_there_and_a_reason(place: Place) -> None:
    place.make("It works")
    with pytest.raises(ConfigError, match="AC-9"):
        place.sign(PERSON, "AC-9")
    with pytest.raises(UsageError, match="reason"):
        sign_off(place.workspace, place.job, "AC-1", "  ", PERSON)
    assert place.status().state == "needs_human"
