"""The command's verbs, grouped by what people want to do; a verb's file is imported when it is called."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from donewhen import __version__
from donewhen.cli._output import Output
from donewhen.foundation.errors import UsageError


class Verb(NamedTuple):
    """A verb's file in this folder, its line in the help, and the command's name in that file."""

    module: str
    summary: str
    command: str = "command"


VERBS: dict[str, dict[str, Verb]] = {
    "See it work": {
        "demo": Verb("demo", "Watch an agent cheat and be refused, and a judge learn."),
    },
    "Decide": {
        "check": Verb("check", "Is it done? Files exist, commands succeed, tests pass."),
        "baseline": Verb("baseline", "Record which tests exist, so that none gets lost."),
    },
    "Jobs: agree on what done means": {
        "init": Verb("init", "Make a project with jobs, here."),
        "add": Verb("add", "Make a job."),
        "import": Verb("import_", "Make jobs of what Backlog.md, spec-kit, OpenSpec or a feature list hold."),
        "agree": Verb("agree", "Seal what done means."),
        "contract": Verb("contract", "What was agreed, and what has changed since?"),
        "decide": Verb("decide", "Raise a budget, change stakes or target, cancel: on record."),
        "key": Verb("key", "Keys to agree and to sign with."),
    },
    "Jobs: do the work": {
        "ready": Verb("plan_check", "What can start now?", "ready_"),
        "start": Verb("start", "Begin a job."),
        "lessons": Verb("lessons", "What earlier jobs learned: keep it, find it, answer it."),
        "next": Verb("reward", "The one next thing to do.", "next_"),
        "dispute": Verb("dispute", "Disagree with a refusal: a person decides."),
        "block": Verb("block", "Set a job aside, with what is in the way."),
        "ask": Verb("ask", "Ask a person, and wait."),
        "loop": Verb("loop", "Run an agent until a job is done, blocked, or out of budget."),
        "complete": Verb("complete", "Is it done? Then promise it."),
        "promise": Verb("promise", "Is this promise real?"),
        "reward": Verb("reward", "The score, and what is missing.", "reward"),
    },
    "Jobs: show it": {
        "run": Verb("run", "Run what a job has to show, as evidence."),
        "review": Verb("review", "What needs a person; a verdict with one key."),
        "sign-off": Verb("sign_off", "A person's word for what no command can show."),
        "why": Verb("why", "What is shown, what is stale and why, what is missing?"),
        "status": Verb("status", "All jobs at a glance."),
        "log": Verb("log", "What happened, and by whose word."),
        "audit": Verb("audit", "Does the record hold?"),
        "verify": Verb("verify", "In CI: run what was agreed on the base branch again."),
        "attest": Verb("attest", "A receipt that others can read, and check."),
        "anchor": Verb("anchor", "Keep the ledger's heads in a second place."),
    },
    "Jobs: with others": {
        "github": Verb("github", "Mirror jobs to issues, and see where they differ."),
    },
    "Jobs: as the scripts of rewards.md call it": {
        "reward-eval": Verb("reward", "Same as reward.", "reward"),
        "truth-eval": Verb("reward", "Is it true, criterion by criterion?", "truth"),
        "plan-check": Verb("plan_check", "Is the plan as a whole sound?", "check"),
        "job-complete": Verb("complete", "Same as complete."),
    },
    "Hold agents back": {
        "hooks": Verb("hooks", "Let Claude Code and Codex ask before an agent stops."),
        "hook": Verb("hook", "Answer one event of a runtime (runtimes call this)."),
        "mcp": Verb("mcp", "Tools for agents, over the Model Context Protocol."),
        "config": Verb("config", "Show the project's settings, and where each came from."),
    },
    "Judge: learn from people's verdicts": {
        "mission": Verb("mission", "Make a mission from labelled tickets, and check it."),
        "judge": Verb("judge", "Pass or fail? Tickets in, verdicts out."),
        "audit-mission": Verb("audit_mission", "How good is the judge as it is?"),
        "learn": Verb("learn", "Learn guidance from labelled tickets."),
        "replay": Verb("replay", "Do the events of a run lead to its guidance?"),
        "guidance": Verb("guidance", "The rules that a judge follows, and how they came to be."),
        "models": Verb("models", "Which models can judge, and the weights of the local one."),
    },
    "See it on a page": {
        "dashboard": Verb("dashboard", "All jobs on one page that needs no server, and the task tracker."),
        "serve": Verb("serve", "Jobs, judges and what needs a person, in a browser."),
    },
    "Find your way": {
        "doctor": Verb("doctor", "Does donewhen work on this machine?"),
        "explain": Verb("explain", "What does a reason code mean, and what to do about it?"),
        "completion": Verb("completion", "Set up completion in your shell."),
    },
}

_MODULES = {name: verb for group in VERBS.values() for name, verb in group.items()}


class LazyGroup(click.Group):
    """A group that knows its verbs by name and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = _MODULES.get(cmd_name)
        if verb is None:
            return None
        module = import_module(f"donewhen.cli.{verb.module}")
        command: click.Command = (
            _passed_on(cmd_name, module.main) if cmd_name == "hook" else getattr(module, verb.command)
        )
        command.short_help = verb.summary
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _MODULES and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], _MODULES, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"There is no command {args[0]!r}.{hint}", next_step="donewhen --help")
        ctx.find_object(Output).command = args[0] if args else "donewhen"  # type: ignore[union-attr]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _MODULES))
        for title, verbs in VERBS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), verb.summary) for name, verb in verbs.items()])


def _passed_on(name: str, main: Callable[[list[str]], int]) -> click.Command:
    """A verb that reads its arguments itself. It is called without click, except behind options such as -C."""
    context = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

    @click.pass_context
    def call(ctx: click.Context) -> int:
        return main(ctx.args)

    return click.Command(name, context_settings=context, callback=call)


def common_options(command: Any) -> Any:
    """The options that every verb takes in the same sense as ``donewhen`` itself."""
    for option in (
        click.option("--no-color", is_flag=True, expose_value=False, help="Plain text (as does NO_COLOR)."),
        click.option("--json", is_flag=True, expose_value=False, help="One JSON envelope on standard output."),
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
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Work in DIR instead of the current folder.",
)
@common_options
@click.version_option(__version__, "-V", "--version", message="donewhen %(version)s")
def app(directory: Path | None) -> None:
    """Nothing is done because somebody says so. It is done when the proof is there."""
    if directory is not None:
        os.chdir(directory)
