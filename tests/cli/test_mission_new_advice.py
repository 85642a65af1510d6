"""What `donewhen mission new` says to do next can be done."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("folder", "told"),
    [
        ("missions/reports", "use it in a job's criterion: check: judge:reports"),
        ("missions/my reports", "rename the folder so that jobs can use it: 'my reports'"),
        ("elsewhere/reports", "move it to missions/, so that jobs can use it"),
    ],
)
def test_it_says_how_jobs_come_to_ask_the_judge(tmp_path: Path, donewhen: Run, folder: str, told: str) -> None:
    assert donewhen(["init", "--title", "Shop"], tmp_path).returncode == 0
    done = donewhen(["mission", "new", folder], tmp_path)
    assert (done.returncode, f"next: {told}" in done.stdout) == (0, True)
