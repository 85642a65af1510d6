"""Public names that were renamed can still be imported under their former names, with a warning."""

from __future__ import annotations

from importlib import import_module

import pytest

PACKAGES = ("donewhen.jobs", "donewhen.judging", "donewhen.learning", "donewhen.models")
RENAMED = [(package, old) for package in PACKAGES for old in import_module(package)._RENAMED]


@pytest.mark.parametrize(("package", "old"), RENAMED)
def test_a_former_name_is_the_present_one_and_warns(package: str, old: str) -> None:
    module = import_module(package)
    with pytest.warns(DeprecationWarning, match=f"{package}.{old} is now"):
        value = getattr(module, old)
    assert value is getattr(module, module._RENAMED[old])
    assert old not in module.__all__
