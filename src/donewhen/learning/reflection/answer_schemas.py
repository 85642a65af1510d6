"""JSON Schemas of the answers of reflection, for models that support them."""

from __future__ import annotations

from typing import Any

_LIST_OF_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
DECISION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"no_evidence_group_ids": _LIST_OF_TEXTS, "decision_analysis": {"type": "string"}},
    "required": ["no_evidence_group_ids", "decision_analysis"],
    "additionalProperties": False,
}
_OPERATION = {
    "op": {"enum": ["add", "update", "delete", "merge"]},
    "key": {"type": "string"},
    "text": {"type": "string"},
    "merged_from": _LIST_OF_TEXTS,
    "rationale": {"type": "string"},
    "evidence": {**_LIST_OF_TEXTS, "minItems": 1},
}
_HYPOTHESIS = {
    "text": {"type": "string"},
    "dimension": {"type": "string"},
    "falsifier": {"type": "string"},
    "evidence": {**_LIST_OF_TEXTS, "minItems": 1},
}
_COVERAGE = dict.fromkeys(("learnable_ticket_keys", "covered_ticket_keys", "uncovered_ticket_keys"), _LIST_OF_TEXTS)
OPS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "has_evidence": {"type": "boolean"},
        "evidence_analysis": {"type": "string"},
        "operations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _OPERATION,
                "required": ["op", "rationale", "evidence"],
                "additionalProperties": False,
            },
        },
        "hypotheses": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _HYPOTHESIS,
                "required": ["text", "falsifier", "evidence"],
                "additionalProperties": False,
            },
        },
        "coverage": {"type": "object", "properties": _COVERAGE},
    },
    "required": ["has_evidence", "evidence_analysis", "operations"],
    "additionalProperties": False,
}
