"""MCP resources: the contract and the plan of each job."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, get_args

import msgspec

from donewhen.foundation.errors import UsageError
from donewhen.foundation.plain_text import plain_text
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreeing import agreement_proposals
from donewhen.jobs.plan.workspace import WorkspaceError
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.dispatch import clean_answer, make_harmless
from donewhen.mcp.views import contract_view

Kind = Literal["contract", "plan"]

KINDS: dict[Kind, tuple[str, str]] = {
    "contract": ("application/json", "What was agreed about a job, and what has changed since."),
    "plan": ("text/markdown", "The current plan of a job."),
}
_ADDRESS = re.compile(rf"donewhen://jobs/([A-Za-z0-9._-]{{1,200}})/({'|'.join(get_args(Kind))})")
_PAGE = 100


class Resource(NamedTuple):
    """One resource."""

    uri: str
    title: str
    mime_type: str


class ResourcePage(NamedTuple):
    """A page of resources, and the cursor of the next page."""

    resources: tuple[Resource, ...]
    next: str | None


def template(kind: Kind) -> str:
    """Return the URI template of a kind of resource."""
    return f"donewhen://jobs/{{job}}/{kind}"


def resource_page(call: CallContext, cursor: str | None) -> ResourcePage:
    """Return one page of resources: the contract and the plan of every job."""
    if cursor is not None and not re.fullmatch(r"[0-9]{1,9}", cursor):
        raise UsageError(f"{cursor!r} is not a valid cursor of this server.")
    first = int(cursor or 0)
    try:
        jobs = survey_jobs(call.workspace()).jobs
    except WorkspaceError:
        # Nothing to list; the tools report the reason.
        jobs = ()
    resources = tuple(
        Resource(f"donewhen://jobs/{job.id}/{kind}", make_harmless(f"{job.id} {kind}: {job.title}"), KINDS[kind][0])
        for job in jobs[first : first + _PAGE]
        for kind in KINDS
    )
    return ResourcePage(resources, str(first + _PAGE) if first + _PAGE < len(jobs) else None)


def resource_text(call: CallContext, uri: str) -> tuple[str, str]:
    """Return a resource's text and MIME type. URIs name jobs, never files."""
    address = _ADDRESS.fullmatch(uri)
    if address is None:
        raise UsageError(
            f"There is no resource {uri!r}.", next_step=f"Available: {', '.join(template(kind) for kind in KINDS)}."
        )
    workspace = call.workspace()
    job = workspace.job(address[1])
    if address[2] == "plan":
        return plain_text(job.document.text), KINDS["plan"][0]
    contract = clean_answer(contract_view(agreement_proposals(workspace, [job])[-1]))
    return msgspec.json.format(msgspec.json.encode(contract)).decode(), KINDS["contract"][0]
