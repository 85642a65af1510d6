"""The history of a job, folded from its ledger chain: status, iterations, completion and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.record.projection import adopted_fields

_SETTING_ASIDE = frozenset({"block", "ask", "dispute"})
_UNBLOCKING = frozenset({"raise_budget", "rescope", "split", "stakes", "target"})


class History(NamedTuple):
    """The state of a chain. Every value comes from ledger entries, none from the plan file."""

    status: str
    iteration: int
    started: Entry | None
    completed: Entry | None
    """The completion that is still valid; None after the job was started again, invalidated, refused or cancelled."""
    decided_since_block: bool
    """Whether an accepted approver has made a decision since the budget ran out."""
    auto_blocked: bool
    scores: tuple[int, ...]
    """The scores of the attempts to complete it since it was last done. Attempts in which a gate had an error, or
    only a person's decision was missing, are not counted."""
    waiting: Entry | None
    """The entry that set the job aside (blocked, question or dispute), if nothing has happened since."""
    unanswered: frozenset[str] = frozenset()
    """In a dispute: the criteria on which no person has decided yet."""

    @property
    def done(self) -> bool:
        return self.completed is not None


def history_of(chain: str, entries: Sequence[Entry], policy: Policy) -> History:
    """Fold the entries of a chain into its current state."""
    first = adopted_fields(_table(entries[0].data.get("adopted"))) if entries else {}
    status: Any = first.get("status", "planned")
    iteration: Any = first.get("iteration", 0)
    started: Entry | None = None
    completed: Entry | None = None
    decided, blocked = False, False
    scores: list[int] = []
    waiting: Entry | None = None
    unanswered: frozenset[str] = frozenset()
    for entry in entries:
        status = _value_after(entry, "status", status)
        iteration = _value_after(entry, "iteration", iteration)
        if entry.type in ("started", "ran", "refused", "completed", "decided"):
            waiting = entry if entry.data.get("decision") in _SETTING_ASIDE else None
            unanswered = _disputed_criteria(entry)
        elif entry.type == "overridden" and waiting is not None and is_approval(entry, chain, policy):
            unanswered -= {str(entry.data.get("criterion"))}
            waiting = waiting if unanswered else None
        match entry.type:
            case "started":
                started, completed = entry, None
            case "completed":
                completed = entry
                scores.clear()
            case "invalidated":
                completed = None
            case "refused" if entry.data.get("auto_blocked"):
                blocked, decided = True, False
            case "decided" if entry.data.get("decision") in _UNBLOCKING and is_approval(entry, chain, policy):
                decided = True
        is_attempt = not _has_gate_error(entry) and not entry.data.get("waits_for_person")
        if entry.type == "refused" and isinstance(entry.data.get("score"), int) and is_attempt:
            scores.append(entry.data["score"])
        if status != "done":
            completed = None
    return History(status, iteration, started, completed, decided, blocked, tuple(scores), waiting, unanswered)


def _disputed_criteria(entry: Entry) -> frozenset[str]:
    criteria = _table(entry.data.get("value")).get("criteria") if entry.data.get("decision") == "dispute" else ()
    return frozenset(map(str, criteria)) if isinstance(criteria, list) else frozenset()


def _has_gate_error(entry: Entry) -> bool:
    return any("gate_error" in codes for codes in _table(entry.data.get("gates")).values())


def _value_after(entry: Entry, name: str, before: Any) -> Any:
    pair = _table(entry.data.get("writes")).get(name)
    return pair[1] if isinstance(pair, list) and len(pair) == 2 else before


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
