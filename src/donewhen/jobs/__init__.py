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
    from donewhen.jobs.contract import Change, changes, job_terms, project_terms, terms_hash
    from donewhen.jobs.creating import add_job, init
    from donewhen.jobs.criteria import Check, Criterion
    from donewhen.jobs.decisions import Decided, Decision, decide
    from donewhen.jobs.document import Document, parse, rewritten
    from donewhen.jobs.evidence import EvidenceStore
    from donewhen.jobs.job import Job, Project
    from donewhen.jobs.ledger import Actor, Break, Chain, Entry, Ledger
    from donewhen.jobs.needs import Need
    from donewhen.jobs.running import Ran, run
    from donewhen.jobs.standing import Standing, collect, sign_off, standings
    from donewhen.jobs.survey import JobRecord, Survey
    from donewhen.jobs.workspace import Workspace, find_workspace

_FILE_OF = {
    "FINDINGS": "codes",
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
    "Criterion": "criteria",
    "Decided": "decisions",
    "Decision": "decisions",
    "Document": "document",
    "Entry": "ledger",
    "EvidenceStore": "evidence",
    "FindingCode": "codes",
    "Job": "job",
    "JobRecord": "survey",
    "Ledger": "ledger",
    "Need": "needs",
    "Policy": "approval",
    "Project": "job",
    "Proposal": "agreement",
    "Ran": "running",
    "Seal": "agreement",
    "Standing": "standing",
    "Survey": "survey",
    "Workspace": "workspace",
    "add_job": "creating",
    "agree": "agreement",
    "changes": "contract",
    "collect": "standing",
    "decide": "decisions",
    "find_workspace": "workspace",
    "init": "creating",
    "job_terms": "contract",
    "parse": "document",
    "person": "approval",
    "project_agreement": "agreement",
    "project_terms": "contract",
    "proposals": "agreement",
    "read_anchors": "anchors",
    "rewritten": "document",
    "run": "running",
    "sign_off": "standing",
    "somebody": "approval",
    "standings": "standing",
    "terms_hash": "contract",
    "write_note": "anchors",
}

__getattr__ = lazily(__name__, _FILE_OF)

__all__ = [
    "FINDINGS",
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
    "Criterion",
    "Decided",
    "Decision",
    "Document",
    "Entry",
    "EvidenceStore",
    "FindingCode",
    "Job",
    "JobRecord",
    "Ledger",
    "Need",
    "Policy",
    "Project",
    "Proposal",
    "Ran",
    "Seal",
    "Standing",
    "Survey",
    "Workspace",
    "add_job",
    "agree",
    "changes",
    "collect",
    "decide",
    "find_workspace",
    "init",
    "job_terms",
    "parse",
    "person",
    "project_agreement",
    "project_terms",
    "proposals",
    "read_anchors",
    "rewritten",
    "run",
    "sign_off",
    "somebody",
    "standings",
    "terms_hash",
    "write_note",
]
