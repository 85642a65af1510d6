"""A script that the work ends early gets no promise; one that ends like this without the work, too, does."""

from __future__ import annotations

from pathlib import Path

import pytest
from room_kit import BAD, ENDS, GOOD, LAZY, PRICE, PYTHON, RUN_CHECK, SHOP, Bench, wrote

pytestmark = pytest.mark.scenes

MAIN = "import sys\n\nsys.path.insert(0, 'src')\nfrom shop.price import main\n\nmain()\n"
SELF_TEST = "\n\ndef main():\n    raise SystemExit(total([1, 2]) != 3)\n"


def test_a_script_that_the_work_ends_is_refused_and_honest_work_is_not(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    answers = bench.refuses(
        job,
        {
            "ends the process": wrote({PRICE: f"{LAZY}\n{ENDS}"}),
            "exits": wrote({PRICE: f"{LAZY}\nraise SystemExit(0)\n"}),
            "exits when called": wrote({PRICE: "import sys\n\n\ndef total(prices):\n    sys.exit()\n"}),
            "exits through a library": wrote({PRICE: "import argparse\nargparse.ArgumentParser().exit()\n"}),
            "exits at the end": wrote({PRICE: f"import atexit, os\natexit.register(os._exit, 0)\n{LAZY}"}),
        },
    )
    assert {name: set(answer.codes) for name, answer in answers.items()} == {
        name: {"run_not_trusted"} for name in answers
    }


def test_a_check_of_the_product_itself_may_end_in_it(tmp_path: Path) -> None:
    """It ends there with the agreed files alone, too."""
    bench = Bench(tmp_path / "shop", {**SHOP, PRICE: f"{BAD}{SELF_TEST}", "check.py": MAIN})
    job = bench.job(f"The check passes\n  check: run {PYTHON} check.py")
    bench.write(PRICE, f"{GOOD}{SELF_TEST}")
    assert bench.complete(job).done
