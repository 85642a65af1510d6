"""What the verbs say if the chosen model can't read a rule."""

from __future__ import annotations

from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.judging.competence import unread_problems
from donewhen.judging.guidance import Guidance
from donewhen.judging.mission import Mission
from donewhen.models.roles import unread_rules

_FORM = "Write them in the form that the model reads (docs/howto/write-guidance.md), or choose another model"
CHOSEN_HERE = f"{_FORM}: --model"
CHOSEN_IN_FILE = f"{_FORM}: `model` in mission.toml"


def unread_findings(mission: Mission, guidance: Guidance, model: object, advice: str = CHOSEN_HERE) -> list[Finding]:
    """The findings about rules that a model can't read; none if it reads all of them."""
    problems = unread_problems(unread_rules(model, guidance.rules))
    return [Finding(problem.code, problem.message, str(mission.folder), advice) for problem in problems]


def note_unread(output: Output, findings: list[Finding]) -> list[Finding]:
    """Print the findings before anything is spent; return them for the end of the output."""
    for finding in findings:
        output.note(f"! {finding.message}")
    if findings:
        output.note(f"  next: {findings[0].next}")
    return findings


def exit_with_unread(status: ExitCode, findings: list[Finding]) -> ExitCode:
    """The exit status: not PASS if rules were not followed."""
    return ExitCode.GATE_FAILED if findings and status is ExitCode.PASS else status
