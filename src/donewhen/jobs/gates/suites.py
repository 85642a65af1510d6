"""The test suites of a job, compared with earlier runs: which tests were lost, and which are now skipped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from donewhen.jobs.evidence.commands import evidence_names, newest_run
from donewhen.jobs.evidence.records import TestOutcomes, UnusableRecord, read_run_outcomes
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.evidence.test_ids import with_older_ids
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import CommandRun
from donewhen.jobs.ledger.finding_codes import FindingCode


class SuiteFact(NamedTuple):
    """The tests of a command compared with an earlier run."""

    evidence: str
    lost: tuple[str, ...]
    skipped: tuple[str, ...]
    before: int
    now: int


class UnusableReport(NamedTuple):
    """A test report that can't be compared."""

    evidence: str
    entry: Entry
    record: UnusableRecord

    @property
    def message(self) -> str:
        if self.record.code in (FindingCode.EVIDENCE_MISSING, FindingCode.EVIDENCE_CHANGED):
            return f"the test ids of a run of `{self.evidence}` are missing"
        return f"the test ids of a run of `{self.evidence}` can't be read: {self.record.problem}"

    @property
    def sentence(self) -> str:
        return f"The test ids of a run of `{self.evidence}` can't be read: {self.record.problem}."


def suites_of(
    store: EvidenceStore, entries: Sequence[Entry], statuses: Sequence[EvidenceStatus], agreed_at: int
) -> tuple[tuple[SuiteFact, ...], tuple[UnusableReport, ...]]:
    """Compare each test command's newest report with the one from before the work, or else the first one.

    Also return the reports that can't be read.
    """
    facts: list[SuiteFact] = []
    unusable: list[UnusableReport] = []
    # The baseline is the last report before the first start (starting runs the tests) or before the latest agreement.
    # An earlier report may be of a temporarily incomplete suite.
    begun = max(agreed_at, next((entry.seq for entry in entries if entry.type == "started"), 0))
    requirements = [status.requirement for status in statuses if status.requirement.check.kind == "run"]
    for evidence in dict.fromkeys(requirement.evidence for requirement in requirements):
        newest = newest_run(entries, evidence)
        names = evidence_names(evidence)
        room = None if newest is None else newest.read_as(CommandRun).room
        if room is not None:
            # A run in the room was compared with the agreed tests at once.
            # If a person decides about changed tests, they decide about lost ones, too, which are named there.
            if room.before and not room.needs:
                facts.append(SuiteFact(evidence, tuple(room.lost), tuple(room.skipped), room.before, room.now))
            continue
        reports = [entry for entry in entries if _has_test_report(entry, names)]
        if newest is None or newest not in reports:
            continue
        first = next((report for report in reversed(reports) if report.seq < begun), reports[0])
        now, before = test_outcomes(store, newest), test_outcomes(store, first)
        if isinstance(now, UnusableRecord):
            unusable.append(UnusableReport(evidence, newest, now))
        elif isinstance(before, UnusableRecord):
            unusable.append(UnusableReport(evidence, first, before))
        else:
            facts.append(compare_suites(evidence, now, before))
    return tuple(facts), tuple(unusable)


def compare_suites(evidence: str, now: Mapping[str, str], before: Mapping[str, str]) -> SuiteFact:
    """Return the tests of ``before`` that are missing or skipped in ``now``."""
    now = with_older_ids(now, before)
    executed = {name for name, outcome in before.items() if outcome != "skipped"}
    skipped = sorted(name for name in executed if now.get(name) == "skipped")
    return SuiteFact(evidence, tuple(sorted(before.keys() - now.keys())), tuple(skipped), len(executed), len(now))


def test_outcomes(store: EvidenceStore, entry: Entry) -> TestOutcomes | UnusableRecord:
    """Return the outcome of each test in a run, or why the store does not have it."""
    return read_run_outcomes(store, entry.read_as(CommandRun).record)


def _has_test_report(entry: Entry, names: Collection[str]) -> bool:
    run = entry.content
    return (
        isinstance(run, CommandRun)
        and run.evidence in names
        and run.report is not None
        and run.report.passed is not None
    )
