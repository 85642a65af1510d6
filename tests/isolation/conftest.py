"""The levels that the tests of isolation run at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from isolation.isolation_kit import Alive, Apart, need


@pytest.fixture(params=["namespaces", "landlock"])
def apart(request: pytest.FixtureRequest, tmp_path: Path) -> Apart:
    """Commands that see nothing but what they may see."""
    need(request.param)
    return Apart(tmp_path, request.param)


@pytest.fixture(params=["namespaces", "landlock", "copy"])
def supervised(request: pytest.FixtureRequest, tmp_path: Path) -> Apart:
    """Commands at any level."""
    need(request.param)
    return Apart(tmp_path, request.param)


@pytest.fixture
def namespaces(tmp_path: Path) -> Apart:
    need("namespaces")
    return Apart(tmp_path, "namespaces")


@pytest.fixture
def alive(supervised: Apart) -> Iterator[Alive]:
    pipe = Alive(supervised.room)
    yield pipe
    pipe.close()
