"""What was made of lessons: which a job was given and how it answered, which it kept, and which others have used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from donewhen import __version__
from donewhen.jobs.board.file_index import FileIndex
from donewhen.jobs.ledger.ledger import Entry, verify_chain
from donewhen.jobs.lessons.lesson_file import Lesson, LessonError, find_same_lesson, read_lessons
from donewhen.jobs.plan.criteria import is_placeholder
from donewhen.jobs.plan.workspace import Workspace

ANSWERS = ("used", "not_relevant")


class LessonFact(NamedTuple):
    """Lessons that are linked to this job."""

    captured: int
    empty: int
    """Those that say nothing."""
    kept: tuple[str, ...] = ()
    """Those that are on record since the job was started, stand in the file as they were, and say something new."""
    lacking: tuple[str, ...] = ()
    """What the others lack, in words."""
    given: tuple[str, ...] = ()
    """Lessons of others that the job was given when it was started."""
    answered: tuple[str, ...] = ()
    """Those of them that it has answered: how it used them, or why they are not relevant."""


class LessonUsage(NamedTuple):
    """What the ledger knows of lessons."""

    used: Mapping[str, int]
    """How many jobs have used a lesson, by its id; those that have written it down themselves don't count."""
    known: frozenset[str]
    """Every lesson that was ever on record, whether it still stands in the file or not."""


def lesson_usage(workspace: Workspace) -> LessonUsage:
    """What all jobs have made of lessons. It orders what is found and decides nothing, so chains that have not changed
    since the last look are not read again."""
    used: Counter[str] = Counter()
    known: set[str] = set()
    folder = workspace.folder / "ledger"
    with FileIndex(workspace.folder / "index.sqlite" if folder.is_dir() else None) as index:
        for name in workspace.ledger.chains():
            try:
                seen = index.remembered(
                    f"lessons {__version__} {name}",
                    folder / f"{name}.jsonl",
                    _reader(name),
                    lambda one: type(one) is dict,
                )
            except OSError:
                continue
            known.update(seen)
            used.update(one for one, was_used in seen.items() if was_used)
    return LessonUsage(used, frozenset(known))


def lessons_given(entries: Sequence[Entry]) -> dict[str, str]:
    """The lessons that a job was given when it was started, each with the hash of what it said then."""
    found: dict[str, str] = {}
    for entry in entries:
        lessons = entry.data.get("lessons") if entry.type == "started" else None
        if isinstance(lessons, Mapping):
            found |= {str(name): str(value) for name, value in lessons.items()}
    return found


def lesson_answers(entries: Sequence[Entry]) -> dict[str, Entry]:
    """The newest answer of a job to each lesson that says how it was used, or why it is not relevant."""
    return {
        str(entry.data.get("lesson")): entry
        for entry in entries
        if entry.type == "lesson"
        and entry.data.get("how") in ANSWERS
        and not is_placeholder(str(entry.data.get("said", "")))
    }


def lessons_captured(entries: Sequence[Entry]) -> dict[str, Entry]:
    """The lessons that a job has put on record since it was first started, each with the newest entry."""
    first = next((entry.seq for entry in entries if entry.type == "started"), None)
    return {
        str(entry.data.get("lesson")): entry
        for entry in entries
        if entry.type == "lesson" and entry.data.get("how") == "captured" and first is not None and entry.seq > first
    }


def lesson_fact(workspace: Workspace, job: str, entries: Sequence[Entry] = ()) -> LessonFact:
    """What lessons there are that name this job, and what it has made of those it was given."""
    try:
        lessons = read_lessons(workspace)
    except LessonError:
        lessons = ()
    linked = [lesson for lesson in lessons if lesson.names(job)]
    kept, lacking = _kept(lessons, job, lessons_captured(entries))
    given, answered = lessons_given(entries), lesson_answers(entries)
    return LessonFact(
        len(linked),
        sum(one.says_nothing for one in linked),
        kept,
        lacking,
        tuple(given),
        tuple(one for one in given if one in answered),
    )


def _kept(
    lessons: tuple[Lesson, ...], job: str, captured: Mapping[str, Entry]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lessons that count as captured, and of the others what each lacks."""
    kept: list[str] = []
    lacking: list[str] = []
    for place, one in enumerate(lessons):
        if not one.names(job):
            continue
        entry = captured.get(one.id)
        if entry is None:
            lacking.append(f"{one.id} is not on record since the start")
        elif entry.data.get("hash") != one.hash:
            lacking.append(f"{one.id} was changed since it was put on record")
        elif not one.substantive:
            lacking.append(f"{one.id} does not say what happened, what worked and what to do")
        elif (twin := find_same_lesson(one, lessons[:place])) is not None:
            lacking.append(f"{one.id} says what {twin.id} says")
        else:
            kept.append(one.id)
    gone = [one for one in captured if not any(other.id == one and other.names(job) for other in lessons)]
    return tuple(kept), (*lacking, *(f"{one} is gone from the file" for one in gone))


def _reader(name: str) -> Callable[[bytes], dict[str, bool]]:
    def read(raw: bytes) -> dict[str, bool]:
        if b'"lesson' not in raw:
            return {}
        entries = verify_chain(name, raw).entries
        ways = [(str(entry.data.get("lesson")), entry.data.get("how")) for entry in entries if entry.type == "lesson"]
        own = {name for name, how in ways if how == "captured"}
        answers = lesson_answers(entries)
        used = {name for name, one in answers.items() if one.data["how"] == "used"} - own
        return {name: name in used for name in sorted({name for name, _ in ways})}

    return read
