"""Decides on a check that passes on everything as the branch has it, and not on the base's files with the work."""

from __future__ import annotations

from collections.abc import Sequence

from donewhen.jobs.evidence.baselines import found_no_tests
from donewhen.jobs.evidence.commands import evidence_store, newest_run
from donewhen.jobs.evidence.records import UnusableRecord
from donewhen.jobs.evidence.requirements import VERIFICATION
from donewhen.jobs.evidence.two_runs import Outcomes, person_decision
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.gates.suites import test_outcomes
from donewhen.jobs.ledger.entry_content import CommandRun
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.job import Job
from donewhen.jobs.room.room_plan import RoomPlan
from donewhen.jobs.verifying.run_trees import RunTree

Results = Sequence[tuple[RunTree, tuple[EvidenceStatus, ...]]]
"""What the criteria of a job are in each folder."""


def person_decides(results: Results, base_tree: RunTree, job: Job) -> Results:
    """The results with the decisions that a person has to make. As in a local room, a new test file is no reason
    against a command that had no tests before."""
    (tree, strict), *others = results
    if tree.plan is None or not others:
        return results
    own = others[0][1]
    evidence = [_decided(tree, tree.plan, base_tree, job, status, now) for status, now in zip(strict, own, strict=True)]
    if all(status.state == "passed" for status in evidence if status.requirement.name == VERIFICATION):
        # A criterion without a check of its own depends on the job's commands.
        evidence = [
            now if status.requirement.check.kind == "verification" else status
            for status, now in zip(evidence, own, strict=True)
        ]
    return [(tree, tuple(evidence)), *others]


def acceptance_step(job: str, code: GateCode) -> str:
    """What to do about changes that a person has to accept."""
    if code == GateCode.SIGNS_FOUND:
        return (
            "Change them, or have a person look at them: donewhen review --key FILE, with a key that the base branch "
            "names. Accepted without such a key, they count once that is merged to the base branch."
        )
    option = "--tests" if code == GateCode.TESTS_CHANGED else "--work"
    return (
        f"Undo them, or have a person accept them: donewhen agree {job} {option}, with a key that the base branch "
        "names. Accepted without such a key, they count once that agreement is merged to the base branch."
    )


def _decided(
    tree: RunTree, plan: RoomPlan, base_tree: RunTree, job: Job, strict: EvidenceStatus, own: EvidenceStatus
) -> EvidenceStatus:
    # The changes can be those of a plug-in of the tests, which a person sees when asked.
    own_passed = own.state == "passed" or own.code == GateCode.RUN_NOT_TRUSTED
    if strict.state == "passed" or strict.code == GateCode.RUN_NOT_TRUSTED or not own_passed:
        return strict
    if _has_no_tests(base_tree, job, strict) and _has_no_tests(tree, job, strict):
        return own
    decision = person_decision(plan, _outcomes(tree, strict))
    return EvidenceStatus(strict.requirement, "needs_human", (decision.why,), strict.entry, GateCode(decision.needs))


def _has_no_tests(tree: RunTree, job: Job, status: EvidenceStatus) -> bool:
    """Whether a command ran tests in a folder, and there were none."""
    if status.requirement.check.kind != "run":
        return False
    entry = newest_run(tree.workspace.ledger.read(job.id).entries, status.requirement.evidence)
    run = None if entry is None else entry.content
    return (
        isinstance(run, CommandRun)
        and run.ending == "exited"
        and found_no_tests(run.exit_code, status.requirement.check.argv, tree.room.files)
        and (run.report is None or not run.report.passed)
    )


def _outcomes(tree: RunTree, status: EvidenceStatus) -> Outcomes:
    """The tests of a run in a folder."""
    if status.entry is None or not isinstance(status.entry.content, CommandRun):
        return {}
    found = test_outcomes(evidence_store(tree.workspace), status.entry)
    return {} if isinstance(found, UnusableRecord) else found
