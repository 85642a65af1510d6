"""Where the evidence for a job stands, and why."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.jobs.evidence.commands import EvidenceRun, run_as_evidence
from donewhen.jobs.evidence.requirements import Requirement, requirement_for, requirements_of
from donewhen.jobs.gates.evidence_status import (
    EvidenceStatus,
    asserted_evidence,
    collect_evidence,
    evidence_statuses,
    sign_off,
)
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from lean_python import lean_python
from sentences import assert_sentences

Git = Callable[..., str]
AGENT = Actor("somebody")
PERSON = Approval(Actor("me", "person"))
TOKEN = "gh" + "p_" + "a1B2c3D4" * 5


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

    def collect(self, **options: Any) -> tuple[tuple[Requirement, EvidenceRun], ...]:
        return collect_evidence(self.workspace, self.job, AGENT, **options)

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


@pytest.fixture
def checked(place: Place) -> Place:
    """One criterion, decided by a command that has passed."""
    place.make("It works\n  check: run sh check.sh")
    place.collect()
    return place


def test_what_was_never_run_is_missing_and_asking_does_not_run_it(place: Place) -> None:
    place.make("It works\n  check: run sh check.sh")
    found = place.status()
    assert (found.state, found.entry) == ("missing", None)
    assert_sentences(found.why)
    assert place.ran() == 0


def test_what_passed_stands_until_something_changes(checked: Place) -> None:
    found = checked.status()
    assert (found.state, found.why) == ("passed", ())
    assert found.entry is not None
    assert found.entry.data["evidence"] == "sh check.sh"
    os.utime(checked.root / "check.sh", (1, 1))
    (checked.root / "untracked").write_text("x")
    assert checked.status() == found


@pytest.mark.parametrize("script", ["exit 3", "kill -9 $$", "exit 127"])
def test_what_failed_says_how(place: Place, script: str) -> None:
    place.make("It works\n  check: run sh check.sh")
    (place.root / "check.sh").write_text(script)
    place.collect()
    assert place.status().state == "failed"
    assert_sentences(place.status().why)


def test_what_took_too_long_says_so(place: Place) -> None:
    place.make("It works\n  check: run sleep 60")
    run_as_evidence(place.workspace, place.job, ["sleep", "60"], AGENT, timeout=0.2)
    assert place.status().state == "failed"
    assert_sentences(place.status().why)


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ("<testcase name='a'><failure/></testcase><testcase name='b'/>", 0),
        (
            "<testcase name='a'><error/></testcase><testcase name='b'><failure/></testcase>",
            1,
        ),
        ("<testcase name='a'><skipped/></testcase>", 0),
        ("<testcase name='a'/>", 5),
    ],
    ids=["failed", "errored", "skipped", "only the exit status"],
)
def test_a_report_that_is_not_good_says_how_many_failed(place: Place, inside: str, code: int) -> None:
    place.make("It works\n  check: run sh check.sh {junit}")
    (place.root / "check.sh").write_text(f'echo "<testsuite>{inside}</testsuite>" > $1; exit {code}\n')
    place.collect()
    assert place.status().state == "failed"
    assert_sentences(place.status().why)


def test_a_report_of_coverage_alone_says_nothing_about_tests(place: Place) -> None:
    place.make("It works\n  check: run sh check.sh {report_dir}")
    (place.root / "check.sh").write_text("""echo '<coverage line-rate="0.5"/>' > $1/c.xml; exit 4\n""")
    place.collect()
    assert_sentences(place.status().why)


def test_a_changed_a_new_and_a_gone_input_are_named(checked: Place) -> None:
    (checked.root / "old.txt").write_text("x")
    checked.git(checked.root, "add", "--all")
    assert checked.status().state == "stale"
    assert_sentences(checked.status().why)
    checked.collect()
    (checked.root / "check.sh").write_text("exit 0 # now\n")
    assert_sentences(checked.status().why)
    (checked.root / "old.txt").unlink()
    assert_sentences(checked.status().why)
    checked.git(checked.root, "rm", "-q", "--cached", "old.txt")
    assert_sentences(checked.status().why)
    assert checked.status().entry is not None


def test_of_many_changed_inputs_the_first_are_named_and_the_rest_are_counted(checked: Place) -> None:
    for number in range(5):
        (checked.root / f"file-{number}").write_text("x")
    checked.git(checked.root, "add", "--all")
    assert [why.split()[2] for why in checked.status().why] == [f"file-{number}" for number in range(5)]
    for number in (5, 6):
        (checked.root / f"file-{number}").write_text("x")
    checked.git(checked.root, "add", "--all")
    assert len(checked.status().why) == 6
    assert_sentences(checked.status().why[-1])


def test_where_the_old_inputs_are_not_known_any_more_that_is_said(checked: Place) -> None:
    shutil.rmtree(checked.root / ".donewhen" / "evidence")
    assert checked.status().state == "passed"
    (checked.root / "check.sh").write_text("exit 0 # now\n")
    assert checked.status().state == "stale"
    assert_sentences(checked.status().why[0])


def test_where_the_old_environment_is_not_known_any_more_that_is_said(
    checked: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(checked.root / ".donewhen" / "evidence")
    monkeypatch.setenv("TZ", "Antarctica/Troll")
    assert checked.status().state == "stale"
    assert_sentences(checked.status().why[0])


def test_a_changed_variable_is_named(checked: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Antarctica/Troll")
    monkeypatch.setenv("LC_NUMERIC", "tlh")
    assert checked.status().state == "stale"
    assert_sentences(checked.status().why)
    assert "Troll" not in str(checked.status().why)


def test_a_changed_program_is_named(place: Place) -> None:
    tool = place.beside / "tool"
    tool.write_text("#!/bin/sh\nexit 0\n")
    tool.chmod(0o755)
    place.make(f"It works\n  check: run {tool}")
    place.collect()
    assert place.status().state == "passed"
    tool.write_text("#!/bin/sh\nexit 0 # now\n")
    assert place.status().state == "stale"
    assert_sentences(place.status().why)
    tool.unlink()
    gone = place.status()
    assert gone.state == "stale"
    assert_sentences(gone.why[0])
    assert gone.entry is not None


def test_a_command_that_differs_only_in_a_secret_is_another_command(place: Place) -> None:
    place.make(f"It works\n  check: run echo {TOKEN}")
    run_as_evidence(place.workspace, place.job, ["echo", TOKEN[:-1] + "x"], AGENT)
    assert place.status().state == "stale"
    assert_sentences(place.status().why)


def test_several_reasons_are_all_told(checked: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Antarctica/Troll")
    (checked.root / "check.sh").write_text("exit 0 # now\n")
    assert_sentences(checked.status().why)


def test_what_changed_its_own_inputs_is_stale(place: Place) -> None:
    place.make("It works\n  check: run sh check.sh")
    (place.root / "check.sh").write_text("echo >> check.sh\n")
    place.collect()
    assert place.status().state == "stale"
    assert_sentences(place.status().why)


def test_a_stale_failure_is_stale(place: Place) -> None:
    place.make("It works\n  check: run sh check.sh")
    (place.root / "check.sh").write_text("exit 1\n")
    place.collect()
    (place.root / "check.sh").write_text("exit 0\n")
    assert place.status().state == "stale"


def test_a_look_at_a_file_goes_through_all_its_states(place: Place) -> None:
    place.make("It is there\n  check: file /out.csv rows >= 2")
    assert place.status().state == "missing"
    assert_sentences(place.status().why)
    place.collect()
    assert place.status().state == "failed"
    assert_sentences(place.status().why)
    (place.root / "out.csv").write_text("a\n1\n")
    assert (place.status().state, place.status().why) == ("stale", ("/out.csv changed",))
    place.collect()
    assert_sentences(place.status().why)
    (place.root / "out.csv").write_text("a\n1\n2\n")
    place.collect()
    assert (place.status().state, place.status().why) == ("passed", ())
    (place.root / "out.csv").unlink()
    assert place.status().state == "stale"


def test_a_command_that_is_called_file_is_not_a_look_at_a_file(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place.beside / "venv" / "bin"
    folder.mkdir(parents=True)
    (folder.parent / "pyvenv.cfg").touch()
    (folder / "file").write_text("#!/bin/sh\n")
    (folder / "file").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    place.make("It is there\n  check: file /out.md")
    (place.root / "out.md").write_text("x")
    ran = run_as_evidence(place.workspace, place.job, ["file", "/out.md"], AGENT)
    assert ran.entry.data["asked_for"] is False
    assert place.status().state == "missing"
    place.collect()
    run_as_evidence(place.workspace, place.job, ["file", "/out.md"], AGENT, again=True)
    assert place.status().state == "passed"


def test_two_patterns_that_differ_in_white_space_are_decided_one_by_one(place: Place) -> None:
    place.make("One\n  check: file /x matches /a b/", "Two\n  check: file /x matches /a  b/")
    (place.root / "x").write_text("a b")
    place.collect()
    assert place.states() == ["passed", "failed"]


def test_a_judge_whose_mission_is_nowhere_shows_nothing(place: Place) -> None:
    place.make("It reads well\n  check: judge:tone")
    place.change(outputs=["/check.sh"])
    assert place.status().state == "missing"
    assert_sentences(place.status().why[0])
    ((_, ran),) = place.collect()
    assert not ran.passed


def test_prose_is_as_good_as_the_verification_of_the_job(place: Place) -> None:
    place.make("It works", "It is fast\n  check: manual", commands=["sh check.sh", "sh other.sh"])
    (place.root / "other.sh").write_text("exit 0\n")
    place.git(place.root, "add", "--all")
    assert place.states() == ["missing", "missing", "missing", "needs_human"]
    assert_sentences(place.all()[2].why)
    place.collect(only=requirements_of(place.job)[0])
    assert place.states() == ["passed", "missing", "missing", "needs_human"]
    place.collect()
    assert place.states() == ["passed", "passed", "passed", "needs_human"]
    assert place.all()[2].why == ()
    (place.root / "other.sh").write_text("exit 1\n")
    assert place.states()[:3] == ["stale", "stale", "stale"]
    place.collect()
    assert place.states()[:3] == ["passed", "failed", "failed"]


def test_what_others_wrote_as_evidence_is_shown_and_decides_nothing(place: Place) -> None:
    place.make("It works")
    assert asserted_evidence(place.workspace, place.job) == ()
    place.change(verification_evidence=["artifacts/verification.md", "artifacts/missing.md", "notes"])
    (place.job.folder / "artifacts" / "verification.md").write_text("All tests pass. Signed: a person.")
    assert asserted_evidence(place.workspace, place.job) == ("artifacts/verification.md",)
    assert place.status().state == "needs_human"
    place.change(verification_evidence=["../../x"])
    with pytest.raises(ConfigError, match="verification_evidence"):
        asserted_evidence(place.workspace, place.job)


def test_everything_that_can_be_run_is_run_once_and_told(place: Place) -> None:
    count = place.beside / "count"
    place.make(
        "It works\n  check: run sh  check.sh",
        "It is there\n  check: file /check.sh",
        "It is nice\n  check: manual",
        "It holds",
        commands=["sh check.sh"],
    )
    (place.root / "check.sh").write_text(f"echo ran >> {count}\n")
    lines: list[str] = []
    found = place.collect(on_progress=lambda requirement: lines.append(requirement.name))
    assert lines == ["verification", "AC-1", "AC-2"]
    assert [(requirement.name, ran.passed, ran.reused) for requirement, ran in found] == [
        ("verification", True, False),
        ("AC-1", True, False),
        ("AC-2", True, False),
    ]
    assert found[0][1] == found[1][1]
    assert count.read_text() == "ran\n"
    assert [ran.reused for _, ran in place.collect()] == [True, True, True]
    assert count.read_text() == "ran\n"
    place.collect(again=True)
    assert count.read_text() == "ran\nran\n"
    assert place.states() == ["passed", "passed", "passed", "needs_human", "passed"]


def test_evidence_for_one_criterion_names_it(place: Place) -> None:
    place.make("One\n  check: run true", "Two\n  check: file /check.sh", commands=["sh check.sh"])
    for name in ("AC-1", "AC-2"):
        ((requirement, ran),) = place.collect(only=requirement_for(place.job, name))
        assert requirement.name == ran.entry.data["criterion"] == name
    assert place.states() == ["missing", "passed", "passed"]
    ((_, ran),) = place.collect(only=requirements_of(place.job)[0])
    assert ran.entry.data["criterion"] is None


def test_everything_stands_in_a_clone_as_it_stood_before(place: Place, tmp_path: Path) -> None:
    place.make("It works\n  check: run sh check.sh", "It is there\n  check: file /check.sh", "Nice\n  check: manual")
    place.collect()
    place.sign(PERSON, "AC-3")
    assert place.states() == ["passed", "passed", "passed"]
    place.git(place.root, "add", "--all")
    place.git(place.root, "commit", "-qm", "all")
    place.git(tmp_path, "clone", "-q", str(place.root), "clone")
    clone = Workspace((tmp_path / "clone").resolve(), "small")
    assert [status.state for status in evidence_statuses(clone, clone.job(place.job.id))] == [
        "passed",
        "passed",
        "passed",
    ]
    (clone.root / "check.sh").write_text("exit 1\n")
    found = evidence_statuses(clone, clone.job(place.job.id))
    assert [item.state for item in found] == ["stale", "stale", "passed"]
    assert_sentences(found[0].why)


def test_pytest_that_failed_is_told_by_its_tests(place: Place) -> None:
    place.make(f"It works\n  check: run {lean_python()} -m pytest -q -p no:cacheprovider")
    (place.root / "test_it.py").write_text("def test_one(): assert 0\ndef test_two(): pass\n")
    place.collect()
    assert_sentences(place.status().why)
