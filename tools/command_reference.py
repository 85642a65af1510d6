"""Generate docs/reference/cli.md from the commands, and reasons.md from the reason codes."""

from __future__ import annotations

import contextlib
import inspect
import io
import re

import click

from donewhen.cli import main
from donewhen.cli._app import VERBS, app
from donewhen.cli._groups import GROUPS
from donewhen.cli._output import SCHEMA
from donewhen.jobs.ledger.finding_codes import FINDINGS
from donewhen.jobs.ledger.gate_results import GATE_REASONS
from donewhen.protocols import REASONS, ReasonCode


def cli_page() -> str:
    """Return the page with every command, its arguments and its options."""
    context = click.Context(app, info_name="donewhen", **app.context_settings)
    lines = [
        "# Command reference",
        "",
        "```text",
        _usage(app, context),
        "```",
        "",
        _help(app.help),
        "",
    ]
    for title, verbs in VERBS.items():
        lines += [f"**{title}**", ""]
        lines += [f"- [`donewhen {name}`](#donewhen-{name}): {verb.summary}" for name, verb in verbs.items()]
        lines.append("")
    lines += [
        "**Groups**",
        "",
        "`donewhen --help` shows the verbs of every day, and four groups with the others. A verb of a group can be",
        "called with or without its name: `donewhen prove verify` is `donewhen verify`.",
        "",
        *(
            f"- `donewhen {name}`: {', '.join(f'`{each}`' for each in group.verbs)}. {group.summary}"
            for name, group in GROUPS.items()
        ),
        "",
        "## Options of every command",
        "",
        "`-C`, `--all` and `--version` go before the command, the others before or after it.",
        "",
        *_options(app, context, without=set()),
        "",
        "The environment variable `NO_COLOR` has the same effect as `--no-color`. With `DONEWHEN_DEBUG=1`, internal",
        "errors print a traceback.",
        "",
        _help(app.epilog),
        "See [errors and exit statuses](errors.md).",
        "",
        "## The JSON envelope",
        "",
        f"With `--json`, standard output is one JSON object. Its `schema` is `{SCHEMA}` for every command.",
        "",
        "| key | value |",
        "| --- | --- |",
        "| `schema` | the version of this envelope |",
        "| `command` | the name of the command |",
        "| `ok` | true exactly when the exit status is 0 |",
        "| `data` | the result; its content depends on the command |",
        "| `findings` | the list of problems, each with `code`, `message`, `where` and `next` |",
        "",
    ]
    for verbs in VERBS.values():
        for name in verbs:
            command = app.get_command(context, name)
            if command is not None:
                lines += _command(command, click.Context(command, context, info_name=name, **command.context_settings))
    return "\n".join(lines)


def _command(command: click.Command, context: click.Context) -> list[str]:
    lines = [f"{'#' * len(context.command_path.split())} {context.command_path}", ""]
    if not command.help:
        # This command does not use click, so its help is taken from its output.
        return [*lines, "```text", _printed([*context.command_path.split()[1:], "--help"]), "```", ""]
    lines += ["```text", _usage(command, context), "```", "", _help(command.help), ""]
    own = _options(command, context, without={"--json", "--no-color", "--help"})
    lines += [*own, ""] if own else []
    lines += [_help(command.epilog), ""] if command.epilog else []
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                lines += _command(below, click.Context(below, context, info_name=name, **below.context_settings))
    return lines


def _printed(arguments: list[str]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        main(arguments)
    return output.getvalue().strip()


def _usage(command: click.Command, context: click.Context) -> str:
    return " ".join([context.command_path, *command.collect_usage_pieces(context)])


def _help(text: str | None) -> str:
    """Convert help to Markdown; a paragraph that is preformatted for click becomes a text block."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text or "")):
        preformatted = paragraph.startswith("\b")
        body = inspect.cleandoc(paragraph.removeprefix("\b").strip("\n"))
        parts.append(f"```text\n{body}\n```" if preformatted else " ".join(body.split()))
    return "\n\n".join(parts)


def _options(command: click.Command, context: click.Context, *, without: set[str]) -> list[str]:
    rows = []
    for param in command.get_params(context):
        if not isinstance(param, click.Option) or param.hidden or without.intersection(param.opts):
            continue
        value = "" if param.is_flag else f" {param.metavar or param.type.name.upper()}"
        names = ", ".join(f"`{name}{value}`" for name in param.opts)
        remarks = [param.help or ""]
        remarks += ["Required."] if param.required else []
        remarks += ["Can be given several times."] if param.multiple else []
        remarks += [f"Default: {param.default:g}."] if isinstance(param.default, float) and param.show_default else []
        rows.append(f"| {names} | {' '.join(filter(None, remarks))} |")
    return ["| option | meaning |", "| --- | --- |", *rows] if rows else []


def reasons_page() -> str:
    """Return the page with every reason code, its meaning and the next step."""
    lines = [
        "# Reason codes",
        "",
        "A reason code says why something is not done. donewhen's own checkers use only these codes; your own checkers",
        "may omit the code. `donewhen explain CODE` prints the same on the command line.",
        "",
        "*Undecided* marks the codes of a check that could not be made. Such a check says nothing about the work, good",
        "or bad, so `Not` does not turn it into a pass. *Broken* marks a check that has an error itself: then",
        "`donewhen check` ends with exit status 3, and a run that ends there has the status `errored`.",
        "",
        "| code | meaning | what to do | |",
        "| --- | --- | --- | --- |",
    ]
    for code, reason in REASONS.items():
        lines.append(f"| `{code.value}` | {reason.meaning} | {_code_in(reason.next_step)} | {_kind(code)} |")
    lines += [
        "",
        "## Gates of jobs",
        "",
        "Why a gate is closed, as shown by `donewhen complete`, `start`, `next` and `truth-eval`.",
        "",
        "| code | meaning | what to do |",
        "| --- | --- | --- |",
    ]
    for gate, reason in GATE_REASONS.items():
        lines.append(f"| `{gate.value}` | {reason.meaning} | {_code_in(reason.next_step)} |")
    lines += [
        "",
        "## Findings about jobs",
        "",
        "Problems that the commands for jobs report. There are no other codes.",
        "",
        "| code | meaning | what to do |",
        "| --- | --- | --- |",
    ]
    for finding, reason in FINDINGS.items():
        lines.append(f"| `{finding.value}` | {reason.meaning} | {_code_in(reason.next_step)} |")
    return "\n".join([*lines, ""])


def _kind(code: ReasonCode) -> str:
    return "broken" if code.is_error else "undecided" if code.undecided else ""


def _code_in(text: str) -> str:
    """Format the commands in a sentence as code."""
    verbs = "baseline|agree|contract diff|run|why|sign-off|anchor|decide|start|ready|complete|reward|audit"
    names = rf"donewhen (?:{verbs})\b[^;,.]*|HostFilesystem\('\.'\)|\{{junit\w*\}}|check_timeout"
    return re.sub(f"({names})", r"`\1`", text)
