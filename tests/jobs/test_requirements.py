"""What a job has to show."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.evidence.requirements import (
    VERIFICATION,
    is_required_evidence,
    requirement_for,
    requirements_of,
    runnable_requirements,
)
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import find_workspace
from sentences import assert_sentences


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create_project(tmp_path, "Demo")
    return tmp_path


def job_with(root: Path, criteria: Sequence[str] = (), commands: Sequence[str] = ()) -> Job:
    return add_job(find_workspace(root), "First", criteria=criteria, commands=commands)


def test_commands_come_first_and_criteria_follow_in_their_order(root: Path) -> None:
    job = job_with(root, ["It is fast", "It is small\n  check: file x"], ["make  test", "make lint"])
    assert [(requirement.name, requirement.text, requirement.check.kind) for requirement in requirements_of(job)] == [
        (VERIFICATION, "make  test", "run"),
        (VERIFICATION, "make lint", "run"),
        ("AC-1", "It is fast", "verification"),
        ("AC-2", "It is small", "file"),
    ]


@pytest.mark.parametrize(
    ("check", "kind", "evidence"),
    [
        ("run  make   test", "run", "make test"),
        ("run python -c 'print(1)'", "run", "python -c 'print(1)'"),
        ('run python -c "print(1)"', "run", "python -c 'print(1)'"),
        ("file  out.csv  rows >= 3", "file", "file out.csv rows >= 3"),
        ("file out.md matches /a b/", "file", "file out.md matches /a b/"),
        ("file out.json schema s.json", "file", "file out.json schema s.json"),
        ("judge tone", "judge", "judge It is nice"),
        ("manual", "manual", "manual It is nice"),
    ],
)
def test_evidence_is_filed_under_what_decides_however_it_is_written(
    root: Path, check: str, kind: str, evidence: str
) -> None:
    requirement = requirement_for(job_with(root, [f"It is nice\n  check: {check}"]), "AC-1")
    assert (requirement.name, requirement.text, requirement.check.kind) == ("AC-1", "It is nice", kind)
    assert requirement.evidence == evidence


def test_two_patterns_that_differ_in_white_space_are_two_questions(root: Path) -> None:
    job = job_with(root, ["One\n  check: file x matches /a b/", "Two\n  check: file x matches /a  b/"])
    one, two = requirements_of(job)
    assert one.evidence != two.evidence


@pytest.mark.parametrize("check", ["file outputs/primary.md", "manual"], ids=["a look at a file", "a sign-off"])
def test_no_command_is_filed_under_what_is_not_one(root: Path, check: str) -> None:
    job = job_with(root, [f"works\n  check: {check}"])
    command = check if check != "manual" else "manual works"
    assert not is_required_evidence(job, command)


def test_prose_is_covered_by_the_verification_or_else_by_a_person(root: Path) -> None:
    assert requirement_for(job_with(root, ["It is nice"]), "AC-1").check.kind == "manual"
    with_commands = job_with(root, ["It is nice", "It is good\n  check: manual"], ["true"])
    assert requirement_for(with_commands, "AC-1").check.kind == "verification"
    assert requirement_for(with_commands, "AC-2").check.kind == "manual"


def test_a_job_without_criteria_and_commands_needs_nothing(root: Path) -> None:
    job = job_with(root)
    job.path.write_text(job.path.read_text().replace("- AC-1:", "AC-1"))
    assert requirements_of(find_workspace(root).job(job.id)) == ()


def test_a_criterion_that_is_not_there_is_named_with_those_that_are(root: Path) -> None:
    job = job_with(root, ["It is nice", "It is good"])
    with pytest.raises(ConfigError) as caught:
        requirement_for(job, "AC-3")
    assert "'AC-3'" in caught.value.message
    assert "AC-1, AC-2" in caught.value.message
    assert str(job.path) == caught.value.where


def test_of_a_job_without_criteria_it_is_said_that_there_are_none(root: Path) -> None:
    job = job_with(root)
    job.path.write_text(job.path.read_text().replace("- AC-1:", "AC-1"))
    with pytest.raises(ConfigError) as caught:
        requirement_for(find_workspace(root).job(job.id), "AC-1")
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    ("command", "sign"), [("pytest || true", "|"), ("make test; true", ";"), ("echo 'open", "open")]
)
def test_a_command_that_needs_a_shell_is_a_mistake_in_the_plan_and_has_a_line(
    root: Path, command: str, sign: str
) -> None:
    with pytest.raises(UsageError):
        job_with(root, ["It is nice"], [command])
    job = job_with(root, ["It is nice"], ["make test"])
    job.path.write_text(job.path.read_text().replace("make test", command))
    job = find_workspace(root).job(job.id)
    with pytest.raises(ConfigError) as caught:
        requirements_of(job)
    assert sign in caught.value.message
    line = job.document.line_of("truth_required_commands")
    assert line is not None
    assert caught.value.where == f"{job.path}:{line}"


def test_evidence_is_asked_for_when_some_need_asks_for_it(root: Path) -> None:
    job = job_with(root, ["It is nice\n  check: run make nice", "It is there\n  check: file x"], ["make  test"])
    assert is_required_evidence(job, "make test")
    assert is_required_evidence(job, "make nice")
    assert not is_required_evidence(job, "make other")
    assert not is_required_evidence(job, "make")


# What can be run, for a program as for `donewhen run`

Run = Callable[..., subprocess.CompletedProcess[str]]


def messages(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [finding["message"] for finding in json.loads(done.stdout)["findings"]]


@pytest.mark.parametrize("name", [None, "AC-1"])
def test_zero_checks_is_refused_as_the_verb_refuses_it(root: Path, donewhen: Run, name: str | None) -> None:
    job = job_with(root, ["It is nice"])
    only = None if name is None else requirement_for(job, name)
    with pytest.raises(UsageError) as caught:
        runnable_requirements(job, only, by_hand="look at it")
    assert caught.value.next_step == "look at it"
    done = donewhen(["run", job.id, "--json", *(["--criterion", name] if name else [])], root)
    assert (done.returncode, messages(done)) == (caught.value.exit_code, [caught.value.message])


def test_a_criterion_that_the_verification_decides_has_nothing_of_its_own_to_run(root: Path) -> None:
    job = job_with(root, ["It is nice"], ["make test"])
    with pytest.raises(UsageError) as caught:
        runnable_requirements(job, requirement_for(job, "AC-1"), by_hand="look at it")
    assert caught.value.next_step == f"donewhen run {job.id}"
    assert [requirement.name for requirement in runnable_requirements(job, by_hand="")] == [VERIFICATION]


def test_another_command_is_no_evidence_for_a_criterion_that_has_a_check(root: Path, donewhen: Run) -> None:
    job = job_with(root, ["It runs\n  check: run make test"])
    with pytest.raises(UsageError) as caught:
        run_as_evidence(find_workspace(root), job, ["true"], Actor("ada"), criterion="AC-1")
    done = donewhen(["run", job.id, "--criterion", "AC-1", "--json", "--", "true"], root)
    assert (done.returncode, messages(done)) == (caught.value.exit_code, [caught.value.message])
