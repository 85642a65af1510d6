"""Thirty seconds of an agent that says done too early."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.text import plain

if TYPE_CHECKING:
    from rich.console import Console

    from donewhen.adapters.scripted import Message
    from donewhen.demo.job_story import Line
    from donewhen.protocols import PromptResponse

_NEXT = (
    ("{donewhen} check --run 'python -m unittest --help'", "the same question, asked by you or by CI"),
    ("{donewhen} demo --job", "an agent that edits the plan, and why that does not help it"),
    ("{donewhen} demo --judge", "a judge that learns from people's verdicts, in writing"),
    ("{donewhen} hooks install --claude", "let Claude Code (or --codex) ask it at every stop"),
    ("{donewhen} explain", "every reason that donewhen can give"),
    ("docs/tutorial-task-completion.md", "write, combine and test checkers of your own"),
)


@click.command()
@click.option("--fast", is_flag=True, help="Don't pause between lines.")
@click.option("--job", is_flag=True, help="The second story: a job that can't be talked into done.")
@click.option("--judge", is_flag=True, help="The third story: a judge that learns in writing.")
@common_options
@click.pass_obj
def command(output: Output, fast: bool, job: bool, judge: bool) -> ExitCode:
    """Watch an agent say done too early, be told what is missing, finish, and be let go.

    The agent is a script, so there is no model and no key. Everything else is real: the folder, the files, the
    tests, the checks; with --job also the commands, and the terminal at which a person agrees. With --judge, the
    reports are made up, and the learning is real.
    """
    from rich.console import Console

    from donewhen.demo.story import play

    console = Console(no_color=not output.color, highlight=False, quiet=output.json, soft_wrap=False)
    pause = 0.0 if fast or output.json or not sys.stdout.isatty() else 0.9
    teller = Teller(console, pause)
    if job and judge:
        raise UsageError("One story at a time: --job or --judge.")
    if job:
        return _job(output, teller)
    if judge:
        return _judge(output, teller)
    with tempfile.TemporaryDirectory(prefix="donewhen-demo-") as folder:
        teller.begin()
        response = play(Path(folder), teller.tell)
        teller.end(response)
    report = response.completion
    status = ExitCode.PASS if report is not None and report.verified else ExitCode.INTERNAL
    data = {"transcript": [asdict(one) for one in teller.messages], "completion": report and asdict(report)}
    return output.finish(status, data)


def _job(output: Output, teller: Teller) -> ExitCode:
    from donewhen.demo.job_story import play_job

    lines: list[Line] = []

    def tell(line: Line) -> None:
        lines.append(line)
        teller.line(line)

    with tempfile.TemporaryDirectory(prefix="donewhen-demo-") as folder:
        teller.say(
            "\n[bold]An agent that can edit every file.[/bold] The plan says what done means; who keeps the plan?\n"
        )
        ending = play_job(Path(folder), tell)
    if ending.told:
        teller.say(
            "\n[bold]What was agreed is sealed, what was shown is kept, and the ledger remembers who did what.[/bold]\n"
        )
    else:
        teller.say(f"\n[bold]{ending.because}[/bold]\n")
    data = {"story": [one._asdict() for one in lines], "told": ending.told, "because": ending.because}
    return output.finish(ExitCode.INTERNAL if ending.broken else ExitCode.PASS, data)


def _judge(output: Output, teller: Teller) -> ExitCode:
    import msgspec

    from donewhen.demo.judge_story import play_judge

    lines: list[Line] = []

    def tell(line: Line) -> None:
        lines.append(line)
        teller.line(line)

    with tempfile.TemporaryDirectory(prefix="donewhen-demo-") as folder:
        teller.say(
            "\n[bold]Would people accept it?[/bold] They have said so of some work. Here is a judge that listens.\n"
        )
        ending = play_judge(Path(folder), tell)
    if ending.better:
        teller.say("\n[bold]Every rule has its tickets, every change its trial, and nothing was trained.[/bold]\n")
    data = {"story": [one._asdict() for one in lines], "report": msgspec.to_builtins(ending.report)}
    return output.finish(ExitCode.PASS if ending.better else ExitCode.INTERNAL, data)


class Teller:
    """Shows the conversation as a story."""

    def __init__(self, console: Console, pause: float = 0.0) -> None:
        self._console = console
        self._pause = pause
        self.messages: list[Message] = []

    def begin(self) -> None:
        from donewhen.demo.story import DONE_WHEN, TASK

        self._console.print("\n[bold]Agents say “done” when they are not.[/bold] Here is one.\n")
        self._line("task", "cyan", TASK)
        for number, one in enumerate(DONE_WHEN):
            self._line("done when" if number == 0 else "", "cyan", one)
        self._console.print()

    def tell(self, message: Message) -> None:
        self.messages.append(message)
        if len(self.messages) == 1:
            return
        match message.role:
            case "assistant":
                if message.text:
                    self._line("agent", "yellow", f"“{message.text}”")
                for one in message.calls:
                    self._line("agent", "yellow", _doing(one.name, dict(one.arguments)), dim=True)
            case "user":
                self._line("donewhen", "red", f"✗ Not yet. {message.text}")
                self._console.print()
            case "tool" if message.is_error:
                self._line("tool", "red", message.text)
            case "tool":
                pass

    def end(self, response: PromptResponse[None]) -> None:
        report = response.completion
        if report is None or not report.verified:
            self._line("donewhen", "red", "✗ The agent was let go unverified; this demo is broken.")
            return
        self._line("donewhen", "green", f"✓ Done. {report.feedback}")
        said = f"The agent said done {report.attempts} times. It was done once: when the proof was there."
        self._console.print(f"\n[bold]{said}[/bold]\n\nWhere to go next:")
        for what, why in _NEXT:
            told = what.format(donewhen=_program())
            self._console.print(f"  [cyan]{told}[/cyan]", f"[dim]{why}[/dim]", sep="\n      ")
        self._console.print()

    def say(self, text: str) -> None:
        """A sentence of the story itself."""
        self._console.print(text)

    def line(self, line: Line) -> None:
        """What somebody does, or what donewhen answers."""
        if line.who == "donewhen":
            mark, color = ("✓", "green") if line.good else ("✗", "red")
            text = line.text if line.text[:1] in "✓✗!" else f"{mark} {line.text}"
            self._line("donewhen", color, text)
        else:
            self._line(line.who, "yellow" if line.who == "agent" else "cyan", line.text, dim=line.who == "agent")

    def _line(self, who: str, color: str, text: str, *, dim: bool = False) -> None:
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        row = Table.grid(padding=(0, 1))
        row.add_column(width=9, justify="right")
        row.add_column(ratio=1)
        row.add_row(Text(who, style=f"bold {color}"), Text(plain(text), style="dim" if dim else ""))
        self._console.print(Padding(row, (0, 0, 0, 1)))
        if self._pause:
            time.sleep(self._pause)


def _program() -> str:
    """How the reader can call donewhen from where they are."""
    called = sys.argv[0]
    return called if shutil.which("donewhen") is None and Path(called).name == "donewhen" else "donewhen"


def _doing(tool: str, arguments: dict[str, object]) -> str:
    match tool:
        case "planning_setup_plan":
            steps = arguments.get("steps")
            return f"plans: {' · '.join(map(str, steps))}" if isinstance(steps, list) else "plans"
        case "planning_update_step":
            return f"marks step {arguments.get('step_id')} {arguments.get('status')}"
        case "write_file":
            return f"writes {arguments.get('path')}"
        case _:
            return tool
