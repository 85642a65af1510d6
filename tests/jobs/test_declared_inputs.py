"""The inputs that a job declares, what the jobs above it put out, and what a sign-off is about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.jobs.contract.inputs import MISSING, input_manifest, result_manifest
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

Git = Callable[..., str]


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

    def inside(self, name: str) -> str:
        return f"jobs/{self.job.folder.name}/{name}"


@pytest.fixture
def tracked(repository: Path, git: Git) -> Place:
    place = Place(repository)
    place.write("src/app.py")
    git(repository, "add", "--all")
    return place


def test_declared_inputs_are_all_that_counts(tracked: Place) -> None:
    tracked.write(tracked.inside("inputs/data.csv"))
    tracked.write("src/app.py", "two")
    tracked.change(inputs=["inputs/data.csv", "/src/other.py"])
    found = input_manifest(tracked.workspace, tracked.job)
    assert found.declared
    assert set(found.files) == {tracked.inside("inputs/data.csv"), "src/other.py"}
    assert found.files["src/other.py"] == MISSING


def test_a_declared_folder_stands_for_what_is_in_it(tracked: Place) -> None:
    tracked.write("src/deep/er.py")
    tracked.write("src/.hidden/x")
    tracked.write("src/.dot")
    assert set(tracked.files("/src", "/src/")) == {"src/app.py", "src/deep/er.py", "src/.dot"}
    assert tracked.files("/empty") == {"empty": MISSING}


def test_a_declared_pattern_stands_for_what_it_matches(tracked: Place) -> None:
    for name in ("src/deep/er.py", "src/x.txt", tracked.inside("inputs/a.csv"), tracked.inside("inputs/b.txt")):
        tracked.write(name)
    (tracked.root / "src/folder.py").mkdir()
    assert set(tracked.files("/src/**/*.py")) == {"src/app.py", "src/deep/er.py"}
    assert set(tracked.files("inputs/*.csv")) == {tracked.inside("inputs/a.csv")}
    assert set(tracked.files("/src/?.txt", "inputs/[ab].*")) == {
        "src/x.txt",
        tracked.inside("inputs/a.csv"),
        tracked.inside("inputs/b.txt"),
    }
    assert tracked.files("/src/*.rs") == {"src/*.rs": MISSING}
    assert tracked.files("*.rs") == {tracked.inside("*.rs"): MISSING}


def test_a_file_whose_name_looks_like_a_pattern_is_meant_itself(tracked: Place) -> None:
    path = tracked.write("pages/[id].tsx")
    before = tracked.files("/pages/[id].tsx")
    assert before["pages/[id].tsx"] != MISSING
    path.write_text("two")
    assert tracked.files() != before


def test_a_pattern_never_takes_in_what_donewhen_writes(tracked: Place) -> None:
    before = tracked.files("/**/*")
    tracked.write(".donewhen/ledger/WI-1.jsonl")
    assert tracked.files() == before


@pytest.mark.parametrize("pattern", ["/src/**.py", "/src/***"])
def test_a_pattern_that_can_not_be_used_is_a_mistake_in_the_plan(tracked: Place, pattern: str) -> None:
    try:
        found = tracked.files(pattern)
    except ConfigError as error:
        assert pattern in error.message
        assert tracked.inside("plan.md") in str(error.where)
    else:  # later versions of Python read it as a single star
        assert "src/app.py" in found


def test_the_content_behind_a_declared_link_counts(tracked: Place) -> None:
    (tracked.job.folder / "inputs/link.py").symlink_to("../../../src/app.py")
    for declared in ("inputs/link.py", "inputs", "inputs/*.py"):
        tracked.write("src/app.py", "one")
        before = tracked.files(declared)
        assert tracked.inside("inputs/link.py") in before
        tracked.write("src/app.py", "two")
        assert tracked.files() != before, declared


@pytest.mark.parametrize(
    "path", ["..", "../x", "/../x", "a/../../x", "/src/../../x", "../*.py", "/", "//", ".", "a\0b", "/../*"]
)
def test_a_path_that_leads_out_is_refused(tracked: Place, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tracked.files(path)
    assert_sentences(caught.value.message)
    assert "inputs" in caught.value.message
    line = tracked.job.document.line_of("inputs")
    assert caught.value.where == f"{tracked.inside('plan.md')}:{line}"


@pytest.mark.parametrize("path", ["out", "out/file", "out/*", "*/file", "out/missing"])
def test_a_link_out_of_the_project_is_refused(tracked: Place, tmp_path: Path, path: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("x")
    (tracked.job.folder / "out").symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigError) as caught:
        tracked.files(path)
    assert_sentences(caught.value)


def test_outputs_that_lead_out_are_refused_though_the_field_is_not_there(tracked: Place) -> None:
    tracked.change(outputs=["../x"])
    with pytest.raises(ConfigError) as caught:
        result_manifest(tracked.workspace, tracked.job)
    assert tracked.inside("plan.md") in str(caught.value.where)


def test_what_the_jobs_put_out_that_this_one_depends_on_counts(tracked: Place) -> None:
    second = add_job(tracked.workspace, "Second", depends_on=[tracked.job.id], outputs=["outputs/second.md"])
    name = tracked.inside("outputs/primary.md")
    before = input_manifest(tracked.workspace, second)
    assert before.files[name] == MISSING
    tracked.write(name)
    after = input_manifest(tracked.workspace, second)
    assert after.files[name] != MISSING
    tracked.workspace.write(second.document, second.path, {"inputs": ["inputs/x"], "depends_on": [tracked.job.id]})
    declared = input_manifest(tracked.workspace, tracked.workspace.job(second.id))
    assert set(declared.files) == {name, f"jobs/{second.folder.name}/inputs/x"}


def test_a_dependency_that_is_not_a_job_puts_nothing_out(tracked: Place) -> None:
    before = tracked.files("/src")
    tracked.change(depends_on=["WS-20260214-001", "nobody"])
    assert tracked.files() == before


def test_who_signs_off_looks_at_outputs_and_declared_inputs(tracked: Place) -> None:
    assert set(result_manifest(tracked.workspace, tracked.job).files) == {tracked.inside("outputs/primary.md")}
    tracked.change(inputs=["/src"])
    found = result_manifest(tracked.workspace, tracked.job)
    assert set(found.files) == {tracked.inside("outputs/primary.md"), "src/app.py"}
    assert found.declared


def test_who_signs_off_a_job_without_outputs_looks_at_everything(tracked: Place) -> None:
    tracked.change(outputs=[])
    assert result_manifest(tracked.workspace, tracked.job) == input_manifest(tracked.workspace, tracked.job)
