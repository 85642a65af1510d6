"""Fields of a plan file that only show what the ledger says. The ledger is the truth; the file is for reading.

Every entry that changes a plan file names each field with its value before and after. So it can be told which value
belongs into a file, whether somebody typed another one, and whether a writer was killed between ledger and file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from donewhen.jobs.ledger.approval import Approval, signature
from donewhen.jobs.ledger.ledger import Entry, EventKind, first_link
from donewhen.jobs.plan.document import Document
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import missing_fields
from donewhen.jobs.plan.workspace import Workspace

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
"""Each projected field with its value in a plan that nothing has happened to."""

WRITTEN_BY_DONEWHEN = frozenset(PROJECTED) | {
    *("updated_at", "stakes", "reward_target", "max_iterations"),
    *("github_issue_number", "github_issue_url"),
}
"""The fields that some command of ours writes; no evidence depends on them."""


Writes: TypeAlias = Mapping[str, "list[Value]"]
"""Fields with their values before and after."""


class Mismatch(NamedTuple):
    """A projected field that does not say what the ledger says."""

    field: str
    found: Value
    expected: Value


def adopted_fields(fields: Mapping[str, Value]) -> dict[str, Value]:
    """What is taken over from a plan file that others have written; never that something is agreed, true or done."""
    refused = unproved_claims(fields)
    return {
        name: fields[name]
        for name in PROJECTED
        if name in fields and name not in (*refused, "agreement_status") and not _blank(fields[name])
    }


def unproved_claims(fields: Mapping[str, Value]) -> dict[str, Value]:
    """What a plan file claims and nothing shows, with what is to stand there instead."""
    found: dict[str, Value] = {}
    if fields.get("status") == "done":
        found |= {"status": "in_progress", "completed_at": ""}
    if fields.get("truth_last_status") == "pass":
        found["truth_last_status"] = "unknown"
    return found


def expected_fields(entries: Iterable[Entry]) -> dict[str, Value]:
    """The projected fields, as the entries of a chain have made them."""
    values = dict(PROJECTED)
    for number, entry in enumerate(entries):
        taken_over = entry.data.get("adopted")
        if number == 0 and isinstance(taken_over, Mapping):
            values.update(adopted_fields(taken_over))
        values.update({name: after for name, (_, after) in _writes(entry).items() if name in PROJECTED})
    return values


def mismatches(fields: Mapping[str, Value], entries: Sequence[Entry]) -> tuple[Mismatch, ...]:
    """Where a plan file and its chain differ; a write that was cut short is not counted."""
    return compare_fields(fields, expected_fields(entries), last_writes(entries))


def compare_fields(fields: Mapping[str, Value], values: Mapping[str, Value], last: Writes) -> tuple[Mismatch, ...]:
    """The same, from what the chain comes to."""
    late = _late(fields, last)
    return tuple(
        Mismatch(name, fields.get(name), value)
        for name, value in values.items()
        if name in PROJECTED and name not in late and not _same(_or_default(fields, name), value)
    )


def pending_writes(fields: Mapping[str, Value], entries: Sequence[Entry]) -> dict[str, Value]:
    """What the last entry wrote and the file does not have, because the writer was killed in between."""
    return _late(fields, last_writes(entries))


def last_writes(entries: Sequence[Entry]) -> Writes:
    """What the last entry of a chain writes: each field with its value before and after."""
    return _writes(entries[-1]) if entries else {}


def record_and_project(
    workspace: Workspace,
    chain: str,
    document: Document,
    path: Path,
    kind: EventKind,
    data: Mapping[str, Any],
    approval: Approval,
    writes: Mapping[str, Value],
) -> tuple[Entry, Document]:
    """Append an entry and bring the plan file up to date with it; the caller holds the lock.

    The ledger comes first: what is in the file and not in the ledger would be a forgery, what is in the ledger and not
    in the file can be repaired.
    """
    ledger = workspace.ledger
    head = ledger.head(chain)
    if head is None:
        data = {**data, "adopted": adopted_fields(document.fields)}
        writes = {**unproved_claims(document.fields), **writes}
    writes = {**missing_fields(document.fields), **writes}
    changed = {name: [document.fields.get(name), value] for name, value in writes.items()}
    content = {**data, "writes": changed} if changed else dict(data)
    content |= signature(approval, chain, head or first_link(chain), kind, content)
    entry = ledger.append(chain, kind, content, approval.by)
    return entry, workspace.write(document, path, writes)


def finish_interrupted_write(
    workspace: Workspace, document: Document, path: Path, entries: Sequence[Entry]
) -> Document:
    """Finish a write that was cut short; the caller holds the lock."""
    missing = pending_writes(document.fields, entries)
    return workspace.write(document, path, missing) if missing else document


def _late(fields: Mapping[str, Value], writes: Writes) -> dict[str, Value]:
    # A file is replaced as a whole: where one field has its new value, the write came through, and others were edited.
    changed = {name: pair for name, pair in writes.items() if not _same(*pair)}
    cut_short = all(_same(fields.get(name), before) for name, (before, _) in changed.items())
    return {name: after for name, (_, after) in changed.items()} if cut_short else {}


def _writes(entry: Entry) -> Writes:
    found = entry.data.get("writes")
    if not isinstance(found, Mapping):
        return {}
    return {name: pair for name, pair in found.items() if isinstance(pair, list) and len(pair) == 2}


def _or_default(fields: Mapping[str, Value], name: str) -> Value:
    """A field that is not there says what it says in a new plan."""
    value = fields.get(name)
    return PROJECTED[name] if _blank(value) else value


def _same(value: Value, other: Value) -> bool:
    return value == other or (_blank(value) and _blank(other))


def _blank(value: Value) -> bool:
    return value is None or value in ("", [])
