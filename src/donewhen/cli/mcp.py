"""`donewhen mcp`: serve tools for agents."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from donewhen.cli._jobs import project_option
from donewhen.cli._output import Output
from donewhen.cli._token_file import checked_token, new_token, read_token, write_token
from donewhen.foundation.errors import ExitCode, UsageError

_DEFAULT_PORT = 8643
_VARIABLE = "DONEWHEN_MCP_TOKEN"


@click.command()
@click.option(
    "--http",
    "address",
    is_flag=False,
    flag_value=f"127.0.0.1:{_DEFAULT_PORT}",
    metavar="[HOST:PORT]",
    help=f"Serve over streamable HTTP, for several clients (default: 127.0.0.1:{_DEFAULT_PORT}; port 0 chooses one).",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"File with the bearer token for --http; a new file gets a new token (default: ${_VARIABLE}, or a new token).",
)
@project_option
@click.pass_obj
def command(output: Output, address: str | None, token_file: Path | None, project: Path | None) -> ExitCode:
    """Serve the jobs of one project to agents, over the Model Context Protocol on stdin and stdout, or over HTTP.

    Agent runtimes start this command. Agents can list jobs, run checks, complete jobs and ask a person. They can't
    agree, sign off, decide or give verdicts, and everything they do is recorded as an agent's action.

    \b
    donewhen mcp
    donewhen mcp --http
    donewhen mcp --http 127.0.0.1:0 --token-file ~/.donewhen-mcp-token
    """
    folder = (Path.cwd() if project is None else project).resolve()
    if address is not None:
        return _serve_http(output, folder, *_parsed(address), token_file)
    if token_file is not None:
        raise UsageError("--token-file belongs to --http: standard input needs no token.")
    from donewhen.mcp.server import serve

    if sys.stdin.isatty():
        output.note(
            "This command is for agent runtimes: it reads requests from standard input. Press Ctrl-D to end it."
        )
    serve(folder)
    return ExitCode.PASS


def _serve_http(output: Output, folder: Path, host: str, port: int, token_file: Path | None) -> ExitCode:
    from donewhen.foundation.listening import is_loopback, listening, url_of
    from donewhen.mcp.http_access import PATH
    from donewhen.mcp.http_server import prepare_http

    with _token(token_file) as (token, where):
        # Before listening, so that a missing package is reported now.
        serve = prepare_http(folder, host, token)
        advice = "Use that server, or another port: donewhen mcp --http 127.0.0.1:0"
        with listening(host, port, command="donewhen mcp", advice=advice) as listener:
            output.say(f"The MCP server is at {url_of(listener)}{PATH}", bold=True)
            output.note(where)
            if not is_loopback(host):
                output.note("The connection is not encrypted. Outside of a trusted network, use a TLS proxy.")
            output.note("Ctrl-C ends it.")
            sys.stdout.flush()
            serve(listener)
    return ExitCode.PASS


@contextmanager
def _token(path: Path | None) -> Iterator[tuple[str, str]]:
    """Context manager: the token, and a sentence that says where clients get it."""
    given = os.environ.get(_VARIABLE)
    if path is not None:
        if path.exists():
            token = read_token(path)
        else:
            token = new_token()
            write_token(path, token)
        yield token, f"Clients need the token in {path} as their bearer token."
    elif given:
        yield checked_token(given, f"${_VARIABLE}"), f"Clients need the token in ${_VARIABLE} as their bearer token."
    elif sys.stderr.isatty():
        token = new_token()
        yield token, f"Clients need this bearer token, which is shown only once: {token}"
    else:
        # What is not a terminal may be a log: the token is written to a file that only this user can read.
        with tempfile.TemporaryDirectory(prefix="donewhen-mcp-") as private:
            token, file = new_token(), Path(private) / "token"
            write_token(file, token)
            yield token, f"Clients need the token in {file} as their bearer token. The file is removed at the end."


def _parsed(address: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, HOST, :PORT or PORT; an IPv6 address with a port is in brackets."""
    host, port = address, ""
    if address.isdigit():
        host, port = "", address
    elif address.startswith("["):
        host, _, rest = address[1:].partition("]")
        port = rest.removeprefix(":")
    elif address.count(":") == 1:
        host, _, port = address.partition(":")
    if port and not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise UsageError(f"{port!r} is not a port.", where="--http", next_step="Give HOST:PORT, such as 127.0.0.1:0.")
    return host or "127.0.0.1", int(port or _DEFAULT_PORT)
