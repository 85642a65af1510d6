"""Probes the tests of a command that has passed, and records how much that is worth.

Nothing here refuses anything. A probe that is not possible is recorded with its reason.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from donewhen.config.settings import ProbingTime
from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.evidence.baselines import Baseline, known_baseline
from donewhen.jobs.evidence.conditions import run_conditions
from donewhen.jobs.evidence.mutant_runs import NO_TIME, Tried, not_tried, try_one_by_one, try_with_pytest
from donewhen.jobs.evidence.probe_record import ProbeRecord, RedBefore
from donewhen.jobs.evidence.probed_work import ProbedRoom, ProbedWork, Versions, probed_work
from donewhen.jobs.evidence.probing import Probing
from donewhen.jobs.evidence.records import (
    UnusableRecord,
    put_record,
    read_command,
    read_probes,
    read_run_outcomes,
)
from donewhen.jobs.evidence.red_before import red_before
from donewhen.jobs.evidence.room_session import RoomSession
from donewhen.jobs.evidence.store import EvidenceStore, evidence_store
from donewhen.jobs.evidence.test_report import ReportedRun, reports_tests, without_controls
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.entry_content import CommandRun, ProbeRun
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import writing
from donewhen.jobs.room.surroundings import Surroundings
from donewhen.test_reports.test_runners import runner_of

LEAST_SECONDS = 3.0
"""Below this, starting Python takes most of the time."""
_LEAST_LEFT = 0.5
_SHARE_BEFORE = 0.5
"""How much of the time tests may take without the work."""


def probe_run(session: RoomSession, argv: Sequence[str], run: Entry, by: Actor, probing: Probing) -> Entry | None:
    """Probe the tests of a command that has passed, unless that was done; None if there is nothing to probe."""
    passed = run.read_as(CommandRun)
    workspace, job, reading = session.workspace, session.job, session.reading
    entries = workspace.ledger.read(job.id).entries
    if not is_probed(workspace, argv, passed) or find_probes(entries, passed.evidence, passed.key) is not None:
        return None
    probing.on_progress(f"probing the tests of {passed.evidence}")
    baseline = known_baseline(session, passed.evidence)
    versions = Versions(
        inside=reading.agreed.place.inside,
        before=reading.agreed_tree,
        after=reading.plan.whole,
        changes=reading.plan.changes,
        work=reading.plan.work,
        is_test=reading.judges.is_test,
        old=reading.blobs,
        new=reading.blobs,
    )
    record = probe(workspace, job, _SessionRoom(session), argv, passed, versions, baseline)
    raise_if_cancelled()
    data: dict[str, Any] = {
        "what": "probes",
        "evidence": passed.evidence,
        "criterion": passed.criterion,
        "key": passed.key,
        "settled": True,
        "passed": True,
        "run": run.hash,
        "probes": put_record(evidence_store(workspace), record),
        "told": summary(record),
    }
    with writing(workspace, job.path, job.id) as plan:
        return plan.append("ran", data, Approval(by))


def is_probed(workspace: Workspace, argv: Sequence[str], run: CommandRun) -> bool:
    """Whether the tests of a run are to be probed."""
    return workspace.settings().strength.time != "off" and run.passed and run.settled and runs_tests(argv, run)


def probe(
    workspace: Workspace,
    job: Job,
    room: ProbedRoom,
    argv: Sequence[str],
    run: CommandRun,
    versions: Versions,
    baseline: Baseline | None,
) -> ProbeRecord:
    """Probe the tests of a run within the agreed time. What is not possible is recorded with its reason."""
    start, store = time.monotonic(), evidence_store(workspace)
    stored = read_command(store, run.record)
    runs = 1 if run.room is None else max(1, run.room.runs)
    a_run = 1.0 if isinstance(stored, UnusableRecord) else stored.seconds / runs
    budget = seconds_for(workspace.settings().strength.time, a_run)
    found = read_run_outcomes(store, run.record)
    now = {} if isinstance(found, UnusableRecord) else found
    work = probed_work(versions, run.key)
    surroundings = run_conditions(workspace, job, argv).surroundings
    before, tried = RedBefore(why=NO_TIME), not_tried(work, NO_TIME)
    with without_controls():
        try:
            before = red_before(room, argv, surroundings, work, now, baseline, budget * _SHARE_BEFORE)
            raise_if_cancelled()
        except (DonewhenError, OSError) as error:
            before = RedBefore(why=_why(error))
        left = budget - (time.monotonic() - start)
        try:
            if left >= _LEAST_LEFT:
                tried = _try(room, argv, surroundings, work, len(now), a_run, left)
        except (DonewhenError, OSError) as error:
            tried = not_tried(work, _why(error))
    return ProbeRecord(
        job=job.id,
        evidence=run.evidence,
        key=run.key,
        code=tried.code,
        mutants=tried.mutants,
        alone=tried.alone,
        other_order=tried.order,
        red_before=before,
        seconds=round(time.monotonic() - start, 3),
        budget=round(budget, 3),
    )


def runs_tests(argv: Sequence[str], run: CommandRun) -> bool:
    """Whether a command runs tests: it is known to, its report says so, or it is a script in Python."""
    runner = runner_of(argv)
    counted = run.report is not None and run.report.passed is not None
    return counted or bool(runner.script) or reports_tests(argv) or runner.kind == "wrapper"


def find_probes(entries: Sequence[Entry], evidence: str, key: str) -> Entry | None:
    """The newest probes of a command's tests with this key."""
    for entry in reversed(entries):
        content = entry.content
        if isinstance(content, ProbeRun) and (content.key, content.evidence) == (key, evidence):
            return entry
    return None


def probes_of(store: EvidenceStore, entries: Sequence[Entry], run: CommandRun) -> ProbeRecord | None:
    """What the probes of a run have shown; None if it was not probed, or the record is missing or does not fit."""
    entry = find_probes(entries, run.evidence, run.key)
    if entry is None:
        return None
    record = read_probes(store, entry.read_as(ProbeRun).probes)
    return None if isinstance(record, UnusableRecord) or record.key != run.key else record


def seconds_for(limit: ProbingTime, a_run: float) -> float:
    """How long the tests of a run that took ``a_run`` seconds are probed."""
    return max(LEAST_SECONDS, a_run) if isinstance(limit, str) else limit


def summary(record: ProbeRecord) -> str:
    """One line about a record."""
    mutants = record.mutants
    parts = [f"{mutants.survived} of {mutants.tried} mutants survived" if mutants.tried else mutants.why]
    if names := {*record.alone.only_in_company, *record.other_order.failing}:
        parts.append(f"{len(names)} tests pass only in company or in their order")
    parts.append(f"red before: {record.red_before.outcome.replace('_', ' ')}")
    return "; ".join(filter(None, parts))


@dataclass(frozen=True)
class _SessionRoom:
    """The room of a job with what would be merged."""

    session: RoomSession

    def run(
        self, argv: Sequence[str], surroundings: Surroundings, timeout: float, changed: Mapping[str, bytes | None]
    ) -> ReportedRun:
        return self.session.run_merged(argv, surroundings, timeout, changed)


def _try(
    room: ProbedRoom,
    argv: Sequence[str],
    surroundings: Surroundings,
    work: ProbedWork,
    tests: int,
    a_run: float,
    seconds: float,
) -> Tried:
    if runner_of(argv).kind == "pytest":
        return try_with_pytest(room, argv, surroundings, work, tests, seconds)
    return try_one_by_one(room, argv, surroundings, work, a_run, seconds)


def _why(error: DonewhenError | OSError) -> str:
    return redact_secrets(error.message if isinstance(error, DonewhenError) else str(error))
