"""Signs in the lines of the work: which of them a person has not decided about yet, and which were refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import FoundSign, SignsAccepted, SignsRefused
from donewhen.signs.kinds import MEANINGS

Decisions: TypeAlias = Mapping[tuple[str, str], Entry]
"""The newest decision of a person about each sign, by its file and id."""

_MAX_LISTED = 3


def decisions_on_signs(chain: str, entries: Iterable[Entry], policy: Policy) -> Decisions:
    """What people have decided about signs. It holds as long as the lines are the same."""
    decided: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        content = entry.content
        if isinstance(content, SignsAccepted | SignsRefused) and is_approval(entry, chain, policy):
            decided |= {(file, name): entry for file, names in content.value.files.items() for name in names}
    return decided


def open_signs(signs: Sequence[FoundSign], decisions: Decisions) -> tuple[FoundSign, ...]:
    """The signs that ask for a person and that nobody has accepted; refused ones among them."""
    return tuple(
        sign
        for sign in signs
        if sign.asks
        and not ((entry := decisions.get((sign.file, sign.id))) and isinstance(entry.content, SignsAccepted))
    )


def refusal_of_signs(signs: Sequence[FoundSign], decisions: Decisions) -> Entry | None:
    """The newest refusal of a line that is still there; None if there is none."""
    found = [decisions.get((sign.file, sign.id)) for sign in open_signs(signs, decisions)]
    refusals = [entry for entry in found if entry is not None and isinstance(entry.content, SignsRefused)]
    return max(refusals, key=lambda entry: entry.seq, default=None)


def signs_text(signs: Sequence[FoundSign]) -> str:
    """The signs in one sentence."""
    kinds = [*dict.fromkeys(sign.kind for sign in signs)]
    places = join_limited([sign_place(sign) for sign in signs], _MAX_LISTED)
    return f"a person has to look at {len(signs)} changed line(s) ({', '.join(kinds)}): {places}"


def sign_place(sign: FoundSign) -> str:
    """Where a sign is."""
    return f"{one_line(sign.file, 120)}:{sign.line}"


def sign_meaning(kind: str) -> str:
    """What a kind of sign means; another version may have other kinds."""
    return next((meaning for known, meaning in MEANINGS.items() if known == kind), kind)
