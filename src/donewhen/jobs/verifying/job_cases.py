"""The results of running one job's contract again: its gates, its criteria, and the branch's receipt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from donewhen.foundation.plain_text import plain_text
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.board.validity import DependencyFact
from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.evidence.placed_runs import running_in
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement
from donewhen.jobs.evidence.room_session import PrepareFailedError
from donewhen.jobs.gates.agreement_gate import agreement_gate
from donewhen.jobs.gates.dependency_gate import dependency_gate
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.gates.score import score_of
from donewhen.jobs.gates.truth_gate import CRITERION_CODES, status_sentence, truth_gate
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entry_content import CommandRun
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode, GateReason
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying.agreed_jobs import AgreedJob
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.branch_changes import receipt_reasons
from donewhen.jobs.verifying.cases import CaseKind, CaseReason, VerificationCase
from donewhen.jobs.verifying.decisions import acceptance_step, person_decides
from donewhen.jobs.verifying.rerun import SignedEntries, lost_tests, rerun_job, run_tests, with_dependencies
from donewhen.jobs.verifying.run_trees import RunTree
from donewhen.test_reports.renamed_tests import renamed_tests

OnProgress = Callable[[str], None]

_MAX_LINES = 20
# These compare with the job's start on the base; here everything is run again anyway.
_NOT_APPLICABLE = frozenset({GateCode.NOT_STARTED, GateCode.REPORT_CONFIG_CHANGED})
_REQUIREMENT_CODES = frozenset(
    {
        *CRITERION_CODES.values(),
        GateCode.COMMAND_NOT_PASSED,
        GateCode.OUTSIDE_WORK_AREA,
        GateCode.TESTS_CHANGED,
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
    # What can't be built on the base has no tests there.
    with running_in(base_tree.room), suppress(CommandNotRunnableError, PrepareFailedError):
        base_tree.room.prepare()
        run_tests(
            base_tree.workspace,
            base_job,
            base_tree.memory,
            lambda requirement: on_progress(f"{base_job.id}  {base_tree.label}{requirement.evidence}"),
        )
    for tree in work_trees:
        job = tree.workspace.job_at(tree.workspace.root / agreed_job.name)

        def report(requirement: Requirement, label: str = tree.label) -> None:
            on_progress(f"{agreed_job.job.id}  {label}{requirement.evidence}")

        with running_in(tree.room):
            try:
                tree.room.prepare()
            except PrepareFailedError as error:
                yield _prepare_case(agreed_job, tree, error)
                return
            facts = with_dependencies(rerun_job(base, tree.workspace, job, tree.memory, signed, report), states)
        if agreed_job.done:
            facts = facts._replace(outputs=tuple(file._replace(changed=True) for file in facts.outputs))
        before = results[0][0] if results else base_tree
        lost = lost_tests(before.workspace, tree.workspace, job, work_trees[0].free, _renaming(before, tree))
        results.append((tree, facts._replace(suites=lost)))
    results = person_decides(results, base_tree, base_job)
    strict = results[0][1]
    agreement = [_case_reason(agreed_job, reason) for reason in agreement_gate(strict).reasons]
    yield case_from_reasons("agreement", "gate", [*agreement, *agreed_job.claim.reasons])
    yield VerificationCase("budget", "gate", "skipped", text="The number of attempts can't be verified.")
    yield case_from_reasons(
        "dependency",
        "gate",
        [_case_reason(agreed_job, reason) for reason in _applicable(dependency_gate(strict).reasons)],
    )
    criteria = [_criterion_case(agreed_job, results, place) for place in range(len(strict.evidence))]
    yield _truth_case(agreed_job, results, criteria)
    yield _reward_case(agreed_job, strict)
    yield from criteria
    refuted = any(case.outcome == "failed" for case in criteria)
    yield from _receipt_case(branch, agreed_job, policy, refuted=refuted)


def _renaming(before: RunTree, now: RunTree) -> Callable[[Collection[str], Collection[str]], Mapping[str, str]]:
    return lambda lost, new: renamed_tests(lost, new, before.room.test_sources(), now.room.test_sources())


def case_from_reasons(name: str, kind: CaseKind, reasons: Iterable[CaseReason]) -> VerificationCase:
    """A case that fails if there are reasons, else passes."""
    failures = tuple(reasons)
    return VerificationCase(name, kind, "failed" if failures else "passed", failures)


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
        "reward", "gate", "failed", (CaseReason(code, message, job.claim.where, _next_step(job, code)),)
    )


def _criterion_case(job: AgreedJob, results: Sequence[tuple[RunTree, Facts]], place: int) -> VerificationCase:
    requirement = results[0][1].evidence[place].requirement
    kind: CaseKind = "command" if requirement.name == VERIFICATION else "criterion"
    name = f"`{requirement.evidence}`" if kind == "command" else requirement.name
    reasons: list[CaseReason] = []
    output = ""
    for tree, facts in results:
        status = facts.evidence[place]
        if status.state == "passed":
            continue
        code = GateCode.COMMAND_NOT_PASSED if kind == "command" else CRITERION_CODES[status.state]
        label, next_step = tree.label, _next_step(job, code)
        if status.code is not None:
            code, label, next_step = status.code, "", acceptance_step(job.job.id, status.code)
        reasons.append(CaseReason(code, f"{label}{status_sentence(status)}", _line_of(job, requirement), next_step))
        output = output or _output_end(tree.workspace, status)
    messages = [reason.message.removeprefix(tree.label) for reason, (tree, _) in zip(reasons, results, strict=False)]
    if len(messages) > 1 and len(set(messages)) == 1:
        # The message is the same with either set of tests, so it needs no label.
        reasons = [reasons[0]._replace(message=messages[0])]
    return VerificationCase(name, kind, "failed" if reasons else "passed", tuple(reasons), requirement.text, output)


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


def _prepare_case(job: AgreedJob, tree: RunTree, error: PrepareFailedError) -> VerificationCase:
    code = GateCode.COMMAND_NOT_PASSED
    reason = CaseReason(code, f"{tree.label}{error.message}.", job.claim.where, _next_step(job, code))
    output = _last_lines(tree.workspace, redact_secrets(error.run.result.output))
    return VerificationCase("prepare", "command", "failed", (reason,), output=output)


def _applicable(reasons: Sequence[GateReason]) -> list[GateReason]:
    return [reason for reason in reasons if reason.code not in _NOT_APPLICABLE]


def _case_reason(job: AgreedJob, reason: GateReason, label: str = "") -> CaseReason:
    where = job.claim.where if reason.where is None or reason.where.startswith(job.claim.where) else reason.where
    return CaseReason(reason.code, f"{label}{reason.message}", where, _next_step(job, reason.code))


def _next_step(job: AgreedJob, code: GateCode) -> str:
    return GATE_REASONS[code].next_step.replace("JOB", job.job.id)


def _line_of(agreed_job: AgreedJob, requirement: Requirement) -> str:
    """The line of a requirement in the branch's plan; the plan file if it is no longer there."""
    job = agreed_job.claim.job
    if job is None:
        return agreed_job.claim.where
    line = next((criterion.line for criterion in job.criteria if criterion.text == requirement.text), None)
    line = line or next((criterion.line for criterion in job.criteria if criterion.id == requirement.name), None)
    if requirement.name == VERIFICATION:
        line = job.document.line_of("truth_required_commands")
    return f"{agreed_job.claim.where}:{line}" if line else agreed_job.claim.where


def _output_end(tree: Workspace, status: EvidenceStatus) -> str:
    run = None if status.entry is None else status.entry.content
    content = evidence_store(tree).get(run.output) if isinstance(run, CommandRun) and run.output else None
    return _last_lines(tree, (content or b"").decode("utf-8", "replace"))


def _last_lines(tree: Workspace, output: str) -> str:
    text = plain_text(output).replace(str(tree.root), ".")
    return "\n".join(text.rstrip().splitlines()[-_MAX_LINES:])
