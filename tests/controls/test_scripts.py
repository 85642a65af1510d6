"""A script is believed if it reached its own end, or ended itself."""

from __future__ import annotations

import pytest
from control_kit import Suite

from donewhen.controls.judging import NOT_ASKED

CHECK = "from app import add\n\nimport sys\n\nsys.exit(add(1, 2) != 3)\n"
RIGHT = "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize("words", [("python", "check.py"), ("python", "-B", "-W", "error", "check.py", "--all")])
@pytest.mark.parametrize(
    "end", ["", "sys.exit()", "sys.exit(0)", "raise SystemExit", "sys.exit(None)", "sys.exit(False)"]
)
def test_a_script_that_reaches_its_end_has_passed(suite: Suite, words: tuple[str, ...], end: str) -> None:
    run = suite(
        {"app.py": RIGHT, "check.py": f"import sys\nfrom app import add\nassert add(1, 2) == 3\n{end}\n"}, *words
    )
    assert run.passed, run.result.output
    assert (run.controls.held, run.controls.why, run.controls.ended_in) == ("none", NOT_ASKED.why, ())


@pytest.mark.parametrize(
    ("app", "code"),
    [
        ("def add(a, b):\n    return a - b\n", 1),
        ("def add(a, b):\n    raise ValueError('wrong')\n", 1),
        ("def add(a, b):\n    import os\n    os._exit(3)\n", 3),
    ],
)
def test_a_script_that_fails_fails_as_it_would(suite: Suite, app: str, code: int) -> None:
    run = suite({"app.py": app, "check.py": CHECK}, "python", "check.py")
    assert (run.result.exit_code, run.passed, run.controls.held) == (code, False, "none")
    assert "script_run" not in run.result.output


@pytest.mark.parametrize(
    ("app", "fault"),
    [
        ("import os\nos._exit(0)\n", "ended_early"),
        ("import os, sys\nos.execv(sys.executable, [sys.executable, '-c', ''])\n", "ended_early"),
        ("import atexit, os\natexit.register(os._exit, 0)\n\n\ndef add(a, b):\n    return 0\n", "exit_status"),
        ("import os, sys\nsys.excepthook = lambda *error: os._exit(0)\n\n\ndef add(a):\n    return 0\n", "exit_status"),
    ],
)
def test_a_script_that_is_ended_before_is_not_trusted(suite: Suite, app: str, fault: str) -> None:
    run = suite({"app.py": app, "check.py": CHECK}, "python", "check.py")
    assert run.seems_passed
    assert not run.passed
    assert run.controls.faults == (fault,)


@pytest.mark.parametrize(
    "end", ["import sys\nsys.exit(0)\n", "raise SystemExit\n", "import argparse\nargparse.ArgumentParser().exit()\n"]
)
def test_the_files_that_have_ended_a_script_are_known(suite: Suite, end: str) -> None:
    run = suite(
        {"lib/app.py": end, "check.py": f"import sys\nsys.path.insert(0, 'lib')\n{CHECK}"}, "python", "check.py"
    )
    assert run.controls.ended_in == ("lib/app.py",)


def test_a_script_finds_what_it_would_find(suite: Suite) -> None:
    script = """
import __main__
import os
import sys
import inspect
from pathlib import Path

assert sys.argv == ["tools/check.py", "one", "--two"], sys.argv
assert __name__ == "__main__" and __main__.__dict__ is globals()
assert Path(__file__) == Path.cwd() / "tools" / "check.py", __file__
assert __doc__ is None and __spec__ is None and __package__ is None
assert Path(sys.path[0]) == Path.cwd() / "tools", sys.path
assert not [path for path in sys.path if "donewhen-" in path]
assert "PYTHONPATH" not in os.environ and "donewhen_controls" not in sys.modules
assert set(globals()) - {"inspect", "os", "sys", "Path"} == KNOWN, set(globals())
assert "assert" in inspect.getsource(__main__)
from helper import NUMBER
assert NUMBER == 7
"""
    names = ["name", "doc", "package", "loader", "spec", "builtins", "file", "cached", "main"]
    known = repr({f"__{name}__" for name in names})
    files = {"tools/check.py": script.replace("KNOWN", known), "tools/helper.py": "NUMBER = 7\n"}
    run = suite(files, "python", "tools/check.py", "one", "--two")
    assert run.passed, run.result.output


def test_a_script_starts_processes_as_it_would(suite: Suite) -> None:
    script = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor


def double(number):
    return 2 * number


if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(double, 7).result() == 14
"""
    run = suite({"check.py": script}, "python", "check.py")
    assert run.passed, run.result.output


def test_a_script_that_shows_an_error_shows_it_as_it_would(suite: Suite) -> None:
    run = suite({"check.py": "def check():\n    return 1 / 0\n\n\ncheck()\n"}, "python", "check.py")
    first, second, *_ = run.result.output.splitlines()
    assert first == "Traceback (most recent call last):"
    assert second.endswith('check.py", line 5, in <module>')


def test_without_the_variable_a_script_runs_as_it_is(suite: Suite) -> None:
    run = suite({"check.py": "import sys\nsys.exit(0)\n"}, "python", "-I", "check.py")
    assert (run.passed, run.controls) == (True, NOT_ASKED)
