"""Real projects whose tests are run in rooms, at the versions that were tried."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FETCHED = Path(__file__).parents[2] / "build" / "real-projects"
"""What was fetched and set up stays here for the next run."""


@dataclass(frozen=True)
class Project:
    """A project from a package index, with its own tests."""

    name: str
    version: str
    tests: tuple[str, ...]
    """The command that runs its tests."""
    work: str
    """A file that the job changes."""
    needs: tuple[str, ...] = ()
    """The packages that its tests need."""
    installed: Literal["", "editable", "copy"] = ""
    """How it is installed in its own virtual environment."""
    kind: Literal["python", "javascript"] = "python"

    @property
    def comment(self) -> str:
        """A line that changes a file and not what it does."""
        return "\n# A comment.\n" if self.kind == "python" else "\n// A comment.\n"


_PYTEST = ("python", "-m", "pytest", "-q")

PROJECTS = (
    Project(
        "attrs",
        "26.1.0",
        (*_PYTEST, "tests/test_make.py", "tests/test_validators.py", "tests/test_import.py"),
        "src/attr/filters.py",
        ("pytest", "hypothesis", "cloudpickle"),
        "editable",
    ),
    Project("click", "8.5.1", (*_PYTEST, "tests"), "src/click/globals.py", ("pytest",), "editable"),
    Project(
        "idna",
        "3.20",
        ("python", "-m", "unittest", "discover", "-s", "tests", "-t", "."),
        "idna/intranges.py",
        ("hypothesis",),
    ),
    Project(
        "packaging",
        "26.3",
        (*_PYTEST, "tests/test_markers.py", "tests/test_utils.py", "tests/test_metadata.py"),
        "src/packaging/utils.py",
        ("pytest", "pretend", "tomli_w", "hypothesis"),
        "editable",
    ),
    Project("pluggy", "1.7.0", (*_PYTEST, "testing"), "src/pluggy/_tracing.py", ("pytest",), "editable"),
    # Its tests' own dependencies are more than 10,000 files.
    Project("minimist", "1.2.8", ("node_modules/.bin/tape", "test/*.js"), "index.js", kind="javascript"),
)


def set_up(project: Project) -> Path:
    """Fetch a project, install what it needs into its folder, and return the folder."""
    recipe = hashlib.sha256(repr((project, sys.version_info[:2])).encode()).hexdigest()[:8]
    folder = FETCHED / f"{project.name}-{recipe}"
    if (folder / "ready").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if project.kind == "python":
        _set_up_python(project, folder)
    else:
        _set_up_javascript(project, folder)
    (folder / "ready").touch()
    return folder


def project_folder(project: Project) -> Path:
    """Where the project itself lies."""
    inner = f"{project.name}-{project.version}" if project.kind == "python" else "package"
    return set_up(project) / inner


def _set_up_python(project: Project, folder: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    pinned = f"{project.name}=={project.version}"
    _run(*pip, "download", "--no-deps", "--no-binary", ":all:", "--dest", str(folder), pinned)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    root = folder / f"{project.name}-{project.version}"
    _run(sys.executable, "-m", "venv", str(root / ".venv"))
    install = (str(root / ".venv" / "bin" / "python"), *pip[1:], "install")
    if project.needs:
        _run(*install, *project.needs)
    if project.installed:
        _run(*install, *(("--editable",) if project.installed == "editable" else ()), str(root))


def _set_up_javascript(project: Project, folder: Path) -> None:
    _run("npm", "pack", "--silent", f"{project.name}@{project.version}", cwd=folder)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    _run("npm", "install", "--silent", "--no-save", "--no-package-lock", cwd=folder / "package")


def _run(*argv: str, cwd: Path | None = None) -> None:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, env={**os.environ, "PIP_NO_INPUT": "1"})
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
