"""Generate the hooks of the Claude Code plugin, and their script, from those of `donewhen hooks install`, and the skill
of the Codex plugin from that of the other.

python -m tools.write_plugin [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from donewhen.adapters.hook_targets import HOOK_TARGETS
from donewhen.config.agent_runtimes import HOOK_SCRIPT
from donewhen.config.hook_script import script_for

INTEGRATIONS = Path(__file__).parents[1] / "integrations"
PLUGIN = INTEGRATIONS / "claude-code-plugin"
_SKILL = "skills/done-when/SKILL.md"


def files() -> dict[str, str]:
    """Return the generated files by their paths below the integrations: the hooks of the plugin for Claude Code, the
    script that they start, and the skill of the plugin for Codex, which is the same."""
    events: dict[str, list[object]] = {}
    for entry in HOOK_TARGETS["claude"].entries_for(f'"${{CLAUDE_PLUGIN_ROOT}}"/{HOOK_SCRIPT}'):
        events.setdefault(entry.event, []).append(entry.group())
    hooks = {"description": "Ask donewhen before an agent stops.", "hooks": events}
    # The program is found on the PATH.
    return {
        f"{PLUGIN.name}/hooks/hooks.json": json.dumps(hooks, indent=2) + "\n",
        f"{PLUGIN.name}/{HOOK_SCRIPT}": script_for("donewhen"),
        f"codex-plugin/{_SKILL}": (PLUGIN / _SKILL).read_text(encoding="utf-8"),
    }


def main() -> int:
    for name, content in files().items():
        path = INTEGRATIONS / name
        if "--check" in sys.argv:
            if not path.is_file() or path.read_text(encoding="utf-8") != content:
                return 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
