"""Immutable dataclasses, under the name that programs for the same checker protocol use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, dataclass_transform

__all__ = ["FrozenDataclass"]


@dataclass_transform(frozen_default=True)
def FrozenDataclass(cls: type | None = None, /, **options: Any) -> Any:  # noqa: N802 - the name is the interface
    """Make a class a frozen dataclass: ``@FrozenDataclass()``, or ``@FrozenDataclass`` without options.

    ``options`` are those of :func:`dataclasses.dataclass`, except for ``frozen``. Copies with changes are made with
    :func:`dataclasses.replace`. Unlike the namesake elsewhere, slots are off unless they are asked for, because a
    generic class that is frozen and has slots can't be called as ``X[int](...)`` on some versions of Python.
    """
    if not options.setdefault("frozen", True):
        raise TypeError("FrozenDataclass is always frozen; use dataclasses.dataclass for a class that can change")
    if cls is not None and not isinstance(cls, type):
        raise TypeError(f"FrozenDataclass decorates a class, not {cls!r}; give options by name")
    return dataclass(**options) if cls is None else dataclass(**options)(cls)
