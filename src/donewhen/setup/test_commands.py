"""Which command runs the tests of a project, by the files in it. Nothing is started here."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from donewhen.foundation.files import read_limited
from donewhen.foundation.size_limits import OTHER

Kind = Literal["pytest", "unittest", "npm", "pnpm", "yarn", "cargo", "go", "make", "given"]
Which = Callable[[str], str | None]

_MOST_LISTED = 2000
_NOT_SEARCHED = frozenset({"node_modules", "target", "vendor", "build", "dist", "site-packages", "__pycache__"})
_NO_TEST = "no test specified"
_MAKE_TARGET = re.compile(r"^test[ \t]*::?(?!=)", re.MULTILINE)
_UNITTEST = re.compile(r"^\s*(?:import|from)\s+unittest\b", re.MULTILINE)


@dataclass(frozen=True)
class TestCommand:
    """A command that runs the tests, as it is written into the settings."""

    __test__ = False

    kind: Kind
    text: str
    found: str
    """The file that it was found by."""
    program: str
    """The program that has to be there."""

    @property
    def reports(self) -> bool:
        """Whether it writes a JUnit report, so that the tests can be counted."""
        return "{junit" in self.text


def given_command(text: str) -> TestCommand:
    """A command that a person has given."""
    return TestCommand("given", text, "", "")


def find_test_commands(root: Path, which: Which) -> list[TestCommand]:
    """The test commands that fit the files in ``root``; those whose program is missing come last."""
    found = [
        *_python(root, which),
        *_node(root),
        *_if_there(root, "Cargo.toml", TestCommand("cargo", "cargo test", "Cargo.toml", "cargo")),
        *_if_there(root, "go.mod", TestCommand("go", "go test ./...", "go.mod", "go")),
        *_make(root),
    ]
    return sorted(found, key=lambda command: not is_runnable(root, command, which))


def is_runnable(root: Path, command: TestCommand, which: Which) -> bool:
    """Whether the command's program is there."""
    if "/" in command.program:
        return os.access(root / command.program, os.X_OK)
    return not command.program or which(command.program) is not None


def _if_there(root: Path, name: str, command: TestCommand) -> Iterator[TestCommand]:
    if (root / name).is_file():
        yield command


def _python(root: Path, which: Which) -> Iterator[TestCommand]:
    program = _python_program(root, which)
    words, first = f"{program} -m", program.split()[0]
    configured = next((name for name, says in _PYTEST_FILES.items() if says(_text(root / name))), None)
    tests = list(_test_files(root))
    if configured is None and not tests:
        return
    found = configured or tests[0]
    pytest = TestCommand("pytest", f"{words} pytest -q --junitxml={{junit}}", found, first)
    if configured is not None or not all(_UNITTEST.search(_text(root / name)) for name in tests):
        yield pytest
    else:
        yield TestCommand("unittest", f"{words} unittest{_discovery(root, tests)}", found, first)


def _discovery(root: Path, tests: list[str]) -> str:
    """Options with which unittest finds tests in a folder that is no package."""
    folder = tests[0].rpartition("/")[0]
    top = folder.partition("/")[0]
    return f" discover -s {top}" if top and not (root / top / "__init__.py").is_file() else ""


def _mentions_pytest(text: str) -> bool:
    return re.search(r"\bpytest\b", text) is not None


_PYTEST_FILES: dict[str, Callable[[str], bool]] = {
    "pytest.ini": bool,
    ".pytest.ini": bool,
    "pyproject.toml": _mentions_pytest,
    "setup.cfg": _mentions_pytest,
    "tox.ini": _mentions_pytest,
    "conftest.py": bool,
    "tests/conftest.py": bool,
    "requirements-dev.txt": _mentions_pytest,
    "requirements.txt": _mentions_pytest,
}


def _python_program(root: Path, which: Which) -> str:
    for folder in (".venv", "venv"):
        if (root / folder / "bin" / "python").exists():
            return f"{folder}/bin/python"
    if (root / "uv.lock").is_file() and which("uv"):
        return "uv run python"
    if (root / "poetry.lock").is_file() and which("poetry"):
        return "poetry run python"
    return "python" if which("python") or not which("python3") else "python3"


def _test_files(root: Path) -> Iterator[str]:
    """Python files with names of tests, in a folder where they are looked for first."""
    for folder in (root / "tests", root / "test", root):
        names = _listed(folder, deep=folder != root)
        tests = sorted(name for name in names if re.fullmatch(r"(?:test_.*|.*_test)\.py", name.rpartition("/")[2]))
        if tests:
            yield from (str((folder / name).relative_to(root)) for name in tests[:50])
            return


def _listed(folder: Path, *, deep: bool) -> Iterator[str]:
    def walk() -> Iterator[str]:
        for path, folders, names in os.walk(folder):
            folders[:] = sorted(
                name for name in folders if deep and name not in _NOT_SEARCHED and not name.startswith(".")
            )
            yield from ((Path(path) / name).relative_to(folder).as_posix() for name in sorted(names))

    return islice(walk(), _MOST_LISTED)


def _node(root: Path) -> Iterator[TestCommand]:
    manifest = _json(root / "package.json")
    scripts = manifest.get("scripts")
    test = scripts.get("test") if isinstance(scripts, dict) else None
    if not isinstance(test, str) or not test.strip() or _NO_TEST in test:
        return
    named = str(manifest.get("packageManager", "")).partition("@")[0]
    if named == "pnpm" or (root / "pnpm-lock.yaml").is_file():
        yield TestCommand("pnpm", "pnpm test", "package.json", "pnpm")
    elif named == "yarn" or (root / "yarn.lock").is_file():
        yield TestCommand("yarn", "yarn test", "package.json", "yarn")
    else:
        yield TestCommand("npm", "npm test", "package.json", "npm")


def _make(root: Path) -> Iterator[TestCommand]:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if _MAKE_TARGET.search(_text(root / name)):
            yield TestCommand("make", "make test", name, "make")
            return


def _json(path: Path) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        data = json.loads(_text(path) or "{}")
        if isinstance(data, dict):
            return data
    return {}


def _text(path: Path) -> str:
    """The text of a file; empty if there is none that can be read."""
    try:
        return read_limited(path, OTHER).decode("utf-8", "replace")
    except OSError:
        return ""


def is_valid_toml(text: str) -> bool:
    """Whether this is TOML."""
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
