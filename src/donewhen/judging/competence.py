"""Whether a judge may decide at all, before it is asked about anything."""

from __future__ import annotations

from donewhen.missions.new_mission import first_rule
from donewhen.judging.guidance import FIRST, Guidance
from donewhen.judging.mission import Mission
from donewhen.models.contrast import unread


def incompetence(mission: Mission, guidance: Guidance) -> str | None:
    """Why a judge's pass would say nothing: it was taught nothing, or it can't read a rule that binds it.

    Only its pass: a judge that fails work knows why.
    """
    if guidance.rules == {FIRST: first_rule(mission.language.name)}:
        return "the judge was taught nothing yet"
    if mission.settings.model == "contrast":
        # Others read any sentence. This one ignores what is not of its forms, which must not be to anybody's gain.
        ignored = [key for key in unread(guidance.rules) if key.startswith("S")]
        if ignored:
            return f"the judge can't read {', '.join(ignored)}"
    return None
