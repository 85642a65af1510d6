"""The folders that a contract is run in, the base that it comes from, and what is left of them afterwards."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from verify_kit import HONEST, Shop, forge, looked, messages_by_code, outcome

from donewhen.foundation.errors import UsageError
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying import verify_branch
from donewhen.jobs.verifying.base_branch import BaseError, base_of
from donewhen.jobs.verifying.checkouts import branch_files, write_contract_folder
from donewhen.jobs.verifying.judging_files import judging_files_of, matches
from donewhen.jobs.verifying.rooms import Room, make_room
from donewhen.jobs.verifying.work_outputs import outputs_of
from lean_python import lean_python
from sentences import assert_sentences

pytestmark = pytest.mark.scenes

FILE = ("There is one\n  check: file /prices.py",)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go; empty afterwards, if nothing is left behind."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def honest(shop: Shop, *criteria: str) -> None:
    job = shop.job(criteria=criteria or FILE)
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.commit()


def room_of(shop: Shop, place: Path) -> Room:
    """The judged commit with the contract of main, as its own tests are run."""
    place.mkdir()
    base = base_of(shop.workspace, "main")
    jobs = [shop.workspace.job_at(found.path) for found in shop.workspace.places()]
    judges = judging_files_of(base, shop.workspace, jobs, jobs)
    outputs = outputs_of(base, shop.workspace, jobs)
    agreed = place.with_name(f"{place.name}-contract")
    agreed.mkdir()
    contract = write_contract_folder(base, shop.workspace, agreed)
    return make_room(base, shop.workspace, place, branch_files(base, contract), judges, outputs)


BASES: dict[str, Callable[[Shop], str]] = {
    "an option": lambda shop: "--all",
    "a file": lambda shop: "main:prices.py",
    "a folder": lambda shop: "main:jobs",
    "something that was deleted": lambda shop: [shop.git("branch", "old"), shop.git("branch", "-D", "old"), "old"][2],
    "nothing": lambda shop: "nothing",
    "with a line break": lambda shop: "main\nmain",
    "a tag with the name of the branch": lambda shop: [shop.git("tag", "main", "agent"), "main"][1],
    "a branch with the name of a remote one": lambda shop: [
        shop.git("update-ref", "refs/remotes/origin/main", "main"),
        shop.git("branch", "origin/main", "agent"),
        "origin/main",
    ][2],
}


@pytest.mark.parametrize("name", BASES.values(), ids=BASES.keys())
def test_what_names_no_commit_or_several_is_refused(shop: Shop, name: Callable[[Shop], str]) -> None:
    honest(shop)
    with pytest.raises(BaseError) as caught:
        looked(shop, name(shop))
    assert caught.value.next_step


def test_a_commit_may_be_named_in_any_clear_way(shop: Shop) -> None:
    honest(shop)
    shop.git("tag", "-a", "v1", "-m", "v1", "main")
    shop.git("tag", "same", "main")
    shop.git("branch", "same", "main")
    commit = shop.git("rev-parse", "main").strip()
    for name in ("main", "refs/heads/main", "HEAD^", "v1", "same", commit, commit[:10]):
        found = looked(shop, name)
        assert found.passed, found.reasons
        assert found.commit == commit


def test_without_a_repository_or_jobs_on_the_base_there_is_nothing_to_compare_with(shop: Shop) -> None:
    shutil.rmtree(shop.folder / ".git")
    with pytest.raises(BaseError) as caught:
        looked(shop)
    assert_sentences(caught.value)
    shop.git("init", "-q", "-b", "main")
    with pytest.raises(BaseError) as caught:
        looked(shop)
    assert_sentences(caught.value)
    shop.git("rm", "-q", "-r", "--cached", "--ignore-unmatch", ".")
    shop.git("add", "prices.py")
    shop.git("commit", "-q", "-m", "No jobs")
    with pytest.raises(BaseError) as caught:
        looked(shop)
    assert_sentences(caught.value)


def test_a_project_that_is_elsewhere_on_the_base(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    honest(shop)
    inner = shop.root / "inner"
    inner.mkdir()
    for name in ("jobs", ".donewhen"):
        (shop.root / name).rename(inner / name)
    shop.commit()
    shop.root = inner
    with pytest.raises(BaseError) as caught:
        looked(shop)
    assert_sentences(caught.value)


def test_a_branch_without_commits_has_nothing_to_judge(shop: Shop) -> None:
    honest(shop)
    shop.git("checkout", "-q", "--orphan", "unborn")
    with pytest.raises(BaseError) as caught:
        looked(shop)
    assert caught.value.next_step == "git commit"


def test_nobody_has_agreed_to_anything(shop: Shop) -> None:
    shop.branch()
    shop.commit()
    found = looked(shop)
    assert messages_by_code(found).keys() == {"proposed", "nothing_verified"}
    with pytest.raises(UsageError):
        verify_branch(shop.workspace, "main", jobs=["001"])


def test_a_plan_that_cannot_be_read_on_the_base_is_no_pass(shop: Shop) -> None:
    job, other = shop.job(criteria=FILE), shop.job("Another", criteria=FILE)
    shop.write(shop.plan(other), "---\nkind: [\n---\n")
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.commit()
    found = looked(shop)
    assert not found.passed
    assert outcome(found, job) == "passed"
    assert outcome(found, other, "plan") == "failed"


def test_a_new_job_is_nobodys_until_it_is_agreed_on_the_base(shop: Shop) -> None:
    honest(shop)
    done, planned, broken = (shop.job(title, criteria=FILE) for title in ("Done", "Planned", "Broken"))
    forge(shop, done)
    shop.write(shop.plan(broken), "---\nkind: [\n---\n")
    shop.commit()
    found = looked(shop)
    assert outcome(found, done, "agreement") == "failed"
    assert outcome(found, planned, "agreement") == "skipped"
    assert "not_on_base" in messages_by_code(found)
    assert broken.id not in [job.id for job in found.jobs]
    assert any(shop.plan(broken) in reason.where for reason in found.reasons)


def test_a_gate_that_breaks_is_an_error_and_the_others_are_asked(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job, other = shop.job(criteria=FILE), shop.job("Another", criteria=FILE)
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    assert shop.complete(other).done
    shop.commit()
    from donewhen.jobs.verifying import job_cases

    real = job_cases.rerun_job

    def breaking(base: object, tree: Workspace, job_: object, *more: object) -> object:
        if job_.id == job.id:  # type: ignore[attr-defined]
            raise ZeroDivisionError("by zero")
        return real(base, tree, job_, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(job_cases, "rerun_job", breaking)
    monkeypatch.delenv("DONEWHEN_DEBUG", raising=False)
    found = looked(shop)
    assert found.broken and not found.passed
    assert outcome(found, job, "gates") == "error"
    assert outcome(found, other) == "passed"
    assert messages_by_code(found) == {"gate_error": "The gate failed with ZeroDivisionError: by zero"}
    monkeypatch.setenv("DONEWHEN_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        looked(shop)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("tests/", "p/a/tests/b/c.py", "p/a/tests"),
        ("test_*.py", "p/a/test_b.py", "p/test_b.py/c"),
        ("/conftest.py", "p/conftest.py", "p/a/conftest.py"),
        ("/pytest/", "p/pytest/x.py", "p/a/pytest/x.py"),
        ("/x.py", "p/x.py", "x.py"),
        ("*.egg-info/", "p/a.egg-info/entry_points.txt", "p/a.egg-info"),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, yes: str, no: str) -> None:
    shop = Shop(tmp_path / "all", inside="p")
    shop.commit()
    base = base_of(shop.workspace, "main")
    assert matches(base, yes, pattern)
    assert not matches(base, no, pattern)


def test_what_was_agreed_to_be_a_result_judges_nothing(shop: Shop) -> None:
    job = shop.job(outputs=("/tests/test_a.py", "/made/", "/docs/*.md", "/deep/**/x.py"), criteria=FILE)
    shop.commit()
    base = base_of(shop.workspace, "main")
    judges = judging_files_of(base, shop.workspace, [job], [job])
    work = ("tests/test_a.py", "made/test_b.py", "made/a/test_b.py", "docs/a.md", "deep/x.py", "deep/a/b/x.py")
    assert all(judges.is_work(name) for name in work)
    assert not any(
        judges.is_work(name) for name in ("tests/test_b.py", "docs/a/b.md", "deep/a/y.py", "made.py", "docs")
    )
    assert not judges.judges("tests/test_a.py")
    assert judges.judges("tests/test_b.py")
    assert judging_files_of(base, shop.workspace, [job], []).judges("tests/test_a.py")


def test_a_module_that_stands_in_for_one_of_python_judges_unless_the_base_has_it(shop: Shop) -> None:
    shop.write("types.py", "")
    job = shop.job(criteria=FILE)
    shop.commit()
    judges = judging_files_of(base_of(shop.workspace, "main"), shop.workspace, [job], [job])
    assert all(judges.judges(name) for name in ("json.py", "json/x.txt", "pluggy.py", "re.cpython-311.so", "os.pyc"))
    assert not any(judges.judges(name) for name in ("types.py", "a/json.py", "json.txt", "shop.py"))


def test_installed_things_serve_and_other_ignored_files_are_absent(shop: Shop, tmp_path: Path) -> None:
    shop.write(".gitignore", "__pycache__/\n.env\nbuild/\nout/*.bin\n.venv/\nnode_modules/\n.tox/\n/linked\n")
    shop.write("out/a.txt", "x")
    honest(shop)
    ignored = (".env", "build/x", "out/a.bin", "__pycache__/x.pyc", "out/__pycache__/y.pyc", ".tox/x")
    environments = (".venv", "web/node_modules", ".tox/py3")
    for name in (*ignored, *(f"{name}/pyvenv.cfg" for name in environments)):
        shop.write(name, "x")
    (shop.root / "linked").symlink_to(shop.root / ".venv")
    place = tmp_path / "laid"
    room = room_of(shop, place)
    assert sorted(room.environments) == sorted(environments)
    # They are folders of the room, in which only what is installed is that of the checkout.
    assert all((place / name / "pyvenv.cfg").is_symlink() for name in (".venv", ".tox/py3"))
    assert (place / "web/node_modules").is_dir()
    assert not any(os.path.lexists(place / name) for name in (*ignored, "linked"))


def test_a_folder_that_only_claims_to_be_an_environment_cannot_shadow_a_module(shop: Shop, tmp_path: Path) -> None:
    shop.write(".gitignore", "/json/\n")
    honest(shop)
    shop.write("json/__init__.py", "")
    shop.write("json/pyvenv.cfg", "")
    assert room_of(shop, tmp_path / "laid").environments == ()


def test_the_contract_is_all_from_the_base(shop: Shop, tmp_path: Path) -> None:
    shop.write("missions/tone/mission.toml", "base = 1\n")
    shop.write("pyproject.toml", "[tool.donewhen.jobs]\ncommand_timeout = 7\n")
    shop.write(".claude/settings.json", "{}")
    honest(shop)
    shop.write("missions/tone/mission.toml", "branch = 1\n")
    shop.write("missions/new/mission.toml", "branch = 1\n")
    shop.write("pyproject.toml", "[tool.donewhen.jobs]\ncommand_timeout = 700\n")
    shop.write(".claude/settings.json", '{"disableAllHooks": true}')
    shop.write(".codex/hooks.json", "{}")
    shop.commit()
    contract = tmp_path / "contract"
    contract.mkdir()
    found = write_contract_folder(base_of(shop.workspace, "main"), shop.workspace, contract)
    room = room_of(shop, tmp_path / "room")
    for place, workspace in ((contract, found), (tmp_path / "room", room.workspace)):
        assert workspace.settings().jobs.command_timeout == 7
        assert (place / "missions/tone/mission.toml").read_text() == "base = 1\n"
        assert not (place / "missions/new").exists()
        assert (place / ".claude/settings.json").read_text() == "{}"
        assert not (place / ".codex/hooks.json").exists()


def test_a_pyproject_that_cannot_be_read_is_the_bases(shop: Shop, tmp_path: Path) -> None:
    shop.write("pyproject.toml", '[project]\nname = "shop"\n')
    honest(shop)
    for text in ("[tool", "tool = 1\n"):
        shop.write("pyproject.toml", text)
        shop.commit()
        place = tmp_path / f"laid{len(text)}"
        room_of(shop, place)
        assert (place / "pyproject.toml").read_text() == ('[project]\nname = "shop"\n' if text == "[tool" else text)


def test_files_and_folders_may_change_places(shop: Shop) -> None:
    shop.write("tests/test_a.py", "")
    shop.write("tests/data/b.txt", "")
    shop.write("data", "")
    honest(shop)
    shutil.rmtree(shop.root / "tests")
    shop.write("tests", "a file now\n")
    (shop.root / "data").unlink()
    shop.write("data/c.txt", "x")
    (shop.root / "test_prices.py").chmod(0o755)
    shop.commit()
    found = looked(shop)
    assert [reason.where for reason in found.reasons if reason.code == "report_tests_lost"] == [
        "tests/data/b.txt",
        "tests/test_a.py",
    ]
    assert [note.where for note in found.notes] == ["test_prices.py"]


def test_a_link_on_the_base_stays_a_link(shop: Shop) -> None:
    (shop.root / "tests").mkdir()
    (shop.root / "tests" / "test_link.py").symlink_to("../test_prices.py")
    (shop.root / "tests" / "test_same.py").symlink_to("../test_prices.py")
    honest(shop)
    (shop.root / "tests" / "test_link.py").unlink()
    shop.write("tests/test_link.py", "")
    shop.commit()
    found = looked(shop)
    assert found.passed, found.reasons
    assert [note.where for note in found.notes] == ["tests/test_link.py"]


def test_what_is_not_committed_is_not_judged_and_that_is_reported(shop: Shop) -> None:
    shop.write("check.py", "import prices\nraise SystemExit(prices.total([1]) != 1)\n")
    shop.write(".gitignore", "__pycache__/\n*.log\n")
    honest(shop, "It adds up\n  check: run python3 check.py")
    # An ignored file is named only if something failed.
    shop.write("a.log", "x")
    assert looked(shop).notes == ()
    shop.write("prices.py", "def total(prices):\n    return 0\n")
    (shop.root / "check.py").unlink()
    for number in range(12):
        shop.write(f"new-{number}.txt", "x")
    found = looked(shop)
    assert found.passed, found.reasons
    assert found.head == shop.git("rev-parse", "HEAD").strip()
    assert_sentences([note.message for note in found.notes])
    shop.git("add", "-A")
    assert looked(shop).notes == found.notes
    shop.git("commit", "-q", "-m", "Spoiled")
    found = looked(shop)
    assert not found.passed
    assert [note.message for note in found.notes][-1:] == ["Ignored files are in no commit and were left out: a.log."]


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_a_fix_that_git_is_told_not_to_see_is_not_judged(shop: Shop, flag: str) -> None:
    shop.write("check.py", "import prices\nraise SystemExit(prices.total([1]) != 1)\n")
    job = shop.job(criteria=("It adds up\n  check: run python3 check.py",))
    shop.branch()
    shop.write("prices.py", "def total(prices):\n    return 0\n")
    forge(shop, job)
    shop.commit()
    shop.git("update-index", flag, "prices.py")
    shop.write("prices.py", HONEST)
    assert shop.git("status", "--porcelain") == ""
    found = looked(shop)
    assert outcome(found, job) == "failed"
    assert [note.message for note in found.notes] == ["Not committed, so not judged: prices.py."]


@pytest.mark.parametrize("name", [".donewhen/ledger/{job}.jsonl", "jobs/plan.md", "donewhen.toml"])
def test_plans_settings_and_the_record_are_read_from_the_commit(shop: Shop, name: str) -> None:
    honest(shop)
    job = next(shop.workspace.places()).id
    clean = looked(shop)
    shop.write(name.format(job=job), "[broken\n")
    found = looked(shop)
    assert found.passed, found.reasons
    assert (found.project, found.jobs) == (clean.project, clean.jobs)
    assert len(found.notes) == 1
    # Committed, it counts.
    shop.commit()
    assert not looked(shop).passed


def test_another_commit_than_the_current_one_can_be_judged(shop: Shop) -> None:
    honest(shop)
    good = shop.git("rev-parse", "HEAD").strip()
    (shop.root / "prices.py").unlink()
    shop.commit()
    shop.write("prices.py", "")
    assert not looked(shop).passed
    found = looked(shop, commit="HEAD~1")
    assert found.passed, found.reasons
    assert (found.head, found.notes) == (good, ())
    done = shop.verified("--commit", good[:12])
    assert (done["status"], done["data"]["judged"]) == (0, good)
    with pytest.raises(BaseError):
        looked(shop, commit="nothing")


def test_an_ignored_file_that_a_check_needs_is_named(shop: Shop) -> None:
    shop.write(".gitignore", "__pycache__/\n/build/\n*.log\n.venv/\n")
    shop.write("check.py", "open('build/data.txt')\n")
    job = shop.job(criteria=("There is data\n  check: run python3 check.py",))
    shop.branch()
    shop.write("prices.py", HONEST)
    for name in ("build/data.txt", "a.log", "__pycache__/x.pyc", ".venv/pyvenv.cfg"):
        shop.write(name, "x")
    forge(shop, job)
    shop.commit()
    found = looked(shop)
    assert outcome(found, job) == "failed"
    assert [note.message for note in found.notes] == ["Ignored files are in no commit and were left out: a.log, build."]


def test_an_agreed_output_that_git_ignores_is_copied_from_the_checkout(shop: Shop, tmp_path: Path) -> None:
    shop.write(".gitignore", "__pycache__/\n/dist/\n")
    shop.write("writes.py", "import pathlib\npathlib.Path('dist/b.txt').write_text('spoiled')\n")
    criteria = ("It is built\n  check: file /dist/a.whl", "It runs\n  check: run python3 writes.py")
    job = shop.job(criteria=criteria, outputs=("/dist/*.whl", "/dist/b.txt"))
    shop.branch()
    shop.write("dist/a.whl", "A wheel of prices.\n")
    shop.write("dist/b.txt", "Built from prices.\n")
    shop.write("dist/other.txt", "x")
    (shop.root / "dist" / "link.whl").symlink_to("other.txt")
    forge(shop, job)
    shop.commit()
    room = room_of(shop, tmp_path / "laid")
    assert sorted(path.name for path in (tmp_path / "laid" / "dist").iterdir()) == ["a.whl", "b.txt"]
    assert sorted(room.copied) == ["dist/a.whl", "dist/b.txt"]
    found = looked(shop)
    assert outcome(found, job, "AC-1") == "passed"
    assert (shop.root / "dist" / "b.txt").read_text() == "Built from prices.\n"
    assert any("dist/a.whl" in note.message and "checkout" in note.message for note in found.notes)
    # Where it was not built, the criterion says so.
    shutil.rmtree(shop.root / "dist")
    assert outcome(looked(shop), job, "AC-1") == "failed"


def test_links_stay_links_unless_they_lead_out(shop: Shop, tmp_path: Path) -> None:
    shop.write(".gitignore", "__pycache__/\n.venv/\n")
    shop.write("docs/guide.md", "x")
    honest(shop)
    shop.write(".venv/pyvenv.cfg", "")
    (shop.root / "inside.md").symlink_to("docs/guide.md")
    (shop.root / "docs" / "up.md").symlink_to("../prices.py")
    for name, target in {
        "absolute": "/etc/hostname",
        "above": "../shop/prices.py",
        "through-a-link": "up/../../shop",
        "through-the-environment": ".venv/../prices.py",
        "up": "docs/..",
    }.items():
        (shop.root / name).symlink_to(target)
    shop.commit()
    place = tmp_path / "laid"
    room = room_of(shop, place)
    assert (place / "inside.md").is_symlink() and (place / "inside.md").read_text() == "x"
    assert (place / "docs" / "up.md").read_text() == HONEST
    assert room.content.links_out == ("above", "absolute", "through-a-link")
    assert not any(os.path.lexists(place / name) for name in room.content.links_out)
    # The folder of the environment is one of the room, with links to what is installed.
    assert (place / "through-the-environment").resolve() == place / "prices.py"


@pytest.mark.parametrize("name", [".git", ".GIT", ".."])
def test_a_commit_made_by_hand_cannot_write_into_the_repository_of_the_room_or_above_it(
    shop: Shop, tmp_path: Path, name: str
) -> None:
    honest(shop)
    blob = shop.git("rev-parse", "HEAD:prices.py").strip()
    inner = _tree(shop, f"100644 blob {blob}\tevil\n")
    listed = shop.git("ls-tree", "HEAD")
    commit = shop.git("commit-tree", _tree(shop, f"{listed}040000 tree {inner}\t{name}\n"), "-p", "HEAD", "-m", "x")
    shop.git("update-ref", "HEAD", commit.strip())
    assert f"{name}/evil" in shop.git("ls-tree", "-r", "--name-only", "HEAD")
    place = tmp_path / "laid"
    room_of(shop, place)
    assert not os.path.lexists(place / name / "evil")


def _tree(shop: Shop, rows: str) -> str:
    argv = ["git", "mktree"]
    return subprocess.run(argv, cwd=shop.folder, input=rows, capture_output=True, text=True, check=True).stdout.strip()


def test_a_file_in_git_lfs_is_what_its_pointer_says(shop: Shop, tmp_path: Path) -> None:
    shop.write("data.bin", "1 2 3\n")
    honest(shop)
    digest = hashlib.sha256(b"4 5 6\n").hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 6\n"
    shop.write(".gitattributes", "*.bin filter=lfs -text\n")
    shop.write("data.bin", pointer)
    shop.commit()
    assert room_of(shop, tmp_path / "pointer").content.forms.not_fetched == ("data.bin",)
    assert (tmp_path / "pointer" / "data.bin").read_text() == pointer
    # As after a checkout with the filter: other content in the file, the same pointer in the commit.
    shop.write("data.bin", "4 5 6\n")
    assert room_of(shop, tmp_path / "content").content.forms.not_fetched == ()
    assert (tmp_path / "content" / "data.bin").read_text() == "4 5 6\n"
    assert looked(shop).notes == ()
    shop.write("data.bin", "7 8 9\n")
    assert (tmp_path / "other" / "data.bin", room_of(shop, tmp_path / "other"))[0].read_text() == pointer
    shop.write(f".git/lfs/objects/{digest[:2]}/{digest[2:4]}/{digest}", "4 5 6\n")
    room_of(shop, tmp_path / "stored")
    assert (tmp_path / "stored" / "data.bin").read_text() == "4 5 6\n"


def test_a_command_that_writes_takes_too_long_or_leaves_others_behind(shop: Shop, temporary: Path) -> None:
    shop.write("donewhen.toml", "[jobs]\ncommand_timeout = 1.5\n")
    shop.write(
        "writes.py",
        "import pathlib\npathlib.Path('prices.py').write_text('x = 1')\npathlib.Path('../x').write_text('')\n",
    )
    shop.write("slow.py", "import time\ntime.sleep(60)\n")
    shop.write(
        "leaves.py",
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(77.25)'])\n",
    )
    shop.write("tells.py", "import os, sys\nsys.exit(any(one.startswith('GITHUB_') for one in os.environ))\n")
    names = ("writes", "slow", "leaves", "tells")
    job = shop.job(criteria=[f"It {name}\n  check: run python3 {name}.py" for name in names])
    shop.branch()
    shop.write("prices.py", HONEST)
    forge(shop, job)
    shop.commit()
    os.environ["GITHUB_TOKEN"] = "secret"
    try:
        found = looked(shop)
    finally:
        del os.environ["GITHUB_TOKEN"]
    assert [outcome(found, job, f"AC-{number}") for number in (1, 2, 3, 4)] == ["failed", "failed", "passed", "passed"]
    messages = "\n".join(reason.message for reason in found.reasons)
    assert_sentences(messages)
    assert (shop.root / "prices.py").read_text() == HONEST
    assert not (shop.root.parent / "x").exists()
    assert list(temporary.iterdir()) == []
    assert "77.25" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


def _wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_when_it_is_ended_in_the_middle_nothing_is_left(shop: Shop, temporary: Path, number: signal.Signals) -> None:
    mark = shop.root.parent / "running"
    shop.write(
        "slow.py",
        f"import os, pathlib, time\npathlib.Path({str(mark)!r}).write_text(str(os.getpid()))\ntime.sleep(90)\n",
    )
    job = shop.job(criteria=("It is slow\n  check: run python3 slow.py",))
    shop.branch()
    forge(shop, job)
    shop.commit()
    process = subprocess.Popen(
        [sys.executable, "-m", "donewhen", "verify", "--base", "main"],
        cwd=shop.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    _wait_for(lambda: mark.is_file() and mark.read_text() != "")
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode in (130, 143), said
    assert list(temporary.iterdir()) == []
    child = int(mark.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_two_at_once_are_not_in_each_others_way(shop: Shop) -> None:
    honest(shop)
    argv = [sys.executable, "-m", "donewhen", "verify", "--base", "main"]
    both = [subprocess.Popen(argv, cwd=shop.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate()[1] for process in both] == [b"", b""]
    assert [process.returncode for process in both] == [0, 0]


def test_a_command_that_many_jobs_share_is_run_once_in_a_folder(shop: Shop) -> None:
    count = shop.root.parent / "count"
    shop.write("check.py", f"with open({str(count)!r}, 'a') as file:\n    file.write('x')\n")
    jobs = [shop.job(f"Job {number}", criteria=("It runs\n  check: run python3 check.py",)) for number in range(12)]
    shop.branch()
    shop.write("prices.py", HONEST)
    for job in jobs:
        forge(shop, job)
    shop.commit()
    found = looked(shop)
    assert {outcome(found, job) for job in jobs} == {"passed"}
    assert count.read_text() == "x"


def test_a_submodule_with_tests_is_the_bases(shop: Shop, tmp_path: Path) -> None:
    other = tmp_path / "suite"
    other.mkdir()
    for words in (["init", "-q", "-b", "main"], ["add", "-A"]):
        (other / "test_prices.py").write_text("import prices\n\ndef test_it():\n    assert prices.total([1]) == 1\n")
        subprocess.run(["git", *words], cwd=other, check=True)
    identity = ["-c", "user.name=T", "-c", "user.email=t@localhost"]
    subprocess.run(["git", *identity, "commit", "-q", "-m", "x"], cwd=other, check=True)
    (shop.root / "test_prices.py").unlink()
    shop.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "suite")
    job = shop.job(criteria=(f"No test fails\n  check: run {lean_python()} -m pytest -q -p no:cacheprovider suite",))
    shop.branch()
    shop.write("prices.py", HONEST)
    shop.git("add", "-A")
    assert shop.complete(job).done
    shop.commit()
    found = looked(shop)
    assert found.passed, found.reasons
    # The pointer is moved to tests that show nothing.
    (shop.root / "suite" / "test_prices.py").write_text("def test_it():\n    pass\n")
    subprocess.run(["git", *identity, "commit", "-q", "-a", "-m", "y"], cwd=shop.root / "suite", check=True)
    shop.write("prices.py", "def total(prices):\n    return 0\n")
    shop.commit()
    assert outcome(looked(shop), job) == "failed"
    # Of a submodule that is not checked out, nothing is known, and that is reported.
    shop.git("submodule", "deinit", "-q", "-f", "suite")
    found = looked(shop)
    assert not found.passed
    assert any(
        "suite" in note.message and note.next == "git submodule update --init --recursive" for note in found.notes
    )
