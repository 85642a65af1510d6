"""What counts as a claim in an agent's last message, and what looks like one."""

from __future__ import annotations

import pytest

from donewhen.claims.finding import claims_in


def kinds(message: str) -> list[tuple[str, str]]:
    return [(claim.kind, claim.about) for claim in claims_in(message)]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("All tests pass.", [("tests", "")]),
        ("✅ All 12 tests now pass", [("tests", "")]),
        ("The test suite is green.", [("tests", "")]),
        ("All 48 tests passed with no failures.", [("tests", "")]),
        ("Result: 7 passed, 0 failed.", [("tests", "")]),
        ("I created `src/slugs.py`.", [("file", "src/slugs.py")]),
        (
            "Created report.md and added tests/test_report.py.",
            [("file", "report.md"), ("file", "tests/test_report.py")],
        ),
        ("- Updated **README.md** with the new option", [("file", "README.md")]),
        ("I've committed everything.", [("commit", "")]),
        ("Committed as `1a2b3c4d`.", [("commit", "1a2b3c4d")]),
        ("It is committed and pushed.", [("commit", ""), ("push", "")]),
        ("Done. I wrote `a.md`.\n\nAll tests pass!", [("file", "a.md"), ("tests", "")]),
        ("All tests pass. All tests pass.", [("tests", "")]),
    ],
)
def test_what_an_agent_says_to_have_done(message: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Done.",
        "The tests don't pass yet.",
        "All tests should pass now.",
        "Once the tests pass, I will commit.",
        "If you run the tests, they pass.",
        "Not all tests pass.",
        "Only 3 of 5 tests pass.",
        "2 tests fail, 5 passed.",
        "Do the tests pass?",
        "Nothing is committed yet.",
        "The changes are uncommitted.",
        "You may want to commit this.",
        "I will create `report.md` next.",
        "I removed `old.py`.",
        "I renamed a.py to b.py and updated the imports.",
        "Updated the call of `prices.total` in Node.js.",
        "I fixed the bug, e.g. for version 1.2.3.",
        "See https://example.org/updated/page.html.",
        "```\nAll tests pass. I created x.py.\n```",
        "The passing of time.",
    ],
)
def test_what_only_looks_like_a_claim(message: str) -> None:
    assert kinds(message) == []
