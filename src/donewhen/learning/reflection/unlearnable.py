"""The tickets from which nothing was learned, and why: one queue, for people to look at."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from donewhen.models.roles import Binary

ReasonCode = Literal["reflection_no_evidence_after_gt", "budget_exhausted", "suspected_label_noise", "policy_question"]

MEANINGS: dict[ReasonCode, str] = {
    "reflection_no_evidence_after_gt": "Nothing in the ticket speaks for its label, so nothing can be learned from it.",
    "budget_exhausted": "It was asked about as often as is allowed, and no answer covered it.",
    "suspected_label_noise": "All votes are against the label, in every epoch, and so are its words.",
    "policy_question": "The labels disagree about what the rule is: decide, and label accordingly.",
}


class QueuedTicket(NamedTuple):
    """One row of the queue."""

    ticket_key: str
    group_id: str
    mission: str
    gt_label: Binary
    pred_verdict: Binary | None
    pred_reason: str
    reason_code: ReasonCode
    epoch: int
    reflection_cycle: str
    reflection_id: str
    uncertainty_note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return self._asdict()
