"""Lets the tests here import the kit beside them, and keeps the rooms of these tests apart from all others."""

import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _rooms_of_this_test(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests plant files above the rooms."""
    folder = tmp_path_factory.mktemp("tmpdir")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.fixture
def kept_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rooms are kept for the next check, as those of large projects are."""
    monkeypatch.setattr("donewhen.jobs.evidence.room_session._KEPT_FROM", 0)
