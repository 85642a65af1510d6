"""Completing a job. Nothing else writes `status: done` or issues a promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from donewhen.foundation.plain_text import join_limited
from donewhen.jobs.board.job_state import JobState, is_hindered_by_machine
from donewhen.jobs.board.validity import ValidityChecker
from donewhen.jobs.board.views import open_jobs_on_dashboard, update_stale_views
from donewhen.jobs.contract.agreeing import seal_tightened_job, seal_tightened_terms
from donewhen.jobs.contract.agreement import Agreement, approval_policy, project_agreement
from donewhen.jobs.contract.inputs import declared_manifest, output_manifest, upstream_manifest
from donewhen.jobs.evidence.conditions import room_facts
from donewhen.jobs.evidence.probing import Probing
from donewhen.jobs.evidence.requirements import Requirement
from donewhen.jobs.gates.evaluation import Evaluation, evaluate
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.gates.facts import Facts, facts_of
from donewhen.jobs.gates.job_view import completion_in, plan_note, state_of, why_no_longer_true
from donewhen.jobs.gates.shown_strength import recorded_strength
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.entry_content import CommandRun, Completed, Files, JudgeRun, Overridden, Ran, RecordedStrength
from donewhen.jobs.ledger.gate_program import this_gate
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.lessons.lesson_recording import finish_interrupted_capture_if_possible
from donewhen.jobs.lifecycle.invalidation import InvalidatedJob, invalidate_jobs
from donewhen.jobs.lifecycle.project_criteria import (
    check_project,
    has_checks,
    unmet_after_changes,
    unmet_project_criteria,
)
from donewhen.jobs.lifecycle.promise import Promise, promise_of
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.snapshot import Snapshot, snapshot_of
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.gone_back import lost_chains, require_no_step_back
from donewhen.jobs.record.history import History, history_of
from donewhen.jobs.record.parents import (
    chains_without_plan,
    ids_of_places,
    mark_parents_in_progress,
    parent_plans,
)
from donewhen.jobs.record.projection import mismatches, rework_fields
from donewhen.jobs.record.writing import Writing, operation, writing
from donewhen.jobs.room.basis import basis_of
from donewhen.jobs.room.blobs import ChangedContentError

_NOT_ABOUT_WORK = frozenset(
    {
        GateCode.BUDGET_EXCEEDED,
        GateCode.RECORD_BROKEN,
        GateCode.OTHER_VERSION,
        GateCode.NOT_AGREED_YET,
        GateCode.AGREEMENT_UNSEALED,
        GateCode.NOT_STARTED,
    }
)
_MAX_TRIES = 3
_DONE = JobState("done", None, "donewhen ready")


class Completion(NamedTuple):
    """The result of an attempt to complete a job. There is a promise exactly if the job is done."""

    job: Job
    evaluation: Evaluation | None
    promise: Promise | None
    entry: Entry
    state: JobState
    """The state of the job after the attempt."""
    repeated: bool = False
    """Whether it was already done, so that the same promise is returned again."""
    cascade: tuple[Promise, ...] = ()
    invalidated: tuple[InvalidatedJob, ...] = ()
    unmet: tuple[str, ...] = ()
    """The project's own criteria that are not met, if they are all that is missing for its promise."""
    no_longer_true: str = ""
    """Why an earlier completion of the job did not hold any more; empty if there was none."""

    @property
    def done(self) -> bool:
        return self.promise is not None

    @property
    def strength(self) -> Mapping[str, RecordedStrength]:
        """How strong the evidence for each criterion was, if the job is done."""
        content = self.entry.content
        return content.strength if isinstance(content, Completed) else {}


def complete(
    workspace: Workspace,
    name: str,
    by: Actor,
    *,
    on_progress: Callable[[Requirement], None] = lambda _: None,
    probing: Probing | None = None,
) -> Completion:
    """Complete a job: collect the evidence, evaluate every gate, and if all pass, write `done` and issue the promise.

    With ``probing``, tests that have passed are probed first, which says how much they are worth.

    A refusal is recorded and counts as an iteration; a job that has no iterations left becomes blocked.
    """
    with operation(workspace, create=True):
        finish_interrupted_capture_if_possible(workspace)
        return _complete(workspace, name, by, on_progress, probing)


def _complete(
    workspace: Workspace,
    name: str,
    by: Actor,
    on_progress: Callable[[Requirement], None],
    probing: Probing | None,
) -> Completion:
    before = snapshot_of(workspace)
    job = before.job(name)
    earlier = valid_completion(before, job)
    # Before anything is run or written: an entry after an older one would be in the way of bringing the others back.
    require_no_step_back(before, job.id, lost_only=earlier is not None)
    require_no_step_back(before, before.project().id, lost_only=True)
    if earlier is not None:
        return _repeat_completion(before, job, earlier, by, on_progress)
    seal_tightened_terms(before, job, by)
    tries, verdict = _MAX_TRIES, None
    while verdict is None:
        tries -= 1
        verdict = _decide(before, job, by, on_progress, probing, is_last=tries == 0)
        if verdict is None:
            # It has to be about what is there.
            before = snapshot_of(before.live)
            job = before.job(job.id)
    plan, facts, evaluation, entry = verdict.plan, verdict.facts, verdict.evaluation, verdict.entry
    job, earlier, no_longer_true = plan.job, verdict.earlier, verdict.no_longer_true
    after, policy = plan.snapshot.after_writing(job), approval_policy(plan.snapshot)
    if earlier is not None:
        return _repeat_completion(plan.snapshot, job, earlier, by, on_progress)
    if not evaluation.passed:
        if facts.history.completed is not None:
            mark_parents_in_progress(after, job, policy, by)
        state = _state_after(after, job, facts, evaluation, policy)
        return Completion(job, evaluation, None, entry, state, no_longer_true=no_longer_true)
    outputs = earlier_outputs(after, job, entry)
    unchanged = outputs is None or outputs == entry.read_as(Completed).outputs
    invalidated = () if unchanged else invalidate_jobs(after, policy, by)
    if not unchanged:
        # They were done with other content.
        mark_parents_in_progress(after, job, policy, by, begin=False)
    for invalid in invalidated:
        mark_parents_in_progress(after, after.job(invalid.id), policy, by)
    project = (facts.project, facts.project_agreement)
    cascade, unmet = _complete_parents(after, job, *project, policy, by, on_progress)
    promise = promise_of(job.id, entry)
    return Completion(
        job,
        evaluation,
        promise,
        entry,
        _DONE,
        cascade=cascade,
        invalidated=invalidated,
        unmet=unmet,
        no_longer_true=no_longer_true,
    )


@dataclass(frozen=True)
class _Verdict:
    """What an attempt has recorded, under the lock."""

    plan: Writing
    facts: Facts
    evaluation: Evaluation
    entry: Entry
    earlier: Entry | None
    """The completion that another process has recorded meanwhile, or that is valid again."""
    no_longer_true: str


def _decide(
    before: Snapshot,
    job: Job,
    by: Actor,
    on_progress: Callable[[Requirement], None],
    probing: Probing | None,
    *,
    is_last: bool,
) -> _Verdict | None:
    """Collect the evidence, evaluate every gate and record the result. None if files have changed meanwhile, so that
    nothing was recorded; the last attempt is recorded anyway."""
    try:
        runs = collect_evidence(before, job, by, on_progress=on_progress, lenient=True, probing=probing)
    except ChangedContentError:
        if is_last:
            raise
        return None
    if not is_last and not all(run.entry.read_as(Ran).settled for _, run in runs):
        return None
    with writing(before.live, job.path, job.id) as plan:
        seal_tightened_job(plan, by)
        found = update_stale_views(plan.snapshot, plan.job)
        # Another process may have completed it in the meantime.
        facts = facts_of(plan.snapshot, plan.job, found)
        earlier = completion_in(plan.snapshot, facts)
        changing = earlier is None and _changed_meanwhile(facts, [run.entry for _, run in runs])
        if changing and not is_last:
            return None
        evaluation = evaluate(facts)
        no_longer_true = "" if earlier is not None else why_no_longer_true(plan.snapshot, facts)
        require_no_step_back(plan.snapshot, plan.job.id, lost_only=earlier is not None)
        if earlier is not None:
            entry = earlier
        elif evaluation.passed:
            entry = _record_done(plan, facts, evaluation, by)
        else:
            entry = _record_refusal(plan, facts, evaluation, by, changing=changing)
    return _Verdict(plan, facts, evaluation, entry, earlier, no_longer_true)


def _changed_meanwhile(facts: Facts, collected: Sequence[Entry]) -> bool:
    """Whether files have changed while or after checks ran on them in this attempt, so that it shows nothing about what
    is there now. Also a new file counts, which an editor or a build may have written."""
    hashes = {entry.hash for entry in collected}
    return any(status.state == "stale" and status.entry and status.entry.hash in hashes for status in facts.evidence)


def _repeat_completion(
    seen: Snapshot, job: Job, entry: Entry, by: Actor, on_progress: Callable[[Requirement], None]
) -> Completion:
    """Return the same promise again; also complete the parents if nothing else blocks them any more."""
    project, policy = seen.project(), approval_policy(seen)
    cascade: tuple[Promise, ...] = ()
    unmet: tuple[str, ...] = ()
    if history_of(project.id, seen.ledger.read(project.id).entries, policy).completed is None:
        agreement = project_agreement(seen, project)
        cascade, unmet = _complete_parents(seen.after_writing(job), job, project, agreement, policy, by, on_progress)
    promise = promise_of(job.id, entry)
    return Completion(job, None, promise, entry, _DONE, repeated=True, cascade=cascade, unmet=unmet)


def _state_after(workspace: Workspace, job: Job, facts: Facts, evaluation: Evaluation, policy: Policy) -> JobState:
    """The state of a job after a refusal, which may have used up its iterations and has repaired its status."""
    entries = workspace.ledger.read(job.id).entries
    after = facts._replace(
        job=job,
        history=history_of(job.id, entries, policy),
        tampered=mismatches(job.document.fields, entries),
    )
    return state_of(after, evaluation, done=False)


def earlier_outputs(workspace: Workspace, job: Job, entry: Entry) -> Files | None:
    """Return the job's outputs at the last completion before this entry; None if there was none."""
    entries = workspace.ledger.read(job.id).entries
    earlier = [before.content for before in entries if before.seq < entry.seq]
    completions = [content for content in earlier if isinstance(content, Completed)]
    return completions[-1].outputs if completions else None


def evaluation_fields(evaluation: Evaluation, state: JobState, now: str) -> dict[str, Value]:
    """Return the plan fields that an evaluation writes; ``state`` is the state of the job after it."""
    truth = evaluation.truth
    return {
        "reward_last_score": evaluation.score.total,
        "reward_last_eval_at": now,
        "reward_last_next_action": plan_note(evaluation, state),
        "truth_last_status": "pass" if truth.passed else "fail",
        "truth_last_checked_at": now,
        "truth_last_failures": [reason.message for reason in truth.reasons],
        "updated_at": now,
    }


def evaluation_data(evaluation: Evaluation) -> dict[str, Any]:
    """Return the part of an evaluation that is kept in the ledger."""
    return {
        "score": evaluation.score.total,
        "gates": {gate.gate: [reason.code.value for reason in gate.reasons] for gate in evaluation.gates},
        "next": evaluation.next,
    }


def judges_of_criteria(facts: Facts) -> dict[str, Any]:
    """Return who decided each judged criterion: the guidance step of the judge, or the person who overrode it."""
    judged: dict[str, Any] = {}
    for status in facts.evidence:
        if status.requirement.check.kind != "judge" or status.entry is None:
            continue
        run = status.entry.content
        step = run.guidance_step if isinstance(run, JudgeRun) else None
        overridden = isinstance(run, Overridden)
        judged[status.requirement.name] = {
            "mission": status.requirement.check.text,
            "state": status.state,
            "entry": status.entry.hash,
            **({"person": status.entry.by.name} if overridden else {"guidance_step": step}),
        }
    return {"judged": judged} if judged else {}


def promise_on_record(chain: str, history: History) -> Promise | None:
    """Return the promise in the ledger, without checking that it is still valid (see ``verify_promise``)."""
    return None if history.completed is None else promise_of(chain, history.completed)


def valid_completion(workspace: Workspace, job: Job) -> Entry | None:
    """Return the completion entry of a job that is done and still valid, else None."""
    snapshot = snapshot_of(workspace)
    history = history_of(job.id, snapshot.ledger.read(job.id).entries, approval_policy(snapshot))
    if history.completed is None or job.status != "done":
        return None
    return completion_in(snapshot, facts_of(snapshot, job))


def _record_done(plan: Writing, facts: Facts, evaluation: Evaluation, by: Actor) -> Entry:
    job, workspace = facts.job, plan.snapshot
    data: dict[str, Any] = {
        **evaluation_data(evaluation),
        **judges_of_criteria(facts),
        "outputs": dict(_outputs_of(workspace, job)),
        "upstream": dict(upstream_manifest(workspace, job).files),
        "declared": dict(declared_manifest(workspace, job).files),
        "terms": facts.agreement.seal.hash if facts.agreement.seal else None,
        "truth_mode": job.truth_mode,
        **_work_of(workspace, job, facts),
        **_strength_of(facts),
    }
    return _write_done(plan, data, evaluation_fields(evaluation, _DONE, workspace.now()), by)


def _outputs_of(workspace: Workspace, job: Job) -> Mapping[str, str | None]:
    """The outputs that were judged."""
    if basis_of(workspace, job) is None:
        return output_manifest(workspace, job).files
    return room_facts(workspace, job).outputs


def _work_of(workspace: Workspace, job: Job, facts: Facts) -> dict[str, Any]:
    """The files of the work that were judged, for the rooms of later jobs, and what the room was made of."""
    if basis_of(workspace, job) is None:
        return {}
    work = dict(room_facts(workspace, job).work)
    runs = (status.entry.content for status in facts.evidence if status.entry is not None)
    rooms = [run.room for run in runs if isinstance(run, CommandRun) and run.room is not None]
    room = {"room": msgspec.to_builtins(rooms[-1])} if rooms else {}
    return {"work": work, **room}


def _strength_of(facts: Facts) -> dict[str, Any]:
    """How strong the evidence for each criterion was."""
    strength = recorded_strength(facts.evidence)
    return {"strength": strength} if strength else {}


def _write_done(plan: Writing, data: Mapping[str, Any], writes: Mapping[str, Value], by: Actor) -> Entry:
    """Write `status: done`. This is the only place that does."""
    now = plan.snapshot.now()
    done: dict[str, Value] = {**writes, "status": "done", "completed_at": now, "updated_at": now}
    data = {**data, "gate": msgspec.to_builtins(this_gate())}
    return plan.append("completed", data, Approval(by), done)


def _record_refusal(plan: Writing, facts: Facts, evaluation: Evaluation, by: Actor, *, changing: bool) -> Entry:
    job, now = facts.job, plan.snapshot.now()
    # Not counted as an iteration: a job that is not agreed or was not started, a gate that raised an error, a broken
    # record, waiting for a person, checks that the machine could not run, a budget that is already used up. None of
    # them says something about the work.
    codes = {reason.code for reason in evaluation.reasons}
    hindered = is_hindered_by_machine(codes)
    free = evaluation.broken or evaluation.waits_for_person or hindered or changing or bool(codes & _NOT_ABOUT_WORK)
    iteration = facts.history.iteration + (0 if free else 1)
    data: dict[str, Any] = {**evaluation_data(evaluation), **judges_of_criteria(facts)}
    if evaluation.waits_for_person:
        data["waits_for_person"] = True
    if hindered:
        data["hindered"] = True
    begun = facts.history.started is not None or facts.history.completed is not None
    # While only a person is waited for, the attempt that a decision has allowed is not over.
    over = iteration > job.max_iterations and not evaluation.waits_for_person
    used_up = facts.history.status != "cancelled" and over
    status = facts.history.status
    if used_up:
        data["auto_blocked"] = True
        status = "blocked"
    elif begun and status != "cancelled":
        status = "in_progress"
    after = facts.history._replace(status=status, iteration=iteration, completed=None, waiting=None)
    if used_up:
        after = after._replace(auto_blocked=True, decided_since_block=False)
    # Also overwrites a status that was edited by hand.
    writes: dict[str, Value] = {"iteration": iteration, "status": status}
    if facts.history.completed is not None:
        # The earlier completion is no longer valid.
        writes["completed_at"] = ""
    left = tuple(mismatch for mismatch in facts.tampered if mismatch.field not in writes)
    state = state_of(facts._replace(history=after, tampered=left), evaluation, done=False)
    if not free:
        writes |= rework_fields(plan.entries, evaluation.reasons[0].message)
    writes |= evaluation_fields(evaluation, state, now)
    return plan.append("refused", data, Approval(by), writes)


def _complete_parents(
    workspace: Workspace,
    job: Job,
    project: Project,
    agreement: Agreement,
    policy: Policy,
    by: Actor,
    on_progress: Callable[[Requirement], None],
) -> tuple[tuple[Promise, ...], tuple[str, ...]]:
    """Complete the workstream and the project if this was their last open job; return their promises, and what the
    project itself lacks for its own."""
    # The views list the jobs that may be open, so that usually a single check is enough; the ledger decides.
    validities = ValidityChecker(workspace, policy, project=agreement)
    maybe_open = open_jobs_on_dashboard(workspace)
    promises: list[Promise] = []
    for path in parent_plans(workspace, job):
        whole = path == workspace.project_file
        if whole and any(_is_open(validities, name) for name in maybe_open):
            break
        places = ids_of_places(workspace, workspace.places())
        jobs = [name for name, plan in places.items() if plan.is_relative_to(path.parent)]
        # Which workstream a job without a folder belonged to is not known, so it keeps each of them open.
        jobs += chains_without_plan(workspace, places, project.id)
        first = [name for name in jobs if name in maybe_open]
        if any(_is_open(validities, name) and not validities.of(name).refuted for name in (*first, *jobs)):
            break
        if lost := lost_chains(workspace, project.id):
            # Which jobs there were, and how far they had come, is not known.
            return tuple(promises), (f"The record of {join_limited([*lost], 3)} ended later before (donewhen audit)",)
        again = [name for name in jobs if name in validities.gone_on or validities.of(name).refuted]
        # Before the parent is locked: a check may take long.
        unmet = unmet_after_changes(workspace, again, by, on_progress)
        if whole and not unmet and has_checks(project):
            unmet = check_project(workspace, by, on_progress)
        if unmet:
            return tuple(promises), unmet
        promises += _complete_parent(workspace, path, jobs, by)
    return tuple(promises), ()


def _is_open(validities: ValidityChecker, job: str) -> bool:
    return validities.of(job).state not in ("done", "cancelled")


def _complete_parent(workspace: Workspace, path: Path, jobs: Sequence[str], by: Actor) -> Iterator[Promise]:
    """Complete a workstream or project if all its jobs are done or cancelled, and at least one is done."""
    with writing(workspace, path) as parent:
        policy = approval_policy(parent.snapshot)
        completed = history_of(parent.chain_name, parent.entries, policy).completed
        # After a merge, a completion of the other branch does not include the jobs of this one.
        if completed is not None and {*jobs} <= {*completed.read_as(Completed).jobs}:
            return
        validities = ValidityChecker(parent.snapshot, policy)
        states = {name: validities.of(name).state for name in jobs}
        closed = all(state in ("done", "cancelled") for state in states.values()) and "done" in states.values()
        agreed = closed and project_agreement(parent.snapshot, parent.snapshot.project()).state == "agreed"
        if agreed and (path != workspace.project_file or not any(unmet_project_criteria(parent.snapshot))):
            yield promise_of(parent.chain_name, _write_done(parent, {"jobs": states}, {}, by))
