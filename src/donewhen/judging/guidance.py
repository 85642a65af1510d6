"""Guidance: the fixed scaffold rules S*, the learned rules G*, and all functions that change them.

The functions are pure, and they alone decide which changes are allowed: the store writes only what they return.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import DonewhenError, ExitCode

Op = Literal["add", "update", "delete", "merge", "rollback"]
KEY = re.compile(r"(?P<kind>[SG])(?P<number>0|[1-9][0-9]{0,5})")
FIRST = "G0"
_MAX_RULE_CHARS = 4000
_KEYS_AHEAD = 100
"""How far a new key may be above the highest one."""


class GuidanceError(DonewhenError):
    """Guidance can't be read, or the change is not allowed."""

    code = "guidance"
    exit_code = ExitCode.USAGE


class RuleMeta(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """Where a rule comes from, and its measured effect."""

    updated_at: str = ""
    reflection_id: str = ""
    sources: tuple[str, ...] = ()
    """The tickets that support it."""
    rationale: str = ""
    hit_count: int = 0
    """Tickets that are right with the rule and wrong without it."""
    miss_count: int = 0
    """Tickets that are wrong with the rule and right without it."""
    confidence: float = 0.5


class GuidanceChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the guidance, with the tickets that support it."""

    op: Op
    key: str | None = None
    text: str | None = None
    merged_from: tuple[str, ...] = ()
    rationale: str = ""
    evidence: tuple[str, ...] = ()
    reflection_id: str = ""

    @property
    def label(self) -> str:
        """The operation and the key, for messages."""
        return f"{self.op} {self.key}" if self.key else self.op


class Guidance(msgspec.Struct, frozen=True):
    """The rules of a mission at one step."""

    mission: str
    step: int
    updated_at: str
    experiences: Mapping[str, str]
    metadata: Mapping[str, RuleMeta] = {}
    """Includes removed rules, so that their keys are not reused."""

    @property
    def scaffold(self) -> dict[str, str]:
        """The rules S1, S2, …, in numeric order."""
        return {key: self.experiences[key] for key in sorted_keys(self.experiences) if key[0] == "S"}

    @property
    def learned(self) -> dict[str, str]:
        """G0 and the learned rules, in numeric order."""
        return {key: self.experiences[key] for key in sorted_keys(self.experiences) if key[0] == "G"}

    @property
    def rules(self) -> dict[str, str]:
        """All rules in order of precedence: the scaffold, then the learned rules."""
        return self.scaffold | self.learned

    @property
    def hash(self) -> str:
        """Digest of everything that a judge sees of the guidance."""
        return digest_of([self.mission, dict(self.experiences)])

    def without(self, key: str) -> Guidance:
        """A copy without one rule, to measure the effect of the rule. Nothing is stored."""
        return msgspec.structs.replace(self, experiences={k: v for k, v in self.experiences.items() if k != key})

    def as_file(self) -> dict[str, Any]:
        """The content of guidance.json."""
        rules = self.rules
        return {
            self.mission: {
                "step": self.step,
                "updated_at": self.updated_at,
                "experiences": rules,
                "metadata": {key: msgspec.to_builtins(self.metadata[key]) for key in sorted_keys(self.metadata)},
            }
        }


Experiences: TypeAlias = Mapping[str, str]


def sorted_keys(keys: Iterable[str]) -> list[str]:
    """Sort S before G, then by number."""
    return sorted(keys, key=lambda key: (key[0] != "S", int(key[1:])))


def seed_guidance(mission: str, experiences: Experiences, at: str, where: str | None = None) -> Guidance:
    """Return the first guidance of a mission; raise GuidanceError if a key or a text is invalid."""
    for key, text in experiences.items():
        if not KEY.fullmatch(key) or key == "S0":
            raise GuidanceError(f"{key!r} is not a valid key; use S1, S2, … or G0, G1, …", where=where)
        _check_text(text, where)
    if FIRST not in experiences:
        raise GuidanceError("G0 is missing; it is required as the first rule.", where=where)
    return Guidance(mission, 0, at, {key: experiences[key] for key in sorted_keys(experiences)}, {})


def apply_change(guidance: Guidance, change: GuidanceChange, at: str) -> Guidance:
    """Return the guidance after a change, as the next step; raise GuidanceError if the change is not allowed."""
    if not change.evidence or not all(ticket_key.strip() for ticket_key in change.evidence):
        raise GuidanceError(f"{change.label}: a change needs at least one ticket as evidence.")
    if not all(_is_encodable(text) for text in (change.rationale, change.reflection_id, *change.evidence)):
        raise GuidanceError(f"{change.op}: the text contains an unpaired surrogate, which can't be encoded as UTF-8.")
    match change.op:
        case "add":
            return _apply_add(guidance, change, at)
        case "update":
            key = _learned_key(guidance, change.key, "update")
            return _write_rule(guidance, key, change, at)
        case "delete":
            key = _removable_key(guidance, change.key, "delete")
            known = {key: guidance.metadata.get(key, RuleMeta()), **guidance.metadata}
            return _next_step(guidance, {k: v for k, v in guidance.experiences.items() if k != key}, known, at)
        case "merge":
            return _apply_merge(guidance, change, at)
        case "rollback":
            raise GuidanceError("A rollback needs a step, not evidence.")


def roll_back(guidance: Guidance, earlier: Guidance, at: str) -> Guidance:
    """Return the guidance of an earlier step as a new step; history is append-only."""
    if earlier.scaffold != guidance.scaffold or earlier.mission != guidance.mission or FIRST not in earlier.experiences:
        raise GuidanceError(f"Step {earlier.step} has a different scaffold, and the scaffold can't be changed.")
    removed = {
        key: guidance.metadata.get(key, RuleMeta()) for key in guidance.learned if key not in earlier.experiences
    }
    known = {**guidance.metadata, **removed, **earlier.metadata}
    return msgspec.structs.replace(earlier, step=guidance.step + 1, updated_at=at, metadata=known)


def record_credit(guidance: Guidance, counts: Mapping[str, tuple[int, int]]) -> Guidance:
    """Return the guidance with measured effects in its metadata. Rules don't change, so the step stays the same."""
    metadata = dict(guidance.metadata)
    for key, (hits, misses) in counts.items():
        _learned_key(guidance, key, "credit")
        known = metadata.get(key, RuleMeta())
        metadata[key] = msgspec.structs.replace(
            known, hit_count=hits, miss_count=misses, confidence=round((hits + 1) / (hits + misses + 2), 4)
        )
    return msgspec.structs.replace(guidance, metadata=metadata)


def next_key(guidance: Guidance) -> str:
    """Return the key for an added rule: one above the highest key ever used."""
    numbers = [int(key[1:]) for key in (*guidance.experiences, *guidance.metadata) if key[0] == "G"]
    key = f"G{max(numbers, default=-1) + 1}"
    if not KEY.fullmatch(key):
        raise GuidanceError(f"G{max(numbers)} is the highest possible key; no rule can be added.")
    return key


def is_new_key(guidance: Guidance, key: str) -> bool:
    """Whether a merged rule may get this key: one of a rule, never used, and near enough to leave keys for others."""
    match = KEY.fullmatch(key)
    if match is None or match["kind"] != "G" or key in guidance.experiences or key in guidance.metadata:
        return False
    return int(match["number"]) < int(next_key(guidance)[1:]) + _KEYS_AHEAD


def same_text(first: str, second: str) -> bool:
    """Whether two texts differ only in width, case, spaces and punctuation (except punctuation in numbers)."""
    return _normalised(first) == _normalised(second)


def _apply_add(guidance: Guidance, change: GuidanceChange, at: str) -> Guidance:
    if change.key is not None:
        raise GuidanceError("add: the key is assigned automatically; don't give one.")
    text = _check_text(change.text)
    twin = next((key for key, known in guidance.experiences.items() if same_text(known, text)), None)
    if twin is not None:
        raise GuidanceError(f"The rule already exists as {twin}.")
    return _write_rule(guidance, next_key(guidance), change, at)


def _apply_merge(guidance: Guidance, change: GuidanceChange, at: str) -> Guidance:
    new = change.key is not None and is_new_key(guidance, change.key)
    key = change.key if new and change.key is not None else _learned_key(guidance, change.key, "merge")
    if not change.merged_from or len(set(change.merged_from)) != len(change.merged_from):
        raise GuidanceError("merge: list the rules to merge in merged_from, each only once.")
    merged = {_removable_key(guidance, merged_key, "merge") for merged_key in change.merged_from}
    if key in merged:
        raise GuidanceError(f"{key} can't be merged into itself.")
    return _write_rule(guidance, key, change, at, merged)


def _write_rule(
    guidance: Guidance, key: str, change: GuidanceChange, at: str, removed: Collection[str] = ()
) -> Guidance:
    text = _check_text(change.text)
    twin = next((k for k, known in guidance.scaffold.items() if same_text(known, text)), None)
    if twin is not None:
        raise GuidanceError(f"The scaffold rule {twin} already says this.")
    experiences = {k: v for k, v in guidance.experiences.items() if k not in removed} | {key: text}
    known = guidance.metadata.get(key, RuleMeta())
    sources = tuple(dict.fromkeys((*known.sources, *change.evidence)) if change.op != "add" else change.evidence)
    meta = RuleMeta(at, change.reflection_id, sources, change.rationale)
    removed_meta = {k: guidance.metadata.get(k, RuleMeta()) for k in removed}
    return _next_step(guidance, experiences, {**removed_meta, **guidance.metadata, key: meta}, at)


def _next_step(guidance: Guidance, experiences: Experiences, metadata: Mapping[str, RuleMeta], at: str) -> Guidance:
    ordered = {key: experiences[key] for key in sorted_keys(experiences)}
    after = Guidance(guidance.mission, guidance.step + 1, at, ordered, metadata)
    # Checked again here, whatever the functions above have done.
    if after.scaffold != guidance.scaffold or FIRST not in after.experiences:
        raise GuidanceError("The scaffold can't be changed, and G0 can't be removed.")
    return after


def _learned_key(guidance: Guidance, key: str | None, op: str) -> str:
    if key is None or not KEY.fullmatch(key):
        raise GuidanceError(f"{op}: {key!r} is not a valid key.")
    if key[0] == "S":
        raise GuidanceError(f"{op} {key}: the scaffold can't be changed.")
    if key not in guidance.experiences:
        raise GuidanceError(f"{op} {key}: no such rule.")
    return key


def _removable_key(guidance: Guidance, key: str | None, op: str) -> str:
    known = _learned_key(guidance, key, op)
    if known == FIRST:
        raise GuidanceError(f"{op} {FIRST}: {FIRST} can't be removed.")
    return known


def _check_text(text: object, where: str | None = None) -> str:
    if (
        not isinstance(text, str)
        or len(text) > _MAX_RULE_CHARS
        or "\0" in text
        or not _is_encodable(text)
        or not _normalised(text)
    ):
        raise GuidanceError(f"A rule must be plain text of 1 to {_MAX_RULE_CHARS} characters.", where=where)
    return " ".join(text.split())


def _is_encodable(text: str) -> bool:
    """False for an unpaired surrogate, which JSON can express and UTF-8 can't encode."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _normalised(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = "".join(char for char in folded if not char.isspace() and unicodedata.category(char)[0] not in "ZC")
    # The point in 1.5, the sign of -5 and the mark in != carry meaning; the same characters elsewhere don't.
    return re.sub(r"(?!(?<=\d)[.,:/-]\d|-\d|(?<=\d)%|!=)[^\w\s]", _drop_punctuation, bare)


def _drop_punctuation(match: re.Match[str]) -> str:
    return "" if unicodedata.category(match[0])[0] == "P" else match[0]
