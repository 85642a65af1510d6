"""A pytest plugin that runs the named tests in the given order and records their results.

The name of a test without its parameters selects all its cases.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_seconds: dict[str, float] = {}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = os.environ.get("MUTANTS_TESTS")
    if not chosen:
        return
    order = {name: at for at, name in enumerate(json.loads(Path(chosen).read_text(encoding="utf-8")))}
    places = {item.nodeid: order.get(item.nodeid, order.get(item.nodeid.partition("[")[0])) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if places[item.nodeid] is None])
    items[:] = sorted(
        (item for item in items if places[item.nodeid] is not None), key=lambda item: places[item.nodeid] or 0
    )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if report.outcome != "passed" or report.when == "teardown":
        outcome = "skipped" if report.skipped else "failed" if report.failed else "passed"
        _write(report.nodeid, outcome, _seconds[report.nodeid], report.longreprtext if report.failed else "")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _write(report.nodeid, "failed", 0.0, report.longreprtext)


def _write(name: str, outcome: str, seconds: float, text: str) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        # The process that started the workers writes it.
        return
    line = {"test": name, "outcome": outcome, "seconds": round(seconds, 3), "text": text[-2000:]}
    with Path(os.environ["MUTANTS_REPORT"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
