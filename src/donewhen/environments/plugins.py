"""Who loads the plug-ins of a group: a program that asks for it has its name in its code."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

_IMPORTED_FROM = ("site-packages", "dist-packages")


def is_asked_for(group: str, folders: Iterable[str], own: Collection[str] = ()) -> bool:
    """Whether the name of a group of entry points is in the code of an installed module, in quotes; ``own`` are modules
    that are not searched, because the plug-in brings them."""
    name = os.fsencode(group)
    quoted = (b"'" + name + b"'", b'"' + name + b'"')
    for folder in folders:
        for place, inner, files in os.walk(folder):
            if os.path.basename(place) in _IMPORTED_FROM:  # noqa: PTH119
                inner[:] = [name for name in inner if name not in own]
                files = [name for name in files if name.partition(".")[0] not in own]
            for file in files:
                if file.endswith(".py") and _has(f"{place}/{file}", quoted):
                    return True
    return False


def _has(path: str, words: Iterable[bytes]) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read()
    except OSError:
        return True
    return any(word in content for word in words)
