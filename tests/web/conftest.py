"""Lets the tests here import the kit beside them, and starts the page for them: a real process on loopback."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from web_kit import Server, missing_extra, serving

_NEEDED = missing_extra()
_WITHOUT = ("test_web_parts.py",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the extra is skipped where it is missing, and says so."""
    if not _NEEDED:
        return
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name not in _WITHOUT:
            item.add_marker(pytest.mark.skip(reason=_NEEDED))


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """``serve(folder)``: the page of a folder; with ``person=True``, started by a person at a terminal."""
    started: list[Server] = []

    def start(folder: Path, *arguments: str, **options: Any) -> Server:
        started.append(serving(folder, *arguments, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()
