"""Several jobs of one pull request: each is judged with its own work area, and what is equal is done once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from verify_kit import outcome
from verify_room_kit import FILES, PYTHON, RIGHT, RoomShop, found_codes

from donewhen.jobs.evidence.placed_runs import RoomPlace
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.plan.job import Job
from donewhen.jobs.verifying import Verification, rooms, verify_branch

pytestmark = pytest.mark.scenes

ASKS_TAX = f"run {PYTHON} tax.py"
TAX_CHECK = "import sys\n\nsys.path.insert(0, 'src')\nfrom tax.rate import RATE\n\nsys.exit(RATE != 2)\n"
TAX = {"src/tax/__init__.py": "", "src/tax/rate.py": "RATE = 0\n", "tax.py": TAX_CHECK}
HOLLOW = "def test_sum():\n    assert True\n\n\ndef test_nothing():\n    assert True\n"


@pytest.fixture
def shop(tmp_path: Path) -> RoomShop:
    return RoomShop(tmp_path / "shop", TAX)


def both(shop: RoomShop, first: Job, second: Job, changes: dict[str, str]) -> Verification:
    shop.git("switch", "-q", "-C", "agent", "main")
    for name, text in changes.items():
        shop.write(name, text)
    shop.commit("The work")
    return verify_branch(shop.workspace, "main", jobs=[first.id, second.id])


def test_what_another_job_may_change_still_judges_this_one(shop: RoomShop) -> None:
    price = shop.agreed(work=("/src/shop/**",))
    tests = shop.agreed(ASKS_TAX, title="Better checks", outputs=("/check.py",), work=("/src/tax/**",))
    work = {"src/tax/rate.py": "RATE = 2\n", "check.py": "# Everything is fine.\n"}
    found = both(shop, price, tests, work)
    assert outcome(found, price) == "failed"
    assert outcome(found, tests) == "passed"
    assert "outside_work_area" in found_codes(found)
    # A better check that the work meets needs nobody.
    better = FILES["check.py"] + "assert total([1, 1, 1]) == 3\n"
    found = both(shop, price, tests, {**work, "src/shop/price.py": RIGHT, "check.py": better})
    assert found.passed, found.reasons


def test_tests_that_another_job_may_change_are_the_agreed_ones_for_this_one(shop: RoomShop) -> None:
    run = f"run {PYTHON} -m pytest -q -p no:cacheprovider"
    price = shop.agreed(run, work=("/src/shop/**",))
    tests = shop.agreed(ASKS_TAX, title="Tests", outputs=("/tests/test_price.py",), work=("/src/tax/**",))
    work = {"src/tax/rate.py": "RATE = 2\n", "tests/test_price.py": HOLLOW}
    found = both(shop, price, tests, work)
    assert outcome(found, price) == "failed"
    assert found_codes(found) >= {"tests_changed"}
    found = both(shop, price, tests, {**work, "src/shop/price.py": RIGHT})
    assert found.passed, found.reasons


def test_a_check_may_not_write_to_the_work_of_another_job(shop: RoomShop) -> None:
    writes = f"run {PYTHON} -c \"open('src/shop/price.py', 'a').write('# Seen.')\""
    price = shop.agreed(writes)
    tax = shop.agreed(writes, title="The rate", outputs=("/src/tax/rate.py",), work=("/src/tax/**",))
    found = both(shop, price, tax, {"src/tax/rate.py": "RATE = 2\n", "src/shop/price.py": RIGHT})
    assert outcome(found, price) == "passed"
    assert outcome(found, tax) == "failed"


def test_a_job_is_judged_on_the_work_of_the_others(shop: RoomShop) -> None:
    """Neither of them waits for a person, whichever comes first."""
    needs_both = f"run {PYTHON} -c \"import runpy; runpy.run_path('tax.py')\""
    tax = shop.agreed(ASKS_TAX, title="The rate", outputs=("/src/tax/rate.py",), work=("/src/tax/**",))
    price = shop.agreed(needs_both)
    found = both(shop, tax, price, {"src/tax/rate.py": "RATE = 2\n", "src/shop/price.py": RIGHT})
    assert found.passed, found.reasons
    assert found.notes == ()


def test_what_jobs_have_in_common_is_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Different work areas and the same files: one folder, and one run of each command."""
    shop = RoomShop(tmp_path / "shop", {f"src/part{n}/x.py": "X = 0\n" for n in range(5)})
    jobs = [
        shop.agreed(title=f"Part {n}", outputs=(f"/src/part{n}/x.py",), work=(f"/src/part{n}/**", "/src/shop/**"))
        for n in range(5)
    ]
    places: list[Path] = []
    run_in_place = rooms.run_in_place

    def counting(place: RoomPlace, *arguments: Any) -> ReportedRun:
        places.append(place.folder)
        return run_in_place(place, *arguments)

    monkeypatch.setattr(rooms, "run_in_place", counting)
    shop.git("switch", "-q", "-c", "agent")
    for n in range(5):
        shop.write(f"src/part{n}/x.py", "X = 1\n")
    shop.write("src/shop/price.py", RIGHT)
    shop.commit("The work")
    found = verify_branch(shop.workspace, "main", jobs=[job.id for job in jobs])
    assert found.passed, found.reasons
    assert [place.name for place in places] == ["own"]


def test_preparation_that_fails_fails_every_job_that_needs_it(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "shop", {"build.py": "import sys\nsys.exit(0)\n", "src/shop/built.txt": "0\n"})
    field = f"prepare:\n- {PYTHON} -c \"import sys; sys.exit(open('src/shop/built.txt').read() != '0\\n')\""
    first = shop.agreed(fields=field)
    second = shop.agreed(title="Another", fields=field)
    found = both(shop, first, second, {"src/shop/built.txt": "1\n", "src/shop/price.py": RIGHT})
    for job in (first, second):
        assert outcome(found, job, "prepare") == "failed"
    assert both(shop, first, second, {"src/shop/price.py": RIGHT}).passed
