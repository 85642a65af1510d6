"""The jobs of the base branch: what was agreed about them there, and which of them are run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.contract.agreement import Seal, current_seal
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.room.basis import RoomBasis
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.branch_changes import BranchClaim, claim_of
from donewhen.jobs.verifying.cases import CaseReason, JobCases, VerificationCase
from donewhen.jobs.verifying.work_areas import basis_on_base


class AgreedJob(NamedTuple):
    """A job of the base branch, with what was agreed there."""

    job: Job
    seal: Seal | None
    done: bool
    known: frozenset[str]
    """The hashes of its entries on the base."""
    claim: BranchClaim
    name: str
    """Its plan file, relative to the project."""
    basis: RoomBasis | None
    """What was agreed about its files; None if it was agreed without a work area."""


def agreed_jobs(
    base: Base, contract: Workspace, branch: Workspace, policy: Policy
) -> tuple[dict[str, AgreedJob], list[JobCases]]:
    """The jobs of the base by id, and the results of those whose plan can't be read."""
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
        known = frozenset(entry.hash for entry in entries)
        claim = claim_of(base, branch, job, contract.where(job.path), seal, policy, {*known})
        done = history_of(job.id, entries, policy).completed is not None
        basis = basis_on_base(contract, branch, job, seal, known, policy)
        agreed[job.id] = AgreedJob(job, seal, done, known, claim, contract.where(job.path), basis)
    return agreed, unreadable


def choose_jobs(agreed: Mapping[str, AgreedJob], contract: Workspace, names: Sequence[str]) -> list[str]:
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
