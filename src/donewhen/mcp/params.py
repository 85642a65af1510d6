"""Parameters of the tools. Unknown fields are rejected, so a client can't claim an identity or an approval."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from donewhen.jobs.plan.job import Status

JobName = Annotated[
    str,
    Meta(
        min_length=1, max_length=200, description="The job's id. The last part, such as 001, is enough if it is unique."
    ),
]
CriterionName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        description="A criterion's id, such as AC-1. Default: all criteria that can be run.",
    ),
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
    """An optional job."""

    job: Annotated[JobName | None, Meta(description="The job. Default: the job in progress.")] = None


class ListJobsParams(ToolParams, frozen=True):
    """Which jobs."""

    status: Annotated[Status | None, Meta(description="Only jobs with this status.")] = None
    offset: Annotated[int, Meta(ge=0, description="Number of jobs to skip.")] = 0
    limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of jobs to list.")] = 50


class RunEvidenceParams(ToolParams, frozen=True):
    """What to run. The commands themselves come only from the job's plan."""

    job: JobName
    criterion: CriterionName | None = None
    again: Annotated[bool, Meta(description="Run again even if the evidence is still fresh.")] = False


class AskPersonParams(ToolParams, frozen=True):
    """A question for a person."""

    job: JobName
    question: Annotated[Words, Meta(description="The question for a person.")]


class BlockJobParams(ToolParams, frozen=True):
    """Why a job is blocked."""

    job: JobName
    reason: Annotated[Words, Meta(description="What blocks the job; it is recorded.")]


class DisputeParams(ToolParams, frozen=True):
    """Why a refusal is wrong."""

    job: JobName
    reason: Annotated[Words, Meta(description="Why the refusal is wrong; a person reads it.")]
