"""What running one job's contract again came to: its gates, its criteria, and the receipt that the branch offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from donewhen.foundation.plain_text import plain_text
from donewhen.jobs.board.validity import DependencyFact
from donewhen.jobs.contract.agreement import Seal
from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement
from donewhen.jobs.gates.agreement_gate import agreement_gate
from donewhen.jobs.gates.dependency_gate import dependency_gate
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.gates.score import score_of
from donewhen.jobs.gates.truth_gate import CRITERION_CODES, status_sentence, truth_gate
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode, GateReason
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.branch_changes import BranchClaim, receipt_reasons
from donewhen.jobs.verifying.cases import CaseKind, CaseReason, VerificationCase
from donewhen.jobs.verifying.rerun import Memory, SignedEntries, lost_tests, rerun_job, run_tests, with_dependencies

Tell = Callable[[str], None]

_LINES = 20
# These compare with a start on the base, and everything that could be wrong with it is run again here.
_NOT_HERE = frozenset({GateCode.NOT_STARTED, GateCode.REPORT_CONFIG_CHANGED})
_OF_NEEDS = frozenset({*CRITERION_CODES.values(), GateCode.COMMAND_NOT_PASSED})
_RUN_AGAIN = ("acceptance", "verification")


class AgreedJob(NamedTuple):
    """A job of the base, with what was agreed about it there."""

    job: Job
    seal: Seal | None
    done: bool
    known: frozenset[str]
    """The hashes of its entries on the base."""
    claim: BranchClaim
    name: str
    """Its plan file, in the project."""


class RunTree(NamedTuple):
    """A folder to run in, and what is special about it."""

    workspace: Workspace
    label: str
    memory: Memory


def job_cases(
    base: Base,
    branch: Workspace,
    policy: Policy,
    trees: Sequence[RunTree],
    agreed_job: AgreedJob,
    states: Mapping[str, DependencyFact],
    on_progress: Tell,
) -> Iterator[VerificationCase]:
    """The gates in their order, then what they looked at. The facts are of each tree but the first, which is the base
    as it is; all of them must be good, and each must have the tests of the one before it."""
    signed = SignedEntries(branch.ledger.read(agreed_job.job.id).entries, policy)
    looks: list[tuple[RunTree, Facts]] = []
    before, *work = trees
    on_base = before.workspace.job_at(before.workspace.root / agreed_job.name)
    run_tests(
        before.workspace,
        on_base,
        before.memory,
        lambda requirement: on_progress(f"{on_base.id}  {before.label}{requirement.evidence}"),
    )
    for tree in work:
        job = tree.workspace.job_at(tree.workspace.root / agreed_job.name)

        def told(requirement: Requirement, label: str = tree.label) -> None:
            on_progress(f"{agreed_job.job.id}  {label}{requirement.evidence}")

        facts = with_dependencies(rerun_job(base, tree.workspace, job, tree.memory, signed, told), states)
        if agreed_job.done:
            facts = facts._replace(outputs=tuple(file._replace(changed=True) for file in facts.outputs))
        lost = lost_tests(looks[0][0].workspace if looks else before.workspace, tree.workspace, job)
        looks.append((tree, facts._replace(suites=lost)))
    strict = looks[0][1]
    agreement = [_of_gate(agreed_job, reason) for reason in agreement_gate(strict).reasons]
    yield case_from_reasons("agreement", "gate", [*agreement, *agreed_job.claim.reasons])
    yield VerificationCase("budget", "gate", "skipped", text="How often it was tried can't be run again.")
    yield case_from_reasons(
        "dependency", "gate", [_of_gate(agreed_job, reason) for reason in _left(dependency_gate(strict).reasons)]
    )
    criteria = [_criterion_case(agreed_job, looks, place) for place in range(len(strict.evidence))]
    yield _truth_case(agreed_job, looks, criteria)
    yield _reward_case(agreed_job, strict)
    yield from criteria
    refuted = any(case.outcome == "failed" for case in criteria)
    yield from _receipt_case(branch, agreed_job, policy, refuted=refuted)


def case_from_reasons(name: str, kind: CaseKind, reasons: Iterable[CaseReason]) -> VerificationCase:
    """A case that fails for reasons, and passes without any."""
    found = tuple(reasons)
    return VerificationCase(name, kind, "failed" if found else "passed", found)


def _truth_case(
    job: AgreedJob, looks: Sequence[tuple[RunTree, Facts]], criteria: Sequence[VerificationCase]
) -> VerificationCase:
    reasons: list[CaseReason] = []
    for tree, facts in looks:
        beside = _OF_NEEDS
        if facts.lessons.captured > facts.lessons.empty:
            # It stands in the file. That it is on record, only the branch's own ledger says.
            beside |= {GateCode.LESSON_NOT_CAPTURED}
        others = [reason for reason in _left(truth_gate(facts).reasons) if reason.code not in beside]
        reasons += [_of_gate(job, reason, tree.label) for reason in others]
    unmet = sum(case.outcome != "passed" for case in criteria)
    if not reasons and unmet:
        return VerificationCase(
            "truth", "gate", "failed", text=f"{unmet} of {len(criteria)} things that it has to show are not met."
        )
    return case_from_reasons("truth", "gate", dict.fromkeys(reasons))


def _reward_case(job: AgreedJob, facts: Facts) -> VerificationCase:
    """The part of the score that can be run again. What was noted on the way is the branch's own word."""
    counted = [part for part in score_of(facts).components if part.name in _RUN_AGAIN]
    points = round(100 * sum(part.got for part in counted) / sum(part.possible for part in counted))
    target = facts.job.reward_target
    message = f"{points} of 100 for what was run again; {target} was agreed."
    if points >= target:
        return VerificationCase("reward", "gate", "passed", text=message)
    code = GateCode.SCORE_TOO_LOW
    return VerificationCase("reward", "gate", "failed", (CaseReason(code, message, job.claim.where, _next(job, code)),))


def _criterion_case(job: AgreedJob, looks: Sequence[tuple[RunTree, Facts]], place: int) -> VerificationCase:
    requirement = looks[0][1].evidence[place].requirement
    kind: CaseKind = "command" if requirement.name == VERIFICATION else "criterion"
    name = f"`{requirement.evidence}`" if kind == "command" else requirement.name
    reasons: list[CaseReason] = []
    output = ""
    for tree, facts in looks:
        found = facts.evidence[place]
        if found.state == "passed":
            continue
        code = GateCode.COMMAND_NOT_PASSED if kind == "command" else CRITERION_CODES[found.state]
        reasons.append(
            CaseReason(code, f"{tree.label}{status_sentence(found)}", _line_of(job, requirement), _next(job, code))
        )
        output = output or _said(tree.workspace, found)
    said = [one.message.removeprefix(tree.label) for one, (tree, _) in zip(reasons, looks, strict=False)]
    if len(said) > 1 and len(set(said)) == 1:
        # Whose tests they are makes no difference to it.
        reasons = [reasons[0]._replace(message=said[0])]
    return VerificationCase(name, kind, "failed" if reasons else "passed", tuple(reasons), requirement.text, output)


def _receipt_case(branch: Workspace, job: AgreedJob, policy: Policy, *, refuted: bool) -> Iterator[VerificationCase]:
    """What the branch offers as proof. It is never asked; where it is false, that is told."""
    if job.claim.completed is None and (job.done or not job.claim.done):
        return
    reasons = list(receipt_reasons(branch, job.job, job.claim, policy))
    if refuted and job.claim.completed is not None:
        code = FindingCode.RECEIPT_REFUTED
        message = f"The branch says that {job.job.id} is done ({job.claim.completed.hash[:19]}…); run again, it is not."
        reasons.append(CaseReason(code, message, job.claim.where, FINDINGS[code].next_step))
    yield case_from_reasons("receipt", "gate", reasons)


def _left(reasons: Sequence[GateReason]) -> list[GateReason]:
    return [reason for reason in reasons if reason.code not in _NOT_HERE]


def _of_gate(job: AgreedJob, reason: GateReason, label: str = "") -> CaseReason:
    where = job.claim.where if reason.where is None or reason.where.startswith(job.claim.where) else reason.where
    return CaseReason(reason.code, f"{label}{reason.message}", where, _next(job, reason.code))


def _next(job: AgreedJob, code: GateCode) -> str:
    return GATE_REASONS[code].next_step.replace("JOB", job.job.id)


def _line_of(agreed_job: AgreedJob, requirement: Requirement) -> str:
    """Where the branch's plan says it; the plan itself where it does not say it any more."""
    job = agreed_job.claim.job
    if job is None:
        return agreed_job.claim.where
    line = next((each.line for each in job.criteria if each.text == requirement.text), None)
    line = line or next((each.line for each in job.criteria if each.id == requirement.name), None)
    if requirement.name == VERIFICATION:
        line = job.document.line_of("truth_required_commands")
    return f"{agreed_job.claim.where}:{line}" if line else agreed_job.claim.where


def _said(tree: Workspace, status: EvidenceStatus) -> str:
    blob = None if status.entry is None else status.entry.data.get("output")
    content = evidence_store(tree).get(blob) if isinstance(blob, str) else None
    text = plain_text((content or b"").decode("utf-8", "replace")).replace(str(tree.root), ".")
    return "\n".join(text.rstrip().splitlines()[-_LINES:])
