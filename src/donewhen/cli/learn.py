"""`donewhen learn`: learn guidance from labelled tickets."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from donewhen.cli._app import common_options
from donewhen.cli._executor import ChosenExecutor, executor_options, lost_workers
from donewhen.cli._learning_progress import LearningProgress
from donewhen.cli._missions import mission_argument
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import DonewhenError, ExitCode, UsageError
from donewhen.foundation.files import write_atomically
from donewhen.jobs.contract.agreement import project_agreement
from donewhen.jobs.judge.missions import accept_guidance, accepted_guidance, gate_mission_name
from donewhen.jobs.ledger.approval import Approval, unproved_actor
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.judging.mission import Mission, read_mission
from donewhen.judging.mission_settings import Trial
from donewhen.learning.after.learn_mission import LearnResult, learn
from donewhen.learning.running.events import first_event
from donewhen.learning.running.run_folders import EVENTS, find_run, is_over, run_folders, unfinished_run
from donewhen.learning.running.run_state import initial_guidance_of
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
    """
    found = read_mission(mission)
    going_on = resume or run_name is not None
    changed = [value for value in (epochs, seed, trial, max_calls) if value is not None]
    if going_on and changed:
        raise UsageError("A resumed run keeps its settings; only --model and --executor can be changed.")
    folder = _cut_off(found, run_name) if going_on else None
    found = _with_options(found, model, epochs, seed, trial, max_calls)
    earlier = run_folders(found)
    try:
        with LearningProgress(output, quiet=quiet) as watcher:
            opened = executor.open(_model(found, model))
            learned = learn(found, opened, watcher, resume=folder, adopting=not no_adopt)
    except KeyboardInterrupt:
        if folder is None and not _has_begun(found, earlier):
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
    followed = _followed(found, learned)
    page = learned.prepared.folder / "report.html"
    write_atomically(page, learning_page(learned.report).encode())
    if not quiet:
        for line in learning_text(learned.report, report_width()):
            output.say(line)
        _say_what_next(output, learned, page, mission)
        if followed is not None:
            _say_what_gates_follow(output, followed, mission)
    elif learned.problem is not None and not output.json:
        output.note(f"donewhen: {learned.problem}")
    return _finished(output, learned, page, followed)


def _cut_off(mission: Mission, name: str | None) -> Path:
    if name is not None:
        return find_run(mission, name)
    folder = unfinished_run(mission)
    if folder is None:
        newest = find_run(mission, None)
        over = " It has ended." if is_over(newest) else ""
        raise UsageError(
            f"There is no interrupted run. The newest run is {newest.name}.{over}", next_step="donewhen learn"
        )
    return folder


def _has_begun(mission: Mission, earlier: tuple[Path, ...]) -> bool:
    """Whether a newer run has recorded events."""
    return any(first_event(folder / EVENTS) is not None for folder in run_folders(mission) if folder not in earlier)


def _at(mission: Path) -> str:
    """The mission as an argument for the next command; empty for the current folder."""
    return f" {shlex.quote(str(mission))}" if str(mission) != "." else ""


def _with_options(
    mission: Mission, model: str | None, epochs: int | None, seed: int | None, trial: str | None, calls: int | None
) -> Mission:
    settings = mission.settings
    given: dict[str, Any] = {"model": model, "epochs": epochs, "seed": seed}
    settings = msgspec.structs.replace(settings, **{name: value for name, value in given.items() if value is not None})
    if trial == "off":
        settings = msgspec.structs.replace(settings, trial="off")
    elif trial == "on" and settings.trial == "off":
        settings = msgspec.structs.replace(settings, trial=Trial())
    if calls is not None:
        settings = msgspec.structs.replace(settings, budget=msgspec.structs.replace(settings.budget, calls=calls))
    return mission._replace(settings=settings)


def _model(mission: Mission, model: str | None) -> str:
    return model or mission.settings.model


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


class Followed(NamedTuple):
    """The step that the gates of a project use after a run."""

    step: int
    newest: bool


def _followed(mission: Mission, learned: LearnResult) -> Followed | None:
    """The step that the gates use now. If the contract allows it, guidance that passed its trials is accepted."""
    try:
        workspace = find_workspace(mission.folder)
        name = gate_mission_name(workspace, mission)
    except DonewhenError:
        return None
    if name is None:
        return None
    guidance = learned.guidance
    if guidance is not None and workspace.settings().judge.trial_accepts and _was_tried(workspace, name, learned):
        # Without an agreed `judge.trial_accepts`, the entry has no effect.
        accept_guidance(workspace, name, mission, guidance, Approval(unproved_actor()), run=learned.prepared.id)
    known = accepted_guidance(workspace, name, mission)
    return Followed(known.step, known.hash == mission.guidance().hash)


def _was_tried(workspace: Workspace, name: str, learned: LearnResult) -> bool:
    """Whether the trials of a run cover all of its guidance.

    They do if it started from the guidance that the gates use, and used the agreed model and trial settings.
    """
    agreed = read_mission(learned.prepared.mission.folder, code=False)
    ran = learned.prepared.mission.settings
    began = initial_guidance_of(learned.prepared.manifest)
    return (
        ran.trial != "off"
        and (ran.model, ran.trial) == (agreed.settings.model, agreed.settings.trial)
        and began.hash == accepted_guidance(workspace, name, agreed).hash
        and project_agreement(workspace, workspace.project()).state == "agreed"
    )


def _say_what_gates_follow(output: Output, followed: Followed, mission: Path) -> None:
    if followed.newest:
        output.say(f"  the gates:     use this guidance (step {followed.step})", dim=True)
    else:
        output.say(f"  the gates:     still use step {followed.step}", dim=True)
        output.say(f"  accept it:     donewhen guidance accept{_at(mission)}", dim=True)


def _finished(output: Output, learned: LearnResult, page: Path, followed: Followed | None) -> ExitCode:
    data = {
        "gates_follow": None if followed is None else followed._asdict(),
        "run": learned.prepared.id,
        "status": learned.state.status,
        "adopted": learned.guidance is not None,
        "guidance_step": learned.state.guidance.step,
        "report": str(page),
        "summary": msgspec.to_builtins(learned.report),
    }
    if learned.state.status == "no_usable_reflection":
        message = "No reflection answer was usable, so nothing was learned."
        where = str(learned.prepared.folder / "reflections.jsonl")
        finding = Finding("no_usable_reflection", message, where, "Read the rejections there, or use another model.")
        if not output.json:
            output.fail(ExitCode.GATE_FAILED, finding)
        return output.finish(ExitCode.GATE_FAILED, data, [finding])
    return output.finish(ExitCode.PASS, data, [Finding.of(learned.problem)] if learned.problem else [])


def report_width() -> int:
    """The width of a report on this terminal."""
    try:
        return max(60, min(110, os.get_terminal_size().columns))
    except OSError:
        return 100
