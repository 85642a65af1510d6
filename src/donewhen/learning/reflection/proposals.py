"""What reflection may answer, and what of it is taken: each operation and each hypothesis by itself, never repaired."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.judging.guidance import FIRST, KEY, Guidance, GuidanceChange, same_text
from donewhen.judging.language import Language
from donewhen.judging.mission_settings import Rules
from donewhen.learning.reflection.rejections import ItemReason, Rejection
from donewhen.learning.reflection.strict_json import UnusableAnswer, read_json_object
from donewhen.learning.reflection.wording import fixed_parts, is_brand, normalise_rule, polarity, wording_objection
from donewhen.models.roles import Case

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
_FIELDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "add": (frozenset({"op", "text", "evidence"}), frozenset({"rationale"})),
    "update": (frozenset({"op", "key", "text", "evidence"}), frozenset({"rationale"})),
    "delete": (frozenset({"op", "key", "evidence"}), frozenset({"rationale"})),
    "merge": (frozenset({"op", "key", "merged_from", "text", "evidence"}), frozenset({"rationale"})),
}


class HypothesisProposal(NamedTuple):
    """A rule that may hold."""

    text: str
    falsifier: str
    evidence: tuple[str, ...]
    dimension: str = ""


class DecisionPass(NamedTuple):
    """What of a decision pass is taken."""

    no_evidence: tuple[str, ...]
    analysis: str
    rejections: tuple[Rejection, ...]


class OpsPass(NamedTuple):
    """What of an ops pass is taken."""

    operations: tuple[GuidanceChange, ...]
    hypotheses: tuple[HypothesisProposal, ...]
    analysis: str
    rejections: tuple[Rejection, ...]

    @property
    def covered(self) -> frozenset[str]:
        """The tickets that something valid speaks of: E ∪ H."""
        kept = [operation.evidence for operation in self.operations] + [
            hypothesis.evidence for hypothesis in self.hypotheses
        ]
        return frozenset(key for evidence in kept for key in evidence)


class ReadingTerms(NamedTuple):
    """Under which an answer is read."""

    guidance: Guidance
    language: Language
    rules: Rules
    cases: tuple[Case, ...]
    """The learnable cases that the model was shown, and nothing else."""
    max_operations: int
    changes_left: int
    reflection_id: str
    groups: tuple[str, ...] = ()
    """Ids of other tickets, which the model may have seen in another question."""


def read_decision(text: str, cases: Sequence[Case]) -> DecisionPass | UnusableAnswer:
    """Read the answer of a decision pass."""
    data = read_json_object(text)
    if isinstance(data, UnusableAnswer):
        return data
    problem = _top_level(data, {"no_evidence_group_ids": list, "decision_analysis": str}, {})
    if problem is not None:
        return problem
    asked = {case.ticket_key for case in cases}
    found: dict[str, None] = {}
    rejections: list[Rejection] = []
    for key in data["no_evidence_group_ids"]:
        if isinstance(key, str) and key in asked:
            found[key] = None
        else:
            rejections.append(Rejection("ticket", "unknown_ticket_key", one_line(str(key), 100), key))
    return DecisionPass(tuple(found), one_line(data["decision_analysis"], 2000), tuple(rejections))


def read_proposal(text: str, terms: ReadingTerms) -> OpsPass | UnusableAnswer:
    """Read the answer of an ops pass."""
    data = read_json_object(text)
    if isinstance(data, UnusableAnswer):
        return data
    required = {"has_evidence": bool, "evidence_analysis": str, "operations": list}
    problem = _top_level(data, required, {"hypotheses": list, "coverage": dict})
    if problem is not None:
        return problem
    reader = _Reader(terms, bool(data["has_evidence"]))
    for item in data["operations"]:
        reader.operation(item)
    for item in data.get("hypotheses", []):
        reader.hypothesis(item)
    analysis = one_line(data["evidence_analysis"], 2000)
    return OpsPass(tuple(reader.operations), tuple(reader.hypotheses), analysis, tuple(reader.rejections))


class _Refused(Exception):  # noqa: N818 - it never leaves this file
    def __init__(self, reason: ItemReason, detail: str = "") -> None:
        super().__init__(reason)
        self.reason: ItemReason = reason
        self.detail = detail


class _Reader:
    """Takes items one by one; what it has taken before decides about doubles and caps."""

    def __init__(self, terms: ReadingTerms, has_evidence: bool) -> None:
        self._terms = terms
        self._has_evidence = has_evidence
        self._learnable = {case.ticket_key for case in terms.cases}
        shown = (case.ticket_key.rpartition("::")[0] for case in terms.cases)
        self._groups = tuple(dict.fromkeys((*shown, *terms.groups)))
        self._texts = tuple("\n".join(case.evidence.values()) for case in terms.cases)
        self._touched: set[str] = set()
        self._said: set[str] = set()
        self.operations: list[GuidanceChange] = []
        self.hypotheses: list[HypothesisProposal] = []
        self.rejections: list[Rejection] = []

    def operation(self, item: Any) -> None:
        try:
            self.operations.append(self._operation(item))
        except _Refused as refused:
            self.rejections.append(Rejection("operation", refused.reason, refused.detail, item))

    def hypothesis(self, item: Any) -> None:
        try:
            self.hypotheses.append(self._hypothesis(item))
        except _Refused as refused:
            self.rejections.append(Rejection("hypothesis", refused.reason, refused.detail, item))

    def _operation(self, item: Any) -> GuidanceChange:
        self._expect_evidence()
        if not isinstance(item, dict):
            raise _Refused("malformed_item", "not an object")
        op = item.get("op")
        if not isinstance(op, str) or op not in _FIELDS:
            raise _Refused("unknown_op", one_line(str(op), 60))
        required, optional = _FIELDS[op]
        _fields(item, required, optional)
        evidence = self._evidence(item)
        key = self._rule(item["key"]) if "key" in item else None
        gone = self._merged(item["merged_from"], key) if op == "merge" else ()
        if op == "delete" and key == FIRST:
            raise _Refused("g0_removal", FIRST)
        text = self._text(item["text"]) if "text" in item else None
        change = GuidanceChange(
            op="add" if op == "add" else "update" if op == "update" else "delete" if op == "delete" else "merge",
            key=key,
            text=text,
            merged_from=gone,
            rationale=one_line(str(item.get("rationale", "")), 500),
            evidence=evidence,
            reflection_id=self._terms.reflection_id,
        )
        change = self._as_update(change)
        touched = {one for one in (change.key, *change.merged_from) if one is not None}
        if touched & self._touched:
            raise _Refused("duplicate", f"{', '.join(sorted(touched & self._touched))} is changed by another operation")
        self._caps(change)
        self._touched |= touched
        if text is not None:
            self._said.add(normalise_rule(text, self._terms.language))
        return change

    def _hypothesis(self, item: Any) -> HypothesisProposal:
        self._expect_evidence()
        if not isinstance(item, dict):
            raise _Refused("malformed_item", "not an object")
        if "falsifier" not in item or not str(item["falsifier"] or "").strip():
            raise _Refused("no_falsifier")
        _fields(item, frozenset({"text", "falsifier", "evidence"}), frozenset({"dimension"}))
        evidence = self._evidence(item)
        dimension = item.get("dimension", "")
        if is_brand(dimension, self._terms.language):
            raise _Refused("brand", one_line(dimension, 60))
        text = self._text(item["text"])
        self._said.add(normalise_rule(text, self._terms.language))
        return HypothesisProposal(text, one_line(item["falsifier"], 500), evidence, one_line(dimension, 60))

    def _expect_evidence(self) -> None:
        if not self._has_evidence:
            raise _Refused("has_evidence_false")

    def _evidence(self, item: Mapping[str, Any]) -> tuple[str, ...]:
        found = item["evidence"]
        if not isinstance(found, list):
            raise _Refused("malformed_item", "evidence is not a list")
        if not found:
            raise _Refused("no_evidence")
        foreign = [one for one in found if not isinstance(one, str) or one not in self._learnable]
        if foreign:
            raise _Refused("evidence_not_learnable", one_line(str(foreign[0]), 100))
        return tuple(dict.fromkeys(found))

    def _rule(self, key: Any) -> str:
        found = str(key)
        if KEY.fullmatch(found) and found[0] == "S":
            raise _Refused("scaffold_target", found)
        if found not in self._terms.guidance.experiences:
            raise _Refused("unknown_rule", one_line(found, 60))
        return found

    def _merged(self, names: Any, key: str | None) -> tuple[str, ...]:
        if not isinstance(names, list) or not names or len({str(name) for name in names}) != len(names):
            raise _Refused("bad_merge", "no rules, or one of them twice")
        found = tuple(self._rule(name) for name in names)
        if FIRST in found:
            raise _Refused("g0_removal", FIRST)
        if key in found:
            raise _Refused("bad_merge", f"{key} can't go into itself")
        return found

    def _text(self, text: Any) -> str:
        if not isinstance(text, str):
            raise _Refused("malformed_item", "the text is not a text")
        clean = " ".join(text.split())
        terms = self._terms
        against = wording_objection(clean, terms.language, terms.rules.max_length, self._groups, self._texts)
        if against is not None:
            raise _Refused(against.reason, one_line(against.detail, 200))
        if normalise_rule(clean, terms.language) in self._said:
            raise _Refused("duplicate", one_line(clean, 100))
        twin = next((key for key, known in terms.guidance.experiences.items() if same_text(known, clean)), None)
        if twin is not None:
            raise _Refused("duplicate", f"{twin} says so already")
        return clean

    def _as_update(self, change: GuidanceChange) -> GuidanceChange:
        """A new rule that says nearly the same as an old one, with the same verdict, takes its place."""
        key = None if change.op != "add" or change.text is None else self._similar(change.text)
        if key is None:
            return change
        return GuidanceChange(
            op="update",
            key=key,
            text=change.text,
            rationale=change.rationale,
            evidence=change.evidence,
            reflection_id=change.reflection_id,
        )

    def _similar(self, text: str) -> str | None:
        terms = self._terms
        for key, known in terms.guidance.learned.items():
            if key == FIRST or fixed_parts(known) != fixed_parts(text):
                continue
            if polarity(known, terms.language) != polarity(text, terms.language):
                continue
            one, other = normalise_rule(known, terms.language), normalise_rule(text, terms.language)
            if difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() >= terms.rules.similar:
                return key
        return None

    def _caps(self, change: GuidanceChange) -> None:
        """What is over a cap is not made, so it covers nobody."""
        terms = self._terms
        if len(self.operations) >= terms.max_operations:
            raise _Refused("operation_cap", f"{terms.max_operations} allowed")
        if len(self.operations) >= terms.changes_left:
            raise _Refused("change_cap", f"{terms.changes_left} left")
        adding = sum(operation.op == "add" for operation in self.operations)
        if change.op == "add" and len(terms.guidance.learned) + adding >= terms.rules.max_rules:
            raise _Refused("rule_cap", f"{terms.rules.max_rules} allowed")


def _fields(item: Mapping[str, Any], required: frozenset[str], optional: frozenset[str]) -> None:
    missing = sorted(required - item.keys())
    if missing == ["evidence"]:
        raise _Refused("no_evidence")
    unknown = sorted(map(str, item.keys() - required - optional))
    if missing or unknown:
        raise _Refused("malformed_item", f"missing: {', '.join(missing)}" if missing else f"unknown: {unknown[0]}")
    for name in ("key", "text", "rationale", "falsifier", "dimension"):
        if name in item and not isinstance(item[name], str):
            raise _Refused("malformed_item", f"{name} is not a text")


def _top_level(
    data: Mapping[str, Any], required: Mapping[str, type], optional: Mapping[str, type]
) -> UnusableAnswer | None:
    missing = [one for one in required if one not in data]
    if missing:
        return UnusableAnswer("missing_field", missing[0])
    unknown = [one for one in data if one not in required and one not in optional]
    if unknown:
        return UnusableAnswer("unknown_field", one_line(unknown[0], 60))
    wrong = [name for name, kind in {**required, **optional}.items() if name in data and type(data[name]) is not kind]
    return UnusableAnswer("wrong_type", wrong[0]) if wrong else None
