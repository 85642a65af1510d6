"""`donewhen doctor`: check whether donewhen works on this machine, by trying it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from donewhen.adapters.diagnosis import Diagnosis, Health
from donewhen.cli._app import common_options
from donewhen.cli._imitation import show_imitations
from donewhen.cli._output import Finding, Output
from donewhen.doctor.hooks import hook_diagnoses
from donewhen.doctor.machine import MACHINE_CHECKS
from donewhen.doctor.project_settings import settings
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.errors import ExitCode

_MARKS: dict[Health, tuple[str, str | None]] = {"ok": ("✓", "green"), "note": ("·", None), "broken": ("✗", "red")}


@click.command()
@click.option("--no-clients", "no_clients", is_flag=True, help="Don't start the clients of agent runtimes.")
@common_options
@click.pass_obj
def command(output: Output, no_clients: bool) -> ExitCode:
    """Check what donewhen needs on this machine, and report what is missing.

    Where hooks are installed, their command lines are run with a test event. Then the runtime's own client is started,
    if it is on the PATH: in a scratch folder, with a scratch home and a dummy key, against a scripted model on this
    machine. It must be held. Other hooks for the same event run there, too.
    """
    with output.progress("checking"):
        found = [diagnosis for examine in (*MACHINE_CHECKS, settings) for diagnosis in _tried(examine)]
        found += _hooks(no_clients)
    width = max(len(diagnosis.name) for diagnosis in found)
    for diagnosis in found:
        mark, color = _MARKS[diagnosis.health]
        output.say(f"{mark} {diagnosis.name.ljust(width)}  {diagnosis.detail}", fg=color)
        if diagnosis.next:
            output.say(f"  {' ' * width}  next: {diagnosis.next}", dim=True)
    imitations = show_imitations(output, Path.cwd())
    broken = [diagnosis for diagnosis in found if diagnosis.health == "broken"]
    output.say()
    output.say(f"{len(broken)} problem(s) found." if broken else "Everything works.", bold=True)
    findings = [
        Finding(f"doctor_{diagnosis.name.replace(' ', '_').replace('-', '_')}", diagnosis.detail, next=diagnosis.next)
        for diagnosis in broken
    ]
    status = ExitCode.GATE_FAILED if broken else ExitCode.PASS
    data = {"diagnoses": [asdict(diagnosis) for diagnosis in found], "imitations": imitations}
    return output.finish(status, data, findings)


def _tried(examine: Callable[[], Diagnosis]) -> Sequence[Diagnosis]:
    try:
        return [examine()]
    except Exception as error:  # noqa: BLE001 - every failure is a diagnosis
        return [Diagnosis(examine.__name__, "broken", f"{type(error).__name__}: {error}")]


def _hooks(no_clients: bool) -> Sequence[Diagnosis]:
    try:
        return hook_diagnoses(Path.cwd(), CALLER_VARIABLES, start_clients=not no_clients)
    except Exception as error:  # noqa: BLE001 - as above
        return [Diagnosis("hooks", "broken", f"{type(error).__name__}: {error}")]
