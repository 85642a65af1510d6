"""Verification probes the tests of what has passed, and says so without deciding anything by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from verify_room_kit import RIGHT, RUN_TESTS, WRONG, RoomShop, note_codes

pytestmark = [pytest.mark.probes, pytest.mark.scenes]


def test_what_has_passed_is_probed_and_reported_as_a_note(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "shop")
    job = shop.agreed(RUN_TESTS)
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT})
    messages = [note.message for note in found.notes if note.code == "probed"]
    assert len(messages) == 1
    assert "red before the work: yes" in messages[0]
    assert "mutants:" in messages[0]


def test_what_has_failed_is_not_probed(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "shop")
    job = shop.agreed(RUN_TESTS)
    found = shop.pull_request(job, {"src/shop/price.py": f"# Other.\n{WRONG}"})
    assert not found.passed
    assert "probed" not in note_codes(found)
