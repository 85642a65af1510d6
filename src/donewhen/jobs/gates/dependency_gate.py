"""The dependency gate: all dependencies are done, and all outputs and evidence files exist."""

from __future__ import annotations

from collections.abc import Iterator

from donewhen.jobs.board.job_state import step_for
from donewhen.jobs.gates.facts import Facts, FileFact
from donewhen.jobs.ledger.gate_results import GateCode, GateReason, GateResult

_CODES = {
    "open": GateCode.DEPENDENCY_OPEN,
    "cancelled": GateCode.DEPENDENCY_OPEN,
    "invalid": GateCode.DEPENDENCY_INVALID,
    "missing": GateCode.DEPENDENCY_MISSING,
    "cycle": GateCode.DEPENDENCY_CYCLE,
}
_FILE_STATES = {
    "missing": "is missing",
    "empty": "is empty",
    "not_a_file": "is not a regular file",
    "too_large": "is too large",
    "outside": "is outside of the project",
}


def dependency_gate(facts: Facts) -> GateResult:
    """Open when all dependencies are done and still valid, and all outputs and evidence files exist."""
    reasons = tuple(_reasons(facts))
    return GateResult("dependency", reasons, step_for(reasons[0].code, facts.job.id) if reasons else None)


def dependency_reasons(facts: Facts) -> Iterator[GateReason]:
    """Yield the reasons that concern other jobs, which are all that starting a job requires."""
    for dependency in facts.dependencies:
        if dependency.state != "done":
            through = f" (through {' → '.join(dependency.chain)})" if len(dependency.chain) > 1 else ""
            why = f": {dependency.why}" if dependency.why else ""
            state = {"missing": "does not exist", "cycle": "depends on itself", "open": "is not done"}.get(
                dependency.state, f"is {dependency.state}"
            )
            yield GateReason(_CODES[dependency.state], f"{dependency.id} {state}{through}{why}.", facts.where)


def _reasons(facts: Facts) -> Iterator[GateReason]:
    if facts.history.started is None and facts.history.status == "planned":
        message = f"{facts.job.id} was never started, so there is no record of the state before the work."
        yield GateReason(GateCode.NOT_STARTED, message, facts.where)
    yield from dependency_reasons(facts)
    for name in facts.upstream_changed:
        yield GateReason(GateCode.UPSTREAM_CHANGED, f"{name} changed after the job was started.", facts.where)
    yield from _files(facts, "outputs", facts.outputs, GateCode.OUTPUT_MISSING)
    yield from _files(facts, "verification_evidence", facts.evidence_files, GateCode.EVIDENCE_FILE_MISSING)
    if facts.outputs and not facts.job.read_only and not any(output.changed for output in facts.outputs):
        yield GateReason(GateCode.OUTPUT_UNCHANGED, "No output has changed since the job was started.", facts.where)


def _files(facts: Facts, field: str, files: tuple[FileFact, ...], code: GateCode) -> Iterator[GateReason]:
    line = facts.job.document.line_of(field)
    where = f"{facts.where}:{line}" if line else facts.where
    for file in files:
        if file.state != "good":
            yield GateReason(code, f"{file.path} {_FILE_STATES[file.state]}.", where)
