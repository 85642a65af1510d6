"""The review item about everything that nobody has agreed to yet."""

from __future__ import annotations

from collections.abc import Iterator

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.survey import JobRecord, Survey
from donewhen.jobs.plan.workspace import Workspace
from donewhen.review.items import ReviewItem

_WORDS = {
    "proposed": "not agreed yet",
    "unsealed": "says that it was agreed, which is not on record",
    "voided": "changed since it was agreed: terms were loosened or removed",
}


def waits_for_agreement(record: JobRecord) -> bool:
    """Whether a person has to agree to a job before anybody can work on it."""
    return record.agreement != "agreed" and record.recorded != "cancelled"


def agreement_items(workspace: Workspace, survey: Survey) -> Iterator[ReviewItem]:
    """Yield one item for all of them: they are agreed to together, and there may be hundreds after an import."""
    jobs = [record for record in survey.jobs if waits_for_agreement(record)]
    project = survey.project_agreement
    if not jobs and (project == "agreed" or not survey.jobs):
        return
    lines = [f"{record.id}  {one_line(record.title, 120)}: {_WORDS[record.agreement]}" for record in jobs]
    if project != "agreed":
        lines.insert(0, f"{survey.project.id}  {one_line(survey.project.title, 120)} (the project): {_WORDS[project]}")
    what = f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}" if jobs else "the project"
    yield ReviewItem(
        kind="agreement",
        title=f"{survey.project.id}  {one_line(survey.project.title, 120)}",
        question=f"Agree to {what}?",
        why="Nobody can start before a person agrees to what done means.",
        since="",
        evidence={"not agreed": "\n".join(lines)},
        job=jobs[0].id if len(jobs) == 1 else None,
        subject=digest_of(lines),
        next="donewhen agree",
    )
