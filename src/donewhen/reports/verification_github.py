"""A verification in GitHub's own forms: annotations beside the lines of a pull request, and the summary of a step.

What is printed in a step can be a command to the runner, so nothing of others' words may look like one.
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


def annotation_lines(found: Verification) -> Iterator[str]:
    """A line a reason, for standard output; the runner shows the first ones beside the files."""
    for level, reasons in (("error", found.reasons), ("notice", found.notes)):
        for reason in reasons:
            place = location_of_reason(found, reason)
            about = [f"title={_property(f'donewhen: {reason.code}')}"]
            if place is not None:
                about = [f"file={_property(place.path)}", f"line={place.line}", *about]
            told = reason.message if reason.next is None else f"{reason.message} Next: {reason.next}"
            yield f"::{level} {','.join(about)}::{_data(one_line(told, 1000))}"


def escape_runner_commands(line: str) -> str:
    """A line that the runner takes for text, whatever somebody has written into it."""
    # Made plain first: what is taken out later could bring together what makes a command.
    return _COMMAND.sub(lambda one: f"{one[1]}∶" if one[1] is not None else "# #", plain_text(line))


def summary(found: Verification) -> str:
    """The summary in Markdown."""
    verdict = "verified" if found.passed else "could not be verified" if found.broken else "not verified"
    claimed = [one for one in found.jobs if one.claimed]
    good = sum(one.passed for one in claimed)
    commit = f" ({found.commit[:10]})" if found.commit else ""
    message = f"{good} of {len(claimed)} job(s) that are said to be done hold, run again by the contract of "
    message += f"{_cell(found.base)}{commit}. {len(found.jobs) - len(claimed)} job(s) were not run."
    lines = [
        f"## donewhen: {verdict}",
        "",
        message,
        "",
        "| | job | case | why |",
        "| --- | --- | --- | --- |",
    ]
    rows = [*_rows("project", found.project), *(row for job in found.jobs for row in _of_job(job))]
    lines += rows[:_MOST]
    if len(rows) > _MOST:
        lines += ["", f"And {len(rows) - _MOST} more."]
    lines += [f"\n- {_cell(note.message)}" for note in found.notes[:_MOST]]
    return "\n".join(lines) + "\n"


def _of_job(job: JobCases) -> Iterator[str]:
    yield from _rows(f"{job.id} {one_line(job.title, 80)}", job.cases)


def _rows(job: str, cases: tuple[VerificationCase, ...]) -> Iterator[str]:
    for case in cases:
        why = "; ".join(reason.message for reason in case.reasons) or (case.text if case.outcome != "passed" else "")
        yield f"| {_MARKS[case.outcome]} {case.outcome} | {_cell(job)} | {_cell(case_name(case))} | {_cell(why)} |"


def _cell(text: str) -> str:
    """Somebody's words as text: no markup, no mention of a person, no link, one line."""
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
