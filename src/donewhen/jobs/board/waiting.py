"""What waits for a person, by the recorded states of the jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from donewhen.jobs.board.job_state import JobState, StateWord
from donewhen.jobs.board.survey import Survey

WAITING: Mapping[StateWord, tuple[str, str, str]] = {
    "asked": ("question of an agent", "questions of agents", "donewhen review"),
    "disputed": ("disputed refusal", "disputed refusals", "donewhen review"),
    "out_of_budget": ("job out of budget", "jobs out of budget", "donewhen review"),
    "blocked": ("job that was set aside", "jobs that were set aside", "donewhen review"),
    "needs_person": ("job that only needs your decision", "jobs that only need your decision", "donewhen review"),
    "not_agreed": ("job that nobody agreed to", "jobs that nobody agreed to", "donewhen agree"),
    "voided": ("job whose terms changed", "jobs whose terms changed", "donewhen agree"),
}
"""The states in which a job waits for a person: what one of them is called, several, and the command."""


class WaitingGroup(NamedTuple):
    """Jobs that wait for the same thing."""

    what: StateWord
    jobs: tuple[str, ...]
    next: str

    @property
    def text(self) -> str:
        one, several, _ = WAITING[self.what]
        return f"{len(self.jobs)} {one if len(self.jobs) == 1 else several}"


def waiting_for_person(survey: Survey, states: Mapping[str, JobState]) -> tuple[WaitingGroup, ...]:
    """The groups of jobs that wait for a person, most urgent first."""
    found: list[WaitingGroup] = []
    for word, (_, _, step) in WAITING.items():
        jobs = tuple(job.id for job in survey.jobs if states[job.id].word == word)
        if jobs:
            found.append(WaitingGroup(word, jobs, step))
    return tuple(found)
