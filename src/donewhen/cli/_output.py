"""What the command line prints: text for people, or one JSON envelope for programs."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, TextIO

import click

from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.plain_text import one_line, plain_text

SCHEMA = "donewhen/v1"
_NARROWEST = 30
"""Columns below which nothing is broken between words."""


@dataclass(frozen=True)
class Finding:
    """A finding: a code, a sentence, a location, and the next command."""

    code: str
    message: str
    where: str | None = None
    next: str | None = None

    @classmethod
    def of(cls, error: DonewhenError) -> Finding:
        return cls(error.code, error.message, error.where, error.next_step)


@dataclass
class Output:
    """How output is written. The options are valid anywhere on the command line."""

    json: bool = False
    color: bool = True
    command: str = "donewhen"

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Output:
        """Read before parsing, so that a usage error is also reported in the right format."""
        ours = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
        color = not os.environ.get("NO_COLOR") and "--no-color" not in ours
        return cls(json="--json" in ours, color=color)

    def say(self, text: str = "", *, bold: bool = False, fg: str | None = None, dim: bool = False) -> None:
        """Print one line for people, with control characters removed. Silent with --json."""
        self._say(_without_promises(text), bold=bold, fg=fg, dim=dim)

    def prose(self, text: str, *, bold: bool = False, fg: str | None = None, dim: bool = False) -> None:
        """Print a text for people; at a terminal, lines are broken between words, and what follows is indented."""
        for line in _wrapped(text, _columns(sys.stdout)):
            self.say(line, bold=bold, fg=fg, dim=dim)

    def promise(self, text: str) -> None:
        """Print a promise. Nothing else on stdout can look like one."""
        self._say(text, fg="green")

    def _say(self, text: str, *, bold: bool = False, fg: str | None = None, dim: bool = False) -> None:
        if not self.json:
            styled = click.style(_line(text), bold=bold or None, fg=fg, dim=dim or None)
            click.echo(styled, color=None if self.color else False)

    def note(self, text: str) -> None:
        """Print one line for people on stderr, also with --json; at a terminal broken between words."""
        for line in _wrapped(text, _columns(sys.stderr)):
            self._to_stderr(line)

    def finish(
        self,
        status: ExitCode,
        data: Mapping[str, Any] | None = None,
        findings: Sequence[Finding] = (),
        *,
        promising: bool = False,
    ) -> ExitCode:
        """End a command: print the JSON envelope if --json was given, and return the exit status.

        Promise tags in the data are escaped, unless ``promising``.
        """
        if self.json:
            envelope = {
                "schema": SCHEMA,
                "command": self.command,
                "ok": status == ExitCode.PASS,
                "data": dict(data or {}),
                "findings": [
                    asdict(replace(finding, message=_without_promises(finding.message))) for finding in findings
                ],
            }
            text = json.dumps(envelope, indent=2, ensure_ascii=False, default=str)
            click.echo(text if promising else harmless_text(text))
        return status

    def fail(self, status: ExitCode, finding: Finding) -> ExitCode:
        """End a command with an error."""
        if not self.json:
            place = f"{finding.where}: " if finding.where else ""
            self._to_stderr(f"donewhen: {place}{finding.message}", fg="red")
            if finding.next:
                self._to_stderr(f"  next: {finding.next}")
        return self.finish(status, findings=[finding])

    @contextmanager
    def progress(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show a spinner with the elapsed time on a terminal; the yielded function changes its text."""
        if self.json or not sys.stderr.isatty():
            yield lambda _: None
            return
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.text import Text

        console = Console(stderr=True, no_color=not self.color)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(Text(plain_text(text)).markup)
            yield lambda now: bar.update(task, description=Text(one_line(now, 100)).markup)

    def _to_stderr(self, text: str, fg: str | None = None) -> None:
        click.echo(click.style(_line(text), fg=fg), err=True, color=None if self.color else False)


def _columns(stream: TextIO) -> int:
    """The width of the terminal that a stream is; 0 if it is none, or its size is not known."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        return 0


def _wrapped(text: str, columns: int) -> list[str]:
    """A text in lines that fit, as far as its words do."""
    text = _line(text)
    if columns < _NARROWEST or len(text) < columns:
        return [text]
    indent = text[: len(text) - len(text.lstrip())]
    more = indent + "  " if indent else ""
    wrapped = textwrap.wrap(
        text, columns - 1, subsequent_indent=more, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
    return wrapped or [text]


def harmless_text(text: str) -> str:
    """Escape control characters and anything that looks like a promise in JSON text; the data stay the same."""
    text = re.sub(r"<(?=/?promise>)", r"\\u003c", text)
    # In GitHub Actions, a line with "##[" can be a command to the runner.
    text = text.replace("##[", "#\\u0023[")
    if not text.isprintable():
        text = "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
    return text


def _line(text: str) -> str:
    """Remove control characters and line breaks, so that a title or path can't look like a second line of output."""
    return plain_text(text).replace("\n", "⏎")


def _without_promises(text: str) -> str:
    """Replace promise tags in untrusted text: programs search the output for promises."""
    return text.replace("<promise>", "‹promise›").replace("</promise>", "‹/promise›")
