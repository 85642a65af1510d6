"""Learning: derive written guidance for a judge from labelled tickets, with evidence for every rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazy_attributes

if TYPE_CHECKING:
    from donewhen.learning.after.gates_after_run import GatesAfterRun
    from donewhen.learning.after.judge_audit import audit_judge
    from donewhen.learning.after.learn_mission import LearnResult, learn
    from donewhen.learning.after.replay import Replay, replay_run
    from donewhen.learning.after.report_data import LearningReport
    from donewhen.learning.measuring.metrics import Confusion, Estimate, McNemar, Measures, measure
    from donewhen.learning.running.events import RunError, RunEvent
    from donewhen.learning.running.recorder import Watcher
    from donewhen.learning.running.run_folders import find_run, run_folders
    from donewhen.learning.running.run_state import RunState

_FILE_OF = {
    "GatesAfterRun": "after.gates_after_run",
    "Confusion": "measuring.metrics",
    "Estimate": "measuring.metrics",
    "RunEvent": "running.events",
    "LearnResult": "after.learn_mission",
    "LearningReport": "after.report_data",
    "McNemar": "measuring.metrics",
    "Measures": "measuring.metrics",
    "Replay": "after.replay",
    "RunError": "running.events",
    "RunState": "running.run_state",
    "Watcher": "running.recorder",
    "audit_judge": "after.judge_audit",
    "find_run": "running.run_folders",
    "learn": "after.learn_mission",
    "measure": "measuring.metrics",
    "replay_run": "after.replay",
    "run_folders": "running.run_folders",
}

_RENAMED = {
    "Event": "RunEvent",
    "Learned": "LearnResult",
    "audited": "audit_judge",
    "measured": "measure",
    "replay": "replay_run",
}

__getattr__ = lazy_attributes(__name__, _FILE_OF, renamed=_RENAMED)

__all__ = [
    "Confusion",
    "Estimate",
    "GatesAfterRun",
    "LearnResult",
    "LearningReport",
    "McNemar",
    "Measures",
    "Replay",
    "RunError",
    "RunEvent",
    "RunState",
    "Watcher",
    "audit_judge",
    "find_run",
    "learn",
    "measure",
    "replay_run",
    "run_folders",
]
