"""Check that the entries before a recorded completion support it; anybody can append a line to a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from donewhen.jobs.contract.agreement import current_seal
from donewhen.jobs.evidence.commands import newest_run
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Completed, Ran
from donewhen.jobs.plan.job import Job

_GATES = frozenset({"agreement", "budget", "dependency", "truth", "reward"})


def missing_proof(job: Job, entries: Sequence[Entry], completed: Entry, policy: Policy) -> Iterator[str]:
    """Yield what a genuine completion has on record and this one lacks.

    A complete forgery is not detected here; running the contract again detects it.
    """
    before = [entry for entry in entries if entry.seq < completed.seq]
    claim = completed.read_as(Completed)
    if claim.gates is None or not claim.gates.keys() >= _GATES or claim.closed:
        yield "it does not record that every gate was open"
    if claim.score is None or claim.score < job.reward_target:
        yield f"its score is {claim.score}, but the target is {job.reward_target}"
    seal = current_seal(job.id, before, policy)
    if seal is None or claim.terms != seal.hash:
        yield "it refers to a different agreement than the recorded one"
    if not any(entry.type == "started" for entry in before):
        yield "the job was never started"
    for requirement in requirements_of(job):
        if requirement.check.kind in ("run", "file"):
            entry = newest_run(before, requirement.evidence, "file" if requirement.check.kind == "file" else "command")
            run = None if entry is None else entry.read_as(Ran)
            if run is None or not run.passed or not run.settled:
                yield f"no passed run of `{requirement.evidence}` is recorded before it"
