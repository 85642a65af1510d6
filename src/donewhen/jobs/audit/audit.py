"""The audit: check ledger chains, plan files against the ledger, stored evidence, labels, and anchors.

An audit reads every file itself; it uses no index and no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from donewhen.config.settings import Settings
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import read_whole
from donewhen.foundation.git import committed_files, repository_root, worktree_root
from donewhen.foundation.locks import LockedError
from donewhen.jobs.audit.accepted_heads import heads_gone_back
from donewhen.jobs.audit.audit_evidence import evidence_problems, stored_names
from donewhen.jobs.audit.audit_labels import label_problems
from donewhen.jobs.contract.agreeing import location_of_change
from donewhen.jobs.contract.agreement import Agreement, job_agreement, project_agreement
from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.ledger.entries import Chain
from donewhen.jobs.ledger.entry_content import Ran
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.document import Document
from donewhen.jobs.plan.frontmatter import DocumentError
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.workspace import PLAN, Workspace
from donewhen.jobs.record.anchors import read_anchors
from donewhen.jobs.record.head_watch import ACCEPT
from donewhen.jobs.record.projection import Mismatch, mismatches, parent_mismatches, pending_writes

Severity = Literal["error", "warning"]


class AuditFinding(NamedTuple):
    """A problem. Errors mean that the record can't be trusted; warnings do not."""

    severity: Severity
    code: str
    message: str
    where: str
    next: str | None = None


class Audit(NamedTuple):
    """How much was audited, and the findings."""

    jobs: int
    chains: int
    entries: int
    evidence: int
    anchors: int
    findings: tuple[AuditFinding, ...]

    @property
    def clean(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)


def audit_workspace(workspace: Workspace) -> Audit:
    """Audit everything; findings don't stop the audit."""
    ledger = workspace.ledger
    chains: dict[str, Chain] = {}
    findings: list[AuditFinding] = []
    for name in ledger.chains():
        try:
            chains[name] = ledger.read_settled(name)
        except OSError as error:
            message = f"The chain can't be read: {error.strerror}."
            where = _ledger_file(workspace, name)
            findings.append(AuditFinding("error", FindingCode.CHAIN_BROKEN, message, where))
    findings += [*_chain_findings(workspace, chains), *_git_findings(workspace)]
    store = evidence_store(workspace)
    for name, chain in chains.items():
        findings += _evidence_findings(workspace, store, name, chain)
    jobs, plan_findings = _plan_findings(workspace, chains)
    findings += plan_findings
    codes = {"unproved": FindingCode.LABEL_UNPROVED, "edited": FindingCode.LABELS_EDITED}
    findings += [
        AuditFinding("error", codes.get(problem.code, problem.code), problem.message, problem.where, problem.next)
        for problem in label_problems(workspace, chains)
    ]
    anchors = read_anchors(workspace)
    findings += [
        AuditFinding(
            "error",
            FindingCode.ANCHOR_MISMATCH,
            f"Entry {anchor.seq} of {anchor.chain} differs from the one that commit {anchor.commit[:10]} anchored.",
            _ledger_file(workspace, anchor.chain),
            "Restore the ledger from that commit.",
        )
        for anchor in anchors
        if not anchor.holds(chains[anchor.chain].entries if anchor.chain in chains else ())
    ]
    if chains and not anchors:
        findings.append(
            AuditFinding(
                "warning",
                FindingCode.ANCHOR_ABSENT,
                "The ledger has no anchor, so a rewritten ledger would not be detected.",
                _ledger_folder(workspace),
                "donewhen anchor",
            )
        )
    findings += _head_findings(workspace)
    entries = [entry for chain in chains.values() for entry in chain.entries]
    stored = sum(len(stored_names(entry.content)) for entry in entries)
    return Audit(jobs, len(chains), len(entries), stored, len(anchors), tuple(findings))


def _chain_findings(workspace: Workspace, chains: Mapping[str, Chain]) -> Iterator[AuditFinding]:
    for name, chain in chains.items():
        for chain_break in chain.breaks:
            where = f"{_ledger_file(workspace, name)}:{chain_break.line}"
            if chain_break.torn:
                message = f"A write was interrupted: {chain_break.problem}."
                yield AuditFinding("warning", FindingCode.TORN, message, where)
            else:
                other = chain_break.other_version
                summary = "The chain can't be used" if other else "The chain is broken"
                yield AuditFinding(
                    "error",
                    FindingCode.OTHER_VERSION if other else FindingCode.CHAIN_BROKEN,
                    f"{summary}: {chain_break.problem}.",
                    where,
                    chain_break.next_step,
                )


def _head_findings(workspace: Workspace) -> Iterator[AuditFinding]:
    """Check that no chain has gone back behind where it ended before on this machine."""
    try:
        looked = heads_gone_back(workspace.root)
    except (OSError, DonewhenError):
        return  # reported for the chain, or for git
    code = FindingCode.RECORD_GONE_BACK
    if looked.problem:
        yield AuditFinding("error", code, f"{looked.problem}.", _ledger_folder(workspace), ACCEPT)
    for gone in looked.gone_back:
        severity: Severity = "error" if gone.lost else "warning"
        yield AuditFinding(severity, code, gone.message, _ledger_file(workspace, gone.chain), gone.next_step)


def _git_findings(workspace: Workspace) -> Iterator[AuditFinding]:
    """Check that committed ledger files were only appended to since."""
    top = worktree_root(workspace.root)
    if top is None:
        if (repository := repository_root(workspace.root)) is not None:
            yield AuditFinding(
                "error",
                FindingCode.GIT,
                "There is a git repository, but git fails, so the ledger can't be compared with the last commit.",
                str(repository / ".git"),
                "git status",
            )
        return
    folder = (workspace.folder / "ledger").relative_to(top).as_posix()
    for name, committed in committed_files(top, folder):
        if not name.endswith((".jsonl", ".json")):
            continue
        try:
            now = read_whole(top / name)
        except OSError:
            now = b""
        # An entry that has a file of its own never changes.
        if not now.startswith(committed) if name.endswith(".jsonl") else now != committed:
            yield AuditFinding(
                "error",
                FindingCode.REWRITTEN,
                "Committed entries of the chain were removed or changed.",
                workspace.where(top / name),
                f"git diff HEAD -- {name}",
            )


def _evidence_findings(workspace: Workspace, store: EvidenceStore, name: str, chain: Chain) -> Iterator[AuditFinding]:
    for entry in chain.entries:
        if isinstance(entry.content, Ran):
            where = f"{_ledger_file(workspace, name)}:{entry.seq}"
            for problem in evidence_problems(store, entry.content):
                severity: Severity = "warning" if problem.harmless else "error"
                again = f"donewhen run {name}" if problem.code == FindingCode.EVIDENCE_MISSING else None
                yield AuditFinding(severity, problem.code, problem.message, where, again)


def _plan_findings(workspace: Workspace, chains: Mapping[str, Chain]) -> tuple[int, list[AuditFinding]]:
    try:
        project = workspace.project()
        settings = workspace.settings()
        agreement = project_agreement(workspace, project)
    except DonewhenError as error:
        return 0, [AuditFinding("error", error.code, error.message, error.where or "", error.next_step)]
    findings = _read_twice(workspace, project.path, chains.get(project.id), lambda chain: _project(workspace, chain))
    seen: set[str] = {project.id}
    for folder in workspace.workstream_folders():
        findings += _workstream_findings(workspace, folder / PLAN, chains, seen)
    count = 0
    for place in workspace.places():
        count += 1
        try:
            job = workspace.job_at(place.path)
        except DonewhenError as error:
            code = "document" if isinstance(error, DocumentError) else error.code
            findings.append(AuditFinding("error", code, error.message, error.where or "", error.next_step))
            seen.add(place.id)
            continue
        if job.id in seen:
            message = f"Another job has the same id {job.id}."
            findings.append(AuditFinding("error", FindingCode.DUPLICATE_ID, message, workspace.where(job.path)))
        seen.add(job.id)
        findings += _read_twice(
            workspace, job.path, chains.get(job.id), partial(_job, workspace, job, agreement, settings)
        )
    findings += [
        AuditFinding(
            "error",
            FindingCode.JOB_MISSING,
            f"The ledger has a chain for {name}, but its plan file is missing.",
            _ledger_file(workspace, name),
        )
        for name in chains
        if name not in seen
    ]
    return count, findings


def _read_twice(
    workspace: Workspace, path: Path, chain: Chain | None, read: Callable[[Chain | None], Iterable[AuditFinding]]
) -> list[AuditFinding]:
    """Findings about a plan. Before one is reported, plan and chain are read again under the lock of their writers.

    ``read`` is called with the chain that was read before; then with None, to read everything again.
    """
    findings = [*read(chain if chain is not None else Chain((), ()))]
    if not findings or not workspace.folder.is_dir():
        return findings
    try:
        with workspace.locked(path):
            return [*read(None)]
    except (OSError, LockedError):
        # Where nobody can lock, nobody can write.
        return findings


def _project(workspace: Workspace, chain: Chain | None) -> Iterator[AuditFinding]:
    project = workspace.project()
    where = workspace.where(project.path)
    agreement = project_agreement(workspace, project)
    yield from _agreement_findings(project.id, agreement, project, where, workspace.settings())
    chain = workspace.ledger.read(project.id) if chain is None else chain
    yield from _parent_findings(project.document, chain, where)


def _job(
    workspace: Workspace, job: Job, project: Agreement, settings: Settings, chain: Chain | None
) -> Iterator[AuditFinding]:
    if chain is None:
        job = workspace.job_at(job.path)
        chain = workspace.ledger.read(job.id)
        settings = workspace.settings()
        project = project_agreement(workspace, workspace.project())
    where = workspace.where(job.path)
    yield from _agreement_findings(job.id, job_agreement(job, chain, project), job, where, settings)
    if chain.entries:
        yield from _field_findings(job.document, chain, where)
    elif job.document.fields.get("agreed_by"):
        message = f"{job.id} has the field agreed_by, which only donewhen writes, but the ledger has no agreement."
        yield AuditFinding("error", FindingCode.TAMPERED, message, where, "Restore .donewhen/ledger.")
    elif job.status == "done":
        message = f"{job.id} says done, but the ledger has no record of it."
        yield AuditFinding("error", FindingCode.UNSEALED, message, where)


def _workstream_findings(
    workspace: Workspace, path: Path, chains: Mapping[str, Chain], seen: set[str]
) -> Iterator[AuditFinding]:
    try:
        name = str(workspace.read(path).fields.get("id") or path.parent.name)
    except DocumentError as error:
        yield AuditFinding("error", error.code, error.message, error.where or "", error.next_step)
        return
    seen.add(name)

    def read(chain: Chain | None) -> Iterator[AuditFinding]:
        chain = workspace.ledger.read(name) if chain is None else chain
        yield from _parent_findings(workspace.read(path), chain, workspace.where(path))

    yield from _read_twice(workspace, path, chains.get(name), read)


def _agreement_findings(
    name: str, agreement: Agreement, plan: Job | Project, where: str, settings: Settings
) -> Iterator[AuditFinding]:
    match agreement.state:
        case "voided":
            for change in agreement.voiding:
                values = f"{change.before} → {change.after or 'nothing'}"
                message = f"{name}: {change.field} was {change.kind} since it was agreed: {values}."
                place = location_of_change(change, plan, where, settings)
                yield AuditFinding("error", FindingCode.VOIDED, message, place, f"donewhen contract diff {name}")
        case "unsealed":
            yield AuditFinding(
                "warning",
                FindingCode.UNSEALED,
                f"{name} says agreed, but the ledger has no sealed agreement.",
                where,
                f"donewhen agree {name}",
            )


def _field_findings(document: Document, chain: Chain, where: str) -> Iterator[AuditFinding]:
    fields = document.fields
    for name in pending_writes(fields, chain.entries):
        yield AuditFinding(
            "warning",
            FindingCode.INTERRUPTED,
            f"A write was interrupted before {name} was written; the next command that writes this plan finishes it.",
            where,
        )
    yield from _edited_fields(document, mismatches(fields, chain.entries), where)


def _parent_findings(document: Document, chain: Chain, where: str) -> Iterator[AuditFinding]:
    if chain.entries:
        yield from _edited_fields(document, parent_mismatches(document.fields, chain.entries), where)


def _edited_fields(document: Document, found: Iterable[Mismatch], where: str) -> Iterator[AuditFinding]:
    for mismatch in found:
        line = document.line_of(mismatch.field)
        yield AuditFinding(
            "error",
            FindingCode.TAMPERED,
            f"{mismatch.field} says {mismatch.found!r}, but the ledger says {mismatch.expected!r}.",
            f"{where}:{line}" if line else where,
            "Undo the edit: the ledger decides, not this field.",
        )


def _ledger_folder(workspace: Workspace) -> str:
    return workspace.where(workspace.folder / "ledger")


def _ledger_file(workspace: Workspace, chain: str) -> str:
    return workspace.where(workspace.ledger.place_of(chain))
