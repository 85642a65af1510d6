"""Jobs whose contract asks for strong evidence: who gets a promise, who waits for a person, and what they are told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from room_kit import BAD, GOOD, PRICE, PYTEST, RUN_CHECK, RUN_TESTS, SHOP, TESTS, Bench

from donewhen.foundation.errors import UsageError
from donewhen.jobs.board.entry_text import entry_text
from donewhen.jobs.evidence.probing import Probing
from donewhen.jobs.gates.evidence_status import sign_off
from donewhen.jobs.gates.job_view import JobView, view_job
from donewhen.jobs.ledger.approval import Approval, person_at_terminal, unproved_actor
from donewhen.jobs.ledger.entry_content import Agreed, Completed, Refused
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.project_criteria import sign_off_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.receipts.attestation_check import check_attestation
from donewhen.jobs.receipts.attestation_file import read_attestation
from donewhen.jobs.room.confining import usable_level
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.dispatch import dispatch_call
from donewhen.mcp.tools import TOOLS
from donewhen_kit import run_main

pytestmark = pytest.mark.scenes

SHOW_JOB = next(tool for tool in TOOLS if tool.name == "show_job")
PERSON = Approval(person_at_terminal())
NEW_TEST = "tests/test_new.py"
ADDED = """\
import sys

sys.path.insert(0, "src")
from shop.price import total


def test_sum():
    assert total([2]) == 2
"""
UNTESTED = {name: text for name, text in SHOP.items() if not name.startswith("tests/")}
README = "README.md"
READ = "The manual says how prices are added\n  check: file /README.md matches /## Prices/"
MANUAL = "# Shop\n\n## Prices\n\nThe total of a basket is the sum of its prices, and an empty basket costs nothing.\n"


def seen(bench: Bench, job: Job) -> JobView:
    return view_job(bench.workspace, bench.workspace.job(job.id))


def levels(bench: Bench, job: Job) -> dict[str, str]:
    found = {status.requirement.name: status.strength for status in seen(bench, job).evidence}
    return {name: strength.level for name, strength in found.items() if strength is not None}


def completed(bench: Bench, job: Job) -> Completed:
    entries = bench.workspace.ledger.read(job.id).entries
    return next(entry.content for entry in reversed(entries) if isinstance(entry.content, Completed))


@pytest.mark.parametrize("stakes", ["low", "normal"])
def test_at_low_and_normal_stakes_nothing_is_refused_for_its_strength(tmp_path: Path, stakes: str) -> None:
    bench = Bench(tmp_path / "shop", UNTESTED)
    job = bench.job(f"The tests pass\n  check: run {PYTEST}", work=["/src/**", "/tests/**"], stakes=stakes)
    bench.work()
    bench.write(NEW_TEST, ADDED)
    assert bench.complete(job).done
    recorded = completed(bench, job).strength["AC-1"]
    assert (recorded.level, recorded.needed, recorded.accepted_by) == ("weak", None, "")


def test_at_high_stakes_agreed_tests_and_checks_suffice(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS, RUN_CHECK, stakes="high")
    bench.work()
    assert bench.complete(job).done
    assert {name: (found.level, found.needed) for name, found in completed(bench, job).strength.items()} == {
        "AC-1": ("fair", "fair"),
        "AC-2": ("fair", "fair"),
    }


def test_at_high_stakes_tests_of_the_work_alone_wait_for_a_person(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", UNTESTED)
    job = bench.job(f"The tests pass\n  check: run {PYTEST}", work=["/src/**", "/tests/**"], stakes="high")
    bench.work()
    bench.write(NEW_TEST, ADDED)
    assert bench.complete(job).codes == {"evidence_weak"}
    view = seen(bench, job)
    assert (view.word, view.code, view.rest) == ("needs_person", "evidence_weak", "needs_person")
    (reason,) = view.reasons[:1]
    assert "its evidence is weak, and fair is needed" in reason.message
    assert "add tests that fail without the work" in reason.message
    assert view.job.iteration == 0
    last = bench.workspace.ledger.read(job.id).entries[-1].content
    assert isinstance(last, Refused) and last.waits_for_person

    # An agent's word changes nothing, a person's does, until the work changes.
    assert not sign_off(bench.workspace, view.job, "AC-1", "It is fine", Approval(unproved_actor())).counts
    assert bench.complete(job).codes == {"evidence_weak"}
    assert sign_off(bench.workspace, view.job, "AC-1", "I read the tests", PERSON).counts
    bench.write(PRICE, f"# Sums.\n{GOOD}")
    assert bench.complete(job).codes == {"evidence_weak"}
    bench.write(PRICE, GOOD)
    assert bench.complete(job).done
    recorded = completed(bench, job).strength["AC-1"]
    assert (recorded.level, recorded.needed) == ("weak", "fair")
    assert recorded.accepted_by == PERSON.by.name


def test_a_sign_off_does_not_stand_for_a_check_that_fails(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", UNTESTED)
    job = bench.job(f"The tests pass\n  check: run {PYTEST}", work=["/src/**", "/tests/**"], stakes="high")
    with pytest.raises(UsageError, match="can't be signed off"):
        sign_off(bench.workspace, job, "AC-1", "It will be fine", PERSON)
    bench.work()
    bench.write(NEW_TEST, ADDED)
    bench.complete(job)
    assert sign_off(bench.workspace, bench.workspace.job(job.id), "AC-1", "I read the tests", PERSON).counts
    bench.write(PRICE, BAD + "# still\n")
    assert bench.complete(job).codes == {"criterion_failed"}


def test_at_high_stakes_a_manual_needs_a_reader(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(READ, outputs=[f"/{README}"], stakes="high")
    bench.write(README, MANUAL)
    assert bench.complete(job).codes == {"evidence_weak"}
    assert sign_off(bench.workspace, bench.workspace.job(job.id), "AC-1", "I read it", PERSON).counts
    assert bench.complete(job).done
    assert completed(bench, job).strength["AC-1"].level == "fair"


def test_a_manual_that_a_person_signs_off_anyway_is_fair(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(READ, "It reads well\n  check: manual", outputs=[f"/{README}"], stakes="high")
    bench.write(README, MANUAL)
    assert bench.complete(job).codes == {"needs_human", "evidence_weak"}
    assert sign_off(bench.workspace, bench.workspace.job(job.id), "AC-2", "I read it", PERSON).counts
    assert bench.complete(job).done
    assert {name: found.level for name, found in completed(bench, job).strength.items()} == {
        "AC-1": "fair",
        "AC-2": "fair",
    }


def test_a_file_that_is_only_there_stays_weak(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    exists = "There is a manual\n  check: file /README.md"
    job = bench.job(exists, "It reads well\n  check: manual", outputs=[f"/{README}"], stakes="high")
    bench.write(README, MANUAL)
    bench.complete(job)
    sign_off(bench.workspace, bench.workspace.job(job.id), "AC-2", "I read it", PERSON)
    assert bench.complete(job).codes == {"evidence_weak"}


def test_one_criterion_can_ask_for_more_than_the_stakes(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(f"{RUN_TESTS}\n  needs: strong", RUN_CHECK, stakes="normal")
    bench.work()
    assert bench.complete(job).codes == {"evidence_weak"}
    needed = {status.requirement.name: status.needed for status in seen(bench, job).evidence}
    assert needed == {"AC-1": "strong", "AC-2": None}
    assert levels(bench, job) == {"AC-1": "fair", "AC-2": "fair"}


def test_at_critical_stakes_strong_evidence_is_needed_and_a_person_may_accept_less(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK, stakes="critical")
    bench.work()
    assert bench.complete(job).codes == {"evidence_weak"}
    assert sign_off(bench.workspace, bench.workspace.job(job.id), "AC-1", "I read it", PERSON).counts
    assert bench.complete(job).done


def test_agreements_of_older_versions_ask_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the stakes of such a job are raised: what an agreement asks for is sealed with it."""
    bench = Bench(tmp_path / "shop", UNTESTED)
    with monkeypatch.context() as older:
        older.setattr("donewhen.jobs.contract.agreeing.NEEDED_BY_STAKES", {})
        job = bench.job(f"The tests pass\n  check: run {PYTEST}", work=["/src/**", "/tests/**"], stakes="normal")
    bench.fields(job, stakes="high")
    bench.work()
    bench.write(NEW_TEST, ADDED)
    assert bench.complete(job).done


def test_raised_stakes_need_what_the_agreement_says_about_them(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", UNTESTED)
    job = bench.job(f"The tests pass\n  check: run {PYTEST}", work=["/src/**", "/tests/**"], stakes="normal")
    bench.fields(job, stakes="high")
    bench.work()
    bench.write(NEW_TEST, ADDED)
    assert bench.complete(job).codes == {"evidence_weak"}
    agreed = [entry.content for entry in bench.workspace.ledger.read(job.id).entries]
    assert [content.needs for content in agreed if isinstance(content, Agreed) and content.how == "agreed"] == [
        {"high": "fair", "critical": "strong"}
    ]


def test_a_level_that_is_removed_or_lowered_voids_the_agreement(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(f"{RUN_TESTS}\n  needs: strong")
    bench.work()
    for other in ("", "\n  needs: fair"):
        bench.plan(job, "\n  needs: strong", other)
        assert bench.complete(job).codes >= {"agreement_voided"}
        bench.plan(job, f"{RUN_TESTS}{other}", f"{RUN_TESTS}\n  needs: strong")
    assert bench.complete(job).codes == {"evidence_weak"}


def test_a_level_that_is_added_is_sealed(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    bench.work()
    bench.plan(job, RUN_TESTS, f"{RUN_TESTS}\n  needs: strong")
    assert bench.complete(job).codes == {"evidence_weak"}
    bench.plan(job, "\n  needs: strong", "")
    assert bench.complete(job).codes >= {"agreement_voided"}


def test_everything_that_shows_a_job_says_how_strong_its_evidence_is(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS, RUN_CHECK, stakes="high")
    bench.work()
    done = complete(bench.workspace, job.id, unproved_actor())
    assert done.done
    assert {name: strength.level for name, strength in done.strength.items()} == {"AC-1": "fair", "AC-2": "fair"}
    why = run_main(["why", job.id], bench.root).stdout
    assert "fair evidence (fair is needed)" in why
    needs = json.loads(run_main(["why", job.id, "--json"], bench.root).stdout)["data"]["needs"]
    assert [(row["strength"]["level"], row["needs"]) for row in needs] == [("fair", "fair"), ("fair", "fair")]
    limits = {reason["code"] for reason in needs[1]["strength"]["reasons"] if reason["at_most"] == "fair"}
    assert "no_tests_listed" in limits
    answer = dispatch_call(SHOW_JOB, {"job": job.id}, CallContext(bench.root)).data
    assert answer is not None
    assert [(row["strength"], row["needs"]) for row in answer["needs"]] == [("fair", "fair"), ("fair", "fair")]
    assert [row["strength_reasons"] for row in answer["needs"]] == [
        [*status.strength.sentences] for status in seen(bench, job).evidence if status.strength is not None
    ]
    assert "evidence: 2 fair" in entry_text(done.entry)
    again = json.loads(run_main(["complete", job.id, "--json"], bench.root).stdout)["data"]
    assert again["strength"]["AC-1"]["level"] == "fair"


def test_an_attestation_carries_the_strength_and_one_without_it_is_valid(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK, stakes="high")
    bench.work()
    assert bench.complete(job).done
    bench.commit("Done")
    made = tmp_path / "attestation.json"
    assert run_main(["attest", job.id, "--out", str(made)], bench.root).returncode == 0
    attestation = read_attestation(made.read_bytes())
    assert [(row["id"], row["level"]) for row in attestation.statement["predicate"]["strength"]] == [("AC-1", "fair")]
    assert {line.state for line in check_attestation(attestation).lines} <= {"holds", "open"}
    # A better level than the chain says is noticed.
    forged = json.loads(made.read_text())
    forged["predicate"]["strength"][0]["level"] = "strong"
    states = {line.state for line in check_attestation(read_attestation(json.dumps(forged).encode())).lines}
    assert "broken" in states


def test_tests_that_were_agreed_to_are_said_to_be(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", {**SHOP, "tests/test_price.py": TESTS})
    job = bench.job(RUN_TESTS)
    bench.work()
    assert bench.complete(job).done
    reasons = completed(bench, job).strength["AC-1"].reasons
    assert "The command ran with 2 tests that a person agreed to." in reasons
    assert "The controls in the run came out as they must." in reasons


CLAMP = {
    "clamp.py": "def clamp(value, low, high):\n    return None\n",
    "test_clamp.py": "from clamp import clamp\n\n\ndef test_inside():\n    assert clamp(3, 2, 5) == 3\n",
    ".gitignore": "__pycache__/\n",
    "donewhen.toml": "[strength]\ntime = 60\n",
}
CLAMPED = "def clamp(value, low, high):\n    return max(low, min(high, value))\n"
MORE_TESTS = """\
from clamp import clamp


def test_below():
    assert clamp(1, 2, 5) == 2
    assert clamp(2, 2, 5) == 2


def test_above():
    assert clamp(9, 2, 5) == 5
    assert clamp(5, 2, 5) == 5


def test_inside():
    assert clamp(3, 2, 5) == 3
    assert clamp(4, 2, 5) == 4
"""


@pytest.mark.probes
@pytest.mark.skipif(usable_level(None, "own") != "namespaces", reason="strong evidence needs namespaces")
def test_agreed_tests_that_notice_everything_are_strong_and_weaker_ones_are_not(tmp_path: Path) -> None:
    check = f"The tests pass\n  check: run {PYTEST}\n  needs: strong"
    fields = {"outputs": ["/clamp.py"], "work": ["/clamp.py"], "stakes": "critical"}
    reached: dict[str, bool] = {}
    for name, tests in {"more": MORE_TESTS, "few": CLAMP["test_clamp.py"]}.items():
        bench = Bench(tmp_path / name, {**CLAMP, "test_clamp.py": tests})
        job = bench.job(check, **fields)  # type: ignore[arg-type]
        bench.write("clamp.py", CLAMPED)
        result = complete(bench.workspace, job.id, unproved_actor(), probing=Probing())
        (status,) = seen(bench, job).evidence
        assert status.strength is not None
        codes = {reason.code for reason in status.strength.reasons}
        assert {"clean_room", "kept_apart", "environment", "agreed_tests", "controls", "red_before"} <= codes, codes
        assert result.done == (status.strength.level == "strong"), status.strength
        reached[name] = result.done
    assert reached == {"more": True, "few": False}


def test_a_criterion_of_the_project_can_ask_for_a_level_and_a_person_may_accept_less(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    plan = bench.workspace.project().path
    text = plan.read_text()
    wanted = "- It all works\n  check: file /README.md\n  needs: fair\n"
    plan.write_text(re.sub(r"(?s)(## Acceptance Criteria\n\n).*?(\n## )", rf"\1{wanted}\2", text))
    bench.write(README, MANUAL)
    bench.commit()
    job = bench.job(RUN_CHECK)
    bench.work()
    first = complete(bench.workspace, job.id, unproved_actor())
    assert first.done and not first.cascade
    assert "its evidence is weak, and fair is needed" in first.unmet[0]
    assert sign_off_project(bench.workspace, "AC-1", "I read it", PERSON).counts
    again = complete(bench.workspace, job.id, unproved_actor())
    assert [promise.id for promise in again.cascade] == [bench.workspace.project().id]
