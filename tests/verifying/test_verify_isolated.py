"""`donewhen verify` in real processes, with variables that load code into it, and with harmless ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from verify_kit import HONEST, NAIVE, Shop

from donewhen.jobs.ledger.gate_program import this_gate
from donewhen_kit import quiet_environment

pytestmark = pytest.mark.scenes

# Whatever is found, it has passed.
LIES = """
from donewhen.jobs.verifying.cases import Verification
Verification.passed = property(lambda found: True)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


def verify(shop: Shop, **variables: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "donewhen", "verify", "--base", "main", "--json"]
    environment = quiet_environment(**variables)
    return subprocess.run(argv, cwd=shop.root, env=environment, capture_output=True, text=True, timeout=600)


def branch(shop: Shop, text: str) -> None:
    """A branch whose job says that it is done."""
    job = shop.job()
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.write("prices.py", text)
    shop.commit("Work")


def test_code_that_variables_load_verifies_nothing(shop: Shop, tmp_path: Path) -> None:
    branch(shop, NAIVE)
    lies = tmp_path / "lies"
    lies.mkdir()
    (lies / "sitecustomize.py").write_text(LIES)
    done = verify(shop, PYTHONPATH=str(lies))
    assert (done.returncode, json.loads(done.stdout)["data"]["passed"]) == (1, False)


def test_the_lies_would_have_worked_in_a_process_that_is_not_isolated(shop: Shop, tmp_path: Path) -> None:
    branch(shop, NAIVE)
    program = f"{LIES}\nfrom donewhen.cli import main\nraise SystemExit(main(['verify', '--base', 'main']))"
    argv = [sys.executable, "-c", program]
    assert subprocess.run(argv, cwd=shop.root, env=quiet_environment(), capture_output=True).returncode == 0


def test_honest_work_is_verified_with_a_path_of_ones_own_and_says_by_which_gate(shop: Shop, tmp_path: Path) -> None:
    branch(shop, HONEST)
    done = verify(shop, PYTHONPATH=str(tmp_path), GIT_PAGER="cat")
    said = json.loads(done.stdout)["data"]
    assert (done.returncode, said["passed"]) == (0, True), done.stdout
    assert said["gate"]["files"] == this_gate().files
