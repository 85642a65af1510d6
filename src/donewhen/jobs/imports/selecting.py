"""Import only some items of a source: those that are open, in a status, or of a milestone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from donewhen.foundation.errors import UsageError
from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.jobs.imports.items import ImportItem

_MAX_LISTED = 12


@dataclass(frozen=True)
class Selection:
    """Which items to import. Words are compared without regard to case; of several, one has to match."""

    only_open: bool = False
    """Only items that the source does not call done."""
    statuses: tuple[str, ...] = ()
    milestones: tuple[str, ...] = ()

    def accepts(self, item: ImportItem) -> bool:
        """Whether an item is to be imported."""
        return (
            not (self.only_open and item.claim.done)
            and _is_among(item.claim.status, self.statuses)
            and _is_among(item.wave, self.milestones)
        )


EVERYTHING = Selection()


def select_items(items: Sequence[ImportItem], selection: Selection, where: str) -> tuple[ImportItem, ...]:
    """The selected items. Raise UsageError if there is none, with the words that the source has."""
    selected = tuple(item for item in items if selection.accepts(item))
    if items and not selected:
        statuses = _listed(item.claim.status for item in items)
        milestones = _listed(item.wave for item in items)
        raise UsageError(
            f"None of the {len(items):,} items is selected. Statuses: {statuses}. Milestones: {milestones}.",
            where=where,
            next_step="Select other items, or import all of them.",
        )
    return selected


def _is_among(word: str, wanted: Sequence[str]) -> bool:
    return not wanted or _folded(word) in {_folded(text) for text in wanted}


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _listed(words: Iterable[str]) -> str:
    found = dict.fromkeys(one_line(word, 60) for word in words if word)
    return join_limited([*found], _MAX_LISTED) if found else "none"
