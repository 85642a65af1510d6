"""`donewhen review`: review what needs a person, with one key per verdict."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import (
    approver_options,
    ask_for_approval,
    find_project,
    not_confirmed,
    project_option,
    uncounted_finding,
)
from donewhen.cli._keys import press_key
from donewhen.cli._output import Output
from donewhen.cli._times import moment
from donewhen.cli.agree import seal_agreements
from donewhen.foundation.errors import DonewhenError, ExitCode, UsageError
from donewhen.foundation.plain_text import one_line, plain_text
from donewhen.jobs.gates.changes_for_person import ASKED
from donewhen.jobs.judge.missions import find_mission
from donewhen.jobs.ledger.approval import Approval, is_at_terminal, unproved_actor
from donewhen.jobs.ledger.person_check import why_no_person
from donewhen.jobs.lifecycle.accepting import note_for_ci
from donewhen.jobs.plan.workspace import Workspace
from donewhen.review.items import KINDS, Kind, ReviewItem
from donewhen.review.queue import find_item, review_queue
from donewhen.review.verdicts import RecordedVerdict, record_verdict, write_missing_labels

_LINES = 14
"""Lines of each piece of evidence that are shown at first."""
_DIFF_LINES = 40
"""Lines of the difference of each file."""
_WORDS = ("pass", "fail", "accept", "refuse", "answer", "raise-budget", "rescope", "cancel")
_COLORS = {"+": "green", "-": "red"}


@click.command()
@click.argument("item", required=False)
@click.option("--verdict", type=click.Choice(_WORDS), help="Give this answer to ITEM without asking for a key.")
@click.option("--reason", default="", help="The reason, or the words of an answer.")
@click.option("--list", "listing", is_flag=True, help="Only list the items.")
@click.option("--kind", type=click.Choice(list(KINDS)), help="Only this kind.")
@click.option("--mission", metavar="NAME", help="Only items of this mission.")
@click.option("--second", is_flag=True, help="Include items that another person has labelled, for a second opinion.")
@approver_options
@project_option
@common_options
@click.pass_obj
def command(
    output: Output,
    item: str | None,
    verdict: str | None,
    reason: str,
    listing: bool,
    kind: Kind | None,
    mission: str | None,
    second: bool,
    key: Path | None,
    ci: bool,
    project: Path | None,
) -> ExitCode:
    """Review what waits for a person, one item after the other, each with one key.

    p for pass and f for fail; a to accept and x to refuse changed files and lines; a to answer a question in your own
    words; b, w or c to raise the budget of a job, to rescope it or to cancel it.

    The queue has questions and blocked jobs, disputed refusals, jobs out of budget, criteria that a person checks by
    hand, judge verdicts with conflicting votes, changes outside the work area or of tests without which a check does
    not pass, lines of the work that reach for what tests it, weak evidence, agreements to give, unverified stops, wrong
    or contradictory labels, rules that are close to a trial, and spot checks of clear verdicts.

    What you say reaches the agent in your words when it next stops, asks for the next step or calls a tool. Your
    answers are recorded in the ledger under your name. A verdict on a job overrides the gate for the current work; a
    verdict on judged work also becomes a labelled ticket for `donewhen learn`. Changed files are accepted with exactly
    the content that was shown.

    You type a word once, so that no agent can review its own work. Without a terminal, the items are only listed.
    --verdict records one verdict on ITEM. Verdicts by agents are recorded but have no effect.
    """
    workspace = find_project(project)
    write_missing_labels(workspace)
    if mission is not None:
        find_mission(workspace, mission)
    by = unproved_actor().name if second else None
    if verdict is not None:
        if item is None:
            raise UsageError("--verdict needs an ITEM.", next_step="donewhen review --list")
        return _settled_at_once(output, workspace, find_item(workspace, item, by=by), verdict, reason, key, ci)
    found = [find_item(workspace, item, by=by)] if item is not None else list(review_queue(workspace, by=by))
    found = [item for item in found if kind in (None, item.kind) and mission in (None, item.mission)]
    # --key proves who reviews, but pressing keys still needs a terminal.
    watched = is_at_terminal() if key is not None else why_no_person() is None
    if listing or output.json or not found or not watched:
        return _listed(output, found, whole=item is not None)
    return _one_by_one(output, workspace, found, key, ci)


def _listed(output: Output, found: Sequence[ReviewItem], *, whole: bool) -> ExitCode:
    for item in found:
        if whole:
            _show(output, item, "", everything=True)
        else:
            output.say(f"{item.id}  {item.kind.replace('_', ' ')}  {item.title}", bold=True)
            output.say(f"    {one_line(item.question, 160)}")
            output.say(f"    {one_line(item.why, 200)}", dim=True)
    output.say("Nothing needs a person." if not found else f"{len(found)} item(s) need a person.", bold=True)
    if found:
        output.say("  next, for a person at a terminal: donewhen review", dim=True)
    return output.finish(ExitCode.PASS, {"items": [_data(item) for item in found]})


def _settled_at_once(
    output: Output, workspace: Workspace, item: ReviewItem, word: str, reason: str, key: Path | None, ci: bool
) -> ExitCode:
    verdict = next((answer.verdict for answer in item.answers if answer.word == word), None)
    if verdict is None:
        possible = " or ".join(f"--verdict {answer.word}" for answer in item.answers)
        raise UsageError(f"{word} is no answer to {item.id}.", next_step=possible or item.next)
    approval = ask_for_approval(output, f"give {item.id} the verdict {word}", key=key, ci=ci)
    if approval is None:
        return not_confirmed(output, "Nothing was recorded.")
    done = record_verdict(workspace, item, verdict, approval, reason)
    output.say(f"{'✓' if done.counts else '!'} {done.told}", fg="green" if done.counts else "yellow")
    _say_for_ci(output, workspace, item, word, done, approval)
    data = {"item": item.id, "verdict": word, "counts": done.counts, "ticket": done.ticket, "entry": done.entry.hash}
    if done.counts:
        return output.finish(ExitCode.PASS, data)
    finding = uncounted_finding(approval, "verdict", "A person has to run: donewhen review")
    output.say(f"  next: {finding.next}", dim=True)
    return output.finish(ExitCode.GATE_FAILED, data, [finding])


def _one_by_one(
    output: Output, workspace: Workspace, found: Sequence[ReviewItem], key: Path | None, ci: bool
) -> ExitCode:
    output.say(f"{len(found)} item(s) need a person.", bold=True)
    approval = ask_for_approval(output, "review under your name", key=key, ci=ci)
    if approval is None:
        return not_confirmed(output, "Nothing was recorded.")
    given: list[RecordedVerdict] = []
    for number, item in enumerate(found, 1):
        answer = _asked(output, workspace, item, f"{number} of {len(found)}", approval)
        if answer == "quit":
            break
        if isinstance(answer, RecordedVerdict):
            given.append(answer)
    output.say()
    labelled = sum(verdict.ticket is not None for verdict in given)
    output.say(f"{len(given)} verdict(s) given, {labelled} labelled ticket(s) made.", bold=True)
    if labelled:
        output.say("  next: donewhen learn, to learn from these verdicts", dim=True)
    return output.finish(ExitCode.PASS, {"given": [verdict.told for verdict in given]})


def _asked(
    output: Output, workspace: Workspace, item: ReviewItem, place: str, approval: Approval
) -> RecordedVerdict | str:
    """Show an item until it has a verdict or is skipped."""
    reason = ""
    answers = {answer.key: answer for answer in item.answers}
    _show(output, item, place, workspace.now())
    while True:
        pressed = press_key(output, _prompt(item)).lower()
        if pressed in ("q", "\x04", ""):
            return "quit"
        if pressed in ("s", "n", "\r", "\n", " "):
            return "skip"
        if pressed == "e":
            _show(output, item, place, workspace.now(), everything=True)
        elif pressed == "g" and item.kind == "agreement":
            seal_agreements(output, workspace)
            return "skip"
        elif pressed == "r" and item.settles and not any(answer.needs_words for answer in item.answers):
            reason = click.prompt("reason", default="", show_default=False, err=True)
        elif pressed in answers:
            answer = answers[pressed]
            if answer.needs_words:
                reason = click.prompt(answer.word, default="", show_default=False, err=True)
                if not reason.strip():
                    output.note("Nothing was recorded.")
                    continue
            try:
                done = record_verdict(workspace, item, answer.verdict, approval, reason)
            except DonewhenError as error:
                output.say(f"✗ {error}", fg="red")
                if reason:
                    output.say(f"  You wrote: {reason}")
                return "skip"
            output.say(f"{'✓' if done.counts else '!'} {done.told}", fg="green" if done.counts else "yellow")
            _say_for_ci(output, workspace, item, answer.word, done, approval)
            return done


def _say_for_ci(
    output: Output, workspace: Workspace, item: ReviewItem, word: str, done: RecordedVerdict, approval: Approval
) -> None:
    """Say what is missing before CI counts that changed files were accepted."""
    if done.counts and word == "accept" and item.job and item.kind in ASKED:
        note = note_for_ci(workspace, item.job, ASKED[item.kind], approval)
        if note is not None:
            output.say(f"  {note}", dim=True)


def _prompt(item: ReviewItem) -> str:
    if item.kind == "agreement":
        return "g agree now · e show all evidence · s skip · q quit"
    if not item.answers:
        return f"{item.next}  ·  s skip · q quit"
    answers = " · ".join(f"{answer.key} {answer.label}" for answer in item.answers)
    reason = "" if any(answer.needs_words for answer in item.answers) else " · r reason"
    return f"{answers}{reason} · e show all evidence · s skip · q quit"


def _show(output: Output, item: ReviewItem, place: str, now: str = "", *, everything: bool = False) -> None:
    width = min(100, shutil.get_terminal_size().columns)
    output.say()
    output.say("─" * width, dim=True)
    head = f"{place}  " if place else ""
    output.prose(f"{head}{KINDS[item.kind]}", fg="yellow", bold=True)
    since = f", {moment(item.since, now)}" if item.since and now else ""
    output.prose(f"{item.title}   [{item.id}{since}]", bold=True)
    output.prose(item.question)
    output.prose(item.why, dim=True)
    for name, text in item.evidence.items():
        output.say()
        output.say(f"▸ {name}", fg="cyan")
        lines = plain_text(text).rstrip().split("\n")
        is_diff = name in item.files
        most = len(lines) if everything else _DIFF_LINES if is_diff else _LINES
        for line in lines[:most]:
            output.say(f"  {line}", fg=_COLORS.get(line[:1]) if is_diff else None)
        if len(lines) > most:
            output.say(f"  … {len(lines) - most} more line(s): press e", dim=True)
    if item.said is not None:
        said = item.said
        margin = "" if said.margin is None else f", margin {said.margin:+.2f}"
        votes = f"{said.passes}:{said.fails}" + (f", {said.malformed} malformed" if said.malformed else "")
        output.say()
        output.say(f"The judge: {said.verdict or 'no verdict'} ({votes}{margin}, guidance step {said.guidance_step})")
        if said.reason:
            output.prose(f"  {said.reason}", dim=True)
    for label in item.labels:
        at = moment(label.at, now) if now else label.at
        output.prose(f"{label.by} said {label.label}, {at}{f': {label.reason}' if label.reason else ''}")
    output.say("─" * width, dim=True)


def _data(item: ReviewItem) -> dict[str, Any]:
    import msgspec

    return {
        "id": item.id,
        "kind": item.kind,
        "title": item.title,
        "question": item.question,
        "why": item.why,
        "since": item.since,
        "job": item.job,
        "criterion": item.criterion,
        "mission": item.mission,
        "said": None if item.said is None else msgspec.to_builtins(item.said),
        "labels": [
            {"by": label.by, "label": label.label, "at": label.at, "reason": label.reason} for label in item.labels
        ],
        "evidence": dict(item.evidence),
        "files": dict(item.files),
        "answers": [answer.word for answer in item.answers],
        "next": item.next or None,
    }
