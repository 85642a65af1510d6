"""Generate the hooks of the Claude Code plugin from those of `donewhen hooks install`.

python -m tools.write_plugin [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from donewhen.adapters.hook_targets import HOOK_TARGETS

HOOKS = Path(__file__).parents[1] / "integrations" / "claude-code-plugin" / "hooks" / "hooks.json"


def content() -> str:
    """Return the plugin's hooks: the same commands, with the program found on the PATH."""
    events: dict[str, list[object]] = {}
    for entry in HOOK_TARGETS["claude"].entries_for("donewhen"):
        events.setdefault(entry.event, []).append(entry.group())
    return json.dumps({"description": "Ask donewhen before an agent stops.", "hooks": events}, indent=2) + "\n"


def main() -> int:
    if "--check" in sys.argv:
        return 0 if HOOKS.read_text(encoding="utf-8") == content() else 1
    HOOKS.write_text(content(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
