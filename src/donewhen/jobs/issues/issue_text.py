"""The expected content of a job's GitHub issue: a pure function of its plan, so that parity needs no network access.

The text is untrusted and shown to people and bots. So it is escaped: it can't mention a person, link to or close
another issue, or end our part of the body early.
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
"""Open, or closed with a reason."""

STATUS_LABEL = "status:"
WORKSTREAM_LABEL = "ws:"
LONGEST_TITLE = 256
_LONGEST_SLUG = 32
_LONGEST_MILESTONE = 200
_LONGEST_OBJECTIVE = 4000
_LONGEST_CRITERION = 500
# The users' own text has to fit in as well; GitHub accepts 65 536 characters in total.
_LONGEST_CRITERIA = 20_000
_STATES: dict[str, State] = {"done": "completed", "cancelled": "not_planned"}

# What GitHub treats as a mention or a reference. The replacement looks the same and has no effect.
_TRIGGERS = (
    (re.compile(r"@(?=[A-Za-z0-9])"), "＠"),
    (re.compile(r"#(?=[0-9])"), "＃"),
    (re.compile(r"\b(GH)-(?=[0-9])", re.IGNORECASE), "\\1‑"),
    (re.compile(r"(/(?:issues|pull|pulls|discussions|commit))/(?=[0-9A-Fa-f])", re.IGNORECASE), "\\1∕"),
)
_MARKUP = re.compile(r"([\\`*_\[\]~|$])")
_AT_LINE_START = re.compile(r"^([#+=-])")


class IssueContent(NamedTuple):
    """The part of an issue that donewhen manages: as expected, or as seen on GitHub."""

    title: str
    body: str
    """Our part of the body, including its markers; empty if it is missing."""
    status: str
    """The status of the status label; empty if there is none, or more than one."""
    workstream: str
    """The label of the workstream; empty if there is none."""
    milestone: str
    state: State

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(label for label in (self.workstream, f"{STATUS_LABEL}{self.status}") if label)

    def marks(self) -> dict[str, str]:
        """What the ledger stores: short values as they are, title and body as hashes."""
        return self._asdict() | {"title": digest(self.title.encode()), "body": digest(self.body.encode())}


def expected_issue(job: Job, where: str, workstream: str | None, milestone: str) -> IssueContent:
    """The expected issue of a job; ``where`` is its plan file, ``workstream`` the title of its workstream."""
    return IssueContent(
        title=shorten(f"[{job.id}] {one_line(without_mentions(plain_text(job.title)), LONGEST_TITLE)}", LONGEST_TITLE),
        body=_body_block(job, where),
        status=job.status,
        workstream="" if workstream is None else workstream_label(workstream),
        milestone=milestone,
        state=_STATES.get(job.status, "open"),
    )


def workstream_label(title: str) -> str:
    """``ws:`` and the title in kebab case."""
    return f"{WORKSTREAM_LABEL}{slug(title)[:_LONGEST_SLUG].rstrip('-')}"


def milestone_title(wave: str, title: str) -> str:
    """The title of a wave's milestone."""
    return one_line(without_mentions(plain_text(f"{wave} {title}")), _LONGEST_MILESTONE)


def begin_mark(job: str) -> str:
    """The marker at the start of our part of an issue's body; it also identifies the issue."""
    return f"<!-- donewhen: {job} -->"


def end_mark(job: str) -> str:
    return f"<!-- /donewhen: {job} -->"


def without_mentions(text: str) -> str:
    """Replace mentions and references with text that looks the same and has no effect."""
    for pattern, replacement in _TRIGGERS:
        text = pattern.sub(replacement, text)
    return text


def escape_markdown(text: str) -> str:
    """Escape text so that it is displayed literally: no markup, no HTML, no mentions."""
    lines = (_escape_line(line.strip()) for line in without_mentions(plain_text(text)).splitlines())
    return "\n".join(lines).strip()


def _escape_line(line: str) -> str:
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _AT_LINE_START.sub(r"\\\1", _MARKUP.sub(r"\\\1", line))


def _body_block(job: Job, where: str) -> str:
    section = find_section(job.document.body, "Objective")
    lines = [] if section is None else [line for line in section.text.split("\n") if not is_placeholder(line)]
    objective = escape_markdown(shorten("\n".join(lines).strip(), _LONGEST_OBJECTIVE)) or "The plan names no objective."
    parts = [
        begin_mark(job.id),
        f"**Objective**\n\n{objective}",
        f"**Acceptance criteria**\n\n{_criteria_list(job)}",
        f"**Plan**: {escape_markdown(one_line(where, 500))}",
        "This part is written by donewhen, and is replaced by the next sync. Write above or below it.",
        end_mark(job.id),
    ]
    return "\n\n".join(parts)


def _criteria_list(job: Job) -> str:
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
    """Describe the first difference between the expected issue and the issue as last seen; empty if there is none.

    ``then`` is the content that was expected when the issue was seen.
    """
    if wanted["status"] != seen.get("status"):
        status = seen.get("status")
        return f"the issue still has the status {one_line(status, 40)}" if status else "the issue has no status label"
    if wanted["state"] != seen.get("state"):
        state = str(seen.get("state", "")).replace("_", " ")
        return f"the issue is {'open' if state == 'open' else f'closed as {one_line(state, 40)}'}"
    for name, label in _FIELD_LABELS.items():
        if wanted[name] != seen.get(name):
            changed = wanted[name] != then.get(name)
            return f"{label} changed since the last sync" if changed else f"the last sync could not set {label}"
    return ""


_FIELD_LABELS = {
    "title": "the title",
    "body": "the objective or a criterion",
    "workstream": "the workstream",
    "milestone": "the wave",
}
