"""The page of a learning run, during and after it, computed from its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from donewhen.foundation.errors import DonewhenError
from donewhen.learning.after.report_data import read_report
from donewhen.learning.running.run_folders import EVENTS, run_folders, run_state_of
from donewhen.reports.judge_plots import EpochPoint, learning_curve
from donewhen.reports.learning_page import learning_sections
from donewhen.reports.phrases import duration, headline, large_count, money
from donewhen.web.mission_pages import markup, read_mission_to_show
from donewhen.web.page_request import PageRequest
from donewhen.web.project_folder import PageNotFoundError
from donewhen.web.rendering import PageContent

_CHANGES = 40
_LARGEST = 256 * 1024 * 1024


def run_page(request: PageRequest) -> PageContent:
    """Return the page of a run in its current state."""
    name, wanted = request.names["mission"], request.names["run"]
    mission = read_mission_to_show(request.place.mission(name))
    folder = next((candidate for candidate in run_folders(mission) if candidate.name == wanted), None)
    if folder is None:
        raise PageNotFoundError(f"There is no run {wanted!r}.", next_step=f"donewhen learn {name}")
    if (folder / EVENTS).stat().st_size > _LARGEST:
        raise DonewhenError(
            "The run has too many events for this page.", where=str(folder), next_step="See its report.html."
        )
    state = run_state_of(folder)
    report = read_report(folder)
    manifest = state.manifest
    sizes = manifest.get("splits", {}).get("sizes", {})
    epochs = manifest.get("settings", {}).get("epochs", 0)
    points = [
        EpochPoint(
            epoch.number,
            _part(epoch.ended, "train_accuracy"),
            _part(epoch.ended, "validation_before"),
            _part(epoch.ended, "validation_after"),
            f"{epoch.changes} of {epoch.changes + epoch.refused}",
        )
        for epoch in state.epochs
    ]
    values: dict[str, Any] = {
        "name": name,
        "run": wanted,
        "state": state,
        "sizes": sizes,
        "epochs": epochs,
        "measured": {when: len(rows) for when, rows in state.evaluations.items()},
        "spent": _spent(state.spent),
        "curve": markup(learning_curve(points)),
        "changes": list(reversed(state.changes))[:_CHANGES],
        "waiting": sum(hypothesis.fate == "waiting" for hypothesis in state.pool.values()),
        "report": report,
        "headline": headline(report) if report else "",
        "sections": markup(learning_sections(report)) if report else "",
    }
    return PageContent("run.html", f"Run {wanted} of {name}", values, room="missions")


def _part(data: Mapping[str, Any] | None, name: str) -> float | None:
    value = (data or {}).get(name)
    return float(value) if isinstance(value, int | float) else None


def _spent(spent: Mapping[str, float]) -> dict[str, str]:
    tokens = spent.get("prompt_tokens", 0) + spent.get("completion_tokens", 0)
    return {
        "calls": large_count(spent.get("calls", 0)),
        "tokens": large_count(tokens),
        "cached tokens": large_count(spent.get("cached_tokens", 0)),
        "money": money(spent.get("cost", 0)),
        "time": duration(spent.get("seconds", 0)),
    }
