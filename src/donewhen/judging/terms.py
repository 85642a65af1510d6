"""What decides a judge's verdicts besides the rules that it has learned: what people agree to who let it be asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from donewhen.foundation.canonical import digest, digest_of
from donewhen.foundation.errors import DonewhenError
from donewhen.judging.mission import Mission, read_mission


def mission_terms(folder: Path) -> dict[str, Any]:
    """The terms of a mission as plain values. One that can't be read has the problem as its only term."""
    try:
        mission = read_mission(folder, code=False)
        return terms_of(mission)
    except (DonewhenError, OSError) as error:
        return {"unreadable": str(error).replace(str(folder), folder.name)}


def terms_of(mission: Mission) -> dict[str, Any]:
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
        "overrides": [_override(one.name, mission.folder) for one in mission.overrides],
        "initial_guidance": dict(mission.initial_guidance().experiences),
    }


def _override(name: str, folder: Path) -> str:
    place = name.rpartition(":")[0]
    return f"{name} {digest((folder / place).read_bytes())}" if place.endswith(".py") else name
