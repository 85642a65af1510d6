"""Where a run keeps its state and its limits."""

from donewhen.runtime.budget import Budget, BudgetExceededError, BudgetTracker, Dimension, TokenUsage
from donewhen.runtime.bypass import Bypass, Limits
from donewhen.runtime.deadline import Deadline
from donewhen.runtime.dispatcher import Dispatcher, DispatchError, DispatchResult, InProcessDispatcher
from donewhen.runtime.events import CompletionChecked, ToolInvoked
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

__all__ = [
    "Append",
    "Budget",
    "BudgetExceededError",
    "BudgetTracker",
    "Bypass",
    "Clear",
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
