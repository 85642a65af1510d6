"""Honest pull requests are green: nobody is accused of what they did not do."""

from __future__ import annotations

import shutil
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from verify_kit import HONEST, PYTEST, TESTS, Shop, forge, looked, messages_by_code, outcome

from donewhen.jobs.gates.evidence_status import sign_off
from donewhen.jobs.ledger.approval import Approval, unproved_actor
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.signing import create_key_file, open_key
from donewhen.jobs.ledger.ssh_signing import open_ssh_key
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import create_project
from donewhen.jobs.verifying import Verification
from sentences import assert_sentences

pytestmark = pytest.mark.scenes

CHECK = (
    "import prices\n\ntry:\n    prices.total([-1])\nexcept ValueError:\n    raise SystemExit(0)\nraise SystemExit(1)\n"
)
QUICK = ("It is refused\n  check: run python3 check.py",)


def green(found: Verification) -> None:
    assert found.passed, [*found.reasons, *found.cases]


MORE: dict[str, Callable[[Shop], object]] = {
    "nothing else": lambda shop: None,
    "new tests beside the base's": lambda shop: shop.write("test_more.py", "def test_more():\n    assert True\n"),
    "a conftest with fixtures for new tests": lambda shop: [
        shop.write("more/conftest.py", "import pytest\n@pytest.fixture\ndef price():\n    return 1\n"),
        shop.write("more/test_more.py", "def test_more(price):\n    assert price\n"),
    ],
    "more tests in a file of the base": lambda shop: shop.write(
        "test_prices.py", f"{TESTS}\ndef test_x():\n    pass\n"
    ),
    "a module is moved": lambda shop: [
        shop.write("shop/__init__.py", ""),
        shop.write("shop/money.py", HONEST),
        shop.write("prices.py", "from shop.money import total\n\n__all__ = ['total']\n"),
    ],
    "a file that is no test is deleted": lambda shop: shop.git("rm", "-q", "notes.txt"),
    "a dependency in pyproject.toml": lambda shop: shop.write("pyproject.toml", '[project]\nname = "shop"\n'),
    "names that are hard to write": lambda shop: [
        shop.write("a\nb 'c' \"d\" ü.txt", "x"),
        (shop.root / b"\xff\xfe.txt".decode("utf-8", "surrogateescape")).write_text("x"),
    ],
    "a link that leads nowhere": lambda shop: (shop.root / "nowhere").symlink_to("/nowhere/at/all"),
}


@pytest.mark.parametrize("more", MORE.values(), ids=MORE.keys())
def test_honest_work_is_green(shop: Shop, more: Callable[[Shop], object]) -> None:
    shop.write("notes.txt", "Old.\n")
    job = shop.job()
    shop.branch()
    shop.write("prices.py", HONEST)
    more(shop)
    shop.git("add", "-A")
    assert shop.complete(job).done
    shop.commit()
    before = {path: path.lstat().st_mtime_ns for path in shop.root.rglob("*") if ".git/" not in f"{path}/"}
    found = looked(shop)
    green(found)
    assert outcome(found, job) == "passed"
    # Nothing of it is written to.
    assert {path: path.lstat().st_mtime_ns for path in shop.root.rglob("*") if ".git/" not in f"{path}/"} == before


def test_a_test_that_was_agreed_as_an_output_may_change(shop: Shop) -> None:
    job = shop.job(outputs=("/prices.py", "/test_prices.py"))
    shop.branch()
    shop.write("prices.py", HONEST)
    shop.write("test_prices.py", TESTS.replace("[1, 2]) == 3", "[2, 2]) == 4"))
    assert shop.complete(job).done
    shop.commit()
    found = looked(shop)
    green(found)
    assert found.notes == ()


def test_a_test_that_the_agreed_command_names_may_be_new(shop: Shop) -> None:
    job = shop.job(criteria=(f"No test fails\n  check: run {PYTEST} test_refusal.py",))
    shop.branch()
    shop.write("prices.py", HONEST)
    shop.write("test_refusal.py", TESTS)
    assert shop.complete(job).done
    shop.commit()
    green(looked(shop))


def test_a_suite_that_could_not_be_collected_on_the_base_is_honest(shop: Shop) -> None:
    shop.write("test_discounts.py", "import discounts\n\n\ndef test_it():\n    assert discounts.half(2) == 1\n")
    job = shop.job(outputs=("/discounts.py",))
    shop.branch()
    shop.write("prices.py", HONEST)
    shop.write("discounts.py", "def half(price):\n    return price / 2\n")
    shop.git("add", "-A")
    assert shop.complete(job).done
    shop.commit()
    green(looked(shop))


def test_jobs_that_depend_on_each_other_and_one_in_progress(shop: Shop) -> None:
    shop.write("check.py", CHECK)
    first = shop.job("First", criteria=QUICK)
    second = shop.job("Second", criteria=QUICK, outputs=("/second.txt",), depends_on=(first.id,))
    third = shop.job("Third", criteria=QUICK, outputs=("/third.txt",))
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(first).done
    shop.write("second.txt", "Prices with two decimals.\n")
    assert shop.complete(second).done
    assert start_job(shop.workspace, third.id, unproved_actor()).started
    shop.commit()
    found = looked(shop)
    green(found)
    assert [job.id for job in found.jobs if job.claimed] == [first.id, second.id]
    assert outcome(found, third, "not run") == "skipped"
    # One of them, and what it depends on.
    found = looked(shop, jobs=[second.id])
    assert [job.id for job in found.jobs if job.claimed] == [first.id, second.id]
    found = looked(shop, jobs=[first.id])
    green(found)
    rest = next(job for job in found.jobs if job.id == second.id)
    assert_sentences(rest.cases[0].text)


def test_a_dependency_that_does_not_hold_carries_over(shop: Shop) -> None:
    shop.write("check.py", CHECK)
    first = shop.job("First", criteria=QUICK)
    second = shop.job(
        "Second", criteria=("There is one\n  check: file /b.txt",), outputs=("/b.txt",), depends_on=(first.id,)
    )
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(first).done
    shop.write("b.txt", "Prices with two decimals.\n")
    assert shop.complete(second).done
    shop.write("prices.py", "def total(prices):\n    return 0\n")
    shop.commit()
    found = looked(shop)
    assert outcome(found, second) == "passed"
    assert outcome(found, second, "dependency") == "failed"


def test_what_was_done_on_the_base_stays_verified(shop: Shop) -> None:
    shop.write("check.py", CHECK)
    job = shop.job(criteria=QUICK)
    shop.write("prices.py", HONEST)
    shop.commit()
    assert shop.complete(job).done
    shop.branch()
    shop.write("README.md", "A shop.\n")
    shop.commit()
    green(looked(shop))
    shop.write("prices.py", "def total(prices):\n    return 0\n")
    shop.commit()
    found = looked(shop)
    assert outcome(found, job) == "failed"
    # Taken back, it is not run, and that is said.
    shop.write("prices.py", HONEST)
    assert start_job(shop.workspace, job.id, unproved_actor()).started
    shop.commit()
    found = looked(shop)
    assert messages_by_code(found).keys() == {"nothing_verified"}
    assert "it was done on main" in next(item for item in found.jobs if item.id == job.id).cases[0].text


def test_a_criterion_more_on_the_branch_is_free(shop: Shop) -> None:
    shop.write("check.py", CHECK)
    job = shop.job(criteria=QUICK)
    shop.branch()
    shop.write("prices.py", HONEST)
    shop.edit(
        shop.plan(job),
        "  check: run python3 check.py",
        "  check: run python3 check.py\n- AC-2: More\n  check: file /prices.py",
    )
    assert shop.complete(shop.workspace.job(job.id)).done
    shop.commit()
    green(looked(shop))


@pytest.mark.parametrize("kind", ["keys", "ssh"])
def test_a_key_that_was_agreed_on_the_base_signs_off_anywhere(shop: Shop, tmp_path: Path, kind: str) -> None:
    if kind == "ssh":
        if shutil.which("ssh-keygen") is None:
            pytest.skip("LOUD: OpenSSH is not installed (openssh-client)")
        arguments = ["-q", "-t", "ed25519", "-N", "pass phrase", "-C", "release", "-f", str(tmp_path / "key")]
        subprocess.run(["ssh-keygen", *arguments], check=True, stdin=subprocess.DEVNULL)
        ssh_key = open_ssh_key(tmp_path / "key", lambda: "pass phrase")
        key, by_key = ssh_key.public.text, Approval(Actor("release", "key"), ssh_key.public.text, ssh_key.sign)
    else:
        key = create_key_file(tmp_path / "key", "pass phrase")
        by_key = Approval(Actor("release", "key"), *open_key(tmp_path / "key", "pass phrase"))
    shop.write("donewhen.toml", f'[approval]\n{kind} = ["{key}"]\n')
    job = shop.job(criteria=("It reads well\n  check: manual", "There is one\n  check: file /prices.py"))
    shop.branch()
    shop.write("prices.py", HONEST)
    assert start_job(shop.workspace, job.id, unproved_actor()).started
    sign_off(shop.workspace, shop.workspace.job(job.id), "AC-1", "It does.", by_key)
    forge(shop, shop.workspace.job(job.id))
    shop.commit()
    assert outcome(looked(shop), job) == "passed"
    # It was about that work, and no other.
    shop.write("prices.py", f"{HONEST}# More.\n")
    shop.commit()
    assert outcome(looked(shop), job) == "failed"


def test_a_branch_behind_its_base_is_not_accused_of_what_the_base_did(shop: Shop) -> None:
    shop.write("check.py", CHECK)
    shop.write("gone.txt", "x")
    job, other = shop.job(criteria=QUICK), shop.job("Another", criteria=QUICK)
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.commit()
    shop.git("switch", "-q", "main")
    shop.write("test_rounding.py", "import rounding\n\n\ndef test_it():\n    assert rounding\n")
    shop.write("rounding.py", "")
    (shop.root / "gone.txt").unlink()
    shop.edit(
        shop.plan(other),
        "  check: run python3 check.py",
        "  check: run python3 check.py\n- AC-2: More\n  check: file /b",
    )
    shop.job("New on the base", criteria=QUICK)
    shop.agree(other)
    shop.commit()
    shop.git("switch", "-q", "agent")
    found = looked(shop)
    green(found)
    assert_sentences([note.message for note in found.notes])
    # The tests that came since are run.
    shop.write("check.py", f"{CHECK}import rounding\n")
    shop.commit()
    # As GitHub lays a pull request: the merge of both.
    shop.git("reset", "-q", "--hard", "HEAD^")
    shop.git("merge", "-q", "--no-edit", "main")
    found = looked(shop)
    green(found)
    assert found.notes == ()


def test_what_was_agreed_meanwhile_is_no_fault_of_the_branch_and_its_record_is_merged(shop: Shop) -> None:
    shop.write("check.py", CHECK)
    job = shop.job(criteria=QUICK)
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.commit()
    shop.git("switch", "-q", "main")
    shop.write("donewhen.toml", "[jobs]\ncommand_timeout = 60\n")
    shop.agree(job)
    shop.commit()
    shop.git("switch", "-q", "agent")
    found = looked(shop)
    assert outcome(found, job) == "passed"
    assert found.reasons == ()
    shop.git("merge", "-q", "--no-edit", "main")
    found = looked(shop)
    assert (outcome(found, job), found.reasons) == ("passed", ())


@pytest.mark.parametrize("how", ["removed", "edited"])
def test_an_entry_of_the_project_that_the_base_has_can_not_be_taken_away(shop: Shop, how: str) -> None:
    shop.write("check.py", CHECK)
    job = shop.job(criteria=QUICK)
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    base = shop.git("ls-tree", "-r", "--name-only", "main", ".donewhen/ledger/").split()
    entry = shop.root / next(name for name in base if name.endswith(".json"))
    if how == "removed":
        entry.unlink()
    else:
        entry.write_bytes(entry.read_bytes().replace(b'"person"', b'"agent"'))
    shop.commit()
    assert "rewritten" in [reason.code for reason in looked(shop).reasons]


def test_a_branch_behind_its_base_that_cheats_is_told(shop: Shop) -> None:
    shop.write("check.py", CHECK)
    job = shop.job(criteria=QUICK)
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.edit(shop.plan(job), "  check: run python3 check.py\n", "")
    shop.write("donewhen.toml", "[jobs]\ncommand_timeout = 9000\n")
    shop.commit()
    shop.git("switch", "-q", "main")
    shop.write("README.md", "A shop.\n")
    shop.commit()
    shop.git("switch", "-q", "agent")
    found = looked(shop)
    places = {reason.where.partition(":")[0] for reason in found.reasons if reason.code == "voided"}
    assert places == {shop.plan(job), "donewhen.toml"}


def test_a_project_in_a_folder_of_the_repository(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "all", inside="apps/shop")
    shop.folder.joinpath("README.md").write_text("All of it.\n")
    shop.write("check.py", CHECK)
    job = shop.job(criteria=QUICK)
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.commit()
    green(looked(shop))
    shop.write("check.py", "")
    shop.write("prices.py", "def total(prices):\n    return 0\n")
    shop.commit()
    done = shop.verify(GITHUB_ACTIONS="true")
    assert done.returncode == 1
    assert f"::error file=apps/shop/{shop.plan(job)},line=" in done.stdout
    assert "::notice file=apps/shop/check.py,line=1," in done.stdout


def test_the_form_with_workstreams(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    subprocess.run(["rm", "-r", "jobs", ".donewhen"], cwd=shop.root, check=True)
    shop.root = create_project(shop.root, "Shop", form="big").root
    shop.write("check.py", CHECK)
    shop.write("prices.py", "")
    job = shop.job(criteria=QUICK, workstream="Money")
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.commit()
    green(looked(shop))


def test_an_environment_that_is_ignored_serves(shop: Shop) -> None:
    shop.write(".gitignore", "__pycache__/\n.venv/\n*.cfg\n")
    venv.create(shop.root / ".venv", with_pip=False, symlinks=True)
    shop.write("check.py", CHECK)
    job = shop.job(criteria=("It is refused\n  check: run .venv/bin/python -B check.py",))
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.commit()
    green(looked(shop))


@pytest.mark.parametrize("kind", ["sha256", "worktree", "detached", "crlf", "shallow"])
def test_repositories_of_all_kinds(tmp_path: Path, kind: str) -> None:
    shop = Shop(tmp_path / "shop")
    if kind == "sha256":
        subprocess.run(["rm", "-rf", ".git"], cwd=shop.folder, check=True)
        shop.git("init", "-q", "-b", "main", "--object-format=sha256")
    shop.write("check.py", CHECK)
    job = shop.job(criteria=QUICK)
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.commit()
    base = "main"
    match kind:
        case "worktree":
            shop.git("switch", "-q", "main")
            shop.git("worktree", "add", "-q", str(tmp_path / "tree"), "agent")
            shop.folder = shop.root = tmp_path / "tree"
        case "detached":
            shop.git("switch", "-q", "--detach", "agent")
        case "crlf":
            shop.git("config", "core.autocrlf", "true")
            shop.git("rm", "-q", "--cached", "-r", ".")
            shop.git("reset", "-q", "--hard")
            assert b"\r\n" in (shop.root / "prices.py").read_bytes()
        case "shallow":
            address = f"file://{shop.folder}"
            clone = tmp_path / "clone"
            subprocess.run(["git", "clone", "-q", "--depth=1", "--branch=agent", address, str(clone)], check=True)
            shop.folder = shop.root = clone
            shop.git("fetch", "-q", "--depth=1", "origin", "+refs/heads/main:refs/remotes/origin/main")
            base = "origin/main"
    found = looked(shop, base)
    green(found)
    assert outcome(found, job) == "passed"
    assert_sentences([note.message for note in found.notes])
    assert bool(found.notes) == (kind == "shallow")
