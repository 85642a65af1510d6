"""Plan the open jobs: what can start now, in which order, and what is wrong with the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from donewhen.jobs.board.board_states import survey_states
from donewhen.jobs.board.survey import JobRecord, Survey
from donewhen.jobs.contract.agreement import AgreementProblem
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.lifecycle.invalidation import find_invalid_jobs
from donewhen.jobs.lifecycle.plan_findings import job_findings, missing_jobs, parent_findings
from donewhen.jobs.plan.workspace import Workspace

_OPEN = frozenset({"planned", "in_progress", "blocked"})


class ReadyPlan(NamedTuple):
    """The jobs that can start now, and the order of the others."""

    now: tuple[str, ...]
    waves: tuple[tuple[str, ...], ...]
    """The open jobs in the order in which they can be done; each wave only needs those before it."""
    critical_path: tuple[str, ...]
    hours: float


def find_ready_jobs(jobs: Sequence[JobRecord]) -> ReadyPlan:
    """Return the jobs that can be started, the waves, and the critical path."""
    open_jobs = {job.id: job for job in jobs if job.status in _OPEN}
    done = {job.id for job in jobs if job.status == "done"}
    waves = tuple(_waves(open_jobs, done))
    first = [open_jobs[name] for name in (waves[0] if waves else ())]
    now = tuple(job.id for job in first if job.status == "planned" and job.agreement == "agreed")
    path, hours = _critical_path(open_jobs, waves)
    return ReadyPlan(now, waves, path, hours)


def startable_jobs(survey: Survey) -> tuple[str, ...]:
    """Return the jobs that can be started, according to their states: a plan file alone makes no job ready."""
    states = survey_states(survey)
    return tuple(name for name in find_ready_jobs(survey.jobs).now if states[name].word == "ready")


def dependency_cycles(jobs: Sequence[JobRecord]) -> tuple[tuple[str, ...], ...]:
    """Return the cycles of jobs that depend on each other, each once."""
    depends = {job.id: job.depends_on for job in jobs}
    cycles: dict[frozenset[str], tuple[str, ...]] = {}
    finished: set[str] = set()
    for first in depends:
        path: list[str] = []
        stack: list[tuple[str, Iterator[str]]] = []
        if first not in finished:
            stack.append((first, iter(depends[first])))
            path.append(first)
        while stack:
            name, rest = stack[-1]
            dependency = next(rest, None)
            if dependency is None:
                finished.add(name)
                stack.pop()
                path.pop()
            elif dependency in path:
                cycle = tuple(path[path.index(dependency) :])
                cycles.setdefault(frozenset(cycle), cycle)
            elif dependency in depends and dependency not in finished:
                stack.append((dependency, iter(depends[dependency])))
                path.append(dependency)
    return tuple(cycles.values())


def check_plan(workspace: Workspace, survey: Survey, policy: Policy) -> tuple[AgreementProblem, ...]:
    """Return every problem of the plan: those that the survey found, and those between jobs."""
    by_id = {job.id: job for job in survey.jobs}
    problems = list(survey.problems)
    for job in survey.jobs:
        where = workspace.where(job.path)
        problems += [
            AgreementProblem(
                FindingCode.TAMPERED,
                f"{job.id}: {mismatch.field} says {mismatch.found!r}, but the ledger says {mismatch.expected!r}.",
                where,
            )
            for mismatch in job.tampered
        ]
        problems += [
            AgreementProblem(FindingCode.DEPENDENCY_DANGLING, f"{job.id} depends on {name}, {_no_job(name)}.", where)
            for name in job.depends_on
            if name not in by_id
        ]
        problems += job_findings(job, survey, where)
        if job.status == "done":
            problems += _done_too_early(job, by_id, where)
    problems += missing_jobs(workspace, survey)
    problems += parent_findings(workspace, survey)
    for cycle in dependency_cycles(survey.jobs):
        message = f"Circular dependency: {' → '.join((*cycle, cycle[0]))}."
        problems.append(AgreementProblem(FindingCode.DEPENDENCY_CIRCLE, message, workspace.where(by_id[cycle[0]].path)))
    for invalid in find_invalid_jobs(workspace, policy, survey):
        chain = " → ".join(invalid.chain)
        code, upstream = invalid.code, invalid.code == FindingCode.DONE_INVALID
        why = f", because something it depends on changed ({chain})" if upstream else ""
        message = f"{invalid.id} is no longer done{why}: {invalid.why}."
        problems.append(AgreementProblem(code, message, workspace.where(by_id[invalid.id].path)))
    return tuple(problems)


def _no_job(name: str) -> str:
    return "which is no job: name jobs" if name.startswith(("WS-", "PJ-")) else "which does not exist"


def _done_too_early(job: JobRecord, by_id: Mapping[str, JobRecord], where: str) -> Iterator[AgreementProblem]:
    if not job.events:
        yield AgreementProblem(FindingCode.UNSEALED, f"{job.id} says done, but the ledger has no record of it.", where)
    for name in job.depends_on:
        if name in by_id and by_id[name].status != "done":
            message = f"{job.id} is done, but {name}, which it depends on, is {by_id[name].status}."
            yield AgreementProblem(FindingCode.DONE_TOO_EARLY, message, where)


def _waves(jobs: Mapping[str, JobRecord], done: set[str]) -> Iterator[tuple[str, ...]]:
    position = {name: number for number, name in enumerate(jobs)}
    waiting = {name: {above for above in job.depends_on if above not in done} for name, job in jobs.items()}
    dependents: dict[str, list[str]] = defaultdict(list)
    for name, dependencies in waiting.items():
        for dependency in dependencies:
            dependents[dependency].append(name)
    wave = tuple(name for name, dependencies in waiting.items() if not dependencies)
    while wave:
        yield wave
        following: list[str] = []
        for name in wave:
            for dependent in dependents[name]:
                waiting[dependent].discard(name)
                if not waiting[dependent]:
                    following.append(dependent)
        wave = tuple(sorted(following, key=position.__getitem__))


def _critical_path(jobs: Mapping[str, JobRecord], waves: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], float]:
    hours: dict[str, float] = {}
    before: dict[str, str | None] = {}
    for wave in waves:
        for name in wave:
            scheduled = (dependency for dependency in jobs[name].depends_on if dependency in hours)
            longest = max(scheduled, key=hours.__getitem__, default=None)
            before[name] = longest
            hours[name] = jobs[name].estimate_hours + (hours[longest] if longest is not None else 0.0)
    last = max(hours, key=hours.__getitem__, default=None)
    total = hours[last] if last is not None else 0.0
    path: list[str] = []
    while last is not None:
        path.append(last)
        last = before[last]
    return tuple(reversed(path)), total
