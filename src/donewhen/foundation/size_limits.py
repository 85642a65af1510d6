"""How large the files may be that donewhen reads as a whole, so that none can use up memory or time."""

from __future__ import annotations

from typing import NamedTuple

_KB = 1 << 10
_MB = 1 << 20
_GB = 1 << 30


class SizeLimit(NamedTuple):
    """The limit of one kind of file."""

    what: str
    bytes: int
    advice: str
    """What to do about a larger one."""


_SPLIT = "move long texts into files of their own"
_RESTORE = "restore it from version control"

PLAN_FILE = SizeLimit("a plan file", 2 * _MB, _SPLIT)
SETTINGS = SizeLimit("a settings file", 1 * _MB, "remove what is not a setting")
HOOK_FILE = SizeLimit("a settings file of an agent runtime", 4 * _MB, "remove what is not a setting")
LESSONS = SizeLimit("the lessons file", 16 * _MB, "move old lessons to another file")
LEDGER_LINE = SizeLimit("an entry of the ledger", 64 * _MB, "name fewer inputs and outputs in the plan")
LEDGER_CHAIN = SizeLimit("a chain of the ledger", 2 * _GB, "start a new job for the rest of the work")
EVIDENCE = SizeLimit("a stored piece of evidence", 256 * _MB, "make the command print less, or name fewer inputs")
CHECKED_FILE = SizeLimit(
    "a file that is searched, counted or validated by a check", 64 * _MB, "check it with a command instead"
)
SCHEMA = SizeLimit("a JSON Schema", 16 * _MB, "split the schema")
TEST_REPORT = SizeLimit("a test report", 64 * _MB, "split the test run, or report less output per test")
BASELINE = SizeLimit("a test baseline", 64 * _MB, "record it again")
ISSUE_MAP = SizeLimit("the map of mirrored jobs", 64 * _MB, _RESTORE)
VIEW = SizeLimit("a generated page or table", 256 * _MB, "delete it; it is written again")
STATE = SizeLimit("a state file", 64 * _MB, "delete it; it is written again")
KEY = SizeLimit("a key or token file", 64 * _KB, "name the right file")
MISSION = SizeLimit("a mission, language or prompt file, or a table of prices or weights", 1 * _MB, _SPLIT)
CODE = SizeLimit("a file with an override", 16 * _MB, "split the module")
GUIDANCE = SizeLimit("guidance or its history", 64 * _MB, _RESTORE)
HYPOTHESES = SizeLimit("the hypotheses of a mission", 64 * _MB, "delete the file to start without them")
LABEL_LOG = SizeLimit("the review labels of a mission", 1 * _GB, "start a new mission")
TICKET_LINE = SizeLimit("a ticket (one line)", 64 * _MB, "shorten its evidence")
TEXT = SizeLimit("a text to judge or to import", 64 * _MB, "split the text")
RUN_EVENT = SizeLimit("an event of a learning run (one line)", 256 * _MB, "learn from fewer tickets at a time")
RUN_REPORT = SizeLimit("the report of a learning run", 256 * _MB, "delete it; donewhen replay works without it")
PROMISE = SizeLimit("a text with a promise", 16 * _MB, "give only the lines with the promise")
HOOK_EVENT = SizeLimit("an event of an agent runtime", 64 * _MB, "shorten what the agent sends")
OTHER = SizeLimit("a file", 64 * _MB, "make it smaller")

ALL_LIMITS = (
    *(PLAN_FILE, SETTINGS, HOOK_FILE, LESSONS, LEDGER_LINE, LEDGER_CHAIN, EVIDENCE, CHECKED_FILE, SCHEMA, TEST_REPORT),
    *(BASELINE, ISSUE_MAP, VIEW, STATE, KEY, MISSION, CODE, GUIDANCE, HYPOTHESES, LABEL_LOG, TICKET_LINE, TEXT),
    *(RUN_EVENT, RUN_REPORT, PROMISE, HOOK_EVENT, OTHER),
)


def size_text(size: int) -> str:
    """A size in the largest unit of which there is at least one: "52.4 MB"."""
    for unit, name in ((_GB, "GB"), (_MB, "MB"), (_KB, "KB")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{size} bytes"


def too_large_text(size: int | None, limit: SizeLimit) -> str:
    """How large something is, its limit and what to do: "52.4 MB, and a plan file may have at most 2 MB; …"."""
    found, allowed = size_text(limit.bytes if size is None else size), size_text(limit.bytes)
    if size is None:
        found = f"more than {found}"
    elif found == allowed:
        # Only a little larger.
        found, allowed = f"{size} bytes", f"{limit.bytes} bytes"
    return f"{found}, and {limit.what} may have at most {allowed}; {limit.advice}"
