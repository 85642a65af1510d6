"""Signs in the work of a branch: a check that passes is held until a person has looked at the lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from donewhen.foundation.git import CommittedFile
from donewhen.foundation.git_objects import FILE
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.gates.signs_for_person import decisions_on_signs, open_signs, signs_text
from donewhen.jobs.ledger.entry_content import FoundSign
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.room.work_signs import SignSources, recorded_signs
from donewhen.jobs.verifying.agreed_jobs import AgreedJob
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.rerun import SignedEntries
from donewhen.jobs.verifying.run_trees import RunTree

_HELD = ("run", "verification")
"""The kinds of checks that run the work, so that the work could mislead them."""


def held_for_signs(
    base: Base,
    base_tree: RunTree,
    tree: RunTree,
    job: AgreedJob,
    evidence: Sequence[EvidenceStatus],
    signed: SignedEntries,
) -> tuple[EvidenceStatus, ...]:
    """The criteria of a job, of which those that passed wait for a person if the work has signs that nobody has
    accepted: on the base, or on the branch by a key that the base names."""
    if job.done or not any(status.state == "passed" and status.requirement.check.kind in _HELD for status in evidence):
        return tuple(evidence)
    waiting = _open_signs(base, base_tree, tree, job, signed)
    if not waiting:
        return tuple(evidence)
    why = (signs_text(waiting),)
    return tuple(
        EvidenceStatus(status.requirement, "needs_human", why, status.entry, GateCode.SIGNS_FOUND)
        if status.state == "passed" and status.requirement.check.kind in _HELD
        else status
        for status in evidence
    )


def _open_signs(
    base: Base, base_tree: RunTree, tree: RunTree, job: AgreedJob, signed: SignedEntries
) -> tuple[FoundSign, ...]:
    planned = tree.planned
    if planned is None or job.basis is None:
        return ()

    def read(files: Sequence[tuple[str, str]]) -> Iterable[bytes]:
        return base.contents([CommittedFile(name, FILE, blob) for name, blob in files])

    sources = SignSources(planned.plan, planned.before, planned.judges, job.basis, base.inside, read)
    signs = recorded_signs(sources, base_tree.workspace.settings().jobs.signs_allowed)
    on_base = base_tree.workspace.ledger.read(job.job.id).entries
    # Anybody can write on the branch that a person has accepted something.
    by_key = [entry for entry in signed.entries if entry.by.kind == "key" and entry.hash not in job.known]
    return open_signs(signs, decisions_on_signs(job.job.id, [*on_base, *by_key], signed.policy))
