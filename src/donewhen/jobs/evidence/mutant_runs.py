"""Runs tests on small changes of the work: all of them in one process of pytest, or one command after another."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.jobs.evidence.probe_plugin import PluginReport, ProbePlan, plugin_folder, probing, report_in
from donewhen.jobs.evidence.probe_record import ChangedCode, MutantsTried, OtherOrder, SurvivingMutant, TestsAlone
from donewhen.jobs.evidence.probed_work import Mutant, ProbedRoom, ProbedWork
from donewhen.jobs.room.confining import usable_level
from donewhen.jobs.room.surroundings import Surroundings
from donewhen.mutation.doubt import CodeSigns, doubt

_MOST_SURVIVORS = 20
_START = 0.2
"""What starting the command takes of the time, at least."""
_GRACE = 5.0
NO_TIME = "there was no time for it"
_OTHER_RUNNER = "only tests of pytest are run alone and in another order"


@dataclass(frozen=True)
class Tried:
    """The parts of a record that one process gives."""

    code: ChangedCode
    mutants: MutantsTried
    alone: TestsAlone
    order: OtherOrder


def try_with_pytest(
    room: ProbedRoom, argv: Sequence[str], surroundings: Surroundings, work: ProbedWork, tests: int, seconds: float
) -> Tried:
    """Try mutants, single tests and another order, in one process that forks."""
    level = usable_level(surroundings.isolation, surroundings.network) if surroundings.private else "copy"
    plan = ProbePlan(
        seconds=max(0.1, seconds - _START),
        company=True,
        near=level != "copy",
        code=sorted(work.changed),
        files=list(work.reaching) or None,
        first=work.changed_tests,
    )
    with plugin_folder() as folder:
        around, kept = probing(surroundings, folder, plan, work.mutants)
        run = room.run(argv, around, seconds + _GRACE, {})
    raise_if_cancelled()
    report = report_in(run.result.output)
    if report is None:
        return not_tried(work, f"the tests could not be probed: {_ending(run.result.ending, run.result.exit_code)}")
    if not report.tests:
        return not_tried(work, "no test passed while it was watched, or there was no time for it")
    return tried_by_plugin(work, report, work.mutants[:kept], tests, compared=plan.near)


def tried_by_plugin(
    work: ProbedWork, report: PluginReport, mutants: Sequence[Mutant], tests: int, *, compared: bool
) -> Tried:
    """The report of the plug-in as parts of a record; ``tests`` are those that the command has in all."""
    verdicts = {mutants[int(number)]: verdict for number, verdict in report.mutants.items()}
    unloaded = tuple(dict.fromkeys(mutant.file for mutant, (how, _) in verdicts.items() if how == "not_loaded"))
    tried = {mutant: verdict for mutant, verdict in verdicts.items() if verdict[0] != "not_loaded"}
    survivors = {mutant: differs for mutant, (how, differs) in tried.items() if how == "survived"}
    differing = sum(bool(differs) for differs in survivors.values()) if compared and report.functions else None
    lone = [test for test, passed in report.alone if not passed]
    alone = TestsAlone(
        tried=len(report.alone),
        left_out=max(0, tests - len(report.alone)),
        only_in_company=tuple(lone),
        why="" if report.alone else "there is only one test" if tests == 1 else NO_TIME,
    )
    order = OtherOrder(why="there is only one test" if tests == 1 else NO_TIME, left_out=tests)
    if report.order is not None:
        order = OtherOrder(tried=report.tests, left_out=max(0, tests - report.tests), failing=tuple(report.order))
    found = _mutants(work, len(tried), survivors, report.tests, unloaded, differing)
    return Tried(_code(work, found, report.functions), found, alone, order)


def try_one_by_one(
    room: ProbedRoom,
    argv: Sequence[str],
    surroundings: Surroundings,
    work: ProbedWork,
    a_run: float,
    seconds: float,
) -> Tried:
    """Try mutants by running the whole command on each; ``a_run`` is how long that takes."""
    end = time.monotonic() + seconds
    survivors: dict[Mutant, bool | None] = {}
    tried = 0
    for mutant in work.mutants:
        left = end - time.monotonic()
        if left < a_run:
            break
        text = mutant.change.applied_to(work.changed[mutant.file])
        run = room.run(argv, surroundings, left, {f"{work.inside}{mutant.file}": text.encode()})
        raise_if_cancelled()
        if run.result.strain or (run.result.ending == "timed_out" and left < 3 * a_run):
            break
        tried += 1
        if run.passed:
            survivors[mutant] = None
    mutants = _mutants(work, tried, survivors, 0, (), None)
    return Tried(_code(work, mutants, ()), mutants, TestsAlone(why=_OTHER_RUNNER), OtherOrder(why=_OTHER_RUNNER))


def not_tried(work: ProbedWork, why: str) -> Tried:
    """Nothing was tried, and why."""
    mutants = MutantsTried(possible=len(work.mutants), left_out=len(work.mutants), why=_why_none(work) or why)
    return Tried(_code(work, mutants, ()), mutants, TestsAlone(why=why), OtherOrder(why=why))


def _mutants(
    work: ProbedWork,
    tried: int,
    survivors: Mapping[Mutant, bool | None],
    tests: int,
    unloaded: tuple[str, ...],
    differing: int | None,
) -> MutantsTried:
    # What answers differently somewhere is surely a change.
    shown = sorted(survivors, key=lambda mutant: (not survivors[mutant], mutant.file, mutant.change.line))
    return MutantsTried(
        possible=len(work.mutants),
        tried=tried,
        survived=len(survivors),
        left_out=sum(mutant.file not in unloaded for mutant in work.mutants) - tried,
        tests=tests,
        not_loaded=unloaded,
        differing=differing,
        survivors=tuple(_survivor(mutant) for mutant in shown[:_MOST_SURVIVORS]),
        why="" if tried else _why_none(work) or ("no test loads the changed files" if unloaded else NO_TIME),
    )


def _survivor(mutant: Mutant) -> SurvivingMutant:
    change = mutant.change
    original, changed = str(change).partition(": ")[2].split(" → ", 1) if " → " in str(change) else ("", "")
    return SurvivingMutant(file=mutant.file, line=change.line, original=original, changed=changed, kind=change.kind)


def _why_none(work: ProbedWork) -> str:
    if work.mutants:
        return ""
    if work.others and not work.changed:
        endings = sorted({f".{name.rpartition('.')[2]}" if "." in name else name for name in work.others})
        return f"there are no mutants for this language ({', '.join(endings[:3])})"
    return "the work changes no Python code that decides something"


def _code(work: ProbedWork, mutants: MutantsTried, functions: Sequence[tuple[int, int, int]]) -> ChangedCode:
    value = None
    if mutants.differing is not None and mutants.tried:
        large, failing = (sum(row[place] for row in functions) for place in (1, 2))
        signs = CodeSigns(len(work.mutants), mutants.tried, mutants.differing, large, failing)
        value = round(doubt(signs), 3)
    return ChangedCode(files=len(work.changed) + len(work.others), lines=work.lines, doubt=value)


def _ending(ending: str, exit_code: int | None) -> str:
    return "it timed out" if ending == "timed_out" else f"the command ended with exit status {exit_code}"
