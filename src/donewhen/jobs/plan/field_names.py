"""The fields of a job's plan, and which unknown fields look like a misspelled one.

Unknown fields are kept and mean nothing. A misspelled one means nothing either, and its writer believes that it does.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import lru_cache

from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.templates import job_plan

_OPTIONAL = frozenset(
    (
        *("inputs", "work", "present", "prepare", "tests_may_change", "network", "read_only", "id"),
        *("agreement_status", "agreed_at", "agreed_by", "imported_from", "imported_hash"),
    )
)
_MIN_LENGTH = 4
_ALIKE = 0.87
"""One wrong, missing or exchanged letter in a name of six or more; ``owner`` and ``order`` are not alike."""


@lru_cache(maxsize=1)
def known_fields() -> frozenset[str]:
    """The fields that donewhen or the format knows in the plan of a job."""
    document = parse_document(job_plan("WI-20260101-001", "Title", "2026-01-01T00:00:00Z"), "a new plan")
    return frozenset(document.fields) | _OPTIONAL


def misspelled_fields(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The unknown fields that are nearly written like a known one, each with the known one."""
    known = known_fields()
    found = []
    for name in names:
        if name in known or len(name) < _MIN_LENGTH:
            continue
        plain = name.strip().casefold().replace("-", "_")
        near = [plain] if plain in known else difflib.get_close_matches(plain, known, 1, _ALIKE)
        found += [(name, other) for other in near]
    return tuple(found)
