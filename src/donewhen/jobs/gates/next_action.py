"""The next action that is written into a plan: the first of nine conditions that fails, in fixed wording."""

from __future__ import annotations

from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.gates.score import has_verification_plan
from donewhen.jobs.ledger.gate_results import GateResult
from donewhen.jobs.plan.criteria import is_placeholder

TRUTH = "Resolve truth failures: {what}"
OUTPUTS = "Produce the missing outputs: {what}"
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
    # An output with only placeholder text counts as missing.
    missing = [output.path for output in facts.outputs if output.state != "good" or output.template]
    if missing:
        return OUTPUTS.format(what=", ".join(missing))
    unproved = [file.path for file in facts.evidence_files if file.state != "good"]
    unproved += [status.requirement.name for status in facts.evidence if status.state != "passed"]
    if unproved:
        return EVIDENCE.format(what=", ".join(dict.fromkeys(unproved)))
    if not facts.job.criteria or any(is_placeholder(criterion.text) for criterion in facts.job.criteria):
        return CRITERIA
    if not has_verification_plan(facts):
        return PLAN
    if not (facts.views.tracker and facts.views.dashboard):
        return VIEWS
    exempt = facts.job.exemptions.get("execution_log_exemption_reason")
    if not facts.runs and facts.job.execution_log_required and not exempt:
        return LOG
    if facts.mirror.enabled and not facts.mirror.current:
        return PARITY.format(what=facts.mirror.why)
    return FINAL
