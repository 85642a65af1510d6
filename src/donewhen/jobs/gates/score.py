"""The score: points for verifiable facts, less penalties for attempts that made no progress.

Deterministic: the same facts give the same points, each with a reason. A component that does not apply to a job is
left out, and the rest is scaled to 100. Placeholders and template text earn nothing.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from donewhen.foundation.plain_text import join_limited
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.lessons.lesson_use import LessonFact
from donewhen.jobs.plan.job import MAX_SCORE
from donewhen.jobs.plan.placeholders import describes_verification

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
_PENALTY_PER_STALLED_TRY = 2
_MAX_STALL_PENALTY = 10
_BUDGET_PENALTY = 10
_MAX_LISTED = 3


class Component(NamedTuple):
    """A part of the score: points earned, points possible, and why; not counted if it does not apply."""

    name: ComponentName
    got: float
    possible: int
    why: str
    applies: bool = True


class Penalty(NamedTuple):
    """Points deducted, and why."""

    points: int
    why: str


class Score(NamedTuple):
    """The score of a job."""

    total: int
    components: tuple[Component, ...]
    penalties: tuple[Penalty, ...]


def score_of(facts: Facts) -> Score:
    """Compute the score from the facts."""
    components = (
        _acceptance(facts),
        _verification(facts),
        _hygiene(facts),
        _views(facts),
        _lessons(facts),
        _execution_log(facts),
        _parity(facts),
    )
    counted = [component for component in components if component.applies]
    possible = sum(component.possible for component in counted)
    got = sum(component.got for component in counted)
    # At most 99 while anything is missing, so that 100 means that every component is full.
    points = MAX_SCORE if got >= possible else min(MAX_SCORE - 1, round(MAX_SCORE * got / possible))
    penalties = tuple(penalty for penalty in (_stall_penalty(facts, points), _budget_penalty(facts)) if penalty.points)
    return Score(max(0, points - sum(penalty.points for penalty in penalties)), components, penalties)


def score_words(total: int, target: int) -> str:
    """A score and what is asked for, in the words that everything shows."""
    return f"{total}, needs {target}"


def stalled_tries(scores: tuple[int, ...]) -> int:
    """Count the attempts since the best one: none of them scored higher."""
    return len(scores) - 1 - scores.index(max(scores)) if scores else 0


def _acceptance(facts: Facts) -> Component:
    half = WEIGHTS["acceptance"] / 2
    criteria = facts.job.criteria
    passed = {status.requirement.name for status in facts.evidence if status.state == "passed"}
    met = [criterion for criterion in criteria if not criterion.placeholder and criterion.id in passed]
    good = [output for output in facts.outputs if output.state == "good" and not output.template]
    for_criteria = half * len(met) / len(criteria) if criteria else 0.0
    # A job without outputs is scored by its criteria alone.
    for_outputs = half * len(good) / len(facts.outputs) if facts.outputs else for_criteria
    existing = sum(output.state == "good" for output in facts.outputs)
    why = f"{len(met)} of {len(criteria)} criteria met, {existing} of {len(facts.outputs)} outputs exist"
    if existing > len(good):
        why += f", {existing - len(good)} of them with only placeholder text"
    return Component("acceptance", for_criteria + for_outputs, WEIGHTS["acceptance"], why)


def _verification(facts: Facts) -> Component:
    half = WEIGHTS["verification"] / 2
    plan = has_verification_plan(facts)
    passed = sum(status.state == "passed" for status in facts.evidence)
    evidence = half * passed / len(facts.evidence) if facts.evidence else 0.0
    why = f"{'a plan' if plan else 'no plan'}, {passed} of {len(facts.evidence)} checks passed and fresh"
    return Component("verification", (half if plan else 0.0) + evidence, WEIGHTS["verification"], why)


def has_verification_plan(facts: Facts) -> bool:
    """Whether the plan says how to verify the job: by a command or file check, or in text that is no placeholder."""
    if any(status.requirement.check.kind in ("run", "file") for status in facts.evidence):
        return True
    return describes_verification(facts.sections.get("verification", ""))


def _hygiene(facts: Facts) -> Component:
    parts = (
        (4, not facts.tampered, "status as in the ledger"),
        (3, facts.history.started is not None, "started"),
        (3, facts.progress_lines > 0, "progress log"),
    )
    got = sum(points for points, fulfilled, _ in parts if fulfilled)
    missing = [name for _, fulfilled, name in parts if not fulfilled]
    why = f"missing: {', '.join(missing)}" if missing else "complete"
    return Component("hygiene", got, WEIGHTS["hygiene"], why)


def _views(facts: Facts) -> Component:
    half = WEIGHTS["views"] / 2
    views = facts.views
    if views.left_out:
        return Component("views", 0, WEIGHTS["views"], views.left_out, applies=False)
    got = half * views.tracker + half * views.dashboard
    states = (("tracker", views.tracker), ("dashboard", views.dashboard))
    why = ", ".join(f"{name} {'up to date' if good else 'missing, edited or outdated'}" for name, good in states)
    return Component("views", got, WEIGHTS["views"], why)


def _lessons(facts: Facts) -> Component:
    """Score lessons: half for capturing a lesson, half for answering the given ones; if only one applies, it counts
    for all."""
    exempt = facts.job.exemptions.get("lesson_capture_exemption_reason")
    lessons = facts.lessons
    parts: list[tuple[float, str]] = []
    if facts.job.lesson_capture_required and not exempt:
        parts.append(_captured(lessons))
    if lessons.given:
        unanswered = [lesson for lesson in lessons.given if lesson not in lessons.answered]
        answered = f"{len(lessons.answered)} of {len(lessons.given)} given lesson(s) answered"
        answered += f", not {join_limited(unanswered, _MAX_LISTED)}" if unanswered else ""
        parts.append((len(lessons.answered) / len(lessons.given), answered))
    if not parts:
        why = f"not required{f': {exempt}' if exempt else ''}"
        return Component("lessons", 0, WEIGHTS["lessons"], why, applies=False)
    got = WEIGHTS["lessons"] * sum(share for share, _ in parts) / len(parts)
    return Component("lessons", got, WEIGHTS["lessons"], "; ".join(why for _, why in parts))


def _captured(lessons: LessonFact) -> tuple[float, str]:
    if lessons.kept:
        return 1.0, f"captured {join_limited(lessons.kept, _MAX_LISTED)}"
    return 0.0, "no lesson captured" + (f": {lessons.lacking[-1]}" if lessons.lacking else "")


def needs_execution_log(facts: Facts) -> bool:
    """Whether the gate should have run something. A job that people alone decide has nothing to run, unless it was
    agreed that something is."""
    job = facts.job
    exempt = job.exemptions.get("execution_log_exemption_reason")
    runnable = any(status.requirement.check.kind in ("run", "file") for status in facts.evidence)
    agreed = job.truth_mode == "strict" and "work_item_execution_logged" in job.truth_checks
    return job.execution_log_required and not exempt and (runnable or agreed or not facts.evidence)


def _execution_log(facts: Facts) -> Component:
    exempt = facts.job.exemptions.get("execution_log_exemption_reason")
    applies = needs_execution_log(facts)
    why = f"{facts.runs} successful run(s) by the gate" if applies else f"not required{f': {exempt}' if exempt else ''}"
    got = WEIGHTS["execution_log"] if facts.runs else 0
    return Component("execution_log", got, WEIGHTS["execution_log"], why, applies)


def _parity(facts: Facts) -> Component:
    mirror = facts.mirror
    got = WEIGHTS["parity"] if mirror.current else 0
    return Component("parity", got, WEIGHTS["parity"], mirror.why, mirror.enabled)


def _stall_penalty(facts: Facts, points: int) -> Penalty:
    """Deduct points for attempts without progress. The penalty ends as soon as the job has more points than in its
    best attempt, or all of them: otherwise a target could be out of reach for ever.

    Scores in the ledger are after penalties, but the best one had none: it was an improvement itself.
    """
    scores = facts.history.scores
    improved = points == MAX_SCORE or points > max(scores, default=0)
    stalled = 0 if improved else stalled_tries(scores)
    off = min(_MAX_STALL_PENALTY, _PENALTY_PER_STALLED_TRY * stalled)
    return Penalty(off, f"{stalled} {'attempt' if stalled == 1 else 'attempts'} without progress")


def _budget_penalty(facts: Facts) -> Penalty:
    """Deduct points for a spent budget, until a decision allows another attempt."""
    history = facts.history
    unblocked = history.auto_blocked and history.decided_since_block
    over = history.iteration > facts.job.max_iterations and not unblocked
    return Penalty(_BUDGET_PENALTY if over else 0, f"iteration {history.iteration} of {facts.job.max_iterations}")
