"""`donewhen learn`: learn guidance from labelled tickets."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click
import msgspec

from donewhen.cli._app import common_options
from donewhen.cli._executor import ChosenExecutor, executor_options, lost_workers
from donewhen.cli._learning_progress import LearningProgress
from donewhen.cli._missions import mission_argument
from donewhen.cli._output import Finding, Output
from donewhen.cli._unread_rules import exit_with_unread, note_unread, unread_findings
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.files import write_atomically
from donewhen.judging.mission import read_mission
from donewhen.judging.mission_options import with_options
from donewhen.learning.after.gates_after_run import GatesAfterRun
from donewhen.learning.after.learn_mission import LearnResult, learn
from donewhen.learning.running.run_folders import has_new_run, run_folders, run_to_resume
from donewhen.reports.learning_page import learning_page
from donewhen.reports.learning_text import learning_text


@click.command()
@mission_argument
@click.option("--resume", is_flag=True, help="Resume the newest run, if it was interrupted.")
@click.option("--run", "run_name", metavar="RUN", help="The run to resume (default: the newest).")
@click.option("--model", metavar="NAME", help="Use this model instead of the mission's.")
@click.option("--epochs", type=click.IntRange(1, 1000), help="Maximum number of epochs.")
@click.option("--seed", type=click.IntRange(0), help="Split the tickets with another seed.")
@click.option(
    "--trial", type=click.Choice(["on", "off"]), help="Whether a change needs a trial (default: the mission's setting)."
)
@click.option("--max-calls", type=click.IntRange(1), metavar="N", help="Maximum number of model calls of all kinds.")
@executor_options
@click.option(
    "--no-adopt", is_flag=True, help="Keep the result in the run's folder only; don't change the mission's guidance."
)
@click.option("--quiet", is_flag=True, help="Print no progress and no report, only errors.")
@common_options
@click.pass_obj
def command(
    output: Output,
    mission: Path,
    resume: bool,
    run_name: str | None,
    model: str | None,
    epochs: int | None,
    seed: int | None,
    trial: str | None,
    max_calls: int | None,
    no_adopt: bool,
    quiet: bool,
    executor: ChosenExecutor,
) -> ExitCode:
    """Learn the guidance of MISSION from its labelled tickets.

    The tickets are split by cluster into three parts: training, validation (each change must pass a trial on it), and
    test (judged only before and after learning).

    Every event is written to MISSION/runs at once. After Ctrl-C, --resume continues the run without repeating answered
    calls. The report is written to the run's folder, as HTML and JSON.

    What was learned becomes the guidance of the mission only if, on the validation tickets and on the test tickets, it
    is better than always saying the same and than the guidance before.

    Exit status: 1 if no answer of reflection was usable, if what was learned is not good enough, or if the model can't
    read a rule. The last is said before the run starts.
    """
    found = read_mission(mission)
    going_on = resume or run_name is not None
    changed = [value for value in (epochs, seed, trial, max_calls) if value is not None]
    if going_on and changed:
        raise UsageError("A resumed run keeps its settings; only --model and --executor can be changed.")
    folder = run_to_resume(found, run_name) if going_on else None
    tried = None if trial is None else trial == "on"
    found = with_options(found, model=model, epochs=epochs, seed=seed, trial=tried, calls=max_calls)
    earlier = run_folders(found)
    try:
        with LearningProgress(output, quiet=quiet) as watcher:
            opened = executor.open(found.settings.model)
            unread = note_unread(output, unread_findings(found, found.guidance(), opened))
            learned = learn(found, opened, watcher, resume=folder, adopting=not no_adopt)
    except KeyboardInterrupt:
        if folder is None and not has_new_run(found, earlier):
            message = "Interrupted before the run started."
            finding = Finding("interrupted", message, next=f"donewhen learn{_at(mission)}{executor.options}")
            return output.fail(ExitCode.INTERRUPTED, finding)
        again = f"donewhen learn{_at(mission)} --resume"
        again += f" --run {shlex.quote(run_name)}" if run_name is not None else ""
        again += f" --model {shlex.quote(model)}" if model is not None else ""
        again += executor.options
        again += " --no-adopt" if no_adopt else ""
        finding = Finding("interrupted", "Interrupted. All answers so far are kept.", next=again)
        return output.fail(ExitCode.INTERRUPTED, finding)
    if lost := lost_workers(opened):
        output.note(lost)
    page = learned.prepared.folder / "report.html"
    write_atomically(page, learning_page(learned.report).encode())
    if not quiet:
        for line in learning_text(learned.report, report_width()):
            output.say(line)
        _say_what_next(output, learned, page, mission)
        if learned.gates is not None:
            _say_what_gates_follow(output, learned.gates, mission)
    elif learned.problem is not None and not output.json:
        output.note(f"donewhen: {learned.problem}")
    return _finished(output, learned, page, unread)


def _at(mission: Path) -> str:
    """The mission as an argument for the next command; empty for the current folder."""
    return f" {shlex.quote(str(mission))}" if str(mission) != "." else ""


def _say_what_next(output: Output, learned: LearnResult, page: Path, mission: Path) -> None:
    place = _at(mission)
    output.say()
    if learned.problem is not None:
        output.say(f"! {learned.problem}", fg="yellow")
    elif learned.guidance is not None:
        output.say(f"The guidance of the mission is now at step {learned.guidance.step}.", bold=True)
        output.say(f"  what changed:  donewhen guidance diff{place}", dim=True)
        output.say(f"  undo it:       donewhen guidance rollback {learned.report.guidance_before}{place}", dim=True)
    output.say(f"  the report:    {page}", dim=True)


def _say_what_gates_follow(output: Output, gates: GatesAfterRun, mission: Path) -> None:
    if gates.newest:
        output.say(f"  the gates:     use this guidance (step {gates.step})", dim=True)
    else:
        output.say(f"  the gates:     still use step {gates.step}", dim=True)
        output.say(f"  accept it:     donewhen guidance accept{_at(mission)}", dim=True)


def _finished(output: Output, learned: LearnResult, page: Path, unread: list[Finding]) -> ExitCode:
    gates = learned.gates
    data = {
        "gates_follow": None if gates is None else {"step": gates.step, "newest": gates.newest},
        "run": learned.prepared.id,
        "status": learned.state.status,
        "adopted": learned.guidance is not None,
        "guidance_step": learned.state.guidance.step,
        "report": str(page),
        "summary": msgspec.to_builtins(learned.report),
    }
    status = learned.exit_code
    if not learned.adoption.accepted:
        message = f"The learned guidance was not adopted: {learned.adoption.reason}."
        finding = Finding("not_adopted", message, str(learned.prepared.folder), "Add labels, then: donewhen learn")
        if not output.json:
            output.fail(status, finding)
        return output.finish(status, data, [*unread, finding])
    if status is not ExitCode.PASS:
        message = "No reflection answer was usable, so nothing was learned."
        where = str(learned.prepared.folder / "reflections.jsonl")
        finding = Finding("no_usable_reflection", message, where, "Read the rejections there, or use another model.")
        if not output.json:
            output.fail(status, finding)
        return output.finish(status, data, [*unread, finding])
    problems = unread + ([Finding.of(learned.problem)] if learned.problem else [])
    return output.finish(exit_with_unread(status, unread), data, problems)


def report_width() -> int:
    """The width of a report on this terminal."""
    try:
        return max(60, min(110, os.get_terminal_size().columns))
    except OSError:
        return 100
