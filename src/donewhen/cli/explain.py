"""What a reason code means."""

from __future__ import annotations

import difflib

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.protocols import REASONS, ReasonCode


@click.command()
@click.argument("code", required=False)
@common_options
@click.pass_obj
def command(output: Output, code: str | None) -> ExitCode:
    """Explain CODE, or list every code with its meaning."""
    chosen = list(REASONS) if code is None else [_known(code)]
    for one in chosen:
        reason = REASONS[one]
        output.say(one, bold=True)
        output.say(f"  {reason.meaning}")
        output.say(f"  next: {reason.next_step}", dim=True)
    data = {one.value: REASONS[one]._asdict() for one in chosen}
    return output.finish(ExitCode.PASS, {"reasons": data})


def _known(code: str) -> ReasonCode:
    try:
        return ReasonCode(code)
    except ValueError:
        near = difflib.get_close_matches(code, [one.value for one in ReasonCode], 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"There is no reason code {code!r}.{hint}", next_step="donewhen explain") from None
