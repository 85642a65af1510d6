"""Would people accept it? Pass or fail, by a model that follows written guidance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazily

if TYPE_CHECKING:
    from donewhen.judging.answer import Answer, Malformed, read_answer
    from donewhen.judging.guidance import Change, Guidance, GuidanceError, RuleMeta
    from donewhen.judging.guidance_store import GuidanceStore, Revision
    from donewhen.judging.judge import Judge
    from donewhen.judging.language import Language, find_language
    from donewhen.judging.mission import Mission, MissionCheck, check_mission, read_mission
    from donewhen.judging.mission_overrides import Override
    from donewhen.judging.mission_settings import MissionFile
    from donewhen.judging.ticket import Ticket, TicketError, read_tickets
    from donewhen.judging.verdict import Signals, Verdict
    from donewhen.judging.vote import Vote, tally

_FILE_OF = {
    "Answer": "answer",
    "Change": "guidance",
    "Guidance": "guidance",
    "GuidanceError": "guidance",
    "GuidanceStore": "guidance_store",
    "Judge": "judge",
    "Language": "language",
    "Malformed": "answer",
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
    "tally": "vote",
}

__all__ = [
    "Answer",
    "Change",
    "Guidance",
    "GuidanceError",
    "GuidanceStore",
    "Judge",
    "Language",
    "Malformed",
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
    "Vote",
    "check_mission",
    "find_language",
    "read_answer",
    "read_mission",
    "read_tickets",
    "tally",
]

__getattr__ = lazily(__name__, _FILE_OF)
