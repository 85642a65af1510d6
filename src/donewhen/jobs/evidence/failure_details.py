"""What a failed check said: its failed tests with their assertions, else the last lines of its output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from donewhen.foundation.plain_text import one_line, plain_text
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.evidence.records import RecordedReport, UnusableRecord, read_command, read_outcomes
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.ledger.entry_content import CommandRun

_MAX_TESTS = 8
_MAX_LINES = 12
_MAX_LENGTH = 300
_BAD = ("failed", "errored")


def failure_details(store: EvidenceStore, run: CommandRun) -> tuple[str, ...]:
    """A few plain lines without secrets; empty if the run has passed, or this machine does not have its output."""
    if run.passed:
        return ()
    record = read_command(store, run.record)
    report = None if isinstance(record, UnusableRecord) else record.report
    lines = [*_gone_tests(run), *(() if report is None else _failed_tests(store, report))]
    if not lines:
        lines = _last_lines(output_of(store, run))
    return tuple(one_line(redact_secrets(line), _MAX_LENGTH) for line in lines)


def output_of(store: EvidenceStore, run: CommandRun) -> str:
    """The whole output of a run, as it was recorded: without secrets. Empty if this machine does not have it."""
    content = store.get(run.output or "")
    return "" if content is None else redact_secrets(plain_text(content.decode("utf-8", "replace")))


def listed_tests(names: Sequence[str], what: str) -> Iterator[str]:
    """One line for each of these tests, and how many are left out."""
    yield from (f"{what}: {name}" for name in names[:_MAX_TESTS])
    if len(names) > _MAX_TESTS:
        yield f"and {len(names) - _MAX_TESTS} more"


def _gone_tests(run: CommandRun) -> Iterator[str]:
    if run.room is not None:
        yield from listed_tests(run.room.lost, "missing")
        yield from listed_tests(run.room.skipped, "skipped")


def _failed_tests(store: EvidenceStore, report: RecordedReport) -> Iterator[str]:
    outcomes = read_outcomes(store, report.outcomes)
    bad = () if isinstance(outcomes, UnusableRecord) else [name for name, end in outcomes.items() if end in _BAD]
    for name in bad[:_MAX_TESTS]:
        message = report.failures.get(name, "")
        yield f"{name}: {message}" if message else name
    if len(bad) > _MAX_TESTS:
        yield f"and {len(bad) - _MAX_TESTS} more failed tests"


def _last_lines(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.strip()][-_MAX_LINES:]
