"""`donewhen github`, as people and scripts call it, against a GitHub on loopback."""

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
from sentences import assert_sentences

WRONG = "ghs_wrong0123456789wrong"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(double: Any, **extra: str) -> dict[str, str]:
    hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS", "GH_TOKEN", "GITHUB_TOKEN", "GITHUB_API_URL"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return kept | {"NO_COLOR": "1", "GITHUB_API_URL": double.api, "GH_TOKEN": double.token} | extra


@pytest.fixture
def github(place: Any, donewhen: Run) -> Run:
    """``github("sync", "--dry-run")``."""

    def call(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return donewhen(["github", *arguments], place.workspace.root, environment(place.double, **extra))

    return call


def snapshot(root: Path) -> dict[str, tuple[bytes | None, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes() if path.is_file() else None, path.lstat().st_mtime_ns)
        for path in [root, *root.rglob("*")]
    }


def test_the_help_has_examples(github: Run) -> None:
    output = github("--help").stdout
    assert "donewhen github sync --dry-run" in output
    for verb in ("enable", "sync", "parity"):
        assert f"donewhen github {verb}" in github(verb, "--help").stdout


def test_switching_on_finds_the_repository_by_the_remote(place: Any, github: Run, git: Any) -> None:
    root = place.workspace.root
    place.edit(place.workspace.project_file, "github_repo: octo/demo", 'github_repo: ""')
    refused = github("enable")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert_sentences(refused.stderr)
    assert "donewhen github enable --repo owner/name" in refused.stderr
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", f"{place.double.api}/octo/demo.git")
    done = github("enable", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["data"] == {"repo": "octo/demo", "enabled": True, "agreement": "proposed"}
    assert place.double.log == [], "nothing is sent"


@pytest.mark.parametrize("name", ["octo", "https://github.com/octo/demo", "a/b/c"])
def test_a_repository_that_is_none_is_refused(github: Run, name: str) -> None:
    done = github("enable", "--repo", name)
    assert done.returncode == 2
    assert_sentences(done.stderr)


@pytest.mark.parametrize("verb", ["sync", "parity"])
def test_while_mirroring_is_off_nothing_is_asked(place: Any, github: Run, verb: str) -> None:
    place.edit(place.workspace.project_file, "github_enabled: true", "github_enabled: false")
    done = github(verb)
    assert done.returncode == 2
    assert_sentences(done.stderr)
    assert place.double.log == []


@pytest.mark.parametrize("verb", ["sync", "parity"])
def test_a_job_that_is_not_there_is_told_before_anybody_is_asked(place: Any, github: Run, verb: str) -> None:
    done = github(verb, "--job", "999")
    assert (done.returncode, place.double.log) == (2, [])
    assert_sentences(done.stderr)


def test_without_a_token_it_is_said_which_variable_is_meant(github: Run) -> None:
    done = github("sync", GH_TOKEN="")
    assert done.returncode == 2
    assert_sentences(done.stderr)
    assert "GH_ENTERPRISE_TOKEN or GITHUB_ENTERPRISE_TOKEN" in done.stderr


def test_a_dry_run_is_really_dry(place: Any, github: Run) -> None:
    one = place.job("One")
    place.sync()
    place.job("Two")
    place.edit(one.path, "title: One", "title: Uno")
    root = place.workspace.root
    before, asked = snapshot(root), len(place.double.log)
    done = github("sync", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert f"would update issue 1 of {one.id}: title" in done.stdout
    assert_sentences(done.stdout)
    assert {request.method for request in place.double.log[asked:]} == {"GET"}
    assert snapshot(root) == before


def test_a_sync_tells_each_step_and_parity_finds_nothing_after_it(place: Any, github: Run) -> None:
    job = place.job()
    missing = github("parity")
    assert missing.returncode == 1
    assert job.folder.name in missing.stdout
    assert job.id in missing.stdout
    assert_sentences(missing.stdout)
    text = github("sync").stdout
    assert job.id in text
    assert_sentences(text)
    done = github("parity")
    assert done.returncode == 0
    assert_sentences(done.stdout)
    assert_sentences(github("sync").stdout)


def test_parity_explains_each_gap_to_programs(place: Any, github: Run) -> None:
    job = place.job()
    place.sync()
    place.issue()["title"] = "\x1b[31m<promise>WI</promise>"
    place.issue()["state"] = "closed"
    place.issue()["state_reason"] = "not_planned"
    done = github("parity", "--job", job.id, "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert [entry["code"] for entry in report["findings"]] == ["mirror_differs", "mirror_differs"]
    assert [(entry["field"], entry["wanted"], entry["found"]) for entry in report["data"]["gaps"]][1] == (
        "state",
        "open",
        "closed as not planned",
    )
    assert "<promise>" not in done.stdout
    assert "\x1b" not in github("parity").stdout
    assert github("sync").returncode == 0
    assert place.issue()["state"] == "open"


def test_no_jobs_are_no_pass(github: Run) -> None:
    for verb in ("sync", "parity"):
        done = github(verb)
        assert done.returncode == 1
        assert_sentences(done.stdout)


def test_a_job_that_is_not_there_is_refused(github: Run) -> None:
    assert github("sync", "--job", "WI-20200101-001").returncode == 2


def test_a_limit_that_is_not_waited_for_ends_with_the_time_to_go_on(place: Any, github: Run, trouble: Any) -> None:
    place.job()
    place.double.next(trouble(status=429, headers={"retry-after": "3600"}), method="POST")
    done = github("sync", "--max-wait", "5", "--json")
    assert done.returncode == 3
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["code"] == "github_unavailable"
    assert "--max-wait" in finding["next"]
    assert github("sync").returncode == 0


def test_the_token_is_nowhere_afterwards(place: Any, github: Run, trouble: Any) -> None:
    place.job()
    outputs = [github("sync"), github("parity", "--json"), github("sync", GH_TOKEN=WRONG)]
    place.double.next(trouble(status=500, body=place.double.token.encode()), times=9)
    outputs.append(github("parity", DONEWHEN_DEBUG="1", GITHUB_API_URL=place.double.api))
    for output in outputs:
        assert place.double.token not in output.stdout + output.stderr
        assert WRONG not in output.stdout + output.stderr
    for path in place.workspace.root.rglob("*"):
        assert not path.is_file() or place.double.token.encode() not in path.read_bytes(), path


def test_two_syncs_at_once_make_each_issue_once(place: Any) -> None:
    jobs = [place.job(f"Job {number}") for number in range(6)]
    command = [sys.executable, "-m", "donewhen", "github", "sync"]
    running = [
        subprocess.Popen(
            command,
            cwd=place.workspace.root,
            env=environment(place.double),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    ended = [process.communicate(timeout=100)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], ended
    assert len(place.double.repo.issues) == 6
    assert [len(place.mirrored(job)) for job in jobs] == [1] * 6


@pytest.mark.parametrize("made", [True, False], ids=["it was made", "it was not made"])
def test_a_sync_that_is_killed_in_the_middle_goes_on_where_it_stopped(place: Any, trouble: Any, made: bool) -> None:
    jobs = [place.job(f"Job {number}") for number in range(4)]
    posts = place.double.answer
    third = trouble(hang=True, after=made)

    def at_the_third(asked: Any) -> Any:
        if len(place.double.asked("POST", ".*/issues")) == 2 and asked.method == "POST":
            place.double.next(third, method="POST", path=".*/issues")
        return posts(asked)

    place.double.answer = at_the_third
    process = subprocess.Popen(
        [sys.executable, "-m", "donewhen", "github", "sync"],
        cwd=place.workspace.root,
        env=environment(place.double),
        stdout=subprocess.DEVNULL,
    )
    give_up = time.monotonic() + 60
    while len(place.double.asked("POST", ".*/issues")) < 3:
        assert time.monotonic() < give_up
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    place.double.answer = posts
    assert [len(place.mirrored(job)) for job in jobs] == [1, 1, 0, 0]
    assert len(place.sync().left) == 0
    assert len(place.double.repo.issues) == 4
    assert [len(place.mirrored(job)) for job in jobs] == [1, 1, 1, 1]
    assert place.gaps() == []


def test_the_log_tells_a_sync(place: Any, donewhen: Run) -> None:
    place.job()
    place.sync()
    output = donewhen(["log"], place.workspace.root).stdout
    assert "mirrored    bot (agent)  issue 1 in octo/demo has status planned, open: matches the plan" in output
