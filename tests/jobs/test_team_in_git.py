"""Two people on two jobs: with real git, their branches merge, and the record holds on each side and afterwards."""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from donewhen.foundation.errors import UsageError
from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.board.views import rebuild_views
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import approval_policy, project_agreement
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_files import links
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.promise import promise_of, verify_promise
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.generated_files import keep_out_of_git
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.jobs.record.history import history_of

Git = Callable[..., str]
ADA, BEN = Approval(Actor("ada", "person")), Approval(Actor("ben", "person"))
BOT = Actor("bot")
PROJECT = "PJ-20260214-001"


class _Day:
    """A clock that ticks, on one day: the ids of two people must not be the same."""

    def __init__(self, day: int) -> None:
        self._now = datetime(2026, 2, day, 10, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


class Team:
    """A repository with a project, and what one person does on a branch of it."""

    def __init__(self, root: Path, git: Git) -> None:
        self.root, self.git = root, git
        create_project(root, "Shop", clock=_Day(14))
        self.commit("The project")

    def workspace(self, day: int = 14) -> Workspace:
        return find_workspace(self.root, clock=_Day(day))

    def commit(self, message: str) -> str:
        self.git(self.root, "add", "-A")
        self.git(self.root, "commit", "-q", "-m", message)
        return self.git(self.root, "rev-parse", "HEAD").strip()

    def switch(self, name: str, start: str = "main") -> None:
        self.git(self.root, "switch", "-q", "-c", name, start)

    def add(self, day: int, approval: Approval = ADA) -> Job:
        """A job that is agreed, with the project."""
        workspace = self.workspace(day)
        job = add_job(workspace, f"Day {day}", criteria=["It is written.\n  check: file outputs/primary.md"])
        for proposal in agreement_proposals(workspace, [job]):
            agree(workspace, proposal, approval)
        return workspace.job_at(job.path)

    def finish(self, day: int, job: Job) -> str:
        """Start, do and complete a job; return its promise."""
        workspace = self.workspace(day)
        assert start_job(workspace, job.id, BOT).started
        output = job.folder / "outputs" / "primary.md"
        output.parent.mkdir(exist_ok=True)
        output.write_text(f"Work of day {day}.\n")
        done = complete(workspace, job.id, BOT)
        assert done.promise is not None
        return done.promise.text

    def branch(self, name: str, day: int, start: str = "main") -> str:
        """A branch with a job that is done; return its promise."""
        self.switch(name, start)
        promise = self.finish(day, self.add(day, BEN if day % 2 else ADA))
        self.commit(f"The job of {name}")
        return promise

    def problems(self) -> list[tuple[str, str]]:
        """The errors of the audit. That another branch has more is a warning."""
        found = audit_workspace(self.workspace()).findings
        return [(str(finding.code), finding.where) for finding in found if finding.severity == "error"]

    def holds(self, promises: Sequence[str]) -> list[bool]:
        workspace = self.workspace()
        policy = approval_policy(workspace)
        return [verify_promise(workspace, promise, policy).real for promise in promises]

    def entries(self) -> set[str]:
        return {entry.hash for entry in self.workspace().ledger.read(PROJECT).entries}


def old_team(root: Path, git: Git) -> Team:
    """The same in a project that an older version has written."""
    with tarfile.open(Path(__file__).parents[1] / "old_formats" / "format_1.tar.gz") as archive:
        archive.extractall(root, filter="data")
    team = Team.__new__(Team)
    team.root, team.git = root, git
    (root / ".gitignore").write_text("jobs/outputs/\njobs/logs/\n")
    team.commit("As the older version left it")
    return team


@pytest.fixture
def team(repository: Path, git: Git) -> Team:
    return Team(repository, git)


def test_two_jobs_done_on_two_branches_merge_without_a_conflict(team: Team) -> None:
    promises = [team.branch("ada", 15)]
    first = team.entries()
    promises.append(team.branch("ben", 16))
    second = team.entries()
    team.git(team.root, "merge", "-q", "--no-edit", "ada")
    assert team.git(team.root, "status", "--porcelain") == ""
    assert team.entries() == first | second
    assert (team.problems(), team.holds(promises)) == ([], [True, True])
    chain = team.workspace().ledger.read(PROJECT)
    assert chain.whole
    assert len(chain.heads) == 2
    # The next entry follows both sides, so that neither can be taken away any more.
    promises.append(team.finish(17, team.add(17)))
    following = team.workspace().ledger.read(PROJECT).entries[len(chain.entries)]
    assert links(following) == chain.heads
    assert (team.problems(), team.holds(promises)) == ([], [True] * 3)


@pytest.mark.parametrize("how", ["rebase", "squash", "cherry-pick"])
def test_the_work_of_a_branch_is_brought_over_in_every_way(team: Team, how: str) -> None:
    promises = [team.branch("ada", 15), team.branch("ben", 16)]
    if how == "rebase":
        team.git(team.root, "rebase", "-q", "ada")
    elif how == "squash":
        team.git(team.root, "merge", "-q", "--squash", "ada")
        team.commit("Squashed")
    else:
        team.git(team.root, "cherry-pick", "ada")
    assert (team.problems(), team.holds(promises)) == ([], [True, True])
    team.git(team.root, "switch", "-q", "ada")
    assert (team.problems(), team.holds(promises)) == ([], [True, False])


def test_three_branches_merge_at_once(team: Team) -> None:
    promises = [team.branch(f"branch-{day}", day) for day in (15, 16, 17)]
    team.git(team.root, "switch", "-q", "main")
    team.git(team.root, "merge", "-q", "--no-edit", "branch-15", "branch-16", "branch-17")
    assert (team.problems(), team.holds(promises)) == ([], [True] * 3)
    assert len(team.git(team.root, "log", "-1", "--format=%P").split()) == 3


def test_decisions_and_blocks_of_two_branches_merge(team: Team) -> None:
    jobs = [team.add(15), team.add(16)]
    team.commit("Two jobs")
    for job, name in zip(jobs, ("ada", "ben"), strict=True):
        team.switch(name)
        start_job(team.workspace(17), job.id, BOT)
        decide(team.workspace(17), job, Decision("raise_budget", "More to do", 9), ADA)
        team.commit(name)
    team.git(team.root, "merge", "-q", "--no-edit", "ada")
    workspace = team.workspace()
    assert team.problems() == []
    assert [workspace.job(job.id).max_iterations for job in jobs] == [9, 9]
    policy = approval_policy(workspace)
    statuses = [history_of(job.id, workspace.ledger.read(job.id).entries, policy).status for job in jobs]
    assert statuses == ["in_progress"] * 2


def test_a_merge_that_is_reverted_takes_one_side_back(team: Team) -> None:
    promises = [team.branch("ada", 15), team.branch("ben", 16)]
    team.git(team.root, "merge", "-q", "--no-edit", "ada")
    team.git(team.root, "revert", "--no-edit", "-m", "1", "HEAD")
    # The branch of the other side still has it, so it is a warning there.
    assert (team.problems(), team.holds(promises)) == ([], [False, True])
    team.git(team.root, "revert", "--no-edit", "HEAD")
    assert (team.problems(), team.holds(promises)) == ([], [True, True])


def test_the_project_is_no_longer_done_if_a_branch_brings_an_open_job(team: Team) -> None:
    team.switch("ada")
    open_job = team.add(15)
    team.commit("An open job")
    team.switch("ben")
    workspace = team.workspace(16)
    job = team.add(16)
    start_job(workspace, job.id, BOT)
    (job.folder / "outputs").mkdir(exist_ok=True)
    (job.folder / "outputs" / "primary.md").write_text("Work.\n")
    done = complete(workspace, job.id, BOT)
    (project,) = done.cascade
    team.commit("The only job here is done")
    assert team.holds([project.text]) == [True]
    team.git(team.root, "merge", "-q", "--no-edit", "ada")
    assert team.holds([project.text]) == [False]
    # It is completed again with both.
    start_job(team.workspace(17), open_job.id, BOT)
    (open_job.folder / "outputs").mkdir(exist_ok=True)
    (open_job.folder / "outputs" / "primary.md").write_text("Work.\n")
    again = complete(team.workspace(17), open_job.id, BOT)
    assert team.holds([promise.text for promise in again.cascade]) == [True]


def test_both_agree_to_other_settings_and_what_was_merged_is_compared_with_the_last(team: Team) -> None:
    team.add(15)
    team.commit("Agreed")
    for name, criterion in (("ada", "It is fast."), ("ben", "It is small.")):
        team.switch(name)
        plan = team.root / "jobs" / "plan.md"
        plan.write_text(plan.read_text().replace("## Workstreams", f"- AC-1: {criterion}\n\n## Workstreams"))
        for proposal in agreement_proposals(team.workspace(16), []):
            agree(team.workspace(16), proposal, ADA)
        team.commit(name)
    with pytest.raises(subprocess.CalledProcessError):
        team.git(team.root, "merge", "-q", "--no-edit", "ada")
    # The criteria are text that people wrote, so they resolve it. The record itself has no conflict.
    assert team.git(team.root, "diff", "--name-only", "--diff-filter=U").split() == ["jobs/plan.md"]
    team.git(team.root, "checkout", "--ours", "jobs/plan.md")
    team.commit("Resolved")
    workspace = team.workspace()
    assert project_agreement(workspace, workspace.project()).state in ("agreed", "voided")
    assert {code for code, _ in team.problems()} <= {"voided"}


@pytest.mark.parametrize("how", ["removed", "edited", "renamed", "replaced", "forked"])
def test_a_record_that_was_tampered_with_is_found(team: Team, how: str) -> None:
    team.finish(15, team.add(15))
    folder = team.workspace().ledger.folder_of(PROJECT)
    first, second, *_ = sorted(folder.iterdir())
    if how == "removed":
        first.unlink()
    elif how == "edited":
        first.write_bytes(first.read_bytes().replace(b'"ada"', b'"eve"'))
    elif how == "renamed":
        first.rename(folder / f"00009-{first.name[6:]}")
    elif how == "replaced":
        first.write_bytes(second.read_bytes())
    else:
        second.write_bytes(second.read_bytes() + b"{}\n")
    assert not team.workspace().ledger.read(PROJECT).whole
    assert "chain_broken" in {code for code, _ in team.problems()}


def test_the_last_entry_can_not_be_dropped_from_a_commit_unnoticed(team: Team) -> None:
    team.finish(15, team.add(15))
    team.commit("Done")
    assert team.problems() == []
    max(team.workspace().ledger.folder_of(PROJECT).iterdir()).unlink()
    # What is left is a valid record, so it is compared with the commit.
    assert team.workspace().ledger.read(PROJECT).whole
    assert [code for code, _ in team.problems()] == ["rewritten"]


def test_a_project_of_an_older_version_goes_on_in_two_branches_and_its_promises_hold(
    repository: Path, git: Git
) -> None:
    team = old_team(repository, git)
    ledger = team.workspace().ledger
    lines, plan = ledger.path_of(PROJECT).read_bytes(), (team.root / "jobs" / "plan.md").read_bytes()
    name = "WI-20260214-001"
    completed = history_of(name, ledger.read(name).entries, approval_policy(team.workspace())).completed
    assert completed is not None
    old = ledger.read(PROJECT).head
    promises = [promise_of(name, completed).text]
    assert (team.problems(), team.holds(promises)) == ([], [True])
    promises += [team.branch("ada", 15), team.branch("ben", 16)]
    team.git(team.root, "merge", "-q", "--no-edit", "ada")
    # What was there stays as it is, byte for byte; what is new follows it.
    assert ledger.path_of(PROJECT).read_bytes() == lines
    assert (team.root / "jobs" / "plan.md").read_bytes() == plan
    written = sorted(ledger.folder_of(PROJECT).iterdir())
    assert written
    assert json.loads(written[0].read_bytes())["prev"] == old
    assert (team.problems(), team.holds(promises)) == ([], [True] * 3)


def test_a_pull_request_shows_the_work_the_job_and_its_record(team: Team) -> None:
    start_job(team.workspace(), team.add(15).id, BOT)
    main = team.commit("A project in which another job is in progress")
    team.switch("ada")
    job = team.add(16)
    output = team.root / "price.py"
    job.path.write_text(job.path.read_text().replace("check: file outputs/primary.md", "check: file /price.py"))
    job.path.write_text(job.path.read_text().replace("  - outputs/primary.md", "  - /price.py"))
    _, proposal = agreement_proposals(team.workspace(16), [team.workspace().job(job.id)])
    agree(team.workspace(16), proposal, ADA)
    start_job(team.workspace(16), job.id, BOT)
    output.write_text("PRICE = 2\n")
    assert complete(team.workspace(16), job.id, BOT).done
    # Both views were written, and the log of runs: nobody has to keep them.
    assert (team.root / "jobs" / "outputs" / "dashboard.html").is_file()
    team.commit("A price")
    changed = team.git(team.root, "diff", "--name-only", main).split()
    evidence = [name for name in changed if name.startswith(".donewhen/evidence/")]
    shared = [name for name in changed if name.startswith(f".donewhen/ledger/{PROJECT}/")]
    assert len(shared) <= 1, "the person agreed to the project again"
    assert sorted({*changed} - {*evidence, *shared}) == [
        f".donewhen/ledger/{job.id}.jsonl",
        f"jobs/{job.path.parent.name}/plan.md",
        "price.py",
    ]


def test_generated_files_are_ignored_also_in_a_clone_and_a_gitignore_of_ones_own_stays(team: Team) -> None:
    team.add(15)
    clone = team.root.parent / "clone"
    team.commit("A job")
    team.git(team.root, "clone", "-q", str(team.root), str(clone))
    (clone / "jobs" / "outputs").mkdir()
    (clone / "jobs" / "outputs" / ".gitignore").write_text("*\n")
    workspace = find_workspace(clone, clock=_Day(16))
    rebuild_views(workspace)
    assert (clone / "jobs" / "outputs" / "dashboard.json").is_file()
    assert (clone / "jobs" / "outputs" / ".gitignore").read_text() == "*\n"
    assert team.git(clone, "status", "--porcelain") == ""


def test_empty_folders_of_a_job_on_another_branch_are_no_job(team: Team) -> None:
    team.switch("ada")
    job = team.add(15)
    (job.folder / "notes").mkdir(exist_ok=True)
    team.commit("A job")
    team.git(team.root, "switch", "-q", "main")
    assert job.folder.is_dir()
    assert not job.path.exists()
    workspace = team.workspace()
    assert [*workspace.places()] == []
    assert (team.problems(), survey_jobs(workspace).problems) == ([], ())
    with pytest.raises(UsageError, match="no job"):
        workspace.job(job.id)
    # A folder in which anything is left was a job, and its plan is missing.
    (job.folder / "notes" / "a").symlink_to("nowhere")
    assert [place.id for place in workspace.places()] == [job.id]
    assert [problem.code for problem in survey_jobs(workspace).problems] == ["document"]


def test_a_link_out_of_the_project_gets_no_gitignore(team: Team, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (team.root / "jobs" / "logs").symlink_to(elsewhere)
    keep_out_of_git(team.workspace(), team.root / "jobs" / "logs")
    assert [*elsewhere.iterdir()] == []
