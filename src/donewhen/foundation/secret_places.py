"""Finds what looks like a secret in a text, with its line, before the text is sent to another machine.

Redaction may take too much, because it only changes what is stored or shown. Here a person is asked about each place,
so it must look like a real secret: names of variables, types and placeholders do not.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.secrets import is_secret_name


class SecretPlace(NamedTuple):
    """What looks like a secret: its line, what it looks like, and the text itself, which is for comparisons only."""

    line: int
    kind: str
    text: str


_TOKENS = (
    (r"\bgh[pousr]_[A-Za-z0-9]{16,}", "a GitHub token"),
    (r"\bgithub_pat_[A-Za-z0-9_]{20,}", "a GitHub token"),
    (r"\bglpat-[A-Za-z0-9_-]{16,}", "a GitLab token"),
    (r"\bsk-[A-Za-z0-9_-]{16,}", "an API key"),
    (r"\bxox[abprs]-[A-Za-z0-9-]{10,}", "a Slack token"),
    (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", "an AWS access key"),
    (r"\bAIza[A-Za-z0-9_-]{30,}", "a Google API key"),
    (r"\bpypi-[A-Za-z0-9_-]{16,}", "a PyPI token"),
    (r"\bnpm_[A-Za-z0-9]{30,}", "an npm token"),
    (r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]*", "a JSON Web Token"),
)
# A key has lines of base64; a program that only looks for such a heading has none.
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^\n]*\n(?:[ \t+>#*]*[A-Za-z-]+:[^\n]*\n)*[\s+>#*\"']*+"
    r"[A-Za-z0-9+/]{32,}[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)
_NAMED = (
    (
        (
            r"(?i)\b(?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?"
            r"(?:(?:bearer|basic|token|apikey|digest|negotiate)\s+)?+([^\s,;'\"]{6,})"
        ),
        "credentials in a header",
    ),
    (r"(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{12,})", "a bearer token"),
    (r"://[^\s/:@]*+:([^\s/@]++)(?=@)", "a password in an address"),
    (
        (
            r"(?i)(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?token|auth[_-]?token)['\"]?\s*[:=]\s*"
            r"['\"]?([^\s'\",;&]{8,})"
        ),
        "a password or key",
    ),
)
_PLACEHOLDER = re.compile(r"(?i)example|placeholder|change.?me|dummy|redacted|x{4,}|\*{3,}|\.{3}|…|[<>{}()\[\]$%`]")
_MIN_VARIABLE = 16


def find_secrets(text: str, environ: Mapping[str, str] = CALLER_VARIABLES) -> tuple[SecretPlace, ...]:
    """Return what looks like a secret, and where the values of the caller's secret variables are, in their order."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    found = {
        (start, end): SecretPlace(bisect_right(starts, start), kind, text[start:end])
        for (start, end), kind in (*_patterns(text), *_variables(text, environ))
    }
    return tuple(found[place] for place in sorted(found) if not _is_inside(place, found))


def _patterns(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    for match in re.finditer(_PRIVATE_KEY, text):
        yield match.span(), "a private key"
    for pattern, kind in _TOKENS:
        for match in re.finditer(pattern, text):
            if _looks_real(match[0]):
                yield match.span(), kind
    for pattern, kind in _NAMED:
        for match in re.finditer(pattern, text):
            if _looks_real(match[1]):
                yield match.span(1), kind


def _variables(text: str, environ: Mapping[str, str]) -> Iterator[tuple[tuple[int, int], str]]:
    for name, value in environ.items():
        if (
            is_secret_name(name)
            and len(value) >= _MIN_VARIABLE
            and _looks_real(value)
            and not re.search(r"[\s/]", value)
        ):
            for match in re.finditer(re.escape(value), text):
                yield match.span(), f"the value of the variable {name}"


def _looks_real(value: str) -> bool:
    """Whether a value can be a secret: letters and digits are mixed, and nothing says that it is a placeholder."""
    if _PLACEHOLDER.search(value):
        return False
    return any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value)


def _is_inside(place: tuple[int, int], others: Collection[tuple[int, int]]) -> bool:
    return any(other != place and other[0] <= place[0] and place[1] <= other[1] for other in others)
