"""The results of running one job's contract again: its gates, its criteria, and the branch's receipt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from donewhen.foundation.process import CommandNotRunnableError
from donewhen.jobs.board.job_state import OF_MACHINE
from donewhen.jobs.board.validity import DependencyFact
from donewhen.jobs.evidence.placed_runs import running_in
from donewhen.jobs.evidence.requirements import Requirement
from donewhen.jobs.evidence.room_session import PrepareFailedError
from donewhen.jobs.gates.agreement_gate import agreement_gate
from donewhen.jobs.gates.dependency_gate import dependency_gate
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.gates.score import score_of
from donewhen.jobs.gates.suites import SuiteFact
from donewhen.jobs.gates.truth_gate import CRITERION_CODES, truth_gate
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.gate_results import GateCode, GateReason
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying.agreed_jobs import AgreedJob
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.branch_changes import receipt_reasons
from donewhen.jobs.verifying.branch_signs import held_for_signs
from donewhen.jobs.verifying.cases import CaseReason, VerificationCase, case_from_reasons
from donewhen.jobs.verifying.criterion_cases import criterion_case, next_step, prepare_case
from donewhen.jobs.verifying.decisions import person_decides
from donewhen.jobs.verifying.probing import probe_notes
from donewhen.jobs.verifying.rerun import SignedEntries, lost_tests, rerun_job, run_tests, with_dependencies
from donewhen.jobs.verifying.run_trees import RunTree
from donewhen.test_reports.renamed_tests import renamed_tests

OnProgress = Callable[[str], None]

# These compare with the job's start on the base; here everything is run again anyway.
_NOT_APPLICABLE = frozenset({GateCode.NOT_STARTED, GateCode.REPORT_CONFIG_CHANGED})
_REQUIREMENT_CODES = frozenset(
    {
        *CRITERION_CODES.values(),
        GateCode.COMMAND_NOT_PASSED,
        GateCode.OUTSIDE_WORK_AREA,
        GateCode.TESTS_CHANGED,
        GateCode.SIGNS_FOUND,
        GateCode.RUN_NOT_TRUSTED,
        GateCode.RUN_FLAKY,
        *OF_MACHINE,
    }
)
_RERUN_COMPONENTS = ("acceptance", "verification")


def job_cases(
    base: Base,
    branch: Workspace,
    policy: Policy,
    trees: Sequence[RunTree],
    agreed_job: AgreedJob,
    states: Mapping[str, DependencyFact],
    on_progress: OnProgress,
) -> Iterator[VerificationCase]:
    """Yield the gates in order, then the criteria. The first tree is the base itself; facts are collected in each of
    the others. All of them must pass, and each must have the tests of the tree before it."""
    signed = SignedEntries(branch.ledger.read(agreed_job.job.id).entries, policy)
    results: list[tuple[RunTree, Facts]] = []
    base_tree, *work_trees = trees
    base_job = base_tree.workspace.job_at(base_tree.workspace.root / agreed_job.name)
    run_base_tests(base_tree, base_job, on_progress)
    for tree in work_trees:
        job = tree.workspace.job_at(tree.workspace.root / agreed_job.name)

        def report(requirement: Requirement, label: str = tree.label) -> None:
            on_progress(f"{agreed_job.job.id}  {label}{requirement.evidence}")

        with running_in(tree.room.beside(base_tree.room)):
            try:
                tree.enter()
                tree.room.prepare()
            except PrepareFailedError as error:
                yield prepare_case(agreed_job, tree, error)
                return
            facts = with_dependencies(rerun_job(base, tree.room, job, signed, report), states)
            plan = work_trees[0].plan
            if tree is work_trees[-1] and plan is not None and _have_passed([*results, (tree, facts)]):
                on_progress(f"{agreed_job.job.id}  {tree.label}probing the tests")
                tree.room.probed += probe_notes(base, base_tree, tree, plan, job)
        if agreed_job.done:
            facts = facts._replace(outputs=tuple(file._replace(changed=True) for file in facts.outputs))
        before = results[0][0] if results else base_tree
        results.append((tree, facts._replace(suites=lost_in(before, tree, job))))
    decided = person_decides([(tree, facts.evidence) for tree, facts in results], base_tree, base_job)
    results[0] = (results[0][0], results[0][1]._replace(evidence=decided[0][1]))
    held = held_for_signs(base, base_tree, results[0][0], agreed_job, results[0][1].evidence, signed)
    decided = [(decided[0][0], held), *decided[1:]]
    results[0] = (results[0][0], results[0][1]._replace(evidence=held))
    strict = results[0][1]
    agreement = [_case_reason(agreed_job, reason) for reason in agreement_gate(strict).reasons]
    yield case_from_reasons("agreement", "gate", [*agreement, *agreed_job.claim.reasons])
    yield VerificationCase("budget", "gate", "skipped", text="The number of attempts can't be verified.")
    yield case_from_reasons(
        "dependency",
        "gate",
        [_case_reason(agreed_job, reason) for reason in _applicable(dependency_gate(strict).reasons)],
    )
    criteria = [criterion_case(agreed_job, decided, place) for place in range(len(strict.evidence))]
    yield _truth_case(agreed_job, results, criteria)
    yield _reward_case(agreed_job, strict)
    yield from criteria
    refuted = any(case.outcome == "failed" for case in criteria)
    yield from _receipt_case(branch, agreed_job, policy, refuted=refuted)


def _have_passed(results: Sequence[tuple[RunTree, Facts]]) -> bool:
    """Whether every check that runs has passed in every folder."""
    statuses = [status for _, facts in results for status in facts.evidence]
    return all(status.state == "passed" for status in statuses if status.requirement.check.kind in ("run", "file"))


def run_base_tests(tree: RunTree, job: Job, on_progress: OnProgress) -> None:
    """Learn which tests there are on the base. What can't be built there has none."""
    with running_in(tree.room), suppress(CommandNotRunnableError, PrepareFailedError):
        tree.room.prepare()
        run_tests(tree.room, job, lambda requirement: on_progress(f"{job.id}  {tree.label}{requirement.evidence}"))


def lost_in(before: RunTree, tree: RunTree, job: Job) -> tuple[SuiteFact, ...]:
    """The tests that ran in a folder, and are missing or skipped in the next one."""

    def renamed(lost: Collection[str], new: Collection[str]) -> Mapping[str, str]:
        return renamed_tests(lost, new, before.room.test_sources(), tree.room.test_sources())

    return lost_tests(before.workspace, tree.workspace, job, tree.free, renamed)


def _truth_case(
    job: AgreedJob, results: Sequence[tuple[RunTree, Facts]], criteria: Sequence[VerificationCase]
) -> VerificationCase:
    reasons: list[CaseReason] = []
    for tree, facts in results:
        reported_elsewhere = _REQUIREMENT_CODES
        if facts.lessons.captured > facts.lessons.empty:
            # The lesson is in the file. Only the branch's own ledger, which is not trusted, records it.
            reported_elsewhere |= {GateCode.LESSON_NOT_CAPTURED}
        others = [reason for reason in _applicable(truth_gate(facts).reasons) if reason.code not in reported_elsewhere]
        reasons += [_case_reason(job, reason, tree.label) for reason in others]
    unmet = sum(case.outcome != "passed" for case in criteria)
    if not reasons and unmet:
        return VerificationCase("truth", "gate", "failed", text=f"{unmet} of {len(criteria)} requirements are not met.")
    return case_from_reasons("truth", "gate", dict.fromkeys(reasons))


def _reward_case(job: AgreedJob, facts: Facts) -> VerificationCase:
    """The part of the score that can be verified. The rest is only the branch's claim."""
    counted = [part for part in score_of(facts).components if part.name in _RERUN_COMPONENTS]
    points = round(100 * sum(part.got for part in counted) / sum(part.possible for part in counted))
    target = facts.job.reward_target
    message = f"Verified score: {points} of 100; the target is {target}."
    if points >= target:
        return VerificationCase("reward", "gate", "passed", text=message)
    code = GateCode.SCORE_TOO_LOW
    return VerificationCase(
        "reward", "gate", "failed", (CaseReason(code, message, job.claim.where, next_step(job, code)),)
    )


def _receipt_case(branch: Workspace, job: AgreedJob, policy: Policy, *, refuted: bool) -> Iterator[VerificationCase]:
    """The branch's receipt. It is never used as evidence, but reported if it is false."""
    if job.claim.completed is None and (job.done or not job.claim.done):
        return
    reasons = list(receipt_reasons(branch, job.job, job.claim, policy))
    if refuted and job.claim.completed is not None:
        code = FindingCode.RECEIPT_REFUTED
        receipt = f"{job.claim.completed.hash[:19]}…"
        message = f"The branch claims that {job.job.id} is done ({receipt}), but running it again failed."
        reasons.append(CaseReason(code, message, job.claim.where, FINDINGS[code].next_step))
    yield case_from_reasons("receipt", "gate", reasons)


def _applicable(reasons: Sequence[GateReason]) -> list[GateReason]:
    return [reason for reason in reasons if reason.code not in _NOT_APPLICABLE]


def _case_reason(job: AgreedJob, reason: GateReason, label: str = "") -> CaseReason:
    where = job.claim.where if reason.where is None or reason.where.startswith(job.claim.where) else reason.where
    return CaseReason(reason.code, f"{label}{reason.message}", where, next_step(job, reason.code))
