"""Turn every outcome of a command into an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import NoReturn

import click

from donewhen.cli._output import Finding, Output
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.notices import notices_to


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return one of :class:`ExitCode`, whatever happens."""
    _never_fail_to_print()
    output = Output.from_arguments(arguments)
    if sys.platform == "win32":
        return output.fail(
            ExitCode.USAGE, Finding("platform", "donewhen runs on Linux and macOS; Windows is not supported.")
        )
    try:
        from donewhen.cli._app import app

        told: set[str] = set()

        def on_notice(message: str) -> None:
            # Once: it is the same for each of the jobs of a command.
            if message not in told:
                told.add(message)
                output.note(f"donewhen: {message}")

        with notices_to(on_notice):
            status = app.main(list(arguments), prog_name="donewhen", standalone_mode=False, obj=output)
        sys.stdout.flush()
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except (click.Abort, KeyboardInterrupt):
        return output.fail(ExitCode.INTERRUPTED, Finding("interrupted", "Interrupted. Nothing was left half-written."))
    except click.ClickException as error:
        if not output.json and (help_text := _help_of(error)):
            click.echo(help_text, err=True)
            return ExitCode.USAGE
        return output.fail(ExitCode.USAGE, _usage_finding(error))
    except DonewhenError as error:
        return output.fail(error.exit_code, Finding.of(error))
    except BrokenPipeError:
        _leave_quietly()
    except Exception as error:
        if os.environ.get("DONEWHEN_DEBUG"):
            raise
        return output.fail(ExitCode.INTERNAL, _internal_finding(error, arguments))
    return status if isinstance(status, int) else ExitCode.PASS


def _help_of(error: click.ClickException) -> str | None:
    """The help text that click raises as an error if a group is called without a command."""
    context: click.Context | None = getattr(error, "ctx", None)
    return context.get_help() if context is not None and error.message == context.get_help() else None


def _usage_finding(error: click.ClickException) -> Finding:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "donewhen"
    if _help_of(error):
        return Finding("usage", f"{path} needs a command.", next=f"{path} --help")
    return Finding("usage", error.format_message(), next=f"{path} --help")


def _internal_finding(error: Exception, arguments: Sequence[str]) -> Finding:
    if isinstance(error, OSError) and error.strerror:
        place = str(error.filename) if error.filename else None
        return Finding(
            "io", f"{error.strerror}.", where=place, next="Check the path, the disk space and the permissions."
        )
    from donewhen.foundation.crash_log import write_crash_log

    log = write_crash_log(error, ["donewhen", *arguments])
    advice = f"Report it with the crash log: {log}" if log else "Run again with DONEWHEN_DEBUG=1 for the traceback."
    return Finding("internal", f"Internal error in donewhen: {type(error).__name__}: {error}", next=advice)


def _never_fail_to_print() -> None:
    """Print '?' for a character that the terminal's encoding lacks, instead of failing."""
    # An isolated interpreter does not read the variable.
    asked = CALLER_VARIABLES.get("PYTHONIOENCODING", "").partition(":")[0] or None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            with suppress(LookupError):
                stream.reconfigure(encoding=asked, errors="replace")


def _leave_quietly() -> NoReturn:
    """Exit quietly when the reader of the output is gone, as with ``| head``."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(ExitCode.INTERNAL)
