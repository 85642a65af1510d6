"""What a mission may spend on calls to a model, and what it has paid for already."""

from __future__ import annotations

from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import write_atomically
from donewhen.judging.mission import MISSION_FILE, Mission
from donewhen.models.answer_store import AnswerStore
from donewhen.models.metered import SpendingLimits
from donewhen.models.roles import Model, Priced

RUNS = "runs"


def open_answer_store(mission: Mission) -> AnswerStore:
    """The answers that are known: whoever asks for a mission shares them."""
    folder = mission.folder / RUNS
    ignored = folder / ".gitignore"
    if not ignored.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(ignored, b"answers.sqlite*\n.lock\n")
    return AnswerStore(folder / "answers.sqlite")


def spending_limits(mission: Mission, model: Model) -> SpendingLimits:
    """The mission's budget; ConfigError where it could not be kept to."""
    budget = mission.settings.budget
    named = "cost" if budget.cost is not None else "cost_per_epoch" if budget.cost_per_epoch is not None else None
    if named is not None and isinstance(model, Priced) and not model.priced:
        raise ConfigError(
            f"budget.{named} can't be kept: it is not known what {model.name} costs.",
            where=str(mission.folder / MISSION_FILE),
            next_step="Put its price into a table, and name that in DONEWHEN_PRICES.",
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
