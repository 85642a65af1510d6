"""Whether a judge may decide at all, before it is asked about anything."""

from __future__ import annotations

from donewhen.judging.guidance import FIRST, Guidance
from donewhen.judging.mission import Mission
from donewhen.models.contrast import default_rule, unreadable_rules


def reason_not_competent(mission: Mission, guidance: Guidance) -> str | None:
    """Why a judge's pass would say nothing: it was taught nothing, or it can't read a rule that binds it.

    Only its pass: a judge that fails work knows why.
    """
    if guidance.rules == {FIRST: first_rule(mission.language.name)}:
        return "the judge was taught nothing yet"
    if mission.settings.model == "contrast":
        # Others read any sentence. This one ignores what is not of its forms, which must not be to anybody's gain.
        ignored = [key for key in unreadable_rules(guidance.rules) if key.startswith("S")]
        if ignored:
            return f"the judge can't read {', '.join(ignored)}"
    return None


def first_rule(language: str) -> str:
    """G0 of a new mission: work passes unless a rule says otherwise.

    Learning begins there because a trial lets no change through that lets more bad work through: from *fail*, the first
    rule that passes anything would be refused.
    """
    return default_rule("pass", language)
