"""`donewhen init`: set donewhen up in this folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.config.agent_runtimes import RUNTIMES_WITH_HOOKS
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.plan.creating import create_project

if TYPE_CHECKING:
    from donewhen.jobs.plan.workspace import Workspace
    from donewhen.setup.proof import Proof
    from donewhen.setup.proposal import Proposal
    from donewhen.setup.surroundings import Surroundings
    from donewhen.setup.test_commands import TestCommand
    from donewhen.setup.trial import Trial

_HOSTS = ("github", "gitlab")


def _runtime_options(verb: Any) -> Any:
    for runtime in reversed(RUNTIMES_WITH_HOOKS):
        help = f"Hold agents of {runtime.title} (default: those that are found)."
        verb = click.option(f"--{runtime.name}", runtime.name, is_flag=True, help=help)(verb)
    return verb


@click.command()
@_runtime_options
@click.option("--run", "commands", multiple=True, metavar="CMD", help="The check: a command (default: the tests).")
@click.option("--jobs", is_flag=True, help="Also create a project for jobs, and let the hooks check them.")
@click.option("--title", default="", help="Title of the project. Alone: create only the project.")
@click.option("--workstreams", is_flag=True, help="Create only a project, in a folder PJ-… with workstreams.")
@click.option("--ci", type=click.Choice(_HOSTS), help="Also write a CI file that runs the checks.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--dry-run", is_flag=True, help="Show the changes without making them, and run nothing.")
@common_options
@click.pass_obj
def command(
    output: Output,
    /,
    commands: tuple[str, ...],
    jobs: bool,
    title: str,
    workstreams: bool,
    ci: str | None,
    yes: bool,
    dry_run: bool,
    **runtimes: bool,
) -> ExitCode:
    """Set donewhen up in this folder: an agent may only stop if the tests pass.

    Looks for agent runtimes and for the test command, runs the tests once, shows the changes, and asks. Then it writes
    donewhen.toml, the hooks and a line in .gitignore, and proves that the hooks hold: a deliberately red check is
    refused. `donewhen uninit` takes everything back.

    \b
    donewhen init
    donewhen init --claude --run "pytest -q" --yes

    With --title or --workstreams alone it only creates a project for jobs:

    \b
    donewhen init --title "Shop"
    donewhen add "Log in with a password" \\
        --criterion "A wrong password is refused :: run python -m pytest -q" --output /src/login.py
    donewhen agree
    """
    chosen = tuple(name for name, given in runtimes.items() if given)
    only_project = bool(title or workstreams) and not (chosen or commands or jobs or ci or yes or dry_run)
    if workstreams and not only_project:
        raise UsageError("--workstreams creates a project in a folder of its own, so only --title goes with it.")
    if only_project:
        return _create_project(output, title, workstreams)
    return _set_up(output, chosen, commands, jobs=jobs or bool(title), title=title, ci=ci, yes=yes, dry_run=dry_run)


def _create_project(output: Output, title: str, workstreams: bool) -> ExitCode:
    workspace = create_project(Path.cwd(), title, form="big" if workstreams else "small")
    return output.finish(ExitCode.PASS, _show_project(output, workspace))


def _show_project(output: Output, workspace: Workspace) -> dict[str, Any]:
    project = workspace.project()
    output.say(f"{project.id}  {project.title}", bold=True)
    output.say(f"  {workspace.where(workspace.project_file)} and {workspace.folder.name}/ in {workspace.root}")
    output.say('  next: donewhen add "What has to be done"', dim=True)
    return {"project": project.id, "root": str(workspace.root), "form": workspace.form}


def _set_up(
    output: Output,
    chosen: tuple[str, ...],
    given: tuple[str, ...],
    *,
    jobs: bool,
    title: str,
    ci: str | None,
    yes: bool,
    dry_run: bool,
) -> ExitCode:
    from donewhen.foundation.process import split_command
    from donewhen.setup.applying import apply
    from donewhen.setup.proposal import SetupChoice, propose
    from donewhen.setup.surroundings import look_around
    from donewhen.setup.test_commands import given_command

    for text in given:
        split_command(text)
    here = look_around(Path.cwd(), CALLER_VARIABLES)
    asks = sys.stdin.isatty() and not output.json
    runs = (yes or asks) and not dry_run
    wanted = [given_command(text) for text in given]
    trials = _try(output, here, wanted) if runs else []
    commands = tuple(wanted) or _proposed(here, trials)
    choice = SetupChoice(chosen or here.runtimes, commands, jobs, title, "gitlab" if ci == "gitlab" else _github(ci))
    proposal = propose(here, choice, CALLER_VARIABLES)
    _show(output, here, proposal, trials)
    data = _data(proposal, trials)
    if proposal.nothing:
        output.say("Everything is set up already.", bold=True)
        return _prove(output, proposal, trials, data) if runs else output.finish(ExitCode.PASS, data)
    if dry_run:
        return output.finish(ExitCode.PASS, data)
    if not (yes or asks):
        message = "Nothing was written: nobody can be asked here."
        return _not_written(output, Finding("not_confirmed", message, next="Give --yes to write it."), data)
    if not yes and not click.confirm("Write this?", default=True, err=True):
        finding = Finding("not_confirmed", "Nothing was written.", next="donewhen init --help")
        return _not_written(output, finding, data, ExitCode.GATE_FAILED)
    workspace = apply(proposal, CALLER_VARIABLES)
    for change in proposal.changes:
        output.say(f"✓ {_name(change.path, proposal.root)}", fg="green")
    if workspace is not None:
        data |= _show_project(output, workspace)
    return _prove(output, proposal, trials, data)


def _github(ci: str | None) -> Any:
    return "github" if ci == "github" else None


def _try(output: Output, here: Surroundings, wanted: Sequence[TestCommand]) -> list[Trial]:
    """Run the commands once. One that was given and can't be started is an error."""
    from donewhen.setup.trial import first_that_starts, try_command

    if here.has_settings and here.settings.stop.has_checks:
        return []
    with output.progress("running the tests once"):
        if not wanted:
            return first_that_starts(here.root, here.commands)
        trials = [try_command(here.root, command) for command in wanted]
    for trial in trials:
        if not trial.can_start:
            raise UsageError(trial.feedback, where=trial.command.text, next_step="Correct the command of --run.")
    return trials


def _proposed(here: Surroundings, trials: Sequence[Trial]) -> tuple[TestCommand, ...]:
    """The command that could be started; without a trial, the first one that was found."""
    if trials:
        return (trials[-1].command,) if trials[-1].can_start else ()
    return here.commands[:1]


def _show(output: Output, here: Surroundings, proposal: Proposal, trials: Sequence[Trial]) -> None:
    from donewhen.setup.proposal import diff_of

    names = ", ".join(target.title for target, _ in proposal.hooks)
    output.say(f"Agents: {names}")
    for command in proposal.choice.commands:
        output.say(f"Check:  {command.text}{f'  (found: {command.found})' if command.found else ''}")
    for trial in trials:
        mark, color = ("✓", "green") if trial.passed else ("✗", "red")
        output.say(f"  {mark} run once: {one_line(trial.feedback, 300)}", fg=color)
    others = [command.text for command in here.commands if command not in proposal.choice.commands]
    if others and not proposal.choice.commands:
        output.say(f"  found, but can't be started: {', '.join(others)}", dim=True)
    elif others and any(command.found for command in proposal.choice.commands):
        output.say(f"  also found: {', '.join(others)} (choose with --run)", dim=True)
    if not proposal.choice.jobs and not here.settings.stop.jobs:
        output.say("Jobs:   none, only the guard (with jobs: --jobs)")
    if here.host and proposal.choice.ci is None:
        output.say(f"CI:     unchanged (to write a CI file: --ci {here.host})")
    for note in proposal.notes:
        output.say(f"note: {note}")
    scripts = {script.path for _, (_, script) in proposal.hooks}
    for change in proposal.changes:
        output.say()
        if change.path in scripts:
            output.say(f"+++ {_name(change.path, proposal.root)}  (the script that passes an event to donewhen)")
            continue
        for line in diff_of(change, proposal.root):
            output.say(line, fg="green" if line.startswith("+") else "red" if line.startswith("-") else None)
    output.say()


def _prove(output: Output, proposal: Proposal, trials: Sequence[Trial], data: dict[str, Any]) -> ExitCode:
    """Let the installed hooks refuse a red check, and show it."""
    from donewhen.setup.proof import prove

    with output.progress("trying the hooks with a red check"):
        proofs = [prove(target, proposal.root, CALLER_VARIABLES) for target, _ in proposal.hooks]
    findings: list[Finding] = []
    for (target, _), proof in zip(proposal.hooks, proofs, strict=True):
        findings += _show_proof(output, target.title, proof)
        for notice in (target.notice, target.project_notice):
            if notice:
                output.say(f"  note: {notice}")
    data["proofs"] = [asdict(proof) for proof in proofs]
    if findings:
        return output.finish(ExitCode.GATE_FAILED, data, findings)
    output.say()
    output.say("Set up. From now on these agents may only stop if the check passes.", bold=True)
    if not all(trial.passed for trial in trials):
        output.say("  The check fails now, so an agent would be held.", fg="yellow")
    output.say("  donewhen doctor also tries the real clients; donewhen uninit takes everything back.", dim=True)
    return output.finish(ExitCode.PASS, data)


def _show_proof(output: Output, title: str, proof: Proof) -> list[Finding]:
    if proof.proven:
        output.say(f"✓ {title}: a red check was held, and let go when it was green. The agent was told:", fg="green")
        for line in proof.reason.splitlines():
            output.say(f"    {line}", dim=True)
        return []
    what = "was not let go when the check was green" if proof.held else "was not held by a red check"
    message = f"{title} {what}: {one_line(proof.reason, 300)}"
    output.say(f"✗ {message}", fg="red")
    return [Finding("not_proven", message, next="donewhen doctor")]


def _not_written(output: Output, finding: Finding, data: dict[str, Any], status: ExitCode = ExitCode.USAGE) -> ExitCode:
    if not output.json:
        output.note(f"donewhen: {finding.message}")
        output.note(f"  next: {finding.next}")
    return output.finish(status, data, [finding])


def _data(proposal: Proposal, trials: Sequence[Trial]) -> dict[str, Any]:
    from donewhen.setup.proposal import diff_of

    return {
        "root": str(proposal.root),
        "runtimes": list(proposal.choice.runtimes),
        "commands": [command.text for command in proposal.choice.commands],
        "trials": [
            {"command": trial.command.text, "passed": trial.passed, "feedback": trial.feedback} for trial in trials
        ],
        "changes": [{"path": str(change.path), "diff": diff_of(change, proposal.root)} for change in proposal.changes],
        "notes": list(proposal.notes),
    }


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
