"""Whether a run can be trusted: what its controls say, compared with what they say without the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from donewhen.controls.judging import NOT_ASKED, ControlsResult, compare_with_agreed, judge_end
from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.ledger.entry_content import RunControls

HELD = "held"


@dataclass
class AgreedControls:
    """What controls say about a command with the agreed files alone."""

    known: str
    """``held``, or why they tell nothing, as it was recorded; empty if it was not."""
    run: Callable[[], ReportedRun]
    """Run the command with the agreed files alone."""
    is_work: Callable[[str], bool]
    """Whether a file is part of the work; names are relative to the project."""

    def compare(self, run: ReportedRun) -> ReportedRun:
        """A run with the work, with its controls as they are to be understood.

        The command runs again without the work only if that matters: a suite that takes no controls would otherwise
        never pass, and one that took them before must not be without them.
        """
        if not run.seems_passed:
            return run
        run = replace(run, controls=judge_end(run.controls, self.is_work))
        held = run.controls.held
        if held == "held" or (held == "none" and self.known != HELD):
            return run
        return replace(run, controls=compare_with_agreed(run.controls, self._now))

    @cached_property
    def _now(self) -> ControlsResult:
        try:
            run = self.run()
        except DonewhenError as error:
            return ControlsResult("none", error.message)
        return ControlsResult("none", "it ran out of time") if run.result.strain else run.controls


def without_controls(run: ReportedRun) -> ReportedRun:
    """A run on which nothing is decided but whether a person is asked."""
    return replace(run, controls=ControlsResult("none", "a person decides about the changes that it needs"))


def untrusted_text(run: ReportedRun) -> str:
    """Why a run that seems to have passed is no evidence; empty if it is."""
    return f"the run can't be trusted: {run.controls.why}" if run.seems_passed and not run.is_trusted else ""


def recorded_controls(run: ReportedRun) -> RunControls | None:
    """What is recorded about the controls of a run; None if there is nothing to say."""
    found = run.controls
    if (found.held == "none" and found.why == NOT_ASKED.why) or (found.held == "broken" and not run.seems_passed):
        return None
    return RunControls(held=found.held, why=found.why, faults=list(found.faults))
