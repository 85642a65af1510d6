"""Review items from missions: labels that look wrong, rules that are close to being tried, second opinions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from donewhen.foundation.plain_text import one_line
from donewhen.judging.labels import current_labels, read_label_log, ticket_hash
from donewhen.judging.mission import Mission
from donewhen.judging.ticket import Ticket
from donewhen.learning.after.report_data import LearningReport, QueueRow, read_report
from donewhen.learning.reflection.hypotheses import PooledHypothesis, missing_support
from donewhen.learning.running.pool_store import waiting_pool
from donewhen.learning.running.run_folders import run_folders
from donewhen.review.items import Kind, ReviewItem

_DOUBTS: dict[str, Kind] = {"suspected_label_noise": "label_noise", "policy_question": "policy"}
_MOST = 100
"""Maximum number of items of each kind."""
_CLOSE = 2
"""A hypothesis that lacks at most this many tickets, and one cycle, is close to being tried."""
PERSON = "person:"


def mission_items(name: str, mission: Mission) -> Iterator[ReviewItem]:
    """Yield every review item about a mission."""
    report = newest_report(mission)
    if report is not None:
        yield from _doubts(name, mission, report)
    yield from _hypotheses(name, mission)


def newest_report(mission: Mission) -> LearningReport | None:
    """Return the report of the newest finished run."""
    reports = map(read_report, reversed(run_folders(mission)))
    return next((report for report in reports if report is not None), None)


def second_opinions(name: str, mission: Mission, by: str) -> Iterator[ReviewItem]:
    """Yield the tickets that exactly one other person has labelled."""
    status = current_labels(read_label_log(mission.folder))
    for group in [group for group, labels in status.items() if len(labels) == 1 and by not in labels][-_MOST:]:
        (label,) = status[group].values()
        ticket = Ticket(group, mission.name, None, label.evidence, label.cluster or group)
        yield ReviewItem(
            kind="second_opinion",
            title=f"{name}  {one_line(group, 120)}",
            question="Would you accept this?",
            # The label itself is not shown, so that the second opinion is independent.
            why=f"{label.by} has labelled it.",
            since=label.at,
            evidence=label.evidence,
            mission=name,
            said=label.said,
            subject=ticket_hash(ticket),
            ticket=ticket,
            key=group,
        )


def _doubts(name: str, mission: Mission, report: LearningReport) -> Iterator[ReviewItem]:
    settled = current_labels(read_label_log(mission.folder))
    rows = (row for row in report.queue if row.reason_code in _DOUBTS)
    left = (row for row in rows if row.ticket_key.rpartition("::")[0] not in settled)
    open_rows = {row.ticket_key: row for row in islice(left, _MOST)}
    if not open_rows:
        return
    for ticket in mission.tickets():
        row = open_rows.pop(ticket.key, None)
        if row is not None:
            yield _doubt(name, report, ticket, row)
        if not open_rows:
            return


def _doubt(name: str, report: LearningReport, ticket: Ticket, row: QueueRow) -> ReviewItem:
    bare = ticket._replace(label=None, label_source="", label_timestamp="")
    source = f" by {ticket.label_source}" if ticket.label_source else ""
    return ReviewItem(
        kind=_DOUBTS[row.reason_code],
        title=f"{name}  {one_line(ticket.group_id, 120)}",
        question="Would you accept this?",
        why=one_line(f"It was labelled {ticket.label}{source}. {row.note or 'All votes of the judge disagree.'}", 400),
        since=report.finished_at,
        evidence=ticket.evidence,
        mission=name,
        subject=ticket_hash(bare),
        ticket=bare,
        key=ticket.key,
    )


def _hypotheses(name: str, mission: Mission) -> Iterator[ReviewItem]:
    settings = mission.settings.reflection
    cycles, tickets = settings.hypothesis_min_support_cycles, settings.hypothesis_min_unique_ticket_keys
    close = (hypothesis for hypothesis in waiting_pool(mission) if _is_close(hypothesis, cycles, tickets))
    for hypothesis in islice(close, _MOST):
        lacking = missing_support(hypothesis, cycles, tickets)
        yield ReviewItem(
            kind="hypothesis",
            title=f"{name}  possible rule",
            question=f"Is this right? {one_line(hypothesis.text, 400)}",
            why=(
                f"{len(hypothesis.evidence)} ticket(s) in {len(hypothesis.cycles)} cycle(s) support it; "
                f"still missing: {lacking}."
            ),
            since="",
            evidence={
                "rule": hypothesis.text,
                "it would be wrong if": hypothesis.falsifier,
                "tickets": ", ".join(hypothesis.evidence),
            },
            mission=name,
            subject=hypothesis.signature,
            key=f"{hypothesis.signature} {len(hypothesis.evidence)}",
        )


def _is_close(hypothesis: PooledHypothesis, cycles: int, tickets: int) -> bool:
    if hypothesis.fate != "waiting" or any(name.startswith(PERSON) for name in hypothesis.cycles):
        return False
    return cycles - len(hypothesis.cycles) <= 1 and tickets - len(hypothesis.evidence) <= _CLOSE
