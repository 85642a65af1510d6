"""Whether a completed job is still valid: its outputs, its inputs and all its upstream jobs must be unchanged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain as chained
from pathlib import Path
from typing import Literal, NamedTuple

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.jobs.board.recorded_files import (
    MadeOutput,
    RecordedFiles,
    changed_outputs,
    changed_since,
    files_at,
    names_of_outputs,
    outputs_made,
)
from donewhen.jobs.contract.agreement import Agreement, job_agreement, project_agreement
from donewhen.jobs.contract.inputs import MISSING, has_content
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Chain
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of

_MAX_LISTED = 5
DependencyState = Literal["done", "open", "cancelled", "invalid", "missing", "cycle"]


class DependencyFact(NamedTuple):
    """A dependency of a job, its state, and the path of dependencies to the job that causes the state."""

    id: str
    state: DependencyState
    chain: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True)
class Validity:
    """The state of a job as a dependency; ``chain`` is the path to the job that fails."""

    state: DependencyState
    chain: tuple[str, ...] = ()
    why: str = ""
    own_output: bool = False
    """Whether only an output of the job itself is gone or changed; nothing that it was built on."""
    refuted: bool = False
    """Whether a check of the job itself fails now."""
    voided: bool = False
    """Whether its plan no longer says what was agreed."""

    @property
    def by_itself(self) -> bool:
        """Whether it is invalid by itself, and not by what it was built on."""
        return self.own_output or self.refuted or self.voided


class DependencyRecord(NamedTuple):
    """The fields of a job that matter to its dependent jobs."""

    path: Path
    depends_on: tuple[str, ...]
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    cancelled: bool
    completed: RecordedFiles | None
    """What it was built on and what it made, if it is done according to its chain."""
    voided: bool = False
    """Whether its plan no longer says what was agreed."""

    def line_of(self, field: str) -> int | None:
        """None: the plan file is not kept."""


class ValidityChecker:
    """Computes validity for many jobs and reads each once; only the requested jobs and their upstream jobs are read."""

    def __init__(
        self,
        workspace: Workspace,
        policy: Policy,
        *,
        places: Mapping[str, Path] | None = None,
        known: Mapping[str, DependencyRecord] | None = None,
        project: Agreement | None = None,
    ) -> None:
        """``places`` are known plan files by job id (finding one reads every folder's name), ``known`` are jobs that
        were just read. A caller that decides passes no ``known`` jobs, so that they are read again. ``project`` is the
        agreement of the project, if the caller has read it."""
        self._workspace = workspace
        self._policy = policy
        self._places = places or {}
        self._jobs: dict[str, DependencyRecord] = dict(known or {})
        self._validities: dict[str, Validity] = {}
        self._in_progress: list[str] = []
        self._made: dict[str, list[MadeOutput]] | None = None
        self.gone_on: set[str] = set()
        """The done jobs with an output that another job has gone on with since."""
        self._being_made: frozenset[str] = frozenset()
        self._project = project

    def dependencies_of(self, job: Job) -> tuple[DependencyFact, ...]:
        """Return each dependency of a job with its state."""
        self._in_progress = [job.id]
        # A job may go on with what it builds on: its own changes don't make its dependencies invalid for itself.
        kept, self._validities, self._being_made = self._validities, {}, names_of_outputs(self._workspace, job)
        validities = [(name, self.of(name)) for name in job.depends_on]
        self._validities, self._being_made = kept, frozenset()
        self._in_progress = []
        return tuple(
            DependencyFact(name, validity.state, (name, *validity.chain), validity.why) for name, validity in validities
        )

    def of(self, name: str) -> Validity:
        """Return the validity of a job. Iterative, because a chain of jobs may be longer than Python's stack."""
        if name not in self._in_progress and name not in self._validities:
            waiting = [(name, self._enter(name))]
            while waiting:
                top, dependencies = waiting[-1]
                following = next(
                    (
                        dependency
                        for dependency in dependencies
                        if dependency not in self._validities and dependency not in self._in_progress
                    ),
                    None,
                )
                if following is not None:
                    waiting.append((following, self._enter(following)))
                    continue
                self._validities.setdefault(top, self._combined_validity(top))
                self._in_progress.remove(top)
                waiting.pop()
        return self._validity(name)

    def _validity(self, name: str) -> Validity:
        if name in self._in_progress:
            return Validity("cycle", (), " → ".join((*self._in_progress[self._in_progress.index(name) :], name)))
        return self._validities[name]

    def _enter(self, name: str) -> Iterator[str]:
        """Check a job by itself; return its dependencies if they still matter."""
        self._in_progress.append(name)
        own = self._own_validity(name)
        if own is not None:
            self._validities[name] = own
            return iter(())
        return iter(self._job(name).depends_on)

    def _own_validity(self, name: str) -> Validity | None:
        try:
            job = self._job(name)
        except UsageError:
            chain = self._workspace.ledger.read(name)
            cancelled = history_of(name, chain.entries, self._policy).status == "cancelled"
            return Validity("cancelled" if cancelled else "missing")
        except DonewhenError as error:
            return Validity("invalid", (), one_line(str(error)))
        if job.cancelled:
            return Validity("cancelled")
        if job.completed is None:
            return Validity("open")
        try:
            changed = changed_since(self._workspace, job, job.completed, self._job)
            if changed:
                return Validity("invalid", (), f"{join_limited(changed, _MAX_LISTED)} changed after it was done")
            if job.voided:
                return Validity("invalid", (), "its agreement is void", voided=True)
            differing = changed_outputs(self._workspace, job, job.completed)
            why = self._why_output_differs(differing, job.completed)
            if why:
                return Validity("invalid", (), why, own_output=True)
            if differing:
                self.gone_on.add(name)
            why = self._why_refuted(name, differing, job.completed)
        except DonewhenError as error:
            return Validity("invalid", (), one_line(str(error)))
        return Validity("invalid", (), why, refuted=True) if why else None

    def _why_output_differs(self, differing: Mapping[str, str], completed: RecordedFiles) -> str:
        wrong = {name: now for name, now in differing.items() if not self._was_made_since(name, now, completed)}
        gone = [name for name, now in wrong.items() if now == MISSING]
        if gone:
            return f"its output {join_limited(gone, _MAX_LISTED)} is gone"
        return f"its output {join_limited([*wrong], _MAX_LISTED)} changed after it was done" if wrong else ""

    def _was_made_since(self, path: str, now: str, completed: RecordedFiles) -> bool:
        """Whether an output is what another job has made of it since, or is being worked on by the job in question."""
        if path in self._being_made and now != MISSING:
            return True
        return any(
            (made.at > completed.at or completed.outputs.get(path) in made.before)
            and (made.content == now or has_content(self._workspace.root / path, made.content))
            for made in self._made_by_jobs().get(path, ())
        )

    def _why_refuted(self, name: str, differing: Mapping[str, str], completed: RecordedFiles) -> str:
        if not (completed.failed_again or differing):
            return ""
        # Imported where it is used: hooks import this module, and this is rare.
        from donewhen.jobs.evidence.failures import failed_checks, failed_file_checks
        from donewhen.jobs.evidence.requirements import requirements_of

        job = self._workspace.job_at(self._job(name).path)
        failed = failed_checks(job, self._workspace.ledger.read(job.id).entries, self._policy)
        # A job that goes on with an output may not take away what this one was checked for.
        files = failed_file_checks(self._workspace, job, requirements_of(job), differing.keys())
        return next(chained(failed, files), "")

    def _made_by_jobs(self) -> dict[str, list[MadeOutput]]:
        """The content of each output at the completions of all done jobs. Reads every chain, so only when it is needed:
        an output differs."""
        if self._made is None:
            self._made = defaultdict(list)
            for name in self._workspace.ledger.chains():
                entries = self._workspace.ledger.read(name).entries
                completed = history_of(name, entries, self._policy).completed
                for path, output in outputs_made(completed, entries).items():
                    self._made[path].append(output)
        return self._made

    def _combined_validity(self, name: str) -> Validity:
        if name in self._validities:
            return self._validities[name]
        for dependency in self._job(name).depends_on:
            validity = self._validity(dependency)
            if validity.state != "done":
                state: DependencyState = "cycle" if validity.state == "cycle" else "invalid"
                return Validity(
                    state, (dependency, *validity.chain), validity.why or f"{dependency} is {validity.state}"
                )
        return Validity("done")

    def _job(self, name: str) -> DependencyRecord:
        if name not in self._jobs:
            path = self._places.get(name)
            job = self._workspace.job_with_id(name) if path is None else self._workspace.job_at(path)
            chain = self._workspace.ledger.read(job.id)
            entries = chain.entries
            history = history_of(job.id, entries, self._policy)
            self._jobs[name] = DependencyRecord(
                job.path,
                job.depends_on,
                job.outputs,
                job.inputs,
                history.status == "cancelled",
                files_at(history.completed, entries),
                history.completed is not None and self._is_voided(job, chain),
            )
        return self._jobs[name]

    def _is_voided(self, job: Job, chain: Chain) -> bool:
        if self._project is None:
            self._project = project_agreement(self._workspace, self._workspace.project())
        return job_agreement(job, chain, self._project).state == "voided"
