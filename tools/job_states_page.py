"""Generate docs/reference/job-states.md: the states of a job, and the kinds of jobs that the tests compare."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from donewhen.jobs.board.job_state import STATES

TESTS = Path(__file__).parents[1] / "tests" / "jobs"

_INTRODUCTION = """\
# States of a job

Every command, the MCP server, the pages, the dashboard and the stop hook show the same state of a job, the code of the
same main [reason](reasons.md), and the same next step. The state says more than the `status` in the plan, which has
only five values.

Commands about one job evaluate its gates now. What shows many jobs (`donewhen status`, the board, the dashboard, the
MCP tool `list_jobs`) reads the ledger and evaluates nothing, so it can't know what has happened to files since: that an
output is missing again, that evidence became stale, or that a completed job is no longer valid. A job that was not
evaluated since it was started has no code there, and its next step is `donewhen next JOB`, which evaluates it.

## The states

The first that applies is shown.

| state | what it means |
| --- | --- |
"""

_KINDS = """
## Kinds of jobs

| kind of job | state | code | next step |
| --- | --- | --- | --- |
"""

_END = """
If the project's own agreement is missing or void, that is the state of all its jobs, except of those that are
cancelled, tampered with, or broken. A plan that can't be read has no state: it is reported as a problem, and a stop
hook holds the agent if the job is in progress according to the ledger.
"""


def job_states_page() -> str:
    """Return the page with every state, and with every kind of job in the tests."""
    sys.path[:0] = [str(TESTS), str(TESTS.parent)]
    kit: Any = importlib.import_module("job_states_kit")
    states = "".join(f"| `{word}` | {meaning} |\n" for word, meaning in STATES.items())
    kinds = "".join(
        f"| {kind.about} | `{kind.state}` | {f'`{kind.code}`' if kind.code else ''} | `{kind.next}` |\n"
        for kind in kit.KINDS
    )
    return f"{_INTRODUCTION}{states}{_KINDS}{kinds}{_END}"
