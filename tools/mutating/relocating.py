"""Find the place of a mutant again after modules were moved or names and messages changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from tools.mutating.places import MODULE_LEVEL, Change, Unit

How = Literal["name", "shape", "statement", "hand"]

_ALIKE = 0.6
"""Minimum similarity of two functions' shapes and names."""
_AHEAD = 0.05
"""Minimum lead of the most similar function over the next one."""
_LOOKED_AT = 12


class Found(NamedTuple):
    """The new place of a mutant, and how it was found."""

    unit: Unit
    change: Change
    how: How
    likeness: float


class NotFound(NamedTuple):
    """A mutant whose place a person has to find."""

    why: str
    candidates: tuple[str, ...]


def relocate(
    old: Unit, wanted: Change, units: Sequence[Unit], names: Mapping[str, str], by_hand: str | None = None
) -> Found | NotFound:
    """Return the place of the change in the new code.

    ``names`` maps the old names of modules (``a.b``) and functions (``a.b:f``) to the new ones. ``by_hand`` is
    ``module:line`` or ``module:line:column``.
    """
    if by_hand is not None:
        return _at(by_hand, wanted, units)
    module = names.get(old.module, old.module)
    name = names.get(old.name, f"{module}:{old.function}")
    for unit in units:
        if unit.name == name and (change := corresponding(old, wanted, unit)) is not None:
            return Found(unit, change, "name", likeness(old, unit))
    fitting = sorted(
        ((likeness(old, unit) + _bonus(old, unit, module), unit) for unit in _near(old, units, module)),
        key=lambda candidate: -candidate[0],
    )
    matches = [(fit, unit, change) for fit, unit in fitting if (change := corresponding(old, wanted, unit)) is not None]
    if matches and matches[0][0] >= _ALIKE and (len(matches) == 1 or matches[0][0] - matches[1][0] >= _AHEAD):
        return Found(matches[0][1], matches[0][2], "shape", likeness(old, matches[0][1]))
    same = _same_statement(old, wanted, units, module)
    if len(same) == 1:
        return Found(same[0][0], same[0][1], "statement", likeness(old, same[0][0]))
    why = "several places are equally likely" if matches and matches[0][0] >= _ALIKE else "no function is similar"
    return NotFound(why, tuple(f"{unit.name} ({fit:.2f})" for fit, unit in fitting[:3]))


def corresponding(old: Unit, wanted: Change, unit: Unit) -> Change | None:
    """Return the same change in another version of the function, or None."""
    same = [change for change in unit.changes if (change.operator, change.part) == (wanted.operator, wanted.part)]
    matcher = SequenceMatcher(None, old.shape, unit.shape, autojunk=False)
    for block in matcher.get_matching_blocks():
        if block.a <= wanted.node < block.a + block.size:
            node = wanted.node - block.a + block.b
            for change in same:
                if change.node == node:
                    return change
    # The expression itself was rewritten. If there are still as many of its kind, take the one with the same index.
    before = [change for change in old.changes if (change.operator, change.part) == (wanted.operator, wanted.part)]
    if len(same) != len(before) or matcher.ratio() < _ALIKE:
        return None
    return same[before.index(wanted)]


def likeness(old: Unit, unit: Unit) -> float:
    """Return the similarity: the shape counts for three quarters, the names for one quarter."""
    shape = SequenceMatcher(None, old.shape, unit.shape, autojunk=False).ratio()
    return 0.75 * shape + 0.25 * _shared(old.words, unit.words)


def _shared(some: frozenset[str], others: frozenset[str]) -> float:
    return len(some & others) / len(some | others) if some | others else 1.0


def _bonus(old: Unit, unit: Unit, module: str) -> float:
    """Return a bonus for names that were kept."""
    same_name = old.function != MODULE_LEVEL and old.function.split(".")[-1] == unit.function.split(".")[-1]
    same_file = module.split(".")[-1] == unit.module.split(".")[-1]
    return 0.1 * (unit.module == module) + 0.1 * same_name + 0.05 * same_file


def _near(old: Unit, units: Sequence[Unit], module: str) -> list[Unit]:
    """Return the most similar functions, by a quick comparison."""
    wanted = Counter(old.shape)

    def quick(unit: Unit) -> float:
        total = len(old.shape) + len(unit.shape)
        shape = 2 * (wanted & Counter(unit.shape)).total() / total if total else 0.0
        return 0.75 * shape + 0.25 * _shared(old.words, unit.words) + _bonus(old, unit, module)

    alike = [unit for unit in units if (unit.function == MODULE_LEVEL) == (old.function == MODULE_LEVEL)]
    return sorted(alike, key=quick, reverse=True)[:_LOOKED_AT]


def _same_statement(old: Unit, wanted: Change, units: Sequence[Unit], module: str) -> list[tuple[Unit, Change]]:
    """Return the places with the same code around them, for a function that was split up or merged."""
    context = _context(old, wanted)
    places = [
        (unit, change)
        for unit in units
        for change in unit.changes
        if (change.operator, change.part) == (wanted.operator, wanted.part) and _context(unit, change) == context
    ]
    here = [(unit, change) for unit, change in places if unit.module == module]
    return here or places


def _context(unit: Unit, change: Change, width: int = 8) -> tuple[str, ...]:
    return unit.shape[max(0, change.node - width) : change.node + width]


def _at(place: str, wanted: Change, units: Sequence[Unit]) -> Found | NotFound:
    module, line, *column = place.split(":")
    places = [
        (unit, change)
        for unit in units
        if unit.module == module
        for change in unit.changes
        if change.line == int(line)
        and (change.operator, change.part) == (wanted.operator, wanted.part)
        and (not column or change.column == int(column[0]))
    ]
    if len(places) == 1:
        return Found(*places[0], "hand", 1.0)
    listed = tuple(f"{module}:{change.line}:{change.column} {change.original}" for _, change in places)
    return NotFound(f"{len(places)} changes of this kind are at {place}", listed)
