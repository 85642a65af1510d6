"""A ledger that goes back gives no promise and releases no agent; what people do with git every day holds nobody."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from gate_kit import Shop

from donewhen.adapters.claude_code.dialect import ClaudeCodeDialect
from donewhen.adapters.command_hooks import respond_to_event
from donewhen.completion.job_checker import JobChecker
from donewhen.foundation import person_folder
from donewhen.foundation.notices import notices_to
from donewhen.jobs.audit.accepted_heads import accept_heads
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import find_workspace
from donewhen.jobs.record.gone_back import GoneBackError
from donewhen.protocols import ReasonCode, TaskCompletionContext, TaskCompletionResult
from donewhen.runtime import Session

Play = Callable[["Repository"], None]
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "core.hooksPath=/dev/null")


class Repository(Shop):
    """A project in git with a job that was agreed in the first commit and is in progress in the second."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root = root
        self.git("init", "-q", "-b", "main")
        super().__init__(root)
        # Only what holds an agent: which job it could start is not asked, unless a test wants it.
        self.write("donewhen.toml", '[stop]\njobs = true\nrequire_job = "off"\n')
        self.open = self.job(started=False)
        self.commit("agreed")
        self.start()
        self.commit("in progress")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *IDENTITY, *arguments], cwd=self.root, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def start(self) -> None:
        assert start_job(self.workspace, self.open.id, unproved_actor()).started

    @property
    def chain(self) -> Path:
        return self.ledger(self.open)

    def check(self) -> TaskCompletionResult:
        return JobChecker(root=self.root).check(TaskCompletionContext(session=Session()))

    def hook(self, session: str = "s") -> str | None:
        """Why a stop hook refuses; None if it does not."""
        event = {"session_id": session, "cwd": str(self.root), "hook_event_name": "Stop", "stop_hook_active": False}
        answer = respond_to_event("stop", ClaudeCodeDialect(), json.dumps(event), {}, self.root)
        return str(answer["reason"]) if answer.get("decision") == "block" else None

    def held_for_the_record(self) -> bool:
        result = self.check()
        reason = self.hook()
        gone_back = result.code == ReasonCode.RECORD_GONE_BACK
        if gone_back:
            assert not result.complete
            assert result.feedback is not None
            assert "audit --accept-heads" in result.feedback
            assert reason == result.feedback
        return gone_back

    def promised(self, job: Job | None = None) -> bool:
        """Whether the job can be completed; a refusal for the record writes nothing."""
        before = self._ledger()
        try:
            return complete(find_workspace(self.root), (job or self.open).id, unproved_actor()).done
        except GoneBackError as error:
            assert error.next_step is not None
            assert self._ledger() == before
            return False

    def _ledger(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.chain.parent.rglob("*") if path.is_file()}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop")


# What an agent does


def delete_and_type(repository: Repository) -> None:
    repository.chain.unlink()
    repository.field(repository.open, status="planned")


def shorten(repository: Repository) -> None:
    repository.chain.write_bytes(repository.chain.read_bytes().splitlines(keepends=True)[0])
    repository.field(repository.open, status="planned")


def shorten_and_commit(repository: Repository) -> None:
    shorten(repository)
    repository.commit("tidy up")


def take_the_older_file(repository: Repository) -> None:
    repository.git("checkout", "HEAD~1", "--", ".donewhen", "jobs")


def reset(repository: Repository) -> None:
    repository.git("reset", "-q", "--hard", "HEAD~1")


def revert(repository: Repository) -> None:
    repository.git("revert", "--no-edit", "HEAD")


def move_the_branch(repository: Repository) -> None:
    repository.git("checkout", "-q", "-B", "main", "HEAD~1")


def stash(repository: Repository) -> None:
    repository.git("reset", "-q", "--soft", "HEAD~2" if _commits(repository) > 2 else "HEAD~1")
    repository.git("stash", "-q", "-u")


def move_the_ledger(repository: Repository) -> None:
    shutil.move(repository.chain.parent, repository.root / ".donewhen" / "old")


def move_the_chain(repository: Repository) -> None:
    repository.chain.rename(repository.chain.with_suffix(".bak"))
    shutil.move(repository.open.path.parent, repository.root / "moved")


def lose_the_branch(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "other", "HEAD~1")
    repository.git("branch", "-q", "-D", "main")


def write_anew(repository: Repository) -> None:
    """The chain begins like it was and goes on differently, so it is as long."""
    content = repository.chain.read_bytes()
    repository.chain.write_bytes(content.splitlines(keepends=True)[0])
    repository.workspace.ledger.append(repository.open.id, "unverified", {"why": "nothing"}, unproved_actor())


STEPS_BACK: list[Play] = [
    *(delete_and_type, shorten, shorten_and_commit, take_the_older_file, reset, revert, move_the_branch, stash),
    *(move_the_ledger, move_the_chain, lose_the_branch, write_anew),
]


def _commits(repository: Repository) -> int:
    return int(repository.git("rev-list", "--count", "HEAD"))


@pytest.mark.parametrize("step", STEPS_BACK, ids=lambda step: step.__name__)
def test_a_step_back_holds_the_agent_and_gives_no_promise(repository: Repository, step: Play) -> None:
    assert repository.check().code == ReasonCode.JOB_NOT_DONE
    step(repository)
    assert repository.held_for_the_record()
    repository.work()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repository.root)
        if repository.open.path.exists():
            assert not repository.promised()
    assert repository.held_for_the_record()


@pytest.mark.parametrize("step", STEPS_BACK, ids=lambda step: step.__name__)
def test_a_person_who_went_back_says_so_and_the_work_goes_on(repository: Repository, step: Play) -> None:
    step(repository)
    assert repository.held_for_the_record()
    assert accept_heads(repository.root) == ""
    assert not repository.held_for_the_record()
    if step in (reset, revert, shorten_and_commit, move_the_branch, lose_the_branch):
        repository.start() if step is not shorten_and_commit else None
        repository.work()
        if step is not shorten_and_commit:
            assert repository.promised()


def test_an_agent_accepts_nothing(repository: Repository) -> None:
    shorten(repository)
    done = repository.run("audit", "--accept-heads")
    assert done.returncode == 1
    assert "approver" in repository.run("audit", "--accept-heads", "--json").stdout
    assert repository.held_for_the_record()


def test_a_person_accepts_at_a_terminal(repository: Repository, as_person: Callable[..., tuple[int, str]]) -> None:
    reset(repository)
    status, screen = as_person(["audit", "--accept-heads"], repository.root)
    assert status == 0, screen
    assert repository.open.id in screen
    assert not repository.held_for_the_record()
    again = repository.run("audit", "--accept-heads", "--json")
    assert (again.returncode, json.loads(again.stdout)["data"]["accepted"]) == (0, False)


def test_the_step_back_is_in_the_audit_and_in_the_record_of_the_stop(repository: Repository) -> None:
    repository.write("donewhen.toml", "[stop]\njobs = true\nmax_stalled = 1\n")
    reset(repository)
    repository.write("donewhen.toml", "[stop]\njobs = true\nmax_stalled = 1\n")
    event = {"session_id": "s", "cwd": str(repository.root), "hook_event_name": "Stop", "stop_hook_active": True}
    answers = [respond_to_event("stop", ClaudeCodeDialect(), json.dumps(event), {}, repository.root) for _ in range(2)]
    assert [answer.get("decision") for answer in answers] == ["block", None]
    assert "UNVERIFIED" in answers[1]["systemMessage"]
    record = (repository.root / ".donewhen" / "state" / "unverified.jsonl").read_text()
    assert json.loads(record)["code"] == "record_gone_back"
    audited = json.loads(repository.run("audit", "--json").stdout)
    assert "record_gone_back" in {finding["code"] for finding in audited["findings"]}


def test_a_lost_record_is_reported_before_an_agent_is_asked_to_start_a_job(repository: Repository) -> None:
    repository.git("switch", "-q", "-C", "main", "HEAD~1")
    repository.write("donewhen.toml", "[stop]\njobs = true\n")
    assert repository.held_for_the_record()
    assert repository.held_for_the_record()
    assert accept_heads(repository.root) == ""
    assert f"donewhen start {repository.open.id}" in (repository.hook() or "")
    assert repository.hook() is None


def test_settings_that_are_stashed_with_the_jobs_release_nobody(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop")
    assert repository.hook() is not None
    repository.git("update-ref", "-d", "HEAD")
    repository.write("README", "")
    repository.git("rm", "-r", "-q", "--cached", ".")
    repository.git("add", "README")
    repository.git("commit", "-q", "-m", "only this")
    repository.git("stash", "-q", "-u")
    assert not (repository.root / "donewhen.toml").exists()
    reason = repository.hook("another")
    assert reason is not None
    assert repository.open.id in reason


@pytest.mark.parametrize(
    "settings", ["[stop]\njobs = false\n", "[stop]\n", "", '[stop]\nfiles = ["donewhen.toml"]\n', None]
)
def test_settings_that_no_longer_ask_for_jobs_release_nobody(repository: Repository, settings: str | None) -> None:
    assert "WI-" in (repository.hook("a") or "")
    path = repository.root / "donewhen.toml"
    if settings is None:
        path.unlink()
    else:
        path.write_text(settings)
    assert repository.open.id in (repository.hook("b") or "")


def test_a_person_who_agrees_to_settings_without_jobs_releases_the_agent(repository: Repository) -> None:
    repository.write("donewhen.toml", "[stop]\njobs = false\n")
    repository.agree(repository.open)
    assert repository.hook() is None


def test_settings_that_never_asked_for_jobs_hold_nobody(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop")
    repository.write("donewhen.toml", '[stop]\nfiles = ["donewhen.toml"]\n')
    repository.agree(repository.open)
    repository.write("donewhen.toml", "")
    assert repository.hook() is None


def test_a_project_is_not_done_because_its_open_job_vanished(repository: Repository) -> None:
    other = repository.job("Other work\n  check: file /other.txt", title="Other", outputs=["/other.txt"])
    repository.chain.unlink()
    shutil.rmtree(repository.open.path.parent)
    # The list of open jobs is a view, which an agent can delete as well.
    shutil.rmtree(repository.workspace.base / "outputs")
    repository.write("other.txt", "good work\n")
    repository.work()
    done = complete(find_workspace(repository.root), other.id, unproved_actor())
    assert done.done, done.evaluation
    assert done.cascade == ()
    assert repository.open.id in " ".join(done.unmet)


def test_a_job_that_was_done_gives_its_promise_no_more_after_a_step_back(repository: Repository) -> None:
    repository.work()
    assert repository.promised()
    repository.commit("done")
    done = repository.chain.read_bytes()
    assert repository.promised()
    repository.start()
    repository.chain.write_bytes(done)
    repository.field(repository.open, status="done")
    assert not repository.promised()


def test_an_entry_that_is_appended_behind_the_mark_hides_nothing(repository: Repository) -> None:
    shorten(repository)
    repository.run("run", repository.open.id)
    repository.run("block", repository.open.id, "--reason", "It is hard.")
    assert repository.held_for_the_record()


# What people do every day


def switch(repository: Repository) -> None:
    repository.git("switch", "-q", "-c", "hotfix", "HEAD~1")


def detach(repository: Repository) -> None:
    repository.git("switch", "-q", "--detach", "HEAD~1")


def before_there_were_jobs(repository: Repository) -> None:
    repository.git("switch", "-q", "--orphan", "docs")


def bisect(repository: Repository) -> None:
    repository.commit("more")
    repository.commit("and more")
    repository.git("bisect", "start", "HEAD", "HEAD~3")


@pytest.mark.parametrize("go", [switch, detach, before_there_were_jobs, bisect], ids=lambda go: go.__name__)
def test_another_branch_without_the_job_or_with_an_older_one_holds_nobody(repository: Repository, go: Play) -> None:
    assert repository.hook() is not None
    go(repository)
    if go is not bisect:
        assert repository.hook() is None
    assert not repository.held_for_the_record()
    repository.git("bisect", "reset") if go is bisect else repository.git("switch", "-q", "main")
    assert repository.check().code == ReasonCode.JOB_NOT_DONE
    repository.work()
    assert repository.promised()
    assert repository.hook() is None


def test_on_another_branch_other_jobs_are_done_and_the_older_one_says_where_it_went_on(repository: Repository) -> None:
    switch(repository)
    other = repository.job("Other work\n  check: file /other.txt", title="Other", outputs=["/other.txt"])
    repository.work()
    repository.write("other.txt", "good work\n")
    assert repository.promised(other)
    done = repository.run("complete", repository.open.id, "--json")
    assert done.returncode == 1
    error = json.loads(done.stdout)
    assert "record_gone_back" in json.dumps(error)
    assert "Switch to main, or merge it" in json.dumps(error)
    assert repository.hook() is None


def test_rebase_amend_and_renaming_a_branch_change_nothing(repository: Repository) -> None:
    repository.git("switch", "-q", "-c", "feature")
    repository.write("more.txt", "more")
    repository.commit("more")
    repository.git("switch", "-q", "main")
    repository.write("base.txt", "base")
    repository.commit("base")
    repository.git("switch", "-q", "feature")
    repository.git("rebase", "-q", "main")
    assert repository.check().code == ReasonCode.JOB_NOT_DONE
    repository.git("commit", "-q", "--amend", "-m", "reworded")
    repository.git("branch", "-m", "renamed")
    repository.work()
    assert repository.promised()


def test_a_stash_that_is_popped_is_as_before(repository: Repository) -> None:
    repository.work()
    repository.run("run", repository.open.id)
    repository.git("stash", "-q", "-u")
    assert repository.held_for_the_record()
    repository.git("stash", "pop", "-q")
    assert not repository.held_for_the_record()
    assert repository.promised()


def test_a_merge_that_keeps_one_continuation_of_a_chain_is_no_step_back(repository: Repository) -> None:
    repository.git("switch", "-q", "-c", "other")
    repository.run("run", repository.open.id)
    repository.commit("a run there")
    repository.git("switch", "-q", "main")
    repository.work()
    repository.run("run", repository.open.id)
    repository.commit("a run here")
    subprocess.run(["git", *IDENTITY, "merge", "-q", "other"], cwd=repository.root, capture_output=True)
    repository.git("checkout", "--theirs", ".donewhen/ledger", "jobs")
    repository.commit("merged")
    assert not repository.held_for_the_record()
    repository.git("branch", "-q", "-D", "other")
    assert not repository.held_for_the_record()
    assert repository.promised()


def test_a_pulled_branch_goes_on_and_the_colleagues_work_counts(repository: Repository, tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "-q", str(repository.root), str(tmp_path / "colleague")], check=True)
    colleague = find_workspace(tmp_path / "colleague")
    (tmp_path / "colleague" / "result.txt").write_text("good work\n")
    assert complete(colleague, repository.open.id, unproved_actor()).done
    subprocess.run(["git", *IDENTITY, "add", "-A"], cwd=colleague.root, check=True)
    subprocess.run(["git", *IDENTITY, "commit", "-qm", "done"], cwd=colleague.root, check=True)
    repository.git("pull", "-q", "--no-rebase", str(colleague.root), "main")
    assert repository.hook() is None
    assert repository.promised()


def test_work_trees_and_clones_know_nothing_of_each_other(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "-q", "-b", "second", str(tmp_path / "tree"), "HEAD~1")
    second = find_workspace(tmp_path / "tree")
    assert JobChecker(root=second.root).check(TaskCompletionContext(session=Session())).complete
    assert start_job(second, repository.open.id, unproved_actor()).started
    (second.root / "result.txt").write_text("good work\n")
    assert complete(second, repository.open.id, unproved_actor()).done
    assert repository.check().code == ReasonCode.JOB_NOT_DONE
    repository.git("worktree", "remove", "--force", str(second.root))
    assert repository.check().code == ReasonCode.JOB_NOT_DONE


def test_a_new_clone_in_the_same_place_begins_anew(repository: Repository, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    repository.git("clone", "-q", "--bare", str(repository.root), str(origin))
    place = tmp_path / "clone"
    for number in range(2):
        # Git's log has the second in which it was cloned.
        when = os.environ | {"GIT_COMMITTER_DATE": f"2026-01-0{number + 1}T00:00:00"}
        subprocess.run(["git", *IDENTITY, "clone", "-q", str(origin), str(place)], env=when, check=True)
        subprocess.run(["git", "reset", "-q", "--hard", "HEAD~1"], cwd=place, check=True)
        workspace = find_workspace(place)
        assert JobChecker(root=place).check(TaskCompletionContext(session=Session())).complete
        assert start_job(workspace, repository.open.id, unproved_actor()).started
        shutil.rmtree(place)


def test_without_git_the_file_that_is_put_back_is_enough(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "plain")
    job = shop.job()
    chain = shop.ledger(job)
    content = chain.read_bytes()
    chain.unlink()
    checker = JobChecker(root=shop.root)
    context = TaskCompletionContext(session=Session())
    assert checker.check(context).code == ReasonCode.RECORD_GONE_BACK
    chain.write_bytes(content)
    assert checker.check(context).code == ReasonCode.JOB_NOT_DONE


# The marks themselves


def marks_of(repository: Repository) -> Path:
    found = [
        path
        for path in (Path(os.environ["XDG_STATE_HOME"]) / "donewhen" / "heads").glob("*.jsonl")
        if json.loads(path.read_bytes().partition(b"\n")[0])["place"] == str(repository.root)
    ]
    assert len(found) == 1
    return found[0]


def test_a_variable_hides_no_marks(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    shutil.copytree(marks_of(repository).parents[1], home / ".local" / "state" / "donewhen")
    monkeypatch.setattr(person_folder, "_home_of_account", lambda: str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    reset(repository)
    assert repository.held_for_the_record()
    assert not (tmp_path / "empty").exists()


def test_without_the_marks_a_step_back_is_not_seen_which_only_another_place_can_show(repository: Repository) -> None:
    marks_of(repository).unlink()
    reset(repository)
    assert repository.hook() is None


@pytest.mark.parametrize("damage", ["text", "pipe", "folder"])
def test_marks_that_can_not_be_read_hold_until_a_person_looks(repository: Repository, damage: str) -> None:
    path = marks_of(repository)
    if damage == "text":
        path.write_bytes(path.read_bytes() + b"nonsense\n")
    else:
        path.unlink()
        os.mkfifo(path) if damage == "pipe" else path.mkdir()
    notices: list[str] = []
    with notices_to(notices.append):
        assert repository.held_for_the_record()
    assert any(str(path) in notice for notice in notices)
    repository.work()
    assert not repository.promised()
    if damage == "folder":
        path.rmdir()
    assert accept_heads(repository.root) == ""
    assert repository.check().code == ReasonCode.JOB_NOT_DONE
    shorten(repository)
    assert repository.held_for_the_record()


def test_marks_that_can_not_be_written_are_reported_and_stop_nobody(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    repository.work()
    notices: list[str] = []
    with notices_to(notices.append):
        assert repository.promised()
    assert any("can't be kept" in notice for notice in notices)


def test_the_file_of_marks_stays_small_and_a_line_that_was_cut_off_costs_nothing(repository: Repository) -> None:
    path = marks_of(repository)
    with path.open("ab") as file:
        file.write(b'{"chain":"cut o')
    repository.work()
    repository.run("run", repository.open.id)
    assert repository.check().code == ReasonCode.JOB_NOT_DONE
    line = path.read_bytes().splitlines()[-2] + b"\n"
    with path.open("ab") as file:
        file.write(line * 2000)
    repository.run("run", repository.open.id, "--again")
    assert len(path.read_bytes().splitlines()) < 20


# The index


def test_an_edited_index_releases_nobody_and_hides_no_unverified_stop(repository: Repository) -> None:
    survey_jobs(repository.workspace)
    connection = sqlite3.connect(repository.workspace.folder / "index.sqlite")
    rows = connection.execute("select kind, sha, data from said where data like '%in_progress%'").fetchall()
    assert rows
    for kind, sha, data in rows:
        connection.execute(
            "update said set data = ? where kind = ? and sha = ?", (data.replace("in_progress", "blocked"), kind, sha)
        )
    connection.commit()
    connection.close()
    assert {job.recorded for job in survey_jobs(repository.workspace).jobs} == {"blocked"}
    assert repository.check().code == ReasonCode.JOB_NOT_DONE
    assert repository.hook() is not None
    (repository.workspace.folder / "index.sqlite").unlink()
    assert repository.check().code == ReasonCode.JOB_NOT_DONE
    assert not (repository.workspace.folder / "index.sqlite").exists()
