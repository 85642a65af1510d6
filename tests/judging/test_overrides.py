"""A mission's own code has the last word, and may say only what a verdict can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judging_kit import mission_in, ticket

from donewhen.foundation.errors import ConfigError
from donewhen.judging.answer import JudgeAnswer
from donewhen.judging.mission_overrides import NamedOverride, apply_overrides, load_overrides
from donewhen.judging.ticket import Ticket
from donewhen.judging.vote import Vote, count_votes
from sentences import assert_sentences

PASSED = count_votes([JudgeAnswer("pass", "yes")])
NOTHING = count_votes([])


def says(value: Any) -> Any:
    return lambda ticket, vote: value


def test_without_overrides_the_vote_decides() -> None:
    assert apply_overrides(ticket(), PASSED, ()) == ("pass", None)
    assert apply_overrides(ticket(), NOTHING, ()) == (None, None)


def test_the_first_that_speaks_decides_and_is_named() -> None:
    named = (NamedOverride("a", says(None)), NamedOverride("b", says("fail")), NamedOverride("c", says("pass")))
    assert apply_overrides(ticket(), PASSED, named) == ("fail", "b")
    assert apply_overrides(ticket(), PASSED, named[:1]) == ("pass", None)
    assert apply_overrides(ticket(), PASSED, (named[2],)) == ("pass", "c")


def test_an_override_sees_the_evidence_and_the_votes_but_never_the_label() -> None:
    seen: list[tuple[Ticket, Vote]] = []

    def look(ticket: Ticket, vote: Vote) -> None:
        seen.append((ticket, vote))

    labelled = ticket("QC-1", "fail", log="x")._replace(label_source="ada", label_timestamp="now")
    apply_overrides(labelled, PASSED, (NamedOverride("look", look),))
    shown, vote = seen[0]
    assert (shown.group_id, shown.evidence, vote) == ("QC-1", {"log": "x"}, PASSED)
    assert (shown.label, shown.label_source, shown.label_timestamp, shown.key) == (None, "", "", "QC-1")


@pytest.mark.parametrize(
    "value", ["PASS", "", True, False, 1, 0, "maybe", ["pass"], {"pass": 1}, JudgeAnswer("pass", "x")]
)
def test_an_override_that_says_something_else_is_an_error_that_names_it(value: Any) -> None:
    with pytest.raises(ConfigError, match="my override"):
        apply_overrides(ticket(), PASSED, (NamedOverride("my override", says(value)),))


def test_an_override_that_breaks_is_an_error_that_names_it_and_the_ticket() -> None:
    def breaks(ticket: Ticket, vote: Vote) -> None:
        raise KeyError("voltage")

    with pytest.raises(ConfigError) as caught:
        apply_overrides(ticket("QC-9"), PASSED, (NamedOverride("rules.py:breaks", breaks),))
    assert_sentences(caught.value)


def test_overrides_come_from_a_file_of_the_mission(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Limit:\n    volts: int = 400\n"
        "def high(ticket, vote):\n    return 'fail' if f'{Limit().volts} V' in ticket.text else None\n"
    )
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "mine.py").write_text("def high(ticket, vote):\n    return 'pass'\n")
    found = mission_in(tmp_path, 'overrides = ["mine.py:high", "more/mine.py:high"]\n').overrides
    assert [item.name for item in found] == ["mine.py:high", "more/mine.py:high"]
    assert apply_overrides(ticket(log="400 V"), PASSED, found) == ("fail", "mine.py:high")
    assert apply_overrides(ticket(log="230 V"), PASSED, found) == ("pass", "more/mine.py:high")


def test_overrides_come_from_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cabinet_overrides_for_a_test.py").write_text("def none(ticket, vote):\n    return None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (found,) = load_overrides(("cabinet_overrides_for_a_test:none",), tmp_path)
    assert found.override(ticket(), PASSED) is None


@pytest.mark.parametrize(
    "name",
    [
        "mine",
        ":high",
        "mine.py:",
        "mine.py:not a name",
        "",
        "missing.py:high",
        "broken.py:high",
        "raises.py:high",
        "fine.py:low",
        "fine.py:number",
        "no.such.module:high",
    ],
)
def test_an_override_that_is_not_there_is_an_error_of_the_mission(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.py").write_text("def high(:\n")
    (tmp_path / "raises.py").write_text("1 / 0\n")
    (tmp_path / "fine.py").write_text("number = 5\ndef high(ticket, vote): ...\n")
    with pytest.raises(ConfigError) as caught:
        mission_in(tmp_path, f'overrides = ["{name}"]\n')
    assert_sentences(caught.value)
    assert caught.value.where == f"{tmp_path / 'mission.toml'}:2"


def test_what_can_not_be_a_python_file_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(ConfigError) as caught:
        load_overrides(("folder.py:high",), tmp_path)
    assert_sentences(caught.value)
