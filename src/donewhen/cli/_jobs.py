"""Shared by the verbs for jobs: find the project, ask for approval."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.jobs.ledger.approval import Approval, is_at_terminal
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.ledger.person_check import approve_as_ci, approve_in_person, approve_with_key
from donewhen.jobs.plan.workspace import Workspace, find_workspace

F = TypeVar("F", bound=Callable[..., Any])

PASSPHRASE = "DONEWHEN_PASSPHRASE"  # noqa: S105 - the name of the variable


def project_option(command: F) -> F:
    """Add ``--project DIR``."""
    return click.option(
        "--project",
        "project",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="DIR",
        help="Project folder (default: found from the current folder upwards).",
    )(command)


def job_argument(command: F, *, optional: bool = False) -> F:
    """Add JOB, or ``--work-item-id JOB`` as in the original tool; if ``optional``, no JOB means all jobs."""

    @functools.wraps(command)
    def call(*arguments: Any, job: str | None, work_item_id: str | None, **options: Any) -> Any:
        if (job is None) == (work_item_id is None) and not (optional and job is None):
            raise UsageError("Name one job.", next_step="donewhen status")
        return command(*arguments, job=job or work_item_id, **options)

    option = click.option("--work-item-id", metavar="JOB", help="Same as JOB, for scripts of the original tool.")
    return cast(F, click.argument("job", required=False)(option(call)))


def approver_options(command: F) -> F:
    """Add the options to approve with a key or as CI."""
    key = click.option(
        "--key",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Sign with this key (donewhen's or SSH). The passphrase is read from {PASSPHRASE}, or asked for.",
    )
    ci = click.option("--ci", is_flag=True, help="Approve as CI, if the sealed contract allows it.")
    return key(ci(command))


def find_project(project: Path | None) -> Workspace:
    """The project in this folder, or in the nearest folder above the current one."""
    return find_workspace(Path.cwd() if project is None else project)


def ask_for_approval(output: Output, what: str, *, key: Path | None, ci: bool) -> Approval | None:
    """Establish who approves; None if a person was asked and declined."""

    def on_agent(reason: str) -> None:
        output.note(f"Recorded as an agent's action, which has no effect: {reason}.")

    if key is not None and ci:
        raise UsageError("Give either --key or --ci, not both.")
    if key is not None:
        variable = PASSPHRASE if PASSPHRASE in os.environ else None
        return approve_with_key(key, lambda: passphrase_for(key), variable=variable, on_agent=on_agent)
    if ci:
        return approve_as_ci()

    def ask(word: str) -> str:
        output.note(f"To {what}, type {word} and press Enter. Anything else changes nothing.")
        typed: str = click.prompt("word", prompt_suffix=": ", default="", show_default=False, err=True)
        return typed

    return approve_in_person(ask, on_agent)


def not_confirmed(output: Output, outcome: str, code: FindingCode = FindingCode.NOT_DECIDED) -> ExitCode:
    """Report that a person typed another word. ``outcome`` says what did not happen."""
    return output.fail(ExitCode.GATE_FAILED, Finding(code, f"The word didn't match. {outcome}"))


def uncounted_finding(approval: Approval, what: str, next_step: str) -> Finding:
    """The finding about an approval that was recorded without effect; ``what`` is an approval, a decision, …"""
    reason = f": {approval.why}" if approval.why else ""
    message = f"It was recorded for {approval.by.name} ({approval.by.kind}), whose {what} does not count here{reason}."
    return Finding(FindingCode.APPROVER, message, next=next_step)


def passphrase_for(path: Path, *, confirm: bool = False) -> str:
    """The passphrase of a key, from the environment or typed."""
    given = os.environ.get(PASSPHRASE)
    if given is not None:
        return given
    if not is_at_terminal():
        raise UsageError(f"The key needs its passphrase: type it at a terminal, or set {PASSPHRASE}.", where=str(path))
    typed: str = click.prompt("passphrase", prompt_suffix=": ", hide_input=True, err=True, confirmation_prompt=confirm)
    return typed
