"""What can be done next, in which order, and what is wrong with the plan as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from donewhen.jobs.board.survey import JobRecord, Survey
from donewhen.jobs.contract.agreement import AgreementProblem
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.lifecycle.invalidation import find_invalid_jobs
from donewhen.jobs.plan.workspace import Workspace

_OPEN = frozenset({"planned", "in_progress", "blocked"})


class ReadyPlan(NamedTuple):
    """What can start now, and how the rest follows."""

    now: tuple[str, ...]
    waves: tuple[tuple[str, ...], ...]
    """The open jobs in the order in which they can be done; each wave only needs those before it."""
    critical_path: tuple[str, ...]
    hours: float


def find_ready_jobs(jobs: Sequence[JobRecord]) -> ReadyPlan:
    """What can be started, the waves, and the chain of jobs that takes longest."""
    open_jobs = {job.id: job for job in jobs if job.status in _OPEN}
    done = {job.id for job in jobs if job.status == "done"}
    waves = tuple(_waves(open_jobs, done))
    first = [open_jobs[name] for name in (waves[0] if waves else ())]
    now = tuple(one.id for one in first if one.status == "planned" and one.agreement == "agreed")
    path, hours = _longest(open_jobs, waves)
    return ReadyPlan(now, waves, path, hours)


def dependency_cycles(jobs: Sequence[JobRecord]) -> tuple[tuple[str, ...], ...]:
    """Circles of jobs that depend on each other, each once."""
    depends = {job.id: job.depends_on for job in jobs}
    found: dict[frozenset[str], tuple[str, ...]] = {}
    finished: set[str] = set()
    for first in depends:
        path: list[str] = []
        stack: list[tuple[str, Iterator[str]]] = []
        if first not in finished:
            stack.append((first, iter(depends[first])))
            path.append(first)
        while stack:
            name, rest = stack[-1]
            above = next(rest, None)
            if above is None:
                finished.add(name)
                stack.pop()
                path.pop()
            elif above in path:
                circle = tuple(path[path.index(above) :])
                found.setdefault(frozenset(circle), circle)
            elif above in depends and above not in finished:
                stack.append((above, iter(depends[above])))
                path.append(above)
    return tuple(found.values())


def check_plan(workspace: Workspace, seen: Survey, policy: Policy) -> tuple[AgreementProblem, ...]:
    """Everything that is wrong with the plan: what the survey found, and what only shows between jobs."""
    by_id = {job.id: job for job in seen.jobs}
    problems = list(seen.problems)
    for job in seen.jobs:
        where = workspace.where(job.path)
        problems += [
            AgreementProblem(
                FindingCode.TAMPERED,
                f"{job.id}: {miss.field} says {miss.found!r}, the ledger {miss.expected!r}.",
                where,
            )
            for miss in job.tampered
        ]
        problems += [
            AgreementProblem(
                FindingCode.DEPENDENCY_DANGLING, f"{job.id} depends on {name}, which does not exist.", where
            )
            for name in job.depends_on
            if name not in by_id
        ]
        if job.status == "done":
            problems += _done_too_early(job, by_id, where)
    for circle in dependency_cycles(seen.jobs):
        message = f"Jobs depend on each other in a circle: {' → '.join((*circle, circle[0]))}."
        problems.append(
            AgreementProblem(FindingCode.DEPENDENCY_CIRCLE, message, workspace.where(by_id[circle[0]].path))
        )
    for invalid in find_invalid_jobs(workspace, policy, seen):
        message = f"{invalid.id} was done on something that has changed ({' → '.join(invalid.chain)}): {invalid.why}."
        problems.append(AgreementProblem(FindingCode.DONE_INVALID, message, workspace.where(by_id[invalid.id].path)))
    return tuple(problems)


def _done_too_early(job: JobRecord, by_id: Mapping[str, JobRecord], where: str) -> Iterator[AgreementProblem]:
    if not job.events:
        yield AgreementProblem(
            FindingCode.UNSEALED, f"{job.id} says done, and the ledger has nothing to show for it.", where
        )
    for name in job.depends_on:
        if name in by_id and by_id[name].status != "done":
            message = f"{job.id} is done, but {name}, which it depends on, is {by_id[name].status}."
            yield AgreementProblem(FindingCode.DONE_TOO_EARLY, message, where)


def _waves(jobs: Mapping[str, JobRecord], done: set[str]) -> Iterator[tuple[str, ...]]:
    place = {name: number for number, name in enumerate(jobs)}
    waiting = {name: {one for one in job.depends_on if one not in done} for name, job in jobs.items()}
    below: dict[str, list[str]] = defaultdict(list)
    for name, above in waiting.items():
        for one in above:
            below[one].append(name)
    wave = tuple(name for name, above in waiting.items() if not above)
    while wave:
        yield wave
        following: list[str] = []
        for name in wave:
            for one in below[name]:
                waiting[one].discard(name)
                if not waiting[one]:
                    following.append(one)
        wave = tuple(sorted(following, key=place.__getitem__))


def _longest(jobs: Mapping[str, JobRecord], waves: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], float]:
    hours: dict[str, float] = {}
    before: dict[str, str | None] = {}
    for wave in waves:
        for name in wave:
            above = max((one for one in jobs[name].depends_on if one in hours), key=hours.__getitem__, default=None)
            before[name] = above
            hours[name] = jobs[name].estimate_hours + (hours[above] if above is not None else 0.0)
    last = max(hours, key=hours.__getitem__, default=None)
    total = hours[last] if last is not None else 0.0
    path: list[str] = []
    while last is not None:
        path.append(last)
        last = before[last]
    return tuple(reversed(path)), total
