"""The state and the limits of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazy_attributes

if TYPE_CHECKING:
    from donewhen.runtime.budget import Budget, BudgetExceededError, BudgetTracker, Dimension, TokenUsage
    from donewhen.runtime.bypass import Bypass, Limits
    from donewhen.runtime.deadline import Deadline
    from donewhen.runtime.dispatcher import Dispatcher, DispatchError, DispatchResult, InProcessDispatcher
    from donewhen.runtime.events import CompletionBypassed, CompletionChecked, ToolInvoked
    from donewhen.runtime.reducers import (
        Append,
        Clear,
        Reducer,
        Replace,
        SliceOp,
        SliceView,
        append_all,
        replace_latest,
        upsert_by,
    )
    from donewhen.runtime.session import Session, SessionError, Slice, Snapshot

_FILE_OF = {
    "Append": "reducers",
    "Budget": "budget",
    "BudgetExceededError": "budget",
    "BudgetTracker": "budget",
    "Bypass": "bypass",
    "Clear": "reducers",
    "CompletionBypassed": "events",
    "CompletionChecked": "events",
    "Deadline": "deadline",
    "Dimension": "budget",
    "DispatchError": "dispatcher",
    "DispatchResult": "dispatcher",
    "Dispatcher": "dispatcher",
    "InProcessDispatcher": "dispatcher",
    "Limits": "bypass",
    "Reducer": "reducers",
    "Replace": "reducers",
    "Session": "session",
    "SessionError": "session",
    "Slice": "session",
    "SliceOp": "reducers",
    "SliceView": "reducers",
    "Snapshot": "session",
    "TokenUsage": "budget",
    "ToolInvoked": "events",
    "append_all": "reducers",
    "replace_latest": "reducers",
    "upsert_by": "reducers",
}

__getattr__ = lazy_attributes(__name__, _FILE_OF)

__all__ = [
    "Append",
    "Budget",
    "BudgetExceededError",
    "BudgetTracker",
    "Bypass",
    "Clear",
    "CompletionBypassed",
    "CompletionChecked",
    "Deadline",
    "Dimension",
    "DispatchError",
    "DispatchResult",
    "Dispatcher",
    "InProcessDispatcher",
    "Limits",
    "Reducer",
    "Replace",
    "Session",
    "SessionError",
    "Slice",
    "SliceOp",
    "SliceView",
    "Snapshot",
    "TokenUsage",
    "ToolInvoked",
    "append_all",
    "replace_latest",
    "upsert_by",
]
