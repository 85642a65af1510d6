"""What the ledger records of a verdict, and when a person decides instead of the judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from donewhen.foundation.plain_text import one_line
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.judge.job_ticket import outputs_not_shown

if TYPE_CHECKING:
    from donewhen.judging.guidance import Guidance
    from donewhen.judging.mission import Mission
    from donewhen.judging.ticket import Ticket
    from donewhen.judging.two_readings import TwoReadings


def verdict_data(
    readings: TwoReadings, mission: Mission, guidance: Guidance, ticket: Ticket, *, unseen: str = ""
) -> dict[str, Any]:
    """Return the ledger data of a verdict. ``unseen`` names more that the judge has not seen.

    A person decides if too few votes agree, the judge is not competent, only its default says pass, it can't read a
    rule that might change its verdict, it passes work that it has not fully seen, or it judges differently what a
    person reads.
    """
    verdict = readings.verdict
    from donewhen.judging.competence import reason_for_default, reason_not_competent

    doubt = None
    if verdict.verdict == "pass":
        parts = (*outputs_not_shown(ticket.evidence), *((unseen,) if unseen else ()))
        omission = f"the judge did not see all of {one_line(', '.join(parts), 300)}" if parts else None
        doubt = reason_not_competent(mission, guidance) or omission or reason_for_default(guidance, ticket.evidence)
    if verdict.unread_rules:
        doubt = f"the judge can't read {', '.join(verdict.unread_rules)}, which might change its verdict"
    doubt = readings.difference or doubt
    votes = verdict.passes + verdict.fails + verdict.malformed
    # Malformed votes count, too: a single good answer among three is no agreement.
    agreement = max(verdict.passes, verdict.fails) / votes if votes else 0.0
    overridden = verdict.overridden_by is not None and readings.difference is None
    decided = overridden or (
        verdict.verdict is not None
        and doubt is None
        and agreement >= mission.settings.manual_review.min_verdict_agreement
    )
    reason = redact_secrets(one_line(verdict.reason, 400))
    counted = f"{verdict.passes}:{verdict.fails}" + (f", {verdict.malformed} unusable" if verdict.malformed else "")
    by = f"guidance step {verdict.guidance_step}"
    summary = f"the judge says {verdict.verdict}" if decided else "the judge's votes don't agree"
    if doubt is not None and not decided:
        summary = doubt
    if verdict.verdict is None:
        summary = "the judge gave no usable answer"
    return {
        "passed": decided and verdict.verdict == "pass",
        "needs_human": not decided,
        "verdict": verdict.verdict,
        "votes": {"pass": verdict.passes, "fail": verdict.fails, "malformed": verdict.malformed},
        "agreement": round(agreement, 4),
        "margin": None if verdict.margin is None else round(verdict.margin, 4),
        "reason": reason,
        "overridden_by": verdict.overridden_by,
        "told": f"{summary} ({counted}, {by})" + (f": {reason.rstrip('.')}" if reason else ""),
    }
