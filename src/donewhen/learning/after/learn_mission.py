"""Learn from a mission's tickets: a run from its beginning or from where it was cut off, and what it leaves behind."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.files import write_atomically
from donewhen.judging.guidance import Guidance, GuidanceError
from donewhen.judging.mission import Mission
from donewhen.judging.mission_budget import open_answer_store
from donewhen.learning.after.report_building import build_report
from donewhen.learning.after.report_data import LearningReport, report_to_json
from donewhen.learning.running.artifacts import write_artifacts
from donewhen.learning.running.events import EventLog, RunError, each_event, first_event
from donewhen.learning.running.learner import Learner
from donewhen.learning.running.pool_store import save_waiting_hypotheses
from donewhen.learning.running.recorder import Watcher
from donewhen.learning.running.run_folders import (
    EVENTS,
    REPORT,
    PreparedRun,
    adopt_guidance,
    lock_runs,
    metered_model_for,
    open_log,
    prepare_resumed_run,
    prepare_run,
    run_folders,
)
from donewhen.learning.running.run_state import RunState
from donewhen.models.metered import MeteredModel
from donewhen.models.roles import Model


class LearnResult(NamedTuple):
    """How a run ended."""

    prepared: PreparedRun
    state: RunState
    report: LearningReport
    guidance: Guidance | None
    """The mission's guidance with what was learned in it; None where nothing was, or it could not be adopted."""
    problem: GuidanceError | None = None
    """Why what was learned was not adopted."""


def learn(
    mission: Mission, model: Model, watcher: Watcher | None = None, *, resume: Path | None = None, adopting: bool = True
) -> LearnResult:
    """Run to the end. Cut off in between, everything up to the last event is kept, and ``resume`` goes on from there.

    What was learned becomes the mission's guidance, unless ``adopting`` is False.
    """
    with lock_runs(mission), open_answer_store(mission) as answers:
        prepared = prepare_run(mission, model) if resume is None else prepare_resumed_run(mission, model, resume)
        log = open_log(prepared)
        asking = metered_model_for(prepared, model, answers)
        learner = Learner(prepared.mission, prepared.book, prepared.splits, asking, log, prepared.manifest, watcher)
        try:
            asyncio.run(_to_the_end(learner, asking))
        except BaseException:
            with suppress(OSError):
                # Why it broke off is what people need to hear; what could not be left behind can be made again.
                _leave_behind(prepared, log, learner.state)
            raise
        try:
            _leave_behind(prepared, log, learner.state)
            report = build_report(prepared, learner.state, openings=_openings(mission, prepared))
            guidance, problem = None, None
            if adopting and learner.state.changes:
                try:
                    guidance = adopt_guidance(mission, learner.state, prepared.id)
                except GuidanceError as error:
                    problem = error
            if adopting and problem is None:
                save_waiting_hypotheses(mission, learner.state, prepared.id)
            # Last, because a run that has its report has left nothing undone.
            write_atomically(prepared.folder / REPORT, report_to_json(report))
        except OSError as error:
            raise RunError(
                f"The run has ended, and what it leaves behind can't be written: {error.strerror}.",
                where=str(prepared.folder),
                next_step="Make room, then: donewhen learn --resume",
            ) from error
    return LearnResult(prepared, learner.state, report, guidance, problem)


async def _to_the_end(learner: Learner, asking: MeteredModel) -> None:
    try:
        await learner.run()
    finally:
        await asking.aclose()


def _leave_behind(prepared: PreparedRun, log: EventLog, state: RunState) -> None:
    log.close()
    if state.manifest:
        write_artifacts(prepared.folder, each_event(log.path), state, prepared.mission.clock)


def _openings(mission: Mission, prepared: PreparedRun) -> int:
    """How many runs have looked at these very test tickets, this one included."""
    wanted = prepared.splits.hashes["test"]
    found = 0
    for folder in run_folders(mission):
        first = first_event(folder / EVENTS)
        found += first is not None and first.data.get("splits", {}).get("hashes", {}).get("test") == wanted
    return max(1, found)
