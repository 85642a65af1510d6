"""A person answers a question of an agent, or says how to go on with a blocked job: the job is in progress again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from donewhen.foundation.errors import UsageError
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.ledger.approval import Approval, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Decided
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import History, history_of
from donewhen.jobs.record.writing import writing

ANSWERABLE = ("ask", "block")
LONGEST_ANSWER = 4000
"""Characters: an agent's tools cut what is much longer, and nothing of an answer may be lost."""


@dataclass(frozen=True)
class AnswerRecord:
    """The entry of an answer, and whether it counts."""

    entry: Entry
    counts: bool


def answer_job(workspace: Workspace, name: str, words: str, approval: Approval, *, seen: str = "") -> AnswerRecord:
    """Record the answer to what a job waits for. Raise UsageError if that is no longer the entry ``seen``.

    The job goes on without an iteration. An agent's answer is only recorded, and the job still waits.
    """
    if not words.strip():
        raise UsageError("The answer is empty.", next_step='Give it with --reason "…".')
    if len(words) > LONGEST_ANSWER:
        raise UsageError(
            f"The answer is longer than {LONGEST_ANSWER} characters. Nothing was recorded.",
            next_step="Write what is longer into a file, and name the file.",
        )
    job = workspace.job(name)
    with writing(workspace, job.path, job.id) as plan:
        policy = approval_policy(plan.snapshot)
        history = history_of(job.id, plan.entries, policy)
        waiting = history.waiting
        asked = None if waiting is None else waiting.read_as(Decided)
        if waiting is None or asked is None or asked.decision not in ANSWERABLE:
            raise UsageError(f"{job.id} doesn't wait for an answer. Nothing was recorded.", next_step="donewhen review")
        if seen and waiting.hash != seen:
            raise UsageError(
                f"{job.id} asks something else by now. Nothing was recorded.",
                next_step="Review it again: donewhen review",
            )
        data: dict[str, Any] = {
            "decision": "answer",
            "reason": words.strip(),
            "value": {"entry": waiting.hash, "asked": asked.reason},
        }
        writes = _status_after(history, workspace.now()) if approval.counts(policy) else {}
        entry = plan.append("decided", data, approval, writes)
    return AnswerRecord(entry, is_approval(entry, job.id, policy))


def _status_after(history: History, now: str) -> dict[str, Value]:
    """A job whose iterations are used up stays blocked: that is another decision."""
    if history.status != "blocked" or (history.auto_blocked and not history.decided_since_block):
        return {"updated_at": now}
    return {"status": "planned" if history.started is None else "in_progress", "updated_at": now}
