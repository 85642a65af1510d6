"""`donewhen last`: check what an agent claimed at the end of its last session."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import click

from donewhen.adapters.transcripts import newest_ending
from donewhen.claims.checking import Checked, Truth, check_claims
from donewhen.claims.finding import claims_in
from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.config import load
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.setup.test_commands import find_test_commands, is_runnable

_MARKS: dict[Truth, tuple[str, str | None]] = {"true": ("✓", "green"), "false": ("✗", "red"), "unknown": ("?", None)}


@click.command()
@common_options
@click.pass_obj
def command(output: Output) -> ExitCode:
    """Check what the agent claimed at the end of its last session in this folder.

    Needs no set-up. Reads the newest transcript of Claude Code or Codex for this folder, and lists what the agent said
    at the end: tests pass, files were written, work was committed. Each claim is checked now, with the test command of
    the settings or, without any, the one that is found. Commands that the transcript names are not run, and nothing is
    sent anywhere.

    Exit status 0: every claim is true. 1: one is not, or nothing was claimed. 3: one can't be checked.
    """
    root = Path.cwd().resolve()
    ending = newest_ending(root, CALLER_VARIABLES)
    if ending is None:
        raise UsageError(
            "There is no transcript of Claude Code or Codex for this folder.",
            where=str(root),
            next_step="Call this in the folder in which the agent was started.",
        )
    claims = claims_in(ending.text)
    output.say(f"{ending.title}, {ending.at[:16].replace('T', ' ')}", bold=True)
    output.say(f"  {ending.path}", dim=True)
    which = partial(shutil.which, path=CALLER_VARIABLES.get("PATH"))
    found = [command for command in find_test_commands(root, which) if is_runnable(root, command, which)]
    with output.progress("checking") as progress:
        checked = check_claims(root, claims, load(root), found, progress)
    for each in checked:
        mark, color = _MARKS[each.truth]
        output.say(f"{mark} “{one_line(each.claim.sentence, 200)}”", fg=color)
        output.say(f"    {each.why}")
    findings = [_finding(each) for each in checked if each.truth != "true"]
    if not claims:
        message = "The last message claims nothing that can be checked."
        findings.append(Finding("nothing_claimed", message, next="donewhen check"))
        output.say(message)
    false = sum(each.truth == "false" for each in checked)
    if claims:
        output.say()
        output.say(f"{false} of {len(claims)} claim(s) are not true.", bold=True)
    data = {
        "runtime": ending.runtime,
        "transcript": str(ending.path),
        "at": ending.at,
        "claims": [
            {
                "kind": each.claim.kind,
                "sentence": each.claim.sentence,
                "about": each.claim.about,
                "truth": each.truth,
                "why": each.why,
            }
            for each in checked
        ],
    }
    return output.finish(_status(checked), data, findings)


def _finding(checked: Checked) -> Finding:
    code = "claim_false" if checked.truth == "false" else "claim_unchecked"
    return Finding(code, checked.why, where=one_line(checked.claim.sentence, 200))


def _status(checked: list[Checked]) -> ExitCode:
    truths = {each.truth for each in checked}
    if "false" in truths or not truths:
        return ExitCode.GATE_FAILED
    return ExitCode.INTERNAL if "unknown" in truths else ExitCode.PASS
