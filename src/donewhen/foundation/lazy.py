"""Lazy imports for a package's public names."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_attributes(
    package: str,
    file_of: Mapping[str, str],
    from_others: Mapping[str, str] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> Callable[[str], Any]:
    """Return a module ``__getattr__`` for ``package``.

    ``file_of`` maps each public name to the file in the package that defines it; ``from_others`` maps re-exported names
    to modules elsewhere. ``renamed`` maps former names to the present ones; using one warns.
    """
    modules = {name: f"{package}.{file}" for name, file in file_of.items()} | dict(from_others or {})

    def __getattr__(name: str) -> Any:  # noqa: N807 - used as a module's __getattr__
        if renamed is not None and name in renamed:
            warnings.warn(f"{package}.{name} is now {package}.{renamed[name]}", DeprecationWarning, stacklevel=2)
            return getattr(sys.modules[package], renamed[name])
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
