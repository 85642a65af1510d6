"""What every room needs stands once, in the foundation: a second copy would soon differ from the first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "donewhen"

ONLY_IN = {
    "JSON without duplicate keys": (r"object_pairs_hook", {"foundation/json_parsing.py"}),
    # The tape of model answers locks the file that it appends to, which a writer before it may have replaced.
    # A temporary file is locked while it is written, so that it is not taken for one that was left behind.
    # A room that is in use is not waited for: another process gets a folder of its own.
    "file locks": (
        r"\bflock\(",
        {"foundation/locks.py", "foundation/files.py", "testing/_tape.py", "jobs/room/own_folders.py"},
    ),
    # A server runs until it is stopped; nothing waits for its result.
    "running a coroutine": (r"\basyncio\.run\b", {"foundation/coroutines.py", "web/listener.py", "mcp/http_server.py"}),
    "dates of HTTP headers": (r"parsedate_to_datetime", {"foundation/retrying.py"}),
    "lists that end in a number": (r"""\[:\w+\]\) \+ .*more""", {"foundation/plain_text.py"}),
    "the two verdicts": (r"""Literal\["pass", "fail"\]""", {"foundation/binary.py"}),
    "the word that a person types": (r"secrets\.choice", {"jobs/ledger/person_check.py"}),
}


@pytest.mark.parametrize("helper", ONLY_IN)
def test_it_stands_in_one_place(helper: str) -> None:
    pattern, allowed = ONLY_IN[helper]
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(re.search(pattern, line) for line in _code(path))
    }
    assert found == allowed


def _code(path: Path) -> list[str]:
    """The lines of a file without its docstrings of examples."""
    return re.sub(r'"""(?:.|\n)*?"""', "", path.read_text(encoding="utf-8")).splitlines()
