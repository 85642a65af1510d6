"""A refusal carries what the check said: wherever it is shown, bounded, and without secrets."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.adapters.claude_code.dialect import ClaudeCodeDialect
from donewhen.adapters.command_hooks import respond_to_event
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.evidence.commands import evidence_store, run_as_evidence
from donewhen.jobs.evidence.failure_details import failure_details
from donewhen.jobs.gates.job_view import view_job
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import CommandRun, RoomRun
from donewhen.jobs.lifecycle.agent_loop import run_agent_loop
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.loop_turns import LoopLimits
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.params import JobParam
from donewhen.mcp.reads import check_job
from donewhen.web.evidence import evidence_views
from donewhen_kit import run_main

BOT, ADA = Actor("bot"), Approval(Actor("ada", "person"))
PYTHON = sys.executable
TESTS = """
import unittest, prices

class Prices(unittest.TestCase):
    def test_bread(self):
        self.assertEqual(prices.of("bread"), 2)
    def test_milk(self):
        self.assertEqual(prices.of("milk"), 1)
"""
ASSERTED = "test_bread: AssertionError: 3 != 2"


def agreed(root: Path, *criteria: str, **about: object) -> tuple[Workspace, Job]:
    shop = create_project(root, "Shop")
    job = add_job(shop, "Prices", criteria=criteria, outputs=["/prices.py"], **about)  # type: ignore[arg-type]
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, ADA)
    return shop, job


@pytest.fixture
def refused(tmp_path: Path) -> tuple[Workspace, Job]:
    """A job that was refused because one of its two tests fails."""
    (tmp_path / "test_prices.py").write_text(TESTS)
    (tmp_path / "prices.py").write_text("def of(name): return {'bread': 2, 'milk': 1}[name]\n")
    (tmp_path / "donewhen.toml").write_text("[stop]\njobs = true\n")
    shop, job = agreed(tmp_path, "The prices hold.", commands=[f"{PYTHON} -m unittest test_prices"])
    assert start_job(shop, job.id, BOT).started
    (tmp_path / "prices.py").write_text("def of(name):\n    return {'bread': 3, 'milk': 1}[name]\n")
    assert not complete(shop, job.id, BOT).done
    return shop, job


def test_each_way_to_ask_names_the_failed_test_with_its_assertion_and_the_command_that_shows_all(
    refused: tuple[Workspace, Job],
) -> None:
    shop, job = refused
    everything = f"donewhen why {job.id} --output"
    shown = {
        "complete": run_main(["complete", job.id], shop.root).stdout,
        "complete --json": run_main(["complete", job.id, "--json"], shop.root).stdout,
        "why": run_main(["why", job.id], shop.root).stdout,
        "next": run_main(["next", job.id], shop.root).stdout,
        "mcp": check_job(CallContext(shop.root), JobParam(job=job.id)).short(),
    }
    event = json.dumps({"session_id": "s", "cwd": str(shop.root), "hook_event_name": "Stop"})
    shown["hook"] = respond_to_event("stop", ClaudeCodeDialect(), event, {}, shop.root)["reason"]
    for where, text in shown.items():
        assert ASSERTED in text, where
        assert everything in text, where
        assert "test_milk" not in text, where


def test_what_a_check_said_is_said_once(refused: tuple[Workspace, Job]) -> None:
    shop, job = refused
    assert run_main(["complete", job.id], shop.root).stdout.count(ASSERTED) == 1


def test_why_prints_the_whole_output_on_request(refused: tuple[Workspace, Job]) -> None:
    shop, job = refused
    assert "Traceback" not in run_main(["why", job.id], shop.root).stdout
    assert "Traceback" in run_main(["why", job.id, "--output"], shop.root).stdout


def test_the_prompt_of_the_next_turn_has_it(refused: tuple[Workspace, Job], tmp_path: Path) -> None:
    shop, job = refused
    keep = "import os, sys; open(sys.argv[1], 'a').write(os.environ['DONEWHEN_PROMPT'])"
    run_agent_loop(shop, job.id, [PYTHON, "-c", keep, "/dev/null"], BOT, limits=LoopLimits(turns=1))
    prompts = tmp_path.parent / "prompts"
    run_agent_loop(shop, job.id, [PYTHON, "-c", keep, str(prompts)], BOT, limits=LoopLimits(turns=2))
    assert ASSERTED in prompts.read_text()


def test_nothing_of_it_is_kept_in_plan_or_ledger(refused: tuple[Workspace, Job]) -> None:
    shop, job = refused
    assert "3 != 2" not in job.path.read_text()
    assert "3 != 2" not in "".join(path.read_text() for path in shop.ledger.folder.iterdir() if path.is_file())


def test_after_a_change_of_the_work_nothing_old_is_said(refused: tuple[Workspace, Job]) -> None:
    shop, job = refused
    (shop.root / "prices.py").write_text("def of(name):\n    return 2 if name == 'bread' else 1\n")
    assert [status.details for status in view_job(shop, shop.job(job.id)).evidence if status.details] == []
    assert complete(shop, job.id, BOT).done


def test_without_a_test_report_the_last_lines_are_shown_bounded_and_without_secrets_or_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_TOKEN", "tok-6d1f0a9be8c7")
    (tmp_path / "check.py").write_text(
        "print(*[f'line {number}' for number in range(500)], sep='\\n')\n"
        "print('\\x1b[31mtoken tok-6d1f0a9be8c7\\x1b[0m', 'x' * 5000)\nraise SystemExit(3)\n"
    )
    shop, job = agreed(tmp_path, f"It holds.\n  check: run {PYTHON} check.py")
    run = run_as_evidence(shop, job, [PYTHON, "check.py"], BOT).entry.read_as(CommandRun)
    lines = failure_details(evidence_store(shop), run)
    assert (lines[0], len(lines)) == ("line 489", 12)
    assert max(map(len, lines)) <= 300
    assert "tok-6d1f0a9be8c7" not in "".join(lines)
    assert "\x1b" not in "".join(lines)
    assert lines[-1].startswith("token ")
    (view,) = evidence_views(shop, shop.ledger.read(job.id).entries, (), 5)
    assert "tok-6d1f0a9be8c7" not in str(view)


def test_tests_that_are_gone_are_named_and_a_long_list_is_bounded(tmp_path: Path) -> None:
    store = evidence_store(create_project(tmp_path, "Shop"))
    lost = [f"tests.shop::test_{number}" for number in range(30)]
    lines = failure_details(store, CommandRun(passed=False, room=RoomRun(lost=lost, skipped=["tests.shop::test_x"])))
    assert lines[:2] == ("missing: tests.shop::test_0", "missing: tests.shop::test_1")
    assert lines[-2:] == ("and 22 more", "skipped: tests.shop::test_x")
    assert failure_details(store, CommandRun(passed=True, room=RoomRun(lost=lost))) == ()


def test_a_run_of_an_older_version_still_names_its_failed_tests(refused: tuple[Workspace, Job]) -> None:
    shop, job = refused
    store = evidence_store(shop)
    run = next(status.entry for status in view_job(shop, job).evidence if status.entry).read_as(CommandRun)
    record = store.get_json(run.record or "")
    del record["report"]["failures"]
    older: Callable[[str], CommandRun] = lambda name: CommandRun(passed=False, record=name, output=run.output)  # noqa: E731
    assert failure_details(store, older(store.put_json(record))) == ("test_prices.Prices::test_bread",)
