"""`donewhen explain`: explain a reason code."""

from __future__ import annotations

import difflib

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.jobs.ledger.finding_codes import FINDINGS
from donewhen.jobs.ledger.gate_results import GATE_REASONS
from donewhen.learning.measuring.trial import MEANINGS as TRIALS
from donewhen.learning.reflection.rejections import MEANINGS as REJECTIONS
from donewhen.learning.reflection.unlearnable import MEANINGS as QUEUED
from donewhen.protocols import REASONS
from donewhen.protocols.reasons import Reason

_LEARNING: dict[str, Reason] = {
    **{code: Reason(meaning, "See reflections.jsonl in the run's folder.") for code, meaning in REJECTIONS.items()},
    **{code: Reason(meaning, "See trials.jsonl in the run's folder.") for code, meaning in TRIALS.items()},
    **{code: Reason(meaning, "See stop_gradient.jsonl in the run's folder.") for code, meaning in QUEUED.items()},
}
_CODES: dict[str, Reason] = _LEARNING | {
    str(code): reason for code, reason in (*GATE_REASONS.items(), *FINDINGS.items(), *REASONS.items())
}


@click.command()
@click.argument("code", required=False)
@common_options
@click.pass_obj
def command(output: Output, code: str | None) -> ExitCode:
    """Explain CODE, or list every code with its meaning."""
    chosen = list(_CODES) if code is None else [_known(code)]
    for name in chosen:
        reason = _CODES[name]
        output.say(name, bold=True)
        output.say(f"  {reason.meaning}")
        output.say(f"  next: {reason.next_step}", dim=True)
    return output.finish(ExitCode.PASS, {"reasons": {name: _CODES[name]._asdict() for name in chosen}})


def _known(code: str) -> str:
    if code in _CODES:
        return code
    near = difflib.get_close_matches(code, _CODES, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"There is no reason code {code!r}.{hint}", next_step="donewhen explain")
