"""Choose the guard of a run, in the same way for every adapter."""

from __future__ import annotations

from typing import Any

from donewhen.completion import CompositeChecker, GuardPolicy, StopGuard, as_checker
from donewhen.completion.checking import is_checking
from donewhen.foundation.errors import DonewhenError
from donewhen.prompt import Prompt
from donewhen.runtime import CompletionBypassed, CompletionChecked, Limits, Session, ToolInvoked, append_all


class AdapterError(DonewhenError):
    """An agent runtime could not be used."""

    code = "adapter"


def prepare_session(prompt: Prompt[Any], session: Session) -> None:
    """Prepare a session for a run: install the state of the sections, and the slices for the adapters' events."""
    prompt.install(session)
    session[ToolInvoked].register(ToolInvoked, append_all)
    session[CompletionChecked].register(CompletionChecked, append_all)
    session[CompletionBypassed].register(CompletionBypassed, append_all)


def guard_for(configured: object | None, prompt: Prompt[Any], limits: Limits, policy: GuardPolicy) -> StopGuard | None:
    """Return the guard for this run; None if no checker is configured.

    A checker in the adapter's configuration and one on the template must both pass. A run inside a check,
    such as a judge's, is not guarded; otherwise the check would guard a run that it started itself.
    """
    if is_checking():
        return None
    checkers = [
        as_checker(checker) for checker in (configured, prompt.template.task_completion_checker) if checker is not None
    ]
    if not checkers:
        return None
    return StopGuard(checkers[0] if len(checkers) == 1 else CompositeChecker(checkers), limits, policy)
