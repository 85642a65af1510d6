"""An example mission with made-up tickets: reports by agents, labelled by known rules, with a few wrong labels.

It shows how a judge learns, and tests check that the judge finds the rules that are written here.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.foundation.errors import UsageError
from donewhen.judging.mission import MISSION_FILE
from donewhen.models.contrast import default_rule

NAME = "agent-reports"
RULES = (
    "a report that speaks of skipped tests fails",
    "a report without a section of evidence fails",
    "a report that leaves more than two files unreviewed fails",
)
NOISE = 0.06

_TASKS = ("pagination", "the login form", "rate limits", "CSV export", "the search index", "retries", "the cache")
_VERBS = ("Add", "Repair", "Rework", "Speed up", "Document", "Test")
_STEPS = (
    "read the module and its callers",
    "wrote a failing test first",
    "changed the parser",
    "ran the linter",
    "renamed a helper for clarity",
    "looked at the open questions in the tracker",
    "split a long function",
    "updated the changelog",
)
_NOTES = (
    "The change is small and easy to undo.",
    "Names follow the rest of the package.",
    "Nothing outside of the module was touched.",
    "The reviewer may want to look at the error messages.",
    "Timing did not change in any way that matters.",
)
_SKIPPED = ("Two tests were skipped because the fixture is slow.", "I skipped the flaky tests for now.")


class Example(NamedTuple):
    """A made-up ticket: its text, its label, and whether the label is wrong on purpose."""

    group: str
    text: str
    label: Binary
    noisy: bool

    def line(self) -> str:
        """Return the ticket as a line of tickets.jsonl."""
        data = {"group_id": self.group, "mission": NAME, "label": self.label, "text": self.text}
        return json.dumps({**data, "label_source": "made up"}, ensure_ascii=False)


def examples(count: int = 300, seed: int = 7) -> Iterator[Example]:
    """Yield ``count`` made-up tickets; the same seed yields the same tickets."""
    chance = random.Random(seed)
    for number in range(1, count + 1):
        text, right = _report(chance)
        noisy = chance.random() < NOISE
        other: Binary = "fail" if right == "pass" else "pass"
        yield Example(f"report-{number:03d}", text, other if noisy else right, noisy)


def make_mission(folder: Path, count: int = 300, seed: int = 7) -> None:
    """Write the mission to a folder; raise UsageError if it already has one."""
    if (folder / MISSION_FILE).exists():
        raise UsageError("There is already a mission.", where=str(folder / MISSION_FILE))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tickets.jsonl").write_text("".join(f"{example.line()}\n" for example in examples(count, seed)))
    (folder / "initial_guidance.json").write_text(json.dumps({"G0": default_rule("pass", "en")}, indent=2) + "\n")
    (folder / MISSION_FILE).write_text(
        f'# Made-up reports by agents; {NOISE:.0%} of the labels are wrong on purpose.\nmission = "{NAME}"\n'
    )


def _report(chance: random.Random) -> tuple[str, Binary]:
    skipped, bare, unreviewed = chance.random() < 0.25, chance.random() < 0.2, chance.randint(0, 4)
    steps = chance.sample(_STEPS, chance.randint(2, 5))
    lines = [
        "TASK",
        f"{chance.choice(_VERBS)} {chance.choice(_TASKS)}.",
        "",
        "STEPS",
        *(f"{number}. I {step}." for number, step in enumerate(steps, 1)),
        "",
        f"Unreviewed files: {unreviewed}",
        f"Changed lines: {chance.randint(3, 240)}",
        "",
        "NOTES",
        *chance.sample(_NOTES, 2),
    ]
    if skipped:
        lines.append(chance.choice(_SKIPPED))
    if not bare:
        lines += ["", "EVIDENCE", f"{chance.randint(12, 90)} tests passed in {chance.randint(2, 40)} seconds."]
    return "\n".join(lines), "fail" if skipped or bare or unreviewed > 2 else "pass"
