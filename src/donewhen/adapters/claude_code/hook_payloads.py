"""Hook events and answers of Claude's clients, for command hooks and for the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STRUCTURED_OUTPUT = "StructuredOutput"


def refuse_stop(reason: str) -> dict[str, Any]:
    """Return the answer that refuses a stop; the model sees the reason. All released clients honour it."""
    return {"decision": "block", "reason": reason}


def refuse_output(reason: str) -> dict[str, Any]:
    """Return the answer that denies the output before the tool runs: the only one after which all clients retry."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


def is_busy(event: Mapping[str, Any]) -> bool:
    """Whether other tasks are running; a sub-agent in the background is one of the tasks itself."""
    tasks = event.get("background_tasks")
    own = event.get("agent_id", "")
    return isinstance(tasks, list) and any(
        isinstance(task, dict) and task.get("status") in ("running", "pending") and task.get("id") != own
        for task in tasks
    )
