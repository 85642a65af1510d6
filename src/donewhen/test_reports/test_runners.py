"""placeholder until merged"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TestRunner:
    __test__ = False
    kind: str
    unknown: str = ""


def runner_of(argv: Sequence[str]) -> TestRunner:
    return TestRunner("none")
