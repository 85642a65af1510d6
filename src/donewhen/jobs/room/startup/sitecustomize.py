"""Runs at the start of Python programs in a room: editable installations take the room instead of the project's folder.

Reads `map.txt` beside it: a folder, and on the next line the one to use instead. Standard library of any Python 3;
donewhen may not be installed there.
"""

import os
import sys


def _use_room() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    # Imports nothing else: a module that is imported here would not be found in the project later.
    with open(os.path.join(here, "map.txt"), encoding="utf-8", errors="surrogateescape") as file:
        lines = file.read().split("\n")
    pairs = list(zip(lines[::2], lines[1::2]))  # noqa: B905 - Python 3.8

    def moved(path: str) -> str:
        for old, new in pairs:
            inside = path == old or path.startswith(old + os.sep)
            # Installed packages lie in the project's folder, too, and stay where they are.
            if inside and "site-packages" not in path and "dist-packages" not in path:
                return str(new) + path[len(old) :]
        return path

    sys.path[:] = [moved(path) for path in sys.path if not path or os.path.abspath(path) != here]
    for finder in list(sys.meta_path):
        module = sys.modules.get(getattr(finder, "__module__", "") or "")
        for name in ("MAPPING", "NAMESPACES"):
            mapping = getattr(module, name, None) or {}
            for key, value in list(mapping.items()):
                mapping[key] = moved(value) if isinstance(value, str) else [moved(path) for path in value]


def _run_other() -> None:
    """Run the module of this name that would have been run otherwise."""
    before = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if before is not None:
            sys.modules["sitecustomize"] = before


_use_room()
_run_other()
