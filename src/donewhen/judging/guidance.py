"""Guidance: the scaffold S*, which nobody changes, and the rules G*, which are learned. Every way to change it is here.

These functions are pure, and they alone decide what may be changed. Whoever holds a guidance, a person, a model or a
program, can't get past them: the store writes nothing else.
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
_LONGEST = 4000


class GuidanceError(DonewhenError):
    """Guidance can't be read, or can't be changed like this."""

    code = "guidance"
    exit_code = ExitCode.USAGE


class RuleMeta(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """Where a rule comes from, and what it was measured to do."""

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
    """One change of the guidance, with the tickets that support it."""

    op: Op
    key: str | None = None
    text: str | None = None
    merged_from: tuple[str, ...] = ()
    rationale: str = ""
    evidence: tuple[str, ...] = ()
    reflection_id: str = ""

    @property
    def label(self) -> str:
        """What it does, in few words."""
        return f"{self.op} {self.key}" if self.key else self.op


class Guidance(msgspec.Struct, frozen=True):
    """The rules of a mission at one step."""

    mission: str
    step: int
    updated_at: str
    experiences: Mapping[str, str]
    metadata: Mapping[str, RuleMeta] = {}
    """Also of rules that are gone, so that their keys are not given to others."""

    @property
    def scaffold(self) -> dict[str, str]:
        """S1, S2, …, S10: as numbers, not as words."""
        return {key: self.experiences[key] for key in sorted_keys(self.experiences) if key[0] == "S"}

    @property
    def learned(self) -> dict[str, str]:
        """G0 and all that was learned."""
        return {key: self.experiences[key] for key in sorted_keys(self.experiences) if key[0] == "G"}

    @property
    def rules(self) -> dict[str, str]:
        """All of it, in the order in which it binds."""
        return self.scaffold | self.learned

    @property
    def hash(self) -> str:
        """The name of what a judge sees of it."""
        return digest_of([self.mission, dict(self.experiences)])

    def without(self, key: str) -> Guidance:
        """The same as if a rule were not there, to see what it does. Nothing is stored."""
        return msgspec.structs.replace(self, experiences={k: v for k, v in self.experiences.items() if k != key})

    def as_file(self) -> dict[str, Any]:
        """As guidance.json has it."""
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
    """S before G, and G2 before G10."""
    return sorted(keys, key=lambda key: (key[0] != "S", int(key[1:])))


def seed_guidance(mission: str, experiences: Experiences, at: str, where: str | None = None) -> Guidance:
    """The first guidance of a mission."""
    for key, text in experiences.items():
        if not KEY.fullmatch(key) or key == "S0":
            raise GuidanceError(f"{key!r} is no key: keys are S1, S2, … and G0, G1, …", where=where)
        _check_text(text, where)
    if FIRST not in experiences:
        raise GuidanceError("There is no G0: every guidance has a first rule.", where=where)
    return Guidance(mission, 0, at, {key: experiences[key] for key in sorted_keys(experiences)}, {})


def apply_change(guidance: Guidance, change: GuidanceChange, at: str) -> Guidance:
    """The guidance after a change, one step further; GuidanceError where it may not be made."""
    if not change.evidence or not all(one.strip() for one in change.evidence):
        raise GuidanceError(f"{change.label}: no ticket is given as evidence for it.")
    if not all(_writable(one) for one in (change.rationale, change.reflection_id, *change.evidence)):
        raise GuidanceError(f"{change.op}: half a character can't be written down.")
    match change.op:
        case "add":
            return _added(guidance, change, at)
        case "update":
            key = _own(guidance, change.key, "update")
            return _written(guidance, key, change, at)
        case "delete":
            key = _removable(guidance, change.key, "delete")
            known = {key: guidance.metadata.get(key, RuleMeta()), **guidance.metadata}
            return _step(guidance, {k: v for k, v in guidance.experiences.items() if k != key}, known, at)
        case "merge":
            return _merged(guidance, change, at)
        case "rollback":
            raise GuidanceError("A rollback names a step; it is not a change by evidence.")


def roll_back(guidance: Guidance, earlier: Guidance, at: str) -> Guidance:
    """What stood at an earlier step, as a new step: history only grows."""
    if earlier.scaffold != guidance.scaffold or earlier.mission != guidance.mission or FIRST not in earlier.experiences:
        raise GuidanceError(f"Step {earlier.step} has another scaffold, and the scaffold can't be changed.")
    since = {key: guidance.metadata.get(key, RuleMeta()) for key in guidance.learned if key not in earlier.experiences}
    known = {**guidance.metadata, **since, **earlier.metadata}
    return msgspec.structs.replace(earlier, step=guidance.step + 1, updated_at=at, metadata=known)


def record_credit(guidance: Guidance, counts: Mapping[str, tuple[int, int]]) -> Guidance:
    """Write down what rules were measured to do. No rule is touched, so it is no step."""
    metadata = dict(guidance.metadata)
    for key, (hits, misses) in counts.items():
        _own(guidance, key, "credit")
        known = metadata.get(key, RuleMeta())
        metadata[key] = msgspec.structs.replace(
            known, hit_count=hits, miss_count=misses, confidence=round((hits + 1) / (hits + misses + 2), 4)
        )
    return msgspec.structs.replace(guidance, metadata=metadata)


def next_key(guidance: Guidance) -> str:
    """The key that an added rule gets: above every one that is there, or was there."""
    numbers = [int(key[1:]) for key in (*guidance.experiences, *guidance.metadata) if key[0] == "G"]
    key = f"G{max(numbers, default=-1) + 1}"
    if not KEY.fullmatch(key):
        raise GuidanceError(f"There is no key above G{max(numbers)}.")
    return key


def same_text(one: str, other: str) -> bool:
    """Whether two texts say the same but for width, case, spaces and punctuation (other than that of numbers)."""
    return _squeezed(one) == _squeezed(other)


def _added(guidance: Guidance, change: GuidanceChange, at: str) -> Guidance:
    if change.key is not None:
        raise GuidanceError("An added rule gets its key from the guidance; none may be given.")
    text = _check_text(change.text)
    twin = next((key for key, known in guidance.experiences.items() if same_text(known, text)), None)
    if twin is not None:
        raise GuidanceError(f"The rule is there already, as {twin}.")
    return _written(guidance, next_key(guidance), change, at)


def _merged(guidance: Guidance, change: GuidanceChange, at: str) -> Guidance:
    key = _own(guidance, change.key, "merge")
    if not change.merged_from or len(set(change.merged_from)) != len(change.merged_from):
        raise GuidanceError("A merge names the rules that go into it, each once.")
    gone = {_removable(guidance, one, "merge") for one in change.merged_from}
    if key in gone:
        raise GuidanceError(f"{key} can't be merged into itself.")
    return _written(guidance, key, change, at, gone)


def _written(guidance: Guidance, key: str, change: GuidanceChange, at: str, gone: Collection[str] = ()) -> Guidance:
    text = _check_text(change.text)
    twin = next((k for k, known in guidance.scaffold.items() if same_text(known, text)), None)
    if twin is not None:
        raise GuidanceError(f"{twin} of the scaffold says so already.")
    experiences = {k: v for k, v in guidance.experiences.items() if k not in gone} | {key: text}
    known = guidance.metadata.get(key, RuleMeta())
    sources = tuple(dict.fromkeys((*known.sources, *change.evidence)) if change.op != "add" else change.evidence)
    meta = RuleMeta(at, change.reflection_id, sources, change.rationale)
    left = {one: guidance.metadata.get(one, RuleMeta()) for one in gone}
    return _step(guidance, experiences, {**left, **guidance.metadata, key: meta}, at)


def _step(guidance: Guidance, experiences: Experiences, metadata: Mapping[str, RuleMeta], at: str) -> Guidance:
    ordered = {key: experiences[key] for key in sorted_keys(experiences)}
    after = Guidance(guidance.mission, guidance.step + 1, at, ordered, metadata)
    # The last word, whatever the functions above have done.
    if after.scaffold != guidance.scaffold or FIRST not in after.experiences:
        raise GuidanceError("The scaffold can't be changed, and G0 can't be removed.")
    return after


def _own(guidance: Guidance, key: str | None, op: str) -> str:
    if key is None or not KEY.fullmatch(key):
        raise GuidanceError(f"{op}: {key!r} is no key.")
    if key[0] == "S":
        raise GuidanceError(f"{op} {key}: the scaffold can't be changed.")
    if key not in guidance.experiences:
        raise GuidanceError(f"{op} {key}: there is no such rule.")
    return key


def _removable(guidance: Guidance, key: str | None, op: str) -> str:
    found = _own(guidance, key, op)
    if found == FIRST:
        raise GuidanceError(f"{op} {FIRST}: it is always there, and can't be removed.")
    return found


def _check_text(text: object, where: str | None = None) -> str:
    if not isinstance(text, str) or len(text) > _LONGEST or "\0" in text or not _writable(text) or not _squeezed(text):
        raise GuidanceError("A rule is a text that is neither empty nor endless.", where=where)
    return " ".join(text.split())


def _writable(text: str) -> bool:
    """Not so for half of a surrogate pair, which JSON can name and no file can hold."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def _squeezed(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = "".join(one for one in folded if not one.isspace() and unicodedata.category(one)[0] not in "ZC")
    # The point in 1.5 and the sign of -5 say something; the same characters elsewhere don't.
    return re.sub(r"(?!(?<=\d)[.,:/-]\d|-\d|(?<=\d)%)[^\w\s]", _unless_symbol, bare)


def _unless_symbol(found: re.Match[str]) -> str:
    return "" if unicodedata.category(found[0])[0] == "P" else found[0]
