"""What a client can read without calling a tool: the contract of a job, and its plan."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, get_args

import msgspec

from donewhen.foundation.errors import UsageError
from donewhen.foundation.plain_text import plain
from donewhen.jobs.board.survey import survey
from donewhen.jobs.contract.agreement import proposals
from donewhen.jobs.plan.workspace import WorkspaceError
from donewhen.mcp.call_context import Call
from donewhen.mcp.dispatch import cleaned, harmless
from donewhen.mcp.views import contract_of

Kind = Literal["contract", "plan"]

KINDS: dict[Kind, tuple[str, str]] = {
    "contract": ("application/json", "What was agreed about a job, and what has changed since."),
    "plan": ("text/markdown", "The plan of a job, as it stands there now."),
}
_ADDRESS = re.compile(rf"donewhen://jobs/([A-Za-z0-9._-]{{1,200}})/({'|'.join(get_args(Kind))})")
_PAGE = 100


class Resource(NamedTuple):
    """Something to read."""

    uri: str
    title: str
    mime_type: str


class Page(NamedTuple):
    """Some of them, and where the next ones begin."""

    resources: tuple[Resource, ...]
    next: str | None


def template(kind: Kind) -> str:
    """The address of a kind of resource."""
    return f"donewhen://jobs/{{job}}/{kind}"


def listed(call: Call, cursor: str | None) -> Page:
    """The contract and the plan of every job, a page at a time."""
    if cursor is not None and not re.fullmatch(r"[0-9]{1,9}", cursor):
        raise UsageError(f"{cursor!r} is not a cursor that this server gave.")
    first = int(cursor or 0)
    try:
        jobs = survey(call.workspace()).jobs
    except WorkspaceError:
        # Nothing to list; the tools say why.
        jobs = ()
    shown = tuple(
        Resource(f"donewhen://jobs/{one.id}/{kind}", harmless(f"{one.id} {kind}: {one.title}"), KINDS[kind][0])
        for one in jobs[first : first + _PAGE]
        for kind in KINDS
    )
    return Page(shown, str(first + _PAGE) if first + _PAGE < len(jobs) else None)


def read(call: Call, uri: str) -> tuple[str, str]:
    """A resource's text, and what kind of text it is. Addresses name jobs, never files."""
    address = _ADDRESS.fullmatch(uri)
    if address is None:
        raise UsageError(
            f"There is nothing at {uri!r}.", next_step=f"There are: {', '.join(template(kind) for kind in KINDS)}."
        )
    workspace = call.workspace()
    job = workspace.job(address[1])
    if address[2] == "plan":
        return plain(job.document.text), KINDS["plan"][0]
    contract = cleaned(contract_of(proposals(workspace, [job])[-1]))
    return msgspec.json.format(msgspec.json.encode(contract)).decode(), KINDS["contract"][0]
