"""Check whether a judge is able to decide at all, before it judges anything."""

from __future__ import annotations

from donewhen.judging.guidance import FIRST, Guidance
from donewhen.judging.mission import Mission
from donewhen.models.contrast import default_rule, unreadable_rules


def reason_not_competent(mission: Mission, guidance: Guidance) -> str | None:
    """Return why a pass by this judge would mean nothing: it has no learned rules, or it can't parse a scaffold rule.

    This concerns only a pass; a fail always follows from a rule.
    """
    if guidance.rules == {FIRST: first_rule(mission.language.name)}:
        return "the judge has not learned any rules yet"
    if mission.settings.model == "contrast":
        # Other models read any sentence. This one ignores rules that its grammar can't parse, and ignoring a rule must
        # not make work pass.
        ignored = [key for key in unreadable_rules(guidance.rules) if key.startswith("S")]
        if ignored:
            return f"the judge can't parse {', '.join(ignored)}"
    return None


def first_rule(language: str) -> str:
    """G0 of a new mission: work passes unless a rule says otherwise.

    Learning starts from *pass* because a trial rejects every change that adds false releases: starting from *fail*, the
    first rule that passes anything would be rejected.
    """
    return default_rule("pass", language)
