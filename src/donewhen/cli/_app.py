"""All verbs by group. The file of a verb is imported when the verb is called."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from donewhen import __version__
from donewhen.cli._groups import FIRST, GROUPS, verb_in_group
from donewhen.cli._output import Output
from donewhen.foundation.current_command import name_command
from donewhen.foundation.errors import UsageError


class Verb(NamedTuple):
    """A verb: its module, its line in the help, and the command's name in that module."""

    module: str
    summary: str
    command: str = "command"


VERBS: dict[str, dict[str, Verb]] = {
    "Demo": {
        "demo": Verb("demo", "Show how an agent cheats and is refused, and a judge learns."),
    },
    "Check whether work is done": {
        "last": Verb("last", "Check what an agent claimed at the end of its last session."),
        "check": Verb("check", "Run checks: files exist, commands succeed, tests pass."),
        "baseline": Verb("baseline", "Record which tests exist, so that lost tests are found."),
    },
    "Jobs: agree on what done means": {
        "init": Verb("init", "Set donewhen up in this folder."),
        "uninit": Verb("uninit", "Remove donewhen from this folder."),
        "add": Verb("add", "Create a job."),
        "import": Verb("import_", "Create jobs from Backlog.md, spec-kit, OpenSpec or a feature list."),
        "agree": Verb("agree", "Seal what done means."),
        "contract": Verb("contract", "Show what was agreed, and what has changed since."),
        "decide": Verb("decide", "Record a decision: raise the budget, change stakes or target, cancel."),
        "key": Verb("key", "Manage keys for agreeing and signing."),
    },
    "Jobs: do the work": {
        "ready": Verb("plan_check", "List the jobs that can start now.", "ready_"),
        "start": Verb("start", "Start a job."),
        "lessons": Verb("lessons", "Record, find and answer lessons of earlier jobs."),
        "next": Verb("reward", "Show the next command for a job.", "next_"),
        "dispute": Verb("dispute", "Disagree with a refusal: a person decides."),
        "block": Verb("block", "Mark a job as blocked and record why."),
        "ask": Verb("ask", "Ask a person about a job, and wait."),
        "loop": Verb("loop", "Run an agent until a job is done, blocked, or out of budget."),
        "complete": Verb("complete", "Complete a job if all gates pass, and print the promise."),
        "promise": Verb("promise", "Check whether a promise is genuine."),
        "reward": Verb("reward", "Show the score of a job and what is missing.", "reward"),
    },
    "Jobs: evidence, review and audit": {
        "run": Verb("run", "Run the checks of a job and store the results as evidence."),
        "review": Verb("review", "Review what needs a person, with one key per verdict."),
        "sign-off": Verb("sign_off", "Sign off a criterion that is checked by hand."),
        "why": Verb("why", "Explain the evidence of a job: passed, stale, missing."),
        "status": Verb("status", "List all jobs with their status."),
        "log": Verb("log", "Show the ledger: what happened, and who did it."),
        "audit": Verb("audit", "Verify the ledger, the plan files and the evidence."),
        "verify": Verb("verify", "In CI: run the contract of the base branch on this branch."),
        "attest": Verb("attest", "Create or check a receipt that others can verify."),
        "anchor": Verb("anchor", "Store the ledger's heads in git notes."),
    },
    "Jobs: GitHub": {
        "github": Verb("github", "Mirror jobs to GitHub issues, and compare them."),
    },
    "Jobs: commands of the original tool": {
        "reward-eval": Verb("reward", "Same as reward.", "reward"),
        "truth-eval": Verb("reward", "Evaluate each criterion of a job.", "truth"),
        "plan-check": Verb("plan_check", "Check all plans together.", "check"),
        "job-complete": Verb("complete", "Same as complete."),
    },
    "Agents: hooks and tools": {
        "hooks": Verb("hooks", "Install the stop hooks in agent runtimes."),
        "hook": Verb("hook", "Answer a hook event (called by agent runtimes)."),
        "mcp": Verb("mcp", "Serve tools for agents over the Model Context Protocol."),
        "config": Verb("config", "Show the project's settings and their sources."),
    },
    "Judge: learn from people's verdicts": {
        "mission": Verb("mission", "Create a mission from labelled tickets, and check it."),
        "judge": Verb("judge", "Judge tickets: pass or fail."),
        "audit-mission": Verb("audit_mission", "Measure the judge on labelled tickets."),
        "learn": Verb("learn", "Learn guidance from labelled tickets."),
        "replay": Verb("replay", "Rebuild a run's guidance from its events and compare."),
        "guidance": Verb("guidance", "Show, compare and accept the rules of a judge."),
        "models": Verb("models", "List models, and fetch weights for the local one."),
    },
    "Pages": {
        "dashboard": Verb("dashboard", "Write the dashboard page and the task tracker."),
        "serve": Verb("serve", "Serve jobs, missions and the review queue in a browser."),
    },
    "Help and diagnosis": {
        "doctor": Verb("doctor", "Check whether donewhen works on this machine."),
        "explain": Verb("explain", "Explain a reason code and what to do about it."),
        "completion": Verb("completion", "Print the shell completion script."),
    },
}

_ALL = "--all"
_MODULES = {name: verb for group in VERBS.values() for name, verb in group.items()}


class LazyGroup(click.Group):
    """A click group that imports only the verb that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = _MODULES.get(cmd_name)
        if verb is None:
            return _group(cmd_name) if cmd_name in GROUPS else None
        module = import_module(f"donewhen.cli.{verb.module}")
        command: click.Command = (
            _passed_on(cmd_name, module.main) if cmd_name == "hook" else getattr(module, verb.command)
        )
        command.short_help = verb.summary
        if cmd_name in GROUPS and not command.epilog:
            command.epilog = f"Also in this group: {', '.join(GROUPS[cmd_name].verbs)}."
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        grouped = verb_in_group(args)
        if grouped is not None:
            args = [grouped[0], *grouped[1]]
        if args and args[0] not in _MODULES and args[0] not in GROUPS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], [*_MODULES, *GROUPS], 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"There is no command {args[0]!r}.{hint}", next_step="donewhen --help")
        ctx.find_object(Output).command = args[0] if args else "donewhen"  # type: ignore[union-attr]
        if args and args[0] in _MODULES:
            name_command(args[0], args[1:])
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # The help is printed while the arguments are parsed.
        ctx.meta[_ALL] = _ALL in args[: next((at for at, word in enumerate(args) if word in _MODULES), len(args))]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _MODULES))
        if ctx.meta.get(_ALL):
            for title, verbs in VERBS.items():
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(width), verb.summary) for name, verb in verbs.items()])
        else:
            for title, names in FIRST.items():
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(width), _MODULES[name].summary) for name in names])
        with formatter.section("Groups" if ctx.meta.get(_ALL) else "Groups, with all other verbs"):
            formatter.write_dl([(name.ljust(width), group.summary) for name, group in GROUPS.items()])
        if not ctx.meta.get(_ALL):
            formatter.write_paragraph()
            formatter.write_text("All verbs: donewhen --help --all. Those of a group can be called without its name.")


def _group(name: str) -> click.Group:
    """A group whose commands are all verbs: they are found before it is called, so it only has help."""
    commands = {
        each: click.Command(each, short_help=_MODULES[verb].summary) for each, verb in GROUPS[name].verbs.items()
    }
    return click.Group(name, commands, help=GROUPS[name].summary, short_help=GROUPS[name].summary)


def _passed_on(name: str, main: Callable[[list[str]], int]) -> click.Command:
    """A verb that parses its own arguments. It bypasses click unless options such as -C precede it."""
    context = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

    @click.pass_context
    def call(ctx: click.Context) -> int:
        return main(ctx.args)

    return click.Command(name, context_settings=context, callback=call)


def common_options(command: Any) -> Any:
    """Add the options that every verb has in common with ``donewhen`` itself."""
    for option in (
        click.option("--no-color", is_flag=True, expose_value=False, help="Print plain text, as with NO_COLOR."),
        click.option("--json", is_flag=True, expose_value=False, help="Print one JSON object on stdout."),
    ):
        command = option(command)
    return command


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 pass · 1 not done · 2 usage or configuration · 3 unverified or internal · 130 interrupted.",
)
@click.option(
    "-C",
    "--project",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Work in DIR instead of the current folder.",
)
@click.option("--all", is_flag=True, expose_value=False, help="With --help: show all verbs.")
@common_options
@click.version_option(__version__, "-V", "--version", message="donewhen %(version)s")
def app(directory: Path | None) -> None:
    """Nothing is done because somebody says so. It is done when the proof is there."""
    if directory is not None:
        os.chdir(directory)
