"""`base` in the settings of a stop: the work comes from the checkout, and everything that judges it from a branch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.completion import TaskCompletionContext, TaskCompletionResult, run_check
from donewhen.completion.from_settings import checker_for, checks_for
from donewhen.config import load
from donewhen.filesystem import HostFilesystem
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval, person_at_terminal, unproved_actor
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.runtime import Session
from donewhen_kit import run_main
from sentences import assert_sentences

COMMAND = f"{sys.executable} -B tests/test_prices.py"
SETTINGS = f"[stop]\ncommands = [{COMMAND!r}]\nbase = 'main'\n"
TEST = "import pathlib, sys\nsys.path.insert(0, '.')\nimport prices\nsys.exit(prices.total([1, 2]) != 3)\n"
HONEST = "def total(prices):\n    return sum(prices)\n"
NAIVE = "def total(prices):\n    return 0\n"


class Shop:
    """A repository in which main has a test and the settings."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write(".gitignore", "*.cache\n")
        self.write("prices.py", NAIVE)
        self.write("tests/test_prices.py", TEST)
        self.write("donewhen.toml", SETTINGS)
        self.commit()
        self.git("switch", "-q", "-c", "agent")

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, *arguments], cwd=self.root, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "Something")

    def check(self) -> TaskCompletionResult:
        settings = load(self.root)
        context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(settings.root))
        return run_check(checker_for(settings.stop, str(settings.source)), context)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


def test_work_that_is_not_committed_is_judged_and_nothing_is_written(shop: Shop) -> None:
    assert shop.check().code == "command_failed"
    shop.write("prices.py", "from money import total\n")
    shop.write("money.py", HONEST)
    before = {path: path.lstat().st_mtime_ns for path in shop.root.rglob("*") if ".git/" not in f"{path}/"}
    assert shop.check().complete
    assert {path: path.lstat().st_mtime_ns for path in shop.root.rglob("*") if ".git/" not in f"{path}/"} == before


CHEATS: dict[str, Callable[[Shop], object]] = {
    "the test is edited": lambda shop: shop.write("tests/test_prices.py", ""),
    "git is told not to see it": lambda shop: [
        shop.git("update-index", "--skip-worktree", "tests/test_prices.py"),
        shop.write("tests/test_prices.py", ""),
    ],
    "the edit is committed": lambda shop: [shop.write("tests/test_prices.py", ""), shop.commit()],
    "the folder of the tests is a link": lambda shop: [
        (shop.root / "tests").rename(shop.root / "easy"),
        shop.write("easy/test_prices.py", ""),
        (shop.root / "tests").symlink_to("easy"),
    ],
    "the checks are removed from the settings": lambda shop: shop.write("donewhen.toml", "[stop]\nbase = 'main'\n"),
    "other checks are in the settings": lambda shop: shop.write(
        "donewhen.toml", "[stop]\nbase = 'main'\nfiles = ['prices.py']\n"
    ),
    "a module stands in for one of Python": lambda shop: shop.write("pathlib.py", "raise SystemExit(0)\n"),
    "a module that git ignores": lambda shop: [
        shop.write("prices.py", "exec(open('prices.cache').read())\n"),
        shop.write("prices.cache", HONEST),
    ],
    "a link that leads out": lambda shop: [
        shop.write("../prices.py", HONEST),
        (shop.root / "prices.py").unlink(),
        (shop.root / "prices.py").symlink_to("../prices.py"),
    ],
}


@pytest.mark.parametrize("cheat", CHEATS.values(), ids=CHEATS.keys())
def test_what_judges_comes_from_the_base(shop: Shop, cheat: Callable[[Shop], object]) -> None:
    cheat(shop)
    assert shop.check().code == "command_failed"


def test_the_tests_in_the_checkout_must_pass_too(shop: Shop) -> None:
    shop.write("prices.py", HONEST)
    shop.write("tests/test_prices.py", "raise SystemExit(1)\n")
    result = shop.check()
    assert result.code == "command_failed"
    assert_sentences((result.feedback or "").replace(sys.executable, "python"))
    shop.write("tests/test_prices.py", f"{TEST}# More.\n")
    assert shop.check().complete


@pytest.mark.parametrize(
    ("base", "settings"),
    [("main", ""), ("main", "[stop]\nbase = 'main'\n"), ("nothing", SETTINGS)],
    ids=["no settings", "no checks", "no such commit"],
)
def test_a_base_without_checks_is_no_pass(shop: Shop, base: str, settings: str) -> None:
    shop.write("prices.py", HONEST)
    shop.git("switch", "-q", "main")
    shop.write("donewhen.toml", settings)
    shop.commit()
    shop.write("donewhen.toml", SETTINGS.replace("main", base))
    result = shop.check()
    assert result.code == "gate_error"
    assert_sentences(result.feedback)


def test_jobs_are_checked_where_they_are(shop: Shop) -> None:
    shop.write("prices.py", HONEST)
    workspace = create_project(shop.root, "Shop")
    job = add_job(workspace, "Prices", criteria=("There is one\n  check: file /prices.py",), outputs=("/prices.py",))
    for proposal in agreement_proposals(workspace, [workspace.job(job.id)]):
        agree(workspace, proposal, Approval(person_at_terminal()))
    assert shop.check().complete
    shop.write("donewhen.toml", f"{SETTINGS}jobs = true\n")
    assert shop.check().complete
    assert start_job(workspace, job.id, unproved_actor()).started
    assert shop.check().code == "job_not_done"


def test_the_answer_says_what_it_was_judged_against(shop: Shop) -> None:
    shop.write("prices.py", HONEST)
    (check,) = checks_for(load(shop.root).stop, "donewhen.toml")
    assert check[0] == "[stop] of main"
    asked = {
        "base": ((), SETTINGS),
        "jobs": ((), "[stop]\njobs = true\nfiles = ['prices.py']\n"),
        "nothing": ((), "[stop]\nfiles = ['prices.py']\n"),
        "nothing ": (("--file", "prices.py"), SETTINGS),
    }
    for against, (arguments, settings) in asked.items():
        shop.write("donewhen.toml", settings)
        done = run_main(["check", *arguments], shop.root, dict(os.environ))
        assert done.returncode == 0, done.stdout
        assert ("No agreement covers these checks." in done.stdout) == (against.strip() == "nothing")
        done = run_main(["check", "--json", *arguments], shop.root, dict(os.environ))
        assert json.loads(done.stdout)["data"]["against"] == against.strip()


def test_a_hook_asks_the_base_and_is_silent_when_it_passes(shop: Shop) -> None:
    event = json.dumps({"session_id": "s", "cwd": str(shop.root), "hook_event_name": "Stop", "stop_hook_active": False})
    words = [sys.executable, "-m", "donewhen", "hook", "stop", "--runtime", "claude"]

    def answer() -> dict[str, str]:
        done = subprocess.run(words, input=event, cwd=shop.root, capture_output=True, text=True, check=True)
        found: dict[str, str] = json.loads(done.stdout)
        return found

    shop.write("tests/test_prices.py", "")
    assert answer()["decision"] == "block"
    shop.write("prices.py", HONEST)
    assert answer() == {}
