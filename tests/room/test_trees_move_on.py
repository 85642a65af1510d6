"""The tree moves on with done jobs and with the server, and never by the agent's hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from room_kit import FORGES, HOLLOW, LAZY, PRICE, RUN_CHECK, RUN_TESTS, SHOP, Bench

pytestmark = pytest.mark.scenes


@pytest.mark.parametrize(
    ("name", "weak"),
    [
        ("check.py", "print('fine')\n"),
        ("conftest.py", FORGES),
        ("tests/test_price.py", HOLLOW),
        ("json.py", "import os\nos._exit(0)\n"),
        ("rules/__init__.py", "import os\nos._exit(0)\n"),
    ],
)
def test_a_done_job_does_not_bring_what_judges_another(tmp_path: Path, name: str, weak: str) -> None:
    files = SHOP | {"check.py": f"import rules\n{SHOP['check.py']}", "rules.py": "", "all.py": SHOP["check.py"]}
    bench = Bench(tmp_path / "shop", files)
    job = bench.job(RUN_TESTS, RUN_CHECK, work=["/src/shop/**"])
    other = bench.job(f"It is there\n  check: file /{name}", title="Other", outputs=[f"/{name}"], work=[])
    bench.write(name, weak)
    if name in ("conftest.py", "tests/test_price.py"):
        bench.write("check.py", "\n")
    assert bench.complete(other).done
    bench.write(PRICE, LAZY)
    answer = bench.complete(job)
    assert not answer.done
    assert all(name in (*room.outside, *room.tests) for room in answer.rooms)


def _with_server(tmp_path: Path) -> tuple[Bench, Path]:
    server = tmp_path / "server.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", server], check=True)
    bench = Bench(tmp_path / "shop")
    bench.git("remote", "add", "origin", str(server))
    bench.git("push", "-q", "-u", "origin", "main")
    return bench, server


def test_a_change_that_the_server_has_is_no_work_of_the_agent(tmp_path: Path) -> None:
    bench, server = _with_server(tmp_path)
    job = bench.job(RUN_CHECK)
    bench.git("push", "-q", "origin", "main")
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", server, other], check=True)
    (other / "check.py").write_text(SHOP["check.py"].replace("[1, 2]", "[1, 1, 1]"))
    (other / "LICENSE").write_text("Free\n")
    for arguments in (
        ("add", "-A"),
        ("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "X"),
        ("push", "-q"),
    ):
        subprocess.run(["git", *arguments], cwd=other, check=True)
    bench.git("commit", "-q", "-a", "--allow-empty", "-m", "Record")
    bench.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    bench.work()
    answer = bench.complete(job)
    assert answer.done
    assert "check.py" not in answer.outside
    assert not answer.rooms[0].provisional


TRICKS = ("a reference", "another server", "settings of the folder for upstream", "another branch", "a pushed branch")


@pytest.mark.parametrize("trick", TRICKS)
def test_a_commit_that_the_server_does_not_have_explains_nothing(tmp_path: Path, trick: str) -> None:
    bench, server = _with_server(tmp_path)
    job = bench.job(RUN_CHECK)
    bench.git("push", "-q", "origin", "main")
    bench.write(PRICE, LAZY)
    bench.write("check.py", "print('fine')\n")
    assert not bench.complete(job).done
    bench.commit("Nothing is checked any more")
    evil = tmp_path / "evil.git"
    subprocess.run(["git", "clone", "-q", "--bare", bench.root, evil], check=True)
    if trick == "a reference":
        bench.git("update-ref", "refs/remotes/origin/main", "HEAD")
    elif trick == "another server":
        bench.git("remote", "set-url", "origin", str(evil))
        bench.git("config", f"url.{evil}.insteadOf", str(server))
        bench.git("fetch", "-q", "origin")
    elif trick == "settings of the folder for upstream":
        folder = bench.workspace.folder / "state/upstream"
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q", folder], check=True)
        subprocess.run(["git", "config", f"url.{evil}.insteadOf", str(server)], cwd=folder, check=True)
        subprocess.run(["git", "fetch", "-q", evil, "+main:refs/heads/tip"], cwd=folder, check=True)
    elif trick == "another branch":
        bench.git("branch", "-q", "-M", "feature")
        bench.git("branch", "-q", "--set-upstream-to=origin/main")
    else:
        bench.git("push", "-q", "origin", "HEAD:refs/heads/mine")
        bench.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/mine")
    answer = bench.complete(job)
    assert not answer.done
    assert "outside_work_area" in answer.codes
