"""The truth gate: every criterion is met, by the gate's own evidence and never by claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.jobs.board.job_state import step_for
from donewhen.jobs.evidence.failure_details import listed_tests
from donewhen.jobs.evidence.requirements import VERIFICATION
from donewhen.jobs.gates.evidence_status import EvidenceStatus, State
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.gates.suites import SuiteFact
from donewhen.jobs.ledger.gate_results import GateCode, GateReason, GateResult

CRITERION_CODES: dict[State, GateCode] = {
    "failed": GateCode.CRITERION_FAILED,
    "stale": GateCode.CRITERION_STALE,
    "missing": GateCode.CRITERION_NOT_SHOWN,
    "asserted": GateCode.CRITERION_NOT_SHOWN,
    "needs_human": GateCode.NEEDS_HUMAN,
}
_MAX_LISTED = 3
_FIXED_BY_EVIDENCE = (GateCode.CRITERION_STALE, GateCode.CRITERION_NOT_SHOWN, GateCode.COMMAND_NOT_PASSED)


def truth_gate(facts: Facts) -> GateResult:
    """Open when every criterion is met, every agreed truth check passes, and the ledger is intact."""
    reasons = [*_record_reasons(facts)]
    if facts.job.truth_mode == "off":
        return GateResult("truth", tuple(reasons), _next(facts, reasons), note="truth mode is off, as agreed")
    reasons += _criterion_reasons(facts)
    reasons += _test_suite_reasons(facts)
    for name in facts.job.truth_checks:
        reasons += [reason for reason in _CHECKS[name](facts) if reason not in reasons]
    return GateResult("truth", tuple(_detailed_once(reasons)), _next(facts, reasons))


def _detailed_once(reasons: Iterable[GateReason]) -> Iterator[GateReason]:
    """Several criteria can have the same check; what it said is said once."""
    said: set[tuple[str, ...]] = set()
    for reason in reasons:
        yield reason._replace(details=()) if reason.details in said else reason
        said.add(reason.details)


def _record_reasons(facts: Facts) -> Iterator[GateReason]:
    for other in facts.other_versions:
        yield GateReason(GateCode.OTHER_VERSION, other.message, other.where)
    for name, problems in ((facts.job.id, facts.chain_breaks), (facts.project.id, facts.project_breaks)):
        for problem in problems:
            yield GateReason(GateCode.RECORD_BROKEN, f"The ledger of {name} is broken: {problem}.")
    for mismatch in facts.tampered:
        line = facts.job.document.line_of(mismatch.field)
        message = f"{mismatch.field} says {mismatch.found!r}, but the ledger says {mismatch.expected!r}."
        yield GateReason(GateCode.RECORD_TAMPERED, message, f"{facts.where}:{line}" if line else facts.where)


def _criterion_reasons(facts: Facts) -> Iterator[GateReason]:
    real = [criterion for criterion in facts.job.criteria if not criterion.placeholder]
    if not real:
        found = "only placeholders as" if facts.job.criteria else "no"
        yield GateReason(GateCode.CRITERIA_ABSENT, f"{facts.job.id} has {found} acceptance criteria.", facts.where)
    for status in facts.evidence:
        if status.requirement.name != VERIFICATION and status.state != "passed":
            code = status.code or CRITERION_CODES[status.state]
            yield _evidence_reason(facts, status, code)


def _evidence_reason(facts: Facts, status: EvidenceStatus, code: GateCode) -> GateReason:
    all_of_it = (f"All of it: donewhen why {facts.job.id} --output",) if status.details else ()
    return GateReason(code, status_sentence(status), _where(facts, status), (*status.details, *all_of_it))


def _test_suite_reasons(facts: Facts) -> Iterator[GateReason]:
    for name in facts.harness_changed:
        message = f"{name} has changed since the job was first started, and it can change what tests report."
        yield GateReason(GateCode.REPORT_CONFIG_CHANGED, message, name)
    yield from suite_reasons(facts.suites)


def suite_reasons(suites: Iterable[SuiteFact]) -> Iterator[GateReason]:
    """Yield which tests were lost."""
    for suite in suites:
        if suite.lost:
            names = join_limited(suite.lost, _MAX_LISTED)
            message = f"{len(suite.lost)} test(s) are missing from `{suite.evidence}`: {names}."
            details = tuple(listed_tests(suite.lost, "missing")) if len(suite.lost) > _MAX_LISTED else ()
            yield GateReason(GateCode.REPORT_TESTS_LOST, message, details=details)
        if suite.skipped:
            names = join_limited(suite.skipped, _MAX_LISTED)
            message = f"{len(suite.skipped)} test(s) that used to run are skipped in `{suite.evidence}`: {names}."
            details = tuple(listed_tests(suite.skipped, "skipped")) if len(suite.skipped) > _MAX_LISTED else ()
            yield GateReason(GateCode.REPORT_TESTS_SKIPPED, message, details=details)


def _exists_nonempty(facts: Facts) -> Iterator[GateReason]:
    for output in facts.outputs:
        if output.state != "good":
            yield GateReason(GateCode.OUTPUT_MISSING, f"The output {output.path} is missing or empty.", facts.where)


def _freshness(facts: Facts) -> Iterator[GateReason]:
    for status in facts.evidence:
        if status.state == "stale":
            is_command = status.requirement.name == VERIFICATION
            code = GateCode.COMMAND_NOT_PASSED if is_command else GateCode.CRITERION_STALE
            yield _evidence_reason(facts, status, code)
    for name in facts.upstream_changed:
        yield GateReason(GateCode.UPSTREAM_CHANGED, f"{name} changed after the job was started.", facts.where)


def _execution_logged(facts: Facts) -> Iterator[GateReason]:
    exempt = not facts.job.execution_log_required or facts.job.exemptions.get("execution_log_exemption_reason")
    if not exempt and not facts.runs:
        yield GateReason(
            GateCode.EXECUTION_NOT_LOGGED, f"Nothing was run successfully for {facts.job.id} since it was started."
        )


def _lesson_captured(facts: Facts) -> Iterator[GateReason]:
    exempt = not facts.job.lesson_capture_required or facts.job.exemptions.get("lesson_capture_exemption_reason")
    if not exempt and not facts.lessons.kept:
        lacking = f": {facts.lessons.lacking[-1]}" if facts.lessons.lacking else ""
        message = f"No usable lesson is recorded for {facts.job.id}{lacking}."
        yield GateReason(GateCode.LESSON_NOT_CAPTURED, message)


def _commands_passed(facts: Facts) -> Iterator[GateReason]:
    for status in facts.evidence:
        if status.requirement.name == VERIFICATION and status.state != "passed":
            code = status.code or GateCode.COMMAND_NOT_PASSED
            yield _evidence_reason(facts, status, code)


def _consistent(facts: Facts) -> Iterator[GateReason]:
    """Runs and claims must agree: no verification command of the job has failed."""
    yield from _commands_passed(facts)


_CHECKS: dict[str, Callable[[Facts], Iterator[GateReason]]] = {
    "exists_nonempty": _exists_nonempty,
    "freshness": _freshness,
    "work_item_execution_logged": _execution_logged,
    "linked_lesson_captured": _lesson_captured,
    "required_command_logged": _commands_passed,
    "verification_consistency": _consistent,
}


def status_sentence(status: EvidenceStatus) -> str:
    """Return a sentence that says why a requirement is not met."""
    why = f": {'; '.join(status.why)}" if status.why else ""
    if status.requirement.name == VERIFICATION:
        name, failed = f"`{status.requirement.evidence}`", "did not pass"
    else:
        name, failed = f"{status.requirement.name} ({one_line(status.requirement.text, 80)})", "is not met"
    states = {
        "missing": "has no evidence",
        "asserted": "is only claimed",
        "stale": "is stale",
        "failed": failed,
        "needs_human": "needs a person",
    }
    return f"{name} {states[status.state]}{why}."


def _where(facts: Facts, status: EvidenceStatus) -> str | None:
    line = next((criterion.line for criterion in facts.job.criteria if criterion.id == status.requirement.name), None)
    return f"{facts.where}:{line}" if line else facts.where


def _next(facts: Facts, reasons: list[GateReason]) -> str | None:
    """Return the command that helps with the first reason."""
    if not reasons:
        return None
    first = next((status for status in facts.evidence if status.state != "passed"), None)
    if reasons[0].code == GateCode.EVIDENCE_WEAK:
        weak = next(status for status in facts.evidence if status.code == GateCode.EVIDENCE_WEAK)
        return f'donewhen sign-off {facts.job.id} --criterion {weak.requirement.name} --reason "…"'
    if reasons[0].code in _FIXED_BY_EVIDENCE:
        if first is None or first.state == "failed":
            return f"donewhen why {facts.job.id}"
        if first.requirement.check.kind == "manual":
            return f'donewhen sign-off {facts.job.id} --criterion {first.requirement.name} --reason "…"'
    return step_for(reasons[0].code, facts.job.id)
