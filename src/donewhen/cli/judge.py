"""`donewhen judge`: judge tickets from files or stdin."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._executor import ChosenExecutor, executor_options, lost_workers
from donewhen.cli._missions import harmless_json
from donewhen.cli._model_budget import budget_finding, max_calls_option, note_uncached
from donewhen.cli._output import Finding, Output
from donewhen.cli._unread_rules import exit_with_unread, note_unread, unread_findings
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.judging.guidance_choice import choose_guidance
from donewhen.judging.mission import MISSION_FILE, read_mission
from donewhen.judging.mission_budget import open_metered_model
from donewhen.judging.mission_options import with_options
from donewhen.judging.ticket import TicketError
from donewhen.judging.ticket_input import STDIN, is_regular_file, tickets_in_files, tickets_of_texts
from donewhen.judging.ticket_judging import VerdictCounts, judge_tickets
from donewhen.judging.verdict import Verdict
from donewhen.models.metered import BudgetError, Meter, MeteredModel

if TYPE_CHECKING:
    from rich.progress import Progress

_BAR_AFTER = 2.0


@click.command()
@click.argument("arguments", nargs=-1, metavar="[MISSION] [FILES]...", type=click.Path(path_type=Path))
@click.option("--text", "texts", is_flag=True, help="Treat each file as the text of one ticket.")
@click.option("--guidance", metavar="STEP|FILE", help="Use the guidance of an earlier step, or from a file.")
@click.option("--model", metavar="NAME", help="Use this model instead of the mission's.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the verdicts to FILE when all tickets are judged.",
)
@click.option("--append", is_flag=True, help="Append each verdict to the --out file at once.")
@max_calls_option
@executor_options
@click.option("--quiet", is_flag=True, help="Print no progress and no summary.")
@common_options
@click.pass_obj
def command(
    output: Output,
    arguments: tuple[Path, ...],
    texts: bool,
    guidance: str | None,
    model: str | None,
    out: Path | None,
    append: bool,
    max_calls: int | None,
    quiet: bool,
    executor: ChosenExecutor,
) -> ExitCode:
    """Judge the tickets in FILES, or on stdin, by the guidance of MISSION.

    MISSION is a folder (default: the current folder). A ticket is a line of JSON with a group_id and a text (or
    evidence). Labels are optional and never shown to the model. With --text, each file is the plain text of one ticket.

    Each verdict is printed as soon as it is made, in the order of the tickets: as a line of JSON on stdout, or as text
    on a terminal. Only a few tickets are read ahead. With --json, one object with all verdicts is printed at the end.

    Paid answers are cached with the mission, so a second run pays only for new questions. Judging stops when the
    mission's budget is used up.

    Bad lines are reported on stderr and skipped. Exit status: 0 if every ticket was judged; 1 if the model gave no
    well-formed answer for a ticket (its verdict is null), the budget was used up, or the model can't read a rule
    (then each verdict that the rule might change needs manual review); 2 if a line was bad or there were no tickets.

    \b
    donewhen judge refunds new.jsonl > verdicts.jsonl
    tail -f new.jsonl | donewhen judge refunds | jq -r '[.group_id, .verdict] | @tsv'
    donewhen judge refunds --text answer.md
    """
    if append and out is None:
        raise UsageError("--append needs --out.")
    folder, files = _sorted_out(arguments)
    mission = with_options(read_mission(folder), calls=max_calls)
    chosen = choose_guidance(mission, guidance)
    asked = executor.open(model or mission.settings.model)
    unread = note_unread(output, unread_findings(mission, chosen, asked))
    if not files:
        files = (STDIN,)
        if os.isatty(0) and not quiet:
            output.note("Reading from standard input. Press Ctrl-D to end it.")
    if STDIN in files and sys.stdin is None:
        raise UsageError("Standard input is closed.")
    counts = VerdictCounts()
    collected: list[dict[str, Any]] = []
    problems = list(unread)
    tickets = (tickets_of_texts if texts else tickets_in_files)(files, mission.name)
    piped = not all(map(is_regular_file, files))
    on_screen = out is None and sys.stdout.isatty()
    started = time.monotonic()
    stopped: Finding | None = None
    with open_metered_model(mission, asked, note_uncached(output)) as asking:
        bar = _Bar(output, counts, asking, files, wanted=not (quiet or texts or output.json or on_screen))
        try:
            with _destination(out, append=append) as write, bar:

                def show(verdict: Verdict | TicketError) -> None:
                    bar.moved()
                    if isinstance(verdict, TicketError):
                        if output.json:
                            problems.append(Finding.of(verdict))
                        else:
                            output.note(f"✗ {verdict}")
                    elif output.json and out is None:
                        collected.append(verdict.as_dict())
                    elif on_screen:
                        _show(output, verdict)
                    else:
                        write(harmless_json(verdict.as_dict()).encode() + b"\n")

                judge_tickets(mission, chosen, asking, tickets, show, piped=piped, counts=counts)
        except KeyboardInterrupt:
            if not output.json:
                output.note(_made(counts, out))
            raise
        except BudgetError as error:
            stopped = budget_finding(error, asking, _made(counts, out))
    if lost := lost_workers(asked):
        output.note(lost)
    if not counts.seen and stopped is None:
        return output.fail(counts.exit_code, Finding("ticket", "There are no tickets to judge."))
    if not quiet and not output.json:
        for line in _summary(counts, asking, time.monotonic() - started):
            output.note(line)
    status = exit_with_unread(counts.exit_code, unread)
    if stopped is not None:
        status = BudgetError.exit_code
        problems.append(stopped)
        if not output.json:
            output.fail(status, stopped)
    data: dict[str, Any] = {
        "mission": mission.name,
        "guidance_step": chosen.step,
        "model": asking.name,
        **counts.as_dict(),
        **{name: getattr(asking.meter, name) for name in ("calls", "tokens", "cached_tokens", "cost", "reused")},
    }
    return output.finish(status, data | ({"verdicts": collected} if out is None else {"out": str(out)}), problems)


def _made(counts: VerdictCounts, out: Path | None) -> str:
    """How many verdicts were made before it stopped."""
    kept = f" and stored in {part_of(out)}" if out is not None and part_of(out).exists() else ""
    return f"{counts.judged + counts.unjudged} verdict(s) were made{kept}."


def _show(output: Output, verdict: Verdict) -> None:
    color = {"pass": "green", "fail": "red", None: "yellow"}[verdict.verdict]
    votes = f"{verdict.passes}:{verdict.fails}" + (f" ({verdict.malformed} malformed)" if verdict.malformed else "")
    wrong = f"  (label: {verdict.label})" if verdict.signals.conflict_flag else ""
    output.say(f"{verdict.verdict or '-':4}  {verdict.group_id}  {votes}  {verdict.reason}{wrong}", fg=color)


def _sorted_out(arguments: tuple[Path, ...]) -> tuple[Path, tuple[Path, ...]]:
    """Split the arguments into the mission (a folder or its settings file) and the ticket files."""
    if not arguments:
        return Path(), ()
    first = arguments[0]
    # A path that does not exist is a mistyped mission, unless the current folder is a mission.
    nothing = not first.exists() and first != STDIN and not Path(MISSION_FILE).exists()
    if first.is_dir() or first.name == MISSION_FILE or nothing:
        return first, arguments[1:]
    return Path(), arguments


@contextmanager
def _destination(out: Path | None, *, append: bool) -> Iterator[Callable[[bytes], None]]:
    """Open the destination. The file is replaced only when complete; verdicts of an interrupted run stay beside it."""
    if out is None:
        yield _writing(sys.stdout.buffer)
    elif append or (out.exists() and not out.is_file()):
        with out.open("ab") as file:
            if _ends_in_the_middle(out):
                file.write(b"\n")
            yield _writing(file)
    else:
        target = Path(os.path.realpath(out))
        part = part_of(out)
        with part.open("wb") as file:
            yield _writing(file)
            os.fsync(file.fileno())
        part.replace(target)


def part_of(out: Path) -> Path:
    """The file that holds verdicts until all are made."""
    target = Path(os.path.realpath(out))
    return target.with_name(f"{target.name}.part")


def _writing(file: IO[bytes]) -> Callable[[bytes], None]:
    def write(line: bytes) -> None:
        file.write(line)
        file.flush()

    return write


def _ends_in_the_middle(path: Path) -> bool:
    """Whether the last line of a file is incomplete, so that the next must not be appended to it."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


class _Bar:
    """A progress bar on stderr, if it is a terminal. It appears after two seconds."""

    def __init__(
        self, output: Output, counts: VerdictCounts, asking: MeteredModel, files: tuple[Path, ...], *, wanted: bool
    ) -> None:
        self._output = output
        self._counts = counts
        self._asking = asking
        self._files = files
        self._due = time.monotonic() + _BAR_AFTER if wanted and sys.stderr.isatty() else None
        self._progress: Progress | None = None

    def moved(self) -> None:
        if self._progress is None:
            if self._due is None or time.monotonic() < self._due:
                return
            self._progress = self._begun()
        lines = [] if self._counts.accuracy is None else [f"accuracy {self._counts.accuracy:.3f}"]
        if not self._asking.free:
            lines.append(_bill(self._asking.meter))
        self._progress.update(self._progress.task_ids[0], completed=self._counts.seen, summary=", ".join(lines))

    def _begun(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("judging"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[summary]}"))
        console = Console(stderr=True, no_color=not self._output.color)
        progress = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, redirect_stdout=False)
        progress.add_task("judging", total=self._total(), summary="")
        progress.start()
        return progress

    def _total(self) -> int | None:
        if not all(map(is_regular_file, self._files)) or STDIN in self._files:
            return None
        total = 0
        for path in self._files:
            with path.open("rb") as file:
                total += sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
        return total

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()


def _summary(counts: VerdictCounts, asking: MeteredModel, seconds: float) -> Iterator[str]:
    passes, fails = counts.verdicts["pass"], counts.verdicts["fail"]
    yield f"{counts.judged} ticket(s) judged in {seconds:.1f} s: {passes} pass, {fails} fail; {counts.review} to review"
    if counts.accuracy is not None:
        yield (
            f"  {counts.right} of {counts.labelled} labelled ticket(s) match the label ({counts.accuracy:.3f}); "
            f"{counts.false_releases} false release(s), {counts.false_blocks} false block(s)"
        )
    if counts.unjudged:
        yield f"  {counts.unjudged} not judged: no well-formed answer"
    if counts.bad:
        yield f"  {counts.bad} bad line(s), see above"
    if not asking.free:
        yield f"  {_bill(asking.meter)}"


def _bill(meter: Meter) -> str:
    cached = f" ({meter.cached_tokens} cached)" if meter.cached_tokens else ""
    known = f"; {meter.reused} answer(s) from the cache" if meter.reused else ""
    return f"{meter.calls} call(s), {meter.tokens} token(s){cached}, cost {meter.cost:.4f}{known}"
