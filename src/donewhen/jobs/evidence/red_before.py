"""Whether tests fail without the work, so that they show something about it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from donewhen.jobs.evidence.baselines import Baseline
from donewhen.jobs.evidence.probe_plugin import plugin_folder, running_only
from donewhen.jobs.evidence.probe_record import RedBefore, WasRed
from donewhen.jobs.evidence.probed_work import ProbedRoom, ProbedWork
from donewhen.jobs.evidence.test_ids import stored_outcomes
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.evidence.two_runs import is_test_of, tests_of
from donewhen.jobs.room.surroundings import Surroundings
from donewhen.test_reports.junit import Outcome
from donewhen.test_reports.test_runners import runner_of

Outcomes = Mapping[str, Outcome]
_MOST_NAMES = 50
_BAD: tuple[Outcome, ...] = ("failed", "errored")


def red_before(
    room: ProbedRoom,
    argv: Sequence[str],
    surroundings: Surroundings,
    work: ProbedWork,
    now: Outcomes,
    baseline: Baseline | None,
    seconds: float,
) -> RedBefore:
    """Run the new and changed tests on the agreed product, if it takes at most this many seconds."""
    if not work.undone:
        return RedBefore(why="the work changes nothing but tests")
    before = {} if baseline is None else baseline.outcomes
    candidates: tuple[str, ...] = ()
    if now:
        candidates = new_or_changed(before, now, work.old_tests, work.new_tests)
        if not candidates and (baseline is None or baseline.why):
            return RedBefore(why=baseline.why if baseline is not None else "the agreed tests were not run")
        if not candidates:
            return compared(before, now, candidates, None, work.changed_tests)
    with plugin_folder() as folder:
        around = surroundings
        if candidates and runner_of(argv).kind == "pytest":
            around = running_only(surroundings, folder, work.changed_tests)
        run = room.run(argv, around, seconds, work.undone)
    if run.result.ending == "timed_out":
        return RedBefore(why="it takes longer than there was time for")
    if not now:
        return without_ids(run)
    return compared(before, now, candidates, run, work.changed_tests)


def new_or_changed(before: Outcomes, now: Outcomes, old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, ...]:
    """The tests that pass now and did not exist, or whose code was another. ``old`` and ``new`` are the texts of the
    changed test files."""
    passed = [test for test, outcome in now.items() if outcome == "passed"]
    functions = {name: (_functions(old.get(name, "")), _functions(text)) for name, text in new.items()}
    return tuple(
        test
        for test in passed
        if test not in before
        or any(is_test_of(test, name) and _differs(test, *found) for name, found in functions.items())
    )


def compared(
    before: Outcomes, now: Outcomes, candidates: Collection[str], run: ReportedRun | None, files: Sequence[str]
) -> RedBefore:
    """What the agreed tests say about the agreed files, and the ``candidates`` in a run without the work."""
    red = [test for test, outcome in before.items() if outcome in _BAD and now.get(test) == "passed"]
    found = {} if run is None or run.report is None else stored_outcomes(run.report.outcomes)
    red += [test for test in candidates if found.get(test) in _BAD and test not in red]
    green = [test for test in candidates if found.get(test) == "passed"]
    missing = [test for test in candidates if test not in found]
    # A file that can't be loaded has no tests.
    unloaded = [name for name in files if tests_of(missing, (name,)) and not tests_of([*red, *green], (name,))]
    if run is not None and run.result.succeeded:
        unloaded = []
    outcome: WasRed
    if red:
        outcome = "yes"
    elif unloaded:
        outcome = "could_not_run"
    elif green:
        outcome = "no"
    else:
        outcome = "unknown" if candidates else "nothing_new"
    return RedBefore(
        outcome=outcome,
        red=tuple(red[:_MOST_NAMES]),
        green=tuple(green[:_MOST_NAMES]),
        could_not_run=tuple(unloaded[:_MOST_NAMES]),
        undoing_noticed="yes" if red or unloaded else "unknown" if outcome == "unknown" else "no",
        why="the new tests did not run without the work" if outcome == "unknown" else "",
    )


def without_ids(run: ReportedRun) -> RedBefore:
    """What a command says that names no tests."""
    if run.passed:
        return RedBefore(outcome="no", undoing_noticed="no", why="the command passes without the work, too")
    return RedBefore(
        outcome="yes", undoing_noticed="yes", why="the command fails without the work; it does not say which tests do"
    )


def _functions(text: str) -> dict[str, str]:
    """The code of each function, by its name."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found: dict[str, str] = {}
    for node in nodes:
        found[node.name] = found.get(node.name, "") + ast.dump(node)
    return found


def _differs(test: str, old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    name = test.rpartition("::")[2].partition("[")[0].partition(" ")[0]
    return old.get(name) != new.get(name) if name in new or name in old else True
