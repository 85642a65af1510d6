"""The next action that is written into a plan: the first of nine conditions that fails, in fixed wording."""

from __future__ import annotations

from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.gates.score import has_verification_plan, needs_execution_log
from donewhen.jobs.ledger.gate_results import GateResult

TRUTH = "Resolve truth failures: {what}"
OUTPUTS = "Produce the missing outputs: {what}"
UNWRITTEN = "Replace the placeholder text in the outputs: {what}"
EVIDENCE = "Add the missing verification evidence: {what}"
CRITERIA = "Replace placeholder or weak acceptance criteria."
PLAN = "Write a verification plan that can be carried out."
VIEWS = "Refresh the task tracker and the dashboard."
LOG = "Log execution evidence: run the verification through donewhen run."
PARITY = "Link the GitHub issue of this job: {what}; donewhen github sync brings it up to date."
FINAL = "Final check: read the result once more, note progress, then complete."


def next_action(facts: Facts, truth: GateResult) -> str:
    """Return what to do next, as the plan shows it."""
    if not truth.passed:
        return TRUTH.format(what=truth.reasons[0].message)
    missing = [output.path for output in facts.outputs if output.state != "good"]
    if missing:
        return OUTPUTS.format(what=", ".join(missing))
    unwritten = [output.path for output in facts.outputs if output.template]
    if unwritten:
        return UNWRITTEN.format(what=", ".join(unwritten))
    unproved = [file.path for file in facts.evidence_files if file.state != "good"]
    unproved += [status.requirement.name for status in facts.evidence if status.state != "passed"]
    if unproved:
        return EVIDENCE.format(what=", ".join(dict.fromkeys(unproved)))
    if not facts.job.criteria or any(criterion.placeholder for criterion in facts.job.criteria):
        return CRITERIA
    if not has_verification_plan(facts):
        return PLAN
    if not facts.views.good:
        return VIEWS
    if not facts.runs and needs_execution_log(facts):
        return LOG
    if facts.mirror.enabled and not facts.mirror.current:
        return PARITY.format(what=facts.mirror.why)
    return FINAL
