"""The page about the strength of evidence has the table of the code."""

from __future__ import annotations

import re
from pathlib import Path

from donewhen.jobs.gates.strength_rules import LIMITS, SUPPORTS
from donewhen.jobs.ledger.evidence_levels import LEVEL_WORDS, NEEDED_BY_STAKES
from donewhen.jobs.plan.job import STAKES

PAGE = Path(__file__).parents[2] / "docs/howto/how-strong-is-the-evidence.md"
ROWS = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]


def test_every_rule_is_on_the_page() -> None:
    limits = {row[0].strip("`"): row[1:] for row in ROWS if len(row) == 4}
    del limits["code"], limits["---"]
    assert limits == {
        code: [LEVEL_WORDS[limit.at_most], limit.means, limit.better or "—"] for code, limit in LIMITS.items()
    }
    assert {row[0].strip("`"): row[1] for row in ROWS if row[0].strip("`") in SUPPORTS} == SUPPORTS


def test_every_level_and_what_the_stakes_need_is_on_the_page() -> None:
    words = {row[0].strip("*") for row in ROWS}
    assert words >= set(LEVEL_WORDS.values())
    needed = {
        stakes: row[1].strip("*") for row in ROWS for stakes in re.findall(r"`(\w+)`", row[0]) if stakes in STAKES
    }
    assert {stakes: level for stakes, level in needed.items() if stakes in NEEDED_BY_STAKES} == NEEDED_BY_STAKES
    assert set(needed) == set(STAKES)
