"""The example of a package that offers a model is installed beside donewhen, and judges."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "donewhen-example-model"

pytestmark = [pytest.mark.installs, pytest.mark.xdist_group("wheel")]


def _run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd)


def test_the_example_is_installed_and_judges(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    programs = tmp_path / "env" / "bin"
    installed = _run(programs / "python", "-m", "pip", "install", "-q", ROOT, EXAMPLE, cwd=tmp_path)
    if "No matching distribution" in installed.stderr or "ConnectionError" in installed.stderr:
        pytest.skip(f"LOUD: the package index can't be reached, so the example is NOT tried: {installed.stderr[-300:]}")
    assert installed.returncode == 0, installed.stderr
    donewhen = programs / "donewhen"
    assert _run(donewhen, "mission", "example", "reports", cwd=tmp_path).returncode == 0
    (tmp_path / "report.md").write_text("It should work.\n")
    for word, verdict in (("should", "fail"), ("soon", "pass")):
        words = ("judge", "reports", "report.md", "--text", "--model", f"oneword:{word}", "--json")
        judged = _run(donewhen, *words, cwd=tmp_path)
        (told,) = json.loads(judged.stdout)["data"]["verdicts"]
        assert told["verdict"] == verdict
