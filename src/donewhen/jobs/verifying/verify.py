"""Run the contract of a base branch again on a branch's work. Evidence from the branch is not used."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from donewhen.config.settings import Settings
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.validity import DependencyFact
from donewhen.jobs.contract.agreement import Seal, current_seal, project_seal
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.verifying.base_branch import Base, base_of, is_shallow
from donewhen.jobs.verifying.branch_changes import claim_of, project_reasons, record_reasons
from donewhen.jobs.verifying.cases import CaseReason, JobCases, Verification, VerificationCase
from donewhen.jobs.verifying.checkouts import (
    ChangedJudgingFile,
    branch_files,
    work_files,
    write_claim_folder,
    write_contract_folder,
)
from donewhen.jobs.verifying.job_cases import AgreedJob, OnProgress, RunTree, case_from_reasons, job_cases
from donewhen.jobs.verifying.judging_files import judging_files_of
from donewhen.jobs.verifying.rooms import Room, make_room, room_notes
from donewhen.jobs.verifying.work_outputs import WorkOutputs, outputs_of


def verify_branch(
    live: Workspace,
    ref: str,
    *,
    commit: str = "HEAD",
    jobs: Sequence[str] = (),
    on_progress: OnProgress = lambda _: None,
) -> Verification:
    """Run the contract of ``ref`` again on the work in ``commit``: for every job that it claims is done, or for the
    given jobs and their dependencies. The working tree is neither judged nor written."""
    base = base_of(live, ref, commit)
    with tempfile.TemporaryDirectory(prefix="donewhen-verify-", ignore_cleanup_errors=True) as folder:
        place = Path(os.path.realpath(folder))
        on_progress("the contract")
        contract = write_contract_folder(base, live, _make_folder(place / "contract"))
        agreed_settings = contract.settings()
        branch = write_claim_folder(base, live, _make_folder(place / "claim"))
        project = contract.project()
        project_file = contract.where(contract.project_file)
        seal = project_seal(contract, project)
        policy = Policy.of(seal.terms if seal else None)
        agreed, unreadable = _agreed_jobs(base, contract, branch, policy)
        chosen = _choose_jobs(agreed, contract, jobs)
        on_progress("the record")
        cases = [
            _contract_case(base, branch, contract, seal, _contract_at_fork(base, branch, place)),
            _record_case(base, branch),
        ]
        trees, changed, room = _trees(base, live, contract, [agreed[name] for name in chosen], place)
        cases += _judging_case(base, changed)
        verified = dict(_verify_jobs(base, branch, policy, trees, agreed, chosen, on_progress))
        rest = [_not_claimed(base, job, asked_for=not jobs) for name, job in agreed.items() if name not in verified]
        every = (*verified.values(), *rest, *unreadable, *_new_jobs(branch, agreed))
    if not any(cases_of_job.claimed for cases_of_job in every):
        cases.append(case_from_reasons("something is verified", "project", [_nothing_verified(base)]))
    found = Verification(ref, base.commit, tuple(cases), every, (), base.inside, project_file, base.head)
    notes = (*_notes(base, changed), *room_notes(base, room, passed=found.passed), *_obsolete_settings(agreed_settings))
    return found._replace(notes=notes)


def _agreed_jobs(
    base: Base, contract: Workspace, branch: Workspace, policy: Policy
) -> tuple[dict[str, AgreedJob], list[JobCases]]:
    agreed: dict[str, AgreedJob] = {}
    unreadable: list[JobCases] = []
    for place in contract.places():
        try:
            job = contract.job_at(place.path)
        except DonewhenError as error:
            reason = CaseReason(error.code, error.message, error.where or contract.where(place.path), error.next_step)
            case = VerificationCase("plan", "gate", "failed", (reason,))
            unreadable.append(JobCases(place.id, place.id, contract.where(place.path), True, (case,)))
            continue
        entries = contract.ledger.read(job.id).entries
        seal = current_seal(job.id, entries, policy)
        known = {entry.hash for entry in entries}
        claim = claim_of(base, branch, job, contract.where(job.path), seal, policy, known)
        done = history_of(job.id, entries, policy).completed is not None
        agreed[job.id] = AgreedJob(job, seal, done, frozenset(known), claim, contract.where(job.path))
    return agreed, unreadable


def _choose_jobs(agreed: Mapping[str, AgreedJob], contract: Workspace, names: Sequence[str]) -> list[str]:
    """The jobs to run again, each after its dependencies."""
    claimed = [name for name, agreed_job in agreed.items() if agreed_job.claim.done]
    wanted = [_job_id(contract, name) for name in names] if names else claimed
    order: dict[str, None] = {}
    waiting = [(name, False) for name in reversed(wanted)]
    visited: set[str] = set()
    while waiting:
        name, after = waiting.pop()
        if after:
            order[name] = None
        elif name not in visited:
            visited.add(name)
            waiting.append((name, True))
            dependencies = agreed[name].job.depends_on
            waiting += [
                (dependency, False)
                for dependency in reversed(dependencies)
                if dependency in agreed and agreed[dependency].claim.done
            ]
    return list(order)


def _job_id(contract: Workspace, name: str) -> str:
    try:
        return contract.job(name).id
    except DonewhenError as error:
        # Without its location, which is a temporary folder.
        raise type(error)(error.message, next_step=error.next_step) from error


def _trees(
    base: Base, live: Workspace, contract: Workspace, chosen: Sequence[AgreedJob], place: Path
) -> tuple[list[RunTree], tuple[ChangedJudgingFile, ...], Room | None]:
    if not chosen:
        return [], (), None
    open_jobs = [agreed_job.job for agreed_job in chosen if not agreed_job.done]
    judges = judging_files_of(base, contract, [agreed_job.job for agreed_job in chosen], open_jobs)
    outputs = outputs_of(base, contract, [agreed_job.job for agreed_job in chosen])
    before = make_room(base, live, _make_folder(place / "base"), base.files, judges, WorkOutputs())
    trees = [RunTree(before.workspace, f"On {base.ref}: ", {})]
    files, changed = work_files(base, contract, judges)
    strict = make_room(base, live, _make_folder(place / "strict"), files, judges, outputs)
    if not changed:
        return [*trees, RunTree(strict.workspace, "", {})], (), strict
    own = make_room(base, live, _make_folder(place / "own"), branch_files(base, contract), judges, outputs)
    trees.append(RunTree(strict.workspace, f"With the tests of {base.ref}: ", {}))
    return [*trees, RunTree(own.workspace, "With the branch's own tests: ", {})], changed, own


def _verify_jobs(
    base: Base,
    branch: Workspace,
    policy: Policy,
    trees: Sequence[RunTree],
    agreed: Mapping[str, AgreedJob],
    chosen: Sequence[str],
    on_progress: OnProgress,
) -> Iterator[tuple[str, JobCases]]:
    states: dict[str, DependencyFact] = {}
    for name in chosen:
        agreed_job = agreed[name]
        where = agreed_job.claim.where
        try:
            cases = tuple(job_cases(base, branch, policy, trees, agreed_job, states, on_progress))
        except DonewhenError as error:
            reason = CaseReason(error.code, error.message, error.where or where, error.next_step)
            cases = (VerificationCase("gates", "gate", "error", (reason,)),)
        except Exception as error:
            if os.environ.get("DONEWHEN_DEBUG"):
                raise
            message = one_line(f"The gate failed with {type(error).__name__}: {error}", 400)
            next_step = GATE_REASONS[GateCode.GATE_ERROR].next_step
            cases = (
                VerificationCase(
                    "gates", "gate", "error", (CaseReason(GateCode.GATE_ERROR, message, where, next_step),)
                ),
            )
        result = JobCases(name, agreed_job.job.title, where, True, cases)
        why = "" if result.passed else "not done when run again"
        states[name] = DependencyFact(name, "done" if result.passed else "invalid", (name,), why)
        yield name, result


def _contract_at_fork(base: Base, branch: Workspace, place: Path) -> Workspace | None:
    """The contract at the fork point; None if that is the base commit or it can't be read."""
    if base.forked is base.files:
        return None
    try:
        return write_contract_folder(
            base._replace(commit=base.fork, files=base.forked), branch, _make_folder(place / "before")
        )
    except DonewhenError:
        return None


def _contract_case(
    base: Base, branch: Workspace, contract: Workspace, seal: Seal | None, before: Workspace | None
) -> VerificationCase:
    if seal is None:
        message = f"Nothing is agreed on {base.ref}, so there is no contract to run."
        where = contract.where(contract.project_file)
        return case_from_reasons(
            "contract", "project", [CaseReason(FindingCode.PROPOSED, message, where, "donewhen agree")]
        )
    try:
        return case_from_reasons("contract", "project", project_reasons(branch, seal, before))
    except DonewhenError as error:
        return case_from_reasons("contract", "project", [_unreadable_reason(branch, error)])


def _record_case(base: Base, branch: Workspace) -> VerificationCase:
    try:
        return case_from_reasons("record", "project", record_reasons(base, branch))
    except DonewhenError as error:
        return case_from_reasons("record", "project", [_unreadable_reason(branch, error)])


def _unreadable_reason(branch: Workspace, error: DonewhenError) -> CaseReason:
    """The reason for a file on the branch that can't be read."""
    where = branch.where(Path(error.where)) if error.where else branch.where(branch.project_file)
    return CaseReason(error.code, error.message, where, error.next_step)


def _judging_case(base: Base, changed: Sequence[ChangedJudgingFile]) -> list[VerificationCase]:
    """Fail if the branch removes test files. The base's tests were run anyway."""
    reasons = [
        CaseReason(
            GateCode.REPORT_TESTS_LOST,
            f"{file.name} judges the work on {base.ref}, but the branch removes it.",
            file.name.removeprefix(base.inside),
            "Restore it, or let a person agree on the base branch that it is an output of the job.",
        )
        for file in changed
        if file.kind == "removed"
    ]
    return [case_from_reasons("tests", "project", reasons)]


def _new_jobs(branch: Workspace, agreed: Mapping[str, AgreedJob]) -> Iterator[JobCases]:
    """Jobs that exist only on the branch, so they are not agreed on the base."""
    for place in branch.places():
        if place.id in agreed:
            continue
        where = branch.where(place.path)
        try:
            job = branch.job_at(place.path)
        except DonewhenError:
            # The audit of the branch reports it.
            continue
        if job.id in agreed:
            continue
        if job.status != "done":
            case = VerificationCase("agreement", "gate", "skipped", text="New on the branch.")
            yield JobCases(job.id, job.title, where, False, (case,))
            continue
        code = FindingCode.NOT_ON_BASE
        message = f"{job.id} is done on the branch, but it is not agreed on the base branch."
        yield JobCases(
            job.id,
            job.title,
            where,
            True,
            (case_from_reasons("agreement", "gate", [CaseReason(code, message, where, FINDINGS[code].next_step)]),),
        )


def _not_claimed(base: Base, job: AgreedJob, *, asked_for: bool) -> JobCases:
    """A job that is not claimed done: it is skipped, which is not a pass. Changes to its terms are reported."""
    message = f"Not run: its status on the branch is {job.claim.status}."
    if job.claim.done and not asked_for:
        message = "Not run: it is done on the branch, but was not selected."
    elif job.done:
        message = f"Not run: it was done on {base.ref}, but its status on the branch is {job.claim.status}."
    cases = [VerificationCase("not run", "gate", "skipped", text=message)]
    if job.claim.reasons:
        cases.insert(0, case_from_reasons("agreement", "gate", job.claim.reasons))
    return JobCases(job.job.id, job.job.title, job.claim.where, False, tuple(cases))


def _notes(base: Base, changed: Sequence[ChangedJudgingFile]) -> Iterator[CaseReason]:
    if not base.fork and is_shallow(base):
        message = f"This is a shallow clone, so it is unknown whether the branch contains all commits of {base.ref}."
        yield CaseReason(FindingCode.GIT, message, "", "git fetch --unshallow")
    elif base.is_behind:
        message = f"The branch lacks commits of {base.ref}; files that it did not change were taken from there."
        yield CaseReason(FindingCode.GIT, message, "", f"git merge {base.ref}")
    for file in changed:
        if file.kind != "removed":
            message = f"{file.name} was {file.kind} on the branch; the work was also judged without that change."
            yield CaseReason(FindingCode.JUDGING_CHANGED, message, file.name.removeprefix(base.inside))


def _obsolete_settings(settings: Settings) -> Iterator[CaseReason]:
    if "verify.from_base" in settings.given:
        message = "verify.from_base is obsolete. Its patterns are added to the default and never replace it."
        where = settings.source.name if settings.source is not None else ""
        next_step = "Remove it once every job has a work area: everything outside of it is taken from the base branch."
        yield CaseReason(FindingCode.SETTING_OBSOLETE, message, where, next_step)


def _nothing_verified(base: Base) -> CaseReason:
    code = FindingCode.NOTHING_VERIFIED
    message = f"No job of {base.ref} is done on the branch, so nothing was verified."
    return CaseReason(code, message, "", FINDINGS[code].next_step)


def _make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder
