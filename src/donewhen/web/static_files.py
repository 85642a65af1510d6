"""The static files that pages load."""

from __future__ import annotations

from pathlib import Path

from donewhen.dashboard.assets import asset, base_style, dashboard_script, dashboard_style

TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def static_files() -> dict[str, bytes]:
    """Return all static files by name. A name in a URL is looked up here and never used as a path."""
    here = Path(__file__).parent
    files = {path.name: path.read_bytes() for path in (here / "static").iterdir() if path.suffix in TYPES}
    shared = {
        "dashboard.css": dashboard_style(),
        "dashboard.js": dashboard_script(),
        "base.css": base_style(),
        "theme.js": asset("theme.js"),
        "report.css": (here.parent / "reports" / "page.css").read_text(encoding="utf-8"),
    }
    files |= {name: text.encode() for name, text in shared.items()}
    return files | {path.name: path.read_bytes() for path in (here / "vendored").iterdir() if path.suffix in TYPES}
