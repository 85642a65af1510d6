"""`donewhen audit-mission`: measure the judge on labelled tickets."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from donewhen.cli._app import common_options
from donewhen.cli._executor import ChosenExecutor, executor_options, lost_workers
from donewhen.cli._learning_progress import LearningProgress
from donewhen.cli._missions import mission_argument
from donewhen.cli._model_budget import budget_finding, max_calls_option, note_uncached
from donewhen.cli._output import Output
from donewhen.cli._unread_rules import exit_with_unread, note_unread, unread_findings
from donewhen.cli.learn import report_width
from donewhen.foundation.coroutines import run_awaitable
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.files import write_atomically
from donewhen.judging.guidance_choice import choose_guidance
from donewhen.judging.mission import read_mission
from donewhen.judging.mission_budget import open_metered_model
from donewhen.judging.mission_options import with_options
from donewhen.judging.verdict import Verdict
from donewhen.learning.after.judge_audit import audit_judge, verdict_row
from donewhen.learning.after.report_data import VerdictRow, report_to_json
from donewhen.models.metered import BudgetError
from donewhen.reports.learning_page import learning_page
from donewhen.reports.learning_text import learning_text


@click.command()
@mission_argument
@click.option("--guidance", metavar="STEP|FILE", help="Use the guidance of an earlier step, or from a file.")
@click.option("--model", metavar="NAME", help="Use this model instead of the mission's.")
@click.option("--page", type=click.Path(path_type=Path), metavar="FILE", help="Also write the report as an HTML page.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write the report and the verdict on each ticket as JSON.",
)
@max_calls_option
@executor_options
@click.option("--quiet", is_flag=True, help="Print no progress and no report, only errors.")
@common_options
@click.pass_obj
def command(
    output: Output,
    mission: Path,
    guidance: str | None,
    model: str | None,
    page: Path | None,
    out: Path | None,
    max_calls: int | None,
    quiet: bool,
    executor: ChosenExecutor,
) -> ExitCode:
    """Judge every labelled ticket of MISSION once and compare with the labels. Nothing is learned or changed.

    The report shows accuracy, agreement beyond chance, the rate of false releases (bad work that passes), and whether
    the judge is better than word counts.

    Paid answers are cached with the mission, so a second run pays only for new questions. If the mission's budget is
    used up before all tickets are judged, there is no report, and the exit status is 1. It is also 1 if the model can't
    read a rule, which is said first.
    """
    for path in (page, out):
        if path is not None and not path.parent.is_dir():
            raise UsageError("The folder of the report does not exist.", where=str(path))
    found = with_options(read_mission(mission), calls=max_calls)
    chosen = choose_guidance(found, guidance)
    asked = executor.open(model or found.settings.model)
    unread = note_unread(output, unread_findings(found, chosen, asked))
    metered = open_metered_model(found, asked, note_uncached(output))
    with metered as asking, LearningProgress(output, quiet=quiet) as watcher:
        watcher.phase("judging", sum(1 for _ in found.tickets()))
        done = right = 0
        rows: list[VerdictRow] = []

        def advance(verdict: Verdict) -> None:
            nonlocal done, right
            done += 1
            right += verdict.verdict == verdict.label
            if out is not None:
                rows.append(verdict_row(verdict))
            watcher.tell(right / done, vars(asking.meter))
            watcher.advance(done)

        try:
            report = run_awaitable(audit_judge(found, chosen, asking, advance))
        except BudgetError as error:
            message = f"{done} ticket(s) were judged. The audit is incomplete, so there is no report."
            return output.fail(error.exit_code, budget_finding(error, asking, message))
    if lost := lost_workers(asked):
        output.note(lost)
    if page is not None:
        write_atomically(page, learning_page(report).encode())
    if out is not None:
        write_atomically(out, report_to_json(msgspec.structs.replace(report, verdicts=tuple(rows))))
    if not quiet:
        for line in learning_text(report, report_width()):
            output.say(line)
    return output.finish(exit_with_unread(ExitCode.PASS, unread), {"summary": msgspec.to_builtins(report)}, unread)
