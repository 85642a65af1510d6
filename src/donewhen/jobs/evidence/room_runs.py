"""Runs a command in the rooms of a job, compares its tests with the agreed ones, and decides on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from donewhen.foundation.git_objects import LINK
from donewhen.jobs.evidence.baselines import Baseline, baseline_of
from donewhen.jobs.evidence.conditions import RunConditions
from donewhen.jobs.evidence.room_session import PrepareFailedError, RoomSession
from donewhen.jobs.evidence.test_report import ReportedRun, reports_tests
from donewhen.jobs.evidence.two_runs import Decision, RoomOutcome, TestLoss, compare_outcomes, decide, tests_of
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import RoomRun
from donewhen.jobs.room.reading import RoomReading
from donewhen.jobs.room.room_plan import Tree
from donewhen.test_reports.junit import Outcome
from donewhen.test_reports.renamed_tests import renamed_tests

_MAX_NAMES = 200


@dataclass(frozen=True)
class CheckedRun:
    """A command that was run as evidence, and what it shows."""

    shown: ReportedRun
    """The run whose output and report are kept."""
    passed: bool
    settled: bool = True
    """Whether the files stayed the same meanwhile."""
    changed: tuple[str, ...] = ()
    why: str = ""
    room: RoomRun | None = None
    runs: tuple[ReportedRun, ...] = ()

    @property
    def seconds(self) -> float:
        return sum(run.result.seconds for run in self.runs or (self.shown,))


def run_in_rooms(
    session: RoomSession, argv: Sequence[str], evidence: str, before: RunConditions, timeout: float, by: Actor
) -> CheckedRun:
    """Run a command on the agreed files with the work and, if the agent has changed others, on everything as it is."""
    reading = session.reading
    try:
        first = session.run_first(argv, before.environment, timeout)
        second = session.run_second(argv, before.environment, timeout) if reading.plan.two_runs else None
    except PrepareFailedError as error:
        return CheckedRun(error.run, passed=False, why=error.message)
    written = session.written()
    baseline = None
    if reports_tests(argv) or (first.report is not None and first.report.has_tests):
        baseline = baseline_of(session, argv, evidence, before.environment, timeout, by)
    before_work = _agreed_outcomes(reading, baseline)
    outcome = RoomOutcome(
        first,
        second,
        written,
        first_loss=_loss(before_work, first),
        second_loss=TestLoss()
        if second is None
        else _loss(before_work, second, _renamed(reading, before_work, second)),
    )
    decision = decide(reading.plan, outcome, no_agreed_tests=baseline is not None and baseline.is_empty)
    shown = second if second is not None and (first.passed or decision.failed_in in ("whole", "both")) else first
    declared = [*before.inputs.files] if before.inputs.declared else None
    settled = session.is_still(declared)
    runs = (first,) if second is None else (first, second)
    # What could not be compared explains a refusal, and nothing else.
    why = "; ".join(filter(None, (decision.why, *(() if decision.passed else session.notes))))
    return CheckedRun(shown, decision.passed, settled, (), why, _record(reading, decision, outcome.loss, runs), runs)


def _record(reading: RoomReading, decision: Decision, loss: TestLoss, runs: Sequence[ReportedRun]) -> RoomRun:
    plan = reading.plan
    return RoomRun(
        tree=reading.basis.hash,
        commit=reading.commit,
        runs=len(runs),
        outside=[change.name for change in plan.outside][:_MAX_NAMES],
        tests=[change.name for change in plan.tests][:_MAX_NAMES],
        left_out=[*reading.disk.leading_out, *reading.disk.unreadable][:_MAX_NAMES],
        needs=decision.needs,
        failed_in=decision.failed_in,
        lost=[*loss.lost][:_MAX_NAMES],
        skipped=[*loss.skipped][:_MAX_NAMES],
        renamed=dict(loss.renamed),
        before=loss.before,
        now=loss.now,
        provisional=reading.upstream is not None and reading.upstream.provisional,
    )


def _agreed_outcomes(reading: RoomReading, baseline: Baseline | None) -> Mapping[str, Outcome]:
    """The outcomes of the agreed tests, without those that a person allowed to change."""
    if baseline is None or not baseline.outcomes:
        return {}
    plan = reading.plan
    free = {change.name for change in plan.changes if change.name in plan.accepted}
    free |= {name for name in reading.agreed.files if reading.area.tests_may_change(name)}
    dropped = set(tests_of(baseline.outcomes, free)) if free else set()
    return {test: outcome for test, outcome in baseline.outcomes.items() if test not in dropped}


def _loss(before: Mapping[str, Outcome], run: ReportedRun, renamed: Mapping[str, str] | None = None) -> TestLoss:
    if not before:
        return TestLoss()
    return compare_outcomes(before, None if run.report is None else run.report.outcomes, renamed)


def _renamed(reading: RoomReading, before: Mapping[str, Outcome], run: ReportedRun) -> Mapping[str, str]:
    """The tests that are called differently now, and are the same otherwise."""
    now = run.report.outcomes if run.report is not None else {}
    lost = [test for test in before if test not in now]
    if not lost:
        return {}
    sources = [_sources(reading, tree) for tree in (reading.agreed.files, reading.plan.whole)]
    return renamed_tests(lost, [test for test in now if test not in before], sources[0], sources[1])


def _sources(reading: RoomReading, tree: Tree) -> dict[str, str]:
    """The code of the tests in a tree, by names relative to the project."""
    inside = reading.agreed.place.inside
    names = [
        name
        for name, file in tree.items()
        if name.startswith(inside) and name.endswith(".py") and file.mode != LINK and reading.judges.is_test(name)
    ]
    contents = reading.blobs.contents([(name, tree[name].blob) for name in names])
    return {
        name.removeprefix(inside): content.decode("utf-8", "replace")
        for name, content in zip(names, contents, strict=True)
    }
