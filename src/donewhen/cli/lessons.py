"""`donewhen lessons`: record, find and answer lessons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.survey import only_job_in_progress
from donewhen.jobs.ledger.approval import is_at_terminal, unproved_actor
from donewhen.jobs.ledger.entry_content import LessonNote
from donewhen.jobs.lessons.lesson_file import Lesson, lessons_path, read_lessons
from donewhen.jobs.lessons.lesson_recording import (
    Answer,
    LessonDraft,
    RecordedLesson,
    adopt_lesson,
    answer_lesson,
    capture_lesson,
    find_lesson,
)
from donewhen.jobs.lessons.lesson_search import LessonMatch
from donewhen.jobs.lessons.lesson_suggestions import search_lessons
from donewhen.jobs.lessons.lesson_use import lesson_usage
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

_NAMES = {"context": "Context", "worked": "What worked", "failed": "What failed", "recommendation": "Recommendation"}

job_option = click.option("--job", "job", metavar="JOB", help="The job (default: the job in progress).")


@click.group()
def command() -> None:
    """Record what was learned in a job, search it, and record how it was used.

    Lessons are stored in notes/lessons-learned.md. Relevant lessons are quoted in the plan of a started job; answer
    each one. Lessons and answers are recorded in the ledger and count in the score.
    """


@command.command()
@click.option("--context", help="The situation in which the lesson applies.")
@click.option("--worked", help="What worked.")
@click.option("--failed", default="", help="What failed.")
@click.option("--recommendation", help="What to do next time.")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="A tag for the topic; may be repeated.")
@click.option(
    "--job", "jobs", multiple=True, metavar="JOB", help="A job that learned it (default: the job in progress)."
)
@project_option
@common_options
@click.pass_obj
def add(
    output: Output,
    context: str | None,
    worked: str | None,
    failed: str,
    recommendation: str | None,
    tags: tuple[str, ...],
    jobs: tuple[str, ...],
    project: Path | None,
) -> ExitCode:
    """Record a lesson. On a terminal, missing parts are asked for.

    Placeholders, texts that contain a secret, and duplicate lessons are refused.

    \b
    donewhen lessons add --job 001 --tag parsing \\
        --context "Logs of the old shop end without a newline." \\
        --worked "Reading to the end of the file, then splitting." \\
        --failed "Reading line by line lost the last order." \\
        --recommendation "Test with a file that has no newline at its end."
    """
    workspace = find_project(project)
    working = None if jobs else only_job_in_progress(workspace)
    linked = [workspace.job(job) for job in jobs] if working is None else [working]
    given = {"context": context, "worked": worked, "recommendation": recommendation}
    texts = {name: _asked(output, name, text) for name, text in given.items()}
    said = LessonDraft(**texts, failed=failed, tags=tags)
    kept = capture_lesson(workspace, said, linked, unproved_actor())
    return _print_kept(output, workspace, kept)


@command.command(name="adopt")
@click.argument("lesson", metavar="LL-…")
@job_option
@project_option
@common_options
@click.pass_obj
def adopt_(output: Output, lesson: str, job: str | None, project: Path | None) -> ExitCode:
    """Record a lesson that was added to the file by hand.

    The lesson must name JOB. It may also come from another tool, or have been edited since it was recorded.

    \b
    donewhen lessons adopt LL-20260214-001 --job 001
    """
    workspace = find_project(project)
    return _print_kept(output, workspace, adopt_lesson(workspace, lesson, _one_job(workspace, job), unproved_actor()))


@command.command()
@click.argument("words", nargs=-1)
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="Only lessons with this tag; may be repeated.")
@click.option(
    "--job", metavar="JOB", help="Search on behalf of JOB: with its words if none are given, and its related jobs."
)
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Maximum number of lessons."
)
@project_option
@common_options
@click.pass_obj
def search(
    output: Output, words: tuple[str, ...], tags: tuple[str, ...], job: str | None, limit: int, project: Path | None
) -> ExitCode:
    """Find lessons, best match first, with the reasons for each match.

    The order depends on common words, tags, the jobs that a lesson came from, and how many jobs used it. Ties are
    ordered newest first.

    \b
    donewhen lessons search newline at the end of a file
    donewhen lessons search --tag parsing --job 001
    """
    workspace = find_project(project)
    found = search_lessons(workspace, words, tags=tags, job=workspace.job(job) if job else None)
    for match in found[:limit]:
        _show_line(output, match.lesson)
        output.say(f"    {'; '.join(match.reasons)}", dim=True)
    if not found:
        output.say("No lesson matches.")
    elif len(found) > limit:
        output.say(f"({len(found) - limit} more; -n shows them)", dim=True)
    data = {"lessons": [_found(match) for match in found[:limit]], "total": len(found)}
    return output.finish(ExitCode.PASS, data)


@command.command(name="list")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Maximum number of lessons."
)
@project_option
@common_options
@click.pass_obj
def list_(output: Output, limit: int, project: Path | None) -> ExitCode:
    """List all lessons, newest first."""
    workspace = find_project(project)
    lessons = sorted(read_lessons(workspace), key=lambda lesson: lesson.age, reverse=True)
    for lesson in lessons[:limit]:
        _show_line(output, lesson)
    if not lessons:
        output.say("There are no lessons yet.")
        output.say("  next: donewhen lessons add --help", dim=True)
    elif len(lessons) > limit:
        output.say(f"({len(lessons) - limit} older; -n shows them)", dim=True)
    return output.finish(
        ExitCode.PASS, {"lessons": [_data(lesson) for lesson in lessons[:limit]], "total": len(lessons)}
    )


@command.command()
@click.argument("lesson", metavar="LL-…")
@project_option
@common_options
@click.pass_obj
def show(output: Output, lesson: str, project: Path | None) -> ExitCode:
    """Print one lesson in full."""
    workspace = find_project(project)
    found = find_lesson(workspace, lesson)
    where = f"{workspace.where(lessons_path(workspace))}:{found.line}"
    uses = lesson_usage(workspace).used.get(found.id, 0)
    output.say(f"{found.id}  {found.title}".rstrip(), bold=True)
    for name, title in _NAMES.items():
        if text := getattr(found, name):
            output.say(f"  {title}: {text}")
    about = (("tags", ", ".join(found.tags)), ("linked", ", ".join(found.linked)), ("used", f"by {uses} job(s)"))
    output.say(f"  {'; '.join(f'{name} {text}' for name, text in about if text)}; {where}", dim=True)
    return output.finish(ExitCode.PASS, {**_data(found), "where": where, "used": uses})


@command.command()
@click.argument("lesson", metavar="LL-…")
@job_option
@click.option("--how", "said", required=True, help="How it was used. Recorded in the ledger.")
@project_option
@common_options
@click.pass_obj
def used(output: Output, lesson: str, job: str | None, said: str, project: Path | None) -> ExitCode:
    """Record how JOB used a lesson.

    \b
    donewhen lessons used LL-20260214-001 --job 002 --how "The test has a file without a newline now."
    """
    return _answered(output, project, lesson, job, "used", said)


@command.command(name="not-relevant")
@click.argument("lesson", metavar="LL-…")
@job_option
@click.option("--reason", "said", required=True, help="Why it does not apply. Recorded in the ledger.")
@project_option
@common_options
@click.pass_obj
def not_relevant(output: Output, lesson: str, job: str | None, said: str, project: Path | None) -> ExitCode:
    """Record why a lesson that was quoted in the plan of JOB does not apply.

    \b
    donewhen lessons not-relevant LL-20260214-001 --job 002 --reason "This one reads no files."
    """
    return _answered(output, project, lesson, job, "not_relevant", said)


def _answered(output: Output, project: Path | None, lesson: str, job: str | None, how: Answer, said: str) -> ExitCode:
    workspace = find_project(project)
    found = _one_job(workspace, job)
    entry = answer_lesson(workspace, lesson, found, how, said, unproved_actor())
    output.say(f"{found.id}: {lesson} {how.replace('_', ' ')}: {entry.read_as(LessonNote).said}", fg="green")
    return output.finish(ExitCode.PASS, {"job": found.id, **dict(entry.data), "entry": entry.hash})


def _one_job(workspace: Workspace, job: str | None) -> Job:
    found = workspace.job(job) if job else only_job_in_progress(workspace)
    if found is None:
        raise UsageError("No job given, and there is not exactly one in progress.", next_step="Give it with --job.")
    return found


def _asked(output: Output, name: str, given: str | None) -> str:
    if given is not None or output.json or not is_at_terminal():
        return given or ""
    typed: str = click.prompt(_NAMES[name], default="", show_default=False, err=True)
    return typed


def _print_kept(output: Output, workspace: Workspace, kept: RecordedLesson) -> ExitCode:
    lesson = kept.lesson
    output.say(f"{lesson.id}  {workspace.where(lessons_path(workspace))}:{lesson.line}", bold=True)
    if kept.recorded:
        output.say(f"  recorded for {_listed(kept.recorded)}", fg="green")
    if kept.unrecorded:
        output.say(f"  not recorded for {_listed(kept.unrecorded)}: the job has no ledger entries yet", fg="yellow")
    if not lesson.linked and not kept.recorded:
        output.say("  not linked to a job; link one with --job", fg="yellow")
    data = {**_data(lesson), "recorded": list(kept.recorded), "unrecorded": list(kept.unrecorded)}
    return output.finish(ExitCode.PASS, data)


def _show_line(output: Output, lesson: Lesson) -> None:
    output.say(f"{lesson.id}  {one_line(lesson.recommendation or lesson.title or lesson.snippet, 160)}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _data(lesson: Lesson) -> dict[str, Any]:
    return {
        "id": lesson.id,
        "tags": list(lesson.tags),
        "linked": list(lesson.linked),
        "captured_at": lesson.captured_at,
        **{name: getattr(lesson, name) for name in _NAMES},
        "hash": lesson.hash,
    }


def _found(found: LessonMatch) -> dict[str, Any]:
    return {**_data(found.lesson), "score": found.score, "reasons": list(found.reasons)}
