"""The kinds of signs, and what a sign is. A sign proves nothing: it is a line that a person should look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

SignKind = Literal[
    "test-machinery",
    "frames",
    "exit-hooks",
    "patches",
    "interpreter",
    "at-import",
    "equality",
    "swallowed-errors",
    "obscured",
    "special-cases",
    "suppressions",
    "weaker-tests",
    "uncalled",
]
KINDS: tuple[SignKind, ...] = get_args(SignKind)

MEANINGS: Mapping[SignKind, str] = {
    "test-machinery": "Product code names a test framework, its variables, or its reports.",
    "frames": "Product code reads its callers: their names, their variables, or the objects of the process.",
    "exit-hooks": "Product code ends the process, or writes something while it ends.",
    "patches": "Product code replaces parts of modules that it does not own, such as a clock or a comparison.",
    "interpreter": "Product code reaches into the interpreter or the process: tracing, memory, open files by number.",
    "at-import": "Importing product code starts programs, writes files, or ends the process.",
    "equality": "Product code compares equal to everything.",
    "swallowed-errors": "Product code lets every error of the code around it disappear, failed assertions among them.",
    "obscured": "Product code runs text as code, or hides what a text says.",
    "special-cases": "Product code has an input of a visible test together with the result that the test expects.",
    "suppressions": "A comment was added that silences a tool that is part of the checks.",
    "weaker-tests": "A test is skipped or expected to fail, or a threshold was lowered.",
    "uncalled": "A private function was added that nothing uses.",
}


class Sign(NamedTuple):
    """A line that a person should look at."""

    kind: SignKind
    file: str
    line: int
    text: str
    """The changed line, or the first of several."""
    why: str
    lines: frozenset[int] = frozenset()
    """All lines that it is about."""
    beside: str = ""
    """What to read it beside, such as the line of a test."""
    asks: bool = True
    """Whether a person has to decide. If not, the line is only shown."""


class ChangedFile(NamedTuple):
    """A file of the work."""

    name: str
    before: str | None
    """None for a new file."""
    after: str | None
    """None for a removed file."""
    is_test: bool = False
