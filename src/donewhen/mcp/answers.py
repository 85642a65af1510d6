"""What the tools give back: typed values for programs, and each with a short text for whoever only reads that."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from donewhen.jobs.contract.agreement import AgreementState
from donewhen.jobs.contract.terms import ChangeKind
from donewhen.jobs.gates.evidence_status import State
from donewhen.jobs.ledger.gate_results import GateName
from donewhen.jobs.plan.criteria import CheckKind
from donewhen.jobs.plan.job import Status

Term = str | int | bool | list[str] | dict[str, str]


class ToolAnswer(Struct, frozen=True):
    """What a tool says."""

    def short(self) -> str:
        """The same in a few lines."""
        raise NotImplementedError


class ReasonView(Struct, frozen=True, omit_defaults=True):
    """One reason: a code, a sentence, and a place."""

    code: str
    message: str
    where: str | None = None

    def line(self) -> str:
        return f"[{self.code}] {self.message}"


class GateView(Struct, frozen=True, omit_defaults=True):
    """What a gate says, and what to do about it."""

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
    agreement: AgreementState
    stakes: str
    depends_on: list[str]
    iteration: int
    max_iterations: int
    next: str
    tampered: list[str]
    """Fields of the plan that say something else than the ledger."""


class Jobs(ToolAnswer, frozen=True):
    """A page of jobs."""

    project: str
    title: str
    agreement: AgreementState
    counts: dict[str, int]
    jobs: list[ListedJob]
    total: int
    """How many jobs there are with this status, on all pages."""
    next_offset: int | None
    problems: list[ReasonView]
    """What is wrong with some of them; the first few."""
    problem_count: int

    def short(self) -> str:
        lines = [f"{self.project} ({self.agreement}): {self.total} job(s)"]
        for job in self.jobs:
            step = f"; next: {job.next}" if job.next else ""
            lines.append(f"{job.id} {job.status}, {job.agreement}: {job.title}{step}")
        if self.next_offset is not None:
            lines.append(f"There are more, from offset {self.next_offset}.")
        if self.problem_count:
            lines.append(f"{self.problem_count} problem(s), such as:")
        return _joined(*lines, *(problem.line() for problem in self.problems))


class RequirementView(Struct, frozen=True):
    """One thing that a job has to show, how it is checked, and how far it is shown."""

    name: str
    text: str
    check: CheckKind
    how: str
    state: State
    why: list[str]


class OutputFile(Struct, frozen=True):
    """A file that the job puts out."""

    path: str
    state: str
    changed: bool


class ContractChange(Struct, frozen=True):
    """What stands in the plan now and was agreed otherwise."""

    kind: ChangeKind
    field: str
    before: str | None
    after: str | None
    where: str
    voids: bool


class ContractView(ToolAnswer, frozen=True):
    """What was agreed; where nobody has agreed yet, what would be."""

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
    """Why it rests: what is in the way, or what a person was asked."""
    next: str
    next_action: str

    def short(self) -> str:
        lines = [f"{self.id} {self.status}, contract {self.contract.state}: {self.title}"]
        lines += [
            f"{requirement.name} {requirement.state} ({requirement.how}): {requirement.text}"
            for requirement in self.needs
        ]
        return _joined(*lines, *_reasons(self.gates), f"next: {self.next}")


class CheckAnswer(ToolAnswer, frozen=True):
    """Whether a job may be completed now."""

    job: str
    status: Status
    done: bool
    """It is done, and what it was done on still stands."""
    may_complete: bool
    iteration: int
    max_iterations: int
    score: int
    target: int
    gates: list[GateView]
    next: str
    next_action: str

    def short(self) -> str:
        if self.done:
            return f"{self.job} is done."
        verdict = "may be completed" if self.may_complete else "may not be completed"
        return _joined(f"{self.job} {verdict}.", *_reasons(self.gates), f"next: {self.next}")


class EvidenceItem(Struct, frozen=True, omit_defaults=True):
    """One piece of evidence. ``output`` is the end of what the command said."""

    name: str
    evidence: str
    passed: bool
    reused: bool
    """Nothing that it depends on has changed, so it was not run again."""
    told: str
    needs_human: bool = False
    """A judge was asked whose votes don't agree."""
    exit_code: int | None = None
    tests: dict[str, float | None] = {}
    output: str = ""


class EvidenceAnswer(ToolAnswer, frozen=True):
    """What the gate saw."""

    job: str
    passed: bool
    runs: list[EvidenceItem]
    next: str

    def short(self) -> str:
        lines = [f"{'✓' if run.passed else '✗'} {run.name}: {run.evidence}: {run.told}" for run in self.runs]
        outputs = [run.output for run in self.runs if run.output and not run.passed]
        return _joined(*lines, *outputs, f"next: {self.next}")


class CompletionAnswer(ToolAnswer, frozen=True):
    """What became of an attempt to complete a job. There is a promise exactly when it is done."""

    job: str
    done: bool
    status: Status
    iteration: int
    max_iterations: int
    promise: str | None
    receipt: str | None
    repeated: bool
    """It was done before and still is."""
    gates: list[GateView]
    next: str
    cascade: list[str]
    """What is above the job and is done with it."""
    invalidated: list[str]
    """Jobs that were done on what has changed now, and are not done any more."""

    def short(self) -> str:
        if self.promise is not None:
            return f"{self.promise}\nreceipt: {self.receipt}"
        head = f"{self.job} is not done; iteration {self.iteration} of {self.max_iterations}, {self.status}."
        return _joined(head, *_reasons(self.gates), f"next: {self.next}")


class GivenLesson(Struct, frozen=True):
    """What an earlier job has learned, in its words: advice to weigh, not an instruction."""

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
    """Lessons that are quoted in its plan now; each wants an answer (donewhen lessons used, or not-relevant)."""

    def short(self) -> str:
        head = f"{self.job} is {self.status}." if self.started else f"{self.job} was not started."
        lessons = (f"lesson {lesson.id}, quoted in the plan, wants an answer" for lesson in self.lessons)
        return _joined(head, *(reason.line() for reason in self.reasons), *lessons, f"next: {self.next}")


class RestAnswer(ToolAnswer, frozen=True):
    """A job that waits for a person."""

    job: str
    status: Status
    reason: str
    next: str

    def short(self) -> str:
        return f"{self.job} is {self.status}: {self.reason}\nnext: {self.next}"


class NextStep(ToolAnswer, frozen=True):
    """The one next thing to do; without a job, which one to start."""

    job: str | None
    next: str
    next_action: str
    gates: list[GateView]
    ready: list[str]

    def short(self) -> str:
        return _joined(*([self.job] if self.job else []), *_reasons(self.gates), f"next: {self.next}")


class ReadyJob(Struct, frozen=True):
    """A job that can start."""

    id: str
    title: str


class ReadyJobs(ToolAnswer, frozen=True):
    """What can start now, and how the rest follows."""

    ready: list[ReadyJob]
    waves: list[list[str]]
    critical_path: list[str]
    hours: float | None
    """What it takes, by the estimates; None where they are not numbers to count with."""

    def short(self) -> str:
        return _joined(*(f"{one.id}: {one.title}" for one in self.ready)) or "Nothing can start now."


def _reasons(gates: list[GateView]) -> Iterator[str]:
    return (f"{gate.gate}: {reason.line()}" for gate in gates for reason in gate.reasons)


def _joined(*lines: str) -> str:
    return "\n".join(lines)
