"""What probes have shown, as lines for people: pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.jobs.evidence.probe_record import MutantsTried, ProbeRecord, RedBefore

_MOST = 5
_LONGEST = 160
_BEFORE = {
    "yes": "yes",
    "no": "no",
    "could_not_run": "could not run",
    "nothing_new": "nothing shows the change: no test is new or changed, and the agreed ones pass without the work",
    "unknown": "unknown",
}


def probe_lines(record: ProbeRecord) -> tuple[str, ...]:
    """A few lines about a record. The names in them come from the work."""
    return tuple(
        line[: len(line) - len(line.lstrip(" "))] + one_line(line, _LONGEST)
        for line in (*_mutants(record.mutants), *_company(record), *_red_before(record.red_before))
    )


def _mutants(mutants: MutantsTried) -> Iterator[str]:
    if not mutants.tried:
        yield f"mutants: none tried: {mutants.why}"
        return
    left = f"; {mutants.left_out} not tried for lack of time" if mutants.left_out else ""
    yield f"mutants: {mutants.survived} of {mutants.tried} survived{left}"
    yield from (f"  {survivor}" for survivor in mutants.survivors[:_MOST])
    if mutants.survived > _MOST:
        yield f"  and {mutants.survived - _MOST} more"
    if mutants.not_loaded:
        yield f"  no test loads: {join_limited(mutants.not_loaded, _MOST)}"


def _company(record: ProbeRecord) -> Iterator[str]:
    alone, order = record.alone, record.other_order
    if alone.only_in_company:
        yield f"pass only together with other tests: {join_limited(alone.only_in_company, _MOST)}"
    if order.failing:
        yield f"fail in the opposite order: {join_limited(order.failing, _MOST)}"
    tried = f"{alone.tried} tests alone" if alone.tried else ""
    turned = f"{order.tried} in the opposite order" if order.tried else ""
    if tried or turned:
        left = f"; {alone.left_out} not tried alone" if alone.left_out else ""
        yield f"run again: {' and '.join(filter(None, (tried, turned)))}{left}"
    else:
        yield f"alone and in another order: not tried: {alone.why}"


def _red_before(before: RedBefore) -> Iterator[str]:
    names: Sequence[str] = {
        "yes": before.red,
        "no": before.green,
        "could_not_run": before.could_not_run,
    }.get(before.outcome, ())
    listed = f" ({join_limited(names, _MOST)})" if names else ""
    why = f": {before.why}" if before.why else ""
    yield f"red before the work: {_BEFORE[before.outcome]}{listed}{why}"
    if before.undoing_noticed == "no":
        yield "undoing the work would not be noticed"
