"""The dashboard's page with the state of the project now."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from donewhen.dashboard.data import Board, UnreadableJob, encode_board
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.views import read_board
from donewhen.jobs.plan.workspace import Workspace
from donewhen.web.page_request import PageRequest
from donewhen.web.rendering import PageContent

SCRIPTS = ("live.js", "live_board.js")
"""What a served dashboard loads in addition to the dashboard's own script."""


class LiveBoard(NamedTuple):
    """The board now, and the same as bytes for the page."""

    board: Board
    data: bytes


def no_jobs_page(request: PageRequest) -> PageContent:
    """Return the page of a folder without jobs."""
    return PageContent("no_jobs.html", "Board", {"missions": request.place.missions()}, room="board")


def live_board(request: PageRequest) -> LiveBoard:
    """Read the board as plans and ledger are now, with every problem that the survey found."""
    workspace = request.place.jobs()
    board = read_board(workspace)
    problems = (*board.unread, *_problems(workspace, request))
    board = msgspec.structs.replace(board, unread=problems)
    return LiveBoard(board, encode_board(board))


def _problems(workspace: Workspace, request: PageRequest) -> list[UnreadableJob]:
    """Return the fields that differ from the ledger, and the jobs in progress without a plan."""
    survey = request.survey()
    lines = [
        (
            workspace.where(job.path),
            f"{job.id}: {miss.field} says {miss.found!r}, but the ledger says {miss.expected!r}.",
        )
        for job in survey.jobs
        for miss in job.tampered
    ]
    lines += [
        (job_id, f"{job_id} is in progress according to the ledger, but its plan is missing or can't be read.")
        for job_id in survey.unseen
    ]
    return [UnreadableJob(one_line(where), one_line(message, 300)) for where, message in lines]
