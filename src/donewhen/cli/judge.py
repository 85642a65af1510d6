"""`donewhen judge`: judge tickets from files or stdin."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._executor import ChosenExecutor, executor_options, lost_workers
from donewhen.cli._missions import guidance_at, harmless_json
from donewhen.cli._model_budget import budget_finding, max_calls_option, open_metered_model, with_max_calls
from donewhen.cli._output import Finding, Output
from donewhen.foundation.coroutines import run_awaitable
from donewhen.foundation.disk_dict import DiskDict
from donewhen.foundation.errors import DonewhenError, ExitCode, UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.judging.judge import Judge
from donewhen.judging.mission import MISSION_FILE, read_mission
from donewhen.judging.ticket import Ticket, TicketError, ticket_of, tickets_from_lines
from donewhen.judging.verdict import Verdict
from donewhen.judging.verdict_stream import stream_verdicts
from donewhen.models.metered import BudgetError, Meter, MeteredModel

if TYPE_CHECKING:
    from rich.progress import Progress

STDIN = "-"
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
    well-formed answer for a ticket (its verdict is null) or the budget was used up; 2 if a line was bad or there were
    no tickets.

    \b
    donewhen judge refunds new.jsonl > verdicts.jsonl
    tail -f new.jsonl | donewhen judge refunds | jq -r '[.group_id, .verdict] | @tsv'
    donewhen judge refunds --text answer.md
    """
    if append and out is None:
        raise UsageError("--append needs --out.")
    folder, files = _sorted_out(arguments)
    mission = with_max_calls(read_mission(folder), max_calls)
    chosen = guidance_at(mission, guidance)
    asked = executor.open(model or mission.settings.model)
    if not files:
        files = (Path(STDIN),)
        if os.isatty(0) and not quiet:
            output.note("Reading from standard input. Press Ctrl-D to end it.")
    if Path(STDIN) in files and sys.stdin is None:
        raise UsageError("Standard input is closed.")
    tally = Tally()
    collected: list[dict[str, Any]] = []
    problems: list[Finding] = []
    tickets = _texts(files, mission.name) if texts else _tickets(files, mission.name)
    on_screen = out is None and sys.stdout.isatty()
    started = time.monotonic()
    stopped: Finding | None = None

    async def judged(asking: MeteredModel) -> None:
        bar = _Bar(output, tally, asking, files, wanted=not (quiet or texts or output.json or on_screen))
        found = stream_verdicts(Judge(mission, chosen, asking), tickets, piped=not all(map(_is_file, files)))
        with _destination(out, append=append) as write, bar:
            async for verdict in found:
                tally.count(verdict)
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

    async def to_the_end(asking: MeteredModel) -> None:
        try:
            await judged(asking)
        except DonewhenError:
            # No more calls will follow; wait for those in flight, because they cost money.
            await asking.settled()
            raise
        finally:
            await asking.aclose()

    with open_metered_model(mission, asked, output) as asking:
        try:
            run_awaitable(to_the_end(asking))
        except KeyboardInterrupt:
            if not output.json:
                output.note(_made(tally, out))
            raise
        except BudgetError as error:
            stopped = budget_finding(error, asking, _made(tally, out))
    if lost := lost_workers(asked):
        output.note(lost)
    if not tally.seen and stopped is None:
        return output.fail(ExitCode.USAGE, Finding("ticket", "There are no tickets to judge."))
    if not quiet and not output.json:
        for line in _summary(tally, asking, time.monotonic() - started):
            output.note(line)
    status = ExitCode.USAGE if tally.bad else ExitCode.GATE_FAILED if tally.unjudged else ExitCode.PASS
    if stopped is not None:
        status = ExitCode.GATE_FAILED
        problems.append(stopped)
        if not output.json:
            output.fail(status, stopped)
    data: dict[str, Any] = {
        "mission": mission.name,
        "guidance_step": chosen.step,
        "model": asking.name,
        **tally.as_dict(),
        **{name: getattr(asking.meter, name) for name in ("calls", "tokens", "cached_tokens", "cost", "reused")},
    }
    return output.finish(status, data | ({"verdicts": collected} if out is None else {"out": str(out)}), problems)


def _made(tally: Tally, out: Path | None) -> str:
    """How many verdicts were made before it stopped."""
    kept = f" and stored in {part_of(out)}" if out is not None and part_of(out).exists() else ""
    return f"{tally.judged + tally.unjudged} verdict(s) were made{kept}."


class Tally:
    """Counts of the verdicts so far."""

    def __init__(self) -> None:
        self.verdicts = {"pass": 0, "fail": 0}
        self.unjudged = self.bad = self.review = 0
        self.labelled = self.right = self.false_releases = self.false_blocks = 0

    @property
    def judged(self) -> int:
        return sum(self.verdicts.values())

    @property
    def seen(self) -> int:
        return self.judged + self.unjudged + self.bad

    @property
    def accuracy(self) -> float | None:
        return self.right / self.labelled if self.labelled else None

    def count(self, verdict: Verdict | TicketError) -> None:
        if isinstance(verdict, TicketError):
            self.bad += 1
            return
        if verdict.verdict is None:
            self.unjudged += 1
        else:
            self.verdicts[verdict.verdict] += 1
        self.review += verdict.signals.needs_manual_review
        if verdict.label is not None:
            # A missing verdict counts as wrong: leaving those out would overstate the accuracy.
            self.labelled += 1
            self.right += verdict.verdict == verdict.label
            self.false_releases += verdict.verdict == "pass" != verdict.label
            self.false_blocks += verdict.verdict == "fail" != verdict.label

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.verdicts,
            "not_judged": self.unjudged,
            "bad_lines": self.bad,
            "needs_manual_review": self.review,
            "labelled": self.labelled,
            "right": self.right,
            "accuracy": self.accuracy,
            "false_releases": self.false_releases,
            "false_blocks": self.false_blocks,
        }


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
    nothing = not first.exists() and str(first) != STDIN and not Path(MISSION_FILE).exists()
    if first.is_dir() or first.name == MISSION_FILE or nothing:
        return first, arguments[1:]
    return Path(), arguments


def _tickets(files: tuple[Path, ...], mission: str) -> Iterator[Ticket | TicketError]:
    with DiskDict() as seen:
        for path in files:
            try:
                with _opened(path) as file:
                    yield from tickets_from_lines(file, _name(path), mission, seen, labelled=False)
            except OSError as error:
                yield TicketError(f"The tickets can't be read: {error.strerror}.", where=_name(path))


def _texts(files: tuple[Path, ...], mission: str) -> Iterator[Ticket | TicketError]:
    for path in files:
        try:
            with _opened(path) as file:
                data = {"group_id": one_line(_name(path)), "text": file.read().decode("utf-8")}
            yield ticket_of(data, _name(path), mission, labelled=False)
        except TicketError as error:
            yield error
        except OSError as error:
            yield TicketError(f"The text can't be read: {error.strerror}.", where=_name(path))
        except UnicodeDecodeError as error:
            yield TicketError(f"The text is not UTF-8, from byte {error.start} on.", where=_name(path))


def _opened(path: Path) -> IO[bytes]:
    # Not sys.stdin: the interpreter can't exit while a thread is still reading from it.
    return os.fdopen(os.dup(0), "rb") if str(path) == STDIN else path.open("rb")


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(os.fstat(0).st_mode) if str(path) == STDIN else path.is_file()


def _name(path: Path) -> str:
    return "standard input" if str(path) == STDIN else str(path)


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
        self, output: Output, tally: Tally, asking: MeteredModel, files: tuple[Path, ...], *, wanted: bool
    ) -> None:
        self._output = output
        self._tally = tally
        self._asking = asking
        self._files = files
        self._due = time.monotonic() + _BAR_AFTER if wanted and sys.stderr.isatty() else None
        self._progress: Progress | None = None

    def moved(self) -> None:
        if self._progress is None:
            if self._due is None or time.monotonic() < self._due:
                return
            self._progress = self._begun()
        lines = [] if self._tally.accuracy is None else [f"accuracy {self._tally.accuracy:.3f}"]
        if not self._asking.free:
            lines.append(_bill(self._asking.meter))
        self._progress.update(self._progress.task_ids[0], completed=self._tally.seen, told=", ".join(lines))

    def _begun(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("judging"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[told]}"))
        console = Console(stderr=True, no_color=not self._output.color)
        progress = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, redirect_stdout=False)
        progress.add_task("judging", total=self._total(), told="")
        progress.start()
        return progress

    def _total(self) -> int | None:
        if not all(map(_is_file, self._files)) or Path(STDIN) in self._files:
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


def _summary(tally: Tally, asking: MeteredModel, seconds: float) -> Iterator[str]:
    passes, fails = tally.verdicts["pass"], tally.verdicts["fail"]
    yield f"{tally.judged} ticket(s) judged in {seconds:.1f} s: {passes} pass, {fails} fail; {tally.review} to review"
    if tally.accuracy is not None:
        yield (
            f"  {tally.right} of {tally.labelled} labelled ticket(s) match the label ({tally.accuracy:.3f}); "
            f"{tally.false_releases} false release(s), {tally.false_blocks} false block(s)"
        )
    if tally.unjudged:
        yield f"  {tally.unjudged} not judged: no well-formed answer"
    if tally.bad:
        yield f"  {tally.bad} bad line(s), see above"
    if not asking.free:
        yield f"  {_bill(asking.meter)}"


def _bill(meter: Meter) -> str:
    cached = f" ({meter.cached_tokens} cached)" if meter.cached_tokens else ""
    known = f"; {meter.reused} answer(s) from the cache" if meter.reused else ""
    return f"{meter.calls} call(s), {meter.tokens} token(s){cached}, cost {meter.cost:.4f}{known}"
