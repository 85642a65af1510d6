"""Packages whose names are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_attributes(
    package: str, file_of: Mapping[str, str], from_others: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """A module ``__getattr__`` for ``package``.

    ``file_of`` names, for each public name, the file in the package that defines it; ``from_others`` the module
    elsewhere that a name is passed on from.
    """
    modules = {name: f"{package}.{file}" for name, file in file_of.items()} | dict(from_others or {})

    def __getattr__(name: str) -> Any:  # noqa: N807 - this is what it becomes
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
