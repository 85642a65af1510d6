"""What a hook says to the client: the decision is made elsewhere, this is only how it is put."""

from __future__ import annotations

from typing import Any

Answer = dict[str, Any]

NOTHING: Answer = {}
HALT: Answer = {"continue_": False, "stopReason": "The agent was let go without the output."}
"""Ends the run, also where the client itself would remind the agent of its output."""
ACCEPTED: Answer = {"continue_": False, "stopReason": "The output was accepted."}
"""Ends the run on clients that would go on after the output."""


def spec_refuse_stop(feedback: str) -> Answer:
    """The payload that the specification prints."""
    return {"needsMoreTurns": True, "decision": "continue", "reason": feedback}


def spec_refuse_output(feedback: str) -> Answer:
    """An error result after the tool has run, as the specification describes it."""
    return {"toolResultModification": {"isError": True, "content": feedback}}
