"""What the tools take. A field that is not here is refused, so nobody can say who they are or what they approve."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from donewhen.jobs.plan.job import Status

JobName = Annotated[
    str,
    Meta(
        min_length=1, max_length=200, description="The job's id; where it is clear, its last part will do, such as 001."
    ),
]
CriterionName = Annotated[
    str,
    Meta(min_length=1, max_length=200, description="A criterion's id, such as AC-1. Without it, all that can be run."),
]
Words = Annotated[str, Meta(min_length=1, max_length=4000)]


class ToolParams(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a tool."""


class NoParams(ToolParams, frozen=True):
    """No arguments."""


class JobParam(ToolParams, frozen=True):
    """Which job."""

    job: JobName


class OptionalJobParam(ToolParams, frozen=True):
    """Which job, or none in particular."""

    job: Annotated[JobName | None, Meta(description="The job. Without it, the one in progress.")] = None


class ListJobsParams(ToolParams, frozen=True):
    """Which jobs."""

    status: Annotated[Status | None, Meta(description="Only jobs with this status.")] = None
    offset: Annotated[int, Meta(ge=0, description="How many jobs to leave out at the beginning.")] = 0
    limit: Annotated[int, Meta(ge=1, le=100, description="How many jobs to list at most.")] = 50


class RunEvidenceParams(ToolParams, frozen=True):
    """What to run. The commands themselves stand in the plan of the job, and nowhere else."""

    job: JobName
    criterion: CriterionName | None = None
    again: Annotated[bool, Meta(description="Run it also where what it showed is still fresh.")] = False


class AskPersonParams(ToolParams, frozen=True):
    """What a person has to answer."""

    job: JobName
    question: Annotated[Words, Meta(description="What a person has to answer.")]


class BlockJobParams(ToolParams, frozen=True):
    """What is in the way."""

    job: JobName
    reason: Annotated[Words, Meta(description="What is in the way; it is kept.")]


class DisputeParams(ToolParams, frozen=True):
    """Why a refusal is wrong."""

    job: JobName
    reason: Annotated[Words, Meta(description="Why the refusal is wrong; people read it.")]
