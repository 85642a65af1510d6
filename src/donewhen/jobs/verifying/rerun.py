"""Running one job's contract again, in a folder that has the branch's work; what it comes to is the gates' to say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

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
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement, requirements_of
from donewhen.jobs.gates.evidence_status import EvidenceStatus, collect_evidence, is_sign_off
from donewhen.jobs.gates.facts import Facts, SuiteFact, compare_suites, facts_of, test_outcomes
from donewhen.jobs.ledger.approval import Policy, is_approval, unproved_actor
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.judging_files import in_repository

Memory = dict[str, Mapping[str, Any]]
"""What a command came to in this folder, by everything that it depends on."""


class SignedEntries(NamedTuple):
    """Entries on the branch, and the keys by which some can be believed: those agreed to on the base."""

    entries: tuple[Entry, ...]
    policy: Policy


def rerun_job(
    base: Base,
    tree: Workspace,
    job: Job,
    memory: Memory,
    signed: SignedEntries,
    on_progress: Callable[[Requirement], None],
) -> Facts:
    """Run and look at everything that a job has to show, and collect the facts. No proof that was there is used."""
    by = unproved_actor()
    entries = tree.ledger.read(job.id).entries
    if not any(entry.type == "started" for entry in entries):
        tree.ledger.append(job.id, "started", {"commit": base.commit, "outputs": _outputs_on(base, tree, job)}, by)
    asked = requirements_of(job)
    for requirement in asked:
        if requirement.check.kind in ("run", "file"):
            on_progress(requirement)
            with suppress(CommandNotRunnableError):
                _show(tree, job, requirement, memory)
    for requirement in asked:
        if requirement.check.kind == "judge":
            on_progress(requirement)
            # What speaks against the work already needs no judge; its criterion is then not shown.
            with suppress(UsageError):
                collect_evidence(tree, job, by, again=True, only=requirement)
    facts = facts_of(tree, tree.job_at(job.path))
    return facts._replace(
        evidence=tuple(_signed_off(tree, job, status, signed) for status in facts.evidence),
        suites=(),
        upstream_changed=(),
        harness_changed=(),
        chain_breaks=tuple(one.problem for one in tree.ledger.read(job.id).breaks if not one.torn),
    )


def run_tests(tree: Workspace, job: Job, memory: Memory, on_progress: Callable[[Requirement], None]) -> None:
    """Run a job's tests alone, to know which there are."""
    for requirement in requirements_of(job):
        if requirement.check.kind == "run" and reports_tests(requirement.check.argv):
            on_progress(requirement)
            with suppress(CommandNotRunnableError):
                _show(tree, job, requirement, memory)


def lost_tests(before: Workspace, now: Workspace, job: Job) -> tuple[SuiteFact, ...]:
    """The tests that one folder runs, and the other one does not have or skips."""
    found: list[SuiteFact] = []
    for evidence in dict.fromkeys(
        requirement.evidence for requirement in requirements_of(job) if requirement.check.kind == "run"
    ):
        outcomes = []
        for tree in (before, now):
            entry = newest_run(tree.ledger.read(job.id).entries, evidence)
            outcomes.append(None if entry is None else test_outcomes(evidence_store(tree), entry))
        old, new = outcomes
        if old is not None:
            # What could not be collected has a name of its own, which goes when it can.
            known = {name: one for name, one in old.items() if one != "errored" or (new or {}).get(name) == "skipped"}
            found.append(compare_suites(evidence, new or {}, known))
    return tuple(found)


def with_dependencies(facts: Facts, states: Mapping[str, DependencyFact]) -> Facts:
    """The facts with dependencies as this look found them."""
    open_ = {name: DependencyFact(name, "open", (name,)) for name in facts.job.depends_on}
    return facts._replace(dependencies=tuple((open_ | dict(states))[name] for name in facts.job.depends_on))


def _show(tree: Workspace, job: Job, requirement: Requirement, memory: Memory) -> None:
    by = unproved_actor()
    criterion = None if requirement.name == VERIFICATION else requirement.name
    if requirement.check.kind == "file":
        record_file_check(tree, job, requirement.check, requirement.evidence, by, criterion=criterion, again=True)
        return
    key = run_conditions(tree, job, requirement.check.argv).parts.key
    if key in memory:
        append_run(tree, job, {**memory[key], "criterion": criterion}, by)
        return
    data = run_as_evidence(tree, job, requirement.check.argv, by, criterion=criterion, again=True).entry.data
    if data["settled"]:
        # Several jobs may ask for the same command on the same files.
        memory[key] = {name: value for name, value in data.items() if name not in ("writes", "adopted")}


def _signed_off(tree: Workspace, job: Job, status: EvidenceStatus, signed: SignedEntries) -> EvidenceStatus:
    """A sign-off by a key that was agreed to on the base can be believed, wherever it stands."""
    if status.requirement.check.kind != "manual" or status.state == "passed":
        return status
    try:
        subject = result_manifest(tree, job).hash
    except ConfigError:
        return status
    for entry in signed.entries:
        if entry.by.kind == "key" and is_sign_off(entry, status.requirement.text):
            about = entry.data["value"].get("subject") == subject
            if about and is_approval(entry, job.id, signed.policy):
                return EvidenceStatus(status.requirement, "passed", (), entry)
    return status


def _outputs_on(base: Base, tree: Workspace, job: Job) -> dict[str, str]:
    """What stood in a job's outputs on the base."""
    found: dict[str, str] = {}
    for output in job.outputs:
        with suppress(ConfigError):
            name = in_repository(base, tree, job, output)
            content = base.content(name)
            found[name.removeprefix(base.inside)] = MISSING if content is None else digest(content)
    return found
