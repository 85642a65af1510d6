"""Override settings of a mission for one command or call, without changing its file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from donewhen.judging.mission import Mission
from donewhen.judging.mission_settings import Trial


def with_options(
    mission: Mission,
    *,
    model: str | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    trial: bool | None = None,
    calls: int | None = None,
) -> Mission:
    """The mission with other settings; None keeps the mission's own.

    ``trial=True`` keeps the mission's trial settings, and uses the default ones if its trials are off. ``calls``
    replaces ``budget.calls`` and no other limit.
    """
    settings = mission.settings
    given: dict[str, Any] = {"model": model, "epochs": epochs, "seed": seed}
    if trial is not None and trial == (settings.trial == "off"):
        given["trial"] = Trial() if trial else "off"
    if calls is not None:
        given["budget"] = msgspec.structs.replace(settings.budget, calls=calls)
    changed = {name: value for name, value in given.items() if value is not None}
    return replace(mission, settings=msgspec.structs.replace(settings, **changed))
