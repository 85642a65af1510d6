"""Judging: a model that follows written guidance decides whether people would accept a piece of work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazy_attributes

if TYPE_CHECKING:
    from donewhen.judging.answer import JudgeAnswer, MalformedAnswer, read_answer
    from donewhen.judging.guidance import Guidance, GuidanceChange, GuidanceError, RuleMeta
    from donewhen.judging.guidance_choice import choose_guidance
    from donewhen.judging.guidance_store import GuidanceStore, Revision
    from donewhen.judging.judge import Judge
    from donewhen.judging.language import Language, find_language
    from donewhen.judging.mission import Mission, MissionCheck, check_mission, read_mission
    from donewhen.judging.mission_budget import open_metered_model
    from donewhen.judging.mission_options import with_options
    from donewhen.judging.mission_overrides import Override
    from donewhen.judging.mission_settings import MissionFile
    from donewhen.judging.ticket import Ticket, TicketError, read_tickets
    from donewhen.judging.ticket_judging import VerdictCounts, judge_tickets
    from donewhen.judging.verdict import Signals, Verdict
    from donewhen.judging.vote import Vote, count_votes

_FILE_OF = {
    "choose_guidance": "guidance_choice",
    "with_options": "mission_options",
    "open_metered_model": "mission_budget",
    "judge_tickets": "ticket_judging",
    "VerdictCounts": "ticket_judging",
    "JudgeAnswer": "answer",
    "GuidanceChange": "guidance",
    "Guidance": "guidance",
    "GuidanceError": "guidance",
    "GuidanceStore": "guidance_store",
    "Judge": "judge",
    "Language": "language",
    "MalformedAnswer": "answer",
    "Mission": "mission",
    "MissionCheck": "mission",
    "MissionFile": "mission_settings",
    "Override": "mission_overrides",
    "Revision": "guidance_store",
    "RuleMeta": "guidance",
    "Signals": "verdict",
    "Ticket": "ticket",
    "TicketError": "ticket",
    "Verdict": "verdict",
    "Vote": "vote",
    "check_mission": "mission",
    "find_language": "language",
    "read_answer": "answer",
    "read_mission": "mission",
    "read_tickets": "ticket",
    "count_votes": "vote",
}

__all__ = [
    "Guidance",
    "GuidanceChange",
    "GuidanceError",
    "GuidanceStore",
    "Judge",
    "JudgeAnswer",
    "Language",
    "MalformedAnswer",
    "Mission",
    "MissionCheck",
    "MissionFile",
    "Override",
    "Revision",
    "RuleMeta",
    "Signals",
    "Ticket",
    "TicketError",
    "Verdict",
    "VerdictCounts",
    "Vote",
    "check_mission",
    "choose_guidance",
    "count_votes",
    "find_language",
    "judge_tickets",
    "open_metered_model",
    "read_answer",
    "read_mission",
    "read_tickets",
    "with_options",
]

_RENAMED = {
    "Answer": "JudgeAnswer",
    "Change": "GuidanceChange",
    "Malformed": "MalformedAnswer",
    "tally": "count_votes",
}

__getattr__ = lazy_attributes(__name__, _FILE_OF, renamed=_RENAMED)
