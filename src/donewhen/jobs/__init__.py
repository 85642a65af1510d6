"""Is this job done? Jobs as Markdown, what was agreed about them, evidence, and the record of what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazily

if TYPE_CHECKING:
    from donewhen.jobs.audit.audit import Audit, AuditFinding
    from donewhen.jobs.board.survey import JobRecord, Survey
    from donewhen.jobs.contract.agreement import Agreement, Proposal, Seal, agree, project_agreement, proposals
    from donewhen.jobs.contract.decisions import Decided, Decision, decide
    from donewhen.jobs.contract.terms import Change, changes, job_terms, project_terms, terms_hash
    from donewhen.jobs.evidence.commands import Ran, run
    from donewhen.jobs.evidence.requirements import Need
    from donewhen.jobs.evidence.store import EvidenceStore
    from donewhen.jobs.gates.evaluation import Evaluation, evaluate
    from donewhen.jobs.gates.evidence_status import Standing, collect, sign_off, standings
    from donewhen.jobs.gates.facts import Facts, facts_of
    from donewhen.jobs.gates.score import Score, score_of
    from donewhen.jobs.ledger.approval import Approval, Policy, person, somebody
    from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
    from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode, GateReason, GateResult
    from donewhen.jobs.ledger.ledger import Actor, Break, Chain, Entry, Ledger
    from donewhen.jobs.lifecycle.agent_loop import Looped, loop
    from donewhen.jobs.lifecycle.completion import Completion, complete
    from donewhen.jobs.lifecycle.evaluating import evaluate_and_record
    from donewhen.jobs.lifecycle.planning import Ready, check_plan, ready
    from donewhen.jobs.lifecycle.promise import Promise, verify_promise
    from donewhen.jobs.lifecycle.rest import set_aside
    from donewhen.jobs.lifecycle.start import Started, start
    from donewhen.jobs.plan.creating import add_job, init
    from donewhen.jobs.plan.criteria import Check, Criterion
    from donewhen.jobs.plan.document import Document, parse, rewritten
    from donewhen.jobs.plan.job import Job, Project
    from donewhen.jobs.plan.workspace import Workspace, find_workspace
    from donewhen.jobs.record.anchors import Anchor, read_anchors, write_note

_FILE_OF = {
    "FINDINGS": "ledger.finding_codes",
    "GATE_REASONS": "ledger.gate_results",
    "Actor": "ledger.ledger",
    "Agreement": "contract.agreement",
    "Anchor": "record.anchors",
    "Approval": "ledger.approval",
    "Audit": "audit.audit",
    "AuditFinding": "audit.audit",
    "Break": "ledger.ledger",
    "Chain": "ledger.ledger",
    "Change": "contract.terms",
    "Check": "plan.criteria",
    "Completion": "lifecycle.completion",
    "Criterion": "plan.criteria",
    "Decided": "contract.decisions",
    "Decision": "contract.decisions",
    "Document": "plan.document",
    "Entry": "ledger.ledger",
    "Evaluation": "gates.evaluation",
    "EvidenceStore": "evidence.store",
    "Facts": "gates.facts",
    "FindingCode": "ledger.finding_codes",
    "GateCode": "ledger.gate_results",
    "GateReason": "ledger.gate_results",
    "GateResult": "ledger.gate_results",
    "Job": "plan.job",
    "JobRecord": "board.survey",
    "Ledger": "ledger.ledger",
    "Looped": "lifecycle.agent_loop",
    "Need": "evidence.requirements",
    "Policy": "ledger.approval",
    "Project": "plan.job",
    "Promise": "lifecycle.promise",
    "Proposal": "contract.agreement",
    "Ran": "evidence.commands",
    "Ready": "lifecycle.planning",
    "Score": "gates.score",
    "Seal": "contract.agreement",
    "Standing": "gates.evidence_status",
    "Started": "lifecycle.start",
    "Survey": "board.survey",
    "Workspace": "plan.workspace",
    "add_job": "plan.creating",
    "agree": "contract.agreement",
    "changes": "contract.terms",
    "check_plan": "lifecycle.planning",
    "collect": "gates.evidence_status",
    "complete": "lifecycle.completion",
    "decide": "contract.decisions",
    "evaluate": "gates.evaluation",
    "facts_of": "gates.facts",
    "find_workspace": "plan.workspace",
    "init": "plan.creating",
    "job_terms": "contract.terms",
    "evaluate_and_record": "lifecycle.evaluating",
    "loop": "lifecycle.agent_loop",
    "parse": "plan.document",
    "person": "ledger.approval",
    "project_agreement": "contract.agreement",
    "project_terms": "contract.terms",
    "proposals": "contract.agreement",
    "read_anchors": "record.anchors",
    "ready": "lifecycle.planning",
    "rewritten": "plan.document",
    "run": "evidence.commands",
    "score_of": "gates.score",
    "set_aside": "lifecycle.rest",
    "sign_off": "gates.evidence_status",
    "somebody": "ledger.approval",
    "standings": "gates.evidence_status",
    "start": "lifecycle.start",
    "terms_hash": "contract.terms",
    "verify_promise": "lifecycle.promise",
    "write_note": "record.anchors",
}

__getattr__ = lazily(__name__, _FILE_OF)

__all__ = [
    "FINDINGS",
    "GATE_REASONS",
    "Actor",
    "Agreement",
    "Anchor",
    "Approval",
    "Audit",
    "AuditFinding",
    "Break",
    "Chain",
    "Change",
    "Check",
    "Completion",
    "Criterion",
    "Decided",
    "Decision",
    "Document",
    "Entry",
    "Evaluation",
    "EvidenceStore",
    "Facts",
    "FindingCode",
    "GateCode",
    "GateReason",
    "GateResult",
    "Job",
    "JobRecord",
    "Ledger",
    "Looped",
    "Need",
    "Policy",
    "Project",
    "Promise",
    "Proposal",
    "Ran",
    "Ready",
    "Score",
    "Seal",
    "Standing",
    "Started",
    "Survey",
    "Workspace",
    "add_job",
    "agree",
    "changes",
    "check_plan",
    "collect",
    "complete",
    "decide",
    "evaluate",
    "evaluate_and_record",
    "facts_of",
    "find_workspace",
    "init",
    "job_terms",
    "loop",
    "parse",
    "person",
    "project_agreement",
    "project_terms",
    "proposals",
    "read_anchors",
    "ready",
    "rewritten",
    "run",
    "score_of",
    "set_aside",
    "sign_off",
    "somebody",
    "standings",
    "start",
    "terms_hash",
    "verify_promise",
    "write_note",
]
