"""What Claude's clients say in a hook's event and understand as its answer, through a command or through the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STRUCTURED_OUTPUT = "StructuredOutput"


def refuse_stop(reason: str) -> dict[str, Any]:
    """Go on: the model reads the reason. Honoured by every released client."""
    return {"decision": "block", "reason": reason}


def refuse_output(reason: str) -> dict[str, Any]:
    """Deny the output before the tool runs: the only answer after which every client lets the model try again."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


def is_busy(event: Mapping[str, Any]) -> bool:
    """Whether something else goes on; a sub-agent in the background is itself among the tasks."""
    tasks = event.get("background_tasks")
    own = event.get("agent_id", "")
    return isinstance(tasks, list) and any(
        isinstance(task, dict) and task.get("status") in ("running", "pending") and task.get("id") != own
        for task in tasks
    )
