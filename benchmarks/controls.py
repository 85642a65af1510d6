"""The cost of controls in a run of 1,000 quick tests, compared with the same run without them."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from donewhen.foundation.executables import resolve_executable
from donewhen.jobs.evidence.test_report import run_with_report, without_controls

TESTS, FILES, ROUNDS = 1000, 10, 9
_PYTHON = sys.executable
_RUNNERS = {
    "pytest": (
        (_PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        "test_{}.py",
        "def test_{}():\n    assert {} + 1\n",
    ),
    "pytest -n 2": (
        (_PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n2"),
        "test_{}.py",
        "def test_{}():\n    assert {} + 1\n",
    ),
    "unittest": (
        (_PYTHON, "-m", "unittest", "-q"),
        "test_{}.py",
        "    def test_{}(self):\n        self.assertTrue({} + 1)\n",
    ),
    "node --test": (("node", "--test"), "a{}.test.js", "test('is {}', () => assert.ok({} + 1));\n"),
}
_HEADS = {
    "unittest": "import unittest\n\n\nclass Numbers(unittest.TestCase):\n",
    "node --test": "const assert = require('node:assert');\nconst { test } = require('node:test');\n",
}


def controls_benchmark() -> None:
    """Print the table."""
    print(f"CPU time of {TESTS} quick tests in {FILES} files with controls, compared with none (medians of {ROUNDS})")
    for label, (argv, name, test) in _RUNNERS.items():
        if shutil.which(argv[0]) is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            root = Path(os.path.realpath(folder))
            for file in range(FILES):
                numbers = range(file, TESTS, FILES)
                tests = "\n".join(test.format(number, number) for number in numbers)
                (root / name.format(file)).write_text(_HEADS.get(label, "") + tests)
            pairs = [(_cpu(root, argv, controls=False), _cpu(root, argv, controls=True)) for _ in range(ROUNDS + 1)]
        bare = statistics.median(without for without, _ in pairs[1:])
        more = statistics.median(with_controls - without for without, with_controls in pairs[1:])
        print(f"  {label:26} {1 + more / bare:5.2f} ×   (+{1000 * more:4.0f} ms on {1000 * bare:.0f} ms)")
    print()


def _cpu(root: Path, argv: tuple[str, ...], *, controls: bool) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as reports, nullcontext() if controls else without_controls():
        run = run_with_report(
            resolve_executable(argv[0], root).path,
            argv,
            cwd=root,
            reports=Path(reports),
            environment={"PATH": os.environ["PATH"], "HOME": str(root)},
            timeout=600,
        )
    if not run.passed or (run.controls.held == "held") is not controls:
        raise RuntimeError(f"{run.controls}\n{run.result.output}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    controls_benchmark()
