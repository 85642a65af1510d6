"""The history of a job, folded from its ledger chain: status, iterations, completion and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import (
    Answered,
    Completed,
    Decided,
    Disputed,
    EntryContent,
    Invalidated,
    JudgeRun,
    Overridden,
    Ran,
    Refused,
    Started,
)
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.record.entry_memo import EntryMemo
from donewhen.jobs.record.projection import adopted_fields

_SETTING_ASIDE = frozenset({"block", "ask", "dispute"})
_ENDING_REST = frozenset({"answer", "rescope", "split", "cancel"})
"""Decisions after which nothing that was asked before waits any more. Others are about the work, or its limits."""
_ABOUT_OTHER_JOBS = frozenset(
    {
        GateCode.DEPENDENCY_OPEN,
        GateCode.DEPENDENCY_INVALID,
        GateCode.DEPENDENCY_MISSING,
        GateCode.DEPENDENCY_CYCLE,
        GateCode.UPSTREAM_CHANGED,
    }
)
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
    only a person's decision or the work of other jobs was missing, are not counted."""
    waiting: Entry | None
    """The entry that set the job aside (blocked, question or dispute), if nothing has happened since."""
    unanswered: frozenset[str] = frozenset()
    """In a dispute: the criteria on which no person has decided yet."""
    answer: Entry | None = None
    """A person's answer to what had set the job aside, or their decision about a spent budget, if nothing was started,
    tried or asked since: the agent has to read it, and starting again costs no iteration."""

    @property
    def done(self) -> bool:
        return self.completed is not None


_HISTORIES: EntryMemo[History] = EntryMemo()


def history_of(chain: str, entries: Sequence[Entry], policy: Policy) -> History:
    """Fold the entries of a chain into its current state."""
    return _HISTORIES.get(entries, (chain, policy), lambda: _fold(chain, entries, policy))


def _fold(chain: str, entries: Sequence[Entry], policy: Policy) -> History:
    first = adopted_fields(entries[0].content.adopted) if entries else {}
    status: Any = first.get("status", "planned")
    iteration: Any = first.get("iteration", 0)
    started: Entry | None = None
    completed: Entry | None = None
    decided, blocked = False, False
    scores: list[int] = []
    waiting: Entry | None = None
    unanswered: frozenset[str] = frozenset()
    answer: Entry | None = None
    for entry in entries:
        content = entry.content
        if content.writes:
            status = _value_after(content, "status", status)
            iteration = _value_after(content, "iteration", iteration)
        elif entry.type == "ran":
            # By far the most frequent entry; without writes it changes nothing else. What was asked is still open.
            continue
        if isinstance(content, Started | Refused | Completed):
            waiting, unanswered, answer = None, frozenset(), None
        elif isinstance(content, Decided) and content.decision in _SETTING_ASIDE:
            waiting, answer = entry, None
            unanswered = frozenset(content.value.criteria) if isinstance(content, Disputed) else frozenset()
        elif isinstance(content, Decided) and is_approval(entry, chain, policy):
            if content.decision in _ENDING_REST:
                waiting, unanswered, answer = None, frozenset(), None
            if isinstance(content, Answered) or (blocked and content.decision in _UNBLOCKING):
                answer = entry
        elif isinstance(content, Overridden) and waiting is not None and is_approval(entry, chain, policy):
            disputed = bool(unanswered)
            unanswered -= {content.criterion}
            if disputed and not unanswered:
                waiting, answer = None, entry
        match content:
            case Started():
                started, completed = entry, None
            case Completed():
                completed = entry
                scores.clear()
            case Invalidated():
                completed = None
            case Refused(auto_blocked=True):
                blocked, decided = True, False
            case Decided() if content.decision in _UNBLOCKING and is_approval(entry, chain, policy):
                decided = True
            case _:
                pass
        if isinstance(content, Refused) and content.score is not None and _is_attempt(content):
            scores.append(content.score)
        if status != "done":
            completed = None
    return History(status, iteration, started, completed, decided, blocked, tuple(scores), waiting, unanswered, answer)


def failed_again(entries: Sequence[Entry], completed: Entry) -> tuple[Entry, ...]:
    """The newest run of each check since a completion, if it failed. It counts until the check passes again, also if
    the files have changed since."""
    newest: dict[tuple[type[Ran], str], Entry] = {}
    for entry in reversed(entries):
        if entry.seq <= completed.seq:
            break
        content = entry.content
        if isinstance(content, Ran) and not (
            content.hindrance or (isinstance(content, JudgeRun) and (content.needs_human or not content.key))
        ):
            newest.setdefault((type(content), content.evidence), entry)
    return tuple(entry for entry in newest.values() if not entry.read_as(Ran).passed)


def _is_attempt(refused: Refused) -> bool:
    """Whether a refusal says something about the work."""
    codes = {code for codes in (refused.gates or {}).values() for code in codes}
    only_others = bool(codes) and codes <= _ABOUT_OTHER_JOBS
    return GateCode.GATE_ERROR not in codes and not only_others and not (refused.waits_for_person or refused.hindered)


def _value_after(content: EntryContent, name: str, before: Any) -> Any:
    return content.writes[name][1] if name in content.writes else before
