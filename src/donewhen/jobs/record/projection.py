"""Projected fields: plan fields that are copied from the ledger, which is authoritative.

Every entry that changes a plan file records each field with its value before and after. This shows which value belongs
in the file, whether it was edited by hand, and whether a writer was killed between the ledger and the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.record.entry_memo import EntryMemo

_MAX_REASON = 300
PROJECTED: dict[str, Value] = {
    "status": "planned",
    "agreement_status": "proposed",
    "agreed_at": "",
    "agreed_by": "",
    "iteration": 0,
    "rework_count": 0,
    "started_at": "",
    "completed_at": "",
    "reward_last_score": 0,
    "reward_last_eval_at": "",
    "reward_last_next_action": "",
    "truth_last_status": "unknown",
    "truth_last_checked_at": "",
    "truth_last_failures": [],
}
"""Each projected field with its value in a new plan."""

WRITTEN_BY_DONEWHEN = frozenset(PROJECTED) | {
    *("updated_at", "stakes", "reward_target", "max_iterations", "rework_reason"),
    *("github_issue_number", "github_issue_url"),
}
"""The fields that donewhen writes; no evidence depends on them."""


def rework_fields(entries: Sequence[Entry], reason: str) -> dict[str, Value]:
    """The fields to write when a job is refused or started again: how often that has happened, and why now."""
    count = expected_fields(entries)["rework_count"]
    known = count if isinstance(count, int) and not isinstance(count, bool) else 0
    return {"rework_count": known + 1, "rework_reason": one_line(reason, _MAX_REASON)}


Writes: TypeAlias = Mapping[str, "tuple[Value, Value]"]
"""Fields with their values before and after."""


class Mismatch(NamedTuple):
    """A projected field that differs from the ledger."""

    field: str
    found: Value
    expected: Value


def typed_fields(fields: Mapping[str, Value]) -> dict[str, Value]:
    """The fields of a plan without a ledger that say that something has happened, with the values of a new plan.

    Not that it is agreed: that is a finding until somebody agrees. A project begins when it is created.
    """
    kept = ("agreement_status", "started_at") if _is_whole(fields) else ("agreement_status",)
    return {
        name: value
        for name, value in PROJECTED.items()
        if name not in kept and not _is_same(_value_or_default(fields, name), value)
    }


def kept_fields(fields: Mapping[str, Value]) -> dict[str, Value]:
    """The fields that the first entry takes over from a plan file: since when there is a project."""
    begun = fields.get("started_at")
    return {"started_at": begun} if _is_whole(fields) and not _is_blank(begun) else {}


def adopted_fields(fields: Mapping[str, Value]) -> dict[str, Value]:
    """The fields that the first entry of an older version took over from a plan file; never that something is agreed,
    true or done."""
    return {
        name: fields[name]
        for name in PROJECTED
        if name in fields and not _is_unproved(name, fields) and not _is_blank(fields[name])
    }


def _is_unproved(name: str, fields: Mapping[str, Value]) -> bool:
    if name in ("status", "completed_at"):
        return fields.get("status") == "done"
    return name == "agreement_status" or (name == "truth_last_status" and fields[name] == "pass")


_FIELDS: EntryMemo[dict[str, Value]] = EntryMemo()


def expected_fields(entries: Sequence[Entry]) -> dict[str, Value]:
    """The values of the projected fields after these entries."""
    return dict(_FIELDS.get(entries, None, lambda: _fold_fields(entries)))


def _fold_fields(entries: Sequence[Entry]) -> dict[str, Value]:
    values = dict(PROJECTED)
    for number, entry in enumerate(entries):
        if number == 0:
            values.update(adopted_fields(entry.content.adopted))
        if writes := entry.content.writes:
            values.update({name: after for name, (_, after) in writes.items() if name in PROJECTED})
    return values


def mismatches(fields: Mapping[str, Value], entries: Sequence[Entry]) -> tuple[Mismatch, ...]:
    """The fields in which a plan file differs from its chain, except those of an interrupted write."""
    return compare_fields(fields, expected_fields(entries), last_writes(entries))


def shared_fields(fields: Mapping[str, Value]) -> dict[str, Value]:
    """Those that are written into the plan of a project or workstream: only that it is agreed, which every branch
    writes alike. The branches of all jobs would write different values of the others into the same lines."""
    return {name: value for name, value in fields.items() if (name, value) == ("agreement_status", "agreed")}


def parent_mismatches(fields: Mapping[str, Value], entries: Sequence[Entry]) -> tuple[Mismatch, ...]:
    """The fields of a project's or workstream's plan that claim what its chain has never said.

    They may say what they said when the plan was new, or what was true once.
    """
    expected = expected_fields(entries)
    return tuple(
        Mismatch(name, found, expected[name])
        for name, default in PROJECTED.items()
        if not _is_blank(found := fields.get(name))
        and found != default
        and not any(_is_same(found, value) for value in _values_of(name, entries))
    )


def _values_of(name: str, entries: Sequence[Entry]) -> Iterator[Value]:
    for entry in entries:
        if name in entry.content.adopted:
            yield entry.content.adopted[name]
        yield from entry.content.writes.get(name, ())


def compare_fields(fields: Mapping[str, Value], values: Mapping[str, Value], last: Writes) -> tuple[Mismatch, ...]:
    """The same, from the expected values and the last writes of a chain."""
    differing = [
        Mismatch(name, found, value)
        for name, value in values.items()
        # First what holds for nearly all fields of thousands of plans, without a call.
        if not ((found := fields.get(name)) == value and (found or value == PROJECTED.get(name)))
        and name in PROJECTED
        and not _is_same(_value_or_default(fields, name), value)
    ]
    unwritten = unwritten_fields(fields, last) if differing else {}
    return tuple(mismatch for mismatch in differing if mismatch.field not in unwritten)


def pending_writes(fields: Mapping[str, Value], entries: Sequence[Entry]) -> dict[str, Value]:
    """The fields of the last entry that are missing in the file because the writer was killed."""
    return unwritten_fields(fields, last_writes(entries))


def last_writes(entries: Sequence[Entry]) -> Writes:
    """The fields that the last entry writes, with their values before and after."""
    return entries[-1].content.writes if entries else {}


def unwritten_fields(fields: Mapping[str, Value], writes: Writes) -> dict[str, Value]:
    """The fields of these writes that are missing in the file, with their new values."""
    # A file is replaced as a whole: if any field has its new value, the write succeeded and the others were edited.
    changed = {name: pair for name, pair in writes.items() if not _is_same(*pair)}
    interrupted = all(_is_same(fields.get(name), before) for name, (before, _) in changed.items())
    return {name: after for name, (_, after) in changed.items()} if interrupted else {}


def _value_or_default(fields: Mapping[str, Value], name: str) -> Value:
    """The value of a field; an empty field has the value of a new plan."""
    value = fields.get(name)
    return PROJECTED[name] if _is_blank(value) else value


def _is_same(value: Value, other: Value) -> bool:
    return value == other or (_is_blank(value) and _is_blank(other))


def _is_blank(value: Value) -> bool:
    return value is None or value in ("", [])


def _is_whole(fields: Mapping[str, Value]) -> bool:
    """Whether a plan is that of a project or a workstream, which begin when they are created."""
    return fields.get("kind") in ("project", "workstream")
