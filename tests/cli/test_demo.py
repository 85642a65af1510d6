"""The story that a visitor sees first."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def demo(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "donewhen", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=100)


def test_the_agent_is_held_back_three_times_for_three_reasons_and_then_let_go(tmp_path: Path) -> None:
    shown = demo(cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    text = " ".join(shown.stdout.split())
    story = (
        "“Done! slugify is implemented and production-ready.”",
        "✗ Not yet. You have 2 incomplete task(s) out of 3.",
        "“All steps are complete and all tests pass. Done!”",
        "✗ Not yet. Missing required files: test_slugify.py",
        "Everything works. Done!”",
        "✗ Not yet. `python -m unittest` failed with exit status 1.",
        "AssertionError: '-done-when-' != 'done-when'",
        "✓ Done. All 3 task(s) in the plan are complete. All required files exist. `python -m unittest` succeeded.",
        "The agent said done 4 times. It was done once",
        "Where to go next:",
    )
    places = [text.find(line) for line in story]
    assert -1 not in places, story[places.index(-1)]
    assert places == sorted(places)


def test_the_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    demo(cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_demo_for_programs_is_one_envelope(tmp_path: Path) -> None:
    data = json.loads(demo("--json", cwd=tmp_path).stdout)
    assert data["ok"] is True
    assert data["data"]["completion"]["status"] == "verified"
    assert data["data"]["completion"]["attempts"] == 4
    assert [one["role"] for one in data["data"]["transcript"]][:2] == ["user", "assistant"]
