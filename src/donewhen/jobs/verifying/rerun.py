"""Run one job's contract again in a folder with the branch's work, and collect the facts for the gates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

from donewhen.foundation.canonical import digest
from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.jobs.board.validity import DependencyFact
from donewhen.jobs.contract.inputs import MISSING, result_manifest
from donewhen.jobs.evidence.commands import (
    append_run,
    evidence_store,
    newest_run,
    record_file_check,
    reports_tests,
    run_as_evidence,
    run_conditions,
)
from donewhen.jobs.evidence.records import UnusableRecord
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement, requirements_of
from donewhen.jobs.evidence.two_runs import tests_of
from donewhen.jobs.gates.evidence_status import EvidenceStatus, collect_evidence, evidence_statuses
from donewhen.jobs.gates.facts import Facts, chain_problems, facts_of
from donewhen.jobs.gates.sign_offs import decisions_by_key
from donewhen.jobs.gates.suites import SuiteFact, compare_suites, test_outcomes
from donewhen.jobs.ledger.approval import Approval, Policy, is_approval, unproved_actor
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import CommandRun, SignedOff
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import operation, writing
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.rooms import Room
from donewhen.jobs.verifying.work_outputs import in_repository


class SignedEntries(NamedTuple):
    """Entries on the branch, and the policy of the base, whose keys can prove some of them."""

    entries: tuple[Entry, ...]
    policy: Policy


def rerun_job(
    base: Base,
    room: Room,
    job: Job,
    signed: SignedEntries,
    on_progress: Callable[[Requirement], None],
) -> Facts:
    """Evaluate every requirement of a job again, and collect the facts. Existing evidence is not used."""
    with operation(room.workspace, views=False):
        return _rerun_job(base, room, job, signed, on_progress)


def _rerun_job(
    base: Base,
    room: Room,
    job: Job,
    signed: SignedEntries,
    on_progress: Callable[[Requirement], None],
) -> Facts:
    by = unproved_actor()
    tree = room.workspace
    entries = tree.ledger.read(job.id).entries
    if not any(entry.type == "started" for entry in entries):
        with writing(tree, job.path, job.id) as plan:
            plan.append("started", {"commit": base.commit, "outputs": _base_outputs(base, tree, job)}, Approval(by))
    _run_requirements(room, job, on_progress)
    facts = facts_of(tree, tree.job_at(job.path))
    return facts._replace(
        evidence=tuple(_apply_sign_off(tree, job, status, signed) for status in facts.evidence),
        suites=(),
        upstream_changed=(),
        harness_changed=(),
        chain_breaks=tuple(chain_problems(tree.ledger.read(job.id))),
    )


def rerun_criteria(
    room: Room, job: Job, signed: SignedEntries, on_progress: Callable[[Requirement], None]
) -> tuple[EvidenceStatus, ...]:
    """Evaluate every criterion of the project, which is given as a job, again."""
    tree = room.workspace
    with operation(tree, views=False):
        _run_requirements(room, job, on_progress)
        return tuple(_apply_sign_off(tree, job, status, signed) for status in evidence_statuses(tree, job))


def _run_requirements(room: Room, job: Job, on_progress: Callable[[Requirement], None]) -> None:
    requirements = requirements_of(job)
    for requirement in requirements:
        if requirement.check.kind in ("run", "file"):
            on_progress(requirement)
            with suppress(CommandNotRunnableError):
                _run_requirement(room, job, requirement)
    for requirement in requirements:
        if requirement.check.kind == "judge":
            on_progress(requirement)
            # If the work already fails elsewhere, no judge is needed; the criterion stays without evidence.
            with suppress(UsageError):
                collect_evidence(room.workspace, job, unproved_actor(), again=True, only=requirement)


def run_tests(room: Room, job: Job, on_progress: Callable[[Requirement], None]) -> None:
    """Run only a job's tests, to learn which exist."""
    for requirement in requirements_of(job):
        if requirement.check.kind == "run" and reports_tests(requirement.check.argv):
            on_progress(requirement)
            with suppress(CommandNotRunnableError), operation(room.workspace, views=False):
                _run_requirement(room, job, requirement)


def lost_tests(
    old_tree: Workspace,
    new_tree: Workspace,
    job: Job,
    free: Collection[str] = (),
    renamed: Callable[[Collection[str], Collection[str]], Mapping[str, str]] = lambda _lost, _new: {},
) -> tuple[SuiteFact, ...]:
    """The tests that ran in the old tree, and are missing or skipped in the new one. ``free`` are files whose tests may
    change; ``renamed`` finds the new ids of tests that are the same otherwise."""
    facts: list[SuiteFact] = []
    for evidence in dict.fromkeys(
        requirement.evidence for requirement in requirements_of(job) if requirement.check.kind == "run"
    ):
        outcomes = []
        for tree in (old_tree, new_tree):
            entry = newest_run(tree.ledger.read(job.id).entries, evidence)
            found = None if entry is None else test_outcomes(evidence_store(tree), entry)
            outcomes.append(None if isinstance(found, UnusableRecord) else found)
        old, new = outcomes
        if old is not None:
            # A file that could not be collected is listed under a name that disappears once it can.
            known = {
                name: outcome
                for name, outcome in old.items()
                if outcome != "errored" or (new or {}).get(name) == "skipped"
            }
            for name in tests_of(known, free):
                del known[name]
            now = dict(new or {})
            lost = known.keys() - now.keys()
            now |= {
                name: now[other] for name, other in (renamed(lost, now.keys() - old.keys()) if lost else {}).items()
            }
            facts.append(compare_suites(evidence, now, known))
    return tuple(facts)


def tests_in(tree: Workspace, job: Job) -> Mapping[str, str]:
    """The outcomes of all tests whose ids a job's commands reported in a folder."""
    found: dict[str, str] = {}
    for requirement in requirements_of(job):
        entry = newest_run(tree.ledger.read(job.id).entries, requirement.evidence)
        outcomes = None if entry is None else test_outcomes(evidence_store(tree), entry)
        found |= {} if outcomes is None or isinstance(outcomes, UnusableRecord) else outcomes
    return found


def with_dependencies(facts: Facts, states: Mapping[str, DependencyFact]) -> Facts:
    """Return the facts with the dependency states of this verification."""
    not_run = {name: DependencyFact(name, "open", (name,)) for name in facts.job.depends_on}
    return facts._replace(dependencies=tuple((not_run | dict(states))[name] for name in facts.job.depends_on))


def _run_requirement(room: Room, job: Job, requirement: Requirement) -> None:
    by = unproved_actor()
    tree, memory = room.workspace, room.memory
    criterion = None if requirement.name == VERIFICATION else requirement.name
    if requirement.check.kind == "file":
        record_file_check(tree, job, requirement.check, requirement.evidence, by, criterion=criterion, again=True)
        return
    key = run_conditions(tree, job, requirement.check.argv).parts.key
    if key in memory:
        append_run(tree, job, {**memory[key], "criterion": criterion}, by)
        return
    entry = run_as_evidence(tree, job, requirement.check.argv, by, criterion=criterion, again=True).entry
    if entry.read_as(CommandRun).settled and room.is_untouched:
        # Several jobs may require the same command on the same files. If it writes, the job decides whether it may.
        memory[key] = {name: value for name, value in entry.data.items() if name not in ("writes", "adopted")}


def _apply_sign_off(tree: Workspace, job: Job, status: EvidenceStatus, signed: SignedEntries) -> EvidenceStatus:
    """Accept a sign-off on the branch if it was made with a key that was agreed on the base."""
    if status.requirement.check.kind != "manual" or status.state == "passed":
        return status
    try:
        subject = result_manifest(tree, job).hash
    except ConfigError:
        return status
    about_this_work = decisions_by_key(signed.entries, status.requirement.text, subject)
    newest = next((entry for entry in about_this_work if is_approval(entry, job.id, signed.policy)), None)
    if newest is not None and isinstance(newest.content, SignedOff):
        return EvidenceStatus(status.requirement, "passed", (), newest)
    return status


def _base_outputs(base: Base, tree: Workspace, job: Job) -> dict[str, str]:
    """The digests of a job's outputs on the base."""
    outputs: dict[str, str] = {}
    for output in job.outputs:
        with suppress(ConfigError):
            name = in_repository(base, tree, job, output)
            content = base.content(name)
            outputs[name.removeprefix(base.inside)] = MISSING if content is None else digest(content)
    return outputs
