"""What the ledger says about a job: how it stands, how often it was tried, what it was completed with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.record.projection import adopted_fields

_RESTING = frozenset({"block", "ask", "dispute"})
_FREEING = frozenset({"raise_budget", "rescope", "split", "stakes", "target"})


class History(NamedTuple):
    """A chain, read for the gates. Every value comes from entries; nothing from the plan file."""

    status: str
    iteration: int
    started: Entry | None
    completed: Entry | None
    """The completion that still stands; None once the job was started again, invalidated, refused or cancelled."""
    decided_since_block: bool
    """Whether somebody who may has decided something since the budget ran out."""
    auto_blocked: bool
    scores: tuple[int, ...]
    """The scores of the tries to complete it since it was last done. One in which a gate broke, or nothing but a
    person's word was missing, has none."""
    waiting: Entry | None
    """Why it rests: blocked with a reason, or a question to a person, and nothing has happened since."""
    unanswered: frozenset[str] = frozenset()
    """Where it waits because of a dispute: the criteria on which no person has given a word yet."""

    @property
    def done(self) -> bool:
        return self.completed is not None


def history_of(chain: str, entries: Sequence[Entry], policy: Policy) -> History:
    """Fold a chain."""
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
        status = _written(entry, "status", status)
        iteration = _written(entry, "iteration", iteration)
        if entry.type in ("started", "ran", "refused", "completed", "decided"):
            waiting = entry if entry.data.get("decision") in _RESTING else None
            unanswered = _disputed(entry)
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
            case "decided" if entry.data.get("decision") in _FREEING and is_approval(entry, chain, policy):
                decided = True
        said_something = not _broken(entry) and not entry.data.get("waits_for_person")
        if entry.type == "refused" and isinstance(entry.data.get("score"), int) and said_something:
            scores.append(entry.data["score"])
        if status != "done":
            completed = None
    return History(status, iteration, started, completed, decided, blocked, tuple(scores), waiting, unanswered)


def _disputed(entry: Entry) -> frozenset[str]:
    criteria = _table(entry.data.get("value")).get("criteria") if entry.data.get("decision") == "dispute" else ()
    return frozenset(map(str, criteria)) if isinstance(criteria, list) else frozenset()


def _broken(entry: Entry) -> bool:
    return any("gate_error" in codes for codes in _table(entry.data.get("gates")).values())


def _written(entry: Entry, name: str, before: Any) -> Any:
    pair = _table(entry.data.get("writes")).get(name)
    return pair[1] if isinstance(pair, list) and len(pair) == 2 else before


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
