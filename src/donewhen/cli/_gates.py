"""Show the results of the gates and the score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.board.job_state import JobState
from donewhen.jobs.gates.evaluation import Evaluation
from donewhen.jobs.gates.score import TITLES, Score
from donewhen.jobs.lifecycle.promise import Promise
from donewhen.jobs.record.words_of_people import sentences


def show_promise(output: Output, promise: Promise) -> None:
    """Print the promise, and its receipt on the next line."""
    for line in promise.text.splitlines():
        output.promise(line)


def show_gates(output: Output, evaluation: Evaluation, *, done: bool = False) -> None:
    """Print one line per gate, then its reasons and, if it is closed, the next command.

    ``done``: the job is done and still valid, so that what closes a gate now is only older evidence.
    """
    if done and not evaluation.passed:
        closed = ", ".join(gate.gate for gate in evaluation.gates if not gate.passed)
        output.say("  ✓ done", fg="green", bold=True)
        output.say(f"  note: some of its evidence is older than the files are now ({closed})", dim=True)
        return
    for gate in evaluation.gates:
        mark, color = ("✓", "green") if gate.passed else ("✗", "red")
        note = f"  {gate.note}" if gate.note else ""
        output.say(f"  {mark} {gate.gate}{note}", fg=color, bold=True)
        for reason in gate.reasons:
            output.prose(f"      [{reason.code}] {reason.message}")
            for line in reason.details:
                output.say(f"        {line}", dim=True)
        if gate.next:
            output.say(f"      next: {gate.next}", dim=True)
    show_notes(output, evaluation.notes)


def show_notes(output: Output, notes: Sequence[str]) -> None:
    """Print what is worth knowing and closes no gate."""
    for note in notes:
        output.prose(f"  note: {note}", dim=True)


def show_words_of_people(output: Output, words: Sequence[str]) -> None:
    """Print what people have said about a job, for whoever works on it."""
    for sentence in sentences(words):
        output.prose(f"  {sentence}", fg="cyan")


def show_state(output: Output, state: JobState) -> None:
    """Print the state of a job with the code of the main reason, and the next step."""
    output.say(f"state: {state.word}{f' [{state.code}]' if state.code else ''}")
    output.say(f"next: {state.next}", bold=True)


def state_data(state: JobState) -> dict[str, Any]:
    """The state of a job as JSON data."""
    return {"state": state.word, "code": state.code, "next": state.next}


def exit_code(evaluation: Evaluation | None, passed: bool) -> ExitCode:
    """The exit status. A gate with an internal error is neither a pass nor a fail."""
    if evaluation is not None and evaluation.broken:
        return ExitCode.INTERNAL
    return ExitCode.PASS if passed else ExitCode.GATE_FAILED


def gate_findings(evaluation: Evaluation) -> list[Finding]:
    """One finding for each reason."""
    return [
        Finding(reason.code, reason.message, reason.where, gate.next)
        for gate in evaluation.gates
        for reason in gate.reasons
    ]


def evaluation_data(evaluation: Evaluation, state: JobState) -> dict[str, Any]:
    """An evaluation, and the state of the job after it, as JSON data."""
    return {
        "passed": evaluation.passed,
        "score": evaluation.score.total,
        "next_action": evaluation.next_action,
        "notes": list(evaluation.notes),
        **state_data(state),
        "gates": [
            {
                "gate": gate.gate,
                "passed": gate.passed,
                "note": gate.note,
                "next": gate.next,
                "reasons": [reason._asdict() for reason in gate.reasons],
            }
            for gate in evaluation.gates
        ],
    }


def show_score(output: Output, score: Score) -> None:
    """Print the score by component: points, maximum, reason."""
    for component in score.components:
        points = f"{component.got:g} of {component.possible}" if component.applies else "left out"
        output.say(
            f"  {TITLES[component.name].ljust(34)} {points.rjust(10)}  {component.why}", dim=not component.applies
        )
    for penalty in score.penalties:
        output.say(f"  {'penalty'.ljust(34)} {f'-{penalty.points}'.rjust(10)}  {penalty.why}", fg="red")
    output.say(f"  {'score'.ljust(34)} {str(score.total).rjust(10)}", bold=True)


def score_data(score: Score) -> dict[str, Any]:
    """The score as JSON data."""
    return {
        "total": score.total,
        "components": [component._asdict() for component in score.components],
        "penalties": [penalty._asdict() for penalty in score.penalties],
    }
