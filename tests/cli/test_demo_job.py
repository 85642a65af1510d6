"""The story of an agent that edits the plan, as `donewhen demo --job` tells it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.approval import AGENT_VARIABLES

Person = Callable[..., Any]

STORY = (
    'donewhen add "Slugs without dashes at the edges"',
    "This is recorded as an agent's word, which does not count: nobody is at a terminal.",
    "To agree to this, type ",
    " types ",
    "donewhen complete 001",
    "✗ [criterion_failed] AC-1 (The tests pass) is not met: exit status 1.",
    "writes reward_target: 0 into the plan",
    "✗ ▼ loosened reward_target: 80 → 0",
    "writes status: done into the plan",
    "✗ status says 'done', but the ledger says 'in_progress'.",
    "puts the plan back as it was",
    "repairs slugify.py",
    "✓ python3 -m unittest -q",
    "edits slugify.py once more",
    "✗ the input slugify.py changed",
    "-DONE</promise>",
    "clean.",
    "What was agreed is sealed, what was shown is kept, and the ledger remembers who did what.",
)


def surroundings(temporary: Path, **extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in AGENT_VARIABLES}
    return kept | {"NO_COLOR": "1", "TMPDIR": str(temporary)} | extra


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("temporary")


def test_it_explains_itself(donewhen: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    shown = donewhen(["demo", "-h"], tmp_path)
    assert shown.returncode == 0
    assert "--job" in shown.stdout


# The demo is started as a person would: the fixture leaves the programs behind that run these tests.


def test_the_story_is_told_in_order_and_leaves_nothing_behind(
    as_person: Person, tmp_path: Path, temporary: Path
) -> None:
    played = as_person(["demo", "--job", "--fast"], tmp_path, env=surroundings(temporary, COLUMNS="200"))
    assert played.status == 0
    text = " ".join(played.screen.split())
    places = [text.find(line) for line in STORY]
    assert -1 not in places, STORY[places.index(-1)]
    assert places == sorted(places)
    assert list(tmp_path.iterdir()) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("variable", ["CLAUDECODE", "DONEWHEN_AGENT"])
def test_for_programs_it_is_one_envelope_also_when_an_agent_asked_for_it(
    as_person: Person, tmp_path: Path, temporary: Path, variable: str
) -> None:
    played = as_person(["demo", "--job", "--json"], tmp_path, env=surroundings(temporary, **{variable: "1", "CI": "1"}))
    told = json.loads(played.screen)
    assert set(told) == {"schema", "command", "ok", "data", "findings"}
    assert (played.status, told["schema"], told["command"], told["ok"]) == (0, "donewhen/v1", "demo", True)
    assert (told["data"]["told"], told["findings"]) == (True, [])
    story = told["data"]["story"]
    assert {one["who"] for one in story} == {"person", "agent", "donewhen"}
    refusals = [one["text"] for one in story if one["who"] == "donewhen" and not one["good"]]
    assert len(refusals) == 5
    word = next(one["text"] for one in story if one["text"].startswith("types ")).removeprefix("types ")
    assert any(f"type {word} and press Enter" in one["text"] for one in story)
    assert list(temporary.iterdir()) == []
