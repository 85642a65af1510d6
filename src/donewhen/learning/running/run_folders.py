"""Runs on disk: each a folder in its mission, with one writer at a time for all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from donewhen import __version__
from donewhen.foundation.canonical import canonical_json, digest
from donewhen.foundation.clock import Clock
from donewhen.foundation.locks import LockedError, locked
from donewhen.judging.guidance import Guidance, GuidanceError
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


class PreparedRun(NamedTuple):
    """All that a run begins with."""

    folder: Path
    mission: Mission
    book: TicketReader
    splits: Splits
    manifest: Mapping[str, Any]

    @property
    def id(self) -> str:
        return self.folder.name


def runs_folder(mission: Mission) -> Path:
    return mission.folder / RUNS


def run_folders(mission: Mission) -> tuple[Path, ...]:
    """The runs of a mission, the oldest first."""
    found = runs_folder(mission).glob(f"*/{EVENTS}")
    return tuple(sorted((one.parent for one in found), key=lambda one: one.name))


def find_run(mission: Mission, name: str | None) -> Path:
    """A run by its name, or the newest."""
    found = run_folders(mission)
    chosen = found[-1:] if name is None else [one for one in found if one.name == name]
    if not chosen:
        message = "There is no run yet." if name is None else f"There is no run {name!r}."
        names = ", ".join(one.name for one in found[-5:])
        raise RunError(
            message, where=str(runs_folder(mission)), next_step=f"There are: {names}." if names else "donewhen learn"
        )
    return chosen[0]


def unfinished_run(mission: Mission) -> Path | None:
    """The newest run that has begun, if it was cut off: in the middle, or before its report, which comes last."""
    found = [folder for folder in run_folders(mission) if first_event(folder / EVENTS) is not None]
    return found[-1] if found and not (is_over(found[-1]) and (found[-1] / REPORT).is_file()) else None


def run_state_of(folder: Path) -> RunState:
    """Where a run stands, from its events alone."""
    return fold_events(each_event(folder / EVENTS))


def is_over(folder: Path) -> bool:
    """Whether a run has come to its end."""
    # One by one, for a run on many tickets has gigabytes of them.
    last = deque(each_event(folder / EVENTS), maxlen=1)
    return bool(last) and last[0].type == "run_finished"


@contextmanager
def lock_runs(mission: Mission) -> Iterator[None]:
    """Hold the mission's runs; a second writer is told at once who has them."""
    path = runs_folder(mission) / ".lock"
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path, wait=0.0))
        except LockedError as error:
            raise RunError(
                "Another run of this mission is at work.",
                where=str(path),
                next_step=f"Wait for it, or end it. ({error.message})",
            ) from error
        yield


def prepare_run(mission: Mission, model: Model) -> PreparedRun:
    """Begin a new run: divide the tickets, and write down what it starts from."""
    book = TicketReader(mission)
    splits = split_tickets(book.members, mission.settings.split, mission.settings.seed)
    _check_parts(mission, splits)
    # Before there is a folder that nothing would be in.
    spending_limits(mission, model)
    folder = _new_folder(mission)
    begins = mission.guidance(), carried_over_hypotheses(mission, splits.train)
    return PreparedRun(folder, mission, book, splits, _manifest(mission, model, book, splits, begins, folder.name))


def prepare_resumed_run(mission: Mission, model: Model, folder: Path) -> PreparedRun:
    """Go on with a run: with the settings that it began with, on the tickets that it began with."""
    first = first_event(folder / EVENTS)
    if first is None:
        raise RunError("The run has not begun.", where=str(folder), next_step="donewhen learn")
    known = first.data
    began = _with_settings(mission, known, folder)
    book = TicketReader(began)
    splits = split_tickets(book.members, began.settings.split, began.settings.seed)
    begins = initial_guidance_of(known), tuple(pool_at_start(known).values())
    manifest = _manifest(began, model, book, splits, begins, folder.name)
    differing = [one for one in manifest if canonical_json(manifest[one]) != canonical_json(known.get(one))]
    if differing:
        raise RunError(
            f"The run can't be resumed: {', '.join(differing)} changed since it began.",
            where=str(folder),
            next_step="Undo the change, or start a new run: donewhen learn",
        )
    return PreparedRun(folder, began, book, splits, manifest)


def metered_model_for(prepared: PreparedRun, model: Model, answers: AnswerStore | None) -> MeteredModel:
    """The model behind the run's own meter."""
    return MeteredModel(model, Meter(spending_limits(prepared.mission, model)), answers, prepared.id)


def open_log(prepared: PreparedRun) -> EventLog:
    return EventLog(prepared.folder / EVENTS, clock=prepared.mission.clock)


def adopt_guidance(mission: Mission, state: RunState, run: str) -> Guidance:
    """Make what a run has learned the guidance of its mission: the same changes, one by one; each is made once."""
    store = mission.store
    # Looked at, not yet written: a mission whose guidance is not adopted is left as it is.
    now = mission.guidance()
    # Whoever was killed in between has made some of them.
    first = initial_guidance_of(state.manifest)
    made = sum(one.by == f"run {run}" and one.step > first.step for one in store.history()) if store.exists else 0
    steps = [first.hash, *(change["hash"] for change in state.changes)]
    if made == len(state.changes) and now.hash != steps[-1]:
        return now
    if now.hash != steps[made]:
        raise GuidanceError(
            "The guidance of the mission has changed since the run began, so what was learned is not adopted.",
            where=str(store.path),
            next_step=f"It is kept in the run {run}.",
        )
    store.seed(mission.initial_guidance())
    for one in state.applied[made:]:
        now = store.apply(one, f"run {run}")
    return store.credit(state.counts) if state.counts else now


def _manifest(
    mission: Mission,
    model: Model,
    book: TicketReader,
    splits: Splits,
    begins: tuple[Guidance, tuple[PooledHypothesis, ...]],
    run: str,
) -> dict[str, Any]:
    guidance, waiting = begins
    sizes = {part: len(getattr(splits, part)) for part in PARTS}
    return {
        "schema": MANIFEST,
        "run": run,
        "mission": mission.name,
        "version": __version__,
        "model": model.name,
        "language": mission.language.identity,
        "prompts": mission.language.hashes,
        "tickets": {"count": len(book.members), "hash": book.hash},
        "splits": {"sizes": sizes, "hashes": splits.hashes},
        "overrides": {override.name: _code_of(override, mission.folder) for override in mission.overrides},
        "settings": msgspec.to_builtins(mission.settings),
        "guidance": guidance.as_file()[mission.name],
        "hypotheses": [msgspec.to_builtins(one) for one in waiting],
    }


def _code_of(override: NamedOverride, folder: Path) -> str:
    """What a file of overrides says, which decides verdicts; a module of a package goes by its name."""
    place = override.name.rpartition(":")[0]
    return digest((folder / place).read_bytes()) if place.endswith(".py") else ""


def _with_settings(mission: Mission, manifest: Mapping[str, Any], folder: Path) -> Mission:
    try:
        settings = msgspec.convert(manifest.get("settings"), MissionFile)
    except msgspec.ValidationError as error:
        raise RunError(f"The run has settings that can't be used: {error}.", where=str(folder)) from error
    return mission._replace(settings=settings, overrides=load_overrides(settings.overrides, mission.folder))


def _check_parts(mission: Mission, splits: Splits) -> None:
    if not splits.train:
        raise RunError("No ticket is left to learn from.", where=str(mission.folder), next_step="See [split].")
    decodes = len(mission.decodes)
    wanted = 2 * len(splits.test) * decodes
    calls = mission.settings.budget.calls
    if calls is not None and calls <= wanted:
        raise RunError(
            f"A budget of {calls} calls is too small: judging the {len(splits.test)} held-out tickets before and "
            f"after takes {wanted}.",
            where=str(mission.folder / "mission.toml"),
            next_step="Raise budget.calls, or make split.test smaller.",
        )


def _new_folder(mission: Mission) -> Path:
    day = _day(mission.clock)
    taken = {path.name for path in runs_folder(mission).glob(f"{day}-*")}
    number = next(at for at in range(1, 10_000) if f"{day}-{at:03d}" not in taken)
    return runs_folder(mission) / f"{day}-{number:03d}"


def _day(clock: Clock) -> str:
    return clock.now().strftime("%Y%m%d")
