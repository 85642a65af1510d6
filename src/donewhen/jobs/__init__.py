"""Jobs as Markdown files: their agreements, evidence, gates, and the record of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazy_attributes

if TYPE_CHECKING:
    from donewhen.jobs.audit.audit import Audit, AuditFinding
    from donewhen.jobs.board.job_state import JobState
    from donewhen.jobs.board.survey import JobRecord, Survey
    from donewhen.jobs.contract.agreeing import AgreementProposal, agree, agreement_proposals
    from donewhen.jobs.contract.agreement import Agreement, Seal, project_agreement
    from donewhen.jobs.contract.decisions import Decision, DecisionRecord, decide
    from donewhen.jobs.contract.terms import TermsChange, compare_terms, job_terms, project_terms, terms_hash
    from donewhen.jobs.evidence.commands import EvidenceRun, run_as_evidence
    from donewhen.jobs.evidence.requirements import Requirement
    from donewhen.jobs.evidence.store import EvidenceStore
    from donewhen.jobs.gates.evaluation import Evaluation, evaluate
    from donewhen.jobs.gates.evidence_status import EvidenceStatus, collect_evidence, evidence_statuses, sign_off
    from donewhen.jobs.gates.facts import Facts, facts_of
    from donewhen.jobs.gates.job_view import JobView, view_job
    from donewhen.jobs.gates.score import Score, score_of
    from donewhen.jobs.judge.guidance_decisions import GuidanceProposal, accept_proposal, propose_guidance
    from donewhen.jobs.ledger.approval import Approval, Policy, person_at_terminal, unproved_actor
    from donewhen.jobs.ledger.entries import Actor, Break, Chain, Entry
    from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
    from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode, GateReason, GateResult
    from donewhen.jobs.ledger.ledger import Ledger
    from donewhen.jobs.ledger.terms_content import JobTerms, ProjectTerms
    from donewhen.jobs.lifecycle.agent_loop import LoopResult, run_agent_loop
    from donewhen.jobs.lifecycle.completion import Completion, complete
    from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
    from donewhen.jobs.lifecycle.planning import ReadyPlan, check_plan, find_ready_jobs
    from donewhen.jobs.lifecycle.promise import Promise, verify_promise
    from donewhen.jobs.lifecycle.setting_aside import set_job_aside
    from donewhen.jobs.lifecycle.start import StartResult, start_job
    from donewhen.jobs.plan.creating import add_job, create_project
    from donewhen.jobs.plan.criteria import Check, Criterion
    from donewhen.jobs.plan.document import Document, parse_document, rewrite_fields
    from donewhen.jobs.plan.job import Job, Project
    from donewhen.jobs.plan.workspace import Workspace, find_workspace
    from donewhen.jobs.record.anchors import Anchor, read_anchors, write_note

_FILE_OF = {
    "accept_proposal": "judge.guidance_decisions",
    "propose_guidance": "judge.guidance_decisions",
    "GuidanceProposal": "judge.guidance_decisions",
    "FINDINGS": "ledger.finding_codes",
    "GATE_REASONS": "ledger.gate_results",
    "Actor": "ledger.entries",
    "Agreement": "contract.agreement",
    "Anchor": "record.anchors",
    "Approval": "ledger.approval",
    "Audit": "audit.audit",
    "AuditFinding": "audit.audit",
    "Break": "ledger.entries",
    "Chain": "ledger.entries",
    "TermsChange": "contract.terms",
    "Check": "plan.criteria",
    "Completion": "lifecycle.completion",
    "Criterion": "plan.criteria",
    "DecisionRecord": "contract.decisions",
    "Decision": "contract.decisions",
    "Document": "plan.document",
    "Entry": "ledger.entries",
    "Evaluation": "gates.evaluation",
    "EvidenceStore": "evidence.store",
    "Facts": "gates.facts",
    "FindingCode": "ledger.finding_codes",
    "GateCode": "ledger.gate_results",
    "GateReason": "ledger.gate_results",
    "GateResult": "ledger.gate_results",
    "Job": "plan.job",
    "JobRecord": "board.survey",
    "JobState": "board.job_state",
    "JobTerms": "ledger.terms_content",
    "JobView": "gates.job_view",
    "Ledger": "ledger.ledger",
    "LoopResult": "lifecycle.agent_loop",
    "Requirement": "evidence.requirements",
    "Policy": "ledger.approval",
    "Project": "plan.job",
    "ProjectTerms": "ledger.terms_content",
    "Promise": "lifecycle.promise",
    "AgreementProposal": "contract.agreeing",
    "EvidenceRun": "evidence.commands",
    "ReadyPlan": "lifecycle.planning",
    "Score": "gates.score",
    "Seal": "contract.agreement",
    "EvidenceStatus": "gates.evidence_status",
    "StartResult": "lifecycle.start",
    "Survey": "board.survey",
    "Workspace": "plan.workspace",
    "add_job": "plan.creating",
    "agree": "contract.agreeing",
    "compare_terms": "contract.terms",
    "check_plan": "lifecycle.planning",
    "collect_evidence": "gates.evidence_status",
    "complete": "lifecycle.completion",
    "decide": "contract.decisions",
    "evaluate": "gates.evaluation",
    "facts_of": "gates.facts",
    "find_workspace": "plan.workspace",
    "create_project": "plan.creating",
    "job_terms": "contract.terms",
    "evaluate_and_record": "lifecycle.evaluate_and_record",
    "run_agent_loop": "lifecycle.agent_loop",
    "parse_document": "plan.document",
    "person_at_terminal": "ledger.approval",
    "project_agreement": "contract.agreement",
    "project_terms": "contract.terms",
    "agreement_proposals": "contract.agreeing",
    "read_anchors": "record.anchors",
    "find_ready_jobs": "lifecycle.planning",
    "rewrite_fields": "plan.document",
    "run_as_evidence": "evidence.commands",
    "score_of": "gates.score",
    "set_job_aside": "lifecycle.setting_aside",
    "sign_off": "gates.evidence_status",
    "unproved_actor": "ledger.approval",
    "evidence_statuses": "gates.evidence_status",
    "start_job": "lifecycle.start",
    "terms_hash": "contract.terms",
    "verify_promise": "lifecycle.promise",
    "view_job": "gates.job_view",
    "write_note": "record.anchors",
}

_RENAMED = {
    "Change": "TermsChange",
    "Decided": "DecisionRecord",
    "Looped": "LoopResult",
    "Need": "Requirement",
    "Proposal": "AgreementProposal",
    "Ran": "EvidenceRun",
    "Ready": "ReadyPlan",
    "Standing": "EvidenceStatus",
    "Started": "StartResult",
    "changes": "compare_terms",
    "collect": "collect_evidence",
    "init": "create_project",
    "look_at": "evaluate_and_record",
    "loop": "run_agent_loop",
    "parse": "parse_document",
    "person": "person_at_terminal",
    "proposals": "agreement_proposals",
    "ready": "find_ready_jobs",
    "rewritten": "rewrite_fields",
    "run": "run_as_evidence",
    "set_aside": "set_job_aside",
    "somebody": "unproved_actor",
    "standings": "evidence_statuses",
    "start": "start_job",
}

__getattr__ = lazy_attributes(__name__, _FILE_OF, renamed=_RENAMED)

__all__ = [
    "FINDINGS",
    "GATE_REASONS",
    "Actor",
    "Agreement",
    "AgreementProposal",
    "Anchor",
    "Approval",
    "Audit",
    "AuditFinding",
    "Break",
    "Chain",
    "Check",
    "Completion",
    "Criterion",
    "Decision",
    "DecisionRecord",
    "Document",
    "Entry",
    "Evaluation",
    "EvidenceRun",
    "EvidenceStatus",
    "EvidenceStore",
    "Facts",
    "FindingCode",
    "GateCode",
    "GateReason",
    "GateResult",
    "GuidanceProposal",
    "Job",
    "JobRecord",
    "JobState",
    "JobTerms",
    "JobView",
    "Ledger",
    "LoopResult",
    "Policy",
    "Project",
    "ProjectTerms",
    "Promise",
    "ReadyPlan",
    "Requirement",
    "Score",
    "Seal",
    "StartResult",
    "Survey",
    "TermsChange",
    "Workspace",
    "accept_proposal",
    "add_job",
    "agree",
    "agreement_proposals",
    "check_plan",
    "collect_evidence",
    "compare_terms",
    "complete",
    "create_project",
    "decide",
    "evaluate",
    "evaluate_and_record",
    "evidence_statuses",
    "facts_of",
    "find_ready_jobs",
    "find_workspace",
    "job_terms",
    "parse_document",
    "person_at_terminal",
    "project_agreement",
    "project_terms",
    "propose_guidance",
    "read_anchors",
    "rewrite_fields",
    "run_agent_loop",
    "run_as_evidence",
    "score_of",
    "set_job_aside",
    "sign_off",
    "start_job",
    "terms_hash",
    "unproved_actor",
    "verify_promise",
    "view_job",
    "write_note",
]
