"""Is it true? Criterion by criterion, from what the gate itself saw; prose decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.requirements import VERIFICATION
from donewhen.jobs.gates.evidence_status import EvidenceStatus, State
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.ledger.gate_results import GateCode, GateReason, GateResult

CRITERION_CODES: dict[State, GateCode] = {
    "failed": GateCode.CRITERION_FAILED,
    "stale": GateCode.CRITERION_STALE,
    "missing": GateCode.CRITERION_NOT_SHOWN,
    "asserted": GateCode.CRITERION_NOT_SHOWN,
    "needs_human": GateCode.NEEDS_HUMAN,
}
_SHOWN = 3
_SHOWABLE = (GateCode.CRITERION_STALE, GateCode.CRITERION_NOT_SHOWN, GateCode.COMMAND_NOT_PASSED)


def truth_gate(facts: Facts) -> GateResult:
    """Open when every criterion is shown, every agreed check holds, and the record itself is whole."""
    reasons = [*_record(facts)]
    if facts.job.truth_mode == "off":
        return GateResult("truth", tuple(reasons), _next(facts, reasons), note="truth mode is off, as was agreed")
    reasons += _criteria(facts)
    reasons += _suites(facts)
    for name in facts.job.truth_checks:
        reasons += [one for one in _CHECKS[name](facts) if one not in reasons]
    return GateResult("truth", tuple(reasons), _next(facts, reasons))


def _record(facts: Facts) -> Iterator[GateReason]:
    for problem in facts.chain_breaks:
        yield GateReason(GateCode.RECORD_BROKEN, f"The ledger of {facts.job.id} does not hold: {problem}.")
    for one in facts.tampered:
        line = facts.job.document.line_of(one.field)
        message = f"{one.field} says {one.found!r}, but the ledger says {one.expected!r}."
        yield GateReason(GateCode.RECORD_TAMPERED, message, f"{facts.where}:{line}" if line else facts.where)


def _criteria(facts: Facts) -> Iterator[GateReason]:
    real = [criterion for criterion in facts.job.criteria if not criterion.placeholder]
    if not real:
        yield GateReason(GateCode.CRITERIA_ABSENT, f"{facts.job.id} has no acceptance criteria.", facts.where)
    for status in facts.evidence:
        if status.requirement.name != VERIFICATION and status.state != "passed":
            yield GateReason(CRITERION_CODES[status.state], status_sentence(status), _where(facts, status))


def _suites(facts: Facts) -> Iterator[GateReason]:
    for name in facts.harness_changed:
        message = f"{name} has changed since the job was first started, and it can change what tests report."
        yield GateReason(GateCode.REPORT_CONFIG_CHANGED, message, name)
    for suite in facts.suites:
        if suite.lost:
            message = f"{len(suite.lost)} test(s) are gone from `{suite.evidence}`: {_listed(suite.lost)}."
            yield GateReason(GateCode.REPORT_TESTS_LOST, message)
        if suite.skipped:
            message = f"{len(suite.skipped)} test(s) that ran are skipped now in `{suite.evidence}`: {_listed(suite.skipped)}."
            yield GateReason(GateCode.REPORT_TESTS_SKIPPED, message)


def _exists_nonempty(facts: Facts) -> Iterator[GateReason]:
    for output in facts.outputs:
        if output.state != "good":
            yield GateReason(
                GateCode.OUTPUT_MISSING, f"The output {output.path} is not there or says nothing.", facts.where
            )


def _freshness(facts: Facts) -> Iterator[GateReason]:
    for status in facts.evidence:
        if status.state == "stale":
            code = GateCode.COMMAND_NOT_PASSED if status.requirement.name == VERIFICATION else GateCode.CRITERION_STALE
            yield GateReason(code, status_sentence(status), _where(facts, status))
    for name in facts.upstream_changed:
        yield GateReason(GateCode.UPSTREAM_CHANGED, f"{name} changed after the job was started.", facts.where)


def _executed(facts: Facts) -> Iterator[GateReason]:
    exempt = not facts.job.execution_log_required or facts.job.exemptions.get("execution_log_exemption_reason")
    if not exempt and not facts.runs:
        yield GateReason(GateCode.EXECUTION_NOT_LOGGED, f"Nothing was run for {facts.job.id} since it was started.")


def _lesson(facts: Facts) -> Iterator[GateReason]:
    exempt = not facts.job.lesson_capture_required or facts.job.exemptions.get("lesson_capture_exemption_reason")
    if not exempt and not facts.lessons.kept:
        lacking = f": {facts.lessons.lacking[-1]}" if facts.lessons.lacking else ""
        message = f"No lesson that says something is on record for {facts.job.id}{lacking}."
        yield GateReason(GateCode.LESSON_NOT_CAPTURED, message)


def _commands(facts: Facts) -> Iterator[GateReason]:
    for status in facts.evidence:
        if status.requirement.name == VERIFICATION and status.state != "passed":
            yield GateReason(GateCode.COMMAND_NOT_PASSED, status_sentence(status), _where(facts, status))


def _consistent(facts: Facts) -> Iterator[GateReason]:
    """What was run and what is claimed must agree: no command of the job has failed."""
    yield from _commands(facts)


_CHECKS: dict[str, Callable[[Facts], Iterator[GateReason]]] = {
    "exists_nonempty": _exists_nonempty,
    "freshness": _freshness,
    "work_item_execution_logged": _executed,
    "linked_lesson_captured": _lesson,
    "required_command_logged": _commands,
    "verification_consistency": _consistent,
}


def status_sentence(status: EvidenceStatus) -> str:
    """How a need stands that is not met, in one sentence."""
    why = f": {'; '.join(status.why)}" if status.why else ""
    if status.requirement.name == VERIFICATION:
        name, failed = f"`{status.requirement.evidence}`", "did not pass"
    else:
        name, failed = f"{status.requirement.name} ({one_line(status.requirement.text, 80)})", "is not met"
    states = {
        "missing": "was not shown",
        "asserted": "is only asserted",
        "stale": "is stale",
        "failed": failed,
        "needs_human": "needs a person",
    }
    return f"{name} {states[status.state]}{why}."


def _where(facts: Facts, status: EvidenceStatus) -> str | None:
    line = next((criterion.line for criterion in facts.job.criteria if criterion.id == status.requirement.name), None)
    return f"{facts.where}:{line}" if line else facts.where


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _next(facts: Facts, reasons: list[GateReason]) -> str | None:
    """The command that helps with the first reason."""
    if not reasons:
        return None
    if reasons[0].code in (GateCode.RECORD_BROKEN, GateCode.RECORD_TAMPERED):
        return "donewhen audit"
    if reasons[0].code == GateCode.NEEDS_HUMAN:
        return "donewhen review"
    first = next((status for status in facts.evidence if status.state != "passed"), None)
    if first is None or first.state == "failed" or reasons[0].code not in _SHOWABLE:
        return f"donewhen why {facts.job.id}"
    if first.requirement.check.kind == "manual":
        return f'donewhen sign-off {facts.job.id} --criterion {first.requirement.name} --reason "…"'
    return f"donewhen run {facts.job.id}"
