"""Agrees to a job about a real project, does it, and completes it: `python play_job.py FOLDER TESTS WORK COMMENT`.

A process of its own, so that it can be started where a level of isolation does not work. Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import Agreed, CommandRun
from donewhen.jobs.lifecycle.agreeing import agree_to
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.workspace import find_workspace


def main() -> None:
    root, name, work, comment = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    workspace = find_workspace(root)
    started = time.monotonic()
    agreed = agree_to(workspace, [workspace.job(name)], Approval(Actor("ada", "person")))[-1].read_as(Agreed)
    agreeing = time.monotonic() - started
    start_job(workspace, name, Actor("bot"))
    with (root / work).open("a") as file:
        file.write(comment)
    started = time.monotonic()
    found = complete(workspace, name, Actor("bot"))
    completing = time.monotonic() - started
    runs = [entry.content for entry in workspace.ledger.read(name).entries]
    run = next(run for run in reversed(runs) if isinstance(run, CommandRun))
    reasons = [reason.message for reason in found.evaluation.reasons] if found.evaluation else []
    report = {
        "done": found.done,
        "reasons": reasons,
        "isolation": run.room.isolation if run.room else None,
        "network": run.room.network if run.room else None,
        "controls": None if run.controls is None else [run.controls.held, run.controls.why],
        "tests": run.report.passed if run.report else None,
        "baseline": {command: baseline.tests for command, baseline in (agreed.baselines or {}).items()},
        "agreeing": round(agreeing, 2),
        "completing": round(completing, 2),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
