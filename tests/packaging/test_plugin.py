"""What people install from: plugins and marketplaces, tried with the real clients, and the entry of the MCP server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen import __version__
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


Client = Callable[..., str]


@pytest.fixture
def claude(tmp_path: Path) -> Client:
    """Run the real Claude Code, with a home of its own."""
    sdk = pytest.importorskip("claude_agent_sdk", reason="LOUD: claude-agent-sdk is not installed")
    program = Path(sdk.__file__).parent / "_bundled" / "claude"
    if not program.exists():
        pytest.skip("LOUD: the wheel of claude-agent-sdk has no client here, so the plugin is NOT tried")
    return lambda *words: _run(program, words, {"HOME": str(tmp_path), "DISABLE_AUTOUPDATER": "1"})


@pytest.fixture
def codex(tmp_path: Path) -> Client:
    """Run the real Codex, with a home of its own."""
    program = shutil.which("codex", path=f"{ROOT}/.venv/codex/node_modules/.bin:{os.environ['PATH']}")
    if program is None:
        pytest.skip("LOUD: the Codex CLI is not installed, so the plugin is NOT tried")
    (tmp_path / ".codex").mkdir()
    return lambda *words: _run(program, words, {"HOME": str(tmp_path)})


def _run(program: str | Path, words: tuple[str, ...], own: dict[str, str]) -> str:
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"} | own
    done = subprocess.run([program, *words], capture_output=True, text=True, cwd=own["HOME"], env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.claude
def test_claude_code_accepts_and_installs_the_plugin(claude: Client, tmp_path: Path) -> None:
    for path in (ROOT, PLUGIN):
        assert "Validation passed" in claude("plugin", "validate", "--strict", str(path))
    claude("plugin", "marketplace", "add", str(ROOT))
    claude("plugin", "install", "donewhen@donewhen")
    (installed,) = (tmp_path / ".claude" / "plugins").rglob("hooks/hooks.json")
    assert installed.read_text() == (PLUGIN / "hooks" / "hooks.json").read_text()


@pytest.mark.codex
def test_codex_installs_the_plugin_with_its_skill(codex: Client, tmp_path: Path) -> None:
    codex("plugin", "marketplace", "add", str(ROOT))
    assert str(ROOT / "integrations" / "codex-plugin") in codex("plugin", "list")
    codex("plugin", "add", "donewhen@donewhen")
    (skill,) = (tmp_path / ".codex" / "plugins").rglob("skills/done-when/SKILL.md")
    assert skill.read_text() == (PLUGIN / "skills" / "done-when" / "SKILL.md").read_text()


def test_all_manifests_agree() -> None:
    release = __version__.partition(".dev")[0]
    manifests = [
        json.loads((ROOT / path).read_text(encoding="utf-8"))
        for path in (
            "integrations/claude-code-plugin/.claude-plugin/plugin.json",
            "integrations/codex-plugin/.codex-plugin/plugin.json",
        )
    ]
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))
    manifests += market["plugins"]
    assert {(each["name"], each["version"], each["license"]) for each in manifests} == {("donewhen", release, "MIT")}
    assert len({each["description"] for each in manifests}) == 1


def test_the_entry_of_the_mcp_server_names_this_version_and_starts_it() -> None:
    about = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    (package,) = about["packages"]
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", about["name"])
    assert 1 <= len(about["description"]) <= 100
    assert about["version"] == package["version"] == __version__
    assert package["transport"] == {"type": "stdio"}
    assert [argument["value"] for argument in package["runtimeArguments"]] == [f"donewhen[mcp]=={__version__}"]
    words = [argument["value"] for argument in package["packageArguments"]]
    done = subprocess.run([sys.executable, "-m", "donewhen", *words, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    # The package index is asked for this mark, to prove that package and entry have the same owner.
    assert f"mcp-name: {about['name']}" in (ROOT / "README.md").read_text(encoding="utf-8")
