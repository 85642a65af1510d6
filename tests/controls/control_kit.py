"""Test runs with controls, as the gate starts them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from donewhen.foundation.executables import resolve_executable
from donewhen.jobs.evidence.test_report import ReportedRun, run_with_report

Suite = Callable[..., ReportedRun]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Write files and run a command on them; ``python`` is the interpreter of these tests."""

    def run(files: Mapping[str, str], *words: str, **variables: str) -> ReportedRun:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        argv = [sys.executable if word == "python" else word for word in words]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **variables}
        with tempfile.TemporaryDirectory() as reports:
            return run_with_report(
                resolve_executable(argv[0], tmp_path).path,
                argv,
                cwd=tmp_path,
                reports=Path(reports),
                environment=environment,
                timeout=300,
            )

    return run
