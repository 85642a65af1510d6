"""Learn from a mission's tickets: execute or resume a run, write its files and adopt its guidance."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from donewhen.foundation.coroutines import run_awaitable
from donewhen.foundation.errors import ExitCode
from donewhen.foundation.files import write_atomically
from donewhen.judging.guidance import Guidance, GuidanceError
from donewhen.judging.mission import Mission
from donewhen.judging.mission_budget import open_answer_store
from donewhen.learning.after.adoption import Adoption, adoption_of
from donewhen.learning.after.gates_after_run import GatesAfterRun, update_gates
from donewhen.learning.after.report_building import build_report
from donewhen.learning.after.report_data import LearningReport, report_to_json
from donewhen.learning.running.artifacts import write_artifacts
from donewhen.learning.running.event_content import RunStarted
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


@dataclass(frozen=True)
class LearnResult:
    """The result of a run."""

    prepared: PreparedRun
    state: RunState
    report: LearningReport
    guidance: Guidance | None
    """The mission's new guidance; None if nothing was learned or it was not adopted."""
    problem: GuidanceError | None = None
    """Why the learned guidance was not adopted."""
    adoption: Adoption = field(default_factory=partial(Adoption, accepted=True))
    """Whether the learned guidance was good enough to be adopted."""
    gates: GatesAfterRun | None = None
    """What the gates of the mission's project use now; None if no gate uses the mission."""

    @property
    def exit_code(self) -> ExitCode:
        """GATE_FAILED if no answer of reflection was usable, or if what was learned is not good enough.

        Neither is the same as nothing to learn.
        """
        failed = self.state.status == "no_usable_reflection" or not self.adoption.accepted
        return ExitCode.GATE_FAILED if failed else ExitCode.PASS


def learn(
    mission: Mission, model: Model, watcher: Watcher | None = None, *, resume: Path | None = None, adopting: bool = True
) -> LearnResult:
    """Execute a run. If it is interrupted, all events so far are kept, and ``resume`` continues from there.

    The learned guidance becomes the mission's guidance if it is better than no judge and than the guidance before,
    unless ``adopting`` is False. Otherwise it stays in the run's folder. The gates of its project use it at once if
    ``judge.trial_accepts`` was agreed and the trials of the run cover it.
    """
    with lock_runs(mission), open_answer_store(mission) as answers:
        prepared = prepare_run(mission, model) if resume is None else prepare_resumed_run(mission, model, resume)
        log = open_log(prepared)
        metered = metered_model_for(prepared, model, answers)
        learner = Learner(prepared.mission, prepared.reader, prepared.splits, metered, log, prepared.manifest, watcher)
        try:
            run_awaitable(_run_and_close(learner, metered))
        except BaseException:
            with suppress(OSError):
                # Don't hide the original error: the files can be rebuilt from the events.
                _write_files(prepared, log, learner.state)
            raise
        try:
            _write_files(prepared, log, learner.state)
            clusters = {member.key: member.cluster for member in prepared.reader.members}
            adoption = adoption_of(learner.state, prepared.mission.settings, clusters)
            report = build_report(
                prepared, learner.state, openings=_count_test_openings(mission, prepared), adoption=adoption
            )
            guidance, problem = None, None
            if adopting and learner.state.changes and adoption.accepted:
                try:
                    guidance = adopt_guidance(mission, learner.state, prepared.id)
                except GuidanceError as error:
                    problem = error
            if adopting and problem is None:
                save_waiting_hypotheses(mission, learner.state, prepared.id)
            # Written last: the report marks a complete run.
            write_atomically(prepared.folder / REPORT, report_to_json(report))
        except OSError as error:
            raise RunError(
                f"The run has ended, but its files can't be written: {error.strerror}.",
                where=str(prepared.folder),
                next_step="Free disk space, then: donewhen learn --resume",
            ) from error
    gates = update_gates(mission, prepared, guidance)
    return LearnResult(prepared, learner.state, report, guidance, problem, adoption, gates)


async def _run_and_close(learner: Learner, metered: MeteredModel) -> None:
    try:
        await learner.run()
    finally:
        await metered.aclose()


def _write_files(prepared: PreparedRun, log: EventLog, state: RunState) -> None:
    log.close()
    if state.manifest:
        write_artifacts(prepared.folder, each_event(log.path), state, prepared.mission.clock)


def _count_test_openings(mission: Mission, prepared: PreparedRun) -> int:
    """How many runs have evaluated the same test tickets, including this run."""
    test_hash = prepared.splits.hashes["test"]
    count = 0
    for folder in run_folders(mission):
        first = first_event(folder / EVENTS)
        count += first is not None and first.read_as(RunStarted).splits.hashes.get("test") == test_hash
    return max(1, count)
