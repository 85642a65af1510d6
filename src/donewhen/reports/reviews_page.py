"""Report on people's labels: agreement between people, and with the judge over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from donewhen.reports.judge_plots import drift_plot
from donewhen.reports.markup import escape_line, page, section, table
from donewhen.reports.phrases import NOTHING, share, with_interval
from donewhen.review.judge_drift import Drift
from donewhen.review.people_agreement import PeopleAgreement

_SPARKS = "▁▂▃▄▅▆▇█"
_WIDE = 60


def reviews_text(people: PeopleAgreement, drift: Drift) -> Iterator[str]:
    """Yield the lines of the report for a terminal."""
    names = ", ".join(f"{name} {count}" for name, count in people.by_person.items()) or "none yet"
    yield f"labelled by people: {people.labelled} ticket(s) ({names})"
    for pair in people.pairs:
        kappa = "κ undefined" if pair.kappa is None else f"κ {pair.kappa.value:.2f}"
        yield f"  {pair.first} and {pair.second}: same label on {pair.same} of {pair.tickets}, {kappa}"
    if drift.now is None:
        yield "judge and people: no person has checked a verdict of the judge yet"
        return
    values = [point.share for point in drift.points][-_WIDE:]
    alarm = f"alarm below {drift.threshold:g}"
    yield f"judge and people: agreement {drift.now.value:.2f} on the newest {drift.now.of} verdicts; {alarm}"
    yield f"  {''.join(_SPARKS[min(7, int(value * 8))] for value in values)}  (oldest to newest, 0 to 1)"
    if drift.undecided:
        yield f"  the judge left {drift.undecided} more undecided"


def reviews_data(people: PeopleAgreement, drift: Drift) -> dict[str, Any]:
    """Return the report as data for ``--json``."""
    return {
        "labelled": people.labelled,
        "by_person": people.by_person,
        "pairs": [
            {
                "people": [pair.first, pair.second],
                "tickets": pair.tickets,
                "same": pair.same,
                "kappa": None if pair.kappa is None else pair.kappa.value,
                "differing": list(pair.differing),
            }
            for pair in people.pairs
        ],
        "agreement": None if drift.now is None else drift.now.value,
        "of": 0 if drift.now is None else drift.now.of,
        "alarm_below": drift.threshold,
        "alarm": drift.alarm,
        "left_to_people": drift.undecided,
        "points": [point._asdict() for point in drift.points],
    }


def agreement_table(people: PeopleAgreement) -> str:
    """Return a table of the agreement of each pair of people."""
    rows = [
        [
            escape_line(pair.first),
            escape_line(pair.second),
            str(pair.tickets),
            str(pair.same),
            NOTHING if pair.kappa is None else with_interval(pair.kappa),
        ]
        for pair in people.pairs
    ]
    return table(["person", "other person", "tickets", "same label", "κ"], rows, numbers=[2, 3, 4]) if rows else ""


def reviews_page(mission: str, people: PeopleAgreement, drift: Drift) -> str:
    """Return the report as a self-contained page."""
    title = f"{mission}: judge and people"
    state = "alarm" if drift.alarm else "no alarm"
    lead = f"{people.labelled} tickets were labelled by people. "
    lead += "" if drift.now is None else f"Agreement with the judge: {share(drift.now)}, {state}."
    head = f'<header><h1>{escape_line(title)}</h1><p class="lead">{escape_line(lead, 400)}</p></header>'
    plot = drift_plot(drift)
    drawn = f'<div class="plots">{plot}</div>' if plot else ""
    return page(
        title, "\n".join((head, section("Over time", drawn), section("Between people", agreement_table(people))))
    )
