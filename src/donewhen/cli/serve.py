"""`donewhen serve`: serve the pages for a browser."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Output
from donewhen.cli._token_file import read_token
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.jobs.ledger.approval import person_at_terminal
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.person_check import why_no_person

if TYPE_CHECKING:
    from donewhen.web.reviewers import Reviewers

_PORT_IN_USE = "Open that page, or use another port: donewhen serve --port 0"
_LONGEST_NAME = 60


@click.command()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Other machines need a token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8642,
    show_default=True,
    help="Port to listen on; 0 chooses a free one.",
)
@click.option(
    "--reviewer",
    "reviewers",
    multiple=True,
    metavar="NAME",
    help="A person who may give verdicts, each with an own link (default: you).",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File with the access token (default: a new token is printed if other machines can connect).",
)
@click.option("--open", "opening", is_flag=True, help="Open it in the browser.")
@project_option
@common_options
@click.pass_obj
def command(
    output: Output,
    host: str,
    port: int,
    reviewers: tuple[str, ...],
    token_file: Path | None,
    opening: bool,
    project: Path | None,
) -> ExitCode:
    """Serve pages for a browser: jobs and gates, the graph, the review queue, missions and runs.

    The pages are read-only except for verdicts in the review queue. To give them, open the one-time link printed on the
    terminal.

    \b
    donewhen serve
    donewhen serve --port 0 --reviewer ada --reviewer bo
    """
    from donewhen.foundation.listening import is_loopback, listening, url_of
    from donewhen.web.access_rules import AccessPolicy
    from donewhen.web.listener import prepare_server
    from donewhen.web.project_folder import ProjectFolder
    from donewhen.web.reviewers import Reviewers
    from donewhen.web.server_state import ServerState

    start = (project or Path.cwd()).resolve()
    if any(start.glob("PJ-*/plan.md")):
        # Several projects need a choice. No project is fine, because one may be created later.
        find_project(start)
    people = Reviewers(*_who(reviewers))
    token = read_token(token_file) if token_file else None if is_loopback(host) else secrets.token_urlsafe(24)
    site = ServerState(ProjectFolder(start), AccessPolicy(host, token), people, output.note)
    # Before listening, so that a missing package is reported now and not when a page is opened.
    serve = prepare_server(site)
    with listening(host, port, command="donewhen serve", advice=_PORT_IN_USE) as listener:
        site.url = url_of(listener)
        _say_where(output, site.url, people, token, from_file=token_file is not None)
        names = [person.name for person in people.named]
        output.finish(ExitCode.PASS, {"url": f"{site.url}/", "pid": os.getpid(), "reviewers": names})
        sys.stdout.flush()
        if opening:
            # Without a secret in it: other users can see the arguments of a process.
            click.launch(f"{site.url}/")
        serve(listener)
    return ExitCode.PASS


def _say_where(output: Output, url: str, people: Reviewers, token: str | None, *, from_file: bool) -> None:
    """Print the addresses. Secrets are printed on a terminal only."""
    output.say(f"The page is at {url}/", bold=True)
    if token is not None:
        shown = "TOKEN" if from_file else token
        output.note(f"The pages need the token: {url}/open?token={shown}")
        output.note("The connection is not encrypted. Outside of a trusted network, use a TLS proxy.")
    for person in people.named:
        output.note(f"One-time link to give verdicts as {person.name}: {url}{people.link(person.name)}")
    if people.why_not:
        output.note(people.why_not)
    output.note("Ctrl-C ends it.")


def _who(reviewers: tuple[str, ...]) -> tuple[tuple[Actor, ...], str]:
    """Who may give verdicts, or why nobody may: links are printed only at a terminal."""
    why = why_no_person(nobody="the server was not started at a terminal")
    if why is None:
        names = dict.fromkeys(" ".join(reviewer.split()) for reviewer in reviewers)
        for name in names:
            if not name or len(name) > _LONGEST_NAME or not name.isprintable():
                raise UsageError(f"{name!r} can't be the name of a reviewer.", where="--reviewer")
        return tuple(Actor(name, "person") for name in names) or (person_at_terminal(),), ""
    if reviewers:
        raise UsageError(f"Verdicts can't be given on this page: {why}.", next_step="Start it at a terminal.")
    return (), f"This page is read-only: {why}. Give verdicts at a terminal: donewhen review"
