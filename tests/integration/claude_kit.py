"""Starting the real client in a clean room: a temporary home, a dummy key, loopback and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def clean_environment(base_url: str, home: Path, **more: str) -> dict[str, str]:
    home.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "SHELL": "/bin/bash",
        "ANTHROPIC_API_KEY": "sk-ant-dummy",
        "ANTHROPIC_BASE_URL": base_url,
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
        **more,
    }


def bundled_cli() -> Path:
    """The CLI inside the SDK's wheel."""
    sdk = pytest.importorskip(
        "claude_agent_sdk", reason="LOUD: claude-agent-sdk is not installed, so the real client is NOT tested"
    )
    path = Path(sdk.__file__).parent / "_bundled" / "claude"
    if not path.exists():
        pytest.skip(f"LOUD: this claude-agent-sdk has no bundled CLI for this platform ({path})")
    return path
