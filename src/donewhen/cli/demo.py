"""`donewhen demo`: an agent cheats and is refused, a judge learns, people decide. Two minutes."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.install_line import install_line

if TYPE_CHECKING:
    from donewhen.demo.story import Ending
    from donewhen.demo.storyteller import Storyteller

_WIDEST = 110
_BEFORE = (
    "An agent has three jobs in a small repository. The agent and the person are scripts that type what you would. "
    "Everything else is real."
)


@click.command()
@click.option("--fast", is_flag=True, help="Don't pause between lines.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Run in DIR and keep the files (default: a temporary folder that is removed).",
)
@click.option(
    "--model", default="contrast", show_default=True, metavar="NAME", help="The model that judges and learns."
)
@common_options
@click.pass_obj
def command(output: Output, fast: bool, folder: Path | None, model: str) -> ExitCode:
    """Show how an agent cheats and is refused, does its work, and is judged by a judge that learns from people.

    The agent and the person are scripts that type what you would, and the tickets for the judge are made up. Everything
    else is real: the repository, the commands, the tests, the terminal, the learned rules, and every number. The
    default model contrast needs no download and no key.
    """
    from rich.console import Console

    from donewhen.demo.story import play
    from donewhen.demo.story_lines import StoryLine
    from donewhen.demo.storyteller import Storyteller

    columns = min(_WIDEST, shutil.get_terminal_size((100, 24)).columns)
    # Without colour, bold and dim are switched off, too.
    console = Console(color_system="auto" if output.color else None, highlight=False, quiet=output.json, width=columns)
    watched = not output.json and sys.stdout.isatty() and sys.stderr.isatty()
    teller = Storyteller(console, slowly=watched and not fast)
    began = time.monotonic()
    with _place(folder) as place:
        teller.say("\n[bold]Nothing is done because somebody says so. It is done when the proof is there.[/bold]")
        teller.tell(StoryLine("story", "note", _BEFORE))
        ending = play(place, teller.tell, model=model, columns=columns, watched=watched)
        seconds = time.monotonic() - began
        _last_words(teller, ending, place, seconds, kept=folder is not None)
    data = _data(teller, ending, seconds, place if folder is not None else None)
    return output.finish(ExitCode.INTERNAL if ending.broken else ExitCode.PASS, data)


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="donewhen-demo-", ignore_cleanup_errors=True) as made:
            yield Path(made).resolve()
        return
    if folder.exists() and any(folder.iterdir()):
        raise UsageError("The demo needs a new or empty folder.", where=str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    yield folder.resolve()


def _last_words(teller: Storyteller, ending: Ending, place: Path, seconds: float, *, kept: bool) -> None:
    from rich.markup import escape

    if not ending.told or ending.learned is None:
        teller.say(f"\n[bold]{escape(ending.because)}[/bold]\n")
        return
    teller.say(
        f"\n[bold]Three jobs and a project are done: {len(ending.promises)} promises that are in the ledger, and "
        f"none for a false claim.[/bold] ({seconds:.0f} s)\n"
    )
    donewhen = _program()
    here = Path.cwd()
    folder = shlex.quote(str(place.relative_to(here) if place.is_relative_to(here) else place))
    page = ending.learned.page
    if kept:
        rows = [
            ("what the judge has learned", str(page.relative_to(here) if page.is_relative_to(here) else page)),
            ("the folder", folder),
            ("the page, in a browser", f"{donewhen} -C {folder} serve{_extra()}"),
        ]
    else:
        message = "The temporary folder was removed. To keep the files, the report and the page:"
        rows = [(message, f"{donewhen} demo --folder slugs")]
    for name, what in (*rows, ("set up your own agent (or --codex)", f"{donewhen} hooks install --claude")):
        teller.say(f"  [dim]{name}[/dim]\n      [cyan]{escape(what)}[/cyan]")
    teller.say("")


def _data(teller: Storyteller, ending: Ending, seconds: float, folder: Path | None) -> dict[str, Any]:
    learned = ending.learned
    return {
        "story": [line._asdict() for line in teller.lines],
        "told": ending.told,
        "because": ending.because,
        "learned": None
        if learned is None
        else {"tickets": learned.tickets, "before": learned.before, "after": learned.after},
        "promises": [promise.splitlines() for promise in ending.promises],
        "folder": None if folder is None else str(folder),
        "report": None if folder is None or learned is None else str(learned.page),
        "seconds": round(seconds, 1),
    }


def _program() -> str:
    """The command that the reader can use to call donewhen."""
    called = sys.argv[0]
    return called if shutil.which("donewhen") is None and Path(called).name == "donewhen" else "donewhen"


def _extra() -> str:
    missing = not (find_spec("starlette") and find_spec("uvicorn"))
    return f"   (first: {install_line('web')})" if missing else ""
