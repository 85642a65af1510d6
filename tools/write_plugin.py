"""Generate the hooks of the Claude Code plugin, and their script, from those of `donewhen hooks install`.

python -m tools.write_plugin [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from donewhen.adapters.hook_targets import HOOK_TARGETS
from donewhen.config.agent_runtimes import HOOK_SCRIPT
from donewhen.config.hook_script import script_for

PLUGIN = Path(__file__).parents[1] / "integrations" / "claude-code-plugin"


def files() -> dict[str, str]:
    """Return the generated files of the plugin by their paths: the hooks, and the script that they start."""
    events: dict[str, list[object]] = {}
    for entry in HOOK_TARGETS["claude"].entries_for(f'"${{CLAUDE_PLUGIN_ROOT}}"/{HOOK_SCRIPT}'):
        events.setdefault(entry.event, []).append(entry.group())
    hooks = {"description": "Ask donewhen before an agent stops.", "hooks": events}
    # The program is found on the PATH.
    return {"hooks/hooks.json": json.dumps(hooks, indent=2) + "\n", HOOK_SCRIPT: script_for("donewhen")}


def main() -> int:
    for name, content in files().items():
        path = PLUGIN / name
        if "--check" in sys.argv:
            if not path.is_file() or path.read_text(encoding="utf-8") != content:
                return 1
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
