"""Which test command is proposed, by the files of a project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from donewhen.setup.test_commands import find_test_commands

PYTEST = "def test_it(): pass\n"
UNITTEST = "import unittest\n\nclass It(unittest.TestCase):\n    def test_it(self): pass\n"
NPM = json.dumps({"scripts": {"test": "node --test"}})


def proposed(root: Path, files: Mapping[str, str], *missing: str) -> list[tuple[str, str]]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
        if name.endswith("bin/python"):
            (root / name).chmod(0o755)
    found = find_test_commands(root, lambda name: None if name in missing else f"/bin/{name}")
    return [(command.text, command.found) for command in found]


PYTEST_RUN = "python -m pytest -q --junitxml={junit}"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"test_it.py": PYTEST}, (PYTEST_RUN, "test_it.py")),
        ({"tests/deep/it_test.py": PYTEST}, (PYTEST_RUN, "tests/deep/it_test.py")),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, (PYTEST_RUN, "pyproject.toml")),
        ({"requirements-dev.txt": "pytest>=8\n"}, (PYTEST_RUN, "requirements-dev.txt")),
        ({"test_it.py": UNITTEST, "conftest.py": "x = 1\n"}, (PYTEST_RUN, "conftest.py")),
        ({".venv/bin/python": "", "test_it.py": PYTEST}, (f".venv/bin/{PYTEST_RUN}", "test_it.py")),
        ({"uv.lock": "", "test_it.py": PYTEST}, (f"uv run {PYTEST_RUN}", "test_it.py")),
        ({"poetry.lock": "", "test_it.py": PYTEST}, (f"poetry run {PYTEST_RUN}", "test_it.py")),
        ({"test_it.py": UNITTEST}, ("python -m unittest", "test_it.py")),
        ({"tests/test_it.py": UNITTEST}, ("python -m unittest discover -s tests", "tests/test_it.py")),
        ({"tests/test_it.py": UNITTEST, "tests/__init__.py": ""}, ("python -m unittest", "tests/test_it.py")),
        ({"package.json": NPM}, ("npm test", "package.json")),
        ({"package.json": NPM, "pnpm-lock.yaml": ""}, ("pnpm test", "package.json")),
        ({"package.json": NPM, "yarn.lock": ""}, ("yarn test", "package.json")),
        (
            {"package.json": json.dumps({"packageManager": "pnpm@9.1.0", "scripts": {"test": "vitest run"}})},
            ("pnpm test", "package.json"),
        ),
        ({"Cargo.toml": "[package]\n"}, ("cargo test", "Cargo.toml")),
        ({"go.mod": "module x\n"}, ("go test ./...", "go.mod")),
        ({"Makefile": "build:\n\ntest: build\n\ttrue\n"}, ("make test", "Makefile")),
    ],
)
def test_the_files_say_how_the_tests_are_run(tmp_path: Path, files: dict[str, str], expected: tuple[str, str]) -> None:
    assert proposed(tmp_path, files) == [expected]


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": "Run pytest.\n"},
        {"package.json": json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}})},
        {"package.json": json.dumps({"scripts": {"build": "tsc"}})},
        {"package.json": "{broken"},
        {"package.json": "[]"},
        {"Makefile": "tests:\n\ttrue\ntest := 1\n"},
        {"node_modules/x/test_it.py": PYTEST},
        {"contest.py": "x = 1\n"},
    ],
)
def test_where_no_file_says_it_nothing_is_proposed(tmp_path: Path, files: dict[str, str]) -> None:
    assert proposed(tmp_path, files) == []


def test_a_command_whose_program_is_missing_comes_last(tmp_path: Path) -> None:
    files = {"package.json": NPM, "Makefile": "test:\n\ttrue\n"}
    assert [text for text, _ in proposed(tmp_path, files)] == ["npm test", "make test"]
    assert [text for text, _ in proposed(tmp_path, files, "npm")] == ["make test", "npm test"]
