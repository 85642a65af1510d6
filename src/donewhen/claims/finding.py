"""Finds claims in what an agent said at the end: tests pass, files were written, work was committed.

A sentence that hedges, negates, asks or announces is no claim. Only English is understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["tests", "file", "commit", "push"]

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`*(✓✅-])|\n+|;\s+")
_NO_FAILURES = re.compile(
    r"\b(?:no|0|zero|without(?: any)?) (?:failures?|failed|failing|errors?|skipped)\b", re.IGNORECASE
)
_HEDGE = re.compile(
    r"\b(?:not|never|cannot|nothing|no|none|should|would|could|might|may|must|if|once|unless|until|when|whether|before|please|"
    r"need|needs|will|shall|going|let|want|wants|plan|next|todo|tried|try|trying|expect|expected|assum\w+|probably|"
    r"likely|seems?|fail\w*|broken|remaining|pending|run|ensure|verify|confirm|previously|except|only|some|most)\b"
    r"|n't\b|\?\s*$",
    re.IGNORECASE,
)
_TESTS = re.compile(
    r"\b(?:tests?|specs?|test suite|suite)\b[^.;]{0,40}?\b(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?)\b"
    r"|\b\d+ passed\b|\b(?:passing|green) tests\b",
    re.IGNORECASE,
)
_WRITING = re.compile(
    r"\b(?:created|wrote|written|added|generated|updated|modified|edited|implemented|saved|changed|fixed)\b",
    re.IGNORECASE,
)
_REMOVING = re.compile(r"\b(?:remov|delet|renam|mov)\w*", re.IGNORECASE)
_COMMITTED = re.compile(r"\bcommitted\b|\bcreated (?:a |the )?commit\b", re.IGNORECASE)
_HASH = re.compile(r"(?<![\w/-])[0-9a-f]{7,40}(?![\w/-])")
_PUSHED = re.compile(r"\bpushed\b", re.IGNORECASE)
_EXTENSIONS = (
    "bash|c|cc|cfg|clj|conf|cpp|cs|css|csv|dart|dockerfile|ex|exs|go|gradle|h|hpp|hs|html|ini|ipynb|java|js|json|jsonl|jsx|kt|"
    "less|lock|lua|md|mdx|mjs|ml|php|pl|proto|ps1|py|pyi|r|rb|rs|rst|scala|scss|sh|sql|svelte|svg|swift|tf|toml|ts|tsv|tsx|"
    "txt|vue|xml|yaml|yml|zig"
)
_PATH = re.compile(
    r"(?<![\w:/.@-])(?:\.{0,2}/)?(?:[\w.@-]+/)*"
    rf"(?:[\w@-][\w.@-]*\.(?i:{_EXTENSIONS})|Makefile|Dockerfile|Gemfile|Justfile|Procfile|LICENSE)(?![\w/(])"
)
_NAMES = frozenset({"node.js", "next.js", "vue.js", "express.js", "three.js", "d3.js", "asp.net"})


@dataclass(frozen=True)
class Claim:
    """One claim, with the sentence that makes it. ``about`` is the file or the commit that it names."""

    kind: Kind
    sentence: str
    about: str = ""


def claims_in(message: str) -> list[Claim]:
    """The claims of a message; the same claim only once."""
    found: dict[tuple[str, str], Claim] = {}
    for sentence in _sentences(message):
        for claim in _claims_of(sentence):
            found.setdefault((claim.kind, claim.about), claim)
    return list(found.values())


def _sentences(message: str) -> Iterator[str]:
    # A block of code is shown, not said.
    prose = re.sub(r"^\s*```.*?^\s*```", "", message, flags=re.DOTALL | re.MULTILINE)
    for part in _SENTENCE.split(prose):
        sentence = part.strip().lstrip("-*•#>✓✅☑ \t")
        if sentence:
            yield sentence


def _claims_of(sentence: str) -> Iterator[Claim]:
    words = _NO_FAILURES.sub("", sentence)
    plain = re.sub(r"`[^`]*`", "", words)
    if _HEDGE.search(plain):
        return
    if _TESTS.search(words):
        yield Claim("tests", sentence)
    if _COMMITTED.search(plain):
        named = _HASH.search(words.replace("`", " "))
        yield Claim("commit", sentence, named[0] if named else "")
    if _PUSHED.search(plain):
        yield Claim("push", sentence)
    if _WRITING.search(plain) and not _REMOVING.search(plain):
        for path in _PATH.findall(words):
            if path.lower() not in _NAMES:
                yield Claim("file", sentence, path)
