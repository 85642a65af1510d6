"""Is a completion on record borne out by the record before it? A line in a file is quickly written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from donewhen.jobs.contract.agreement import seal_in
from donewhen.jobs.evidence.commands import newest_run
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.job import Job

_GATES = frozenset({"agreement", "budget", "dependency", "truth", "reward"})


def missing_proof(job: Job, entries: Sequence[Entry], completed: Entry, policy: Policy) -> Iterator[str]:
    """What a real completion has on record before it, and this one does not.

    Somebody who writes all of that by hand is not found here. Running the contract again finds them.
    """
    before = [entry for entry in entries if entry.seq < completed.seq]
    gates = completed.data.get("gates")
    if not isinstance(gates, dict) or not gates.keys() >= _GATES or any(gates.values()):
        yield "it does not say that every gate was open"
    score = completed.data.get("score")
    if not isinstance(score, int) or score < job.reward_target:
        yield f"its score is {score}, and {job.reward_target} was agreed"
    seal = seal_in(job.id, before, policy)
    if seal is None or completed.data.get("terms") != seal.hash:
        yield "it names another agreement than the one on record"
    if not any(one.type == "started" for one in before):
        yield "the job was never started"
    for requirement in requirements_of(job):
        if requirement.check.kind in ("run", "file"):
            run = newest_run(before, requirement.evidence, "file" if requirement.check.kind == "file" else "command")
            if run is None or run.data.get("passed") is not True or run.data.get("settled") is not True:
                yield f"no run of `{requirement.evidence}` that passed stands before it"
