"""The files that pages load."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from donewhen.foundation.errors import MissingExtraError

TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def static_files() -> dict[str, Path]:
    """Every file that there is, by its name; a name in an address is looked up here, and never becomes a path."""
    here = Path(__file__).parent
    found = {path.name: path for path in (here / "static").iterdir() if path.suffix in TYPES}
    found["report.css"] = here.parent / "reports" / "page.css"
    # Found without importing it: to us the package is a folder with a file in it.
    try:
        spec = importlib.util.find_spec("js_lib_htmx")
    except ImportError:
        spec = None
    if spec is None or spec.origin is None:
        raise MissingExtraError("The page", "web")
    return found | {"htmx.min.js": Path(spec.origin).parent / "static" / "htmx" / "htmx.min.js"}
