"""The mission pages: the judge's quality, its rules, its runs and people's agreement."""

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
from donewhen.reports.judge_plots import drift_plot
from donewhen.reports.learning_page import learning_sections
from donewhen.reports.phrases import STATUS, headline, plain_sentence, share
from donewhen.review.judge_drift import judge_drift
from donewhen.review.people_agreement import people_agreement
from donewhen.web.page_request import PageRequest
from donewhen.web.rendering import PageContent

T = TypeVar("T")

_STEPS = 40


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
    """Read a mission for display, without running its override code."""
    return read_mission(folder, code=False)


def missions_page(request: PageRequest) -> PageContent:
    """Return the list of missions."""
    rows = [_row(request, name, folder) for name, folder in request.place.missions().items()]
    return PageContent(
        "missions.html",
        "Missions",
        {"rows": rows, "share": share, "status": STATUS, "plain": plain_sentence},
        room="missions",
    )


def mission_page(request: PageRequest) -> PageContent:
    """Return the page of one mission."""
    name = request.names["mission"]
    mission = read_mission_to_show(request.place.mission(name))
    runs = [RunRow(folder.name, read_report(folder)) for folder in reversed(run_folders(mission))]
    newest = next((run.report for run in runs if run.report is not None), None)
    guidance = _or_none(mission.guidance)
    drift = _or_none(lambda: judge_drift(mission))
    people = _or_none(lambda: people_agreement(mission))
    values: dict[str, Any] = {
        "name": name,
        "mission": mission,
        "guidance": guidance,
        "accepted": _accepted(request, name, mission),
        "runs": runs,
        "status": STATUS,
        "share": share,
        "report": newest,
        "plain": plain_sentence(newest.now.confusion) if newest else "",
        "headline": headline(newest) if newest else "",
        "sections": markup(learning_sections(newest)) if newest else "",
        "steps": _steps(mission) if guidance is not None else (),
        "drift": drift,
        "drift_plot": markup(drift_plot(drift)) if drift is not None else "",
        "people": people,
    }
    return PageContent("mission.html", f"Mission {name}", values, room="missions")


def _row(request: PageRequest, name: str, folder: Path) -> MissionRow:
    try:
        mission = read_mission_to_show(folder)
        guidance = mission.guidance()
    except DonewhenError as error:
        return MissionRow(name, None, None, 0, None, False, str(error))
    runs = run_folders(mission)
    last = next((report for run in reversed(runs) if (report := read_report(run)) is not None), None)
    accepted = _accepted(request, name, mission)
    drift = _or_none(lambda: judge_drift(mission))
    return MissionRow(
        name,
        guidance.step,
        accepted.step if accepted else None,
        len(runs),
        last,
        drift is not None and drift.alarm,
    )


def _accepted(request: PageRequest, name: str, mission: Mission) -> AcceptedGuidance | None:
    """Return the guidance step that gates use; None if no gate can use this mission."""
    workspace = request.place.workspace
    return None if workspace is None else _or_none(lambda: accepted_guidance(workspace, name, mission))


def _steps(mission: Mission) -> tuple[Step, ...]:
    """Return the newest steps of the guidance, each with its changes."""
    store = mission.store
    if not store.exists:
        return ()
    steps = []
    for revision in reversed(store.history()[-_STEPS:]):
        with suppress(DonewhenError):
            steps.append(_step(revision, store.at(revision.step - 1), store.at(revision.step)))
    return tuple(steps)


def _step(revision: Revision, before: Guidance, after: Guidance) -> Step:
    gone = tuple((key, text) for key, text in before.rules.items() if after.rules.get(key) != text)
    new = tuple((key, text) for key, text in after.rules.items() if before.rules.get(key) != text)
    return Step(revision, gone, new)


def markup(text: str) -> Any:
    """Mark output of ``donewhen.reports`` as safe: it is markup in which untrusted text is escaped."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - see above


def _or_none(read: Callable[[], T]) -> T | None:
    """Return the result of ``read``, or None on an error, which the page about it reports."""
    with suppress(DonewhenError, OSError):
        return read()
    return None
