"""The ids of tests as they are stored and compared: without secrets, and still different for different tests."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from donewhen.foundation.secrets import REDACTED, redact_secrets

T = TypeVar("T")
_MARK = re.compile(r" #[0-9a-f]{12}\Z")


def stored_test_id(name: str) -> str:
    """Return an id as it is stored. What looks like a secret is replaced, and a hash of the whole id is added.

    The caller's variables don't matter: the same test must have the same id on every machine, and nobody may hide a
    test by a variable with its name as the value.
    """
    text = redact_secrets(name, {})
    return name if text == name else f"{text} #{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:12]}"


def stored_outcomes(outcomes: Mapping[str, T]) -> dict[str, T]:
    """Return the outcomes of tests by their stored ids."""
    return {stored_test_id(name): outcome for name, outcome in outcomes.items()}


def with_older_ids(outcomes: Mapping[str, T], before: Iterable[str]) -> Mapping[str, T]:
    """Return the outcomes, also by the ids without a hash that older versions stored, if ``before`` has such ids."""
    if not any(REDACTED in name and not _MARK.search(name) for name in before):
        return outcomes
    older = {_MARK.sub("", name): outcome for name, outcome in outcomes.items() if REDACTED in name}
    return {**older, **outcomes}
