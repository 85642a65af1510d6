"""The score: points for what is objectively there, less for work that went round in circles.

Deterministic: the same facts give the same points, each with a reason. A component that does not apply to a job is
left out, and the rest is scaled to 100. Placeholders and template text earn nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.lessons.lesson_use import LessonFact
from donewhen.jobs.plan.criteria import is_placeholder

ComponentName = Literal["acceptance", "verification", "hygiene", "views", "lessons", "execution_log", "parity"]

WEIGHTS: dict[ComponentName, int] = {
    "acceptance": 40,
    "verification": 20,
    "hygiene": 10,
    "views": 10,
    "lessons": 5,
    "execution_log": 10,
    "parity": 5,
}
TITLES: dict[ComponentName, str] = {
    "acceptance": "acceptance criteria and outputs",
    "verification": "verification plan and evidence",
    "hygiene": "plan hygiene",
    "views": "tracker and dashboard",
    "lessons": "lessons",
    "execution_log": "execution log",
    "parity": "GitHub parity",
}
_PER_REWORK = 2
_MOST_FOR_REWORK = 10
_BUDGET_PENALTY = 10
_SHOWN = 3


class Component(NamedTuple):
    """A part of the score: points got of points possible, and why; not counted where it does not apply."""

    name: ComponentName
    got: float
    possible: int
    why: str
    applies: bool = True


class Penalty(NamedTuple):
    """Points taken off, and why."""

    points: int
    why: str


class Score(NamedTuple):
    """The score of a job."""

    total: int
    components: tuple[Component, ...]
    penalties: tuple[Penalty, ...]


def score_of(facts: Facts) -> Score:
    """The score of these facts."""
    components = (
        _acceptance(facts),
        _verification(facts),
        _hygiene(facts),
        _views(facts),
        _lessons(facts),
        _execution(facts),
        _parity(facts),
    )
    counted = [component for component in components if component.applies]
    possible = sum(one.possible for one in counted)
    got = sum(one.got for one in counted)
    penalties = tuple(one for one in (_rework(facts), _budget(facts)) if one.points)
    points = round(100 * got / possible) - sum(penalty.points for penalty in penalties)
    return Score(max(0, points), components, penalties)


def stalled_tries(scores: tuple[int, ...]) -> int:
    """How often another try did not get further than the best one before it."""
    return sum(later <= max(scores[:place]) for place, later in enumerate(scores) if place)


def _acceptance(facts: Facts) -> Component:
    half = WEIGHTS["acceptance"] / 2
    criteria = facts.job.criteria
    shown = {status.requirement.name for status in facts.evidence if status.state == "passed"}
    met = [criterion for criterion in criteria if not criterion.placeholder and criterion.id in shown]
    good = [output for output in facts.outputs if output.state == "good" and not output.template]
    for_criteria = half * len(met) / len(criteria) if criteria else 0.0
    # A job without outputs is judged by its criteria alone.
    for_outputs = half * len(good) / len(facts.outputs) if facts.outputs else for_criteria
    there = sum(output.state == "good" for output in facts.outputs)
    why = f"{len(met)} of {len(criteria)} criteria shown, {there} of {len(facts.outputs)} outputs there"
    if there > len(good):
        why += f", {there - len(good)} of them with no more than a placeholder"
    return Component("acceptance", for_criteria + for_outputs, WEIGHTS["acceptance"], why)


def _verification(facts: Facts) -> Component:
    half = WEIGHTS["verification"] / 2
    plan = has_verification_plan(facts)
    passed = sum(status.state == "passed" for status in facts.evidence)
    evidence = half * passed / len(facts.evidence) if facts.evidence else 0.0
    why = f"{'a plan' if plan else 'no plan'}, {passed} of {len(facts.evidence)} pieces of evidence fresh and good"
    return Component("verification", (half if plan else 0.0) + evidence, WEIGHTS["verification"], why)


def has_verification_plan(facts: Facts) -> bool:
    """Whether it is said how the job is verified: by a command or a check, or in words that are not a template's."""
    if any(status.requirement.check.kind in ("run", "file") for status in facts.evidence):
        return True
    text = facts.sections.get("verification", "")
    return bool(text) and not all(is_placeholder(line.lstrip("-*+ ")) for line in text.splitlines() if line.strip())


def _hygiene(facts: Facts) -> Component:
    parts = (
        (4, not facts.tampered, "status as in the ledger"),
        (3, facts.history.started is not None, "started"),
        (3, facts.progress_lines > 0, "progress noted"),
    )
    got = sum(points for points, holds, _ in parts if holds)
    missing = [told for _, holds, told in parts if not holds]
    why = f"missing: {', '.join(missing)}" if missing else "all in order"
    return Component("hygiene", got, WEIGHTS["hygiene"], why)


def _views(facts: Facts) -> Component:
    half = WEIGHTS["views"] / 2
    got = half * facts.views.tracker + half * facts.views.dashboard
    states = [f"{name} {'current' if good else 'not current'}" for name, good in facts.views._asdict().items()]
    return Component("views", got, WEIGHTS["views"], ", ".join(states))


def _lessons(facts: Facts) -> Component:
    """Half for a lesson of its own, half for an answer to each that it was given; where one is not asked for, the other
    counts for all."""
    exempt = facts.job.exemptions.get("lesson_capture_exemption_reason")
    lessons = facts.lessons
    parts: list[tuple[float, str]] = []
    if facts.job.lesson_capture_required and not exempt:
        parts.append(_captured(lessons))
    if lessons.given:
        unanswered = [one for one in lessons.given if one not in lessons.answered]
        told = f"{len(lessons.answered)} of {len(lessons.given)} given lesson(s) answered"
        told += f", not {_listed(unanswered)}" if unanswered else ""
        parts.append((len(lessons.answered) / len(lessons.given), told))
    if not parts:
        why = f"not asked for{f': {exempt}' if exempt else ''}"
        return Component("lessons", 0, WEIGHTS["lessons"], why, applies=False)
    got = WEIGHTS["lessons"] * sum(share for share, _ in parts) / len(parts)
    return Component("lessons", got, WEIGHTS["lessons"], "; ".join(told for _, told in parts))


def _captured(lessons: LessonFact) -> tuple[float, str]:
    if lessons.kept:
        return 1.0, f"captured {_listed(lessons.kept)}"
    return 0.0, "no lesson captured" + (f": {lessons.lacking[-1]}" if lessons.lacking else "")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _execution(facts: Facts) -> Component:
    exempt = facts.job.exemptions.get("execution_log_exemption_reason")
    runnable = any(status.requirement.check.kind in ("run", "file") for status in facts.evidence)
    applies = facts.job.execution_log_required and not exempt and (runnable or not facts.evidence)
    why = f"{facts.runs} run(s) by the gate" if applies else f"not asked for{f': {exempt}' if exempt else ''}"
    got = WEIGHTS["execution_log"] if facts.runs else 0
    return Component("execution_log", got, WEIGHTS["execution_log"], why, applies)


def _parity(facts: Facts) -> Component:
    mirror = facts.mirror
    got = WEIGHTS["parity"] if mirror.current else 0
    return Component("parity", got, WEIGHTS["parity"], mirror.why, mirror.enabled)


def _rework(facts: Facts) -> Penalty:
    stalled = stalled_tries(facts.history.scores)
    points = min(_MOST_FOR_REWORK, _PER_REWORK * stalled)
    return Penalty(points, f"{stalled} tries without getting further")


def _budget(facts: Facts) -> Penalty:
    over = facts.history.iteration > facts.job.max_iterations
    return Penalty(_BUDGET_PENALTY if over else 0, f"iteration {facts.history.iteration} of {facts.job.max_iterations}")
