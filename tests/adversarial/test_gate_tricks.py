"""Tricks with the plan, the outputs and what was agreed, each beside the honest change that looks like it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from gate_kit import CHECK, Shop, Trick, assert_promised, assert_refused, once

from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lessons.lesson_file import read_lessons
from donewhen.jobs.lessons.lesson_recording import adopt_lesson
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job

LESSON = """\
## LL-20260214-001
- Linked: {job}
- Context: {text}
- What worked: {text}
- What failed: {text}
- Recommendation: {text}
"""
VERIFIED = ("verification_evidence: []", "verification_evidence:\n  - artifacts/verification.md")
WITH_LESSON = ("lesson_capture_required: false", "lesson_capture_required: true")
LESSON_CHECK = ("truth_checks:\n", "truth_checks:\n  - linked_lesson_captured\n")


def honest(shop: Shop) -> Job:
    job = shop.job()
    shop.work()
    return job


# 1: nothing but the template


def untouched_template(shop: Shop) -> Job:
    job = shop.job(agreed=False, outputs=("outputs/primary.md",))
    shop.edit(job, f"The check passes\n  check: run {CHECK}", "[What must be true? Replace this line.]")
    shop.edit(job, *VERIFIED)
    (job.folder / "outputs" / "primary.md").write_text("x")
    (job.folder / "artifacts" / "verification.md").write_text("x")
    return job


def template_that_was_waved_through(shop: Shop) -> Job:
    job = shop.job("TBD\n  check: file /result.txt")
    shop.write("result.txt", "x")
    return job


def _with_lesson(shop: Shop, text: str) -> Job:
    job = shop.job(agreed=False)
    shop.edit(job, *WITH_LESSON, *LESSON_CHECK)
    shop.agree(job)
    assert start_job(shop.workspace, job.id, unproved_actor()).started
    shop.work()
    shop.write("jobs/notes/lessons-learned.md", LESSON.format(job=job.id, text=text))
    return job


def _with_kept_lesson(shop: Shop, text: str) -> Job:
    job = _with_lesson(shop, text)
    (lesson,) = read_lessons(shop.workspace)
    adopt_lesson(shop.workspace, lesson.id, shop.workspace.job(job.id), unproved_actor())
    return job


def short_but_real(shop: Shop) -> Job:
    job = shop.job("The answer is there\n  check: file /result.txt matches /^42$/")
    shop.write("result.txt", "42")
    return job


# 2: files that are none


def _output(make: Callable[[Path], object]) -> Callable[[Shop], Job]:
    def play(shop: Shop) -> Job:
        job = shop.job("It runs\n  check: run " + CHECK.replace("check.py", "-c pass"))
        make(shop.root / "result.txt")
        return job

    return play


def _declared(path: str) -> Callable[[Shop], Job]:
    def play(shop: Shop) -> Job:
        job = honest(shop)
        shop.edit(job, "  - /result.txt", f"  - {path}")
        return job

    return play


def link_to_elsewhere(shop: Shop) -> Job:
    job = shop.job("It runs\n  check: run " + CHECK.replace("check.py", "-c pass"))
    (shop.root / "result.txt").symlink_to("/etc/hostname")
    return job


def done_before(shop: Shop) -> Job:
    job = honest(shop)
    shop.finish(job)
    return job


def deleted_when_done(shop: Shop) -> Job:
    job = done_before(shop)
    (shop.root / "result.txt").unlink()
    return job


# 3, 4, 5: loosening what was agreed


def _edited(*pairs: str, given: tuple[str, str] = ("", "")) -> Callable[[Shop], Job]:
    def play(shop: Shop) -> Job:
        job = shop.job(edit=given)
        shop.work()
        (job.folder / "artifacts" / "verification.md").write_text("It was checked.\n")
        shop.edit(job, *pairs)
        return job

    return play


def dependency_dropped(shop: Shop) -> Job:
    above = shop.job(title="Above", outputs=("/above.txt",))
    below = shop.job(title="Below", depends_on=[above.id], started=False)
    shop.work()
    shop.edit(below, f"depends_on:\n  - {above.id}", "depends_on: []")
    return below


def output_added(shop: Shop) -> Job:
    job = honest(shop)
    shop.edit(job, "  - /result.txt", "  - /result.txt\n  - /more.txt")
    shop.work("more.txt")
    return job


def evidence_file_added(shop: Shop) -> Job:
    job = honest(shop)
    shop.edit(job, *VERIFIED)
    (job.folder / "artifacts" / "verification.md").write_text("It was checked.\n")
    return job


def dependency_done(shop: Shop) -> Job:
    above = shop.job("It is there\n  check: file /above.txt", title="Above", outputs=("/above.txt",))
    shop.work("above.txt")
    shop.finish(above)
    below = shop.job(title="Below", depends_on=[above.id])
    shop.work()
    return below


def truth_off_as_agreed(shop: Shop) -> Job:
    job = shop.job(edit=("truth_mode: strict", "truth_mode: off"), stakes="low")
    shop.work()
    return job


def target_raised(shop: Shop) -> Job:
    return _edited("reward_target: 80", "reward_target: 90")(shop)


# 6: typing what only the ledger may say


def _typed(**values: str) -> Callable[[Shop], Job]:
    def play(shop: Shop) -> Job:
        job = honest(shop)
        shop.field(job, **values)
        return job

    return play


def typed_agreed(shop: Shop) -> Job:
    job = shop.job(agreed=False)
    shop.work()
    shop.edit(job, "stakes: normal", "agreement_status: agreed\nstakes: normal")
    return job


def progress_noted(shop: Shop) -> Job:
    job = honest(shop)
    shop.edit(job, "## Progress Log\n", "## Progress Log\n\n- 2026-02-14: status: done, score 100, truth: pass\n")
    return job


# 7, 8: saying that it was checked


def _failing(shop: Shop, prose: str) -> Job:
    job = shop.job(edit=VERIFIED)
    shop.write("result.txt", "bad work\n")
    (job.folder / "artifacts" / "verification.md").write_text(prose)
    return job


def forged_log(shop: Shop) -> Job:
    job = shop.job(commands=[CHECK])
    shop.write("result.txt", "bad work\n")
    row = f'{{"work_item_id": "{job.id}", "command": "{CHECK}", "exit_code": 0, "label": "verification"}}\n'
    shop.write("jobs/logs/execution.jsonl", row)
    (job.folder / "logs" / "execution.jsonl").write_text(row)
    return job


def unlogged_but_run(shop: Shop) -> Job:
    job = shop.job(commands=[CHECK])
    shop.work()
    return job


def prose_that_sounds_bad(shop: Shop) -> Job:
    job = shop.job(edit=VERIFIED)
    shop.work()
    (job.folder / "artifacts" / "verification.md").write_text("No blocking issue remains; 0 failed, no error.\n")
    return job


# 9: pulling the ground away


def _chain(shop: Shop) -> tuple[Job, Job, Job]:
    first = shop.job("A is there\n  check: file /a.txt", title="A", outputs=("/a.txt",))
    shop.work("a.txt")
    shop.finish(first)
    second = shop.job("B is there\n  check: file /b.txt", title="B", outputs=("/b.txt",), depends_on=[first.id])
    shop.work("b.txt")
    shop.finish(second)
    third = shop.job(title="C", depends_on=[second.id])
    shop.work()
    return first, second, third


def upstream_rewritten(shop: Shop) -> Job:
    _, _, third = _chain(shop)
    shop.write("b.txt", "other\n")
    return third


def upstream_of_upstream_rewritten(shop: Shop) -> Job:
    _, _, third = _chain(shop)
    shop.write("a.txt", "other\n")
    return third


def upstream_touched(shop: Shop) -> Job:
    _, _, third = _chain(shop)
    for name in ("a.txt", "b.txt"):
        os.utime(shop.root / name, (0, 0))
    return third


# 11: watering the command down


def _command(old: str, new: str) -> Callable[[Shop], Job]:
    def play(shop: Shop) -> Job:
        job = shop.job(commands=[CHECK], edit=("  - " + CHECK, f"  - {CHECK} --all"))
        shop.write("result.txt", "good work\n")
        shop.edit(job, f"  - {CHECK}{old}", f"  - {new}")
        return job

    return play


# 16: nothing was done


def nothing_changed(shop: Shop) -> Job:
    shop.work()
    return shop.job()


def read_only_as_agreed(shop: Shop) -> Job:
    shop.work()
    return shop.job(edit=("stakes: normal", "read_only: true\nstakes: normal"))


def invalidated_and_looked_at_again(shop: Shop) -> Job:
    first, second, third = _chain(shop)
    shop.finish(third)
    shop.write("a.txt", "good, and better\n")
    assert start_job(shop.workspace, first.id, unproved_actor()).started
    shop.finish(first)
    assert start_job(shop.workspace, second.id, unproved_actor()).started
    return second


def deleted_and_restored(shop: Shop) -> Job:
    shop.work()
    job = shop.job()
    shutil.move(shop.root / "result.txt", shop.root / "kept.txt")
    shutil.move(shop.root / "kept.txt", shop.root / "result.txt")
    return job


VOIDED = ("agreement_voided",)
TAMPERED = ("record_tampered",)
EMPTY = "A wrong output that is not empty; only the check of a criterion can detect that."
MEANT = "Meaningless text that is not a known placeholder; a person has to agree to it."
PROSE = "Wrong prose beside correct evidence: no gate uses it."
SWALLOWED = "An agreed script that ignores exit codes."
ONE_BYTE = "A change of one byte; only the criteria can check whether it is correct."
GROUND = "The output of a dependency rewritten, and its job completed again: only its own criteria judge it."
SEALED = "A person who agrees to the loosened text without reading it."
TYPED = "Edits of fields that no gate uses (`updated_at`, `priority`, `due_date`)."
HONEST = "the work, without the edit"

TRICKS = [
    Trick(1, "the untouched template, with x as output and x as verification",
          ("criteria_absent", "needs_human", "not_agreed_yet", "not_started"), untouched_template,
          "a short answer to a real criterion", short_but_real,
          MEANT),
    Trick(1, "a placeholder as the only criterion, agreed by a person", ("criteria_absent",),
          template_that_was_waved_through, "a short answer to a real criterion", short_but_real,
          MEANT),
    Trick(1, "a lesson with the text x", ("lesson_not_captured",), lambda shop: _with_lesson(shop, "x"),
          "a lesson with a real text", lambda shop: _with_kept_lesson(shop, "Begin with the smallest file."),
          "A made-up lesson: its meaning is not checked."),
    Trick(2, "one newline as output", ("output_missing",), _output(lambda path: path.write_text("\n")), HONEST, honest,
          EMPTY),
    Trick(2, "a folder as output", ("output_missing",), _output(lambda path: path.mkdir()), HONEST, honest, EMPTY),
    Trick(2, "a pipe as output", ("output_missing",), _output(os.mkfifo), HONEST, honest, EMPTY),
    Trick(2, "a symlink to a system file as output", ("output_missing",), link_to_elsewhere, HONEST, honest,
          EMPTY),
    Trick(2, "the output deleted after the job was done",
          ("criterion_failed", "output_missing", "output_unchanged"), deleted_when_done,
          "a done job completed again", done_before, EMPTY),
    Trick(2, "/etc/hostname added to the outputs", ("agreement_voided", "output_missing"),
          _declared("/etc/hostname"), HONEST, honest, SEALED),
    Trick(2, "a path outside of the project added to the outputs", ("agreement_voided", "output_missing"),
          _declared("../../../../etc/hostname"), HONEST, honest, SEALED),
    Trick(3, "outputs emptied", VOIDED, _edited("outputs:\n  - /result.txt", "outputs: []"),
          "an output added and created", output_added, SEALED),
    Trick(3, "verification evidence emptied", VOIDED, _edited(*reversed(VERIFIED), given=VERIFIED),
          "an evidence file added and written", evidence_file_added, SEALED),
    Trick(3, "an open dependency dropped", ("agreement_voided", "not_started"), dependency_dropped,
          "the dependency done first", dependency_done, SEALED),
    Trick(4, "truth mode off", VOIDED, _edited("truth_mode: strict", "truth_mode: off"),
          "truth mode off, as agreed", truth_off_as_agreed,
          "A job that was agreed with truth mode off; its receipt says so."),
    Trick(4, "truth checks emptied", VOIDED, _edited("truth_checks:\n", "truth_checks: []\nformerly:\n"),
          "truth mode off, as agreed", truth_off_as_agreed, SEALED),
    Trick(4, "a truth check that does not exist", ("field",), _edited("  - freshness\n", "  - nothing\n"),
          "truth mode off, as agreed", truth_off_as_agreed, "Nothing: an unknown name is an error."),
    Trick(5, "target 0", VOIDED, _edited("reward_target: 80", "reward_target: 0"), "the target raised", target_raised,
          SEALED),
    Trick(5, "stakes low", VOIDED, _edited("stakes: normal", "stakes: low"), "the target raised", target_raised,
          SEALED),
    Trick(5, "99 iterations", VOIDED, _edited("max_iterations: 3", "max_iterations: 99"), "the target raised",
          target_raised, SEALED),
    Trick(6, "a score of 100 written into the plan", TAMPERED, _typed(reward_last_score="100"),
          "the same words in the progress log", progress_noted, TYPED),
    Trick(6, "truth pass written into the plan", TAMPERED, _typed(truth_last_status="pass"),
          "the same words in the progress log", progress_noted, TYPED),
    Trick(6, "status done written into the plan", TAMPERED, _typed(status="done", completed_at="2026-02-14T12:00:00Z"),
          "the same words in the progress log", progress_noted, TYPED),
    Trick(6, "agreed written into the plan", ("agreement_unsealed", "not_agreed_yet", "not_started", "record_tampered"),
          typed_agreed, "the same words in the progress log", progress_noted,
          "A completely forged ledger, by whoever controls the machine; CI does not trust it."),
    Trick(7, "a forged line in the execution log", ("command_not_passed", "criterion_failed"), forged_log,
          "a passing command without a log entry", unlogged_but_run,
          "An agreed program that lies."),
    Trick(8, "a verification text that says everything passes, with a failing command", ("criterion_failed",),
          lambda shop: _failing(shop, "All 12 of 12 tests pass. No issue remains.\n"),
          "a negative verification text, with a passing command", prose_that_sounds_bad,
          PROSE),
    Trick(8, "a verification text that says FAILED", ("criterion_failed",),
          lambda shop: _failing(shop, "FAILED. 12 of 12 tests fail.\n"),
          "a negative verification text, with a passing command", prose_that_sounds_bad,
          PROSE),
    Trick(9, "the output of a dependency rewritten after the job was started",
          ("dependency_invalid", "upstream_changed"),
          upstream_rewritten, "the outputs of dependencies only touched", upstream_touched,
          GROUND),
    Trick(9, "the output of an indirect dependency rewritten", ("dependency_invalid",), upstream_of_upstream_rewritten,
          "the outputs of dependencies only touched", upstream_touched, GROUND),
    Trick(11, "|| true after the command", ("config",), _command(" --all", f'"{CHECK} --all || true"'),
          "white space in the command", _command(" --all", f"{CHECK}   --all"),
          SWALLOWED),
    Trick(11, "the output piped into tail", ("config",), _command(" --all", f'"{CHECK} --all | tail -1"'),
          "white space in the command", _command(" --all", f"{CHECK}   --all"), SWALLOWED),
    Trick(11, "only one of the tests", VOIDED, _command(" --all", f"{CHECK} -k one_test"),
          "white space in the command", _command(" --all", f"{CHECK}   --all"), SEALED),
    Trick(16, "nothing changed at all", ("output_unchanged",), nothing_changed, "a read-only job, as agreed",
          read_only_as_agreed, ONE_BYTE),
    Trick(16, "the output moved away and back", ("output_unchanged",), deleted_and_restored,
          "an invalidated job completed again with the same output", invalidated_and_looked_at_again,
          ONE_BYTE),
]  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS, ids=[one.id for one in TRICKS])
def test_the_trick_gets_no_promise(tmp_path: Path, trick: Trick) -> None:
    assert_refused(Shop(tmp_path), trick)


@pytest.mark.parametrize("trick", once(TRICKS), ids=[one.twin for one in once(TRICKS)])
def test_its_innocent_twin_is_completed(tmp_path: Path, trick: Trick) -> None:
    assert_promised(Shop(tmp_path), trick)


def test_truth_mode_off_shows_behind_the_receipt(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    job = truth_off_as_agreed(shop)
    shop.finish(job)
    (entry,) = (one for one in shop.workspace.ledger.read(job.id).entries if one.type == "completed")
    assert entry.data["truth_mode"] == "off"
