"""What a run depends on: by content, and without what donewhen itself writes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.foundation.git import committed_files, git, worktree_root
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.contract.inputs import MISSING, hash_file, input_manifest, is_generated, tracked_tree
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

Git = Callable[..., str]
PERSON = Approval(Actor("me", "person"))


class Place:
    """A project with one job."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace: Workspace = create_project(root, "Demo")
        self.job: Job = add_job(self.workspace, "First", criteria=["It works as described"])

    def write(self, name: str, content: str = "one") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def change(self, **fields: Value) -> Job:
        self.workspace.write(self.workspace.read(self.job.path), self.job.path, fields)
        self.job = self.workspace.job(self.job.id)
        return self.job

    def files(self, *inputs: str) -> dict[str, str]:
        """The manifest now; with inputs, as if the job had declared these."""
        if inputs:
            self.change(inputs=list(inputs))
        return dict(input_manifest(self.workspace, self.job).files)

    @property
    def hash(self) -> str:
        return input_manifest(self.workspace, self.job).hash


@pytest.fixture
def tracked(repository: Path, git: Git) -> Place:
    place = Place(repository)
    place.write("src/app.py")
    git(repository, "add", "--all")
    return place


@pytest.fixture
def untracked(tmp_path: Path) -> Place:
    """A project without git."""
    return Place(tmp_path)


def test_without_declared_inputs_everything_that_git_tracks_counts_and_nothing_else(tracked: Place) -> None:
    tracked.write("notes.txt")
    found = input_manifest(tracked.workspace, tracked.job)
    assert not found.declared
    assert set(found.files) == {"src/app.py"}


def test_a_changed_a_deleted_and_a_renamed_file_are_noticed(tracked: Place, git: Git) -> None:
    path = tracked.root / "src/app.py"
    before = tracked.files()
    path.write_text("two")
    assert tracked.files()["src/app.py"] not in (before["src/app.py"], MISSING)
    path.write_text("one")
    assert tracked.files() == before
    path.unlink()
    assert tracked.files() == {**before, "src/app.py": MISSING}
    path.write_text("one")
    git(tracked.root, "mv", "src/app.py", "src/main.py")
    after = tracked.files()
    assert after["src/main.py"] == before["src/app.py"]
    assert "src/app.py" not in after


def test_times_and_places_do_not_count(tracked: Place, git: Git, tmp_path: Path) -> None:
    os.symlink("app.py", tracked.root / "src/link")
    git(tracked.root, "add", "--all")
    git(tracked.root, "commit", "-qm", "all")
    before = tracked.hash
    for path in tracked.root.rglob("*.*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    assert tracked.hash == before
    git(tmp_path, "clone", "-q", str(tracked.root), "clone")
    elsewhere = Workspace((tmp_path / "clone").resolve(), "small")
    assert input_manifest(elsewhere, elsewhere.job(tracked.job.id)).hash == before


def test_a_link_counts_by_what_it_says(tracked: Place, git: Git) -> None:
    (tracked.root / "to-file").symlink_to("src/app.py")
    (tracked.root / "to-folder").symlink_to("src")
    (tracked.root / "to-nothing").symlink_to("nowhere")
    git(tracked.root, "add", "--all")
    before = tracked.files()
    assert len({before[name] for name in ("to-file", "to-folder", "to-nothing", "src/app.py")}) == 4
    (tracked.root / "to-nothing").unlink()
    (tracked.root / "to-nothing").symlink_to("elsewhere")
    assert tracked.files()["to-nothing"] != before["to-nothing"]
    tracked.write("nowhere")
    assert tracked.files()["to-file"] == before["to-file"]


@pytest.mark.parametrize("name", ["two\nlines", "ümläut-名前", "with space", '"quoted"', "tab\tname"])
def test_a_file_may_have_any_name(tracked: Place, git: Git, name: str) -> None:
    tracked.write(f"src/{name}")
    git(tracked.root, "add", "--all")
    before = tracked.files()
    assert f"src/{name}" in before
    tracked.write(f"src/{name}", "two")
    assert tracked.files()[f"src/{name}"] != before[f"src/{name}"]


@pytest.mark.parametrize("with_git", [True, False], ids=["with git", "without git"])
def test_a_file_name_that_is_not_unicode_does_not_stop_anything(tmp_path: Path, git: Git, with_git: bool) -> None:
    place = Place(tmp_path)
    path = place.write(os.fsdecode(b"bad-\xff-name"))
    if with_git:
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", "--all")
    before = place.hash
    assert place.hash == before
    path.write_text("two")
    assert place.hash != before


def test_a_submodule_counts_by_what_is_in_it(tracked: Place, git: Git, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q", "-b", "main")
    (library / "code.py").write_text("one")
    git(library, "add", "--all")
    git(library, "commit", "-qm", "one")
    git(tracked.root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "library")
    before = tracked.hash
    assert tracked.hash == before
    (tracked.root / "library" / "code.py").write_text("two")
    assert tracked.hash != before


def test_variables_can_not_point_git_elsewhere(
    tracked: Place, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    before = tracked.hash
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "empty-index"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tracked.root.parent))
    assert worktree_root(tracked.root) == tracked.root.resolve()
    assert tracked.hash == before


def test_the_repository_s_own_settings_can_not_point_git_elsewhere(tracked: Place, git: Git, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    git(tracked.root, "config", "core.worktree", str(tmp_path / "empty"))
    before = tracked.hash
    tracked.write("src/app.py", "two")
    assert tracked.hash != before


def test_where_git_can_not_answer_everything_counts_rather_than_nothing(tracked: Place) -> None:
    (tracked.root / ".git" / "index").write_bytes(b"broken")
    before = tracked.hash
    assert "src/app.py" in tracked.files()
    tracked.write("src/app.py", "two")
    assert tracked.hash != before


def test_in_a_repository_that_tracks_nothing_of_the_project_everything_in_it_counts(repository: Path, git: Git) -> None:
    (repository / "elsewhere").write_text("tracked, but not of the project")
    git(repository, "add", "--all")
    (repository / "project").mkdir()
    place = Place(repository / "project")
    place.write("src/app.py")
    before = place.hash
    place.write("src/app.py", "two")
    assert place.hash != before


def test_a_project_in_a_part_of_a_repository_depends_on_all_of_it(repository: Path, git: Git) -> None:
    (repository / "part").mkdir()
    place = Place(repository / "part")
    (repository / "shared.py").write_text("one")
    git(repository, "add", "--all")
    (repository / "part/code.py").write_text("one")
    git(repository, "add", "--all")
    assert set(place.files()) == {"shared.py", "part/code.py"}
    assert not is_generated(place.workspace, repository / "shared.py")


def test_without_git_everything_in_the_project_counts_but_what_tools_leave_behind(untracked: Place) -> None:
    for name in ("src/app.py", "src/data/x.csv", ".hidden-file"):
        untracked.write(name)
    left = ("node_modules/x.js", "src/__pycache__/x.pyc", "src/x.pyc", ".git-like/x", ".venv/bin/x", "env/lib/x.py")
    for name in (*left, "env/pyvenv.cfg"):
        untracked.write(name)
    found = untracked.files()
    assert list(found) == [".hidden-file", "src/app.py", "src/data/x.csv"]


def test_without_git_a_link_to_a_folder_counts_too(untracked: Place) -> None:
    untracked.write("data/x")
    (untracked.root / "link").symlink_to("data")
    before = untracked.files()
    assert "link" in before
    assert "link/x" not in before


def test_a_pipe_in_the_project_is_not_waited_for(untracked: Place) -> None:
    os.mkfifo(untracked.root / "pipe")
    assert "pipe" in untracked.files()


@pytest.mark.parametrize(
    "name",
    [
        ".donewhen/ledger/WI-1.jsonl",
        ".donewhen/evidence/ab/abc",
        "jobs/outputs/rewards.json",
        "jobs/outputs/reward-report.md",
        "jobs/outputs/truth-report.json",
        "jobs/outputs/dashboard.json",
        "jobs/outputs/dashboard.html",
        "jobs/outputs/2026-02-14-task-tracker.csv",
        "jobs/logs/execution.jsonl",
        "jobs/logs/events.jsonl",
        "jobs/notes/lessons-index.json",
        "jobs/notes/lessons-learned.md",
        "jobs/WI-20260214-001-x/artifacts/input-snapshot.json",
    ],
)
@pytest.mark.parametrize("with_git", [True, False], ids=["with git", "without git"])
def test_what_donewhen_itself_writes_never_counts(tmp_path: Path, git: Git, name: str, with_git: bool) -> None:
    place = Place(tmp_path)
    if with_git:
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", "--all")
    before = place.hash
    place.write(name)
    if with_git:
        git(tmp_path, "add", "--all", "--force")
    assert place.hash == before
    place.change(inputs=["/jobs"])
    declared = place.hash
    place.write(name, "two")
    assert place.hash == declared


@pytest.mark.parametrize(
    "name",
    [
        "outputs/rewards.json",
        "jobs/outputs/rewards.jsonl",
        "jobs/outputs/more/dashboard.html",
        "jobs/outputs/2026-2-14-task-tracker.csv",
        "jobs/logs/other.jsonl",
        "jobs/notes/lessons-unlearned.md",
        "src/jobs/outputs/rewards.json",
        "src/artifacts/input-snapshot.json",
        "src/.donewhen/ledger/x",
        "donewhen.toml",
    ],
)
def test_a_file_that_only_has_a_similar_name_counts(tracked: Place, git: Git, name: str) -> None:
    tracked.write(name)
    git(tracked.root, "add", "--all", "--force")
    assert name in tracked.files()


def test_in_the_big_form_what_donewhen_writes_stands_in_the_project_itself(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Big", form="big")
    assert is_generated(workspace, workspace.root / "outputs/dashboard.html")
    assert is_generated(workspace, workspace.root / "workstreams/WS-1/jobs/WI-1/artifacts/input-snapshot.json")
    assert not is_generated(workspace, workspace.root / "jobs/outputs/dashboard.html")
    assert not is_generated(workspace, tmp_path / "outputs/dashboard.html")


def test_agreeing_and_deciding_leaves_the_inputs_as_they_are(tracked: Place) -> None:
    before = tracked.files()
    for proposal in agreement_proposals(tracked.workspace, [tracked.job]):
        agree(tracked.workspace, proposal, PERSON, notes="as we said")
    decide(tracked.workspace, tracked.job, Decision("raise_budget", "it is hard", 9), PERSON)
    assert "agreed" in tracked.job.path.read_text()
    assert tracked.files() == before


def test_what_stands_in_plan_files_is_agreed_and_no_input(tracked: Place, git: Git) -> None:
    before = tracked.files()
    assert not [name for name in before if name.endswith("plan.md")]
    for path in (tracked.job.path, tracked.workspace.project_file):
        path.write_text(path.read_text() + "\nMore words.\n")
    add_job(tracked.workspace, "Second")
    git(tracked.root, "add", "--all")
    assert tracked.files() == before


def test_in_the_big_form_the_plan_files_of_workstreams_are_no_inputs_either(repository: Path, git: Git) -> None:
    workspace = create_project(repository, "Big", form="big")
    job = add_job(workspace, "First", workstream="Stream")
    (workspace.root / "notes.md").write_text("x")
    git(repository, "add", "--all")
    assert set(input_manifest(workspace, job).files) == {f"{workspace.root.name}/notes.md"}


@pytest.mark.parametrize(
    "name", ["plan.md", "docs/plan.md", "jobs/x/y/plan.md", "src/jobs/x/plan.md", "jobs/x/plan.txt"]
)
def test_a_file_called_plan_elsewhere_counts(tracked: Place, git: Git, name: str) -> None:
    path = tracked.write(name, "---\nstatus: planned\n---\n")
    git(tracked.root, "add", "--all")
    before = tracked.hash
    path.write_text("---\nstatus: done\n---\n")
    assert tracked.hash != before


def test_a_folder_and_a_missing_file_have_hashes_that_no_file_has(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("folder")
    assert hash_file(tmp_path) == "folder"
    assert hash_file(tmp_path / "nothing") == MISSING
    assert hash_file(tmp_path / "file").startswith("sha256:")
    assert hash_file(tmp_path / "file" / "below") == MISSING


def test_git_says_nothing_where_it_has_nothing_to_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert worktree_root(tmp_path) is None
    assert git(tmp_path / "missing", "version") is None
    assert git(tmp_path, "no-such-command") is None
    assert (git(tmp_path, "hash-object", "--stdin", given=b"hello") or b"")[:7] == b"b6fc4c6"


def test_the_committed_files_of_a_folder_come_with_their_contents(repository: Path, git: Git) -> None:
    assert list(committed_files(repository, "a")) == []
    contents = {"a/one": "1\n", "a/deep/ü\nx": "", "a/three": "no end", "ab/not": "x"}
    for name, content in contents.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(content)
    git(repository, "add", "--all")
    git(repository, "commit", "-qm", "all")
    (repository / "a/one").write_text("changed since")
    found = dict(committed_files(repository, "a"))
    assert found == {name: text.encode() for name, text in contents.items() if name.startswith("a/")}
    shutil.rmtree(repository / ".git" / "objects")
    assert list(committed_files(repository, "a")) == []


def test_a_tree_is_listed_under_the_names_that_the_manifest_has(tracked: Place) -> None:
    listed = dict(tracked_tree(tracked.workspace))
    assert set(listed) == set(tracked.files())
    assert listed["src/app.py"] == str(tracked.root.resolve() / "src/app.py")
