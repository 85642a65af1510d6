"""The tests of real projects pass in the room, at each level of isolation, as they do without donewhen."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from projects import PROJECTS, Project, project_folder

from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from forbidden_isolation import Level, only

pytestmark = [pytest.mark.projects, pytest.mark.timeout(1800)]

_PLAY = Path(__file__).parent / "play_job.py"
_IGNORED = (".venv/", "node_modules/", "__pycache__/", "*.egg-info/", ".pytest_cache/", ".hypothesis/")


@pytest.mark.parametrize("level", ["namespaces", "landlock", "copy"])
@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_the_tests_of_a_real_project_pass_in_its_room(
    project: Project, level: Level, capsys: pytest.CaptureFixture[str]
) -> None:
    root = project_folder(project)
    variables = {**os.environ, "PATH": f"{root}/.venv/bin:{os.environ['PATH']}", "VIRTUAL_ENV": f"{root}/.venv"}
    argv = (str(root / project.tests[0]), *project.tests[1:]) if "/" in project.tests[0] else project.tests
    started = time.monotonic()
    bare = subprocess.run(argv, cwd=root, env=variables, capture_output=True, text=True)
    seconds = time.monotonic() - started
    assert bare.returncode == 0, f"The project's tests fail without donewhen, too:\n{bare.stdout[-3000:]}"
    job = _new_job(project, root)
    with only(level) as (words, options):
        found = _play(project, root, job, words, options, variables)
    assert found["done"], found["reasons"]
    assert found["isolation"] == level
    held = "held" if project.kind == "python" else "none"
    assert isinstance(found["controls"], list) and found["controls"][0] == held, found["controls"]
    with capsys.disabled():
        print(
            f"\n{project.name} at {level}: bare {seconds:.1f} s, agreed in {found['agreeing']} s, "
            f"completed in {found['completing']} s, {found['tests']} tests"
        )


def _new_job(project: Project, root: Path) -> Job:
    """The project as it was fetched, in a new repository, with a job that changes one of its files."""
    for name in (".git", "jobs", ".donewhen"):
        shutil.rmtree(root / name, ignore_errors=True)
    work = root / project.work
    work.write_text(work.read_text().replace(project.comment, ""))
    (root / ".gitignore").write_text("\n".join(_IGNORED) + "\n")
    workspace = create_project(root, project.name)
    job = add_job(
        workspace,
        "Change a module",
        criteria=[f"All tests pass\n  check: run {shlex.join(project.tests)}"],
        work=[f"/{project.work}"],
        outputs=[f"/{project.work}"],
    )
    for arguments in (("init", "-q"), ("add", "--all"), ("commit", "-q", "-m", "All")):
        subprocess.run(
            ["git", "-c", "user.name=ada", "-c", "user.email=ada@localhost", *arguments], cwd=root, check=True
        )
    return job


def _play(
    project: Project,
    root: Path,
    job: Job,
    words: tuple[str, ...],
    options: Mapping[str, object],
    variables: Mapping[str, str],
) -> dict[str, object]:
    argv = [*words, sys.executable, str(_PLAY), str(root), job.id, project.work, project.comment]
    done = subprocess.run(argv, cwd=root, env=variables, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found
