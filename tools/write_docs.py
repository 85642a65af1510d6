"""Write the pages and pictures that are generated from the code: python -m tools.write_docs [--check]"""

from __future__ import annotations

import argparse
import operator
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tools.api_reference import api_page, errors_page
from tools.command_reference import cli_page, reasons_page
from tools.job_states_page import job_states_page
from tools.learning_reference import learning_reasons_page
from tools.limits_reference import limits_page
from tools.mission_reference import mission_settings_page
from tools.pictures import demo_svg, house_svg, same_story
from tools.settings_reference import settings_page

DOCS = Path(__file__).parents[1] / "docs"

_NOTE = "<!-- Written by tools/write_docs.py from the code. Change the code, then run: make docs -->\n\n"


class Product(NamedTuple):
    """How a file is generated, and how it is compared with the existing one."""

    make: Callable[[], str]
    same: Callable[[str, str], bool] = operator.eq


PRODUCTS = {
    "reference/api.md": Product(lambda: _NOTE + api_page()),
    "reference/cli.md": Product(lambda: _NOTE + cli_page()),
    "reference/errors.md": Product(lambda: _NOTE + errors_page()),
    "reference/job-states.md": Product(lambda: _NOTE + job_states_page()),
    "reference/learning-reasons.md": Product(lambda: _NOTE + learning_reasons_page()),
    "reference/limits.md": Product(lambda: _NOTE + limits_page()),
    "reference/mission-settings.md": Product(lambda: _NOTE + mission_settings_page()),
    "reference/reasons.md": Product(lambda: _NOTE + reasons_page()),
    "reference/settings.md": Product(lambda: _NOTE + settings_page()),
    "images/demo.svg": Product(lambda: demo_svg(2, 3), same_story),
    "images/demo-judge.svg": Product(lambda: demo_svg(4, 5), same_story),
    "images/house.svg": Product(house_svg),
    "images/house-jobs.svg": Product(lambda: house_svg("donewhen.jobs")),
    "images/house-learning.svg": Product(lambda: house_svg("donewhen.learning")),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.write_docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not up to date")
    check: bool = parser.parse_args().check
    stale = []
    for name, product in PRODUCTS.items():
        path = DOCS / name
        made = product.make()
        if path.exists() and product.same(path.read_text(encoding="utf-8"), made):
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made, encoding="utf-8")
    if check and stale:
        print(f"Not up to date: {', '.join(stale)}. Run: make docs", file=sys.stderr)
        return 1
    print(f"{len(PRODUCTS)} files up to date, {len(stale)} of them written now." if not check else "All up to date.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
