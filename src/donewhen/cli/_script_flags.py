"""Options of the original tool's scripts that have no counterpart here: accepted, and reported as ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from donewhen.cli._output import Output

F = TypeVar("F", bound=Callable[..., Any])

_SCRIPTS = ("reward-eval", "truth-eval", "plan-check", "job-complete")


def script_flags(*names: str, values: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Accept these flags, and the options in ``values`` with their value, under the names of the four scripts."""

    def decorate(command: F) -> F:
        for name in (*values, *names):
            command = click.option(
                name,
                is_flag=name in names,
                hidden=True,
                expose_value=False,
                callback=_ignore,
            )(command)
        return command

    return decorate


def _ignore(ctx: click.Context, param: click.Parameter, value: object) -> None:
    if not value:
        return
    name = param.opts[0]
    output = ctx.find_object(Output)
    called = output.command if output is not None else ctx.info_name
    if called not in _SCRIPTS:
        raise click.NoSuchOption(name, ctx=ctx)
    if output is not None:
        output.note(f"{name} is ignored: {_WHY[name]}")


_WHY = {
    "--cascade": "the last job of a workstream or project always completes it.",
    "--no-dashboard": "every command that writes updates the dashboard and the tracker.",
    "--no-open": "donewhen opens no page.",
    "--no-sync": "donewhen writes no tables into other plans.",
    "--out-json": "use --json, which prints the result on stdout.",
    "--out-md": "the scores are in the dashboard and the plans; --explain prints them.",
    "--strict": "every finding counts as an error.",
}
