"""How lessons were used: which a job was given and how it answered, which it captured, and which others used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from donewhen import __version__
from donewhen.foundation.size_limits import LEDGER_CHAIN
from donewhen.jobs.ledger.entries import Entry, verify_chain
from donewhen.jobs.ledger.entry_content import LessonNote, Started
from donewhen.jobs.lessons.lesson_file import Lesson, LessonError, find_same_lesson, read_lessons
from donewhen.jobs.plan.criteria import is_placeholder
from donewhen.jobs.plan.workspace import Workspace

ANSWERS = ("used", "not_relevant")


class LessonFact(NamedTuple):
    """Lessons that are linked to this job."""

    captured: int
    empty: int
    """Those without content."""
    kept: tuple[str, ...] = ()
    """Those recorded since the job was started, unchanged in the file, complete, and not a copy of another."""
    lacking: tuple[str, ...] = ()
    """One sentence for each of the others: why it does not count."""
    given: tuple[str, ...] = ()
    """Lessons of other jobs that this job was given when it was started."""
    answered: tuple[str, ...] = ()
    """Those of them that it answered: how it used them, or why they are not relevant."""


class LessonUsage(NamedTuple):
    """The use of lessons according to the ledger."""

    used: Mapping[str, int]
    """The number of jobs that used a lesson, by its id; jobs that captured it don't count."""
    known: frozenset[str]
    """Every lesson that was ever recorded, even if it is no longer in the file."""


def lesson_usage(workspace: Workspace) -> LessonUsage:
    """Return the use of lessons by all jobs. It only affects ranking, so unchanged chains come from the index."""
    # Imported where it is used: every gate imports this module, and few need it.
    from donewhen.jobs.board.file_index import FileIndex

    used: Counter[str] = Counter()
    known: set[str] = set()
    folder = workspace.folder / "ledger"
    with FileIndex(workspace.folder / "index.sqlite" if folder.is_dir() else None) as index:
        for name in workspace.ledger.chains():
            try:
                seen = index.get_or_read(
                    f"lessons {__version__} {name}",
                    folder / f"{name}.jsonl",
                    _usage_reader(name),
                    lambda data: type(data) is dict,
                    limit=LEDGER_CHAIN,
                )
            except OSError:
                continue
            known.update(seen)
            used.update(lesson for lesson, was_used in seen.items() if was_used)
    return LessonUsage(used, frozenset(known))


def lessons_given(entries: Sequence[Entry]) -> dict[str, str]:
    """The lessons that a job was given when it was started, each with its hash at that time."""
    given: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry.content, Started):
            given |= entry.content.lessons
    return given


def lesson_answers(entries: Sequence[Entry]) -> dict[str, Entry]:
    """The newest answer of a job to each lesson: how it was used, or why it is not relevant."""
    return {
        note.lesson: entry
        for entry in entries
        if isinstance(note := entry.content, LessonNote) and note.how in ANSWERS and not is_placeholder(note.said)
    }


def lessons_captured(entries: Sequence[Entry]) -> dict[str, Entry]:
    """The lessons that a job recorded since it was first started, each with its newest entry."""
    first = next((entry.seq for entry in entries if entry.type == "started"), None)
    return {
        note.lesson: entry
        for entry in entries
        if isinstance(note := entry.content, LessonNote)
        and note.how == "captured"
        and first is not None
        and entry.seq > first
    }


def lesson_fact(workspace: Workspace, job: str, entries: Sequence[Entry] = ()) -> LessonFact:
    """Collect the lessons that mention this job, and its answers to those it was given."""
    try:
        lessons = read_lessons(workspace)
    except LessonError:
        lessons = ()
    linked = [lesson for lesson in lessons if lesson.names(job)]
    kept, lacking = _check_captured(lessons, job, lessons_captured(entries))
    given, answered = lessons_given(entries), lesson_answers(entries)
    return LessonFact(
        len(linked),
        sum(lesson.is_empty for lesson in linked),
        kept,
        lacking,
        tuple(given),
        tuple(name for name in given if name in answered),
    )


def _check_captured(
    lessons: tuple[Lesson, ...], job: str, captured: Mapping[str, Entry]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lessons that count as captured, and why the others do not."""
    kept: list[str] = []
    lacking: list[str] = []
    for place, lesson in enumerate(lessons):
        if not lesson.names(job):
            continue
        entry = captured.get(lesson.id)
        if entry is None:
            lacking.append(f"{lesson.id} was not recorded since the job was started")
        elif entry.read_as(LessonNote).hash != lesson.hash:
            lacking.append(f"{lesson.id} was changed after it was recorded")
        elif not lesson.substantive:
            lacking.append(f"{lesson.id} lacks context, what worked or a recommendation")
        elif (twin := find_same_lesson(lesson, lessons[:place])) is not None:
            lacking.append(f"{lesson.id} is the same as {twin.id}")
        else:
            kept.append(lesson.id)
    gone = [name for name in captured if not any(lesson.id == name and lesson.names(job) for lesson in lessons)]
    return tuple(kept), (*lacking, *(f"{name} was removed from the file" for name in gone))


def _usage_reader(name: str) -> Callable[[bytes], dict[str, bool]]:
    def read(raw: bytes) -> dict[str, bool]:
        if b'"lesson' not in raw:
            return {}
        entries = verify_chain(name, raw).entries
        notes = [entry.content for entry in entries if isinstance(entry.content, LessonNote)]
        own = {note.lesson for note in notes if note.how == "captured"}
        answers = lesson_answers(entries)
        used = {name for name, answer in answers.items() if answer.read_as(LessonNote).how == "used"} - own
        return {name: name in used for name in sorted({note.lesson for note in notes})}

    return read
