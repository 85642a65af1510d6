"""The wheel and the source distribution are ready for a package index, and install with every common tool."""

from __future__ import annotations

import email
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
UNREACHABLE = ("No matching distribution", "Could not find a version", "ConnectionError", "Temporary failure")
installs = pytest.mark.installs
pytestmark = pytest.mark.xdist_group("wheel")


def _run(*argv: str | Path, cwd: Path | None = None, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_", "VIRTUAL"))}
    done = subprocess.run(argv, capture_output=True, text=True, cwd=cwd, env=clean | environment)
    if done.returncode and any(word in done.stderr for word in UNREACHABLE):
        pytest.skip(f"LOUD: the package index can't be reached, so this is NOT tested: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the tools that people install and build with."""
    folder = tmp_path_factory.mktemp("tools")
    venv.create(folder, with_pip=True)
    _run(folder / "bin" / "python", "-m", "pip", "-q", "install", "build", "hatchling", "pipx", "uv")
    return folder / "bin"


@pytest.fixture(scope="module")
def built(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Path]]:
    """Wheel and source distribution, built twice from two copies of the source."""
    found = []
    for number in range(2):
        source = tmp_path_factory.mktemp(f"source{number}") / f"copy-{number}"
        _run("git", "clone", "-q", "--no-hardlinks", ROOT, source)
        target = tmp_path_factory.mktemp(f"built{number}")
        _run(tools / "python", "-m", "build", "-q", "--no-isolation", "--outdir", target, source)
        found.append({path.suffix: path for path in target.iterdir()})
    return found


@installs
def test_building_twice_gives_the_same_bytes(built: list[dict[str, Path]]) -> None:
    digests = [{kind: hashlib.sha256(path.read_bytes()).hexdigest() for kind, path in each.items()} for each in built]
    assert digests[0].keys() == {".whl", ".gz"}
    assert digests[0] == digests[1]


@installs
def test_the_metadata_is_complete(built: list[dict[str, Path]]) -> None:
    wheel = zipfile.ZipFile(built[0][".whl"])
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    about = email.message_from_bytes(wheel.read(name))
    assert about["Description-Content-Type"] == "text/markdown"
    assert about["Requires-Python"] == ">=3.11"
    assert about["License-Expression"] == "MIT"
    assert set(about.get_all("License-File") or ()) == {"LICENSE", "src/donewhen/web/vendored/htmx.LICENSE"}
    assert "donewhen init" in str(about.get_payload())
    assert "donewhen/py.typed" in wheel.namelist()
    with tarfile.open(built[0][".gz"]) as archive:
        packed = archive.getnames()
    assert any(name.endswith("/src/donewhen/web/vendored/htmx.LICENSE") for name in packed)


@installs
@pytest.mark.parametrize("tool", ["uv", "pipx", "pip"])
def test_a_clone_installs_with(tool: str, tools: Path, tmp_path: Path) -> None:
    clone, home, project = tmp_path / "clone", tmp_path / "home", tmp_path / "project"
    _run("git", "clone", "-q", "--no-hardlinks", ROOT, clone)
    project.mkdir()
    programs = home / "bin"
    if tool == "pip":
        venv.create(home, with_pip=True)
        _run(programs / "python", "-m", "pip", "-q", "install", clone)
        variables = {}
    elif tool == "pipx":
        variables = {"HOME": str(home), "PIPX_HOME": str(home / "pipx"), "PIPX_BIN_DIR": str(programs)}
        _run(tools / "python", "-m", "pipx", "install", "--quiet", "--python", sys.executable, clone, **variables)
    else:
        variables = {"UV_TOOL_DIR": str(home / "tools"), "UV_TOOL_BIN_DIR": str(programs)}
        _run(tools / "uv", "tool", "install", "--quiet", "--python", sys.executable, clone, **variables)
    assert _run(programs / "donewhen", "--version", cwd=project).startswith("donewhen ")
    (project / "test.sh").write_text("exit 1\n")
    done = _run(programs / "donewhen", "init", "--claude", "--run", "sh test.sh", "--yes", cwd=project)
    assert "a red check was held" in done
    # The extra that it advises to install is one that this copy can be installed with.
    serve = subprocess.run([programs / "donewhen", "serve"], capture_output=True, text=True, cwd=project)
    expected = {"uv": "uv tool install --force", "pipx": "pipx install --force", "pip": "pip install"}[tool]
    assert f"next: Run: {expected} '{clone}[web]'" in serve.stderr


def test_a_release_is_tried_before_it_is_published() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["try"]["needs"] == "build"
    assert jobs["publish"]["needs"] == "try"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert all("id-token" not in jobs[name].get("permissions", {}) for name in ("build", "try"))
    uses = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"[\w/-]+@(?:v\d+|release/v1)", use) for use in uses)
