"""Fail if the coverage of the deciding code is too low. Run it after the tests: python -m tools.coverage_floor"""

from __future__ import annotations

import io
import sys

import coverage

FLOORS = {"completion": 95.0, "jobs": 95.0, "judging": 95.0, "learning": 95.0}


def main() -> int:
    data = coverage.Coverage()
    data.load()
    status = 0
    for room, floor in FLOORS.items():
        reached = data.report(include=[f"*/donewhen/{room}/*"], file=io.StringIO(), show_missing=False)
        print(f"branch coverage of donewhen.{room}: {reached:.1f} % (floor {floor:g} %)")
        if reached < floor:
            data.report(include=[f"*/donewhen/{room}/*"], show_missing=True, skip_covered=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
