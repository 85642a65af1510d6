"""The threat model names the tests that play what it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (_ROOT / "docs" / "threat-model.md").read_text("utf-8"))


def test_tests_are_named() -> None:
    assert len(_NAMED) > 15


@pytest.mark.parametrize(("path", "name"), _NAMED)
def test_each_test_that_the_threat_model_names_exists(path: str, name: str) -> None:
    tree = ast.parse((_ROOT / path).read_text("utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
