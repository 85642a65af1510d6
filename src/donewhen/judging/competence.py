"""Check whether a judge is able to decide at all, before it judges anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from donewhen.judging.guidance import FIRST, Guidance
from donewhen.judging.mission import Mission
from donewhen.models.contrast import Contrast, default_rule, only_defaults
from donewhen.models.roles import UnreadRule

UnreadCode = Literal["unread_scaffold", "unread_guidance"]


@dataclass(frozen=True)
class UnreadProblem:
    """Rules of one kind that a model can't read, and what that means."""

    code: UnreadCode
    message: str


def reason_not_competent(mission: Mission, guidance: Guidance) -> str | None:
    """Return why no pass by this judge means anything: it has no rules but the default, or can't read its scaffold.

    Rules that matter only for some tickets are in ``Verdict.unread_rules``.
    """
    if only_defaults(guidance.rules):
        return "the judge has not learned any rules yet"
    scaffold = [rule.key for rule in unread_by_default_model(mission, guidance) if rule.scaffold]
    return f"the judge can't read {', '.join(scaffold)}" if scaffold else None


def reason_for_default(guidance: Guidance, evidence: Mapping[str, str]) -> str | None:
    """Return why a pass of this evidence means little: no rule decides it, and there is at most one that could."""
    if Contrast().passes_by_default_alone(guidance.rules, evidence):
        return "only the default says pass, and the judge has not learned more than one rule"
    return None


def unread_by_default_model(mission: Mission, guidance: Guidance) -> tuple[UnreadRule, ...]:
    """The rules that the mission's model can't read, known without opening it; empty if it reads any sentence."""
    return Contrast().unread_rules(guidance.rules) if mission.settings.model == "contrast" else ()


def unread_problems(unread: Iterable[UnreadRule]) -> tuple[UnreadProblem, ...]:
    """What it means that a model can't read these rules: one problem for the scaffold and one for the guidance."""
    rules = tuple(unread)
    scaffold = [rule for rule in rules if rule.scaffold]
    guidance = [rule for rule in rules if not rule.scaffold]
    problems = []
    if scaffold:
        problems.append(UnreadProblem("unread_scaffold", _message("scaffold rule(s)", scaffold)))
    if guidance:
        problems.append(UnreadProblem("unread_guidance", _message("rule(s)", guidance)))
    return tuple(problems)


def _message(kind: str, rules: Sequence[UnreadRule]) -> str:
    keys = [rule.key for rule in rules]
    text = f"The model can't read the {kind} {', '.join(keys)}, so it can't follow them. "
    if FIRST in keys:
        text += f"Without {FIRST}, the default is *fail*: work that no other rule decides fails. "
    fails_only = all(rule.fails_only for rule in rules)
    doubtful = "A pass that they might forbid" if fails_only else "A verdict that they might change"
    return f"{text}{doubtful} needs manual review."


def first_rule(language: str) -> str:
    """G0 of a new mission: work passes unless a rule says otherwise.

    Learning starts from *pass* because a trial rejects every change that adds false releases: starting from *fail*, the
    first rule that passes anything would be rejected.
    """
    return default_rule("pass", language)
