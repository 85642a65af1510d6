"""`donewhen mission`: create and check missions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._missions import mission_argument, show_problems
from donewhen.cli._output import Finding, Output
from donewhen.cli._unread_rules import CHOSEN_IN_FILE, unread_findings
from donewhen.foundation.errors import ConfigError, DonewhenError, ExitCode
from donewhen.foundation.files import write_atomically
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.contract.mission_folders import missions_folder
from donewhen.jobs.plan.criteria import parse_check
from donewhen.jobs.plan.workspace import find_workspace
from donewhen.judging.competence import first_rule, unread_problems
from donewhen.judging.guidance import FIRST
from donewhen.judging.language import find_language, shipped_languages
from donewhen.judging.mission import Mission, MissionCheck, check_mission, read_mission
from donewhen.judging.mission_settings import Trial
from donewhen.judging.ticket import Ticket, TicketError, read_each_line
from donewhen.learning.measuring.splits import PARTS, SplitMember, split_tickets
from donewhen.missions.new_mission import check_mission_name, create_mission, refuse_existing_mission
from donewhen.missions.table_import import (
    ColumnChoices,
    ColumnReading,
    ImportPreview,
    import_tickets,
    preview_import,
    read_columns,
)
from donewhen.missions.table_sources import TableSource, find_source
from donewhen.missions.yaml_settings import SUFFIXES, BroughtSettings, read_brought, read_yaml_mission
from donewhen.models.contrast import Contrast
from donewhen.reports.reviews_page import reviews_data, reviews_page, reviews_text
from donewhen.review.judge_drift import judge_drift
from donewhen.review.people_agreement import people_agreement

_EXCERPT = 70
_SHOWN = 20


@click.group()
def command() -> None:
    """Create and check missions: folders with labelled tickets that a judge learns from.

    A mission has mission.toml (language, model, thresholds), initial_guidance.json (the initial rules) and
    tickets.jsonl (work that people have labelled pass or fail).
    """


@command.command()
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--name", help="Name of the mission (default: from SOURCE).")
@click.option("--language", metavar="NAME", help="Language of answers and rules (default: detected from the texts).")
@click.option("--label-column", metavar="NAME", help="Column with people's verdicts.")
@click.option(
    "--text-column", "text_columns", multiple=True, metavar="NAME", help="Column with evidence; may be repeated."
)
@click.option("--group-column", metavar="NAME", help="Column with the id of a ticket (default: its line).")
@click.option(
    "--cluster-column", metavar="NAME", help="Column with the cluster; tickets of one cluster are never split."
)
@click.option("--pass-value", "pass_values", multiple=True, metavar="VALUE", help="A label that means pass.")
@click.option("--fail-value", "fail_values", multiple=True, metavar="VALUE", help="A label that means fail.")
@click.option(
    "--guidance",
    "guidance_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take the initial rules from this guidance file.",
)
@click.option("--dry-run", is_flag=True, help="Show the result without writing anything.")
@click.option("--all", "everything", is_flag=True, help=f"List all problems, not only the first {_SHOWN}.")
@common_options
@click.pass_obj
def init(
    output: Output,
    source: Path,
    folder: Path | None,
    name: str | None,
    language: str | None,
    label_column: str | None,
    text_columns: tuple[str, ...],
    group_column: str | None,
    cluster_column: str | None,
    pass_values: tuple[str, ...],
    fail_values: tuple[str, ...],
    guidance_file: Path | None,
    dry_run: bool,
    everything: bool,
) -> ExitCode:
    """Create a mission in DIR from SOURCE, and show how it was read.

    SOURCE is a CSV file with a header, a JSONL file, a YAML file with settings, or a folder. A folder has either texts
    in pass/ and fail/ (where a subfolder is one ticket with several texts), or texts and a labels.csv with a file name
    and a label in each row.
    Columns and labels such as ok and nok, 1 and 0, 通过 and 不通过 are recognised.

    A YAML file names ticket files (stage_a_paths), a guidance file (guidance.path) and settings such as sampler.grid,
    reflection and manual_review. Keys without a counterpart in mission.toml are listed.

    If there are problems, all of them are listed with file and line, and nothing is written. Duplicate rows are skipped
    and reported. Without DIR, the folder is named after the mission.

    \b
    donewhen mission init verdicts.csv --dry-run
    donewhen mission init verdicts.csv refunds --label-column decision --pass-value refund --fail-value keep
    """
    config = read_yaml_mission(source) if source.suffix.lower() in SUFFIXES else None
    found = find_source(source) if config is None else TableSource(config.tickets[0], "JSONL", config.tickets[1:])
    wishes = ColumnChoices(label_column, text_columns, group_column, cluster_column, pass_values, fail_values)
    understood = read_columns(found, wishes)
    stated = name or (config.mission if config is not None else None) or understood.mission
    called = check_mission_name(stated or one_line(source.resolve().stem.replace("_", " "), 100))
    brought = read_brought(config, guidance_file, called)
    target = folder or Path(re.sub(r"\W+", "-", called.lower()).strip("-") or "mission")
    if not dry_run:
        refuse_existing_mission(target)
    with output.progress(f"reading {source}"):
        seen = preview_import(found, understood, called)
    spoken = language or (config.language if config is not None else None) or seen.language
    find_language(spoken, target)
    guessed = spoken == seen.language and language is None
    default = (brought.rules or {}).get(FIRST) or first_rule(spoken)
    _tell_preview(output, found, understood, seen, called, spoken, default, guessed=guessed)
    _tell_brought(output, brought)
    unread = _tell_unread(output, brought.rules or {})
    problems = [Finding.of(problem) for problem in seen.problems]
    show_problems(output, problems, everything=everything)
    data = _data(found, understood, seen, called, spoken, target) | asdict(brought)
    data["warnings"] = unread
    if problems:
        output.say(f"{len(problems)} problem(s); nothing was written.", bold=True)
        return output.finish(ExitCode.USAGE, data, problems)
    if dry_run:
        output.say(f"Nothing was written. Without --dry-run, {target}/ would be created.", bold=True)
        return output.finish(ExitCode.PASS, data)
    tickets = _only_tickets(found, understood, called)
    create_mission(target, called, spoken, tickets, initial=brought.rules, settings=brought.settings)
    output.say(f"✓ {target}/: mission.toml, initial_guidance.json, tickets.jsonl", bold=True, fg="green")
    output.say(f"  next: donewhen mission check {target}", dim=True)
    return output.finish(ExitCode.PASS, data | {"written": True})


@command.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the mission (default: from DIR).")
@click.option("--language", metavar="NAME", default="en", show_default=True, help="Language of answers and rules.")
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="TEXT",
    help="A scaffold rule, which learning never changes; may be repeated.",
)
@common_options
@click.pass_obj
def new(output: Output, folder: Path, name: str | None, language: str, rules: tuple[str, ...]) -> ExitCode:
    """Create a mission in DIR without tickets; reviews add them.

    Jobs can use a mission in the project's folder of missions (missions/NAME): `check: judge:NAME`. Until its judge has
    learned rules, a person gives every verdict (`donewhen review`), and each becomes a ticket for `donewhen learn`.
    """
    called = check_mission_name(name or one_line(folder.resolve().name, 100))
    created = create_mission(folder, called, language, (), rules)
    output.say(f"✓ {folder}/: mission.toml, initial_guidance.json, tickets.jsonl", bold=True, fg="green")
    warnings = _tell_unread(output, created.initial_guidance().rules)
    output.say(f"  next: {_how_to_ask(folder)}", dim=True)
    data = {"mission": called, "folder": str(folder), "language": language}
    return output.finish(ExitCode.PASS, data | ({"warnings": warnings} if warnings else {}))


def _how_to_ask(folder: Path) -> str:
    """How a job can use this judge, if the mission is where the gates look for missions."""
    name = folder.resolve().name
    try:
        parse_check(f"judge:{name}", str(folder))
    except DonewhenError:
        return f"rename the folder so that jobs can use it: {name!r} may only have letters, digits and dashes"
    with suppress(DonewhenError):
        workspace = find_workspace(folder.resolve())
        missions = missions_folder(workspace.root, workspace.settings())
        if missions.resolve() != folder.resolve().parent:
            return f"move it to {workspace.where(missions)}/, so that jobs can use it"
    return f"use it in a job's criterion: check: judge:{name}"


@command.command()
@mission_argument
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Also write it as an HTML page."
)
@common_options
@click.pass_obj
def reviews(output: Output, mission: Path, html: Path | None) -> ExitCode:
    """Show the reviews of MISSION: agreement between people (κ), and between judge and people over time.

    Exit status 1 if the agreement of judge and people on the newest verdicts is below the mission's alarm_below.
    Tickets that the judge left undecided are not counted.
    """
    found = read_mission(mission, code=False)
    people, drifted = people_agreement(found), judge_drift(found)
    for line in reviews_text(people, drifted):
        output.say(line)
    if html is not None:
        write_atomically(html, reviews_page(found.name, people, drifted).encode())
        output.say(f"✓ {html}", fg="green")
    data = reviews_data(people, drifted) | {"mission": found.name}
    if not drifted.alarm:
        return output.finish(ExitCode.PASS, data)
    message = f"The judge agrees with people in {data['agreement']:.2f} of its newest verdicts, "
    message += f"below the alarm threshold {drifted.threshold:g}."
    finding = Finding("drift", message, str(found.folder), f"donewhen learn {mission}")
    output.say(f"✗ {message}", fg="red", bold=True)
    output.say(f"  next: {finding.next}", dim=True)
    return output.finish(ExitCode.GATE_FAILED, data, [finding])


@command.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--tickets", default=300, show_default=True, type=click.IntRange(50, 100_000), help="Number of tickets.")
@common_options
@click.pass_obj
def example(output: Output, folder: Path, tickets: int) -> ExitCode:
    """Create an example mission with made-up tickets in DIR.

    The tickets are reports by agents. Their labels follow three rules that a judge can learn; a few labels are wrong on
    purpose.
    """
    from donewhen.demo.example_mission import NOISE, RULES, make_mission

    make_mission(folder, tickets)
    output.say(f"✓ {folder}/: {tickets} made-up reports; {NOISE:.0%} of the labels are wrong on purpose.", fg="green")
    for rule in RULES:
        output.say(f"  {rule}", dim=True)
    output.say(f"  next: donewhen learn {folder}", dim=True)
    return output.finish(ExitCode.PASS, {"folder": str(folder), "tickets": tickets, "rules": list(RULES)})


@command.command()
@mission_argument
@click.option("--all", "everything", is_flag=True, help=f"List all problems, not only the first {_SHOWN}.")
@common_options
@click.pass_obj
def check(output: Output, mission: Path, everything: bool) -> ExitCode:
    """Check the settings, language, rules and every ticket of MISSION.

    Problems are listed with file and line. A rule that the mission's model can't read is a problem: the model can't
    follow it. Exit status: 1 if there are problems, 2 if the mission can't be read.
    Warnings don't change the exit status.
    """
    with output.progress("checking the mission"):
        found = check_mission(mission)
    problems = [Finding.of(problem) for problem in found.problems]
    if found.mission is None:
        show_problems(output, problems, everything=everything)
        return output.finish(ExitCode.USAGE, {}, problems)
    split = _split(found.mission)
    warnings = _warnings(found.mission, found, split["validation"])
    if found.guidance is not None and found.mission.settings.model == "contrast":
        problems += unread_findings(found.mission, found.guidance, Contrast(), CHOSEN_IN_FILE)
    _tell_check(output, found.mission, found, split)
    for warning in warnings:
        output.say(f"! {warning}", fg="yellow")
    show_problems(output, problems, everything=everything)
    message = f"{len(problems)} problem(s)." if problems else "No problems."
    output.say(message, bold=True, fg="red" if problems else "green")
    data = {
        "mission": found.mission.name,
        "folder": str(found.mission.folder),
        "language": found.mission.settings.language,
        "model": found.mission.settings.model,
        "tickets": {"pass": found.passes, "fail": found.fails, "clusters": found.clusters},
        "split": split,
        "guidance": None
        if found.guidance is None
        else {
            "step": found.guidance.step,
            "scaffold": list(found.guidance.scaffold),
            "learned": list(found.guidance.learned),
        },
        "warnings": warnings,
    }
    return output.finish(ExitCode.GATE_FAILED if problems else ExitCode.PASS, data, problems)


def _tell_brought(output: Output, brought: BroughtSettings) -> None:
    """Say which rules and settings come with the tickets, and which keys have no counterpart."""
    if brought.rules:
        output.say(f"  rules     {len(brought.rules)}: {one_line(', '.join(brought.rules), 200)}")
    if brought.settings:
        output.say(f"  settings  {one_line(', '.join(brought.settings), 300)}")
    for key in brought.no_counterpart:
        output.say(f"! no counterpart, left out: {one_line(key, 120)}", fg="yellow")


def _tell_unread(output: Output, rules: Mapping[str, str]) -> list[str]:
    """Say which rules of a new mission the default model can't read; it judges until the settings say otherwise."""
    unread = [problem.message for problem in unread_problems(Contrast().unread_rules(rules))]
    for message in unread:
        output.say(f"! {message}", fg="yellow")
    if unread:
        output.say(f"  next: {CHOSEN_IN_FILE}", dim=True)
    return unread


def _only_tickets(source: TableSource, understood: ColumnReading, mission: str) -> Iterator[Ticket]:
    """Read the tickets again; raise an error if the source has changed since the preview."""
    for ticket in import_tickets(source, understood, mission):
        if isinstance(ticket, TicketError):
            raise ticket
        if isinstance(ticket, Ticket):
            yield ticket


def _tell_preview(
    output: Output,
    source: TableSource,
    understood: ColumnReading,
    seen: ImportPreview,
    name: str,
    language: str,
    default: str,
    *,
    guessed: bool,
) -> None:
    output.say(f"{name}  from {source.path} ({source.kind})", bold=True)
    values = ", ".join(
        written if written == verdict else f"{written} → {verdict or '?'}"
        for written, verdict in understood.values.items()
    )
    labels = f"{understood.label}: {one_line(values, 200)}"
    rows = (
        ("label", labels, bool({"label", "values"} & understood.guessed)),
        ("text", ", ".join(understood.texts) or "the evidence in each row", "text" in understood.guessed),
        ("ticket", understood.group or "the line number", "group" in understood.guessed),
        ("cluster", understood.cluster or "one per ticket", "cluster" in understood.guessed),
        ("language", language, guessed),
        ("not used", ", ".join(understood.unused) or "-", False),
    )
    for title, value, guess in rows:
        output.say(f"  {title.ljust(8)}  {one_line(value, 300)}{'  (guessed)' if guess else ''}")
    for ticket in seen.examples:
        output.say(f"  {ticket.label}  {one_line(ticket.group_id, 30)}  {one_line(ticket.text, _EXCERPT)}", dim=True)
    passes, fails = seen.counts["pass"], seen.counts["fail"]
    both = f"; {seen.both} group(s) have both labels" if seen.both else ""
    output.say(f"{passes + fails} ticket(s): {passes} pass, {fails} fail{both}", bold=True)
    if passes + fails:
        output.say(f"  G0: {one_line(default, 300)}")
    for left in seen.left_out[:_SHOWN]:
        output.say(f"! skipped: {left.where}: {left.why}", fg="yellow")
    if len(seen.left_out) > _SHOWN:
        output.say(f"! … and {len(seen.left_out) - _SHOWN} more skipped; --json lists them", fg="yellow")


def _data(
    source: TableSource, understood: ColumnReading, seen: ImportPreview, name: str, language: str, target: Path
) -> dict[str, object]:
    return {
        "mission": name,
        "folder": str(target),
        "source": str(source.path),
        "kind": source.kind,
        "language": language,
        "columns": {
            "label": understood.label,
            "text": list(understood.texts),
            "group": understood.group,
            "cluster": understood.cluster,
            "unused": list(understood.unused),
            "guessed": sorted(understood.guessed),
        },
        "values": dict(understood.values),
        "tickets": dict(seen.counts),
        "both_labels": seen.both,
        "examples": [{"ticket_key": ticket.key, "text": one_line(ticket.text, _EXCERPT)} for ticket in seen.examples],
        "left_out": [row._asdict() for row in seen.left_out],
        "written": False,
    }


def _tell_check(output: Output, mission: Mission, found: MissionCheck, split: dict[str, int]) -> None:
    settings = mission.settings
    output.say(f"{mission.name}  ({mission.folder})", bold=True)
    output.say(f"  judged by  {settings.model}, in {mission.language.title}, {len(mission.decodes)} answer(s) a ticket")
    total = found.passes + found.fails
    output.say(f"  tickets    {total}: {found.passes} pass, {found.fails} fail, in {found.clusters} cluster(s)")
    message = f"{split['train']} training, {split['validation']} validation, {split['test']} test"
    output.say(f"  split      {message}")
    if found.guidance is not None:
        scaffold, learned = found.guidance.scaffold, found.guidance.learned
        message = f"step {found.guidance.step}: {len(scaffold)} scaffold rule(s), {len(learned)} rule(s)"
        output.say(f"  guidance   {message}")


def _split(mission: Mission) -> dict[str, int]:
    """The number of tickets in each part, split as the learner splits them."""
    members: list[SplitMember] = []
    with suppress(ConfigError):
        members += (
            SplitMember(ticket.key, ticket.group_id, ticket.cluster, ticket.label)
            for ticket in read_each_line(mission.ticket_files, mission.name, superseded=mission.superseded())
            if isinstance(ticket, Ticket) and ticket.label is not None
        )
    splits = split_tickets(members, mission.settings.split, mission.settings.seed)
    return {part: len(getattr(splits, part)) for part in PARTS}


def _warnings(mission: Mission, found: MissionCheck, unseen: int) -> list[str]:
    warnings = []
    trial = mission.settings.trial
    if isinstance(trial, Trial) and unseen < trial.min_tickets:
        warnings.append(
            f"Trials have {unseen} unseen ticket(s), and trial.min_tickets is {trial.min_tickets}: "
            "every change would be refused."
        )
    contrast = found.guidance is not None and mission.settings.model == "contrast"
    if contrast and mission.language.name not in shipped_languages():
        warnings.append("The contrast model can't write rules in this language, so it would learn nothing.")
    return warnings
