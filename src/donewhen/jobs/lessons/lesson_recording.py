"""Write lessons, and record a job's answers to them in the ledger."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from donewhen.foundation.errors import UsageError
from donewhen.foundation.notices import notify
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.lessons.lesson_file import (
    TITLE,
    Lesson,
    LessonError,
    find_same_lesson,
    lessons_path,
    one_paragraph,
    parse_lessons,
    parse_lessons_cached,
    raw_lessons,
    read_lessons,
    render_lesson,
    words_in,
)
from donewhen.jobs.lessons.lesson_index import write_lesson_index
from donewhen.jobs.lessons.lesson_use import lesson_usage, lessons_given
from donewhen.jobs.lessons.pending_lesson import (
    PendingLesson,
    capture_entry,
    capture_locks,
    clear_pending_lesson,
    jobs_of,
    note_pending_lesson,
    pending_lesson,
)
from donewhen.jobs.plan.criteria import is_placeholder
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import Writing, writing

MAX_LENGTH = 4000
_DAY = re.compile(r"\bLL-([0-9]{8})-([0-9]{3,18})\b")

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
    """Record a lesson in the chain of each linked job, and append it to the file."""
    texts = _validate_draft(draft)
    workspace.prepare()
    while True:
        finish_interrupted_capture(workspace)
        with capture_locks(workspace, jobs) as plans:
            # Another writer may have been killed meanwhile.
            if pending_lesson(workspace) is None:
                return _capture(workspace, texts, draft.tags, plans, by)


def finish_interrupted_capture(workspace: Workspace) -> None:
    """Write a lesson that the ledger has and a killed writer did not write into the file; the caller holds no lock."""
    pending = pending_lesson(workspace)
    if pending is None:
        return
    with capture_locks(workspace, jobs_of(workspace, pending)) as plans:
        pending = pending_lesson(workspace)
        if pending is None:
            return
        # Another capture may have begun meanwhile: its jobs are not locked here, and its writer will finish it.
        if {job.id for job in jobs_of(workspace, pending)} - {plan.chain_name for plan in plans}:
            return
        entries = {plan.chain_name: capture_entry(plan.entries, pending) for plan in plans}
        recorded = next((entry for entry in entries.values() if entry is not None), None)
        intact = [lesson.hash for lesson in parse_lessons(pending.block)] == [pending.hash]
        # Without an entry the lesson was never captured; whoever captures it has to do so again.
        if recorded is not None and intact:
            for plan in plans:
                if entries[plan.chain_name] is None:
                    _append_capture(plan, pending.lesson, pending.hash, recorded.by)
            raw = raw_lessons(workspace) or b""
            if not any(lesson.id == pending.lesson for lesson in parse_lessons_cached(raw)):
                _write_lessons(workspace, _append_block(raw, pending.block), recorded=True)
        clear_pending_lesson(workspace)


def finish_interrupted_capture_if_possible(workspace: Workspace) -> None:
    """The same for commands that are not about lessons: a failure is a notice."""
    try:
        finish_interrupted_capture(workspace)
    except (LessonError, OSError) as error:
        notify(f"A lesson that was interrupted could not be finished: {error}")


def _capture(
    workspace: Workspace, texts: tuple[str, str, str, str], tags: Sequence[str], plans: Sequence[Writing], by: Actor
) -> RecordedLesson:
    """Capture a lesson under the locks: ledger first, then the file.

    A lesson that is only in the ledger can be written to the file later. One that is only in the file looks as if
    somebody had typed it there.
    """
    raw = raw_lessons(workspace) or b""
    linked = tuple(plan.chain_name for plan in plans)
    lesson = Lesson("", "", _tags(tags), linked, workspace.now(), *texts)
    _refuse_duplicate(lesson, parse_lessons_cached(raw), linked)
    lesson = _with_new_id(workspace, lesson, raw)
    block = render_lesson(lesson)
    text = _append_block(raw, block)
    (lesson,) = (candidate for candidate in parse_lessons_cached(text) if candidate.id == lesson.id)
    # The first entry of a chain adopts a plan that others wrote; recording a lesson must not do that.
    recorded = [plan for plan in plans if plan.entries]
    ids = tuple(plan.chain_name for plan in recorded)
    path = lessons_path(workspace)
    try:
        path.parent.mkdir(exist_ok=True)
        if recorded:
            note_pending_lesson(workspace, PendingLesson(lesson.id, lesson.hash, block, ids))
        for plan in recorded:
            _append_capture(plan, lesson.id, lesson.hash, by)
    except OSError as error:
        where = workspace.where(path)
        raise LessonError(f"The lesson can't be recorded: {error.strerror}.", where=where) from error
    _write_lessons(workspace, text, recorded=bool(recorded))
    clear_pending_lesson(workspace)
    return RecordedLesson(lesson, ids, tuple(name for name in linked if name not in ids))


def _write_lessons(workspace: Workspace, text: bytes, *, recorded: bool) -> None:
    path = lessons_path(workspace)
    try:
        path.parent.mkdir(exist_ok=True)
        workspace.put(path, text)
    except OSError as error:
        where = workspace.where(path)
        if not recorded:
            raise LessonError(f"The lesson can't be written: {error.strerror}.", where=where) from error
        raise LessonError(
            f"The lesson is in the ledger, but it can't be written to the file: {error.strerror}.",
            where=where,
            next_step="Make the file writable; the next donewhen start, complete or lessons add writes it.",
        ) from error
    write_lesson_index(workspace, text)


def adopt_lesson(workspace: Workspace, name: str, job: Job, by: Actor) -> RecordedLesson:
    """Record a lesson that was written into the file by hand or with another tool."""
    finish_interrupted_capture(workspace)
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
    finish_interrupted_capture(workspace)
    entries = workspace.ledger.read(job.id).entries
    if not any(entry.type == "started" for entry in entries):
        raise UsageError(f"{job.id} has not been started.", next_step=f"donewhen start {job.id}")
    given = lessons_given(entries)
    if how == "not_relevant" and name not in given:
        raise UsageError(f"{job.id} was not given {name}, so no answer is needed.", next_step=f"donewhen log {job.id}")
    value = given[name] if name in given else find_lesson(workspace, name).hash
    with writing(workspace, job.path, job.id) as plan:
        return plan.append("lesson", {"lesson": name, "hash": value, "how": how, "said": words}, Approval(by))


def find_lesson(workspace: Workspace, name: str) -> Lesson:
    """Return a lesson by its id; of two with the same id, the later one."""
    matches = [lesson for lesson in read_lessons(workspace) if lesson.id == name]
    if not matches:
        raise UsageError(f"There is no lesson {name!r}.", next_step="donewhen lessons list")
    return matches[-1]


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
        with writing(workspace, job.path, job.id) as plan:
            _append_capture(plan, lesson.id, lesson.hash, by)
        recorded.append(job.id)
    return RecordedLesson(lesson, tuple(recorded), tuple(unrecorded))


def _append_capture(plan: Writing, lesson: str, value: str, by: Actor) -> None:
    plan.append("lesson", {"lesson": lesson, "hash": value, "how": "captured"}, Approval(by))
