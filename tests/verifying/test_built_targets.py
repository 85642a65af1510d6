"""What stands in the way of a check is no more in CI's room than in a local one."""

from __future__ import annotations

from pathlib import Path

import pytest
from verify_kit import outcome
from verify_room_kit import PYTHON, RIGHT, WRONG, RoomShop

pytestmark = pytest.mark.scenes

PRICE = "src/shop/price.py"
MAKEFILE = (
    f"all: docs/report.txt docs/ok\ndocs/report.txt: {PRICE} check.py\n\t{PYTHON} check.py\n\techo ok > $@\n"
    f"docs/ok:\n\t{PYTHON} check.py\n"
)


def test_a_target_that_the_branch_brings_is_built_again(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "shop", {"Makefile": MAKEFILE, "docs/a.txt": "a\n"})
    job = shop.agreed("run make all", work=("/src/shop/**", "/docs/**"))
    lazy = {PRICE: f"# Lazy.\n{WRONG}", "docs/report.txt": "ok\n", "docs/ok": "ok\n"}
    assert outcome(shop.pull_request(job, lazy), job) == "failed"
    found = shop.pushed(job, {PRICE: RIGHT})
    assert found.passed, found.reasons
