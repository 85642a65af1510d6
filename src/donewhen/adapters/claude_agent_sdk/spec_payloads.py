"""The answers of hooks to the client. The decisions are made elsewhere."""

from __future__ import annotations

from typing import Any

Answer = dict[str, Any]

NOTHING: Answer = {}
HALT: Answer = {"continue_": False, "stopReason": "The agent was allowed to stop without giving the output."}
"""Ends the run, even if the client would ask the agent for its output again."""
ACCEPTED: Answer = {"continue_": False, "stopReason": "The output was accepted."}
"""Ends the run on clients that would continue after the output."""


def spec_refuse_stop(feedback: str) -> Answer:
    """Return the payload for a refused stop, as printed in the specification."""
    return {"needsMoreTurns": True, "decision": "continue", "reason": feedback}


def spec_refuse_output(feedback: str) -> Answer:
    """Return the payload that turns the result of the tool into an error, as described in the specification."""
    return {"toolResultModification": {"isError": True, "content": feedback}}
