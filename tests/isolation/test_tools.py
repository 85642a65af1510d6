"""Checks find their tools wherever those are installed, and nothing else that lies beside them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from donewhen.jobs.room.tool_folders import program_folders, readable_tools
from donewhen_kit import quiet_environment
from isolation.test_checks_of_jobs import words_for

pytestmark = pytest.mark.scenes

_CHECK = """
import sys
from pathlib import Path
from donewhen.jobs.plan.creating import add_job
from room.checkout_kit import Checkout
checkout = Checkout(Path(sys.argv[1]))
criteria = ("It works.\\n  check: run " + sys.argv[2],)
job = add_job(checkout.workspace, "Job", criteria=criteria, work=("/src/**",), outputs=("/src/done.txt",))
checkout.commit()
job = checkout.workspace.job(job.id)
checkout.agree(job)
print(checkout.finish(job).done, checkout.last_run(job).room.isolation)
"""


@pytest.mark.parametrize("level", ["namespaces", "landlock", "copy"])
@pytest.mark.parametrize("home", ["that of the system", "another one"])
def test_an_interpreter_in_a_virtual_environment_anywhere_runs(tmp_path: Path, level: str, home: str) -> None:
    environment = tmp_path / "environments/shop"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    variables = quiet_environment(PYTHONPATH=str(Path(__file__).parent.parent))
    if home == "another one":
        variables["HOME"] = str(tmp_path)
    check = f"{environment}/bin/python -m calendar 2026"
    argv = [*words_for(level), sys.executable, "-c", _CHECK, str(tmp_path / "shop"), check]
    done = subprocess.run(argv, env=variables, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"True {level}\n"), done.stderr


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def test_the_folders_of_a_program_hold_neither_the_project_nor_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, project = folder(tmp_path / "home"), folder(tmp_path / "tools/shop")
    monkeypatch.setenv("HOME", str(home))
    for place in (home, tmp_path / "tools", tmp_path / "other"):
        (place / "bin").mkdir(parents=True)
        (place / "lib").mkdir()
        (place / "bin/tool").touch()
    assert tmp_path / "other" in program_folders(tmp_path / "other/bin/tool", project)
    assert program_folders(tmp_path / "tools/bin/tool", project) == ()
    assert program_folders(home / "bin/tool", project) == ()


def test_tools_that_are_found_by_name_are_readable_anywhere_but_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the temporary folder was an ordinary one.
    monkeypatch.setattr("donewhen.jobs.room.tool_folders._TEMPORARY", ())
    project = folder(tmp_path / "shop")
    own, other = folder(project / "bin"), folder(tmp_path / "data/bin")
    found = readable_tools({"PATH": f"{own}:{other}:/nowhere:relative"}, project)
    assert other in found
    assert not any(path.is_relative_to(project) for path in found)
