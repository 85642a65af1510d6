"""Writing lessons down, and putting on record what a job makes of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from donewhen.foundation.canonical import digest
from donewhen.foundation.errors import UsageError
from donewhen.foundation.locks import locked
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.ledger import Actor, Entry
from donewhen.jobs.lessons.lesson_file import (
    TITLE,
    Lesson,
    LessonError,
    find_same_lesson,
    lessons_path,
    one_paragraph,
    parse_lessons_cached,
    raw_lessons,
    read_lessons,
    render_lesson,
    words_in,
)
from donewhen.jobs.lessons.lesson_use import lesson_usage, lessons_given
from donewhen.jobs.plan.criteria import is_placeholder
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, WorkspaceError
from donewhen.jobs.record.projection import finish_interrupted_write, record_and_project

SCHEMA = "theworkshop.lessons.v1"
LONGEST = 4000
_DAY = re.compile(r"\bLL-([0-9]{8})-([0-9]{3,18})\b")
_SOURCE = re.compile(rb'"source": "(sha256:[0-9a-f]{64})"')
_HEAD = 400

Answer = Literal["used", "not_relevant"]


class LessonDraft(NamedTuple):
    """A lesson as somebody tells it."""

    context: str
    worked: str
    recommendation: str
    failed: str = ""
    tags: tuple[str, ...] = ()


class RecordedLesson(NamedTuple):
    """A lesson that was written down, and the jobs in whose chains it is on record."""

    lesson: Lesson
    recorded: tuple[str, ...]
    unrecorded: tuple[str, ...]
    """Linked jobs to which nothing has happened here yet, so that there is no chain to write to."""


def capture_lesson(workspace: Workspace, said: LessonDraft, jobs: Sequence[Job], by: Actor) -> RecordedLesson:
    """Append a lesson to the file, and put it on record in the chain of each job that it is linked to."""
    texts = _checked(said)
    workspace.prepare()
    with locked(workspace.folder / "state" / "locks" / "lessons.lock"):
        raw = raw_lessons(workspace) or b""
        linked = tuple(dict.fromkeys(job.id for job in jobs))
        lesson = Lesson("", "", _tags(said.tags), linked, workspace.now(), *texts)
        _refuse_copy(lesson, parse_lessons_cached(raw), linked)
        lesson = _named(workspace, lesson, raw)
        text = _appended(raw, render_lesson(lesson))
        path = lessons_path(workspace)
        try:
            path.parent.mkdir(exist_ok=True)
            workspace.put(path, text)
        except OSError as error:
            where = workspace.where(path)
            raise LessonError(f"The lesson can't be written: {error.strerror}.", where=where) from error
        _write_index(workspace, text)
    (lesson,) = (one for one in parse_lessons_cached(text) if one.id == lesson.id)
    return _recorded(workspace, lesson, jobs, by)


def adopt_lesson(workspace: Workspace, name: str, job: Job, by: Actor) -> RecordedLesson:
    """Put a lesson on record that somebody else wrote into the file, by hand or with another tool."""
    lesson = find_lesson(workspace, name)
    if not lesson.names(job.id):
        raise UsageError(
            f"{name} does not name {job.id}.",
            where=f"{workspace.where(lessons_path(workspace))}:{lesson.line}",
            next_step=f"Write {job.id} into its line Linked.",
        )
    if not lesson.substantive:
        raise UsageError(f"{name} does not say what happened, what worked and what to do.", next_step="Write it there.")
    return _recorded(workspace, lesson, [job], by)


def answer_lesson(workspace: Workspace, name: str, job: Job, how: Answer, said: str, by: Actor) -> Entry:
    """A job's answer to a lesson: how it was used, or why it is not relevant."""
    words = one_paragraph(said)
    if is_placeholder(words) or len(words_in(words)) < 2:
        told, option = (
            ("Say how it was used.", "--how") if how == "used" else ("Say why it is not relevant.", "--reason")
        )
        raise UsageError(told, next_step=f'Give it with {option} "…".')
    _refuse_secret("The answer", words)
    _refuse_length("The answer", words)
    entries = workspace.ledger.read(job.id).entries
    if not any(entry.type == "started" for entry in entries):
        raise UsageError(f"{job.id} was not started yet.", next_step=f"donewhen start {job.id}")
    given = lessons_given(entries)
    if how == "not_relevant" and name not in given:
        raise UsageError(
            f"{job.id} was not given {name}, so nobody waits for an answer.", next_step=f"donewhen log {job.id}"
        )
    value = given[name] if name in given else find_lesson(workspace, name).hash
    return _put(workspace, job, {"lesson": name, "hash": value, "how": how, "said": words}, by)


def find_lesson(workspace: Workspace, name: str) -> Lesson:
    """One lesson by its id; of two with one id, the later."""
    found = [lesson for lesson in read_lessons(workspace) if lesson.id == name]
    if not found:
        raise UsageError(f"There is no lesson {name!r}.", next_step="donewhen lessons list")
    return found[-1]


def refresh_lesson_index(workspace: Workspace) -> None:
    """Make the index anew where it was made from another file than the one that is there."""
    raw = raw_lessons(workspace)
    if raw is None or not workspace.folder.is_dir() or _is_current(workspace, raw):
        return
    # Whoever only looks may not be allowed to write; the file itself says everything that the index says.
    with suppress(OSError), locked(workspace.folder / "state" / "locks" / "lessons.lock"):
        _write_index(workspace, raw)


def _checked(said: LessonDraft) -> tuple[str, str, str, str]:
    names = {"context": "--context", "worked": "--worked", "recommendation": "--recommendation", "failed": "--failed"}
    texts = {name: one_paragraph(getattr(said, name)) for name in names}
    for name, option in names.items():
        if is_placeholder(texts[name]) and name != "failed":
            raise UsageError(f"The lesson says nothing in {option}.", next_step=f'Give it with {option} "…".')
        _refuse_secret(option, texts[name])
        _refuse_length(option, texts[name])
    return texts["context"], texts["worked"], texts["failed"], texts["recommendation"]


def _refuse_secret(what: str, text: str) -> None:
    if redact_secrets(text) != text:
        raise UsageError(f"{what} has something in it that looks like a secret.", next_step="Say it without.")


def _refuse_length(what: str, text: str) -> None:
    if len(text) > LONGEST:
        raise UsageError(f"{what} has {len(text)} characters; a lesson is at most {LONGEST} long there.")


def _tags(given: Sequence[str]) -> tuple[str, ...]:
    tags = (one_paragraph(part).lstrip("#").strip().casefold() for one in given for part in one.split(","))
    found = tuple(dict.fromkeys(tag for tag in tags if tag))
    for one in found:
        _refuse_secret("A tag", one)
        if len(one) > 60:
            raise UsageError(f"The tag {one[:60]!r} is too long to be one.")
    return found


def _refuse_copy(lesson: Lesson, lessons: Sequence[Lesson], linked: Sequence[str]) -> None:
    twin = find_same_lesson(lesson, lessons)
    if twin is None:
        return
    named = [one for one in linked if twin.names(one)]
    step = f"donewhen lessons adopt {twin.id} --job {named[0]}" if named else f"donewhen lessons show {twin.id}"
    raise UsageError(f"{twin.id} says the same.", next_step=step)


def _named(workspace: Workspace, lesson: Lesson, raw: bytes) -> Lesson:
    """With the next id of the day. One whose lesson is gone is not given again, as long as the ledger knows it."""
    today = f"{workspace.clock.now():%Y%m%d}"
    taken = (*_DAY.findall(raw.decode("utf-8", "replace")), *_DAY.findall(" ".join(lesson_usage(workspace).known)))
    number = max((int(number) for day, number in taken if day == today), default=0) + 1
    return Lesson(f"LL-{today}-{number:03d}", "", lesson.tags, lesson.linked, lesson.captured_at, *lesson.said)


def _appended(raw: bytes, block: str) -> bytes:
    """The file with one block more; not a byte of what was there is another."""
    newline = b"\r\n" if b"\r\n" in raw else b"\n"
    if not raw:
        return f"{TITLE}\n\n{block}".encode()
    ending = raw[-4:].replace(b"\r\n", b"\n")
    gap = b"" if ending.endswith(b"\n\n") else newline if ending.endswith(b"\n") else newline * 2
    return raw + gap + block.encode().replace(b"\n", newline)


def _recorded(workspace: Workspace, lesson: Lesson, jobs: Sequence[Job], by: Actor) -> RecordedLesson:
    recorded: list[str] = []
    unrecorded: list[str] = []
    for job in {one.id: one for one in jobs}.values():
        if not workspace.ledger.read(job.id).entries:
            # The first entry of a chain takes stock of a plan that others wrote; a lesson is no occasion for that.
            unrecorded.append(job.id)
            continue
        _put(workspace, job, {"lesson": lesson.id, "hash": lesson.hash, "how": "captured"}, by)
        recorded.append(job.id)
    return RecordedLesson(lesson, tuple(recorded), tuple(unrecorded))


def _put(workspace: Workspace, job: Job, data: Mapping[str, Any], by: Actor) -> Entry:
    with workspace.locked(job.path):
        entries = workspace.ledger.read(job.id).entries
        document = finish_interrupted_write(workspace, workspace.read(job.path), job.path, entries)
        return record_and_project(workspace, job.id, document, job.path, "lesson", data, Approval(by), {})[0]


def _is_current(workspace: Workspace, raw: bytes) -> bool:
    try:
        with _index_path(workspace).open("rb") as file:
            found = _SOURCE.search(file.read(_HEAD))
    except OSError:
        return False
    return found is not None and found[1].decode() == digest(raw)


def _write_index(workspace: Workspace, raw: bytes) -> None:
    """What the file says, for programs. The hash of the file comes first: a look at it tells whether it fits."""
    rows = [
        {
            "id": one.id,
            "tags": list(one.tags),
            "linked": list(one.linked),
            "snippet": one.snippet,
            "captured_at": one.captured_at,
            "context": one.context,
            "worked": one.worked,
            "failed": one.failed,
            "recommendation": one.recommendation,
        }
        for one in parse_lessons_cached(raw)
    ]
    content = {"schema": SCHEMA, "generated_at": workspace.now(), "source": digest(raw), "lessons": rows}
    # A view: where it can't be written, the lesson is kept all the same, and the next start makes it anew.
    path = _index_path(workspace)
    with suppress(OSError, WorkspaceError):
        workspace.put(path, f"{json.dumps(content, indent=2)}\n".encode())


def _index_path(workspace: Workspace) -> Path:
    return lessons_path(workspace).with_name("lessons-index.json")
