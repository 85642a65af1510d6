"""Try every trick against the gates and write the results to a page: python -m tools.adversarial_page [--check]"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests" / "adversarial"
MODULES = ("test_gate_tricks", "test_gate_tricks_running", "test_gate_tricks_judge", "test_gate_tricks_record")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.adversarial_page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is not up to date")
    check: bool = parser.parse_args().check
    sys.path[:0] = [str(TESTS), str(TESTS.parent)]
    kit: Any = importlib.import_module("gate_kit")
    rows = []
    for trick in [trick for name in MODULES for trick in importlib.import_module(name).TRICKS]:
        with tempfile.TemporaryDirectory() as folder:
            _, answer = kit.played(kit.Shop(Path(folder).resolve()), trick.play)
        if answer.promises:
            print(f"{trick.id} is not refused:\n{answer.stdout}", file=sys.stderr)
            return 1
        rows.append((trick, answer.codes))
    made: str = kit.page(rows)
    if check:
        return 0 if kit.PAGE.read_text(encoding="utf-8") == made else 1
    kit.PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
