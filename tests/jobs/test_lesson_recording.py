"""Lessons written down, put on record, and answered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import UsageError
from donewhen.foundation.notices import notices_to
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.ledger import Ledger
from donewhen.jobs.lessons.lesson_file import LessonError, lessons_path, read_lessons
from donewhen.jobs.lessons.lesson_index import refresh_lesson_index
from donewhen.jobs.lessons.lesson_recording import (
    MAX_LENGTH,
    LessonDraft,
    adopt_lesson,
    answer_lesson,
    capture_lesson,
    find_lesson,
    finish_interrupted_capture,
)
from donewhen.jobs.lessons.lesson_use import lesson_usage
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

Bench = Any
BOT = Actor("bot")
SAID = LessonDraft(
    "Logs end without a newline.", "Reading to the end.", "Test without a newline.", tags=("Parsing, io", "#io")
)
DAY = "LL-20260214"


def said(text: str) -> LessonDraft:
    return LessonDraft(f"{text} happened.", f"{text} worked.", f"Do {text} again.")


def index_of(bench: Bench) -> Any:
    return json.loads((bench.workspace.base / "notes" / "lessons-index.json").read_text())


def entries_of(bench: Bench, job: Any) -> list[dict[str, Any]]:
    return [dict(entry.data) for entry in bench.workspace.ledger.read(job.id).entries if entry.type == "lesson"]


def test_the_first_lesson_makes_the_file_in_the_form_of_the_other_tool(bench: Bench) -> None:
    job = bench.job()
    kept = capture_lesson(bench.workspace, SAID, [job, job], BOT)
    at = kept.lesson.captured_at
    assert lessons_path(bench.workspace).read_text() == (
        f"# Lessons Learned\n\n## {DAY}-001\n- Applies to: parsing, io\n- Linked: {job.id}\n- Captured at: {at}\n\n"
        "**Context:** Logs end without a newline.\n\n**What worked:** Reading to the end.\n\n**What failed:**\n\n"
        "**Recommendation:** Test without a newline.\n"
    )
    assert (kept.recorded, kept.unrecorded) == ((job.id,), ())
    assert entries_of(bench, job) == [{"lesson": f"{DAY}-001", "hash": kept.lesson.hash, "how": "captured"}]
    index = index_of(bench)
    assert list(index) == ["schema", "generated_at", "source", "lessons"]
    assert index["schema"] == "theworkshop.lessons.v1"
    assert list(index["lessons"][0]) == [
        "id", "tags", "linked", "snippet", "captured_at", "context", "worked", "failed", "recommendation",
    ]  # fmt: skip
    assert index["lessons"][0]["tags"] == ["parsing", "io"]


@pytest.mark.parametrize(
    ("before", "gap"),
    [
        (b"# Mine\r\n\r\nkept \xff\r\n", b"\r\n"),
        (b"no end", b"\n\n"),
        (b"one end\n", b"\n"),
        (b"two ends\n\n", b""),
        (b"\n## LL-20260214-041 <!-- mine -->\nx\n\n\n", b""),
    ],
)
def test_not_a_byte_of_what_is_there_is_lost(bench: Bench, before: bytes, gap: bytes) -> None:
    path = lessons_path(bench.workspace)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(before)
    kept = capture_lesson(bench.workspace, SAID, [], BOT)
    after = path.read_bytes()
    assert after.startswith(before + gap + b"## LL-")
    assert kept.lesson.id == f"{DAY}-{'042' if b'041' in before else '001'}"
    assert read_lessons(bench.workspace)[-1].texts == kept.lesson.texts


def test_an_id_is_the_highest_of_the_day_and_one_and_none_is_given_twice(bench: Bench) -> None:
    job = bench.job()
    assert [capture_lesson(bench.workspace, said(name), [job], BOT).lesson.id for name in ("a1", "b2")] == [
        f"{DAY}-001",
        f"{DAY}-002",
    ]
    path = lessons_path(bench.workspace)
    path.write_text("# Lessons Learned\n\nSee LL-20260213-077.\n")
    # Both are gone from the file; the ledger knows them.
    assert capture_lesson(bench.workspace, said("c3"), [], BOT).lesson.id == f"{DAY}-003"
    path.write_text(path.read_text() + f"\n## {DAY}-999\n")
    assert capture_lesson(bench.workspace, said("d4"), [], BOT).lesson.id == f"{DAY}-1000"


def test_many_processes_at_once_lose_nothing_and_share_no_id(bench: Bench) -> None:
    job = bench.job()
    program = (
        "import sys; from pathlib import Path\n"
        "from donewhen.jobs.ledger.ledger import Actor\n"
        "from donewhen.jobs.lessons.lesson_recording import LessonDraft, capture_lesson\n"
        "from donewhen.jobs.plan.workspace import find_workspace\n"
        "space = find_workspace(Path(sys.argv[1]))\n"
        "for n in range(5):\n"
        "    name = f'w{sys.argv[3]}n{n}'\n"
        "    told = LessonDraft(f'{name} was', f'{name} worked', f'{name} again')\n"
        "    capture_lesson(space, told, [space.job(sys.argv[2])], Actor('b'))\n"
    )
    argv = [sys.executable, "-c", program, str(bench.root), job.id]
    running = [subprocess.Popen([*argv, str(number)]) for number in range(4)]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    lessons = read_lessons(bench.workspace)
    assert len({lesson.id for lesson in lessons}) == len(lessons) == 20
    assert len({lesson.context for lesson in lessons}) == 20
    assert {entry["lesson"] for entry in entries_of(bench, job)} == {lesson.id for lesson in lessons}
    assert len(index_of(bench)["lessons"]) == 20


@pytest.mark.parametrize("field", ["context", "worked", "recommendation"])
@pytest.mark.parametrize("text", ["", "  \n", "TBD", "x", "[what worked]"])
def test_a_placeholder_is_refused(bench: Bench, field: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        capture_lesson(bench.workspace, SAID._replace(**{field: text}), [], BOT)
    assert_sentences(caught.value)
    assert not lessons_path(bench.workspace).exists()


@pytest.mark.parametrize("field", ["context", "worked", "failed", "recommendation", "tags"])
def test_a_secret_is_refused_and_not_repeated(bench: Bench, field: str) -> None:
    secret = "ghp_" + "a1B2" * 8
    value: Any = (secret,) if field == "tags" else f"The token {secret} works."
    with pytest.raises(UsageError) as refused:
        capture_lesson(bench.workspace, SAID._replace(**{field: value}), [], BOT)
    assert_sentences(refused.value)
    assert secret not in str(refused.value)
    assert not lessons_path(bench.workspace).exists()


def test_what_is_too_long_is_refused(bench: Bench) -> None:
    capture_lesson(bench.workspace, SAID._replace(context="word " * (MAX_LENGTH // 5)), [], BOT)
    with pytest.raises(UsageError) as caught:
        capture_lesson(bench.workspace, SAID._replace(worked="w" * (MAX_LENGTH + 1)), [], BOT)
    assert str(MAX_LENGTH + 1) in str(caught.value)
    assert_sentences(caught.value)
    with pytest.raises(UsageError) as caught:
        capture_lesson(bench.workspace, said("tag")._replace(tags=("t" * 61,)), [], BOT)
    assert_sentences(caught.value)


def test_a_copy_is_refused_and_leads_to_the_one_that_is_there(bench: Bench) -> None:
    job = bench.job()
    capture_lesson(bench.workspace, SAID, [job], BOT)
    shouted = SAID._replace(context=SAID.context.upper(), tags=())
    with pytest.raises(UsageError) as refused:
        capture_lesson(bench.workspace, shouted, [], BOT)
    assert_sentences(refused.value)
    assert refused.value.next_step == f"donewhen lessons show {DAY}-001"
    with pytest.raises(UsageError) as refused:
        capture_lesson(bench.workspace, shouted, [job], BOT)
    assert refused.value.next_step == f"donewhen lessons adopt {DAY}-001 --job {job.id}"
    assert len(read_lessons(bench.workspace)) == 1


def test_a_text_with_lines_can_not_become_other_fields_or_lessons(bench: Bench) -> None:
    trick = "one\n\n## LL-20260101-001\n- Linked: WI-1\n\n**What worked:** smuggled\n<!-- hidden"
    kept = capture_lesson(bench.workspace, SAID._replace(context=trick, tags=("a\n## LL-9",)), [], BOT)
    (only,) = read_lessons(bench.workspace)
    assert (only.id, only.worked, only.linked) == (kept.lesson.id, SAID.worked, ())
    assert "<!--" not in lessons_path(bench.workspace).read_text()


def test_a_job_to_which_nothing_has_happened_gets_no_chain_by_a_lesson(bench: Bench) -> None:
    job = bench.job(agreed=False)
    kept = capture_lesson(bench.workspace, SAID, [job], BOT)
    assert (kept.recorded, kept.unrecorded) == ((), (job.id,))
    assert bench.workspace.ledger.read(job.id).entries == ()
    assert read_lessons(bench.workspace)[0].linked == (job.id,)


def test_a_lesson_after_the_end_leaves_a_job_done(bench: Bench) -> None:
    job = bench.done()
    capture_lesson(bench.workspace, SAID, [job], BOT)
    again = bench.complete(job)
    assert (again.done, again.repeated) == (True, True)


def test_keeping_a_lesson_makes_no_evidence_stale_and_no_plan_suspect(bench: Bench) -> None:
    job = bench.job(criteria=["It runs.\n  check: run true"])
    bench.write(job)
    bench.git(bench.root, "add", "--all")
    assert bench.complete(job).done
    capture_lesson(bench.workspace, SAID, [job], BOT)
    bench.git(bench.root, "add", "--all", "--force")
    facts = bench.facts(job)
    assert [status.state for status in facts.evidence] == ["passed"]
    assert (facts.tampered, facts.chain_breaks, facts.agreement.state) == ((), (), "agreed")


# Lessons of another hand


def typed(bench: Bench, job: Any, name: str = "LL-7", text: str = "Logs end.") -> None:
    path = lessons_path(bench.workspace)
    path.parent.mkdir(exist_ok=True)
    before = path.read_text() if path.exists() else ""
    fields = f"Context: {text}\nWhat worked: {text} So.\nRecommendation: {text} Then.\n"
    path.write_text(f"{before}## {name}\nLinked: {job.id}\n{fields}")


def test_a_lesson_that_was_typed_can_be_put_on_record(bench: Bench) -> None:
    job, other = bench.job(), bench.job("Other")
    typed(bench, job)
    kept = adopt_lesson(bench.workspace, "LL-7", job, BOT)
    assert kept.recorded == (job.id,)
    assert entries_of(bench, job)[-1]["hash"] == find_lesson(bench.workspace, "LL-7").hash
    with pytest.raises(UsageError) as caught:
        adopt_lesson(bench.workspace, "LL-7", other, BOT)
    assert other.id in str(caught.value)
    assert_sentences(caught.value)
    typed(bench, job, "LL-8", "TBD")
    lessons_path(bench.workspace).write_text(lessons_path(bench.workspace).read_text().replace("TBD So.", "x"))
    with pytest.raises(UsageError) as caught:
        adopt_lesson(bench.workspace, "LL-8", job, BOT)
    assert_sentences(caught.value)
    with pytest.raises(UsageError) as caught:
        adopt_lesson(bench.workspace, "LL-9", job, BOT)
    assert_sentences(caught.value)


def test_of_two_lessons_with_one_id_the_later_is_meant(bench: Bench) -> None:
    job = bench.job()
    typed(bench, job, text="First one.")
    typed(bench, job, text="Second one.")
    assert find_lesson(bench.workspace, "LL-7").context == "Second one."


# The index


def test_a_look_makes_the_index_anew_when_the_file_has_changed_and_only_then(bench: Bench) -> None:
    job = bench.job()
    capture_lesson(bench.workspace, SAID, [job], BOT)
    made = index_of(bench)
    refresh_lesson_index(bench.workspace)
    assert index_of(bench) == made
    typed(bench, job)
    refresh_lesson_index(bench.workspace)
    assert [lesson["id"] for lesson in index_of(bench)["lessons"]] == [f"{DAY}-001", "LL-7"]
    path = bench.workspace.base / "notes" / "lessons-index.json"
    path.write_text("{broken")
    refresh_lesson_index(bench.workspace)
    assert len(index_of(bench)["lessons"]) == 2
    path.unlink()
    refresh_lesson_index(bench.workspace)
    assert path.exists()


def test_without_lessons_there_is_no_index(bench: Bench) -> None:
    refresh_lesson_index(bench.workspace)
    assert not (bench.workspace.base / "notes" / "lessons-index.json").exists()


def test_an_index_that_is_a_link_is_not_followed(bench: Bench) -> None:
    victim = bench.root / "precious.txt"
    victim.write_text("mine")
    (bench.workspace.base / "notes").mkdir(exist_ok=True)
    (bench.workspace.base / "notes" / "lessons-index.json").symlink_to(victim)
    capture_lesson(bench.workspace, SAID, [], BOT)
    assert victim.read_text() == "mine"


def test_an_index_that_can_not_be_written_keeps_nobody_from_a_lesson(bench: Bench) -> None:
    (bench.workspace.base / "notes" / "lessons-index.json").mkdir(parents=True)
    capture_lesson(bench.workspace, SAID, [], BOT)
    assert len(read_lessons(bench.workspace)) == 1


@pytest.mark.powerless
def test_a_folder_that_can_not_be_written_to_is_a_sentence(bench: Bench) -> None:
    notes = bench.workspace.base / "notes"
    notes.mkdir(exist_ok=True)
    notes.chmod(0o500)
    try:
        with pytest.raises(LessonError) as caught:
            capture_lesson(bench.workspace, SAID, [], BOT)
        assert "Permission denied" in str(caught.value)
    finally:
        notes.chmod(0o700)


def test_a_full_disk_is_a_sentence_and_nothing_is_on_record(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    job = bench.job()
    capture_lesson(bench.workspace, said("a1"), [job], BOT)
    before = lessons_path(bench.workspace).read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("donewhen.jobs.plan.workspace.write_atomically", full)
    with pytest.raises(LessonError) as caught:
        capture_lesson(bench.workspace, SAID, [job], BOT)
    assert_sentences(caught.value)
    assert lessons_path(bench.workspace).read_bytes() == before
    assert len(entries_of(bench, job)) == 1


class Killed(BaseException):
    """Instead of a kill: nothing catches it."""


def killed_at(monkeypatch: pytest.MonkeyPatch, bench: Bench, jobs: list[Any], append: int | None) -> None:
    """Capture a lesson and be killed before this entry, or before the file is written."""
    real = Ledger.append
    count = 0

    def appended(*arguments: Any, **named: Any) -> Any:
        nonlocal count
        if count == append:
            raise Killed
        count += 1
        return real(*arguments, **named)

    def unwritten(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", appended)
        if append is None:
            patch.setattr("donewhen.jobs.lessons.lesson_recording._write_lessons", unwritten)
        with pytest.raises(Killed):
            capture_lesson(bench.workspace, SAID, jobs, BOT)


@pytest.mark.parametrize("append", [1, None], ids=["between two chains", "before the file"])
def test_a_capture_that_was_killed_after_the_ledger_is_finished_by_the_next_command(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, append: int | None
) -> None:
    job, other = bench.job(), bench.job("Other")
    killed_at(monkeypatch, bench, [job, other], append)
    assert not lessons_path(bench.workspace).exists()
    assert [entry["how"] for entry in entries_of(bench, job)] == ["captured"]
    bench.start(job)
    (lesson,) = read_lessons(bench.workspace)
    assert lesson.texts == (SAID.context, SAID.worked, "", SAID.recommendation)
    for linked in (job, other):
        assert [(entry["lesson"], entry["hash"]) for entry in entries_of(bench, linked)] == [(lesson.id, lesson.hash)]
    assert index_of(bench)["lessons"][0]["id"] == lesson.id
    finish_interrupted_capture(bench.workspace)
    assert len(read_lessons(bench.workspace)) == 1


def test_a_capture_that_was_killed_before_the_ledger_never_happened(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = bench.job()
    killed_at(monkeypatch, bench, [job], 0)
    finish_interrupted_capture(bench.workspace)
    assert (read_lessons(bench.workspace), entries_of(bench, job)) == ((), [])
    assert capture_lesson(bench.workspace, SAID, [job], BOT).lesson.id == f"{DAY}-001"


def test_a_lesson_that_somebody_removed_does_not_come_back(bench: Bench) -> None:
    job = bench.job()
    capture_lesson(bench.workspace, SAID, [job], BOT)
    lessons_path(bench.workspace).write_text("# Lessons Learned\n")
    finish_interrupted_capture(bench.workspace)
    assert read_lessons(bench.workspace) == ()


@pytest.mark.parametrize("change", ["block", "hash", "broken"])
def test_a_note_that_the_ledger_does_not_know_changes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    job = bench.job()
    killed_at(monkeypatch, bench, [job], None)
    path = bench.workspace.folder / "state" / "pending-lesson.json"
    note = json.loads(path.read_text())
    note[change] = note["block"].replace("Reading", "Skipping") if change == "block" else "sha256:0"
    path.write_text("{" if change == "broken" else json.dumps(note))
    finish_interrupted_capture(bench.workspace)
    assert read_lessons(bench.workspace) == ()
    assert len(entries_of(bench, job)) == 1
    assert not path.exists()


def test_a_file_that_can_not_be_written_leaves_a_lesson_in_the_ledger_that_is_written_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = bench.job()
    put = Workspace.put

    def full(workspace: Workspace, path: Path, data: bytes) -> None:
        if path.name == "lessons-learned.md":
            raise OSError(28, "No space left on device")
        put(workspace, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "put", full)
        with pytest.raises(LessonError) as caught:
            capture_lesson(bench.workspace, SAID, [job], BOT)
        assert_sentences(caught.value)
        notices: list[str] = []
        with notices_to(notices.append):
            bench.start(job)
        assert len(notices) == 1
        assert_sentences(notices[0])
    bench.start(job)
    assert [lesson.id for lesson in read_lessons(bench.workspace)] == [
        entry["lesson"] for entry in entries_of(bench, job)
    ]


def test_notes_that_are_a_file_are_a_sentence(bench: Bench) -> None:
    notes = bench.workspace.base / "notes"
    notes.write_text("a file")
    with pytest.raises(LessonError):
        capture_lesson(bench.workspace, SAID, [], BOT)
    assert notes.read_text() == "a file"


# Answers


def test_an_answer_is_on_record_and_counts_as_use(bench: Bench) -> None:
    job, other = bench.job(), bench.job("Other")
    name = capture_lesson(bench.workspace, SAID, [job], BOT).lesson.id
    entry = answer_lesson(bench.workspace, name, other, "used", "We test\nwithout one now.", BOT)
    assert dict(entry.data) == {
        "lesson": name,
        "hash": find_lesson(bench.workspace, name).hash,
        "how": "used",
        "said": "We test without one now.",
    }
    assert lesson_usage(bench.workspace) == ({name: 1}, frozenset({name}))
    answer_lesson(bench.workspace, name, other, "used", "Once more.", BOT)
    assert lesson_usage(bench.workspace).used == {name: 1}
    answer_lesson(bench.workspace, name, bench.job("Third"), "used", "Here as well.", BOT)
    assert lesson_usage(bench.workspace).used == {name: 2}


def test_whoever_wrote_a_lesson_down_is_not_counted_among_those_who_used_it(bench: Bench) -> None:
    job = bench.job()
    name = capture_lesson(bench.workspace, SAID, [job], BOT).lesson.id
    answer_lesson(bench.workspace, name, job, "used", "By myself.", BOT)
    assert not lesson_usage(bench.workspace).used


@pytest.mark.parametrize("text", ["", "TBD", "yes", "x", "…"])
def test_an_answer_has_to_say_something(bench: Bench, text: str) -> None:
    job = bench.job()
    name = capture_lesson(bench.workspace, SAID, [job], BOT).lesson.id
    with pytest.raises(UsageError) as caught:
        answer_lesson(bench.workspace, name, job, "used", text, BOT)
    assert_sentences(caught.value)
    with pytest.raises(UsageError) as caught:
        answer_lesson(bench.workspace, name, job, "not_relevant", text, BOT)
    assert_sentences(caught.value)


def test_an_answer_without_a_start_a_lesson_or_a_question_is_refused(bench: Bench) -> None:
    job, waiting = bench.job(), bench.job("Waiting", started=False)
    name = capture_lesson(bench.workspace, SAID, [job], BOT).lesson.id
    with pytest.raises(UsageError) as caught:
        answer_lesson(bench.workspace, name, waiting, "used", "We did so.", BOT)
    assert_sentences(caught.value)
    with pytest.raises(UsageError) as caught:
        answer_lesson(bench.workspace, "LL-1", job, "used", "We did so.", BOT)
    assert_sentences(caught.value)
    with pytest.raises(UsageError) as caught:
        answer_lesson(bench.workspace, name, job, "not_relevant", "It does not fit.", BOT)
    assert_sentences(caught.value)
    with pytest.raises(UsageError) as caught:
        answer_lesson(bench.workspace, name, job, "used", "with password=hunter2hunter2", BOT)
    assert_sentences(caught.value)
    with pytest.raises(UsageError) as caught:
        answer_lesson(bench.workspace, name, job, "used", "w " * MAX_LENGTH, BOT)
    assert_sentences(caught.value)


def test_a_chain_that_can_not_be_read_hides_no_other_use(bench: Bench) -> None:
    job = bench.job()
    name = capture_lesson(bench.workspace, SAID, [job], BOT).lesson.id
    (bench.workspace.folder / "ledger" / "WI-20990101-001.jsonl").mkdir()
    assert lesson_usage(bench.workspace).known == {name}
