"""Lets the tests here import the kit beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from verify_kit import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A repository with what was agreed on main."""
    return Shop(tmp_path / "shop")
