"""Checks that failed and then passed on the same files: what they say depends on something else than the work."""

from __future__ import annotations

from collections.abc import Sequence

from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import CommandRun


def red_before(entries: Sequence[Entry], evidence: str, parts: dict[str, str], files: str, environment: str) -> int:
    """The entry of the newest run of a check that failed on exactly these files, in the same environment; 0 if none.

    A run that was hindered, or timed out, or needed changes that a person has to accept, is none that failed.
    """
    for entry in reversed(entries):
        run = entry.content
        if not isinstance(run, CommandRun) or run.evidence != evidence or run.room is None or not run.settled:
            continue
        if not files or (run.room.files, run.room.environment, run.parts) != (files, environment, parts):
            continue
        ended = run.ending == "exited" and run.exit_code not in (None, 0)
        trusted = run.controls is None or run.controls.held != "broken"
        if ended and trusted and not (run.passed or run.hindrance or run.room.needs):
            return entry.seq
    return 0


def flaky_text(entry: int) -> str:
    """Why a run that passed is no evidence yet."""
    return f"it failed before on the same files (entry {entry})"
