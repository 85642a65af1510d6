"""A mission's spending limits and its store of answers that were already paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import write_atomically
from donewhen.judging.mission import MISSION_FILE, Mission
from donewhen.models.answer_store import NOT_ALLOWED, AnswerStore, AnswerStoreReadOnlyError
from donewhen.models.metered import Meter, MeteredModel, SpendingLimits
from donewhen.models.roles import Model, Priced

RUNS = "runs"


def open_answer_store(mission: Mission) -> AnswerStore:
    """Open the mission's cache of model answers, which all commands share."""
    folder = mission.folder / RUNS
    ignored = folder / ".gitignore"
    if not ignored.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(ignored, b"answers.sqlite*\n.lock\n")
    return AnswerStore(folder / "answers.sqlite")


def spending_limits(mission: Mission, model: Model) -> SpendingLimits:
    """Return the mission's budget; raise ConfigError if it can't be enforced."""
    budget = mission.settings.budget
    key = "cost" if budget.cost is not None else "cost_per_epoch" if budget.cost_per_epoch is not None else None
    if key is not None and isinstance(model, Priced) and not model.priced:
        raise ConfigError(
            f"budget.{key} can't be enforced: the price of {model.name} is unknown.",
            where=str(mission.folder / MISSION_FILE),
            next_step="Add the price to a price table, and set DONEWHEN_PRICES to its path.",
        )
    return SpendingLimits(
        calls=budget.calls,
        tokens=budget.tokens,
        cost=budget.cost,
        calls_per_epoch=budget.calls_per_epoch,
        seconds=budget.seconds,
        tokens_per_epoch=budget.tokens_per_epoch,
        cost_per_epoch=budget.cost_per_epoch,
    )


@contextmanager
def open_metered_model(
    mission: Mission, model: Model, on_uncached: Callable[[str], None] = lambda _: None
) -> Iterator[MeteredModel]:
    """Open a model behind the mission's budget and, if calls cost something, behind the answer cache.

    In a folder that can't be written, answers are not cached; ``on_uncached`` gets the path of that folder or file.
    """
    began = mission.clock.monotonic()
    meter = Meter(spending_limits(mission, model), elapsed=lambda: mission.clock.monotonic() - began)
    answers = None if model.free else _writable_answer_store(mission, on_uncached)
    with answers or nullcontext():
        yield MeteredModel(model, meter, answers)


def _writable_answer_store(mission: Mission, on_uncached: Callable[[str], None]) -> AnswerStore | None:
    try:
        return open_answer_store(mission)
    except AnswerStoreReadOnlyError as error:
        where = str(error.where)
    except OSError as error:
        if error.errno not in NOT_ALLOWED:
            raise
        where = str(error.filename)
    on_uncached(where)
    return None
