"""Words of any script: separated as usual; in Chinese and Japanese each character is a word."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+(?:['’\-][^\W{_IDEOGRAPHS}]+)*")
_IDEOGRAPH = re.compile(rf"[{_IDEOGRAPHS}]")


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case and normal width."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.lower())


def is_ideograph(word: str) -> bool:
    """Whether a word is a single Chinese or Japanese character."""
    return _IDEOGRAPH.match(word) is not None


def join_words(words: list[str] | tuple[str, ...]) -> str:
    """Join words with spaces, except between Chinese characters."""
    out = ""
    for word in words:
        apart = out and not (_IDEOGRAPH.match(word) and _IDEOGRAPH.match(out[-1]))
        out += f" {word}" if apart else word
    return out


@lru_cache(maxsize=1 << 16)
def needle(phrase: str) -> str:
    """Return a phrase as a search string: each word between two spaces."""
    return "".join(f" {word} " for word in split_words(phrase))


@lru_cache(maxsize=4096)
def normalise_label(label: str) -> str:
    """Return a label or a heading in normalised form, for comparison."""
    return join_words(split_words(label))
