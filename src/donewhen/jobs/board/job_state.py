"""The state of a job, the main reason for it, and the next step: the one place that decides them.

Everything that shows a job or acts on one gets them from here. ``own_state`` looks at the job alone, and ``in_context``
at its project and its dependencies. What is known about the work comes from an evaluation: of now
(``gates/job_view.py``), or the last one in the ledger (``recorded_state.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from donewhen.jobs.contract.agreement import AgreementState
from donewhen.jobs.ledger.gate_results import GateCode

StateWord = Literal[
    "record_broken",
    "tampered",
    "cancelled",
    "voided",
    "not_agreed",
    "done",
    "out_of_budget",
    "blocked",
    "asked",
    "disputed",
    "waiting",
    "ready",
    "no_longer_done",
    "needs_person",
    "completable",
    "in_progress",
]

STATES: dict[StateWord, str] = {
    "record_broken": "The job's ledger fails its integrity check, or another version of donewhen wrote it.",
    "tampered": "A plan field that donewhen writes was edited by hand.",
    "cancelled": "A person cancelled the job.",
    "voided": "Terms of the job or of its project were loosened or removed after they were agreed.",
    "not_agreed": "Nobody has agreed to the job or to its project yet.",
    "done": "The job is done, and its completion is still valid.",
    "out_of_budget": "All iterations are used up; a person has to decide.",
    "blocked": "The job was set aside; a person has to remove what blocks it.",
    "asked": "The job was set aside with a question to a person.",
    "disputed": "The agent disputes a refusal; a person has to decide.",
    "waiting": "A job that this one depends on is not done.",
    "ready": "The job is agreed and can start.",
    "no_longer_done": "The job was done, but its completion is no longer valid.",
    "needs_person": "Only a person's decision is missing: on a criterion that people check, on a judge's verdict, on "
    "changes outside the work area, on lines of the work, or on evidence that is weaker than agreed.",
    "completable": "All gates are open.",
    "in_progress": "The job was started, and something is missing, or nothing was evaluated since.",
}
"""What each state means, in the order in which they are tried."""

AGREEMENT_CODES: dict[AgreementState, GateCode] = {
    "proposed": GateCode.NOT_AGREED_YET,
    "unsealed": GateCode.AGREEMENT_UNSEALED,
    "voided": GateCode.AGREEMENT_VOIDED,
}

_CONTEXT_CODES = frozenset(
    {
        GateCode.NOT_AGREED_YET,
        GateCode.AGREEMENT_UNSEALED,
        GateCode.AGREEMENT_VOIDED,
        GateCode.BUDGET_EXCEEDED,
        GateCode.CANCELLED,
        GateCode.NOT_STARTED,
        GateCode.DEPENDENCY_OPEN,
        GateCode.DEPENDENCY_INVALID,
        GateCode.DEPENDENCY_MISSING,
        GateCode.DEPENDENCY_CYCLE,
        GateCode.RECORD_TAMPERED,
        GateCode.RECORD_BROKEN,
        GateCode.OTHER_VERSION,
    }
)
"""Reasons that are known without an evaluation, so that a recorded evaluation does not decide about them."""

FOR_PERSON = frozenset(
    {
        GateCode.NEEDS_HUMAN,
        GateCode.OUTSIDE_WORK_AREA,
        GateCode.TESTS_CHANGED,
        GateCode.ENVIRONMENT_CHANGED,
        GateCode.SIGNS_FOUND,
        GateCode.RUN_FLAKY,
        GateCode.EVIDENCE_WEAK,
    }
)
"""Reasons that only a person can decide about."""

OF_MACHINE = frozenset({GateCode.PROGRAM_MISSING, GateCode.JUDGE_UNREACHABLE, GateCode.MACHINE_OVERLOADED})
"""Reasons that say nothing about the work, and that no person's decision removes."""

_PAUSES: Mapping[str, StateWord] = {"block": "blocked", "ask": "asked", "dispute": "disputed"}
_FIXED: frozenset[StateWord] = frozenset({"record_broken", "tampered", "cancelled"})
"""States that no other job and no agreement can change."""
_NEEDS_OTHERS: frozenset[StateWord] = frozenset({"ready", "needs_person", "completable", "in_progress"})
_STEPS: Mapping[str, str] = {
    GateCode.UPSTREAM_CHANGED: "donewhen start {job}",
    GateCode.NOT_STARTED: "donewhen start {job}",
    GateCode.CRITERION_STALE: "donewhen run {job}",
    GateCode.CRITERION_NOT_SHOWN: "donewhen run {job}",
    GateCode.COMMAND_NOT_PASSED: "donewhen run {job}",
    GateCode.EXECUTION_NOT_LOGGED: "donewhen run {job}",
    GateCode.LESSON_NOT_CAPTURED: "donewhen lessons add --job {job}",
    GateCode.NEEDS_HUMAN: "donewhen review",
    GateCode.OUTSIDE_WORK_AREA: "donewhen review",
    GateCode.TESTS_CHANGED: "donewhen review",
    GateCode.ENVIRONMENT_CHANGED: "donewhen agree {job} --env",
    GateCode.SIGNS_FOUND: "donewhen review",
    GateCode.RUN_NOT_TRUSTED: "donewhen why {job}",
    GateCode.RUN_FLAKY: "donewhen review",
    GateCode.EVIDENCE_WEAK: "donewhen why {job}",
    GateCode.PROGRAM_MISSING: "donewhen complete {job}",
    GateCode.JUDGE_UNREACHABLE: "donewhen complete {job}",
    GateCode.MACHINE_OVERLOADED: "donewhen complete {job}",
    GateCode.SCORE_TOO_LOW: "donewhen reward {job} --explain",
    GateCode.GATE_ERROR: "DONEWHEN_DEBUG=1 donewhen next {job}",
    GateCode.RECORD_BROKEN: "donewhen audit",
    GateCode.OTHER_VERSION: "donewhen audit",
    GateCode.RECORD_TAMPERED: "donewhen audit",
    GateCode.DEPENDENCY_OPEN: "donewhen ready",
    GateCode.DEPENDENCY_INVALID: "donewhen ready",
    GateCode.DEPENDENCY_MISSING: "donewhen ready",
    GateCode.DEPENDENCY_CYCLE: "donewhen ready",
}


@dataclass(frozen=True)
class JobState:
    """A job's state, the code of the main reason if there is one, and the next step."""

    word: StateWord
    code: GateCode | None
    next: str


class KnownState(NamedTuple):
    """What is known about a job by itself. A tuple, because a survey makes one for each of thousands of jobs."""

    status: str = "planned"
    """According to the ledger."""
    iteration: int = 0
    started: bool = False
    completed: bool = False
    invalid: bool = False
    """Whether the completion is no longer valid, as far as that was checked."""
    pause: str = ""
    """The decision that set it aside (block, ask or dispute), if nothing has happened since."""
    auto_blocked: bool = False
    unblocked: bool = False
    """Whether an accepted approver has decided since the iterations were used up."""
    broken: str = ""
    """The code of what is wrong with the ledger; empty if nothing is."""
    closed: Sequence[str] | None = None
    """The reason codes of an evaluation, in the order of the gates; None if there is none that still applies."""
    next: str | None = None
    """The next command of the first gate that was closed in that evaluation."""


def step_for(code: str, job: str) -> str:
    """The command that helps with a reason, if nothing more is known than its code."""
    return _STEPS.get(code, "donewhen why {job}").format(job=job)


def agreement_step(voided: bool, job: str | None) -> str:
    """The command for an agreement that is missing or void: of a job, or without ``job`` of the project."""
    verb = "contract diff" if voided else "agree"
    return f"donewhen {verb} {job}" if job else f"donewhen {verb}"


def raise_budget_step(job: str, limit: int, iteration: int) -> str:
    """The command with which a person allows another iteration."""
    return f'donewhen decide {job} --raise-budget {max(limit, iteration) + 1} --reason "…"'


def is_out_of_budget(known: KnownState, limit: int) -> bool:
    """Whether the iterations are used up, and nobody has decided since."""
    return (known.auto_blocked or known.iteration > limit) and not known.unblocked


def own_state(job: str, known: KnownState, limit: int, agreement: AgreementState, *, tampered: bool) -> JobState:
    """The state of a job by itself: as if its project were agreed and its dependencies done."""
    if known.broken:
        return JobState("record_broken", GateCode(known.broken), "donewhen audit")
    # An agreement that was only typed in is tampering, too; agreeing is what helps.
    if tampered and agreement != "unsealed":
        return JobState("tampered", GateCode.RECORD_TAMPERED, "donewhen audit")
    if known.status == "cancelled":
        return JobState("cancelled", GateCode.CANCELLED, "donewhen ready")
    if agreement != "agreed":
        voided = agreement == "voided"
        word: StateWord = "voided" if voided else "not_agreed"
        return JobState(word, AGREEMENT_CODES[agreement], agreement_step(voided, job))
    if known.completed and not known.invalid:
        return JobState("done", None, "donewhen ready")
    if is_out_of_budget(known, limit):
        step = raise_budget_step(job, limit, known.iteration)
        return JobState("out_of_budget", GateCode.BUDGET_EXCEEDED, step)
    if known.pause or known.status == "blocked":
        word = _PAUSES.get(known.pause, "blocked")
        for_person = word in ("asked", "disputed")
        return JobState(word, None, "donewhen review" if for_person else _start_step(job, known, limit))
    if known.status == "planned":
        return JobState("ready", None if known.started else GateCode.NOT_STARTED, _start_step(job, known, limit))
    return _state_of_work(job, known)


def in_context(job: str, own: JobState, project: AgreementState, dependency: GateCode | None) -> JobState:
    """The state of a job with its project and its dependencies; ``dependency`` is the reason of the first that is not
    done."""
    if own.word in _FIXED:
        return own
    if project != "agreed" and (project == "voided" or own.word != "voided"):
        voided = project == "voided"
        # The difference of the project is not shown with that of a job; agreeing to a job includes its project.
        step = agreement_step(voided, None if voided else job)
        return JobState("voided" if voided else "not_agreed", AGREEMENT_CODES[project], step)
    if dependency is None:
        return own
    if own.word in _NEEDS_OTHERS:
        return JobState("waiting", dependency, step_for(dependency, job))
    if own.word in ("done", "no_longer_done"):
        return JobState("no_longer_done", dependency, step_for(dependency, job))
    return own


def _start_step(job: str, known: KnownState, limit: int) -> str:
    """The command that starts the job. Starting again counts as an iteration, which may need a decision first."""
    if known.started and known.iteration + 1 > limit and not known.unblocked:
        return raise_budget_step(job, limit, known.iteration)
    return f"donewhen start {job}"


def _state_of_work(job: str, known: KnownState) -> JobState:
    """The state of a job of which only the work is open."""
    word: StateWord = "no_longer_done" if known.invalid else "in_progress"
    if known.closed is None:
        # Whether it is still done is found out by trying.
        return JobState(word, None, f"donewhen {'complete' if known.invalid else 'next'} {job}")
    closed = [GateCode(code) for code in known.closed if code not in _CONTEXT_CODES]
    if not closed:
        return JobState("no_longer_done" if known.invalid else "completable", None, f"donewhen complete {job}")
    if waits_for_person(closed):
        code = next(code for code in closed if code in FOR_PERSON)
        # The command of the gate names the criterion.
        exact = known.next if code == GateCode.EVIDENCE_WEAK == closed[0] and len(closed) == len(known.closed) else None
        return JobState("needs_person", code, exact or step_for(code, job))
    # The command of the first closed gate is more exact, but other reasons may have come first in the evaluation.
    step = known.next if len(closed) == len(known.closed) else None
    if known.invalid and closed[0] in FOR_PERSON:
        # Nobody can be asked before the checks have run again.
        step = f"donewhen complete {job}"
    return JobState(word, closed[0], step or step_for(closed[0], job))


def waits_for_person(codes: Sequence[str]) -> bool:
    """Whether only a person's decision is missing: on an undecided judge's verdict, or on changes outside the work."""
    return bool(FOR_PERSON.intersection(codes)) and {*codes} <= {*FOR_PERSON, GateCode.SCORE_TOO_LOW}


def is_hindered_by_machine(codes: Collection[str]) -> bool:
    """Whether nothing else is missing than what the machine kept from being checked, and what follows from that."""
    follows = (GateCode.SCORE_TOO_LOW, GateCode.EXECUTION_NOT_LOGGED)
    return bool(OF_MACHINE.intersection(codes)) and {*codes} <= {*OF_MACHINE, *FOR_PERSON, *follows}
