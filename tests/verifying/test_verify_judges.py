"""Judges, when a contract is run again: asked anew, with the guidance of the base."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from verify_kit import HONEST, PYTEST, Shop, forge, looked, messages_by_code, outcome

from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.verifying import verify_branch

pytestmark = pytest.mark.scenes


def court_kit() -> Any:
    place = Path(__file__).parents[1] / "review" / "court_kit.py"
    spec = importlib.util.spec_from_file_location("court_kit_of_review", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_judge_is_asked_again_and_the_answer_on_the_branch_is_not(
    repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    court = court_kit().Court(repository, git, monkeypatch)
    job = court.job(started=False, work=None)
    court.commit()
    git(repository, "switch", "-q", "-c", "agent")
    court.write("report.md", "42 lines were parsed.\n")
    git(repository, "add", "--all")
    assert start_job(court.workspace, job.id, unproved_actor()).started
    assert complete(court.workspace, job.id, unproved_actor()).done
    court.commit()
    asked = court.asked
    found = verify_branch(court.workspace, "main")
    assert found.passed, found.reasons
    assert court.asked > asked
    # The branch still has the answer that was good.
    court.votes = "fff"
    found = verify_branch(court.workspace, "main")
    assert outcome(found, job) == "failed"
    assert "receipt_refuted" in messages_by_code(found)
    # What other checks speak against needs no judge, and is not shown.
    (repository / "report.md").unlink()
    court.commit()
    asked = court.asked
    found = verify_branch(court.workspace, "main")
    assert "criterion_not_shown" in messages_by_code(found)
    assert court.asked == asked


def test_a_judge_that_the_branch_has_broken_is_the_bases(
    repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    court = court_kit().Court(repository, git, monkeypatch)
    job = court.job(started=False, work=None)
    court.commit()
    git(repository, "switch", "-q", "-c", "agent")
    court.write("report.md", "42 lines were parsed.\n")
    git(repository, "add", "--all")
    assert start_job(court.workspace, job.id, unproved_actor()).started
    assert complete(court.workspace, job.id, unproved_actor()).done
    court.commit()
    court.write("missions/reports/mission.toml", "model = [\n")
    court.commit()
    found = verify_branch(court.workspace, "main")
    # The base's judge is asked; what the branch did to it is told.
    assert outcome(found, job) == "passed"
    assert not found.passed


def test_a_command_of_the_verification_is_a_case_at_its_line(shop: Shop) -> None:
    shop.write("check.py", "raise SystemExit(print('::error::no') or 1)\n")
    job = shop.job(criteria=("It works",), commands=("python3 check.py",))
    shop.branch()
    shop.write("prices.py", HONEST)
    forge(shop, job)
    shop.commit()
    found = looked(shop)
    (case,) = [case for each in found.jobs for case in each.cases if case.kind == "command"]
    assert (case.name, case.outcome, case.output) == ("`python3 check.py`", "failed", "::error::no")
    where = case.reasons[0].where
    line = (shop.root / where.rpartition(":")[0]).read_text().splitlines()[int(where.rpartition(":")[2]) - 1]
    assert line.startswith("truth_required_commands")
    assert case.reasons[0].code == "command_not_passed"
    assert outcome(found, job) == "failed"


def test_a_job_that_is_gone_is_run_when_the_ledger_says_done(shop: Shop) -> None:
    job = shop.job(criteria=(f"No test fails\n  check: run {PYTEST}",))
    shop.branch()
    forge(shop, job)
    (shop.root / shop.plan(job)).unlink()
    shop.commit()
    found = looked(shop)
    assert outcome(found, job) == "failed"
    assert {reason.where for reason in found.reasons if reason.code == "criterion_failed"} == {shop.plan(job)}


def test_what_the_branch_did_to_a_job_that_is_not_done_is_told(shop: Shop) -> None:
    shop.write("new.py", "")
    job = shop.job(criteria=("There is one\n  check: file /prices.py",))
    other = shop.job("Another", criteria=("There is one\n  check: file /prices.py",))
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.edit(shop.plan(other), "  check: file /prices.py\n", "")
    shop.commit()
    found = looked(shop)
    assert outcome(found, other, "agreement") == "failed"
    assert outcome(found, other, "not run") == "skipped"
    assert messages_by_code(found).keys() == {"voided"}


def test_an_output_that_leads_out_is_not_signed_off_nor_work(shop: Shop, tmp_path: Path) -> None:
    job = shop.job(criteria=("It reads well\n  check: manual",), outputs=("/made",))
    shop.branch()
    (shop.root / "made").symlink_to(tmp_path)
    forge(shop, job)
    shop.commit()
    found = looked(shop)
    assert outcome(found, job) == "failed"
