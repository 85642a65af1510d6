"""When `donewhen demo` can't tell its story to the end, or can't begin: it says why, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.demo.chapters import CHAPTERS, at_the_gate
from donewhen.demo.stage import CommandRun
from sentences import assert_sentences

Person = Callable[..., Any]


def surroundings(temporary: Path, **extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in AGENT_VARIABLES}
    return kept | {"NO_COLOR": "1", "TMPDIR": str(temporary)} | extra


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("temporary")


def demo(*arguments: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "donewhen", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="programs above this one are known on Linux only")
def test_where_an_agent_runs_it_nobody_can_agree_and_the_story_says_so_and_ends(
    tmp_path: Path, temporary: Path
) -> None:
    agent = tmp_path / "claude"
    agent.symlink_to(sys.executable)
    code = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    command = [str(agent), "-c", code, sys.executable, "-m", "donewhen", "demo", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=temporary.parent, env=surroundings(temporary))
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)["data"]
    assert data["told"] is False
    assert_sentences(data["because"])
    assert [one["text"] for one in data["story"] if one["kind"] == "chapter"] == [CHAPTERS[0]]
    last = data["story"][-1]
    assert (last["who"], last["good"]) == ("donewhen", False)
    assert_sentences(last["text"])
    assert (data["promises"], data["learned"]) == ([], None)
    assert list(temporary.iterdir()) == []


def test_ctrl_c_ends_it_with_its_commands_and_its_folder(tmp_path: Path, temporary: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "donewhen", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=surroundings(temporary, PYTHONUNBUFFERED="1"),
    )
    assert process.stdout is not None
    for line in process.stdout:
        # The line is shown before the command is started, so that it is met early in its life, or before.
        if "donewhen mission example" in line:
            break
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "Interrupted" in error
    assert "Traceback" not in error
    assert list(temporary.iterdir()) == []
    # What was ended takes a moment to be gone.
    patience = time.monotonic() + 30
    while at_work_in(temporary) and time.monotonic() < patience:
        time.sleep(0.05)
    assert at_work_in(temporary) == []


def at_work_in(folder: Path) -> list[str]:
    """The processes that work below a folder, on systems that tell."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        try:
            where = os.readlink(path)
        except OSError:
            continue
        if where.startswith(str(folder)):
            found.append(path.parent.name)
    return found


def test_a_folder_that_is_in_use_is_left_alone(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = demo("--folder", str(tmp_path), cwd=tmp_path, env=surroundings(temporary))
    assert done.returncode == 2
    assert_sentences(done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_without_the_weights_it_says_how_to_fetch_them(tmp_path: Path, temporary: Path) -> None:
    nowhere = tmp_path / "models"
    done = demo("--model", "local", cwd=tmp_path, env=surroundings(temporary, DONEWHEN_MODELS=str(nowhere)))
    assert done.returncode == 2
    assert_sentences(done.stderr)
    assert "donewhen models fetch" in done.stderr
    assert list(temporary.iterdir()) == []


def test_a_model_that_there_is_not_is_named(tmp_path: Path, temporary: Path) -> None:
    done = demo("--model", "oracle", cwd=tmp_path, env=surroundings(temporary))
    assert done.returncode == 2
    assert_sentences(done.stderr)


def test_without_git_it_does_not_begin(tmp_path: Path, temporary: Path) -> None:
    done = demo(cwd=tmp_path, env=surroundings(temporary, PATH=str(tmp_path)))
    assert done.returncode == 2
    assert "git, which was not found" in done.stderr
    assert list(temporary.iterdir()) == []


def test_a_story_that_goes_astray_says_where_and_is_no_success(tmp_path: Path, temporary: Path) -> None:
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\necho 'the disk is full' >&2\nexit 1\n")
    git.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = demo("--json", cwd=tmp_path, env=surroundings(temporary, PATH=path))
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"], told["data"]["told"]) == (3, False, False)
    assert told["data"]["because"] == "This demo is broken: git init failed: the disk is full"
    assert list(temporary.iterdir()) == []


class _Otherwise:
    """A stage on which the judge of the third job never says what the story hopes for, until a person does."""

    def __init__(self, passes: set[str]) -> None:
        self.passes = passes
        self.report = ""
        self.told: list[str] = []

    def chapter(self, text: str) -> None: ...

    def note(self, text: str) -> None:
        self.told.append(text)

    def writes(self, who: str, files: dict[str, str], told: str) -> None:
        self.report = "whole" if "EVIDENCE" in files["REPORT.md"] else "bare"

    def run(self, who: str, *arguments: str, **options: Any) -> CommandRun:
        self.told.append(arguments[0])
        good = arguments[0] != "complete" or self.report in self.passes
        return CommandRun(0 if good else 1, "<promise>WI-DONE</promise>\nreceipt: sha256:1" if good else "✗")

    def at_terminal(self, *arguments: str, **options: Any) -> CommandRun:
        self.told.append(f"{arguments[0]} {options['keys']}")
        self.passes.add(self.report)
        return CommandRun(0, "")

    def wants_to_stop(self) -> None: ...


@pytest.mark.parametrize(
    ("passes", "told"),
    [
        ({"whole"}, ["complete", "complete"]),
        (set(), ["complete", "complete", "dispute", "review p", "complete"]),
        ({"bare", "whole"}, ["complete", "The judge passed it. "]),
    ],
)
def test_a_judge_that_sees_it_otherwise_has_people_above_it(passes: set[str], told: list[str]) -> None:
    stage = _Otherwise(passes)
    promises = at_the_gate(stage)  # type: ignore[arg-type]
    assert promises == ("<promise>WI-DONE</promise>\nreceipt: sha256:1",)
    assert len(stage.told) == len(told)
    assert all(one.startswith(wanted) for one, wanted in zip(stage.told, told, strict=True))
