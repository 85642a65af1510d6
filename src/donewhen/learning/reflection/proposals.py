"""Parse the answers of reflection: each operation and hypothesis is accepted or rejected by itself, never repaired."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.judging.guidance import FIRST, KEY, Guidance, GuidanceChange, is_new_key, same_text
from donewhen.judging.language import Language
from donewhen.judging.mission_settings import Rules
from donewhen.learning.reflection.rejections import ItemReason, Rejection
from donewhen.learning.reflection.strict_json import UnusableAnswer, read_json_object
from donewhen.learning.reflection.wording import (
    content_words,
    fixed_parts,
    is_brand,
    normalise_rule,
    polarity,
    remark_objection,
    wording_objection,
)
from donewhen.models.roles import Case

_FIELDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "add": (frozenset({"op", "text", "evidence"}), frozenset({"rationale"})),
    "update": (frozenset({"op", "key", "text", "evidence"}), frozenset({"rationale"})),
    "delete": (frozenset({"op", "key", "evidence"}), frozenset({"rationale"})),
    "merge": (frozenset({"op", "key", "merged_from", "text", "evidence"}), frozenset({"rationale"})),
}

_REMARK = 2
"""The maximum length of a falsifier, as a multiple of that of a rule, which it may repeat."""


class HypothesisProposal(NamedTuple):
    """A proposed hypothesis."""

    text: str
    falsifier: str
    evidence: tuple[str, ...]
    dimension: str = ""


class DecisionPass(NamedTuple):
    """The accepted part of a decision pass."""

    no_evidence: tuple[str, ...]
    analysis: str
    rejections: tuple[Rejection, ...]


class OpsPass(NamedTuple):
    """The accepted part of an ops pass."""

    operations: tuple[GuidanceChange, ...]
    hypotheses: tuple[HypothesisProposal, ...]
    analysis: str
    rejections: tuple[Rejection, ...]

    @property
    def covered(self) -> frozenset[str]:
        """The tickets in the evidence of accepted operations and hypotheses: E ∪ H."""
        accepted = [operation.evidence for operation in self.operations] + [
            hypothesis.evidence for hypothesis in self.hypotheses
        ]
        return frozenset(key for evidence in accepted for key in evidence)


class ReadingTerms(NamedTuple):
    """Everything that the parsing of an answer depends on."""

    guidance: Guidance
    language: Language
    rules: Rules
    cases: tuple[Case, ...]
    """The learnable cases in the request."""
    max_operations: int
    changes_left: int
    reflection_id: str
    groups: tuple[str, ...] = ()
    """Group IDs of other tickets, which the model may have seen in another request."""


def read_decision(text: str, cases: Sequence[Case]) -> DecisionPass | UnusableAnswer:
    """Parse the answer of a decision pass."""
    data = read_json_object(text)
    if isinstance(data, UnusableAnswer):
        return data
    problem = _top_level_problem(data, {"no_evidence_group_ids": list, "decision_analysis": str}, {})
    if problem is not None:
        return problem
    requested = {case.ticket_key for case in cases}
    no_evidence: dict[str, None] = {}
    rejections: list[Rejection] = []
    for key in data["no_evidence_group_ids"]:
        if isinstance(key, str) and key in requested:
            no_evidence[key] = None
        else:
            rejections.append(Rejection("ticket", "unknown_ticket_key", one_line(str(key), 100), key))
    return DecisionPass(tuple(no_evidence), one_line(data["decision_analysis"], 2000), tuple(rejections))


def read_proposal(text: str, terms: ReadingTerms) -> OpsPass | UnusableAnswer:
    """Parse the answer of an ops pass."""
    data = read_json_object(text)
    if isinstance(data, UnusableAnswer):
        return data
    required = {"has_evidence": bool, "evidence_analysis": str, "operations": list}
    # Coverage is advisory, so nothing that it says makes an answer unusable.
    problem = _top_level_problem(data, required, {"hypotheses": list, "coverage": object})
    if problem is not None:
        return problem
    reader = _Reader(terms, bool(data["has_evidence"]))
    for item in data["operations"]:
        reader.operation(item)
    for item in data.get("hypotheses", []):
        reader.hypothesis(item)
    analysis = one_line(data["evidence_analysis"], 2000)
    return OpsPass(tuple(reader.operations), tuple(reader.hypotheses), analysis, tuple(reader.rejections))


class _RejectedItem(Exception):  # noqa: N818 - it never leaves this file
    def __init__(self, reason: ItemReason, detail: str = "") -> None:
        super().__init__(reason)
        self.reason: ItemReason = reason
        self.detail = detail


class _Reader:
    """Validates items one by one; the items accepted before count for duplicates and caps."""

    def __init__(self, terms: ReadingTerms, has_evidence: bool) -> None:
        self._terms = terms
        self._has_evidence = has_evidence
        self._learnable = {case.ticket_key for case in terms.cases}
        case_groups = (case.ticket_key.rpartition("::")[0] for case in terms.cases)
        self._groups = tuple(dict.fromkeys((*case_groups, *terms.groups)))
        self._texts = tuple("\n".join(case.evidence.values()) for case in terms.cases)
        self._touched: set[str] = set()
        self._accepted_texts: set[str] = set()
        self.operations: list[GuidanceChange] = []
        self.hypotheses: list[HypothesisProposal] = []
        self.rejections: list[Rejection] = []

    def operation(self, item: Any) -> None:
        try:
            self.operations.append(self._operation(item))
        except _RejectedItem as refused:
            self.rejections.append(Rejection("operation", refused.reason, refused.detail, item))

    def hypothesis(self, item: Any) -> None:
        try:
            self.hypotheses.append(self._hypothesis(item))
        except _RejectedItem as refused:
            self.rejections.append(Rejection("hypothesis", refused.reason, refused.detail, item))

    def _operation(self, item: Any) -> GuidanceChange:
        self._expect_evidence()
        if not isinstance(item, dict):
            raise _RejectedItem("malformed_item", "not an object")
        op = item.get("op")
        if not isinstance(op, str) or op not in _FIELDS:
            raise _RejectedItem("unknown_op", one_line(str(op), 60))
        required, optional = _FIELDS[op]
        _check_fields(item, required, optional)
        evidence = self._evidence(item)
        key = None
        if "key" in item:
            key = self._merge_key(item["key"]) if op == "merge" else self._rule_key(item["key"])
        merged_from = self._merged_keys(item["merged_from"], key) if op == "merge" else ()
        if op == "delete" and key == FIRST:
            raise _RejectedItem("g0_removal", FIRST)
        text = self._text(item["text"]) if "text" in item else None
        change = GuidanceChange(
            op="add" if op == "add" else "update" if op == "update" else "delete" if op == "delete" else "merge",
            key=key,
            text=text,
            merged_from=merged_from,
            rationale=one_line(str(item.get("rationale", "")), 500),
            evidence=evidence,
            reflection_id=self._terms.reflection_id,
        )
        change = self._as_update(change)
        touched = {rule_key for rule_key in (change.key, *change.merged_from) if rule_key is not None}
        if touched & self._touched:
            raise _RejectedItem(
                "duplicate", f"{', '.join(sorted(touched & self._touched))} is changed by another operation"
            )
        self._check_caps(change)
        self._touched |= touched
        if text is not None:
            self._accepted_texts.add(normalise_rule(text, self._terms.language))
        return change

    def _hypothesis(self, item: Any) -> HypothesisProposal:
        self._expect_evidence()
        if not isinstance(item, dict):
            raise _RejectedItem("malformed_item", "not an object")
        if "falsifier" not in item or not str(item["falsifier"] or "").strip():
            raise _RejectedItem("no_falsifier")
        _check_fields(item, frozenset({"text", "falsifier", "evidence"}), frozenset({"dimension"}))
        evidence = self._evidence(item)
        dimension = item.get("dimension", "")
        if is_brand(dimension, self._terms.language):
            raise _RejectedItem("brand", one_line(dimension, 60))
        self._check_remark("dimension", dimension)
        self._check_remark("falsifier", item["falsifier"])
        text = self._text(item["text"])
        self._accepted_texts.add(normalise_rule(text, self._terms.language))
        return HypothesisProposal(text, one_line(item["falsifier"], 500), evidence, one_line(dimension, 60))

    def _expect_evidence(self) -> None:
        if not self._has_evidence:
            raise _RejectedItem("has_evidence_false")

    def _evidence(self, item: Mapping[str, Any]) -> tuple[str, ...]:
        evidence = item["evidence"]
        if not isinstance(evidence, list):
            raise _RejectedItem("malformed_item", "evidence is not a list")
        if not evidence:
            raise _RejectedItem("no_evidence")
        unknown = [key for key in evidence if not isinstance(key, str) or key not in self._learnable]
        if unknown:
            raise _RejectedItem("evidence_not_learnable", one_line(str(unknown[0]), 100))
        return tuple(dict.fromkeys(evidence))

    def _rule_key(self, key: Any) -> str:
        rule_key = str(key)
        if KEY.fullmatch(rule_key) and rule_key[0] == "S":
            raise _RejectedItem("scaffold_target", rule_key)
        if rule_key not in self._terms.guidance.experiences:
            raise _RejectedItem("unknown_rule", one_line(rule_key, 60))
        return rule_key

    def _merge_key(self, key: Any) -> str:
        """The key of a merged rule: an existing one, or a new one that was never used."""
        rule_key = str(key)
        guidance = self._terms.guidance
        return rule_key if is_new_key(guidance, rule_key) else self._rule_key(rule_key)

    def _merged_keys(self, names: Any, key: str | None) -> tuple[str, ...]:
        if not isinstance(names, list) or not names or len({str(name) for name in names}) != len(names):
            raise _RejectedItem("bad_merge", "merged_from is empty or has duplicates")
        merged = tuple(self._rule_key(name) for name in names)
        if FIRST in merged:
            raise _RejectedItem("g0_removal", FIRST)
        if key in merged:
            raise _RejectedItem("bad_merge", f"{key} can't be merged into itself")
        return merged

    def _text(self, text: Any) -> str:
        if not isinstance(text, str):
            raise _RejectedItem("malformed_item", "text is not a string")
        clean = " ".join(text.split())
        terms = self._terms
        objection = wording_objection(clean, terms.language, terms.rules.max_length, self._groups, self._texts)
        if objection is not None:
            raise _RejectedItem(objection.reason, one_line(objection.detail, 200))
        if normalise_rule(clean, terms.language) in self._accepted_texts:
            raise _RejectedItem("duplicate", one_line(clean, 100))
        twin = next((key for key, known in terms.guidance.experiences.items() if same_text(known, clean)), None)
        if twin is not None:
            raise _RejectedItem("duplicate", f"{twin} already says this")
        return clean

    def _check_remark(self, field: str, text: str) -> None:
        """Reject a hypothesis whose falsifier or dimension says what its rule must not say."""
        terms = self._terms
        clean = " ".join(text.split())
        objection = remark_objection(clean, terms.language, _REMARK * terms.rules.max_length, self._groups, self._texts)
        if objection is not None:
            raise _RejectedItem(objection.reason, one_line(f"{field}: {objection.detail}", 200))

    def _as_update(self, change: GuidanceChange) -> GuidanceChange:
        """Turn an added rule that is nearly equal to an existing one into an update of it."""
        key = None if change.op != "add" or change.text is None else self._similar_rule(change.text)
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

    def _similar_rule(self, text: str) -> str | None:
        terms = self._terms
        for key, known in terms.guidance.learned.items():
            if key == FIRST or fixed_parts(known) != fixed_parts(text):
                continue
            if polarity(known, terms.language) != polarity(text, terms.language):
                continue
            # One word more makes another rule ("with", "without"), however similar the letters are.
            if content_words(known, terms.language) != content_words(text, terms.language):
                continue
            old, new = normalise_rule(known, terms.language), normalise_rule(text, terms.language)
            if difflib.SequenceMatcher(None, old, new, autojunk=False).ratio() >= terms.rules.similar:
                return key
        return None

    def _check_caps(self, change: GuidanceChange) -> None:
        """Reject a change over a cap; it is not made, so it covers no tickets."""
        terms = self._terms
        if len(self.operations) >= terms.max_operations:
            raise _RejectedItem("operation_cap", f"{terms.max_operations} allowed")
        if len(self.operations) >= terms.changes_left:
            raise _RejectedItem("change_cap", f"{terms.changes_left} left")
        adding = sum(operation.op == "add" for operation in self.operations)
        if change.op == "add" and len(terms.guidance.learned) + adding >= terms.rules.max_rules:
            raise _RejectedItem("rule_cap", f"{terms.rules.max_rules} allowed")


def _check_fields(item: Mapping[str, Any], required: frozenset[str], optional: frozenset[str]) -> None:
    missing = sorted(required - item.keys())
    if missing == ["evidence"]:
        raise _RejectedItem("no_evidence")
    unknown = sorted(map(str, item.keys() - required - optional))
    if missing or unknown:
        raise _RejectedItem("malformed_item", f"missing: {', '.join(missing)}" if missing else f"unknown: {unknown[0]}")
    for name in ("key", "text", "rationale", "falsifier", "dimension"):
        if name in item and not isinstance(item[name], str):
            raise _RejectedItem("malformed_item", f"{name} is not a string")


def _top_level_problem(
    data: Mapping[str, Any], required: Mapping[str, type], optional: Mapping[str, type]
) -> UnusableAnswer | None:
    missing = [name for name in required if name not in data]
    if missing:
        return UnusableAnswer("missing_field", missing[0])
    unknown = [name for name in data if name not in required and name not in optional]
    if unknown:
        return UnusableAnswer("unknown_field", one_line(unknown[0], 60))
    wrong = [
        name
        for name, kind in {**required, **optional}.items()
        if name in data and kind not in (object, type(data[name]))
    ]
    return UnusableAnswer("wrong_type", wrong[0]) if wrong else None
