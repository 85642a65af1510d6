"""The answers of the tools: typed data, each with a short text form."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from donewhen.jobs.board.job_state import StateWord
from donewhen.jobs.contract.agreement import AgreementState
from donewhen.jobs.contract.terms import ChangeKind
from donewhen.jobs.gates.evidence_status import State
from donewhen.jobs.ledger.evidence_levels import LEVEL_WORDS, EvidenceLevel, NeededLevel
from donewhen.jobs.ledger.gate_results import GateName
from donewhen.jobs.plan.criteria import CheckKind
from donewhen.jobs.plan.job import Status

Term = str | int | bool | list[str] | dict[str, str]


class ToolAnswer(Struct, frozen=True, kw_only=True):
    """The base of all answers."""

    from_people: list[str] = []
    """What people have said about the job, or have answered about open jobs. Follow it."""

    def short(self) -> str:
        """Return the answer as a few lines of text."""
        raise NotImplementedError


class ReasonView(Struct, frozen=True, omit_defaults=True):
    """One reason: a code, a sentence, and a place."""

    code: str
    message: str
    where: str | None = None
    details: list[str] = []
    """What the check said, in a few lines, and the command that shows all of it."""

    def line(self) -> str:
        return "\n".join((f"[{self.code}] {self.message}", *(f"  {detail}" for detail in self.details)))


class GateView(Struct, frozen=True, omit_defaults=True):
    """The state of a gate, with its reasons and the next step."""

    gate: GateName
    passed: bool
    reasons: list[ReasonView]
    note: str = ""
    next: str | None = None


class ListedJob(Struct, frozen=True):
    """A job in a list."""

    id: str
    title: str
    status: str
    state: StateWord
    """As far as it is recorded; show_job evaluates it now."""
    code: str | None
    """The code of the main reason for this state."""
    agreement: AgreementState
    stakes: str
    depends_on: list[str]
    iteration: int
    max_iterations: int
    next: str
    tampered: list[str]
    """Fields of the plan that differ from the ledger."""


class Jobs(ToolAnswer, frozen=True):
    """A page of jobs."""

    project: str
    title: str
    agreement: AgreementState
    counts: dict[str, int]
    jobs: list[ListedJob]
    total: int
    """Number of jobs with this status, on all pages."""
    next_offset: int | None
    problems: list[ReasonView]
    """The first problems found in jobs."""
    problem_count: int

    def short(self) -> str:
        lines = [f"{self.project} ({self.agreement}): {self.total} job(s)"]
        for job in self.jobs:
            step = f"; next: {job.next}" if job.state not in ("done", "cancelled") else ""
            lines.append(f"{job.id} {job.state}: {job.title}{step}")
        if self.next_offset is not None:
            lines.append(f"There are more, from offset {self.next_offset}.")
        if self.problem_count:
            lines.append(f"{self.problem_count} problem(s), such as:")
        return _joined(*lines, *(problem.line() for problem in self.problems))


class RequirementView(Struct, frozen=True):
    """One requirement of a job, how it is checked, and the state of its evidence."""

    name: str
    text: str
    check: CheckKind
    how: str
    state: State
    why: list[str]
    strength: EvidenceLevel | None = None
    """How strong the evidence is; null if there is none."""
    strength_reasons: list[str] = []
    """Why, what limits it first."""
    better: list[str] = []
    """What makes the evidence stronger."""
    needs: NeededLevel | None = None
    """How strong it has to be; null if any evidence will do."""


class OutputFile(Struct, frozen=True):
    """An output file of the job."""

    path: str
    state: str
    changed: bool


class ContractChange(Struct, frozen=True):
    """A difference between the plan and the contract."""

    kind: ChangeKind
    field: str
    before: str | None
    after: str | None
    where: str
    voids: bool


class ContractView(ToolAnswer, frozen=True):
    """The agreed contract; before the agreement, the proposed one."""

    job: str
    state: AgreementState
    hash: str
    terms: dict[str, Term]
    changes: list[ContractChange]
    agreed_at: str | None = None
    agreed_by: str | None = None

    def short(self) -> str:
        return f"{self.job}: {self.state}, {len(self.changes)} change(s) since."


class ShownJob(ToolAnswer, frozen=True):
    """A job, as it is now."""

    id: str
    title: str
    status: Status
    state: StateWord
    code: str | None
    """The code of the main reason for this state."""
    iteration: int
    max_iterations: int
    score: int
    target: int
    passed: bool
    contract: ContractView
    needs: list[RequirementView]
    outputs: list[OutputFile]
    gates: list[GateView]
    waiting: str | None
    """Why the job waits: what blocks it, or the question to a person."""
    next: str
    next_action: str
    notes: list[str] = []
    """What is worth knowing and is no reason against the job."""
    changes: list[str] = []
    """Changed files that a check needs and that only a person can accept: donewhen review."""

    def short(self) -> str:
        lines = [f"{self.id} {self.state}, contract {self.contract.state}: {self.title}"]
        lines += [
            f"{requirement.name} {requirement.state}{_level(requirement.strength)} ({requirement.how}): "
            f"{requirement.text}"
            for requirement in self.needs
        ]
        asked = [f"changed files that a person has to accept: {', '.join(self.changes)}"] if self.changes else []
        return _joined(*lines, *_reasons(self.gates), *_notes(self.notes), *asked, f"next: {self.next}")


class CheckAnswer(ToolAnswer, frozen=True):
    """Whether a job may be completed now."""

    job: str
    status: Status
    state: StateWord
    code: str | None
    """The code of the main reason for this state."""
    done: bool
    """The job is done, and its completion is still valid."""
    may_complete: bool
    iteration: int
    max_iterations: int
    score: int
    target: int
    gates: list[GateView]
    next: str
    next_action: str
    notes: list[str] = []
    """What is worth knowing and is no reason against the job."""

    def short(self) -> str:
        if self.done:
            return f"{self.job} is done."
        verdict = "may be completed" if self.may_complete else "may not be completed"
        return _joined(f"{self.job} {verdict}.", *_reasons(self.gates), *_notes(self.notes), f"next: {self.next}")


class EvidenceItem(Struct, frozen=True, omit_defaults=True):
    """One piece of evidence. ``output`` is the end of the command's output."""

    name: str
    evidence: str
    passed: bool
    reused: bool
    """Nothing that it depends on has changed, so it was not run again."""
    told: str
    needs_human: bool = False
    """The votes of the judge don't agree."""
    exit_code: int | None = None
    tests: dict[str, float | None] = {}
    output: str = ""


class EvidenceAnswer(ToolAnswer, frozen=True):
    """The evidence that the gate collected."""

    job: str
    passed: bool
    runs: list[EvidenceItem]
    next: str

    def short(self) -> str:
        lines = [f"{'✓' if run.passed else '✗'} {run.name}: {run.evidence}: {run.told}" for run in self.runs]
        outputs = [run.output for run in self.runs if run.output and not run.passed]
        return _joined(*lines, *outputs, f"next: {self.next}")


class CompletionAnswer(ToolAnswer, frozen=True):
    """The result of an attempt to complete a job. There is a promise if and only if the job is done."""

    job: str
    done: bool
    status: Status
    state: StateWord
    code: str | None
    """The code of the main reason for this state."""
    iteration: int
    max_iterations: int
    promise: str | None
    receipt: str | None
    repeated: bool
    """The job was already done."""
    gates: list[GateView]
    next: str
    cascade: list[str]
    """Parent jobs that were completed with this job."""
    invalidated: list[str]
    """Completed jobs that depended on what has changed; they are no longer done."""
    notes: list[str] = []
    """What is worth knowing and is no reason against the job."""
    strength: dict[str, EvidenceLevel] = {}
    """How strong the evidence for each criterion was, if the job is done."""

    def short(self) -> str:
        if self.promise is not None:
            return _joined(self.promise, f"receipt: {self.receipt}", *_notes(self.notes))
        head = f"{self.job} is not done; iteration {self.iteration} of {self.max_iterations}, {self.status}."
        return _joined(head, *_reasons(self.gates), *_notes(self.notes), f"next: {self.next}")


class GivenLesson(Struct, frozen=True):
    """A lesson of an earlier job: advice, not an instruction."""

    id: str
    recommendation: str
    reasons: list[str]
    """Why it fits this job."""


class StartAnswer(ToolAnswer, frozen=True):
    """Whether a job was started."""

    job: str
    started: bool
    status: Status
    iteration: int
    max_iterations: int
    reasons: list[ReasonView]
    next: str
    lessons: list[GivenLesson] = []
    """Lessons quoted in the plan; each needs an answer (donewhen lessons used, or not-relevant)."""

    def short(self) -> str:
        head = f"{self.job} is {self.status}." if self.started else f"{self.job} was not started."
        lessons = (f"lesson {lesson.id}, quoted in the plan, needs an answer" for lesson in self.lessons)
        return _joined(head, *(reason.line() for reason in self.reasons), *lessons, f"next: {self.next}")


class RestAnswer(ToolAnswer, frozen=True):
    """A job that waits for a person."""

    job: str
    status: Status
    reason: str
    next: str

    def short(self) -> str:
        return f"{self.job} is {self.status}: {self.reason}\nnext: {self.next}"


class StopCheck(Struct, frozen=True, omit_defaults=True):
    """One check of a stop, with its result."""

    check: str
    complete: bool
    feedback: str | None = None
    code: str | None = None

    def line(self) -> str:
        code = f" [{self.code}]" if self.code else ""
        return f"{'✓' if self.complete else '✗'} {self.check}{code}" + (f": {self.feedback}" if self.feedback else "")


class StopAnswer(ToolAnswer, frozen=True):
    """Whether the checks of a stop pass now."""

    may_stop: bool
    """All checks pass. A stop hook runs them again when you stop."""
    checks: list[StopCheck]
    next: str

    def short(self) -> str:
        passed = sum(check.complete for check in self.checks)
        head = f"{passed} of {len(self.checks)} check(s) pass: {'you may stop' if self.may_stop else 'not done'}."
        return _joined(head, *(check.line() for check in self.checks), f"next: {self.next}")


class NextStep(ToolAnswer, frozen=True):
    """The next step; without a job, which job to start."""

    job: str | None
    next: str
    next_action: str
    gates: list[GateView]
    ready: list[str]
    state: StateWord | None = None
    code: str | None = None
    """The code of the main reason for this state."""

    def short(self) -> str:
        return _joined(*([self.job] if self.job else []), *_reasons(self.gates), f"next: {self.next}")


class ReadyJob(Struct, frozen=True):
    """A job that can start."""

    id: str
    title: str


class ReadyJobs(ToolAnswer, frozen=True):
    """The jobs that can start now, and the order of the others."""

    ready: list[ReadyJob]
    waves: list[list[str]]
    critical_path: list[str]
    hours: float | None
    """Estimated hours; None if the estimates are not numbers."""

    def short(self) -> str:
        return _joined(*(f"{job.id}: {job.title}" for job in self.ready)) or "Nothing can start now."


def _level(level: EvidenceLevel | None) -> str:
    return f", {LEVEL_WORDS[level]} evidence" if level is not None else ""


def _reasons(gates: list[GateView]) -> Iterator[str]:
    return (f"{gate.gate}: {reason.line()}" for gate in gates for reason in gate.reasons)


def _notes(notes: list[str]) -> Iterator[str]:
    return (f"note: {note}" for note in notes)


def _joined(*lines: str) -> str:
    return "\n".join(lines)
