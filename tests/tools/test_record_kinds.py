"""New records are named tuples only if something unpacks them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.record_kinds import known_before, main, never_unpacked

from tools import record_kinds

RECORD = """
from typing import NamedTuple

class Pair(NamedTuple):
    first: int
    second: int

def make() -> Pair: ...
def several() -> tuple[Pair, ...]: ...
"""


def test_every_named_tuple_is_unpacked_or_from_before_the_rule() -> None:
    assert sorted(never_unpacked() - known_before()) == []


def test_the_list_of_those_from_before_only_becomes_shorter() -> None:
    assert sorted(known_before() - never_unpacked()) == [], "Run: python -m tools.record_kinds --shorten"


@pytest.mark.parametrize(
    "use",
    [
        "first, second = make()",
        "first, *rest = make()",
        "for first, second in several(): ...",
        "[first for first, second in several()]",
        "for number, (first, second) in enumerate(several()): ...",
        "print(*make())",
        "def take(pairs: 'list[Pair]'):\n    for first, second in pairs: ...",
    ],
)
def test_a_record_that_is_unpacked_may_be_a_named_tuple(tmp_path: Path, use: str) -> None:
    (tmp_path / "room.py").write_text(f"{RECORD}\n{use}\n")
    assert never_unpacked(tmp_path) == set()


@pytest.mark.parametrize(
    "use",
    [
        "",
        "pair = make()\nprint(pair.first)",
        "first, second, third = make()",
        "for number, pair in enumerate(several()): ...",
        "for pair in several(): ...",
    ],
)
def test_a_record_that_is_not_unpacked_is_reported(tmp_path: Path, use: str) -> None:
    (tmp_path / "room.py").write_text(f"{RECORD}\n{use}\n")
    assert never_unpacked(tmp_path) == {"room.Pair"}


def test_a_dataclass_is_never_reported(tmp_path: Path) -> None:
    (tmp_path / "room.py").write_text(
        "from dataclasses import dataclass\n\n@dataclass(frozen=True)\nclass A:\n    a: int\n"
    )
    assert never_unpacked(tmp_path) == set()


def test_it_adds_nothing_to_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(record_kinds, "LIST", tmp_path / "list.txt")
    monkeypatch.setattr(record_kinds, "never_unpacked", lambda: {"a.New", "a.Old"})
    (tmp_path / "list.txt").write_text("a.Gone\na.Old\n")
    assert main(["--shorten"]) == 1
    assert (tmp_path / "list.txt").read_text() == "a.Old\n"
    assert capsys.readouterr().out.startswith("a.New ")
