"""An agent may commit whatever it likes on its branch. What was agreed on the base decides all the same."""

from __future__ import annotations

import importlib.util
import py_compile
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from verify_kit import HONEST, NAIVE, PYTEST, TESTS, Shop, forge, looked, messages_by_code, outcome

from donewhen.jobs.gates.evidence_status import sign_off
from donewhen.jobs.ledger.approval import Approval, person_at_terminal, unproved_actor
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.signing import create_key_file, open_key
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job
from sentences import assert_sentences

pytestmark = pytest.mark.scenes

CHECK = (
    "import prices\n\ntry:\n    prices.total([-1])\nexcept ValueError:\n    raise SystemExit(0)\nraise SystemExit(1)\n"
)
UNITTEST = (
    "import unittest\n\nimport prices\n\n\nclass Prices(unittest.TestCase):\n"
    "    def test_negative(self):\n        self.assertRaises(ValueError, prices.total, [-1])\n"
)
GREEN = "def test_prices_add_up(): pass\ndef test_negative_prices_are_refused(): pass\n"
SKIPS = (
    "import pytest\ndef pytest_collection_modifyitems(items):\n    for one in items:\n        one.add_marker('skip')\n"
)
PASSES = (
    "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
    "    found = yield\n    found.get_result().outcome = 'passed'\n"
)
FAKE_PYTEST = (
    "import os, re\n"
    "place = re.search(r\"--junitxml=([^ ']+)\", os.environ['PYTEST_ADDOPTS'])[1]\n"
    "open(place, 'w').write('<testsuite><testcase name=\"a\"/></testsuite>')\n"
)

Trick = Callable[[Shop], object]


def _linked(shop: Shop) -> None:
    """The tests of the base, replaced by a link to others."""
    (shop.root / "test_prices.py").unlink()
    shop.write("easy.py", GREEN)
    (shop.root / "test_prices.py").symlink_to("easy.py")


def _entry_point(shop: Shop) -> None:
    shop.write("evil_plugin.py", PASSES)
    shop.write("evil.egg-info/PKG-INFO", "Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    shop.write("evil.egg-info/entry_points.txt", "[pytest11]\nevil = evil_plugin\n")


def _configured(name: str, text: str) -> Trick:
    def trick(shop: Shop) -> None:
        shop.write("evil_plugin.py", PASSES)
        shop.write(name, text)

    return trick


TRICKS: dict[str, Trick] = {
    "tests keep their names and assert nothing": lambda shop: shop.write("test_prices.py", GREEN),
    "skipped by a marker": lambda shop: shop.edit("test_prices.py", "def test_neg", "@pytest.mark.skip\ndef test_neg"),
    "expected to fail": lambda shop: shop.edit("test_prices.py", "def test_neg", "@pytest.mark.xfail\ndef test_neg"),
    "a file of tests is gone, another is there": lambda shop: (shop.root / "test_prices.py").rename(
        shop.write("test_other.py", GREEN).with_name("old.txt")
    ),
    "tests are a link": _linked,
    "a conftest that skips": lambda shop: shop.write("conftest.py", SKIPS + "# and passes\n"),
    "a conftest that says passed": lambda shop: shop.write("conftest.py", PASSES),
    "pytest.ini": _configured("pytest.ini", "[pytest]\naddopts = -p evil_plugin\n"),
    ".pytest.ini": _configured(".pytest.ini", "[pytest]\naddopts = -k add_up\n"),
    "pytest.toml": _configured("pytest.toml", '[pytest]\naddopts = ["-p", "evil_plugin"]\n'),
    ".pytest.toml": _configured(".pytest.toml", '[pytest]\naddopts = ["-k", "add_up"]\n'),
    "pyproject.toml": _configured("pyproject.toml", '[tool.pytest.ini_options]\naddopts = "-k add_up"\n'),
    "pyproject.toml, the new way": _configured("pyproject.toml", '[tool.pytest]\naddopts = ["-k", "add_up"]\n'),
    "setup.cfg": _configured("setup.cfg", "[tool:pytest]\naddopts = --deselect test_prices.py::test_negative\n"),
    "tox.ini": _configured("tox.ini", "[pytest]\npython_files = evil_*.py\naddopts = -p evil_plugin\n"),
    "testpaths": _configured("pytest.ini", "[pytest]\ntestpaths = elsewhere\n"),
    "an entry point beside the code": _entry_point,
    "a module named pytest": lambda shop: shop.write("pytest.py", FAKE_PYTEST),
    "a package named pytest": lambda shop: [
        shop.write("pytest/__init__.py", ""),
        shop.write("pytest/__main__.py", FAKE_PYTEST),
    ],
    "a module named _pytest": lambda shop: shop.write("_pytest/__init__.py", FAKE_PYTEST + "raise SystemExit(0)\n"),
    "a module that pytest imports": lambda shop: shop.write("pluggy.py", FAKE_PYTEST + "raise SystemExit(0)\n"),
    "a module of the standard library": lambda shop: shop.write("argparse.py", FAKE_PYTEST + "raise SystemExit(0)\n"),
    "the work skips its own test": lambda shop: shop.write(
        "prices.py",
        "import pytest\n\ndef total(prices):\n    return sum(prices) if min(prices) > 0 else pytest.skip()\n",
    ),
    "the work skips all the tests of a file": lambda shop: [
        shop.write("prices.py", "import pytest\npytest.skip(allow_module_level=True)\n"),
    ],
    "the work ends the process": lambda shop: shop.write("prices.py", "import os\nos._exit(0)\n"),
    "git forgets the tests": lambda shop: [
        shop.git("rm", "-q", "--cached", "test_prices.py"),
        shop.write(".gitignore", "test_prices.py\n__pycache__/\n"),
        shop.write("test_prices.py", GREEN),
    ],
    "git ignores a conftest": lambda shop: [
        shop.write(".gitignore", "conftest.py\n__pycache__/\n"),
        shop.write("conftest.py", PASSES),
    ],
    "git ignores a module of the standard library": lambda shop: [
        shop.write(".gitignore", "argparse.py\n__pycache__/\n"),
        shop.write("argparse.py", FAKE_PYTEST + "raise SystemExit(0)\n"),
    ],
    "git is told not to look": lambda shop: [
        shop.git("update-index", "--assume-unchanged", "test_prices.py"),
        shop.write("test_prices.py", GREEN),
    ],
    "git is told that it is not there": lambda shop: [
        shop.git("update-index", "--skip-worktree", "test_prices.py"),
        shop.write("test_prices.py", GREEN),
    ],
    "attributes": lambda shop: [
        shop.write(".gitattributes", "test_*.py export-ignore working-tree-encoding=UTF-7 ident eol=crlf -diff\n"),
        shop.write("test_prices.py", GREEN),
    ],
}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS.keys())
def test_what_judges_comes_from_the_base(shop: Shop, trick: Trick) -> None:
    shop.write("test_other_things.py", "def test_nothing_much():\n    assert True\n")
    job = shop.job()
    shop.branch()
    # A change, so that it is not the untouched output that speaks against it.
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    trick(shop)
    forge(shop, job)
    shop.commit()

    found = looked(shop)

    assert not found.passed
    assert outcome(found, job) == "failed" or outcome(found, job, "truth") == "failed"
    assert {"criterion_failed", "report_tests_skipped", "report_tests_lost"} & messages_by_code(found).keys()


def test_a_compiled_file_does_not_stand_in_for_the_tests_of_the_base(shop: Shop) -> None:
    shop.write("check_prices.py", UNITTEST)
    job = shop.job(criteria=(f"No test fails\n  check: run {sys.executable} -m unittest -q check_prices",))
    shop.branch()
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    easy = shop.write("easy.py", UNITTEST.replace("self.assertRaises(ValueError, prices.total, [-1])", "pass"))
    place = Path(importlib.util.cache_from_source(str(shop.root / "check_prices.py")))
    place.parent.mkdir(exist_ok=True)
    # Python does not look at the text beside a compiled file of this kind.
    py_compile.compile(str(easy), str(place), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    shop.write(".gitignore", "")
    forge(shop, job)
    shop.commit()
    assert place.relative_to(shop.root).as_posix() in shop.git("ls-files")
    assert outcome(looked(shop), job) == "failed"


def test_an_environment_that_is_committed_runs_nothing(shop: Shop) -> None:
    shop.write(".gitignore", "__pycache__/\n.venv/\n")
    shop.write("check.py", CHECK)
    job = shop.job(criteria=("It is refused\n  check: run .venv/bin/python check.py",))
    shop.branch()
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    program = shop.write(".venv/bin/python", "#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    shop.git("add", "-f", ".venv")
    forge(shop, job)
    shop.commit()
    found = looked(shop)
    assert outcome(found, job) == "failed"
    assert "criterion_not_shown" in messages_by_code(found)


SCRIPTS: dict[str, tuple[str, str, str, str]] = {
    "the script": ("sh check.sh", "check.sh", "exec python3 check.py\n", "exit 0\n"),
    "the script itself": ("./check.sh", "check.sh", "#!/bin/sh\nexec python3 check.py\n", "#!/bin/sh\nexit 0\n"),
    "a script in a shell's line": ('sh -c "sh check.sh"', "check.sh", "exec python3 check.py\n", "exit 0\n"),
    "the Makefile": ("make -s check", "Makefile", "check:\n\t@python3 check.py\n", "check:\n\t@true\n"),
    "a Makefile below": ("make -s -C ci", "ci/Makefile", "a:\n\t@cd ..; python3 check.py\n", "a:\n\t@true\n"),
    "an option's value": ("python3 run.py --with=c.cfg", "c.cfg", "check", "easy"),
    "a module": ("python3 -m check", "check.py", CHECK, "raise SystemExit(0)\n"),
}


@pytest.mark.parametrize(("command", "name", "real", "easy"), SCRIPTS.values(), ids=SCRIPTS.keys())
def test_what_an_agreed_command_names_is_the_bases(shop: Shop, command: str, name: str, real: str, easy: str) -> None:
    if command.startswith("make") and shutil.which("make") is None:
        pytest.skip("LOUD: there is no make here; a Makefile that was changed is NOT tested")
    shop.write("check.py", CHECK)
    shop.write("easy.py", "")
    shop.write("run.py", "import sys\n__import__(open(sys.argv[1].partition('=')[2]).read())\n")
    shop.write(name, real).chmod(0o755)
    job = shop.job(criteria=(f"It is refused\n  check: run {command}",))
    shop.branch()
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    shop.write(name, easy)
    forge(shop, job)
    shop.commit()
    found = looked(shop)
    assert outcome(found, job) == "failed"
    assert str(2 if "make" in command else 1) in "\n".join(reason.message for reason in found.reasons)
    assert_sentences([reason.message for reason in found.reasons])
    assert any(note.code == "judging_changed" and note.where == name for note in found.notes)


@pytest.mark.parametrize("on_base", [True, False])
def test_a_list_of_judging_files_in_the_settings_takes_none_away(shop: Shop, on_base: bool) -> None:
    settings = '[verify]\nfrom_base = ["/tools/"]\n'
    shop.write("tools/limit.txt", "-1")
    shop.write("test_prices.py", TESTS.replace("[-1]", '[int(open("tools/limit.txt").read())]'))
    if on_base:
        shop.write("donewhen.toml", settings)
    job = shop.job()
    shop.branch()
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    shop.write("donewhen.toml", settings)
    shop.write("conftest.py", SKIPS)
    forge(shop, job)
    shop.commit()
    found = looked(shop)
    assert outcome(found, job) == "failed"
    assert "voided" not in messages_by_code(found)
    notes = [note for note in found.notes if note.code == "setting_obsolete"]
    assert [note.where for note in notes] == ["donewhen.toml"] * on_base
    assert_sentences([f"{note.message} {note.next}" for note in notes])
    # What it adds judges, too.
    shop.write("prices.py", HONEST)
    shop.write("tools/limit.txt", "")
    shop.commit()
    notes = [note for note in looked(shop).notes if note.where == "tools/limit.txt"]
    assert [note.code for note in notes] == ["judging_changed"] * on_base


def test_a_linter_is_as_severe_as_on_the_base(shop: Shop) -> None:
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent))
    if ruff is None:
        pytest.skip("LOUD: ruff is not installed; that a linter's settings are the base's is NOT tested")
    job = shop.job("Tidy up", criteria=(f"It is tidy\n  check: run {ruff} check --no-cache .",))
    shop.branch()
    shop.write("prices.py", f"import os\n{NAIVE}")
    shop.write("ruff.toml", 'exclude = ["*"]\n')
    forge(shop, job)
    shop.commit()
    assert outcome(looked(shop), job) == "failed"


def test_a_schema_is_the_bases(shop: Shop) -> None:
    shop.write("schema.json", '{"type": "array", "minItems": 2}')
    job = shop.job(
        criteria=("There are prices\n  check: file /prices.json schema /schema.json",), outputs=("/prices.json",)
    )
    shop.branch()
    shop.write("prices.json", "[1]")
    shop.write("schema.json", "{}")
    forge(shop, job)
    shop.commit()
    assert outcome(looked(shop), job) == "failed"


def test_an_output_with_a_star_does_not_reach_the_tests_in_a_folder(shop: Shop) -> None:
    (shop.root / "test_prices.py").rename(shop.write("tests/test_prices.py", "").resolve())
    shop.write("conftest.py", "")
    job = shop.job(outputs=("/*.py",))
    shop.branch()
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    shop.write("tests/test_prices.py", GREEN)
    forge(shop, job)
    shop.commit()
    assert outcome(looked(shop), job) == "failed"


def test_nothing_is_written_through_a_link_that_the_branch_has_laid(shop: Shop, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shop.write("tests/test_more.py", TESTS)
    shop.write("missions/tone/mission.toml", "x = 1\n")
    job = shop.job()
    shop.branch()
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    for name in ("tests", "missions", ".claude", "jobs-of-old"):
        shutil.rmtree(shop.root / name, ignore_errors=True)
        (shop.root / name).symlink_to(elsewhere)
    (elsewhere / "test_more.py").write_text(TESTS)
    forge(shop, job)
    shop.commit()
    found = looked(shop)
    assert outcome(found, job) == "failed"
    # The links are absent: nothing there is written or run.
    assert [path.name for path in elsewhere.iterdir()] == ["test_more.py"]
    assert any(reason.code == "report_tests_lost" and reason.where == "tests/test_more.py" for reason in found.reasons)
    assert_sentences([note.message for note in found.notes])


def test_another_form_of_the_project_beside_it_is_not_the_contract(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    job = shop.job()
    shop.branch()
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    shop.write("plan.md", (shop.root / "jobs" / "plan.md").read_text())
    shop.write("workstreams/x.md", "")
    forge(shop, job)
    shop.commit()
    assert outcome(looked(shop), job) == "failed"


def test_a_complete_and_consistent_record_is_not_asked(shop: Shop) -> None:
    """The agent did the work, was refused nothing, and then took the work out again: every line of proof is real."""
    job = shop.job()
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    shop.commit()
    found = looked(shop)
    assert outcome(found, job) == "failed"
    assert messages_by_code(found).keys() == {"criterion_failed", "receipt_refuted", "score_too_low"}


def test_done_by_a_field_or_by_a_line_alone_is_looked_at(shop: Shop) -> None:
    by_field, by_line = shop.job("One"), shop.job("Two")
    shop.branch()
    shop.edit(shop.plan(by_field), "status: planned", "status: done")
    data = {"score": 100, "gates": {}, "writes": {"status": ["planned", "done"]}}
    shop.workspace.ledger.append(by_line.id, "completed", data, Actor("Ada", "person"))
    shop.commit()
    found = looked(shop)
    for job in (by_field, by_line):
        assert outcome(found, job) == "failed"
        assert outcome(found, job, "receipt") == "failed"


def test_an_agreement_on_the_branch_is_nobodys(shop: Shop) -> None:
    job = shop.job()
    shop.branch()
    shop.edit(shop.plan(job), f"  check: run {PYTEST}", "  check: file /prices.py")
    shop.agree(job)
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    assert shop.complete(job).done
    shop.commit()
    found = looked(shop)
    assert outcome(found, job) == "failed"
    assert outcome(found, job, "agreement") == "failed"
    assert "voided" in messages_by_code(found)


def test_a_word_of_a_person_on_the_branch_is_nobodys(shop: Shop) -> None:
    job = shop.job(criteria=("It reads well\n  check: manual", "There is one\n  check: file /prices.py"))
    shop.branch()
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    assert start_job(shop.workspace, job.id, unproved_actor()).started
    assert sign_off(
        shop.workspace, shop.workspace.job(job.id), "AC-1", "It does.", Approval(person_at_terminal())
    ).counts
    assert complete(shop.workspace, job.id, unproved_actor()).done
    shop.commit()
    found = looked(shop)
    assert outcome(found, job, "AC-1") == "failed"
    assert outcome(found, job, "AC-2") == "passed"
    assert not found.passed


def test_a_key_that_only_the_branch_trusts_signs_nothing(shop: Shop, tmp_path: Path) -> None:
    key = create_key_file(tmp_path / "key", "pass phrase")
    job = shop.job(criteria=("It reads well\n  check: manual",))
    shop.branch()
    shop.write("donewhen.toml", f'[approval]\nkeys = ["{key}"]\n')
    shop.write("prices.py", f"# Better.\n{NAIVE}")
    by_key = Approval(Actor("release", "key"), *open_key(tmp_path / "key", "pass phrase"))
    sign_off(shop.workspace, shop.workspace.job(job.id), "AC-1", "It does.", by_key)
    forge(shop, shop.workspace.job(job.id))
    shop.commit()
    found = looked(shop)
    assert outcome(found, job) == "failed"
    assert "voided" in messages_by_code(found)


def test_a_ledger_that_was_cut_or_written_anew_is_told(shop: Shop) -> None:
    job = shop.job()
    shop.branch()
    ledger = shop.root / ".donewhen" / "ledger" / f"{job.id}.jsonl"
    ledger.unlink()
    shop.edit(shop.plan(job), "status: planned", "status: done")
    shop.commit()
    found = looked(shop)
    assert "rewritten" in messages_by_code(found)
    assert outcome(found, job) == "failed"


LOOSENED: dict[str, Callable[[Shop, Job], object]] = {
    "stakes": lambda shop, job: shop.edit(shop.plan(job), "stakes: normal", "stakes: low"),
    "a criterion is gone": lambda shop, job: shop.edit(shop.plan(job), f"  check: run {PYTEST}\n", ""),
    "the time that a command has": lambda shop, job: shop.write("donewhen.toml", "[jobs]\ncommand_timeout = 9000\n"),
    "in pyproject.toml": lambda shop, job: shop.write(
        "pyproject.toml", "[tool.donewhen.jobs]\ncommand_timeout = 9000\n"
    ),
    "a setting that can't be read, and more": lambda shop, job: [
        shop.write("donewhen.toml", "[verify\n"),
        shop.edit(shop.plan(job), f"  check: run {PYTEST}\n", ""),
    ],
    "a setting that can't be read": lambda shop, job: shop.write("donewhen.toml", "[verify\n"),
    "the job is gone": lambda shop, job: shutil.rmtree(job.path.parent),
    "the job is a link": lambda shop, job: [
        job.path.rename(shop.root / "elsewhere.md"),
        job.path.symlink_to("../../elsewhere.md"),
    ],
    "the folder has another name": lambda shop, job: job.path.parent.rename(job.path.parents[1] / "old"),
    "there are two of it": lambda shop, job: shutil.copytree(
        job.path.parent, job.path.parents[1] / f"{job.id}-another"
    ),
    "an id like another's": lambda shop, job: shop.edit(shop.plan(job), f"work_item_id: {job.id}", "work_item_id: X"),
    "the project is broken": lambda shop, job: shop.write("jobs/plan.md", "---\nkind: [\n---\n"),
}


@pytest.mark.parametrize("loosen", LOOSENED.values(), ids=LOOSENED.keys())
def test_honest_work_does_not_excuse_what_was_done_to_the_contract(
    shop: Shop, loosen: Callable[[Shop, Job], object]
) -> None:
    job = shop.job(stakes="normal")
    other = shop.job("Another", criteria=("There is one\n  check: file /prices.py",))
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    assert shop.complete(other).done
    loosen(shop, job)
    shop.commit()
    found = looked(shop)
    assert not found.passed
    assert not found.broken
    # What could be run was, with the contract of the base.
    assert outcome(found, other) == "passed"
