"""What a job's room is made of besides the files on disk: the agreed tree, the work area, and what people accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from msgspec import UNSET

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.process import split_command
from donewhen.jobs.contract.agreement import Seal, approval_policy, current_seal
from donewhen.jobs.contract.terms import criterion_term
from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import (
    Agreed,
    AgreedEnvironment,
    AgreedTree,
    ChangesAccepted,
    EnvironmentAccepted,
)
from donewhen.jobs.ledger.terms_content import JobTerms, Terms
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.own_commands import checking_commands
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.judging_names import NamedFile, named_files
from donewhen.jobs.room.work_area import WorkArea, area_of


@dataclass(frozen=True)
class RoomBasis:
    """The agreed part of a room."""

    tree: AgreedTree
    terms: Terms
    job_folder: str
    """Relative to the project."""
    accepted: Mapping[str, str]
    """Changes that a person accepted: names with the names of their contents."""
    commands: tuple[tuple[str, ...], ...]
    """The commands that check the job."""
    checked: tuple[str, ...] = ()
    """The files that file checks read."""
    schemas: tuple[str, ...] = ()
    environment: AgreedEnvironment | None = None
    """What was agreed to be around the checks, on the machine of the agreement."""
    accepted_environments: tuple[AgreedEnvironment, ...] = ()
    """What people have accepted to be around the checks since, on any machine; the newest first."""
    compiled: tuple[str, ...] = ()
    """The names of the compiled modules that the agreement has."""

    @property
    def hash(self) -> str:
        """A hash of the basis, which is part of the key of each piece of evidence."""
        listed: list[str] = [] if not isinstance(self.terms, JobTerms) else [*self._paths("outputs")]
        return digest_of(
            {
                "tree": _plain(self.tree),
                "work": self._paths("work"),
                "outputs": listed,
                "present": self._paths("present"),
                "prepare": self._paths("prepare"),
                "tests_may_change": self._paths("tests_may_change"),
                "accepted": dict(self.accepted),
            }
        )

    def environment_on(self, machine: str) -> AgreedEnvironment | None:
        """What a person has accepted or agreed to be around the checks on a machine; None if nobody has."""
        agreed = () if self.environment is None else (self.environment,)
        return next((found for found in (*self.accepted_environments, *agreed) if found.machine == machine), None)

    @property
    def prepare(self) -> tuple[tuple[str, ...], ...]:
        """The commands that build what the checks need."""
        return tuple(split_command(command) for command in self._paths("prepare"))

    def area(self, inside: str) -> WorkArea:
        """The work area, as names in the repository."""
        return area_of(
            inside,
            self.job_folder,
            self._paths("work"),
            self._paths("outputs"),
            self._paths("tests_may_change"),
            self.checked,
        )

    def present(self, inside: str) -> tuple[str, ...]:
        """Ignored files that were agreed to be there, as names or patterns in the repository."""
        return area_of(inside, self.job_folder, self._paths("present"), ()).patterns

    def named(self, inside: str) -> list[tuple[NamedFile, ...]]:
        """The files that the checks name and that judge the work."""
        files = [tuple(named_files(command)) for command in (*self.commands, *self.prepare)]
        places = area_of(inside, self.job_folder, (), self.schemas).outputs
        files.append(tuple(NamedFile(place.removeprefix(inside), whole_folder=True) for place in places))
        return files

    def _paths(self, name: str) -> tuple[str, ...]:
        value = getattr(self.terms, name, UNSET)
        return () if value is UNSET else tuple(value)


_IN_PLACE: ContextVar[bool] = ContextVar("donewhen_in_place", default=False)


@contextmanager
def in_place() -> Iterator[None]:
    """Meanwhile, checks run in the project's own folder, because that is a room already."""
    token = _IN_PLACE.set(True)
    try:
        yield
    finally:
        _IN_PLACE.reset(token)


def is_in_place() -> bool:
    """Whether checks run in the project's own folder, because that is a room already."""
    return _IN_PLACE.get()


def basis_of(workspace: Workspace, job: Job, *, policy: Policy | None = None) -> RoomBasis | None:
    """The basis of a job's room. None if nothing is agreed, if it was agreed without a tree, or if the folder is a room
    itself: then checks run in the work tree."""
    return None if is_in_place() else agreed_basis(workspace, job, policy=policy)


def agreed_basis(workspace: Workspace, job: Job, *, policy: Policy | None = None) -> RoomBasis | None:
    """The same, also where the folder is a room itself."""
    whole = job.path == workspace.project_file
    policy = approval_policy(workspace) if policy is None else policy
    entries = workspace.ledger.read(job.id).entries
    seal = current_seal(job.id, entries, None if whole else policy)
    return None if seal is None else basis_from_seal(workspace, job, seal, entries, policy)


def basis_from_seal(
    workspace: Workspace, job: Job, seal: Seal, entries: Sequence[Entry], policy: Policy
) -> RoomBasis | None:
    """The basis of a job with this seal."""
    agreed = seal.entry.content
    if not isinstance(agreed, Agreed) or agreed.tree is None or agreed.terms is None:
        return None
    if isinstance(agreed.terms, JobTerms) and agreed.terms.work is UNSET:
        return None
    accepted = accepted_changes(job.id, entries, seal.entry.seq, policy)
    # What was agreed to, not what was tightened since: an output that is added later is outside of the area.
    basis = basis_for(workspace, job, agreed.tree, agreed.terms, accepted, agreed.environment)
    compiled = dict.fromkeys(baseline.compiled for baseline in agreed.baselines.values() if baseline.compiled)
    return replace(
        basis,
        accepted_environments=tuple(_accepted_environments(job.id, entries, seal.entry.seq, policy)),
        compiled=tuple(compiled),
    )


def basis_for(
    workspace: Workspace,
    job: Job,
    tree: AgreedTree,
    terms: Terms,
    accepted: Mapping[str, str],
    environment: AgreedEnvironment | None = None,
) -> RoomBasis:
    """The basis of a job with this agreement."""
    checks = [criterion.check for criterion in job.criteria if criterion.check is not None]
    # What a person has agreed to, not what was added since: it would widen the area.
    known = frozenset(terms.criteria)
    agreed = [item.check for item in job.criteria if item.check is not None and criterion_term(item) in known]
    commands = [check.argv for check in checks if check.kind == "run"]
    commands += [split_command(command) for command in checking_commands(job.truth_required_commands)]
    return RoomBasis(
        tree=tree,
        terms=terms,
        job_folder=workspace.where(job.folder),
        accepted=accepted,
        commands=tuple(commands),
        checked=tuple(check.path for check in agreed if check.kind == "file" and check.path is not None),
        schemas=tuple(check.schema for check in checks if check.schema is not None),
        environment=environment,
    )


def area_of_job(workspace: Workspace, job: Job, inside: str) -> WorkArea:
    """The work area that a job's plan names; its own folder belongs to it."""
    folder = workspace.where(job.folder)
    return area_of(inside, folder, (*(job.work or ()), f"/{folder}/**"), job.outputs)


def accepted_changes(chain: str, entries: Iterable[Entry], since: int, policy: Policy) -> dict[str, str]:
    """The changes that people have accepted since an agreement."""
    accepted: dict[str, str] = {}
    for entry in entries:
        if entry.seq > since and isinstance(entry.content, ChangesAccepted) and is_approval(entry, chain, policy):
            accepted |= entry.content.value.files
    return accepted


def _accepted_environments(
    chain: str, entries: Sequence[Entry], since: int, policy: Policy
) -> Iterator[AgreedEnvironment]:
    for entry in reversed(entries):
        if entry.seq > since and isinstance(entry.content, EnvironmentAccepted) and is_approval(entry, chain, policy):
            yield entry.content.value


def _plain(tree: AgreedTree) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(tree)
    return plain
