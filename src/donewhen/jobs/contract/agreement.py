"""The agreed terms of jobs and projects, and whether they still hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from donewhen.jobs.contract.mission_folders import mission_folders
from donewhen.jobs.contract.terms import (
    Terms,
    TermsChange,
    compare_terms,
    job_terms,
    project_terms,
    terms_hash,
)
from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.entries import Chain, Entry, EventKind
from donewhen.jobs.ledger.entry_content import Agreed, TermsDecided
from donewhen.jobs.ledger.terms_content import DecidedTerms, JobTerms, ProjectTerms
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.workspace import FROM_SETTINGS, Workspace
from donewhen.jobs.record.projection import pending_writes

AgreementState = Literal["agreed", "unsealed", "voided", "proposed"]
DECIDED_FIELDS: dict[str, frozenset[str]] = {
    "raise_budget": frozenset({"max_iterations"}),
    "stakes": frozenset({"stakes", "reward_target", "max_iterations"}),
    "target": frozenset({"reward_target"}),
}
"""Which terms a decision may loosen."""
_SEALING: frozenset[EventKind] = frozenset({"agreed", "decided"})
"""The entries that can change a seal; most others are runs."""


class Seal(NamedTuple):
    """The agreed terms, and the entry that sealed them."""

    terms: Terms
    entry: Entry

    @property
    def hash(self) -> str:
        return terms_hash(self.terms)


class AgreementProblem(NamedTuple):
    """A reason why something can't be agreed."""

    code: str
    message: str
    where: str


class Agreement(NamedTuple):
    """The current state of an agreement.

    ``agreed``: sealed, and at most tightened since. ``voided``: something was loosened or removed.
    ``unsealed``: the plan file says agreed, but the ledger has no seal. ``proposed``: not agreed yet.
    """

    state: AgreementState
    terms: Terms
    seal: Seal | None
    changes: tuple[TermsChange, ...] = ()

    @property
    def voiding(self) -> tuple[TermsChange, ...]:
        return tuple(change for change in self.changes if change.voids)


def current_seal(chain: str, entries: Iterable[Entry], policy: Policy | None) -> Seal | None:
    """The seal after these entries. Without ``policy`` (the project's chain), its own terms define who may approve."""
    seal: Seal | None = None
    relevant = (entry for entry in entries if entry.type in _SEALING)
    for seal in seals_in(chain, relevant, policy):  # noqa: B007 - only the last is used
        pass
    return seal


def seals_in(chain: str, entries: Iterable[Entry], policy: Policy | None) -> Iterator[Seal | None]:
    """The seal after each of these entries."""
    seal: Seal | None = None
    for entry in entries:
        allowed = Policy.of(seal.terms if seal else None) if policy is None else policy
        content = entry.content
        if isinstance(content, TermsDecided) and seal is not None and is_approval(entry, chain, allowed):
            seal = Seal(_with_decision(seal.terms, content), seal.entry)
        if isinstance(content, Agreed) and content.terms is not None and content.hash == terms_hash(content.terms):
            if content.how == "agreed" and is_approval(entry, chain, allowed):
                seal = Seal(content.terms, entry)
            elif seal is not None and content.how == "tightened" and _is_only_stricter(seal.terms, content.terms):
                seal = Seal(content.terms, seal.entry)
        yield seal


def agreement_state(terms: Terms, seal: Seal | None, *, typed: bool) -> Agreement:
    """Compare the current terms with the sealed ones; ``typed`` is whether the plan file itself says agreed."""
    if seal is None:
        return Agreement("unsealed" if typed else "proposed", terms, None)
    changes = compare_terms(seal.terms, terms)
    return Agreement("voided" if any(change.voids for change in changes) else "agreed", terms, seal, changes)


def project_seal(workspace: Workspace, project: Project) -> Seal | None:
    """The seal of the project, or None."""
    return current_seal(project.id, workspace.ledger.read(project.id).entries, None)


def approval_policy(workspace: Workspace) -> Policy:
    """Who may approve, according to the project's sealed terms."""
    seal = project_seal(workspace, workspace.project())
    return Policy.of(seal.terms if seal else None)


def project_agreement(workspace: Workspace, project: Project) -> Agreement:
    """The state of the project's agreement, with the current settings and hooks."""
    typed = project.agreement_status == "agreed"
    terms = current_project_terms(workspace, project)
    return agreement_state(terms, project_seal(workspace, project), typed=typed)


def job_agreement(job: Job, chain: Chain, project: Agreement) -> Agreement:
    """The state of a job's agreement. The claim of an unsealed project extends to its jobs."""
    typed = project.state == "unsealed" or job.document.fields.get("agreement_status") == "agreed"
    policy = Policy.of(project.seal.terms if project.seal else None)
    terms = terms_as_recorded(job_terms(job), pending_writes(job.document.fields, chain.entries))
    return agreement_state(terms, current_seal(job.id, chain.entries, policy), typed=typed)


def terms_as_recorded(terms: JobTerms, unwritten: Mapping[str, Value]) -> JobTerms:
    """The terms of a plan with what the ledger has decided and a killed writer did not write into the plan."""
    decided = {name: value for name, value in unwritten.items() if name in DecidedTerms.__struct_fields__}
    try:
        return msgspec.structs.replace(terms, **msgspec.convert(decided, DecidedTerms).values())
    except msgspec.ValidationError:
        # No decision writes such values, so the plan is compared as it is.
        return terms


def current_project_terms(workspace: Workspace, project: Project) -> ProjectTerms:
    """The terms of the project, with the current settings and hooks."""

    def read() -> ProjectTerms:
        settings = workspace.settings()
        return project_terms(project, settings, mission_folders(workspace.root, settings), read=workspace.read_file)

    key = (FROM_SETTINGS, project.id, project.criteria, project.github_enabled, project.github_repo)
    return workspace.once(key, read)


def _with_decision(terms: Terms, decision: TermsDecided) -> Terms:
    """The terms after a decision; unchanged if it sets any that its kind may not."""
    values = decision.terms.values()
    if not isinstance(terms, JobTerms) or not DECIDED_FIELDS[decision.decision].issuperset(values):
        return terms
    return msgspec.structs.replace(terms, **values)


def _is_only_stricter(before: Terms, after: Terms) -> bool:
    """Whether new terms need no new agreement. ``after`` is untrusted."""
    return not any(change.voids for change in compare_terms(before, after))
