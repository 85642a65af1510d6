"""`donewhen guidance`: show, compare, export and accept the rules of a judge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import approver_options, ask_for_approval, not_confirmed, uncounted_finding
from donewhen.cli._missions import harmless_json, mission_argument
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.files import write_atomically
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.judge.guidance_decisions import (
    accept_proposal,
    guidance_in_use,
    propose_guidance,
    roll_back_guidance,
)
from donewhen.judging.competence import unread_by_default_model, unread_problems
from donewhen.judging.guidance import Guidance, GuidanceError, RuleMeta
from donewhen.judging.guidance_choice import guidance_of_step
from donewhen.judging.guidance_diff import RuleChange, changes_between
from donewhen.judging.guidance_store import Revision
from donewhen.judging.mission import Mission, read_mission
from donewhen.judging.prompt_rendering import shared_prompt_part

Format = Literal["prompt", "markdown", "json"]

_RULE = 4000
_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~!&@$])")


@click.group()
def command() -> None:
    """Show the rules of a judge, compare them, and roll back.

    The scaffold rules S1, S2, … are written by people; learning never changes them. The rules G0, G1, … are learned:
    each step changes one rule, and every step is kept.
    """


@command.command()
@mission_argument
@click.option("--step", type=click.IntRange(min=0), metavar="N", help="Use the rules of an earlier step.")
@common_options
@click.pass_obj
def show(output: Output, mission: Path, step: int | None) -> ExitCode:
    """Print the rules of MISSION with their evidence.

    A hit is a ticket that is right with the rule and wrong without it; a miss is the reverse.
    """
    found = read_mission(mission, code=False)
    guidance = guidance_of_step(found, step)
    output.say(f"{found.name}  {_title(found, guidance)}", bold=True)
    if guidance.scaffold:
        output.say("scaffold: always applies, never changed by learning", dim=True)
    for key, text in guidance.scaffold.items():
        output.say(f"  {key.ljust(4)} {one_line(text, _RULE)}", fg="cyan")
    output.say("rules: learned from evidence", dim=True)
    for key, text in guidance.learned.items():
        output.say(f"  {key.ljust(4)} {one_line(text, _RULE)}")
        meta = guidance.metadata.get(key)
        if meta is not None:
            output.say(f"       {_evidence(meta)}", dim=True)
    rules = {
        key: {"text": text, "scaffold": key in guidance.scaffold} | _meta(guidance.metadata.get(key))
        for key, text in guidance.rules.items()
    }
    data = {"mission": found.name, "step": guidance.step, "updated_at": guidance.updated_at, "rules": rules}
    return output.finish(ExitCode.PASS, data)


@command.command()
@mission_argument
@click.option(
    "--from", "start", type=click.IntRange(min=0), metavar="N", help="Compare from this step (default: the first)."
)
@click.option("--accepted", "from_accepted", is_flag=True, help="Compare from the accepted guidance.")
@click.option(
    "--to", "end", type=click.IntRange(min=0), metavar="N", help="Compare up to this step (default: the newest)."
)
@common_options
@click.pass_obj
def diff(output: Output, mission: Path, start: int | None, from_accepted: bool, end: int | None) -> ExitCode:
    """Print how the rules of MISSION have changed (default: since the beginning)."""
    found = read_mission(mission, code=False)
    if from_accepted:
        if start is not None:
            raise UsageError("Give either --from or --accepted, not both.")
        known, before = guidance_in_use(found)
        start = None if known.entry is None else known.step
        if before is None:
            _say_what_is_lost(output, known.step)
    else:
        before = found.initial_guidance() if start is None else guidance_of_step(found, start)
    after = guidance_of_step(found, end)
    message = "initial" if start is None else f"step {start}"
    output.say(f"{found.name}  {message} → step {after.step}", bold=True)
    changes = list(changes_between(before, after))
    _tell_changes(output, changes)
    data = {
        "mission": found.name,
        "from": "initial" if start is None else start,
        "to": after.step,
        "changes": [asdict(change) for change in changes],
    }
    return output.finish(ExitCode.PASS, data)


@command.command()
@mission_argument
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Show at most N entries, the newest.",
)
@common_options
@click.pass_obj
def log(output: Output, mission: Path, limit: int) -> ExitCode:
    """Print the history of the rules of MISSION, oldest first: time, author, number of tickets."""
    found = read_mission(mission, code=False)
    history = found.store.history() if found.store.exists else ()
    for revision in history[-limit:]:
        tickets = f", {len(revision.change.evidence)} ticket(s)" if revision.change.evidence else ""
        output.say(f"{revision.step}  {revision.at}  {_label(found, revision)}  by {revision.by}{tickets}")
        for line in (revision.change.text, revision.change.rationale):
            if line:
                output.say(f"    {one_line(line, _RULE)}", dim=line != revision.change.text)
    if not history:
        output.say("Nothing was learned yet.")
    elif len(history) > limit:
        output.say(f"({len(history) - limit} older; -n shows more)", dim=True)
    rows = [{**revision._asdict(), "change": _builtins(revision.change)} for revision in history[-limit:]]
    return output.finish(ExitCode.PASS, {"mission": found.name, "revisions": rows, "total": len(history)})


@command.command()
@click.argument("step", type=click.IntRange(min=0))
@mission_argument
@common_options
@click.pass_obj
def rollback(output: Output, step: int, mission: Path) -> ExitCode:
    """Restore the rules that MISSION had at STEP.

    The rollback is recorded as a new step under your name, so no step is lost, and it can be rolled back too.
    """
    found = read_mission(mission, code=False)
    rollback = roll_back_guidance(found, step)
    output.say(f"{found.name}  step {rollback.after.step}: back to step {step}", bold=True)
    _tell_changes(output, rollback.changes)
    data = {"mission": found.name, "step": rollback.after.step, "back_to": step, "by": rollback.by}
    return output.finish(ExitCode.PASS, data | {"changes": [asdict(change) for change in rollback.changes]})


@command.command()
@mission_argument
@click.option("--step", type=click.IntRange(min=0), metavar="N", help="The step to accept (default: the newest).")
@approver_options
@common_options
@click.pass_obj
def accept(output: Output, mission: Path, step: int | None, key: Path | None, ci: bool) -> ExitCode:
    """Accept the guidance of MISSION, so that the gates use it.

    The gates of jobs use the guidance that was accepted last, until a person accepts newer guidance. This command shows
    the changes and asks you to type a word. MISSION must be in the project's folder of missions. If
    `judge.trial_accepts` was agreed, guidance that passed its trial is accepted automatically.
    """
    found = read_mission(mission, code=False)
    proposal = propose_guidance(found, step)
    name, chosen, known = proposal.name, proposal.chosen, proposal.accepted
    changes = proposal.changes
    data: dict[str, Any] = {"mission": name, "from": known.step, "to": chosen.step}
    if proposal.in_use:
        output.say(f"{name}  the gates already use this guidance (step {known.step}).", bold=True)
        return output.finish(ExitCode.PASS, data | {"accepted": True, "changes": []})
    output.say(f"{name}  step {known.step} → step {chosen.step}", bold=True)
    if proposal.before is None:
        _say_what_is_lost(output, known.step)
    _tell_changes(output, changes)
    for problem in unread_problems(unread_by_default_model(found, chosen)):
        output.say(f"! {problem.message}", fg="yellow")
    approval = ask_for_approval(output, "let the gates use this guidance", key=key, ci=ci)
    if approval is None:
        return not_confirmed(output, "The gates use the same guidance as before.")
    counts = accept_proposal(proposal, approval)
    data |= {"accepted": counts, "by": approval.by._asdict(), "changes": [asdict(change) for change in changes]}
    if counts:
        output.say(f"✓ The gates use step {chosen.step}.", fg="green")
        return output.finish(ExitCode.PASS, data)
    finding = uncounted_finding(approval, "approval", f"A person has to run: donewhen guidance accept {name}")
    output.say(finding.message, fg="yellow")
    return output.finish(ExitCode.GATE_FAILED, data, [finding])


@command.command()
@mission_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["prompt", "markdown", "json"]),
    default="markdown",
    show_default=True,
    help="Format: prompt, Markdown, or JSON.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write to FILE instead of stdout."
)
@click.option("--step", type=click.IntRange(min=0), metavar="N", help="Use the rules of an earlier step.")
@common_options
@click.pass_obj
def export(output: Output, mission: Path, form: Format, out: Path | None, step: int | None) -> ExitCode:
    """Export the rules of MISSION as a prompt, Markdown or JSON."""
    found = read_mission(mission, code=False)
    guidance = guidance_of_step(found, step)
    text = _exported(found, guidance, form)
    data: dict[str, Any] = {"mission": found.name, "step": guidance.step, "format": form}
    if out is not None:
        write_atomically(out, text.encode())
        output.say(f"✓ {out}", fg="green")
        return output.finish(ExitCode.PASS, data | {"out": str(out)})
    for line in text.rstrip("\n").split("\n"):
        output.say(line)
    return output.finish(ExitCode.PASS, data | {"text": text})


def _say_what_is_lost(output: Output, step: int) -> None:
    message = f"! Step {step} was changed after it was accepted; all rules are shown."
    output.say(message, fg="yellow")


def as_markdown(guidance: Guidance) -> str:
    """The rules as Markdown. Their text is not trusted, so it is escaped."""
    lines = [f"# Guidance: {_escaped(guidance.mission)}", "", f"Step {guidance.step}."]
    if guidance.scaffold:
        lines += ["", "## Scaffold", "", "These rules always apply. Learning never changes them.", ""]
        lines += [f"- **{key}** {_escaped(text)}" for key, text in guidance.scaffold.items()]
    lines += ["", "## Rules", ""]
    for key, text in guidance.learned.items():
        lines.append(f"- **{key}** {_escaped(text)}")
        meta = guidance.metadata.get(key)
        if meta is None:
            continue
        lines.append(f"  - {_evidence(meta)}")
        if meta.rationale:
            lines.append(f"  - Why: {_escaped(meta.rationale)}")
        if meta.sources:
            lines.append(f"  - Tickets: {', '.join(map(_escaped, meta.sources))}")
    return "\n".join(lines) + "\n"


def _exported(mission: Mission, guidance: Guidance, form: Format) -> str:
    match form:
        case "prompt":
            return shared_prompt_part(guidance, mission.language)
        case "markdown":
            return as_markdown(guidance)
        case "json":
            return harmless_json(guidance.as_file(), indent=2) + "\n"


def _title(mission: Mission, guidance: Guidance) -> str:
    if not mission.store.exists:
        return "initial rules; nothing was learned yet"
    return f"step {guidance.step}" + (f", {guidance.updated_at}" if guidance.updated_at else "")


def _label(mission: Mission, revision: Revision) -> str:
    """The label of a change; for an added rule, with the key that it got."""
    if revision.change.op == "add":
        with suppress(GuidanceError):
            before, after = (mission.store.at(step).experiences for step in (revision.step - 1, revision.step))
            return f"add {' '.join(after.keys() - before.keys())}"
    return revision.change.label


def _tell_changes(output: Output, changes: Sequence[RuleChange]) -> None:
    for change in changes:
        output.say(f"{change.key} {change.kind}", bold=True)
        if change.before is not None:
            output.say(f"  - {one_line(change.before, _RULE)}", fg="red")
        if change.after is not None:
            output.say(f"  + {one_line(change.after, _RULE)}", fg="green")
    if not changes:
        output.say("No differences.")


def _evidence(meta: RuleMeta) -> str:
    message = f"{len(meta.sources)} ticket(s) support it"
    if meta.hit_count or meta.miss_count:
        message += f"; {meta.hit_count} hit(s), {meta.miss_count} miss(es), confidence {meta.confidence:.2f}"
    return message if not meta.updated_at else f"{message}; {one_line(meta.updated_at, 30)}"


def _meta(meta: RuleMeta | None) -> dict[str, Any]:
    return {} if meta is None else _builtins(meta)


def _builtins(value: object) -> dict[str, Any]:
    import msgspec

    data: dict[str, Any] = msgspec.to_builtins(value)
    return data


def _escaped(text: str) -> str:
    # A bare URL would become a link, too.
    return _MARKDOWN.sub(r"\\\1", one_line(text, _RULE)).replace("://", r":\/\/")
