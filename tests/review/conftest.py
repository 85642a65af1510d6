"""Lets the tests here import the kit beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from court_kit import Court


@pytest.fixture
def court(repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Court:
    """A project whose jobs a judge looks at."""
    return Court(repository, git, monkeypatch)
