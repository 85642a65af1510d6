"""What decides a judge's verdicts besides the rules that it has learned: what people agree to who let it be asked."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import msgspec

from donewhen.foundation.canonical import digest, digest_of
from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.judging.mission import Mission, read_mission


def mission_terms(folder: Path) -> dict[str, Any]:
    """The terms of a mission as plain values. One that can't be read has the problem as its only term."""
    try:
        mission = read_mission(folder, code=False)
        settings = mission.settings
        # They decide no verdict: the trial, which rules a judge comes to; the others, whether people look at verdicts.
        return terms_of_mission(mission) | {
            "trial": msgspec.to_builtins(settings.trial),
            "spot_check": settings.manual_review.spot_check,
            "alarm_below": settings.manual_review.alarm_below,
        }
    except (DonewhenError, OSError) as error:
        return {"unreadable": str(error).replace(str(folder), folder.name)}


def terms_of_mission(mission: Mission) -> dict[str, Any]:
    """Everything that a verdict depends on, but for the ticket and what was learned."""
    settings = mission.settings
    return {
        "mission": settings.mission,
        "model": settings.model,
        "language": f"{mission.language.identity} {digest_of(mission.language.hashes)}",
        "words": [mission.language.answer.pass_, mission.language.answer.fail],
        "sampler": [f"{one.samples} at {one.temperature:g}" for one in settings.sampler],
        "min_verdict_agreement": settings.manual_review.min_verdict_agreement,
        "from_job": msgspec.json.decode(msgspec.json.encode(settings.from_job)),
        "overrides": [_override(override.name, mission.folder) for override in mission.overrides],
        "initial_guidance": dict(mission.initial_guidance().experiences),
    }


def _override(name: str, folder: Path) -> str:
    place = name.rpartition(":")[0]
    code = folder / place if place.endswith(".py") else _file_of(place)
    if code is None:
        return name
    try:
        return f"{name} {digest(code.read_bytes())}"
    except OSError as error:
        raise ConfigError(f"The override {name} can't be read: {error.strerror}.", where=str(code)) from error


def _file_of(module: str) -> Path | None:
    """The file of a module, found without running any of it; None where there is none."""
    parts = module.split(".")
    places: Sequence[str] | None = None
    for number in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:number]), places)
        if spec is None:
            return None
        places = spec.submodule_search_locations
        if number == len(parts) and spec.origin is not None and spec.origin.endswith(".py"):
            return Path(spec.origin)
        if places is None:
            return None
    return None
