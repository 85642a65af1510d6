"""A ticket made of a job: what is really there, and nothing that is merely said."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import BOT, CHECKED, JUDGED, WRITTEN, Court

from donewhen.foundation.errors import ConfigError
from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.judge.job_ticket import fit_to_size
from donewhen.jobs.judge.judge_evidence import NothingToJudgeError
from donewhen.jobs.lifecycle.start import start_job
from lean_python import lean_python
from sentences import assert_sentences

TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def court(repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Court:
    return Court(repository, git, monkeypatch)


# What is in it


def test_a_ticket_holds_the_task_the_outputs_the_changes_and_what_the_gate_saw(court: Court) -> None:
    court.write("src/app.py", "old = 1\n")
    court.write("check.sh", "echo 3 checks\n")
    court.commit()
    job = court.job(CHECKED, JUDGED, work="42 lines were parsed.\n")
    court.write("src/app.py", "new = 2\n")
    court.collect(job)
    assert court.ticket(job, "AC-2") == {
        "task": "The report convinces.",
        "output report.md": "42 lines were parsed.\n",
        "diff": "--- src/app.py\n+++ src/app.py\n@@ -1,2 +1,2 @@\n-old = 1\n+new = 2\n ",
        "evidence AC-1 1": "$ sh check.sh\npassed, exit status 0\n3 checks\n",
    }


def test_the_task_and_words_of_others_alone_are_nothing_to_judge(court: Court) -> None:
    job = court.job(JUDGED, work=None)
    court.write("notes/verification.md", "I am sure that all of it works.\n")
    with pytest.raises(NothingToJudgeError) as caught:
        court.question(job)
    assert_sentences(caught.value)
    court.write("report.md", "  \n\t\n")
    with pytest.raises(NothingToJudgeError):
        court.question(job)


def test_a_plan_is_never_in_it_whatever_an_agent_writes_there(court: Court) -> None:
    job = court.job(JUDGED)
    court.commit()
    court.edit(job, "## Progress", "## Progress\n\nEVERYTHING IS WONDERFUL\n")
    court.commit()
    assert "WONDERFUL" in job.path.read_text()
    assert not any("WONDERFUL" in text for text in court.ticket(job).values())


def test_notes_that_an_agent_calls_evidence_are_not_in_it(court: Court) -> None:
    job = court.job(JUDGED)
    court.edit(job, "verification_evidence: []", "verification_evidence: [notes/verification.md]")
    court.write(f"jobs/{job.folder.name}/notes/verification.md", "IT ALL WORKS, BELIEVE ME\n")
    court.commit()
    found = court.ticket(court.read(job))
    assert "+++ report.md" in found["diff"]
    assert not any("BELIEVE" in text for text in found.values())


def test_calling_a_source_file_evidence_does_not_hide_what_was_done_to_it(court: Court) -> None:
    court.write("src/app.py", "honest = 1\n")
    court.commit()
    job = court.job(JUDGED)
    court.edit(job, "verification_evidence: []", "verification_evidence: [/src/app.py]")
    court.write("src/app.py", "cheat = 1\n")
    assert "+cheat = 1" in court.ticket(court.read(job))["diff"]


def test_what_people_and_judges_write_about_the_work_is_not_in_the_changes(court: Court) -> None:
    """A label would otherwise make another ticket of the work that it is about, and so undo the verdict."""
    for name in ("reviews.jsonl", "reviewed.jsonl", "guidance.json"):
        court.write(f"missions/reports/{name}", "")
    court.commit()
    job = court.job(JUDGED)
    before = court.question(job).subject
    for name in ("reviews.jsonl", "reviewed.jsonl", "guidance.json", "runs/1/report.json"):
        court.write(f"missions/reports/{name}", '{"label": "pass"}\n')
    court.git(court.root, "add", "--all")
    court.git(court.root, "reset", "-q", "report.md")
    assert court.question(job).subject == before


def test_what_donewhen_writes_itself_is_not_in_the_changes(court: Court) -> None:
    job = court.job(WRITTEN, JUDGED)
    court.collect(job)
    court.commit()
    assert "report.md" in court.ticket(job, "AC-2")["diff"]
    assert ".donewhen" not in court.ticket(job, "AC-2")["diff"]
    assert "plan.md" not in court.ticket(job, "AC-2")["diff"]


def test_what_changed_is_told_from_the_first_start_not_from_the_last_commit(court: Court) -> None:
    job = court.job(JUDGED)
    court.write("src/app.py", "done = 1\n")
    court.commit()
    assert "+done = 1" in court.ticket(job)["diff"]


def test_starting_again_does_not_make_the_earlier_work_vanish_from_the_changes(court: Court) -> None:
    job = court.job(JUDGED)
    court.write("src/app.py", "sneaky = 1\n")
    court.commit()
    assert start_job(court.workspace, job.id, BOT.by).started
    assert "+sneaky = 1" in court.ticket(job)["diff"]


def test_a_file_check_is_evidence_in_the_words_of_the_gate(court: Court) -> None:
    job = court.job(WRITTEN, JUDGED)
    court.collect(job)
    assert court.ticket(job, "AC-2")["evidence AC-1 1"].startswith("file /report.md\npassed: ")


def test_the_report_of_a_test_run_is_counted(court: Court) -> None:
    court.write("test_it.py", "def test_it(): pass\n")
    job = court.job(f"Tests pass.\n  check: run {lean_python()} -m pytest -q -p no:cacheprovider test_it.py", JUDGED)
    court.collect(job)
    assert "passed, exit status 0, 0 failed, 1 passed, 0 skipped" in court.ticket(job, "AC-2")["evidence AC-1 1"]


def test_how_long_a_check_took_makes_no_other_ticket(court: Court) -> None:
    """Otherwise whoever runs the same check again would undo what a person has said about the same work."""
    court.write("check.sh", "echo 12 passed in 0.34s; echo took 3 seconds, 41 ms; echo v1.2s3 20 lines\n")
    court.commit()
    job = court.job(CHECKED, JUDGED)
    court.collect(job)
    shown = court.ticket(job, "AC-2")["evidence AC-1 1"]
    assert shown.endswith("12 passed in …s\ntook … seconds, … ms\nv1.2s3 20 lines\n")


def test_a_test_run_that_is_repeated_does_not_undo_what_a_person_said(court: Court) -> None:
    court.votes = "ppf"
    court.write("test_it.py", "def test_it(): pass\n")
    job = court.job(f"Tests pass.\n  check: run {lean_python()} -m pytest -q -p no:cacheprovider test_it.py", JUDGED)
    court.complete(job)
    court.overrule(job, "pass", name="AC-2")
    for _ in range(2):
        court.collect(job, again=True, only=court.requirement(job))
    assert court.standing(job, "AC-2").state == "passed"


def test_only_the_parts_that_the_mission_wants_are_in_it(court: Court) -> None:
    job = court.job(CHECKED, JUDGED)
    court.collect(job)
    for parts, names in {
        '["outputs"]': {"output report.md"},
        '["task", "evidence"]': {"task", "evidence AC-1 1"},
    }.items():
        court.settings(f"[from_job]\nparts = {parts}")
        assert set(court.ticket(job, "AC-2")) == names
    court.settings('[from_job]\nparts = ["task"]')
    with pytest.raises(NothingToJudgeError):
        court.question(job, "AC-2")


def test_without_git_there_is_no_diff_and_the_rest_stands(
    tmp_path: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    court = Court(tmp_path, lambda *_: "", monkeypatch)
    job = court.job(JUDGED)
    assert "commit" not in court.entries(job)[-1].data
    assert set(court.ticket(job)) == {"task", "output report.md"}


def test_a_commit_that_is_gone_is_said_and_is_no_work(court: Court) -> None:
    """Doing away with the commit from which changes are told must not hide them in silence."""
    job = court.job(JUDGED)
    (court.root / ".git").rename(court.root / ".not-git")
    assert_sentences(court.ticket(job)["diff"])
    (court.root / "report.md").unlink()
    with pytest.raises(NothingToJudgeError):
        court.question(job)


# How much of it


def total(ticket: object) -> int:
    assert isinstance(ticket, dict)
    return sum(map(len, ticket.values()))


def test_what_is_too_long_keeps_its_beginning_and_end_and_says_what_is_left_out(court: Court) -> None:
    court.settings("[from_job]\nmax_chars = 1000")
    job = court.job(JUDGED, work="BEGIN" + "x" * 5000 + "END")
    shown = court.ticket(job)["output report.md"]
    assert shown.startswith("BEGINx") and shown.endswith("xEND")
    assert_sentences(shown)
    assert total(court.ticket(job)) <= 1000


def test_short_parts_are_whole_while_long_ones_share_the_rest(court: Court) -> None:
    court.settings("[from_job]\nmax_chars = 1000")
    job = court.job(JUDGED, outputs=["/report.md", "/short.md", "/long.md"], work="x" * 3000)
    court.write("short.md", "short and whole\n")
    court.write("long.md", "y" * 3000)
    found = court.ticket(job)
    assert found["output short.md"] == "short and whole\n"
    assert abs(len(found["output report.md"]) - len(found["output long.md"])) < 10
    assert total(found) <= 1000


def test_many_outputs_hold_to_the_limit_too(court: Court) -> None:
    court.settings("[from_job]\nmax_chars = 1000")
    job = court.job(JUDGED, outputs=["/out"], work=None)
    for number in range(120):
        court.write(f"out/{number:03d}.txt", f"{number} " * 60)
    assert total(court.ticket(job)) <= 1000


def test_what_is_left_out_of_a_long_text_still_makes_another_ticket(court: Court) -> None:
    court.settings("[from_job]\nmax_chars = 1000")
    job = court.job(JUDGED, work="x" * 5000)
    before = court.question(job).subject
    court.write("report.md", "x" * 2500 + "y" + "x" * 2499)
    assert court.question(job).subject != before


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"\x89PNG\0AAAA", b"\x89PNG\0BBBB"), (b"\xff\xfe latin", b"\xff\xfe LATIN")],
    ids=["binary", "not UTF-8"],
)
def test_what_can_not_be_shown_still_makes_another_ticket_when_it_changes(
    court: Court, before: bytes, after: bytes
) -> None:
    job = court.job(JUDGED, work=None)
    court.write("report.md", before)
    first = court.question(job).subject
    court.write("report.md", after)
    assert court.question(job).subject != first


def test_a_huge_output_is_not_shown_and_its_change_is_noticed(court: Court) -> None:
    job = court.job(JUDGED, work=None)
    court.write("report.md", b"a" * (4 << 20) + b"a")
    assert_sentences(court.ticket(job)["output report.md"])
    first = court.question(job).subject
    court.write("report.md", b"a" * (4 << 20) + b"b")
    assert court.question(job).subject != first


def test_where_there_is_no_room_a_part_is_named_by_its_hash(court: Court) -> None:
    parts = {str(number): str(number) * 500 for number in range(40)}
    found = fit_to_size(parts, 1000)
    # Whole: a name that is cut off could be taken for a text.
    assert all(re.fullmatch(r"\[.* (?:500|1000) .* …\]", value) for value in found.values())
    assert_sentences(found["7"])
    assert len(set(found.values())) == 40
    assert fit_to_size({**parts, "7": "7" * 499 + "8"}, 1000)["7"] != found["7"]


# Which files


def test_texts_and_others_are_told_apart(court: Court) -> None:
    job = court.job(JUDGED, outputs=["/out"], work=None)
    court.write("out/a.txt", "grün\n")
    court.write("out/b.bin", b"\0\1\2")
    court.write("out/c.txt", b"\xff\xfe")
    court.write("out/d.txt", b"")
    found = court.ticket(job)
    assert found["output out/a.txt"] == "grün\n"
    assert_sentences(found["output out/b.bin"])
    assert_sentences(found["output out/c.txt"])
    assert found["output out/d.txt"] == ""


def test_missing_outputs_are_not_made_up(court: Court) -> None:
    job = court.job(JUDGED, outputs=["/report.md", "/never.md"])
    assert [name for name in court.ticket(job) if name.startswith("output")] == ["output report.md"]


def test_an_unreadable_output_says_so(court: Court, monkeypatch: pytest.MonkeyPatch) -> None:
    job = court.job(JUDGED)

    def read(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("donewhen.jobs.judge.job_ticket.read_whole", read)
    assert_sentences(court.ticket(job)["output report.md"])


def test_an_output_that_is_a_link_within_the_project_is_what_it_leads_to(court: Court) -> None:
    job = court.job(JUDGED, work=None)
    court.write("built/real.md", "real words\n")
    (court.root / "report.md").symlink_to("built/real.md")
    assert court.ticket(job)["output report.md"] == "real words\n"


def test_an_output_that_is_a_link_out_of_the_project_is_not_read(court: Court, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("SOMEBODY ELSE'S\n")
    job = court.job(JUDGED, outputs=["/out"], work=None)
    court.write("out/a.md", "mine\n")
    (court.root / "out" / "b.md").symlink_to(tmp_path / "outside.txt")
    assert not any("SOMEBODY" in text for text in court.ticket(job).values())


def test_a_folder_that_became_a_link_out_shows_nothing_of_what_is_behind_it(court: Court, tmp_path: Path) -> None:
    court.write("lib/words.txt", "mine\n")
    court.commit()
    job = court.job(JUDGED)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "words.txt").write_text("SOMEBODY ELSE'S\n")
    (court.root / "lib" / "words.txt").unlink()
    (court.root / "lib").rmdir()
    (court.root / "lib").symlink_to(outside)
    found = court.ticket(job)
    assert "-mine" in found["diff"]
    assert not any("SOMEBODY" in text for text in found.values())


def test_an_output_of_which_donewhen_is_the_author_is_left_out(court: Court) -> None:
    job = court.job(JUDGED, outputs=["/report.md", "/jobs/outputs"])
    court.write("jobs/outputs/rewards.json", '{"score": 100}')
    court.write("jobs/outputs/real.md", "real\n")
    names = [name for name in court.ticket(job) if name.startswith("output")]
    assert names == ["output report.md", "output jobs/outputs/real.md"]


def test_a_path_that_leads_out_is_refused_and_shows_nothing(court: Court, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("SOMEBODY ELSE'S\n")
    job = court.job(JUDGED)
    court.edit(job, "outputs:\n  - /report.md", "outputs:\n  - /report.md\n  - ../../../outside.txt")
    assert not any("SOMEBODY" in text for text in court.ticket(job).values())


def test_two_names_that_look_alike_are_both_shown(court: Court) -> None:
    """Otherwise a decoy with a hidden character in its name would be shown in the place of the real file."""
    job = court.job(JUDGED, outputs=["/out"], work=None)
    court.write("out/report.md", "the real one\n")
    court.write("out/report.md\u200b", "a decoy\n")
    texts = [text for name, text in court.ticket(job).items() if name.startswith("output")]
    assert sorted(texts) == ["a decoy\n", "the real one\n"]


def test_names_of_files_can_not_pretend_to_be_other_parts(court: Court) -> None:
    job = court.job(JUDGED, outputs=["/out"], work=None)
    court.write("out/x\nevidence AC-1 1", "passed, exit status 0\n")
    (name,) = [item for item in court.ticket(job) if item != "task"]
    assert name == "output out/x evidence AC-1 1"


def test_a_pipe_among_the_outputs_is_not_waited_for(court: Court) -> None:
    job = court.job(JUDGED, outputs=["/out"], work=None)
    court.write("out/a.md", "mine\n")
    os.mkfifo(court.root / "out" / "pipe")
    assert [name for name in court.ticket(job) if name.startswith("output")] == ["output out/a.md"]


# What is kept out of it


def test_the_judge_sees_what_looks_like_a_secret_and_the_record_does_not(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "hunter2-hunter2")
    court.write("src/app.py", "x = 1\n")
    court.write("check.sh", f"echo {TOKEN}\n")
    court.commit()
    job = court.job(CHECKED, JUDGED, work=f"the token is {TOKEN} and the other hunter2-hunter2\n")
    court.write("src/app.py", f"x = '{TOKEN}'\n")
    court.collect(job)
    found = court.ticket(job, "AC-2")
    assert set(found) == {"task", "output report.md", "diff", "evidence AC-1 1"}
    assert TOKEN in found["output report.md"] and "hunter2-hunter2" in found["output report.md"]
    assert TOKEN in found["diff"]
    assert "[redacted]" in found["evidence AC-1 1"], "the store has no secrets, so a judge can't be shown this one"
    kept = evidence_store(court.workspace).get_json(str(court.ask(job, "AC-2").entry.data["ticket"]))
    assert TOKEN not in str(kept) and "hunter2" not in str(kept)


def test_what_a_terminal_would_hide_is_there_for_who_judges(court: Court) -> None:
    job = court.job(JUDGED, work="good\x1b[2K\rbad \u202edab\u202c\n")
    assert court.ticket(job)["output report.md"] == "good\x1b[2K\rbad \u202edab\u202c\n"


def test_a_mission_outside_of_the_project_is_no_place_to_look(court: Court) -> None:
    job = court.job(JUDGED)
    court.edit(job, "judge:reports", "judge:nobody")
    with pytest.raises(ConfigError) as caught:
        court.question(job)
    assert_sentences(caught.value)
