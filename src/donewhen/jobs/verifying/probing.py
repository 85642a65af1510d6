"""Probes the tests of a verified job, and reports what that has shown. It counts neither for nor against the branch."""

from __future__ import annotations

from collections.abc import Iterator

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.baselines import Baseline
from donewhen.jobs.evidence.commands import evidence_store, newest_run
from donewhen.jobs.evidence.probe_text import probe_lines
from donewhen.jobs.evidence.probed_work import Versions
from donewhen.jobs.evidence.probes import is_probed, probe
from donewhen.jobs.evidence.records import UnusableRecord
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.gates.suites import test_outcomes
from donewhen.jobs.ledger.entry_content import CommandRun
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.job import Job
from donewhen.jobs.room.judging_names import is_test
from donewhen.jobs.room.room_plan import RoomPlan
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.cases import CaseReason
from donewhen.jobs.verifying.run_trees import RunTree

_LONGEST = 1000


def probe_notes(base: Base, before: RunTree, tree: RunTree, plan: RoomPlan, job: Job) -> Iterator[CaseReason]:
    """Probe the tests of each command that has passed in a folder; ``before`` is the base, where it ran, too."""
    workspace, room = tree.workspace, tree.room
    entries = workspace.ledger.read(job.id).entries
    versions = Versions(
        inside=base.inside,
        before=before.room.files,
        after=room.files,
        changes=plan.changes,
        work=plan.work,
        is_test=is_test,
        old=before.room.content.blobs,
        new=room.content.blobs,
    )
    commands = {item.evidence: item.check.argv for item in requirements_of(job) if item.check.kind == "run"}
    for evidence, argv in commands.items():
        entry = newest_run(entries, evidence)
        run = None if entry is None else entry.read_as(CommandRun)
        if run is not None and is_probed(workspace, argv, run):
            found = _baseline(before, job, evidence)
            record = probe(workspace, job, room, argv, run, versions, found)
            lines = "; ".join(line.strip() for line in probe_lines(record))
            message = one_line(f"{job.id}: {run.evidence}: {lines}", _LONGEST)
            yield CaseReason(FindingCode.PROBED, message, workspace.where(job.path))


def _baseline(before: RunTree, job: Job, evidence: str) -> Baseline | None:
    """The tests of the base, as they were run for this verification."""
    entry = newest_run(before.workspace.ledger.read(job.id).entries, evidence)
    found = None if entry is None else test_outcomes(evidence_store(before.workspace), entry)
    return None if found is None or isinstance(found, UnusableRecord) else Baseline(found)
