"""`donewhen replay`: rebuild the guidance of a run from its events."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.judging.mission import read_mission
from donewhen.learning.after.replay import replay_run
from donewhen.learning.running.run_folders import EVENTS, find_run


@click.command()
@click.argument("run", required=False, metavar="[RUN]")
@click.option(
    "--mission",
    default=".",
    type=click.Path(path_type=Path),
    help="The mission's folder (default: the current folder).",
)
@common_options
@click.pass_obj
def command(output: Output, run: str | None, mission: Path) -> ExitCode:
    """Rebuild the guidance of RUN from its events, and compare it with the run's files.

    RUN is a run's name or folder (default: the newest run). No model is called. Exit status: 0 if they are the same,
    1 if they differ.
    """
    named = Path(run) if run is not None and (Path(run) / EVENTS).is_file() else None
    folder = named or find_run(read_mission(mission, code=False), run)
    found = replay_run(folder)
    for key, text in found.guidance.rules.items():
        output.say(f"  {key:<4} {text}")
    for difference in found.differences:
        output.say(f"✗ {difference}", fg="red")
    over = "" if found.finished else " The run has not ended."
    same = "the same guidance." if not found.differences else f"{len(found.differences)} difference(s)."
    output.say(f"{folder.name}: {found.events} events, step {found.guidance.step}: {same}{over}", bold=True)
    data = {
        "run": folder.name,
        "events": found.events,
        "finished": found.finished,
        "same": not found.differences,
        "guidance": found.guidance.as_file()[found.guidance.mission],
    }
    findings = [Finding("replay", difference, str(folder)) for difference in found.differences]
    return output.finish(ExitCode.GATE_FAILED if findings else ExitCode.PASS, data, findings)
