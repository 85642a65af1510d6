"""The run folders of a mission; only one run may write at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from donewhen import __version__
from donewhen.foundation.canonical import canonical_json, digest
from donewhen.foundation.clock import Clock
from donewhen.foundation.errors import UsageError
from donewhen.foundation.files import read_limited
from donewhen.foundation.locks import LockedError, locked
from donewhen.foundation.size_limits import CODE
from donewhen.judging.guidance import Guidance, GuidanceError
from donewhen.judging.judge import calls_per_ticket
from donewhen.judging.mission import Mission
from donewhen.judging.mission_budget import RUNS, spending_limits
from donewhen.judging.mission_overrides import NamedOverride, load_overrides
from donewhen.judging.mission_settings import MissionFile
from donewhen.learning.measuring.splits import PARTS, Splits, split_tickets
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.reflection.hypotheses import PooledHypothesis
from donewhen.learning.running.events import EventLog, RunError, each_event, first_event
from donewhen.learning.running.pool_store import carried_over_hypotheses
from donewhen.learning.running.run_state import RunState, fold_events, initial_guidance_of, pool_at_start
from donewhen.models.answer_store import AnswerStore
from donewhen.models.metered import Meter, MeteredModel
from donewhen.models.roles import Model

MANIFEST = "donewhen/learning-run/v1"
EVENTS = "events.jsonl"
REPORT = "report.json"


@dataclass(frozen=True)
class PreparedRun:
    """Everything that a run starts from."""

    folder: Path
    mission: Mission
    reader: TicketReader
    splits: Splits
    manifest: Mapping[str, Any]

    @property
    def id(self) -> str:
        return self.folder.name


def runs_folder(mission: Mission) -> Path:
    return mission.folder / RUNS


def run_folders(mission: Mission) -> tuple[Path, ...]:
    """The runs of a mission, oldest first."""
    logs = runs_folder(mission).glob(f"*/{EVENTS}")
    return tuple(sorted((log.parent for log in logs), key=lambda folder: folder.name))


def find_run(mission: Mission, name: str | None) -> Path:
    """Find a run by name, or the newest; raise RunError if there is none."""
    folders = run_folders(mission)
    chosen = folders[-1:] if name is None else [folder for folder in folders if folder.name == name]
    if not chosen:
        message = "There is no run yet." if name is None else f"There is no run {name!r}."
        names = ", ".join(folder.name for folder in folders[-5:])
        raise RunError(
            message, where=str(runs_folder(mission)), next_step=f"Newest runs: {names}." if names else "donewhen learn"
        )
    return chosen[0]


def unfinished_run(mission: Mission) -> Path | None:
    """The newest started run, if it was interrupted before its end or before its report was written; else None."""
    started = [folder for folder in run_folders(mission) if first_event(folder / EVENTS) is not None]
    return started[-1] if started and not (is_over(started[-1]) and (started[-1] / REPORT).is_file()) else None


def run_to_resume(mission: Mission, name: str | None = None) -> Path:
    """The run with this name, or the newest run if it was interrupted; raise UsageError if there is none."""
    if name is not None:
        return find_run(mission, name)
    folder = unfinished_run(mission)
    if folder is None:
        newest = find_run(mission, None)
        over = " It has ended." if is_over(newest) else ""
        raise UsageError(
            f"There is no interrupted run. The newest run is {newest.name}.{over}", next_step="donewhen learn"
        )
    return folder


def has_new_run(mission: Mission, earlier: Container[Path]) -> bool:
    """Whether a run has recorded events that is not one of the ``earlier`` ones."""
    return any(first_event(folder / EVENTS) is not None for folder in run_folders(mission) if folder not in earlier)


def run_state_of(folder: Path) -> RunState:
    """The state of a run, folded from its events."""
    return fold_events(each_event(folder / EVENTS))


def is_over(folder: Path) -> bool:
    """Whether a run has finished."""
    # Iterated, because a run on many tickets has gigabytes of events.
    last = deque(each_event(folder / EVENTS), maxlen=1)
    return bool(last) and last[0].type == "run_finished"


@contextmanager
def lock_runs(mission: Mission) -> Iterator[None]:
    """Lock the mission's runs; raise RunError at once if another run holds the lock."""
    path = runs_folder(mission) / ".lock"
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path, wait=0.0))
        except LockedError as error:
            raise RunError(
                "Another run of this mission is in progress.",
                where=str(path),
                next_step=f"Wait for it, or stop it. ({error.message})",
            ) from error
        yield


def prepare_run(mission: Mission, model: Model) -> PreparedRun:
    """Prepare a new run: read and split the tickets, and build the manifest."""
    reader = TicketReader(mission)
    splits = split_tickets(reader.members, mission.settings.split, mission.settings.seed)
    _check_splits(mission, model, splits)
    # Checked first, so that an error leaves no empty folder.
    spending_limits(mission, model)
    folder = _new_folder(mission)
    start = mission.guidance(), carried_over_hypotheses(mission, splits.train)
    return PreparedRun(folder, mission, reader, splits, _manifest(mission, model, reader, splits, start, folder.name))


def prepare_resumed_run(mission: Mission, model: Model, folder: Path) -> PreparedRun:
    """Prepare to resume a run with its original settings and tickets; raise RunError if something has changed."""
    first = first_event(folder / EVENTS)
    if first is None:
        raise RunError("The run has not started.", where=str(folder), next_step="donewhen learn")
    known = first.data
    original = _with_settings(mission, known, folder)
    reader = TicketReader(original)
    splits = split_tickets(reader.members, original.settings.split, original.settings.seed)
    start = initial_guidance_of(known), tuple(pool_at_start(known).values())
    manifest = _manifest(original, model, reader, splits, start, folder.name)
    differing = [field for field in manifest if canonical_json(manifest[field]) != canonical_json(known.get(field))]
    if differing:
        raise RunError(
            f"The run can't be resumed: {', '.join(differing)} changed since it started.",
            where=str(folder),
            next_step="Undo the change, or start a new run: donewhen learn",
        )
    return PreparedRun(folder, original, reader, splits, manifest)


def metered_model_for(prepared: PreparedRun, model: Model, answers: AnswerStore | None) -> MeteredModel:
    """The model with the run's own meter."""
    return MeteredModel(model, Meter(spending_limits(prepared.mission, model)), answers, prepared.id)


def open_log(prepared: PreparedRun) -> EventLog:
    return EventLog(prepared.folder / EVENTS, clock=prepared.mission.clock)


def adopt_guidance(mission: Mission, state: RunState, run: str) -> Guidance:
    """Apply a run's changes to the mission's guidance, each exactly once; raise GuidanceError if it has diverged."""
    store = mission.store
    # Only read here: if the guidance is not adopted, the mission stays unchanged.
    now = mission.guidance()
    # An earlier attempt that was killed may have applied some of the changes.
    first = initial_guidance_of(state.manifest)
    history = store.history() if store.exists else ()
    made = sum(revision.by == f"run {run}" and revision.step > first.step for revision in history)
    steps = [first.hash, *(change["hash"] for change in state.changes)]
    if made == len(state.changes) and now.hash != steps[-1]:
        return now
    if now.hash != steps[made]:
        raise GuidanceError(
            "The mission's guidance has changed since the run started, so the learned guidance was not adopted.",
            where=str(store.path),
            next_step=f"The learned guidance is kept in the run {run}.",
        )
    store.seed(mission.initial_guidance())
    for change in state.applied[made:]:
        now = store.apply(change, f"run {run}")
    return store.credit(state.counts) if state.counts else now


def _manifest(
    mission: Mission,
    model: Model,
    reader: TicketReader,
    splits: Splits,
    start: tuple[Guidance, tuple[PooledHypothesis, ...]],
    run: str,
) -> dict[str, Any]:
    guidance, waiting = start
    sizes = {part: len(getattr(splits, part)) for part in PARTS}
    return {
        "schema": MANIFEST,
        "run": run,
        "mission": mission.name,
        "version": __version__,
        "model": model.name,
        "language": mission.language.identity,
        "prompts": mission.language.hashes,
        "tickets": {"count": len(reader.members), "hash": reader.hash},
        "splits": {"sizes": sizes, "hashes": splits.hashes},
        "overrides": {override.name: _override_digest(override, mission.folder) for override in mission.overrides},
        "settings": msgspec.to_builtins(mission.settings),
        "guidance": guidance.as_file()[mission.name],
        "hypotheses": [msgspec.to_builtins(hypothesis) for hypothesis in waiting],
    }


def _override_digest(override: NamedOverride, folder: Path) -> str:
    """The digest of an override's file; empty for a module, which is identified by its name."""
    source = override.name.rpartition(":")[0]
    return digest(read_limited(folder / source, CODE)) if source.endswith(".py") else ""


def _with_settings(mission: Mission, manifest: Mapping[str, Any], folder: Path) -> Mission:
    try:
        settings = msgspec.convert(manifest.get("settings"), MissionFile)
    except msgspec.ValidationError as error:
        raise RunError(f"The run's settings are invalid: {error}.", where=str(folder)) from error
    return replace(mission, settings=settings, overrides=load_overrides(settings.overrides, mission.folder))


def _check_splits(mission: Mission, model: Model, splits: Splits) -> None:
    if not splits.train:
        raise RunError(
            "The training split is empty.", where=str(mission.folder), next_step="Check [split] in mission.toml."
        )
    required = 2 * len(splits.test) * calls_per_ticket(mission, model)
    calls = mission.settings.budget.calls
    if calls is not None and calls <= required:
        raise RunError(
            f"A budget of {calls} calls is too small: judging the {len(splits.test)} held-out tickets before and "
            f"after the run takes {required} calls.",
            where=str(mission.folder / "mission.toml"),
            next_step="Raise budget.calls, or make split.test smaller.",
        )


def _new_folder(mission: Mission) -> Path:
    day = _day(mission.clock)
    taken = {path.name for path in runs_folder(mission).glob(f"{day}-*")}
    free = next(number for number in range(1, 10_000) if f"{day}-{number:03d}" not in taken)
    return runs_folder(mission) / f"{day}-{free:03d}"


def _day(clock: Clock) -> str:
    return clock.now().strftime("%Y%m%d")
