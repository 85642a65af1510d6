"""Runs at the start of Python programs in a room: editable installations take the room instead of the project's folder.

Reads `map.json` beside it. Standard library of any Python 3; donewhen may not be installed there.
"""

import json
import os
import sys


def _use_room() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "map.json"), encoding="utf-8") as file:
        pairs = json.load(file)

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
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_use_room()
_run_other()
