"""Find what a rule copies from single tickets: their sentences, and their chains of objects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from donewhen.learning.reflection.word_borders import CJK, plain_fold, spaced_words, squeezed

_COPIED_WORDS = 8
_COPIED_CJK = 14
_CHAIN_END = re.compile(r"[\n。！？!?]|\.\s")
_CHAIN_ITEM = re.compile(r"([^/,;|、]+)([/,;|、]*)")
_COUNT = re.compile(r"\s*[×*]\s*\d+")
_CHAIN_ITEMS = 3
_SHORTEST_CHAIN = {True: 4, False: 8}
"""The fewest characters of a chain, with and without Chinese ones."""


def copied_chain(text: str, texts: Sequence[str]) -> str | None:
    """A sequence of words or a chain of objects that the text copies from a case, if there is one."""
    cjk = "".join(CJK.findall(text))
    chunks = [cjk[start : start + _COPIED_CJK] for start in range(len(cjk) - _COPIED_CJK + 1)]
    words = spaced_words(plain_fold(text)).split()
    runs = [" ".join(words[start : start + _COPIED_WORDS]) for start in range(len(words) - _COPIED_WORDS + 1)]
    bare = squeezed(_COUNT.sub("", plain_fold(text)))
    for source in texts:
        if chunks:
            sequence = "".join(CJK.findall(source))
            found = next((chunk for chunk in chunks if chunk in sequence), None)
            if found is not None:
                return found
        if runs:
            spaced = _spaced(source)
            found = next((run for run in runs if f" {run} " in spaced), None)
            if found is not None:
                return found
        chain = _object_chain(bare, source)
        if chain is not None:
            return chain
    return None


@lru_cache(maxsize=64)
def _spaced(source: str) -> str:
    """A source as words with spaces around them; the sources of a request are compared with several rules."""
    return f" {spaced_words(plain_fold(source))} "


def _object_chain(bare: str, source: str) -> str | None:
    """A chain of objects such as ``device/maker,state`` in a source whose items follow each other in a rule.

    A chain has a slash and a comma, so that neither a path nor a list of words is one.
    """
    if "/" not in source and "／" not in source:
        return None
    for line in _CHAIN_END.split(_COUNT.sub("", plain_fold(source))):
        items = _CHAIN_ITEM.findall(line) if "/" in line else []
        windows = [items[start : start + _CHAIN_ITEMS] for start in range(len(items) - _CHAIN_ITEMS + 1)]
        chained = any(_is_chain(window) for window in windows)
        for window in windows:
            parts = [squeezed(part) for part, _ in window]
            joined = "".join(parts)
            chinese = bool(CJK.search(joined))
            # In Chinese the states behind the objects belong to the chain; in English they may be an ordinary clause.
            if not all(parts) or not (_is_chain(window) or (chained and chinese)):
                continue
            if len(joined) >= _SHORTEST_CHAIN[chinese] and joined in bare:
                return "".join(part + after for part, after in window).strip("/,;|、 ")
    return None


def _is_chain(window: Sequence[tuple[str, str]]) -> bool:
    separators = "".join(after for _, after in window[:-1])
    return "/" in separators and bool(separators.strip("/"))
