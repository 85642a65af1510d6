"""The Claude Code plugin has the hooks that `donewhen hooks install` writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from donewhen.adapters.hook_targets import HOOK_TARGETS

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "integrations" / "claude-code-plugin"


def test_the_plugins_hooks_are_those_that_are_installed() -> None:
    done = subprocess.run([sys.executable, "-m", "tools.write_plugin", "--check"], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, "Run: make docs"
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]
    assert set(hooks) == {event for event, _, _ in HOOK_TARGETS["claude"].events}


def test_the_plugin_names_itself_and_brings_its_skill() -> None:
    about = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))
    assert about["name"] == "donewhen"
    skill = (PLUGIN / "skills" / "done-when" / "SKILL.md").read_text(encoding="utf-8")
    assert skill.startswith("---\nname: done-when\ndescription: ")
