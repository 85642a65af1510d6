"""Runs a command in the rooms of a job, compares its tests with the agreed ones, and decides on it."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.git_objects import LINK
from donewhen.jobs.evidence.baselines import Baseline, baseline_of
from donewhen.jobs.evidence.conditions import RunConditions
from donewhen.jobs.evidence.environment import EnvironmentNow
from donewhen.jobs.evidence.hindrances import timeout_text
from donewhen.jobs.evidence.network_failures import network_notes
from donewhen.jobs.evidence.room_session import PrepareFailedError, RoomSession
from donewhen.jobs.evidence.test_ids import stored_outcomes, with_older_ids
from donewhen.jobs.evidence.test_report import ReportedRun, reports_tests
from donewhen.jobs.evidence.trusted_runs import AgreedControls, untrusted_text, without_controls
from donewhen.jobs.evidence.two_runs import Decision, RoomOutcome, TestLoss, compare_outcomes, decide, tests_of
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import RoomRun
from donewhen.jobs.ledger.gate_results import GateCode
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
    hindrance: GateCode | None = None
    """What kept the check from showing anything about the work."""
    runs: tuple[ReportedRun, ...] = ()

    @property
    def seconds(self) -> float:
        return sum(run.result.seconds for run in self.runs or (self.shown,))


def run_in_rooms(
    session: RoomSession,
    argv: Sequence[str],
    evidence: str,
    before: RunConditions,
    environment: EnvironmentNow | None,
    timeout: float,
    by: Actor,
) -> CheckedRun:
    """Run a command on the agreed files with the work and, if the agent has changed others, on everything as it is."""
    reading = session.reading
    network = "host" if environment is None else environment.record.network
    try:
        first = session.run_first(argv, before.surroundings, timeout)
        second = session.run_second(argv, before.surroundings, timeout) if reading.plan.two_runs else None
    except PrepareFailedError as error:
        about = (*network_notes(error.run, network), *session.reach_notes(error.run, before.surroundings))
        why = "; ".join((error.message, *about))
        return CheckedRun(error.run, passed=False, why=why, hindrance=error.hindrance)
    strained = next((run for run in (first, second) if run is not None and run.result.strain), None)
    if strained is not None:
        runs = (first,) if second is None else (first, second)
        why = timeout_text(strained.result)
        return CheckedRun(strained, passed=False, why=why, hindrance=GateCode.MACHINE_OVERLOADED, runs=runs)
    written = session.written()
    baseline = None
    if reports_tests(argv) or (first.report is not None and first.report.has_tests):
        baseline = baseline_of(session, argv, evidence, before.surroundings, timeout, by)
    agreed = AgreedControls(
        baseline.controls if baseline is not None else "",
        lambda: session.run_agreed(argv, before.surroundings, timeout),
        _is_changed(reading),
    )
    first = agreed.compare(first)
    if second is not None:
        # If only the second has passed, a person decides about the changes, also about those of a plug-in of the tests.
        second = agreed.compare(second) if first.seems_passed else without_controls(second)
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
    runs = (first,) if second is None else (first, second)
    declared = [*before.inputs.files] if before.inputs.declared else None
    settled = session.is_still(declared) and (environment is None or environment.is_still_true)
    untrusted = next((run for run in runs if untrusted_text(run)), None)
    if untrusted is not None:
        decision = Decision(False, "", "agreed", untrusted_text(untrusted))
        room = _record(reading, decision, outcome.loss, runs, environment)
        return CheckedRun(untrusted, False, settled, (), decision.why, room, runs=runs)
    decision = decide(reading.plan, outcome, no_agreed_tests=baseline is not None and baseline.is_empty)
    shown = second if second is not None and (first.passed or decision.failed_in in ("whole", "both")) else first
    # What could not be compared explains a refusal, and nothing else.
    notes: tuple[str, ...] = ()
    if not decision.passed:
        notes = (*network_notes(shown, network), *session.reach_notes(shown, before.surroundings), *session.notes)
    why = "; ".join(filter(None, (decision.why, *notes)))
    room = _record(reading, decision, outcome.loss, runs, environment)
    if decision.passed:
        room = msgspec.structs.replace(room, signs=session.signs())
    return CheckedRun(shown, decision.passed, settled, (), why, room, runs=runs)


def _is_changed(reading: RoomReading) -> Callable[[str], bool]:
    """Whether the agent has changed a file, by its name in the project."""
    inside, names = reading.agreed.place.inside, {change.name for change in reading.plan.changes}
    return lambda name: posixpath.normpath(f"{inside}{name}") in names


def _record(
    reading: RoomReading,
    decision: Decision,
    loss: TestLoss,
    runs: Sequence[ReportedRun],
    environment: EnvironmentNow | None,
) -> RoomRun:
    plan = reading.plan
    found = RoomRun() if environment is None else environment.record
    return msgspec.structs.replace(
        found,
        tree=reading.basis.hash,
        files=digest_of([[name, *file] for name, file in sorted({**plan.agreed, **plan.whole}.items())]),
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
    now = None if run.report is None else with_older_ids(stored_outcomes(run.report.outcomes), before)
    return compare_outcomes(before, now, renamed)


def _renamed(reading: RoomReading, before: Mapping[str, Outcome], run: ReportedRun) -> Mapping[str, str]:
    """The tests that are called differently now, and are the same otherwise."""
    now = with_older_ids(stored_outcomes(run.report.outcomes), before) if run.report is not None else {}
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
