"""What CI says about lines of a branch that reach for what tests them, and whose acceptance counts there."""

from __future__ import annotations

from pathlib import Path

import pytest
from verify_room_kit import RIGHT, RUN_TESTS, WRONG, RoomShop, found_codes

from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.signing import create_key_file, open_key
from donewhen.jobs.lifecycle.deciding_signs import accept_signs, open_signs_of
from donewhen.jobs.plan.job import Job
from sentences import assert_sentences

pytestmark = pytest.mark.scenes

WATCHED = 'import os\n\n\ndef total(prices):\n    return sum(prices) if "PYTEST_CURRENT_TEST" in os.environ else 0\n'


@pytest.fixture
def shop(tmp_path: Path) -> RoomShop:
    return RoomShop(tmp_path / "shop")


def _accept(shop: RoomShop, job: Job, approval: Approval) -> None:
    job = shop.workspace.job(job.id)
    accept_signs(shop.workspace, job, open_signs_of(shop.workspace, job), "", approval)


def test_work_that_knows_when_it_is_tested_is_not_verified(shop: RoomShop) -> None:
    job = shop.agreed(RUN_TESTS)
    found = shop.pull_request(job, {"src/shop/price.py": WATCHED})
    assert found_codes(found) == {"signs_found", "score_too_low"}
    (reason,) = [reason for reason in found.reasons if reason.code == "signs_found"]
    assert_sentences(reason.message, reason.next or "")
    found = shop.pushed(job, {"src/shop/price.py": RIGHT})
    assert found.passed, found.reasons


def test_what_a_key_of_the_base_accepts_counts_and_what_a_person_accepts_on_the_branch_does_not(
    shop: RoomShop, tmp_path: Path
) -> None:
    key = create_key_file(tmp_path / "key", "pass phrase")
    create_key_file(tmp_path / "other", "pass phrase")
    shop.write("donewhen.toml", f'[approval]\nkeys = ["{key}"]\n')
    job = shop.agreed(RUN_TESTS)
    assert "signs_found" in found_codes(shop.pull_request(job, {"src/shop/price.py": WATCHED}))
    _accept(shop, job, Approval(person_at_terminal()))
    assert "signs_found" in found_codes(shop.pushed(job, {}))
    shop.git("reset", "-q", "--hard", "HEAD~1")
    _accept(shop, job, Approval(Actor("other", "key"), *open_key(tmp_path / "other", "pass phrase")))
    assert "signs_found" in found_codes(shop.pushed(job, {}))
    shop.git("reset", "-q", "--hard", "HEAD~1")
    _accept(shop, job, Approval(Actor("release", "key"), *open_key(tmp_path / "key", "pass phrase")))
    found = shop.pushed(job, {})
    assert found.passed, found.reasons
    # It is about these lines, and no others.
    found = shop.pushed(job, {"src/shop/price.py": WATCHED.replace("else 0", "else 1")})
    assert "signs_found" in found_codes(found)


def test_what_a_person_accepted_counts_once_it_is_merged_to_the_base(shop: RoomShop) -> None:
    job = shop.agreed(RUN_TESTS)
    assert "signs_found" in found_codes(shop.pull_request(job, {"src/shop/price.py": WATCHED}))
    _accept(shop, job, Approval(person_at_terminal()))
    shop.commit("Accepted")
    shop.git("switch", "-q", "main")
    shop.git("checkout", "agent", "--", ".donewhen", "jobs")
    shop.commit("Accepted, on main")
    shop.git("switch", "-q", "agent")
    shop.git("rebase", "-q", "main")
    found = shop.looked(job)
    assert found.passed, found.reasons


def test_exceptions_count_as_the_base_has_them(shop: RoomShop) -> None:
    job = shop.agreed(RUN_TESTS)
    setting = '[jobs]\nsigns_allowed = ["/src/**: test-machinery"]\n'
    found = shop.pull_request(job, {"src/shop/price.py": WATCHED, "donewhen.toml": setting})
    assert "signs_found" in found_codes(found)


def test_an_exception_on_the_base_counts(shop: RoomShop) -> None:
    shop.write("donewhen.toml", '[jobs]\nsigns_allowed = ["/src/**: test-machinery"]\n')
    job = shop.agreed(RUN_TESTS)
    found = shop.pull_request(job, {"src/shop/price.py": WATCHED})
    assert found.passed, found.reasons


def test_a_failing_check_is_reported_as_that(shop: RoomShop) -> None:
    job = shop.agreed(RUN_TESTS)
    found = shop.pull_request(job, {"src/shop/price.py": WATCHED.replace("sum(prices) if", "7 if")})
    assert "signs_found" not in found_codes(found)
    assert WRONG != RIGHT
