"""Hashes of test configuration. A change to it could make failing tests report success."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.files import read_text_limited
from donewhen.foundation.size_limits import SETTINGS
from donewhen.jobs.contract.inputs import hash_file, walk_files
from donewhen.jobs.evidence.commands import reports_tests
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

_WHOLE_FILES = frozenset({"conftest.py", "pytest.ini", ".pytest.ini"})
_SECTIONS = {"tox.ini": "pytest", "setup.cfg": "tool:pytest"}


def hash_test_configs(workspace: Workspace, job: Job) -> dict[str, str]:
    """Return the test configuration files with the hash of their pytest part, whether tracked by git or not.

    Empty for a job that runs no tests.
    """
    if not any(
        requirement.check.kind == "run" and reports_tests(requirement.check.argv)
        for requirement in requirements_of(job)
    ):
        return {}
    hashes = {workspace.where(path): hash_test_config(path) for path in walk_files(workspace.root)}
    return {name: value for name, value in hashes.items() if value is not None}


def hash_test_config(path: Path) -> str | None:
    """Return the hash of a file's test configuration; None if it has none."""
    if path.name in _WHOLE_FILES:
        return hash_file(path)
    try:
        if path.name == "pyproject.toml":
            section: Any = _toml_section(read_text_limited(path, SETTINGS))
        elif path.name in _SECTIONS:
            section = _ini_section(read_text_limited(path, SETTINGS), _SECTIONS[path.name])
        else:
            return None
    except (OSError, ValueError):
        return hash_file(path)
    return None if section is None else digest_of(section)


def _toml_section(text: str) -> Any:
    # Imported where it is used: every gate imports this module, and few need it.
    import tomllib

    return tomllib.loads(text).get("tool", {}).get("pytest")


def _ini_section(text: str, name: str) -> dict[str, str] | None:
    import configparser

    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from error
    return dict(parser.items(name)) if parser.has_section(name) else None
