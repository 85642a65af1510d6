"""`donewhen dashboard`: rebuild the dashboard and the task tracker."""

from __future__ import annotations

import os
import subprocess
import webbrowser
from contextlib import suppress
from pathlib import Path

import click
import msgspec

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Output
from donewhen.dashboard.data import encode_board
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.board.tracker import tracker_path
from donewhen.jobs.board.views import dashboard_path, rebuild_views


@click.command()
@click.option("--open", "opening", is_flag=True, help="Open it in the browser.")
@project_option
@common_options
@click.pass_obj
def command(output: Output, opening: bool, project: Path | None) -> ExitCode:
    """Rebuild the dashboard and the task tracker from all plans and ledger chains.

    Every command that writes keeps both up to date, so this is needed only after plans were edited by hand or branches
    were merged. The page is one self-contained file that you can send to others. Plan files are not changed.

    \b
    donewhen dashboard
    donewhen dashboard --open
    donewhen dashboard --json
    """
    workspace = find_project(project)
    with output.progress("reading the jobs"):
        board = rebuild_views(workspace)
    page = dashboard_path(workspace, "html")
    counts = [f"{count} {name.replace('_', ' ')}" for name, count in board.counts.items() if count]
    output.say(f"{board.project.id}  {board.project.title}  ({board.project.agreement})", bold=True)
    output.say(f"  {', '.join(counts) or 'no jobs yet'}")
    for unreadable in board.unread:
        output.say(f"✗ {unreadable.where}: {unreadable.says}", fg="red")
    output.say(f"  page:    {workspace.where(page)}")
    output.say(f"  data:    {workspace.where(dashboard_path(workspace))}")
    output.say(f"  tracker: {workspace.where(tracker_path(workspace))}")
    opened = opening and _opened(page)
    if opening and not opened:
        output.note(f"No browser was found. Open the page yourself: {page}")
    data = {
        "page": str(page),
        "tracker": str(tracker_path(workspace)),
        "opened": opened,
        "dashboard": msgspec.json.decode(encode_board(board)),
    }
    return output.finish(ExitCode.PASS, data)


def _opened(page: Path) -> bool:
    """Open a page in a browser without waiting for it. Text browsers are not used, unless BROWSER names one."""
    with suppress(webbrowser.Error, OSError):
        found = webbrowser.get()
        if type(found) is not webbrowser.GenericBrowser:
            return found.open(page.as_uri())
        if os.environ.get("BROWSER"):
            argv = [found.name, *(word.replace("%s", page.as_uri()) for word in found.args)]
            quiet = subprocess.DEVNULL
            subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
            return True
    return False
