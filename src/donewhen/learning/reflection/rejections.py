"""Why a model's proposal was rejected: a closed set of reasons, each with a sentence."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

AnswerReason = Literal[
    "not_json",
    "not_an_object",
    "duplicate_key",
    "missing_field",
    "unknown_field",
    "wrong_type",
    "cut_off",
    "no_answer",
]
ItemReason = Literal[
    "malformed_item",
    "unknown_op",
    "unknown_ticket_key",
    "scaffold_target",
    "unknown_rule",
    "g0_removal",
    "bad_merge",
    "no_evidence",
    "evidence_not_learnable",
    "empty_text",
    "too_long",
    "third_state",
    "ambiguous_negation",
    "no_verdict",
    "both_verdicts",
    "points_mismatch",
    "sample_id",
    "copied_chain",
    "brand",
    "no_falsifier",
    "duplicate",
    "operation_cap",
    "change_cap",
    "rule_cap",
    "has_evidence_false",
]

MEANINGS: dict[AnswerReason | ItemReason, str] = {
    "not_json": "The answer is not valid JSON.",
    "not_an_object": "The answer is JSON, but not an object.",
    "duplicate_key": "A key occurs twice in one object.",
    "missing_field": "A required field is missing.",
    "unknown_field": "The answer has a field that is not in the schema.",
    "wrong_type": "A field has a value of the wrong type.",
    "cut_off": "The model's answer was truncated.",
    "no_answer": "The model gave no answer.",
    "malformed_item": "The operation or hypothesis has missing, unknown or invalid fields.",
    "unknown_op": "Unknown operation; use add, update, delete or merge.",
    "unknown_ticket_key": "The ticket was not in the question.",
    "scaffold_target": "The scaffold can't be changed.",
    "unknown_rule": "There is no rule with this key.",
    "g0_removal": "G0 can't be removed.",
    "bad_merge": "A merge must list other rules, each only once.",
    "no_evidence": "No ticket is given as evidence.",
    "evidence_not_learnable": "The evidence contains a ticket that is not learnable or was not in the question.",
    "empty_text": "The rule has no text.",
    "too_long": "The rule is too long.",
    "third_state": "The rule mentions a third verdict; there are only two.",
    "ambiguous_negation": "The rule says what the verdict is not, instead of what it is.",
    "no_verdict": "The rule has no verdict.",
    "both_verdicts": "The rule has both verdicts.",
    "points_mismatch": "The sign of the points contradicts the rule's verdict; plus is for pass, minus for fail.",
    "sample_id": "The rule names a ticket.",
    "copied_chain": "The rule copies a ticket's own words.",
    "brand": "The dimension is a brand, or the rule depends on which brand it is.",
    "no_falsifier": "The hypothesis does not say what would disprove it.",
    "duplicate": "The rule already exists, or is changed or proposed twice in the same answer.",
    "operation_cap": "The answer has too many operations.",
    "change_cap": "No further change is allowed in this epoch.",
    "rule_cap": "The maximum number of rules is reached.",
    "has_evidence_false": "The answer says that there is no evidence, but proposes something.",
}


class Rejection(NamedTuple):
    """A rejected item of an answer."""

    what: Literal["operation", "hypothesis", "ticket"]
    reason: ItemReason
    detail: str
    item: Any = None

    def as_dict(self) -> dict[str, Any]:
        return self._asdict()
