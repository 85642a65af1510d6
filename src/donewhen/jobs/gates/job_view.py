"""The view of a job: state, gates, reasons, evidence, next step and history, computed once and rendered everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.job_state import JobState, KnownState, StateWord, in_context, own_state
from donewhen.jobs.board.recorded_state import history_state
from donewhen.jobs.board.validity import ValidityChecker
from donewhen.jobs.board.views import ViewFact
from donewhen.jobs.evidence.failures import failed_file_checks
from donewhen.jobs.gates.dependency_gate import dependency_reasons
from donewhen.jobs.gates.evaluation import Evaluation, evaluate
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.gates.facts import Facts, facts_of
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Decided
from donewhen.jobs.ledger.gate_results import GateCode, GateReason, GateResult
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import History
from donewhen.jobs.record.words_of_people import words_of_people

Rest = Literal["done", "cancelled", "out_of_budget", "set_aside", "needs_person"]


@dataclass(frozen=True)
class JobView:
    """A job as it is now. The command line, the MCP server, the pages, the plan and the stop hook all show this."""

    facts: Facts
    evaluation: Evaluation
    completion: Entry | None
    """The completion, if it is still valid."""
    state: JobState

    @property
    def job(self) -> Job:
        return self.facts.job

    @property
    def word(self) -> StateWord:
        return self.state.word

    @property
    def code(self) -> GateCode | None:
        return self.state.code

    @property
    def next(self) -> str:
        """The next step: one command."""
        return self.state.next

    @property
    def gates(self) -> tuple[GateResult, ...]:
        return self.evaluation.gates

    @property
    def reasons(self) -> tuple[GateReason, ...]:
        return self.evaluation.reasons

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing and is no reason against the job."""
        return self.evaluation.notes

    @property
    def reason(self) -> GateReason | None:
        """The reason that the state is about; None if the state is none that a gate gives."""
        return next((reason for reason in self.reasons if reason.code == self.code), None)

    @property
    def evidence(self) -> tuple[EvidenceStatus, ...]:
        return self.facts.evidence

    @property
    def history(self) -> History:
        return self.facts.history

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The events of the job, oldest first."""
        return self.facts.entries

    @property
    def done(self) -> bool:
        return self.completion is not None

    @property
    def pause(self) -> Decided | None:
        """The decision that set the job aside, if it still is."""
        return self.history.waiting.read_as(Decided) if self.history.waiting is not None else None

    @property
    def rest(self) -> Rest | None:
        """Why an agent may leave the job alone; None if it may not. The state may be about something else: a job that
        waits for an answer can have a void contract, too."""
        history = self.history
        if self.done:
            return "done"
        if history.status == "cancelled":
            return "cancelled"
        if history.auto_blocked and not history.decided_since_block:
            return "out_of_budget"
        if history.waiting is not None:
            return "set_aside"
        # An answer is for the agent: it has to go on, or to say why it can't.
        return "needs_person" if self.evaluation.waits_for_person and history.answer is None else None

    @property
    def words_of_people(self) -> tuple[str, ...]:
        """What people have said about the job since it was last completed, oldest first."""
        seal = self.facts.project_agreement.seal
        policy = Policy.of(seal.terms if seal else None)
        return tuple(said.text for said in words_of_people(self.job.id, self.entries, policy))


def view_job(workspace: Workspace, job: Job, found: ViewFact | None = None) -> JobView:
    """Evaluate the gates of a job now. Runs and writes nothing. For ``found`` see ``facts_of``."""
    facts = facts_of(workspace, job, found)
    evaluation = evaluate(facts)
    completion = completion_in(workspace, facts)
    return JobView(facts, evaluation, completion, state_of(facts, evaluation, done=completion is not None))


def state_of(facts: Facts, evaluation: Evaluation, *, done: bool) -> JobState:
    """The state of a job after an evaluation; ``done`` is whether its completion is still valid."""
    known = known_state(facts, evaluation)
    known = known._replace(invalid=known.completed and not done)
    own = own_state(facts.job.id, known, facts.job.max_iterations, facts.agreement.state, tampered=bool(facts.tampered))
    dependency = next((reason.code for reason in dependency_reasons(facts)), None)
    return in_context(facts.job.id, own, facts.project_agreement.state, dependency)


def known_state(facts: Facts, evaluation: Evaluation) -> KnownState:
    """What an evaluation says about the state of a job."""
    broken = GateCode.RECORD_BROKEN if facts.chain_breaks or facts.project_breaks else ""
    if facts.other_versions and not broken:
        broken = GateCode.OTHER_VERSION
    return history_state(facts.history, broken=broken)._replace(
        closed=tuple(reason.code.value for reason in evaluation.reasons), next=evaluation.next
    )


def completion_in(workspace: Workspace, facts: Facts) -> Entry | None:
    """The completion entry of a job that is done and still valid, else None."""
    completed = facts.history.completed
    if completed is None or facts.job.status != "done":
        return None
    agreed = facts.agreement.state == facts.project_agreement.state == "agreed"
    intact = agreed and facts.record_intact
    seal = facts.project_agreement.seal
    valid = ValidityChecker(workspace, Policy.of(seal.terms if seal else None)).of(facts.job.id).state == "done"
    # What the agent wrote as evidence was looked at when the job was completed, and decides nothing later.
    files_exist = all(file.state == "good" for file in facts.outputs)
    refuted = refutation(workspace, facts.job, completed, facts.evidence)
    return completed if intact and valid and files_exist and not refuted else None


def refutation(workspace: Workspace, job: Job, completed: Entry, evidence: Sequence[EvidenceStatus]) -> str:
    """Why a completion is no longer true by the checks of the job: one was run again and fails, or is a file check,
    which costs nothing to look at, and fails now. Empty if none does."""
    for status in evidence:
        if status.state == "failed" and status.entry is not None and status.entry.seq > completed.seq:
            why = one_line(", ".join(status.why), 200)
            return f"{status.requirement.name} was checked again and fails{f': {why}' if why else ''}"
    stale = (status.requirement for status in evidence if status.state == "stale")
    return next(failed_file_checks(workspace, job, stale), "")


def why_no_longer_true(workspace: Workspace, facts: Facts) -> str:
    """Why the completion of a job is no longer true, by its own work; empty if it was never done, or for other
    reasons."""
    completed = facts.history.completed
    if completed is None:
        return ""
    seal = facts.project_agreement.seal
    validity = ValidityChecker(workspace, Policy.of(seal.terms if seal else None)).of(facts.job.id)
    if validity.state == "invalid":
        return validity.why
    return refutation(workspace, facts.job, completed, facts.evidence)


def plan_note(evaluation: Evaluation, state: JobState) -> str:
    """What a plan shows as the next action: the first of the nine conditions that fails, and the next step."""
    return f"{evaluation.next_action} (next: {state.next})"
