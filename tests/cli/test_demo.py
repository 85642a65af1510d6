"""The story that a visitor sees first, as `donewhen demo` tells it: played once, and looked at from all sides."""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.demo.chapters import CHAPTERS
from donewhen.demo.story_lines import StoryLine
from donewhen.demo.storyteller import Storyteller
from sentences import assert_sentences

Person = Callable[..., Any]
Donewhen = Callable[..., subprocess.CompletedProcess[str]]

CHEATS = (
    (r"[criterion_failed] AC-1 (No test fails) is not met: exit status 1, 1 test(s) failed.", "✗ tampered  jobs/"),
    ("- removed   criteria: No test fails", ": voided", "does not count here."),
    ("[tests_changed] AC-1 (No test fails) needs a person", "not with the agreed ones: test_slugs.py"),
    ("[agreement_voided]", "missions.reports.initial_guidance was loosened since it was agreed"),
)
"""For each way to cheat, what of the refusal must be there: the code or the state, and the sentence."""

TRANSCRIPT = (
    "Nothing is done because somebody says so.",
    "1. A person says what done means",
    "300 made-up reports",
    'donewhen add "A report on the work" --depends-on 002',
    "To agree to this, type ",
    "person types ",
    "-003: agreed",
    "2. An agent cheats, in four ways",
    "Cheat 1: It claims to be done.",
    "✗ [criterion_failed]",
    "✗ It may not stop: ",
    "✗ tampered",
    "status says 'done', but the ledger says 'in_progress'.",
    "Cheat 2: It changes the agreed terms, and agrees to them itself.",
    "Cheat 3: It deletes the test that fails.",
    "✗ [tests_changed]",
    "Cheat 4: It adds a rule to the judge.",
    "✗ [agreement_voided]",
    "3. It does the work",
    "-001-DONE</promise>",
    "receipt: sha256:",
    "-002-DONE</promise>",
    "4. A judge learns from people",
    "✗ [needs_human]",
    "the judge has not learned any rules yet",
    "donewhen review",
    "person presses f",
    "1 labelled ticket(s) made",
    "donewhen learn missions/reports",
    "epoch 1: training",
    "held-out tickets",
    "Trials on unseen tickets:",
    "The judge got better",
    "donewhen guidance diff reports",
    "donewhen guidance accept reports",
    "✓ The gates use step",
    "5. The judge at the gate",
    "the judge says fail (0:3, guidance step",
    "-003-DONE</promise>",
    "✓ It may stop.",
    "6. Anybody can verify the record",
    "the ledger has this completion.",
    ": clean.",
    "Three jobs and a project are done: 4 promises",
    "The temporary folder was removed.",
    "donewhen hooks install --claude",
)


class Told(NamedTuple):
    """A story that was told to its end, with the folder in which it happened."""

    status: int
    envelope: dict[str, Any]
    folder: Path

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = self.envelope["data"]
        return found

    @property
    def lines(self) -> list[StoryLine]:
        return [StoryLine(**one) for one in self.data["story"]]

    def chapter(self, number: int) -> list[StoryLine]:
        """The lines of a chapter."""
        starts = [at for at, one in enumerate(self.lines) if one.kind == "chapter"]
        return self.lines[starts[number - 1] : [*starts, len(self.lines)][number]]


_PLAYED: list[Told] = []


def surroundings(temporary: Path, **extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in AGENT_VARIABLES}
    return kept | {"NO_COLOR": "1", "TMPDIR": str(temporary)} | extra


def _play(as_person: Person, factory: pytest.TempPathFactory) -> Told:
    folder = factory.mktemp("story") / "slugs"
    # Neither the marks of an agent nor those of CI keep the person of the story from agreeing, and git needs no name.
    given = surroundings(factory.mktemp("temporary"), CLAUDECODE="1", CI="1", HOME=str(factory.mktemp("home")))
    played = as_person(["demo", "--json", "--folder", str(folder)], folder.parent, env=given)
    return Told(played.status, json.loads(played.screen), folder)


@pytest.fixture
def told(as_person: Person, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The story, played as a person would start it: the fixture leaves the programs behind that run these tests."""
    if not _PLAYED:
        _PLAYED.append(_play(as_person, tmp_path_factory))
    return _PLAYED[0]


def texts(lines: Sequence[StoryLine], kind: str = "answer") -> list[str]:
    return [line.text for line in lines if line.kind == kind]


def test_for_programs_it_is_one_envelope(told: Told) -> None:
    assert set(told.envelope) == {"schema", "command", "ok", "data", "findings"}
    envelope = told.envelope
    assert (told.status, envelope["schema"], envelope["command"]) == (0, "donewhen/v1", "demo"), told.data["because"]
    assert (envelope["ok"], told.data["told"], told.data["because"], envelope["findings"]) == (True, True, "", [])
    assert told.data["folder"] == str(told.folder.resolve())
    assert Path(told.data["report"]).read_text().startswith("<!doctype html>")


def test_the_chapters_come_in_order(told: Told) -> None:
    assert tuple(texts(told.lines, "chapter")) == CHAPTERS


def test_each_of_four_cheats_is_refused_with_its_reason(told: Told) -> None:
    chapter = told.chapter(2)
    starts = [at for at, one in enumerate(chapter) if one.kind == "cheat"]
    assert len(starts) == len(CHEATS)
    for wanted, start, end in zip(CHEATS, starts, [*starts[1:], len(chapter)], strict=True):
        answers = "\n".join(texts(chapter[start:end]))
        for one in wanted:
            assert one in answers
        assert any(line.good is False for line in chapter[start:end])
        assert not any(line.good for line in chapter[start:end])


def test_the_stop_hook_holds_the_agent_with_a_reason_and_lets_it_go_at_the_end(told: Told) -> None:
    asked = [line.text for line in told.lines if line.text.startswith("It may ")]
    assert asked[0].startswith("It may not stop: ")
    assert_sentences(asked[0])
    assert asked[-1] == "It may stop."


def test_the_words_that_are_typed_are_those_that_were_asked_for(told: Told) -> None:
    typed = [(told.lines[at - 1].text, one.text) for at, one in enumerate(told.lines) if one.kind == "types"]
    assert len(typed) == 3
    for asked, word in typed:
        assert f"type {word} and press Enter" in asked
    assert texts(told.lines, "presses") == ["f"]


def test_what_a_person_said_and_an_agent_said_is_on_record_as_just_that(told: Told) -> None:
    (path,) = (told.folder / ".donewhen" / "ledger").glob("WI-*-001.jsonl")
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    agreed = [(entry["by"]["kind"], entry["data"]["how"]) for entry in entries if entry["type"] == "agreed"]
    assert agreed == [("person", "agreed"), ("agent", "said")]


def test_the_judge_gets_better_on_reports_that_it_has_not_seen(told: Told) -> None:
    learned = told.data["learned"]
    assert learned["tickets"] >= 50
    assert learned["before"] < 0.6 < 0.85 < learned["after"]
    report = json.loads(Path(told.data["report"]).with_suffix(".json").read_text())
    assert report["before"]["accuracy"]["value"] == learned["before"]
    assert report["after"]["accuracy"]["value"] == learned["after"]
    assert report["comparison"]["p"] < 0.001
    chapter = texts(told.chapter(4))
    shown = f"Accuracy {learned['before']:.3f} → {learned['after']:.3f}"
    assert any(one.startswith(shown) and one.endswith(f"on {learned['tickets']} held-out tickets") for one in chapter)
    assert any("refused" in one for one in chapter)


def test_every_rule_is_shown_with_its_effect_and_again_before_it_is_accepted(told: Told) -> None:
    guidance = json.loads((told.folder / "missions" / "reports" / "guidance.json").read_text())
    rules = [text for key, text in guidance["agent-reports"]["experiences"].items() if key[0] == "G" and key != "G0"]
    chapter = texts(told.chapter(4))
    assert len(rules) >= 2
    for rule in rules:
        assert any(one.startswith("G") and one.endswith(rule) for one in chapter)
        assert f"+ {rule}" in chapter


def test_the_persons_verdict_becomes_a_labelled_ticket(told: Told) -> None:
    rows = (told.folder / "missions" / "reports" / "reviewed.jsonl").read_text().splitlines()
    (ticket,) = [json.loads(row) for row in rows]
    assert ticket["label"] == "fail"
    assert "I skipped the flaky tests for now." in json.dumps(ticket)


def test_the_judge_refuses_by_the_guidance_that_was_accepted(told: Told) -> None:
    accepted = next(text for text in texts(told.chapter(4)) if text.startswith("✓ The gates use step "))
    step = accepted.removeprefix("✓ The gates use step ").rstrip(".")
    refusal = next(text for text in texts(told.chapter(5)) if text.startswith("[criterion_failed]"))
    assert str(step) in refusal
    assert_sentences(refusal)


def test_promises_are_there_for_what_is_done_and_for_nothing_else(told: Told, donewhen: Donewhen) -> None:
    promises: list[list[str]] = told.data["promises"]
    names = [promise[0].removeprefix("<promise>").removesuffix("-DONE</promise>") for promise in promises]
    jobs = sorted(path.name[:15] for path in (told.folder / "jobs").glob("WI-*"))
    (project,) = {name for name in names if name.startswith("PJ-")}
    assert names == [*jobs, project]
    assert [text for text in texts(told.lines) if "<promise>" in text] == [promise[0] for promise in promises]
    file = told.folder.parent / "promise.txt"
    for promise in promises:
        file.write_text("\n".join(promise))
        verified = donewhen(["promise", "verify", str(file)], told.folder)
        assert verified.returncode == 0, verified.stdout
    file.write_text(promises[0][0])
    assert donewhen(["promise", "verify", str(file)], told.folder).returncode == 1


def test_the_ledger_holds_and_everything_is_committed(told: Told, donewhen: Donewhen, git: Callable[..., str]) -> None:
    audit = donewhen(["audit", "--json"], told.folder)
    assert (audit.returncode, json.loads(audit.stdout)["findings"]) == (0, [])
    assert git(told.folder, "status", "--porcelain", "--untracked-files=no", "--", "slugs.py", "REPORT.md") == ""
    checked = donewhen(["plan-check"], told.folder)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("width", [40, 72, 110])
def test_no_line_is_wider_than_the_terminal(told: Told, width: int) -> None:
    console = Console(file=io.StringIO(), width=width, no_color=True)
    teller = Storyteller(console)
    for one in told.lines:
        teller.tell(one)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, shown.splitlines())) <= width
    assert not any(line != line.rstrip() for line in shown.splitlines())
    assert teller.lines == told.lines


def test_people_see_the_story_with_the_typed_word_and_nothing_is_left_behind(
    as_person: Person, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    played = as_person(["demo", "--fast"], tmp_path, env=surroundings(temporary, COLUMNS="200"))
    assert played.status == 0, played.screen
    text = " ".join(played.screen.split())
    place = 0
    for line in TRANSCRIPT:
        found = text.find(line, place)
        assert found != -1, f"{line!r} does not follow {text[place : place + 80]!r}"
        place = found
    word = text.partition("To agree to this, type ")[2].partition(" ")[0]
    assert f"person types {word} " in text
    assert "\x1b" not in played.screen
    assert list(tmp_path.iterdir()) == []
    assert list(temporary.iterdir()) == []
