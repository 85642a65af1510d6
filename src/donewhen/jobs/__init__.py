"""Is this job done? Jobs as Markdown, what was agreed about them, evidence, and the record of what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazily

if TYPE_CHECKING:
    from donewhen.jobs.agreement import Agreement, Proposal, Seal, agree, project_agreement, proposals
    from donewhen.jobs.anchors import Anchor, read_anchors, write_note
    from donewhen.jobs.approval import Approval, Policy, person, somebody
    from donewhen.jobs.audit import Audit, AuditFinding
    from donewhen.jobs.codes import FINDINGS, FindingCode
    from donewhen.jobs.collecting import facts_of
    from donewhen.jobs.completion import Completion, complete
    from donewhen.jobs.contract import Change, changes, job_terms, project_terms, terms_hash
    from donewhen.jobs.creating import add_job, init
    from donewhen.jobs.criteria import Check, Criterion
    from donewhen.jobs.decisions import Decided, Decision, decide
    from donewhen.jobs.document import Document, parse, rewritten
    from donewhen.jobs.evaluating import Evaluation, evaluate
    from donewhen.jobs.evidence import EvidenceStore
    from donewhen.jobs.facts import Facts
    from donewhen.jobs.gates.result import GATE_REASONS, GateCode, GateReason, GateResult
    from donewhen.jobs.job import Job, Project
    from donewhen.jobs.ledger import Actor, Break, Chain, Entry, Ledger
    from donewhen.jobs.lifecycle import Started, look_at, set_aside, start
    from donewhen.jobs.looping import Looped, loop
    from donewhen.jobs.needs import Need
    from donewhen.jobs.planning import Ready, check_plan, ready
    from donewhen.jobs.promise import Promise, verify_promise
    from donewhen.jobs.reward import Score, score_of
    from donewhen.jobs.running import Ran, run
    from donewhen.jobs.standing import Standing, collect, sign_off, standings
    from donewhen.jobs.survey import JobRecord, Survey
    from donewhen.jobs.workspace import Workspace, find_workspace

_FILE_OF = {
    "FINDINGS": "codes",
    "GATE_REASONS": "gates.result",
    "Actor": "ledger",
    "Agreement": "agreement",
    "Anchor": "anchors",
    "Approval": "approval",
    "Audit": "audit",
    "AuditFinding": "audit",
    "Break": "ledger",
    "Chain": "ledger",
    "Change": "contract",
    "Check": "criteria",
    "Completion": "completion",
    "Criterion": "criteria",
    "Decided": "decisions",
    "Decision": "decisions",
    "Document": "document",
    "Entry": "ledger",
    "Evaluation": "evaluating",
    "EvidenceStore": "evidence",
    "Facts": "facts",
    "FindingCode": "codes",
    "GateCode": "gates.result",
    "GateReason": "gates.result",
    "GateResult": "gates.result",
    "Job": "job",
    "JobRecord": "survey",
    "Ledger": "ledger",
    "Looped": "looping",
    "Need": "needs",
    "Policy": "approval",
    "Project": "job",
    "Promise": "promise",
    "Proposal": "agreement",
    "Ran": "running",
    "Ready": "planning",
    "Score": "reward",
    "Seal": "agreement",
    "Standing": "standing",
    "Started": "lifecycle",
    "Survey": "survey",
    "Workspace": "workspace",
    "add_job": "creating",
    "agree": "agreement",
    "changes": "contract",
    "check_plan": "planning",
    "collect": "standing",
    "complete": "completion",
    "decide": "decisions",
    "evaluate": "evaluating",
    "facts_of": "collecting",
    "find_workspace": "workspace",
    "init": "creating",
    "job_terms": "contract",
    "look_at": "lifecycle",
    "loop": "looping",
    "parse": "document",
    "person": "approval",
    "project_agreement": "agreement",
    "project_terms": "contract",
    "proposals": "agreement",
    "read_anchors": "anchors",
    "ready": "planning",
    "rewritten": "document",
    "run": "running",
    "score_of": "reward",
    "set_aside": "lifecycle",
    "sign_off": "standing",
    "somebody": "approval",
    "standings": "standing",
    "start": "lifecycle",
    "terms_hash": "contract",
    "verify_promise": "promise",
    "write_note": "anchors",
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
    "facts_of",
    "find_workspace",
    "init",
    "job_terms",
    "look_at",
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
