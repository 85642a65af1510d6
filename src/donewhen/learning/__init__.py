"""How a judge gets better: guidance is learned in writing, from labelled tickets, with evidence for every rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazily

if TYPE_CHECKING:
    from donewhen.learning.after.judge_audit import audited
    from donewhen.learning.after.learn_mission import Learned, learn
    from donewhen.learning.after.replay import Replay, replay
    from donewhen.learning.after.report_data import LearningReport
    from donewhen.learning.measuring.metrics import Confusion, Estimate, McNemar, Measures, measured
    from donewhen.learning.running.events import Event, RunError
    from donewhen.learning.running.recorder import Watcher
    from donewhen.learning.running.run_folders import find_run, run_folders
    from donewhen.learning.running.run_state import RunState

_FILE_OF = {
    "Confusion": "measuring.metrics",
    "Estimate": "measuring.metrics",
    "Event": "running.events",
    "Learned": "after.learn_mission",
    "LearningReport": "after.report_data",
    "McNemar": "measuring.metrics",
    "Measures": "measuring.metrics",
    "Replay": "after.replay",
    "RunError": "running.events",
    "RunState": "running.run_state",
    "Watcher": "running.recorder",
    "audited": "after.judge_audit",
    "find_run": "running.run_folders",
    "learn": "after.learn_mission",
    "measured": "measuring.metrics",
    "replay": "after.replay",
    "run_folders": "running.run_folders",
}

__getattr__ = lazily(__name__, _FILE_OF)

__all__ = [
    "Confusion",
    "Estimate",
    "Event",
    "Learned",
    "LearningReport",
    "McNemar",
    "Measures",
    "Replay",
    "RunError",
    "RunState",
    "Watcher",
    "audited",
    "find_run",
    "learn",
    "measured",
    "replay",
    "run_folders",
]
