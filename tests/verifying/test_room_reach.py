"""What lies outside of the checkout is in the reach of verify's checks if files of the base or environments name it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from verify_room_kit import CHECK, RIGHT, WRONG, RoomShop, found_codes

from donewhen.isolation.usable import why_unusable
from environments.environment_kit import Venv

pytestmark = pytest.mark.scenes

NEEDS_RULES = CHECK.replace("import sys\n", "import sys\n\nimport rules\n", 1).replace("!= 3", "!= rules.SUM")


@pytest.fixture
def venv(tmp_path: Path) -> Venv:
    made = Venv(Path(os.path.realpath(tmp_path)) / "venvs" / "x")
    (made.site / "rules.py").write_text("SUM = 3\n")
    return made


def test_a_recipe_of_the_base_names_an_interpreter_by_its_path(tmp_path: Path, venv: Venv) -> None:
    shop = RoomShop(tmp_path / "shop", {"Makefile": f"test:\n\t{venv.python} check.py\n", "check.py": NEEDS_RULES})
    job = shop.agreed("run make test")
    assert "criterion_failed" in found_codes(shop.pull_request(job, {"src/shop/price.py": f"# Done.\n{WRONG}"}))
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT})
    assert found.passed, found.reasons


def test_what_only_the_branch_names_is_not_in_reach(tmp_path: Path, venv: Venv) -> None:
    if why_unusable("namespaces"):
        pytest.skip("LOUD: namespaces do not work here")
    shop = RoomShop(tmp_path / "shop", {"Makefile": "test:\n\tpython3 check.py\n"})
    job = shop.agreed("run make test")
    uses = f"import subprocess\n\nsubprocess.check_call([{str(venv.python)!r}, '-c', ''])\n{RIGHT}"
    assert "criterion_failed" in found_codes(shop.pull_request(job, {"src/shop/price.py": uses}))
    assert shop.pull_request(job, {"src/shop/price.py": RIGHT}).passed


def test_a_library_beside_the_checkout_that_its_environment_has_as_editable(tmp_path: Path) -> None:
    sibling = Path(os.path.realpath(tmp_path)) / "rules"
    sibling.mkdir()
    (sibling / "rules.py").write_text("SUM = 3\n")
    shop = RoomShop(tmp_path / "shop", {"check.py": NEEDS_RULES, ".gitignore": ".venv/\n"})
    environment = Venv(shop.root / ".venv")
    (environment.site / "rules.pth").write_text(f"{sibling}\n")
    job = shop.agreed("run .venv/bin/python check.py")
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT})
    assert found.passed, found.reasons
