"""Find a single ticket in a rule: its ID in another spelling, an ID of the same shape, or its number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from donewhen.judging.language import Language
from donewhen.learning.reflection.phrases import fold_text
from donewhen.learning.reflection.word_borders import CJK, latin_lookalikes, occurrences, plain_dashes, plain_digits

# Without known IDs, or if they begin in many ways, everything of this shape is one, except for well-known standards.
_STANDARDS = (
    "UTF|SHA|ISO|IEC|IEEE|ANSI|DIN|EN|GB|GBT|YD|YDT|JGJ|NFPA|ITU|ETSI|RFC|PEP|HTTP|TLS|SSL|AES|RSA|MD|CVE|CWE|WCAG|IP|USB|HDMI|RJ|RS|"
    "CAT|PCI|GPT|RTX|GTX|LTE|COVID"
)
_ANY_ID = rf"(?!(?:{_STANDARDS})[-_])[A-Z]{{2,8}}[-_]\d+"
_ID = r"[a-z]{1,8}[-_#]?\d+"
_NUMBER = r"(?:\d+|[零〇一二三四五六七八九十百千两]+)"
_MANY_PREFIXES = 3
_JOINT = r"[\W_]{0,3}"
_TIGHT_JOINT = r"[-_#./:]?"
_GAP = r"[\s#№:：.=]*"
_NO_MEASURE = r"(?![\d位个张条次项种页件])"
_PART = re.compile(r"\d+|[^\W\d_]+")


class _Known(NamedTuple):
    """Patterns for the IDs of the known tickets."""

    spellings: tuple[tuple[str, str, str], ...]
    """The ID, its letters and digits, and a pattern for its other spellings, in lower case."""
    shapes: tuple[tuple[str, str], ...]
    """The letters of an ID, and a pattern for IDs of the same shape."""
    any_shape: bool


def sample_id(text: str, groups: Iterable[str], verdict_words: Sequence[str] = ()) -> str | None:
    """The ticket ID in a text, if there is one. ``verdict_words`` are those of the language, beside pass and fail.

    Names of standards and products look like IDs, so only an ID with the spelling or the shape of one of ``groups``
    counts.
    """
    known = _known(tuple(groups))
    plain = plain_digits(plain_dashes(text))
    words = "|".join(re.escape(word) for word in sorted({"pass", "fail", *verdict_words}, key=len, reverse=True))
    for match in occurrences(rf"(?i:::\s*(?:{words}))", plain):
        return match.group()
    # Letters of other scripts are read as themselves first: beside a Latin ID they are another word.
    for reading in dict.fromkeys((plain, latin_lookalikes(plain))):
        found = next(_found(reading, known), None)
        if found is not None:
            return found
    return None


def ticket_number(text: str, language: Language) -> str | None:
    """The words that name a ticket by its number, or that say of an ID that it is a ticket's, if there are any."""
    plain = fold_text(plain_digits(plain_dashes(text)), language)
    templates = (fold_text(template, language) for template in language.wording.ticket_number)
    matches = (match for template in templates for match in occurrences(_number_pattern(template), plain))
    return next((match.group() for match in matches), None)


def _found(text: str, known: _Known) -> Iterator[str]:
    if known.any_shape:
        yield from (match.group() for match in occurrences(_ANY_ID, text, letters="A"))
    folded = text.casefold()
    bare = "".join(char for char in folded if char.isalnum())
    for group, letters, pattern in known.spellings:
        if letters in bare and any(True for _ in occurrences(pattern, folded, letters=letters)):
            yield group
    for letters, pattern in known.shapes:
        yield from (match.group() for match in occurrences(pattern, text, letters=letters))


@lru_cache(maxsize=256)
def _number_pattern(template: str) -> re.Pattern[str]:
    head, mark, tail = re.split(r"(\{\}|\{id\})", template)
    number = _ID if mark == "{id}" else rf"(?:{_ID}|{_NUMBER})"
    before, after = (rf"{_GAP}".join(map(re.escape, part.split())) for part in (head, tail))
    return re.compile(f"{before}{_GAP if head else ''}{number}{_GAP if tail else _NO_MEASURE}{after}")


@lru_cache(maxsize=16)
def _known(groups: tuple[str, ...]) -> _Known:
    spellings: list[tuple[str, str, str]] = []
    shapes: dict[tuple[str, str], None] = {}
    prefixes: set[str] = set()
    for group in groups:
        plain = plain_digits(plain_dashes(group))
        for name in dict.fromkeys((plain, latin_lookalikes(plain))):
            parts = _PART.findall(name.casefold())
            # IDs of one or two characters are skipped, because they occur as ordinary words.
            if len(group) > 2 and parts:
                spellings.append((group, "".join(parts), _spelling(name)))
            shape = _shape(name)
            if shape is not None:
                shapes[shape] = None
                prefixes.add(shape[0])
    return _Known(tuple(spellings), tuple(shapes), not groups or len(prefixes) >= _MANY_PREFIXES)


def _spelling(name: str) -> str:
    """A pattern for the spellings of an ID in lower case: QC-27, qc27, Q.C.27 and q c 2 7 are the same."""
    pattern = ""
    end = 0
    initials = any(len(part) > 1 and not part.isdigit() for part in _PART.findall(name))
    for match in _PART.finditer(name):
        part = match.group().casefold()
        separated = match.start() > end
        if pattern:
            pattern += _JOINT if separated or name.isupper() else _TIGHT_JOINT
        spelled = r"[\W_]{1,3}".join(map(re.escape, part))
        pattern += f"(?:{re.escape(part)}|{spelled})" if initials and len(part) > 1 else re.escape(part)
        end = match.end()
    return pattern


def _shape(name: str) -> tuple[str, str] | None:
    """The letters of an ID, and a pattern for IDs with other numbers; None if ordinary words would have its shape."""
    parts = list(_PART.finditer(name))
    letters = "".join(part.group() for part in parts if not part.group().isdigit())
    digits = [part.group() for part in parts if part.group().isdigit()]
    if not digits or not letters:
        return None
    separated = any(left.end() < right.start() for left, right in pairwise(parts))
    if len(letters) == 1 or (CJK.search(letters) and parts[-1].group().isdigit()):
        # "A4" and 工单2张 are ordinary words, and A-4 is not.
        if not separated:
            return None
        joint = r"[-_#./:]"
    else:
        joint = _TIGHT_JOINT
    words = [r"\d+" if part.group().isdigit() else re.escape(part.group()) for part in parts]
    pattern = f"(?i:{joint.join(words)})"
    if letters.isascii() and name.isupper() and len(letters) > 1:
        # Only in capitals: "in 5 minutes" is no ticket of IN-1.
        pattern += f"|{_JOINT.join(words)}"
    return letters, pattern
