"""How a judge gets better: guidance is learned in writing, from labelled tickets, with evidence for every rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazily

if TYPE_CHECKING:
    from donewhen.learning.auditing import audited
    from donewhen.learning.events import Event, RunError
    from donewhen.learning.learn_mission import Learned, learn
    from donewhen.learning.metrics import Confusion, Estimate, McNemar, Measures, measured
    from donewhen.learning.recorder import Watcher
    from donewhen.learning.replaying import Replay, replay
    from donewhen.learning.runs import find_run, run_folders
    from donewhen.learning.state import RunState
    from donewhen.learning.summary import LearningReport

_FILE_OF = {
    "Confusion": "metrics",
    "Estimate": "metrics",
    "Event": "events",
    "Learned": "learn_mission",
    "LearningReport": "summary",
    "McNemar": "metrics",
    "Measures": "metrics",
    "Replay": "replaying",
    "RunError": "events",
    "RunState": "state",
    "Watcher": "recorder",
    "audited": "auditing",
    "find_run": "runs",
    "learn": "learn_mission",
    "measured": "metrics",
    "replay": "replaying",
    "run_folders": "runs",
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
