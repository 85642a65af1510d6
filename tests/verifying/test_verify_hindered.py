"""In CI, a program that is not installed is an error of the machine: nothing is verified, and nothing is refuted."""

from __future__ import annotations

from pathlib import Path

import pytest
from verify_kit import HONEST, NAIVE, Shop, case

from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.job import Job

pytestmark = pytest.mark.scenes

ABSENT = "program-that-a-runner-lacks"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


def pushed(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, command: str) -> Job:
    """A job that was done where the program is installed."""
    program = tmp_path / "installed" / "bin" / ABSENT
    program.parent.mkdir(parents=True)
    (tmp_path / "installed" / "pyvenv.cfg").write_text("")
    program.write_text("#!/bin/sh\nexec grep -q ValueError prices.py\n")
    program.chmod(0o755)
    job = shop.job(criteria=(f"Negative prices are refused\n  check: run {command}",))
    shop.branch()
    shop.write("prices.py", HONEST)
    with monkeypatch.context() as here:
        here.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        assert shop.complete(job).done
    shop.write("prices.py", text)
    shop.commit("Work")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return job


def test_a_missing_program_is_an_error_and_refutes_nothing(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = pushed(shop, tmp_path, monkeypatch, HONEST, ABSENT)
    found = shop.verified()
    assert found["status"] == 3
    assert not found["data"]["passed"]
    criterion = case(found, "AC-1", job.id)
    assert criterion["outcome"] == "error"
    assert [reason["code"] for reason in criterion["reasons"]] == [GateCode.PROGRAM_MISSING]
    assert "receipt_refuted" not in {finding["code"] for finding in found["findings"]}


def test_the_same_job_is_verified_where_the_program_is(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed(shop, tmp_path, monkeypatch, HONEST, ABSENT)
    monkeypatch.setenv("PATH", f"{tmp_path}/installed/bin:/usr/bin:/bin")
    found = shop.verified()
    assert (found["status"], found["data"]["passed"]) == (0, True)


def test_work_that_fails_where_the_program_is_is_refuted(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = pushed(shop, tmp_path, monkeypatch, NAIVE, ABSENT)
    monkeypatch.setenv("PATH", f"{tmp_path}/installed/bin:/usr/bin:/bin")
    found = shop.verified()
    assert found["status"] == 1
    assert case(found, "AC-1", job.id)["outcome"] == "failed"
