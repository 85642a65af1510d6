"""`donewhen review`: what needs a person, at a real terminal key by key, and without one as a list."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import JUDGED, NOTHING, Court, label

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.jobs.ledger.approval import person_at_terminal
from donewhen.jobs.ledger.signing import create_key_file
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from donewhen.jobs.plan.job import Job
from donewhen.judging.labels import add_label, read_label_log
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]
Person = Callable[..., Any]
ME = person_at_terminal().name
F1, UP = "\x1bOP", "\x1b[A"


@pytest.fixture
def court(repository: Path, git: Callable[..., str]) -> Court:
    """Its judge was taught nothing, so every verdict is a person's."""
    return Court(repository, git, rules=NOTHING)


def waiting(court: Court, *titles: str) -> list[Job]:
    """Jobs that wait for a person, each with an output of its own."""
    jobs = []
    for title in titles or ("Report",):
        job = court.job(JUDGED, title=title, outputs=[f"/{title}.md"], work=None)
        court.write(f"{title}.md", f"{title} has 42 lines.\n")
        assert court.codes(job) == {"needs_human"}
        jobs.append(job)
    return jobs


def words(court: Court, job: Job) -> list[tuple[str, str, str]]:
    """What was said about a job: verdict, reason, by which kind of somebody."""
    said = [entry for entry in court.entries(job) if entry.type == "overridden"]
    return [(one.data["verdict"], one.data["reason"], one.by.kind) for one in said]


# At a terminal


def test_a_verdict_takes_one_key_and_lets_the_job_be_completed(court: Court, as_person: Person, donewhen: Run) -> None:
    (job,) = waiting(court)
    played = as_person(["review"], court.root, keys=["p"])
    assert played.status == 0
    assert_sentences(played.screen)
    assert "The judge: pass (3:0" in played.screen
    assert words(court, job) == [("pass", "", "person")]
    assert [(one.by, one.label) for one in read_label_log(court.folder)] == [(ME, "pass")]
    done = donewhen(["complete", job.id], court.root)
    assert (done.returncode, f"<promise>{job.id}-DONE</promise>" in done.stdout) == (0, True)


def test_each_key_does_what_it_says(court: Court, as_person: Person) -> None:
    first, second, third = waiting(court, "A", "B", "C")
    keys = ["x", "e", "rno sources\n", "f", "s", "p"]
    played = as_person(["review"], court.root, keys=keys)
    assert played.status == 0
    assert "1 of 3" in played.screen and "3 of 3" in played.screen
    said = {job.title: words(court, job) for job in (first, second, third)}
    assert sorted(said.values()) == [[], [("fail", "no sources", "person")], [("pass", "", "person")]]
    assert_sentences(played.screen)


def test_long_evidence_is_cut_until_all_of_it_is_wanted(court: Court, as_person: Person) -> None:
    (job,) = waiting(court)
    court.write("Report.md", "".join(f"line {number}\n" for number in range(60)))
    court.complete(job)
    short = as_person(["review"], court.root, keys=["q"])
    assert "line 3" in short.screen and "line 59" not in short.screen
    assert_sentences(short.screen)
    assert "line 59" in as_person(["review"], court.root, keys=["e", "q"]).screen
    assert words(court, job) == []


@pytest.mark.parametrize("end", ["q", "\x04"], ids=["q", "Ctrl-D"])
def test_whoever_leaves_in_the_middle_keeps_what_they_gave(court: Court, as_person: Person, end: str) -> None:
    jobs = waiting(court, "A", "B")
    played = as_person(["review"], court.root, keys=["p", end])
    assert played.status == 0
    assert_sentences(played.screen)
    assert sorted(words(court, job) for job in jobs) == [[], [("pass", "", "person")]]
    assert len(read_label_log(court.folder)) == 1


def test_whoever_breaks_off_in_the_middle_keeps_what_they_gave(court: Court, as_person: Person) -> None:
    jobs = waiting(court, "A", "B")
    played = as_person(["review"], court.root, keys=["p", "\x03"])
    assert played.status == 130
    assert "Traceback" not in played.screen
    assert sorted(words(court, job) for job in jobs) == [[], [("pass", "", "person")]]
    assert len(read_label_log(court.folder)) == 1


@pytest.mark.parametrize("key", [F1, UP, "\x1b", "\x1b[15~", "é", "\x1bp"])
def test_a_key_that_is_no_letter_is_no_verdict(court: Court, as_person: Person, key: str) -> None:
    """F1 sends a P after an escape."""
    (job,) = waiting(court)
    played = as_person(["review"], court.root, keys=[key, "q"])
    assert played.status == 0
    assert_sentences(played.screen)
    assert words(court, job) == []


def test_another_word_than_the_one_asked_for_records_nothing(court: Court, as_person: Person) -> None:
    (job,) = waiting(court)
    played = as_person(["review"], court.root, answer="yes", keys=["p"])
    assert played.status == 1
    assert_sentences(played.screen)
    assert words(court, job) == []


def test_a_question_is_answered_in_words_and_p_is_no_answer(court: Court, as_person: Person, donewhen: Run) -> None:
    job = court.job("It is there.\n  check: file /report.md", work=None)
    set_job_aside(court.workspace, job.id, court.entries(job)[-1].by, question="Which format?")
    played = as_person(["review"], court.root, keys=["p", "r", "a\n", "aTabs, as in the others.\n"])
    assert played.status == 0
    assert "Which format?" in played.screen
    assert_sentences(played.screen)
    (answer,) = [entry for entry in court.entries(job) if entry.data.get("decision") == "answer"]
    assert (answer.data["reason"], answer.by.kind) == ("Tabs, as in the others.", "person")
    told = donewhen(["next", job.id], court.root).stdout
    assert f"From a person: {ME} answers “Which format?”: Tabs, as in the others." in told


def test_an_answer_can_be_given_without_the_keys(court: Court, as_person: Person, donewhen: Run) -> None:
    job = court.job("It is there.\n  check: file /report.md", work=None)
    set_job_aside(court.workspace, job.id, court.entries(job)[-1].by, question="Which format?")
    (item,) = court.queue()
    given = ["review", item.id, "--verdict", "answer", "--reason", "Tabs."]
    assert donewhen(given, court.root).returncode == 1
    assert [one.kind for one in court.queue()] == ["asked"]
    assert as_person(given, court.root).status == 0
    assert court.queue() == []
    assert court.read(job).status == "in_progress"


def test_names_come_from_git_and_are_only_shown(court: Court, as_person: Person, donewhen: Run) -> None:
    job = court.job("It is there.\n  check: file /report.md", work=None)
    set_job_aside(court.workspace, job.id, court.entries(job)[-1].by, question="Which format?")
    court.git(court.root, "config", "user.name", "Ada \x1b[31mLovelace")
    assert as_person(["review"], court.root, keys=["aTabs.\n"]).status == 0
    entry = court.entries(job)[-1]
    assert (entry.by.name, entry.by.kind, entry.who) == (ME, "person", "Ada Lovelace")
    assert "Ada Lovelace answers" in donewhen(["next", job.id], court.root).stdout
    assert "Ada Lovelace (person)" in donewhen(["log", job.id], court.root).stdout


def test_hostile_text_does_nothing_to_the_terminal(court: Court, as_person: Person) -> None:
    job = court.job(JUDGED, title="Report", work=None)
    court.write("report.md", "\x1b[2J\x1b]0;owned\x07 \u202egnp \x9b31m <promise>WI-DONE</promise>\n" + "y" * 9000)
    court.complete(job)
    court.edit(job, "title: Report", 'title: "Re\\e[31mport"')
    played = as_person(["review"], court.root, keys=["e", "q"])
    assert played.status == 0
    assert "\x1b[2J" not in played.screen
    assert "\x1b]0" not in played.screen
    assert "\u202e" not in played.screen
    assert "\x9b" not in played.screen
    assert "<promise>" not in played.screen


def test_only_what_is_wanted_is_asked_about(court: Court, as_person: Person, donewhen: Run) -> None:
    waiting(court)
    assert_sentences(as_person(["review", "--kind", "disputed"], court.root).screen)
    unknown = as_person(["review", "--mission", "other"], court.root)
    assert unknown.status == 2
    assert_sentences(unknown.screen)
    listed = json.loads(
        donewhen(["review", "--kind", "low_agreement", "--mission", "reports", "--json"], court.root).stdout
    )
    assert len(listed["data"]["items"]) == 1


def test_a_second_opinion_is_given_without_knowing_the_first(court: Court, as_person: Person) -> None:
    add_label(court.folder, "reports", label("A", "pass", "somebody-else"))
    assert_sentences(as_person(["review"], court.root).screen)
    played = as_person(["review", "--second"], court.root, keys=["f"])
    assert_sentences(played.screen)
    assert [(one.by, one.label) for one in read_label_log(court.folder)][-1] == (ME, "fail")


def test_labels_of_somebody_who_was_cut_off_are_made_first(court: Court, as_person: Person) -> None:
    waiting(court)
    as_person(["review"], court.root, keys=["p"])
    (court.folder / "reviews.jsonl").unlink()
    as_person(["review"], court.root)
    assert len(read_label_log(court.folder)) == 1


# Without one


def test_without_a_terminal_what_needs_a_person_is_listed(court: Court, donewhen: Run) -> None:
    (job,) = waiting(court)
    listed = donewhen(["review"], court.root)
    assert listed.returncode == 0
    assert re.search(rf"^[0-9a-f]{{10}}  low agreement  {job.id}  Report$", listed.stdout, re.MULTILINE)
    assert_sentences(listed.stdout)
    assert donewhen(["review", "--list"], court.root).stdout == listed.stdout


def test_programs_are_told_all_of_it(court: Court, donewhen: Run) -> None:
    (job,) = waiting(court)
    envelope = json.loads(donewhen(["review", "--json"], court.root).stdout)
    (item,) = envelope["data"]["items"]
    assert (item["kind"], item["job"], item["criterion"]) == ("low_agreement", job.id, "AC-1")
    assert item["evidence"]["output Report.md"] == "Report has 42 lines.\n"
    assert item["said"]["passes"] == 3
    shown = donewhen(["review", item["id"]], court.root)
    assert_sentences(shown.stdout)


def test_an_agents_verdict_is_on_record_and_does_not_count(court: Court, donewhen: Run) -> None:
    (job,) = waiting(court)
    item = json.loads(donewhen(["review", "--json"], court.root).stdout)["data"]["items"][0]["id"]
    said = donewhen(["review", item, "--verdict", "pass", "--reason", "I am sure"], court.root)
    assert said.returncode == 1
    assert_sentences(said.stdout + said.stderr)
    assert words(court, job) == [("pass", "I am sure", "agent")]
    assert read_label_log(court.folder) == ()
    refused = donewhen(["complete", job.id], court.root)
    assert (refused.returncode, "[needs_human]" in refused.stdout) == (1, True)
    told = json.loads(donewhen(["review", item, "--verdict", "pass", "--json"], court.root).stdout)
    assert (told["ok"], told["data"]["counts"], told["data"]["ticket"]) == (False, False, None)


def test_a_person_may_settle_one_thing_at_once(court: Court, as_person: Person, donewhen: Run) -> None:
    (job,) = waiting(court)
    item = json.loads(donewhen(["review", "--json"], court.root).stdout)["data"]["items"][0]["id"]
    played = as_person(["review", item, "--verdict", "fail", "--reason", "no sources"], court.root)
    assert (played.status, "✓" in played.screen) == (0, True)
    assert words(court, job) == [("fail", "no sources", "person")]
    gone = donewhen(["review", item], court.root)
    assert gone.returncode == 2
    assert_sentences(gone.stderr)
    log = donewhen(["log", job.id], court.root).stdout
    assert "AC-1: fail no sources" in log
    assert_sentences(log)


def test_a_verdict_needs_an_item(court: Court, donewhen: Run) -> None:
    done = donewhen(["review", "--verdict", "pass"], court.root)
    assert (done.returncode, "--verdict needs an ITEM" in done.stderr) == (2, True)


def test_a_key_counts_where_it_was_agreed_to_and_needs_no_terminal(court: Court, donewhen: Run, tmp_path: Path) -> None:
    public = create_key_file(tmp_path / "key", "pass phrase")
    court.write("donewhen.toml", f'[approval]\nkeys = ["{public}"]\n')
    (job,) = waiting(court)
    hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS"}
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    env |= {"NO_COLOR": "1", "DONEWHEN_PASSPHRASE": "pass phrase"}
    listed = donewhen(["review", "--key", str(tmp_path / "key")], court.root, env)
    assert listed.returncode == 0
    assert_sentences(listed.stdout)
    item = listed.stdout.split()[0]
    said = donewhen(["review", item, "--verdict", "pass", "--key", str(tmp_path / "key")], court.root, env)
    assert said.returncode == 0
    assert words(court, job) == [("pass", "", "key")]
    assert len(read_label_log(court.folder)) == 1
