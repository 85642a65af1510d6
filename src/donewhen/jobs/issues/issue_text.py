"""What a job's issue on GitHub should be: a pure function of its plan, so that parity can be decided without asking.

Everything here is somebody's text, and it is shown where people and robots read along. So nothing in it can mention a
person, point at another issue, close one, or end our part of the body early.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from donewhen.foundation.canonical import digest
from donewhen.foundation.plain_text import one_line, plain_text, shorten
from donewhen.jobs.plan.criteria import find_section, is_placeholder
from donewhen.jobs.plan.ids import slug
from donewhen.jobs.plan.job import Job

State = Literal["open", "completed", "not_planned"]
"""An issue is open, or closed for a reason."""

STATUS_LABEL = "status:"
WORKSTREAM_LABEL = "ws:"
LONGEST_TITLE = 256
_LONGEST_SLUG = 32
_LONGEST_MILESTONE = 200
_LONGEST_OBJECTIVE = 4000
_LONGEST_CRITERION = 500
# Theirs has to fit in as well, and GitHub takes 65 536 characters in all.
_LONGEST_CRITERIA = 20_000
_STATES: dict[str, State] = {"done": "completed", "cancelled": "not_planned"}

# What GitHub takes for a person or for something that can be closed. A look-alike reads the same and does nothing.
_TRIGGERS = (
    (re.compile(r"@(?=[A-Za-z0-9])"), "＠"),
    (re.compile(r"#(?=[0-9])"), "＃"),
    (re.compile(r"\b(GH)-(?=[0-9])", re.IGNORECASE), "\\1‑"),
    (re.compile(r"(/(?:issues|pull|pulls|discussions|commit))/(?=[0-9A-Fa-f])", re.IGNORECASE), "\\1∕"),
)
_MARKUP = re.compile(r"([\\`*_\[\]~|$])")
_AT_LINE_START = re.compile(r"^([#+=-])")


class IssueContent(NamedTuple):
    """The part of an issue that is ours: as it should be, or as it was seen."""

    title: str
    body: str
    """Our part of the body, between its marks and with them; empty where it is not there."""
    status: str
    """What the status label says; empty where there is none, or more than one."""
    workstream: str
    """The label of the workstream; empty where there is none."""
    milestone: str
    state: State

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(one for one in (self.workstream, f"{STATUS_LABEL}{self.status}") if one)

    def marks(self) -> dict[str, str]:
        """What the ledger keeps of it: short things as they are, texts by their hash."""
        return self._asdict() | {"title": digest(self.title.encode()), "body": digest(self.body.encode())}


def wanted_issue(job: Job, where: str, workstream: str | None, milestone: str) -> IssueContent:
    """The issue of a job; ``where`` is its plan file, ``workstream`` the title of the one that it is in."""
    return IssueContent(
        title=shorten(f"[{job.id}] {one_line(without_mentions(plain_text(job.title)), LONGEST_TITLE)}", LONGEST_TITLE),
        body=_block(job, where),
        status=job.status,
        workstream="" if workstream is None else workstream_label(workstream),
        milestone=milestone,
        state=_STATES.get(job.status, "open"),
    )


def workstream_label(title: str) -> str:
    """``ws:`` and the title in kebab case."""
    return f"{WORKSTREAM_LABEL}{slug(title)[:_LONGEST_SLUG].rstrip('-')}"


def milestone_title(wave: str, title: str) -> str:
    """What the milestone of a wave is called."""
    return one_line(without_mentions(plain_text(f"{wave} {title}")), _LONGEST_MILESTONE)


def begin_mark(job: str) -> str:
    """What our part of an issue's body begins with, and by which the issue is found again."""
    return f"<!-- donewhen: {job} -->"


def end_mark(job: str) -> str:
    return f"<!-- /donewhen: {job} -->"


def without_mentions(text: str) -> str:
    """Text in which nobody is mentioned and nothing is pointed at; it still reads the same."""
    for pattern, harmless in _TRIGGERS:
        text = pattern.sub(harmless, text)
    return text


def escape_markdown(text: str) -> str:
    """Text that is shown as it stands: no markup, no HTML, no mention."""
    lines = (_escaped(line.strip()) for line in without_mentions(plain_text(text)).splitlines())
    return "\n".join(lines).strip()


def _escaped(line: str) -> str:
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _AT_LINE_START.sub(r"\\\1", _MARKUP.sub(r"\\\1", line))


def _block(job: Job, where: str) -> str:
    found = find_section(job.document.body, "Objective")
    said = "" if found is None else "\n".join(one for one in found.text.split("\n") if not is_placeholder(one))
    objective = escape_markdown(shorten(said.strip(), _LONGEST_OBJECTIVE)) or "The plan names no objective."
    parts = [
        begin_mark(job.id),
        f"**Objective**\n\n{objective}",
        f"**Acceptance criteria**\n\n{_criteria(job)}",
        f"**Plan**: {escape_markdown(one_line(where, 500))}",
        "This part is written by donewhen, and is replaced by the next sync. Write above or below it.",
        end_mark(job.id),
    ]
    return "\n\n".join(parts)


def _criteria(job: Job) -> str:
    lines: list[str] = []
    room = _LONGEST_CRITERIA
    for criterion in job.criteria:
        line = f"- {escape_markdown(criterion.id)}: {escape_markdown(one_line(criterion.text, _LONGEST_CRITERION))}"
        room -= len(line) + 1
        if room < 0:
            lines.append(f"- … and {len(job.criteria) - len(lines)} more, in the plan")
            break
        lines.append(line)
    return "\n".join(lines) or "The plan has none yet."


def first_difference(wanted: Mapping[str, str], then: Mapping[str, str], seen: Mapping[str, str]) -> str:
    """What an issue as it was last seen lacks of what is wanted now, in a few words; empty where it lacks nothing.

    ``then`` is what was wanted when it was seen.
    """
    if wanted["status"] != seen.get("status"):
        said = seen.get("status")
        return f"the issue still says {one_line(said, 40)}" if said else "the issue says no status"
    if wanted["state"] != seen.get("state"):
        state = str(seen.get("state", "")).replace("_", " ")
        return f"the issue is {'open' if state == 'open' else f'closed as {one_line(state, 40)}'}"
    for name, told in _TOLD.items():
        if wanted[name] != seen.get(name):
            changed = wanted[name] != then.get(name)
            return f"{told} changed since the last sync" if changed else f"the last sync could not set {told}"
    return ""


_TOLD = {
    "title": "the title",
    "body": "the objective or a criterion",
    "workstream": "the workstream",
    "milestone": "the wave",
}
