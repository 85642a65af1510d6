"""Write lessons, and record a job's answers to them in the ledger."""

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
from donewhen.jobs.record.writing import writing

SCHEMA = "theworkshop.lessons.v1"
MAX_LENGTH = 4000
_DAY = re.compile(r"\bLL-([0-9]{8})-([0-9]{3,18})\b")
_SOURCE = re.compile(rb'"source": "(sha256:[0-9a-f]{64})"')
_HEAD_BYTES = 400

Answer = Literal["used", "not_relevant"]


class LessonDraft(NamedTuple):
    """The fields of a new lesson."""

    context: str
    worked: str
    recommendation: str
    failed: str = ""
    tags: tuple[str, ...] = ()


class RecordedLesson(NamedTuple):
    """A lesson that was written, and the jobs whose chains record it."""

    lesson: Lesson
    recorded: tuple[str, ...]
    unrecorded: tuple[str, ...]
    """Linked jobs that have no chain yet to record it in."""


def capture_lesson(workspace: Workspace, draft: LessonDraft, jobs: Sequence[Job], by: Actor) -> RecordedLesson:
    """Append a lesson to the file, and record it in the chain of each linked job."""
    texts = _validate_draft(draft)
    workspace.prepare()
    with locked(workspace.folder / "state" / "locks" / "lessons.lock"):
        raw = raw_lessons(workspace) or b""
        linked = tuple(dict.fromkeys(job.id for job in jobs))
        lesson = Lesson("", "", _tags(draft.tags), linked, workspace.now(), *texts)
        _refuse_duplicate(lesson, parse_lessons_cached(raw), linked)
        lesson = _with_new_id(workspace, lesson, raw)
        text = _append_block(raw, render_lesson(lesson))
        path = lessons_path(workspace)
        try:
            path.parent.mkdir(exist_ok=True)
            workspace.put(path, text)
        except OSError as error:
            where = workspace.where(path)
            raise LessonError(f"The lesson can't be written: {error.strerror}.", where=where) from error
        _write_index(workspace, text)
    (lesson,) = (candidate for candidate in parse_lessons_cached(text) if candidate.id == lesson.id)
    return _record_capture(workspace, lesson, jobs, by)


def adopt_lesson(workspace: Workspace, name: str, job: Job, by: Actor) -> RecordedLesson:
    """Record a lesson that was written into the file by hand or with another tool."""
    lesson = find_lesson(workspace, name)
    if not lesson.names(job.id):
        raise UsageError(
            f"{name} does not mention {job.id}.",
            where=f"{workspace.where(lessons_path(workspace))}:{lesson.line}",
            next_step=f"Add {job.id} to its line Linked.",
        )
    if not lesson.substantive:
        raise UsageError(
            f"{name} lacks context, what worked or a recommendation.", next_step="Fill in these fields of the lesson."
        )
    return _record_capture(workspace, lesson, [job], by)


def answer_lesson(workspace: Workspace, name: str, job: Job, how: Answer, text: str, by: Actor) -> Entry:
    """Record a job's answer to a lesson: how it was used, or why it is not relevant."""
    words = one_paragraph(text)
    if is_placeholder(words) or len(words_in(words)) < 2:
        message, option = (
            ("Say how it was used.", "--how") if how == "used" else ("Say why it is not relevant.", "--reason")
        )
        raise UsageError(message, next_step=f'Give it with {option} "…".')
    _refuse_secret("The answer", words)
    _refuse_length("The answer", words)
    entries = workspace.ledger.read(job.id).entries
    if not any(entry.type == "started" for entry in entries):
        raise UsageError(f"{job.id} has not been started.", next_step=f"donewhen start {job.id}")
    given = lessons_given(entries)
    if how == "not_relevant" and name not in given:
        raise UsageError(f"{job.id} was not given {name}, so no answer is needed.", next_step=f"donewhen log {job.id}")
    value = given[name] if name in given else find_lesson(workspace, name).hash
    return _append_entry(workspace, job, {"lesson": name, "hash": value, "how": how, "said": words}, by)


def find_lesson(workspace: Workspace, name: str) -> Lesson:
    """Return a lesson by its id; of two with the same id, the later one."""
    matches = [lesson for lesson in read_lessons(workspace) if lesson.id == name]
    if not matches:
        raise UsageError(f"There is no lesson {name!r}.", next_step="donewhen lessons list")
    return matches[-1]


def refresh_lesson_index(workspace: Workspace) -> None:
    """Rewrite the index if the lessons file has changed since it was generated."""
    raw = raw_lessons(workspace)
    if raw is None or not workspace.folder.is_dir() or _is_current(workspace, raw):
        return
    # A reader may lack write permission; the lessons file holds everything that the index holds.
    with suppress(OSError), locked(workspace.folder / "state" / "locks" / "lessons.lock"):
        _write_index(workspace, raw)


def _validate_draft(draft: LessonDraft) -> tuple[str, str, str, str]:
    names = {"context": "--context", "worked": "--worked", "recommendation": "--recommendation", "failed": "--failed"}
    texts = {name: one_paragraph(getattr(draft, name)) for name in names}
    for name, option in names.items():
        if is_placeholder(texts[name]) and name != "failed":
            raise UsageError(f"{option} is empty.", next_step=f'Give it with {option} "…".')
        _refuse_secret(option, texts[name])
        _refuse_length(option, texts[name])
    return texts["context"], texts["worked"], texts["failed"], texts["recommendation"]


def _refuse_secret(what: str, text: str) -> None:
    if redact_secrets(text) != text:
        raise UsageError(f"{what} contains text that looks like a secret.", next_step="Remove the secret.")


def _refuse_length(what: str, text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise UsageError(f"{what} is too long: {len(text)} characters, at most {MAX_LENGTH} are allowed.")


def _tags(values: Sequence[str]) -> tuple[str, ...]:
    tags = (one_paragraph(part).lstrip("#").strip().casefold() for value in values for part in value.split(","))
    unique = tuple(dict.fromkeys(tag for tag in tags if tag))
    for tag in unique:
        _refuse_secret("A tag", tag)
        if len(tag) > 60:
            raise UsageError(f"The tag {tag[:60]!r} is too long (at most 60 characters).")
    return unique


def _refuse_duplicate(lesson: Lesson, lessons: Sequence[Lesson], linked: Sequence[str]) -> None:
    twin = find_same_lesson(lesson, lessons)
    if twin is None:
        return
    mentioned = [job for job in linked if twin.names(job)]
    step = f"donewhen lessons adopt {twin.id} --job {mentioned[0]}" if mentioned else f"donewhen lessons show {twin.id}"
    raise UsageError(f"{twin.id} is the same lesson.", next_step=step)


def _with_new_id(workspace: Workspace, lesson: Lesson, raw: bytes) -> Lesson:
    """Return the lesson with the next id of the day. Ids that the ledger knows are not reused."""
    today = f"{workspace.clock.now():%Y%m%d}"
    taken = (*_DAY.findall(raw.decode("utf-8", "replace")), *_DAY.findall(" ".join(lesson_usage(workspace).known)))
    number = max((int(number) for day, number in taken if day == today), default=0) + 1
    return Lesson(f"LL-{today}-{number:03d}", "", lesson.tags, lesson.linked, lesson.captured_at, *lesson.texts)


def _append_block(raw: bytes, block: str) -> bytes:
    """Return the file with a block appended; existing bytes are not changed."""
    newline = b"\r\n" if b"\r\n" in raw else b"\n"
    if not raw:
        return f"{TITLE}\n\n{block}".encode()
    ending = raw[-4:].replace(b"\r\n", b"\n")
    gap = b"" if ending.endswith(b"\n\n") else newline if ending.endswith(b"\n") else newline * 2
    return raw + gap + block.encode().replace(b"\n", newline)


def _record_capture(workspace: Workspace, lesson: Lesson, jobs: Sequence[Job], by: Actor) -> RecordedLesson:
    recorded: list[str] = []
    unrecorded: list[str] = []
    for job in {job.id: job for job in jobs}.values():
        if not workspace.ledger.read(job.id).entries:
            # The first entry of a chain adopts a plan that others wrote; recording a lesson must not do that.
            unrecorded.append(job.id)
            continue
        _append_entry(workspace, job, {"lesson": lesson.id, "hash": lesson.hash, "how": "captured"}, by)
        recorded.append(job.id)
    return RecordedLesson(lesson, tuple(recorded), tuple(unrecorded))


def _append_entry(workspace: Workspace, job: Job, data: Mapping[str, Any], by: Actor) -> Entry:
    with writing(workspace, job.path, job.id) as plan:
        return plan.append("lesson", data, Approval(by))


def _is_current(workspace: Workspace, raw: bytes) -> bool:
    try:
        with _index_path(workspace).open("rb") as file:
            source = _SOURCE.search(file.read(_HEAD_BYTES))
    except OSError:
        return False
    return source is not None and source[1].decode() == digest(raw)


def _write_index(workspace: Workspace, raw: bytes) -> None:
    """Write the lessons as JSON for programs. The file's hash comes first, so that staleness is cheap to detect."""
    rows = [
        {
            "id": lesson.id,
            "tags": list(lesson.tags),
            "linked": list(lesson.linked),
            "snippet": lesson.snippet,
            "captured_at": lesson.captured_at,
            "context": lesson.context,
            "worked": lesson.worked,
            "failed": lesson.failed,
            "recommendation": lesson.recommendation,
        }
        for lesson in parse_lessons_cached(raw)
    ]
    content = {"schema": SCHEMA, "generated_at": workspace.now(), "source": digest(raw), "lessons": rows}
    # The index is only a view: if it can't be written, the lesson is kept, and the next start rewrites it.
    path = _index_path(workspace)
    with suppress(OSError, WorkspaceError):
        workspace.put(path, f"{json.dumps(content, indent=2)}\n".encode())


def _index_path(workspace: Workspace) -> Path:
    return lessons_path(workspace).with_name("lessons-index.json")
