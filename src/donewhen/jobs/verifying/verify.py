"""Running the contract of a base branch again on a branch's work. What the branch offers as proof is not asked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.validity import DependencyFact
from donewhen.jobs.contract.agreement import Seal, project_seal, seal_in
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.verifying.base_branch import Base, base_of, count_untracked, is_shallow
from donewhen.jobs.verifying.branch_changes import claim_of, project_reasons, record_reasons
from donewhen.jobs.verifying.cases import CaseReason, JobCases, Verification, VerificationCase
from donewhen.jobs.verifying.job_cases import AgreedJob, RunTree, Tell, case_from_reasons, job_cases
from donewhen.jobs.verifying.judging_files import judging_files_of
from donewhen.jobs.verifying.trees import ChangedJudgingFile, lay_base, lay_branch, lay_contract, lay_work


def verify_branch(
    branch: Workspace, ref: str, *, jobs: Sequence[str] = (), on_progress: Tell = lambda _: None
) -> Verification:
    """Run the contract of ``ref`` again on the work that stands here: for every job that the branch says is done, or
    for those that are named and what they depend on. Nothing here is written to."""
    base = base_of(branch, ref)
    with tempfile.TemporaryDirectory(prefix="donewhen-verify-", ignore_cleanup_errors=True) as folder:
        place = Path(os.path.realpath(folder))
        on_progress("the contract")
        contract = lay_contract(base, branch, _made(place / "contract"))
        project = contract.project()
        project_file = contract.where(contract.project_file)
        seal = project_seal(contract, project)
        policy = Policy.of(seal.terms if seal else None)
        agreed, unreadable = _agreed(base, contract, branch, policy)
        chosen = _chosen(agreed, contract, jobs)
        on_progress("the record")
        cases = [
            _contract_case(base, branch, contract, seal, _before(base, branch, place)),
            _record_case(base, branch),
        ]
        trees, changed = _trees(base, branch, contract, [agreed[one] for one in chosen], place)
        cases += _judging_case(base, changed)
        found = dict(_run(base, branch, policy, trees, agreed, chosen, on_progress))
        rest = [_not_claimed(base, one, asked_for=not jobs) for name, one in agreed.items() if name not in found]
        every = (*found.values(), *rest, *unreadable, *_new_jobs(branch, agreed))
    if not any(one.claimed for one in every):
        cases.append(case_from_reasons("something is verified", "project", [_nothing(base)]))
    return Verification(ref, base.commit, tuple(cases), every, tuple(_notes(base, changed)), base.inside, project_file)


def _agreed(
    base: Base, contract: Workspace, branch: Workspace, policy: Policy
) -> tuple[dict[str, AgreedJob], list[JobCases]]:
    found: dict[str, AgreedJob] = {}
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
        seal = seal_in(job.id, entries, policy)
        known = {entry.hash for entry in entries}
        claim = claim_of(base, branch, job, contract.where(job.path), seal, policy, known)
        done = history_of(job.id, entries, policy).completed is not None
        found[job.id] = AgreedJob(job, seal, done, frozenset(known), claim, contract.where(job.path))
    return found, unreadable


def _chosen(agreed: Mapping[str, AgreedJob], contract: Workspace, names: Sequence[str]) -> list[str]:
    """The jobs to run again, each after those that it depends on."""
    claimed = [name for name, one in agreed.items() if one.claim.done]
    wanted = [_named(contract, name) for name in names] if names else claimed
    order: dict[str, None] = {}
    waiting = [(name, False) for name in reversed(wanted)]
    begun: set[str] = set()
    while waiting:
        name, after = waiting.pop()
        if after:
            order[name] = None
        elif name not in begun:
            begun.add(name)
            waiting.append((name, True))
            above = agreed[name].job.depends_on
            waiting += [(one, False) for one in reversed(above) if one in agreed and agreed[one].claim.done]
    return list(order)


def _named(contract: Workspace, name: str) -> str:
    try:
        return contract.job(name).id
    except DonewhenError as error:
        # Its place would be a folder that is gone by the time somebody reads this.
        raise type(error)(error.message, next_step=error.next_step) from error


def _trees(
    base: Base, branch: Workspace, contract: Workspace, chosen: Sequence[AgreedJob], place: Path
) -> tuple[list[RunTree], tuple[ChangedJudgingFile, ...]]:
    if not chosen:
        return [], ()
    judges = judging_files_of(base, contract, [one.job for one in chosen], [one.job for one in chosen if not one.done])
    before = RunTree(lay_base(base, branch, _made(place / "base"), judges), f"On {base.ref}: ", {})
    strict, changed = lay_work(base, branch, _made(place / "strict"), judges)
    if not changed:
        return [before, RunTree(strict, "", {})], ()
    own = lay_branch(base, branch, _made(place / "own"))
    labels = (f"With the tests of {base.ref}: ", "With the branch's own tests: ")
    return [before, RunTree(strict, labels[0], {}), RunTree(own, labels[1], {})], changed


def _run(
    base: Base,
    branch: Workspace,
    policy: Policy,
    trees: Sequence[RunTree],
    agreed: Mapping[str, AgreedJob],
    chosen: Sequence[str],
    on_progress: Tell,
) -> Iterator[tuple[str, JobCases]]:
    states: dict[str, DependencyFact] = {}
    for name in chosen:
        one = agreed[name]
        where = one.claim.where
        try:
            cases = tuple(job_cases(base, branch, policy, trees, one, states, on_progress))
        except DonewhenError as error:
            reason = CaseReason(error.code, error.message, error.where or where, error.next_step)
            cases = (VerificationCase("gates", "gate", "error", (reason,)),)
        except Exception as error:
            if os.environ.get("DONEWHEN_DEBUG"):
                raise
            told = one_line(f"The gate broke: {type(error).__name__}: {error}", 400)
            next_step = GATE_REASONS[GateCode.GATE_ERROR].next_step
            cases = (
                VerificationCase("gates", "gate", "error", (CaseReason(GateCode.GATE_ERROR, told, where, next_step),)),
            )
        found = JobCases(name, one.job.title, where, True, cases)
        why = "" if found.passed else "run again, it is not done"
        states[name] = DependencyFact(name, "done" if found.passed else "invalid", (name,), why)
        yield name, found


def _before(base: Base, branch: Workspace, place: Path) -> Workspace | None:
    """The contract as it was when the branch left the base, where that is another commit."""
    if base.forked is base.files:
        return None
    try:
        return lay_contract(base._replace(commit=base.fork, files=base.forked), branch, _made(place / "before"))
    except DonewhenError:
        return None


def _contract_case(
    base: Base, branch: Workspace, contract: Workspace, seal: Seal | None, before: Workspace | None
) -> VerificationCase:
    if seal is None:
        message = f"Nothing is agreed on {base.ref}, so there is nothing that could be run again."
        where = contract.where(contract.project_file)
        return case_from_reasons(
            "contract", "project", [CaseReason(FindingCode.PROPOSED, message, where, "donewhen agree")]
        )
    try:
        return case_from_reasons("contract", "project", project_reasons(branch, seal, before))
    except DonewhenError as error:
        return case_from_reasons("contract", "project", [_unreadable(branch, error)])


def _record_case(base: Base, branch: Workspace) -> VerificationCase:
    try:
        return case_from_reasons("record", "project", record_reasons(base, branch))
    except DonewhenError as error:
        return case_from_reasons("record", "project", [_unreadable(branch, error)])


def _unreadable(branch: Workspace, error: DonewhenError) -> CaseReason:
    """The branch has broken something that has to be read."""
    where = branch.where(Path(error.where)) if error.where else branch.where(branch.project_file)
    return CaseReason(error.code, error.message, where, error.next_step)


def _judging_case(base: Base, changed: Sequence[ChangedJudgingFile]) -> list[VerificationCase]:
    """Tests that are gone. Those of the base were run all the same."""
    reasons = [
        CaseReason(
            GateCode.REPORT_TESTS_LOST,
            f"{one.name} judges the work on {base.ref}, and the branch removes it.",
            one.name.removeprefix(base.inside),
            "Bring it back, or let a person agree on the base branch that it is an output of the job.",
        )
        for one in changed
        if one.kind == "removed"
    ]
    return [case_from_reasons("tests", "project", reasons)]


def _new_jobs(branch: Workspace, agreed: Mapping[str, AgreedJob]) -> Iterator[JobCases]:
    """Jobs that only the branch has: nobody has agreed to them on the base."""
    for place in branch.places():
        if place.id in agreed:
            continue
        where = branch.where(place.path)
        try:
            job = branch.job_at(place.path)
        except DonewhenError:
            # The audit of the branch has told it.
            continue
        if job.id in agreed:
            continue
        if job.status != "done":
            case = VerificationCase("agreement", "gate", "skipped", text="It is new on the branch.")
            yield JobCases(job.id, job.title, where, False, (case,))
            continue
        code = FindingCode.NOT_ON_BASE
        message = f"{job.id} is done on the branch, and nobody has agreed to it on the base branch."
        yield JobCases(
            job.id,
            job.title,
            where,
            True,
            (case_from_reasons("agreement", "gate", [CaseReason(code, message, where, FINDINGS[code].next_step)]),),
        )


def _not_claimed(base: Base, job: AgreedJob, *, asked_for: bool) -> JobCases:
    """A job that nobody says is done: nothing was run, which is no pass. What the branch did to its terms is told."""
    message = f"The branch says {job.claim.status}, so it was not run."
    if job.claim.done and not asked_for:
        message = "The branch says done. It was not asked for, so it was not run."
    elif job.done:
        message = f"It was done on {base.ref}; the branch says {job.claim.status}, so it was not run."
    cases = [VerificationCase("not run", "gate", "skipped", text=message)]
    if job.claim.reasons:
        cases.insert(0, case_from_reasons("agreement", "gate", job.claim.reasons))
    return JobCases(job.job.id, job.job.title, job.claim.where, False, tuple(cases))


def _notes(base: Base, changed: Sequence[ChangedJudgingFile]) -> Iterator[CaseReason]:
    if not base.fork and is_shallow(base):
        message = f"The history here is cut short, so it is not known whether the branch has all of {base.ref}."
        yield CaseReason(FindingCode.GIT, message, "", "git fetch --unshallow")
    elif base.is_behind:
        message = f"The branch lacks commits of {base.ref}; files that it has not touched were taken from there."
        yield CaseReason(FindingCode.GIT, message, "", f"git merge {base.ref}")
    if count := count_untracked(base):
        yield CaseReason(FindingCode.GIT, f"{count} file(s) that git does not track are not part of it.", "", "git add")
    for one in changed:
        if one.kind != "removed":
            message = f"{one.name} was {one.kind} on the branch; the work was judged without that change, too."
            yield CaseReason(FindingCode.JUDGING_CHANGED, message, one.name.removeprefix(base.inside))


def _nothing(base: Base) -> CaseReason:
    code = FindingCode.NOTHING_VERIFIED
    message = f"The branch says of no job on {base.ref} that it is done, so nothing was verified."
    return CaseReason(code, message, "", FINDINGS[code].next_step)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
