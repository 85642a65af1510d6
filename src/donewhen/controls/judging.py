"""Whether the result of a test run can be trusted, by what it said while it ran and by its report. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from donewhen.controls.sent_lines import SentLines

SCRIPT = "script"
"""What a script that is no test runner connects as."""
Held = Literal["held", "none", "broken"]
Fault = Literal[
    "foreign", "ended_early", "exit_status", "must_fail", "must_pass", "turned", "report", "missing", "ended_by_work"
]


@dataclass(frozen=True)
class ControlsResult:
    """What the controls of a run say about it."""

    held: Held
    why: str = ""
    """Why there were none, or what is wrong."""
    faults: tuple[Fault, ...] = ()
    """What is wrong; for a run that failed also what would be wrong if it had passed."""
    ended_in: tuple[str, ...] = ()
    """For a script that something has ended: the files that were running then, relative to the working folder."""


NOT_ASKED = ControlsResult("none", "it runs no tests")
OTHER_RUNNER = ControlsResult("none", "its test runner takes none")


def judge_controls(lines: SentLines, exit_code: int, reported: Mapping[str, str] | None) -> ControlsResult:
    """Judge a run that ended with this exit status; ``reported`` are the outcomes in its report.

    A run that fails may end early and report what it likes, but a test that must fail does not pass in it either.
    """
    if not lines.started:
        return ControlsResult("none", "the test runner did not connect to the gate")
    faults = dict(_faults(lines, exit_code, reported))
    broken = faults if exit_code == 0 else {fault: why for fault, why in faults.items() if fault not in _IF_PASSED}
    if broken:
        return ControlsResult("broken", next(iter(broken.values())), tuple(faults), lines.ended_in)
    if lines.control_outcomes:
        return ControlsResult("held", "", tuple(faults))
    if lines.started == SCRIPT:
        return replace(NOT_ASKED, faults=tuple(faults), ended_in=lines.ended_in)
    without = lines.without[0] if lines.without else "no test ran that they could be built like"
    return ControlsResult("none", without, tuple(faults))


def judge_end(found: ControlsResult, is_work: Callable[[str], bool]) -> ControlsResult:
    """Judge what has ended a script that has passed; ``is_work`` says whether a file is part of the work."""
    ended = next((name for name in found.ended_in if is_work(name)), None)
    if ended is None or found.held == "broken":
        return found
    why = f"{ended}, which is part of the work, ended the script"
    return replace(found, held="broken", why=why, faults=(*found.faults, "ended_by_work"))


def compare_with_agreed(work: ControlsResult, agreed: ControlsResult) -> ControlsResult:
    """What controls say about a run with the work, if they say this about a run without it.

    Where the same is wrong without the work, the suite takes no controls, and the work is not to blame. Where they come
    out without the work, they must not be missing with it.
    """
    if work.held == "none" and agreed.held == "held":
        why = f"there were no controls ({work.why}), and with the agreed files alone there are"
        return replace(work, held="broken", why=why, faults=("missing",))
    same_end = bool(work.ended_in) and set(work.ended_in) <= set(agreed.ended_in)
    usual = {*agreed.faults, *(("ended_by_work",) if same_end else ())}
    if work.held == "broken" and set(work.faults) <= usual:
        why = f"the same happens with the agreed files alone: {work.why}"
        return replace(work, held="none", why=why, faults=())
    return work


def _faults(lines: SentLines, exit_code: int, reported: Mapping[str, str] | None) -> Iterator[tuple[Fault, str]]:
    succeeded = exit_code == 0
    for name, must in lines.controls.items():
        found = lines.control_outcomes.get(name)
        if found is None and not succeeded:
            continue
        how = _HOW.get(found or "", "was not reported")
        if must == "fail" and found != "failed":
            yield "must_fail", f"a test that must fail {how}"
        if must == "pass" and found != "passed":
            yield "must_pass", f"a test that must pass {how}"
    if lines.foreign:
        yield "foreign", "something in the run wrote to the stream that belongs to the gate"
    # Whoever was killed has no status of its own.
    if lines.exit_status is None and exit_code >= 0:
        what = "the script had reached its end" if lines.started == SCRIPT else "the test runner had finished"
        yield "ended_early", f"the process ended before {what}"
    if lines.exit_status and succeeded:
        what = "script" if lines.started == SCRIPT else "test runner"
        yield (
            "exit_status",
            f"the {what} wanted to end with exit status {lines.exit_status}, and the process ended with 0",
        )
    if lines.turned:
        number = len(lines.turned)
        yield "turned", f"{_tests(number)} failed, and then {'was' if number == 1 else 'were'} reported as passed"
    if reported is not None and lines.started != SCRIPT:
        yield from _disagreement(lines, reported.values())


def _disagreement(lines: SentLines, reported: Collection[str]) -> Iterator[tuple[Fault, str]]:
    failed, passed = lines.count("failed"), lines.count("passed")
    said_failed = sum(outcome in ("failed", "errored") for outcome in reported)
    said_passed = sum(outcome == "passed" for outcome in reported)
    if failed and not said_failed:
        yield "report", f"{_tests(failed)} failed while they ran, and the report has no failure"
    if said_passed > passed:
        yield "report", f"{_tests(passed)} passed while they ran, and the report says {said_passed}"


def _tests(number: int) -> str:
    return "1 test" if number == 1 else f"{number} tests"


_IF_PASSED: tuple[Fault, ...] = ("ended_early", "report")
"""What says nothing against a run that failed."""
_HOW = {"passed": "passed", "failed": "failed", "skipped": "was skipped"}
