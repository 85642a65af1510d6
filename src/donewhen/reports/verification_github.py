"""A verification for GitHub Actions: annotations in a pull request, and the summary of a step.

Output of a step can contain runner commands, so text from other sources is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from donewhen.foundation.plain_text import one_line, plain_text
from donewhen.jobs.verifying import JobCases, Verification, VerificationCase
from donewhen.reports.verification_junit import case_name
from donewhen.reports.verification_places import location_of_reason

_MARKS = {"passed": "✅", "failed": "❌", "error": "💥", "skipped": "⏭️"}
_COMMAND = re.compile(r"^(\s*):(?=:)|##(?=\[)")
_MOST = 200


def annotation_lines(verification: Verification) -> Iterator[str]:
    """Yield one annotation per reason for standard output; the runner shows the first ones next to the files."""
    for level, reasons in (("error", verification.reasons), ("notice", verification.notes)):
        for reason in reasons:
            place = location_of_reason(verification, reason)
            about = [f"title={_property(f'donewhen: {reason.code}')}"]
            if place is not None:
                about = [f"file={_property(place.path)}", f"line={place.line}", *about]
            text = reason.message if reason.next is None else f"{reason.message} Next: {reason.next}"
            yield f"::{level} {','.join(about)}::{_data(one_line(text, 1000))}"


def escape_runner_commands(line: str) -> str:
    """Escape a line so that the runner never reads it as a command."""
    # Remove control characters first: removing them later could join characters to a command.
    return _COMMAND.sub(lambda match: f"{match[1]}∶" if match[1] is not None else "# #", plain_text(line))


def summary(verification: Verification) -> str:
    """Return the summary in Markdown."""
    verdict = "verified" if verification.passed else "could not be verified" if verification.broken else "not verified"
    claimed = [job for job in verification.jobs if job.claimed]
    good = sum(job.passed for job in claimed)
    commit = f" ({verification.commit[:10]})" if verification.commit else ""
    message = f"{good} of {len(claimed)} completed job(s) verified again with the contract of "
    message += f"{_cell(verification.base)}{commit}. {len(verification.jobs) - len(claimed)} job(s) were not run."
    lines = [
        f"## donewhen: {verdict}",
        "",
        message,
        "",
        "| | job | case | why |",
        "| --- | --- | --- | --- |",
    ]
    rows = [*_rows("project", verification.project), *(row for job in verification.jobs for row in _job_rows(job))]
    lines += rows[:_MOST]
    if len(rows) > _MOST:
        lines += ["", f"And {len(rows) - _MOST} more."]
    lines += [f"\n- {_cell(note.message)}" for note in verification.notes[:_MOST]]
    return "\n".join(lines) + "\n"


def _job_rows(job: JobCases) -> Iterator[str]:
    yield from _rows(f"{job.id} {one_line(job.title, 80)}", job.cases)


def _rows(job: str, cases: tuple[VerificationCase, ...]) -> Iterator[str]:
    for case in cases:
        why = "; ".join(reason.message for reason in case.reasons) or (case.text if case.outcome != "passed" else "")
        yield f"| {_MARKS[case.outcome]} {case.outcome} | {_cell(job)} | {_cell(case_name(case))} | {_cell(why)} |"


def _cell(text: str) -> str:
    """Escape untrusted text for a table cell: one line without markup, mentions or links."""
    escaped = one_line(text, 400)
    for old, new in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ("@", "&#64;"),
        ("#", "&#35;"),
        ("://", ":&#47;/"),
        ("www.", "www&#46;"),
    ):
        escaped = escaped.replace(old, new) if old != "#" else re.sub(r"(?<!&)#", new, escaped)
    return re.sub(r"([\\|`*_\[\]!~])", r"\\\1", escaped)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(one_line(text, 400)).replace(":", "%3A").replace(",", "%2C")
