"""What the page about the mirror shows was so: its blocks that need a server are replayed against the double."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from donewhen.config.agent_runtimes import AGENT_VARIABLES

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "mirror-to-github.md"


def steps() -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```(?:console|text)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        if not block.startswith("$ "):
            continue
        for line in block.rstrip("\n").split("\n"):
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def test_the_page_shows_what_happens(tmp_path: Path, double: Any) -> None:
    double.repos = {"octo/shop": type(double.repo)("octo/shop")}
    kept = {name: value for name, value in os.environ.items() if name not in AGENT_VARIABLES}
    path = f"{Path(sys.executable).parent}:{kept['PATH']}"
    environment = kept | {"PATH": path, "NO_COLOR": "1", "GITHUB_API_URL": double.api, "GH_TOKEN": double.token}
    status = 0
    shown_steps = steps()
    assert len(shown_steps) > 10
    for command, shown in shown_steps:
        if command == "echo $?":
            assert shown == [str(status)]
            continue
        without_token = any("No token for" in line for line in shown)
        env = {"PATH": path, "HOME": str(tmp_path)} if without_token else environment
        done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True)
        status = done.returncode
        pattern = "".join(
            r"(?:.*\n)*" if line.strip() == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in shown
        )
        assert re.fullmatch(pattern, done.stdout + done.stderr), f"{command}\n{done.stdout}{done.stderr}"
