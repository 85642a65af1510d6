"""Agreeing: what is proposed, what prevents it, and sealing it in the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from donewhen.config.agent_runtimes import PROJECT_HOOK_FILES
from donewhen.config.loader import CONFIG_FILE
from donewhen.config.project_hooks import file_disabling_hooks
from donewhen.config.settings import Settings
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import read_limited
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.size_limits import SETTINGS
from donewhen.jobs.contract.agreement import (
    Agreement,
    AgreementProblem,
    approval_policy,
    current_project_terms,
    job_agreement,
    project_agreement,
)
from donewhen.jobs.contract.agreement_problems import (
    hidden_character_problems,
    placeholder_problems,
    problems_of_job,
)
from donewhen.jobs.contract.inputs import output_manifest
from donewhen.jobs.contract.terms import (
    Terms,
    TermsChange,
    criterion_term,
    job_terms,
    terms_hash,
)
from donewhen.jobs.contract.terms_changes import MAX_TERM
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.entry_content import (
    Agreed,
    AgreedBaseline,
    AgreedEnvironment,
    AgreedTree,
    Completed,
    EntryContent,
    Started,
)
from donewhen.jobs.ledger.evidence_levels import NEEDED_BY_STAKES
from donewhen.jobs.ledger.terms_content import plain_terms
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.snapshot import snapshot_of
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.parents import mark_parents_in_progress
from donewhen.jobs.record.writing import Writing, operation, writing


@dataclass(frozen=True)
class AgreementProposal:
    """A job or project to agree to, with the state of its agreement."""

    plan: Job | Project
    where: str
    agreement: Agreement
    problems: tuple[AgreementProblem, ...]
    settings: Settings

    @property
    def chain(self) -> str:
        return self.plan.id

    def place(self, change: TermsChange) -> str:
        """The file and line of a change."""
        return location_of_change(change, self.plan, self.where, self.settings)


def agreement_proposals(workspace: Workspace, jobs: Sequence[Job]) -> tuple[AgreementProposal, ...]:
    """The project and these jobs, each with the state of its agreement and the problems that prevent agreeing."""
    project = workspace.project()
    agreed_project = project_agreement(workspace, project)
    where = workspace.where(project.path)
    problems = (
        *placeholder_problems(project.criteria, where),
        *hidden_character_problems(project, where),
    )
    settings = workspace.settings()
    proposals = [AgreementProposal(project, where, agreed_project, problems, settings)]
    for job in jobs:
        agreement = job_agreement(job, workspace.ledger.read(job.id), agreed_project)
        where = workspace.where(job.path)
        problems = tuple(problems_of_job(workspace, job, where, settings))
        proposals.append(AgreementProposal(job, where, agreement, problems, settings))
    return tuple(proposals)


def agree(
    workspace: Workspace,
    proposal: AgreementProposal,
    approval: Approval,
    *,
    notes: str = "",
    tree: AgreedTree | None = None,
    baselines: Mapping[str, AgreedBaseline] | None = None,
    environment: AgreedEnvironment | None = None,
) -> Entry:
    """Seal the proposed terms, if they are still current. An agreement by an agent is recorded without effect.

    ``tree`` is the files that were agreed to with them; without it, checks run in the work tree. ``environment`` is
    what is around the checks here. ``agree_to_job`` in ``lifecycle/agreeing.py`` finds both out.
    """
    with operation(workspace):
        return _agree(workspace, proposal, approval, notes, tree, baselines or {}, environment)


def _agree(
    workspace: Workspace,
    proposal: AgreementProposal,
    approval: Approval,
    notes: str,
    tree: AgreedTree | None,
    baselines: Mapping[str, AgreedBaseline],
    environment: AgreedEnvironment | None,
) -> Entry:
    policy = approval_policy(workspace)
    with writing(workspace, proposal.plan.path, proposal.chain) as plan:
        # What does not count now must not start to count if the policy changes later.
        how = "agreed" if approval.counts(policy) else "said"
        data: dict[str, Any] = {"how": how, "terms": plain_terms(proposal.agreement.terms)}
        data["hash"] = terms_hash(proposal.agreement.terms)
        if isinstance(proposal.plan, Job):
            data["needs"] = dict(NEEDED_BY_STAKES)
        if notes:
            data["notes"] = notes
        if tree is not None:
            data["tree"] = msgspec.to_builtins(tree)
        if baselines:
            data["baselines"] = msgspec.to_builtins(dict(baselines))
        if tree is not None and environment is not None:
            data["environment"] = msgspec.to_builtins(environment)
        begun = any(_has_begun(entry.content) for entry in plan.entries)
        is_new = not plan.entries or proposal.plan.status == "planned"
        if how == "agreed" and not begun and isinstance(proposal.plan, Job) and is_new:
            # Outputs that exist before the start are not this job's work. A status that was typed before means nothing.
            data["outputs"] = dict(output_manifest(workspace, proposal.plan).files)
        if _terms_now(plan.snapshot, proposal) != proposal.agreement.terms:
            raise DonewhenError(
                "The plan changed while it was being reviewed. Nothing was agreed.",
                where=workspace.where(proposal.plan.path),
                next_step="Review it again: donewhen agree",
            )
        writes: dict[str, Value] = {}
        if approval.counts(policy):
            now = workspace.now()
            who = f"{approval.by.name} ({approval.by.kind})"
            writes = {"agreement_status": "agreed", "agreed_at": now, "agreed_by": who, "updated_at": now}
        entry = plan.append("agreed", data, approval, writes)
    if how == "agreed" and isinstance(proposal.plan, Job) and proposal.plan.status != "cancelled":
        # The workstream and the project were done without this job.
        _reopen_parents(workspace, proposal.plan, policy, approval.by)
    return entry


def _has_begun(content: EntryContent) -> bool:
    return isinstance(content, Started) or (isinstance(content, Agreed | Completed) and content.outputs is not None)


def _reopen_parents(workspace: Workspace, job: Job, policy: Policy, by: Actor) -> None:
    if history_of(job.id, workspace.ledger.read(job.id).entries, policy).completed is None:
        mark_parents_in_progress(workspace, job, policy, by, begin=False)


def seal_tightened_terms(workspace: Workspace, job: Job, by: Actor) -> tuple[Entry, ...]:
    """Seal additions and tightenings of the job and its project, so that they can't be removed unnoticed."""
    sealed: list[Entry] = []
    for chain, plan, agreement in _agreements(snapshot_of(workspace), job.path):
        if _is_only_tightened(agreement):
            with writing(workspace.live, plan.path, chain) as open_plan:
                # Read again under the lock: another process may have sealed or loosened it.
                agreements = _agreements(open_plan.snapshot, job.path)
                current = next(found for name, _, found in agreements if name == chain)
                if _is_only_tightened(current):
                    sealed.append(_append_seal(open_plan, current, by))
    return tuple(sealed)


def seal_tightened_job(plan: Writing, by: Actor) -> None:
    """The same for a job alone, whose lock is held."""
    *_, (_, _, agreement) = _agreements(plan.snapshot, plan.job.path)
    if _is_only_tightened(agreement):
        _append_seal(plan, agreement, by)


def _agreements(workspace: Workspace, path: Path) -> Iterator[tuple[str, Job | Project, Agreement]]:
    """The agreements of the project and of the job at ``path``."""
    project = workspace.project()
    agreed_project = project_agreement(workspace, project)
    yield project.id, project, agreed_project
    job = workspace.job_at(path)
    yield job.id, job, job_agreement(job, workspace.ledger.read(job.id), agreed_project)


def location_of_change(change: TermsChange, plan: Job | Project, where: str, settings: Settings) -> str:
    """The file and line of a change: of the changed field, or of the list that an item is missing from."""
    section, _, name = change.field.partition(".")
    match section:
        case "settings":
            return _location_in_settings(settings, name)
        case "hooks" | "hooks_switched_off":
            if section == "hooks":
                return (change.after or change.before or "").partition(": ")[0]
            return file_disabling_hooks(settings.root) or PROJECT_HOOK_FILES[0]
        case "baselines":
            return name
        case "missions":
            return f"{settings.judge.missions}/{name.partition('.')[0]}"
        case "criteria":
            lines = [criterion.line for criterion in plan.criteria if change.after == criterion_term(criterion)]
            # A removed criterion may still be there with the same text, but another check or none.
            text = (change.before or "").rpartition(" [check: ")[0] or change.before
            lines += [criterion.line for criterion in plan.criteria if criterion.text == text]
            lines += [criterion.line for criterion in plan.criteria] or [plan.document.first_body_line]
            return f"{where}:{lines[0]}"
        case "needs":
            lines = [
                criterion.line
                for criterion in plan.criteria
                if (change.after or "").endswith(f"of: {one_line(criterion_term(criterion), MAX_TERM)}")
            ]
            return f"{where}:{lines[0]}" if lines else where
        case _:
            line = plan.document.line_of(
                {"commands": "truth_required_commands", "exemptions": name}.get(section, section)
            )
            return f"{where}:{line}" if line else where


def _location_in_settings(settings: Settings, name: str) -> str:
    source = settings.source
    if source is None:
        return CONFIG_FILE
    section, _, key = name.rpartition(".")
    table = ""
    with suppress(OSError):
        for number, text in enumerate(read_limited(source, SETTINGS).decode("utf-8", "replace").splitlines(), 1):
            if header := re.match(r"\s*\[(?:tool\.donewhen\.?)?([\w.]*)\]", text):
                table = header[1]
            elif table == section and re.match(rf"\s*{re.escape(key)}\s*=", text):
                return f"{source.name}:{number}"
    return source.name


def _is_only_tightened(agreement: Agreement) -> bool:
    return agreement.state == "agreed" and bool(agreement.changes)


def _append_seal(plan: Writing, agreement: Agreement, by: Actor) -> Entry:
    terms = agreement.terms
    changes = [change._asdict() for change in agreement.changes]
    data = {"how": "tightened", "terms": plain_terms(terms), "hash": terms_hash(terms), "changes": changes}
    return plan.append("agreed", data, Approval(by))


def _terms_now(workspace: Workspace, proposal: AgreementProposal) -> Terms:
    project = workspace.project()
    if proposal.chain == project.id:
        return current_project_terms(workspace, project)
    return job_terms(workspace.job_at(proposal.plan.path))
