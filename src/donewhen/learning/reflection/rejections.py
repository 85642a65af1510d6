"""Why something that a model proposed was not taken: a closed set of reasons, each with its sentence."""

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
    "not_json": "The answer is not one JSON object.",
    "not_an_object": "The answer is JSON, but not an object.",
    "duplicate_key": "A name occurs twice in one object.",
    "missing_field": "A field that must be there is missing.",
    "unknown_field": "There is a field that the schema does not have.",
    "wrong_type": "A field has a value of the wrong kind.",
    "cut_off": "The model was cut off before it had finished.",
    "no_answer": "The model gave no answer.",
    "malformed_item": "The operation or hypothesis does not have the fields that it must have.",
    "unknown_op": "There is no such operation: add, update, delete and merge are all.",
    "unknown_ticket_key": "A ticket is named that was not in the question.",
    "scaffold_target": "The scaffold can't be changed.",
    "unknown_rule": "There is no rule with this key.",
    "g0_removal": "G0 is always there, and can't be removed.",
    "bad_merge": "A merge names other rules that go into one, each once.",
    "no_evidence": "No ticket is given as evidence.",
    "evidence_not_learnable": "A ticket is given as evidence that is not learnable, or was not shown.",
    "empty_text": "The rule has no text.",
    "too_long": "The rule is longer than a rule may be.",
    "third_state": "The rule speaks of a third verdict; there are two.",
    "ambiguous_negation": "The rule says what a verdict is not, rather than what it is.",
    "no_verdict": "The rule does not say a verdict.",
    "both_verdicts": "The rule says both verdicts.",
    "sample_id": "The rule names a ticket.",
    "copied_chain": "The rule copies a ticket's own words.",
    "brand": "A dimension may not be a brand.",
    "no_falsifier": "The hypothesis does not say what would show it wrong.",
    "duplicate": "The same is there already, or was proposed in the same answer.",
    "operation_cap": "More operations than one answer may have.",
    "change_cap": "No further change is allowed in this epoch.",
    "rule_cap": "There are as many rules as there may be.",
    "has_evidence_false": "The answer says that there is no evidence, and proposes something.",
}


class Rejection(NamedTuple):
    """One thing that was not taken."""

    what: Literal["operation", "hypothesis", "ticket"]
    reason: ItemReason
    detail: str
    item: Any = None

    def as_dict(self) -> dict[str, Any]:
        return self._asdict()
