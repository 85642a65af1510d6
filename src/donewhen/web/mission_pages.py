"""Missions: how good the judge is, by which rules, what it learned and from whom."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.judge.missions import AcceptedGuidance, accepted_guidance
from donewhen.judging.guidance import Guidance
from donewhen.judging.guidance_store import Revision
from donewhen.judging.mission import Mission, read_mission
from donewhen.learning.after.report_data import LearningReport, read_report
from donewhen.learning.running.run_folders import run_folders
from donewhen.reports import plots
from donewhen.reports.learning_page import learning_sections
from donewhen.reports.phrases import STATUS, headline, share
from donewhen.review.judge_drift import Drift, judge_drift
from donewhen.review.people_agreement import people_agreement
from donewhen.web.page_request import PageRequest
from donewhen.web.rendering import PageContent

T = TypeVar("T")

_STEPS = 40
_POINTS = 200


class MissionRow(NamedTuple):
    """A mission in the list."""

    name: str
    step: int | None
    accepted: int | None
    runs: int
    last: LearningReport | None
    alarm: bool
    problem: str = ""


class Step(NamedTuple):
    """One step of the guidance, with what it changed."""

    revision: Revision
    removed: tuple[tuple[str, str], ...]
    added: tuple[tuple[str, str], ...]


class RunRow(NamedTuple):
    """A run in the list."""

    name: str
    report: LearningReport | None


def read_mission_to_show(folder: Path) -> Mission:
    """A mission for looking at: its overrides are code, and looking runs nobody's code."""
    return read_mission(folder, code=False)


def missions_page(asked: PageRequest) -> PageContent:
    """All missions."""
    rows = [_row(asked, name, folder) for name, folder in asked.place.missions().items()]
    return PageContent("missions.html", "Missions", {"rows": rows, "share": share, "status": STATUS}, room="missions")


def mission_page(asked: PageRequest) -> PageContent:
    """One mission."""
    name = asked.names["mission"]
    mission = read_mission_to_show(asked.place.mission(name))
    runs = [RunRow(folder.name, read_report(folder)) for folder in reversed(run_folders(mission))]
    newest = next((run.report for run in runs if run.report is not None), None)
    guidance = _or_none(mission.guidance)
    drifted = _or_none(lambda: judge_drift(mission))
    people = _or_none(lambda: people_agreement(mission))
    values: dict[str, Any] = {
        "name": name,
        "mission": mission,
        "guidance": guidance,
        "accepted": _accepted(asked, name, mission),
        "runs": runs,
        "status": STATUS,
        "share": share,
        "report": newest,
        "headline": headline(newest) if newest else "",
        "sections": markup(learning_sections(newest)) if newest else "",
        "steps": _steps(mission) if guidance is not None else (),
        "drift": drifted,
        "drift_plot": markup(mission_drift_plot(drifted)) if drifted is not None else "",
        "people": people,
    }
    return PageContent("mission.html", f"Mission {name}", values, room="missions")


def mission_drift_plot(found: Drift) -> str:
    """How often judge and people agree, over time, beside the share below which it is an alarm."""
    points = found.points[-_POINTS:]
    if not points:
        return ""
    lines = [
        plots.PlotLine("judge and people agree", [point.share for point in points], "now"),
        plots.PlotLine("alarm below", [found.threshold] * len(points), "bad"),
    ]
    title = f"Agreement over the newest {found.window} verdicts of people"
    return plots.curve(title, [point.number for point in points], lines)


def _row(asked: PageRequest, name: str, folder: Path) -> MissionRow:
    try:
        mission = read_mission_to_show(folder)
        guidance = mission.guidance()
    except DonewhenError as error:
        return MissionRow(name, None, None, 0, None, False, str(error))
    runs = run_folders(mission)
    last = next((report for run in reversed(runs) if (report := read_report(run)) is not None), None)
    holds = _accepted(asked, name, mission)
    drifted = _or_none(lambda: judge_drift(mission))
    return MissionRow(
        name,
        guidance.step,
        holds.step if holds else None,
        len(runs),
        last,
        drifted is not None and drifted.alarm,
    )


def _accepted(asked: PageRequest, name: str, mission: Mission) -> AcceptedGuidance | None:
    """The step that gates follow; None where no gates can ask this mission."""
    workspace = asked.place.workspace
    return None if workspace is None else _or_none(lambda: accepted_guidance(workspace, name, mission))


def _steps(mission: Mission) -> tuple[Step, ...]:
    """The newest steps of the guidance, each beside the one before."""
    store = mission.store
    if not store.exists:
        return ()
    found = []
    for revision in reversed(store.history()[-_STEPS:]):
        with suppress(DonewhenError):
            found.append(_step(revision, store.at(revision.step - 1), store.at(revision.step)))
    return tuple(found)


def _step(revision: Revision, before: Guidance, after: Guidance) -> Step:
    gone = tuple((key, text) for key, text in before.rules.items() if after.rules.get(key) != text)
    new = tuple((key, text) for key, text in after.rules.items() if before.rules.get(key) != text)
    return Step(revision, gone, new)


def markup(text: str) -> Any:
    """What ``donewhen.reports`` has made: markup already, with everything foreign in it escaped."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - see above


def _or_none(ask: Callable[[], T]) -> T | None:
    """An answer, where there is one: what can't be read is said by the page that is about it."""
    with suppress(DonewhenError, OSError):
        return ask()
    return None
