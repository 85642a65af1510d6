"""What a gate says."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NamedTuple

from donewhen.protocols.reasons import Reason

GateName = Literal["agreement", "budget", "dependency", "truth", "reward"]


class GateCode(StrEnum):
    """Why a gate is closed."""

    NOT_AGREED_YET = "not_agreed_yet"
    AGREEMENT_UNSEALED = "agreement_unsealed"
    AGREEMENT_VOIDED = "agreement_voided"
    BUDGET_EXCEEDED = "budget_exceeded"
    CANCELLED = "cancelled"
    NOT_STARTED = "not_started"
    DEPENDENCY_OPEN = "dependency_open"
    DEPENDENCY_INVALID = "dependency_invalid"
    DEPENDENCY_MISSING = "dependency_missing"
    DEPENDENCY_CYCLE = "dependency_cycle"
    UPSTREAM_CHANGED = "upstream_changed"
    OUTPUT_MISSING = "output_missing"
    OUTPUT_UNCHANGED = "output_unchanged"
    EVIDENCE_FILE_MISSING = "evidence_file_missing"
    CRITERION_FAILED = "criterion_failed"
    CRITERION_STALE = "criterion_stale"
    CRITERION_NOT_SHOWN = "criterion_not_shown"
    CRITERIA_ABSENT = "criteria_absent"
    COMMAND_NOT_PASSED = "command_not_passed"
    REPORT_TESTS_LOST = "report_tests_lost"
    REPORT_TESTS_SKIPPED = "report_tests_skipped"
    REPORT_CONFIG_CHANGED = "report_config_changed"
    EXECUTION_NOT_LOGGED = "execution_not_logged"
    LESSON_NOT_CAPTURED = "lesson_not_captured"
    RECORD_TAMPERED = "record_tampered"
    RECORD_BROKEN = "record_broken"
    NEEDS_HUMAN = "needs_human"
    SCORE_TOO_LOW = "score_too_low"
    GATE_ERROR = "gate_error"


class GateReason(NamedTuple):
    """One reason why a gate is closed."""

    code: GateCode
    message: str
    where: str | None = None


class GateResult(NamedTuple):
    """A gate's answer: open without reasons, and what to do about the first of them."""

    gate: GateName
    reasons: tuple[GateReason, ...]
    next: str | None = None
    note: str = ""

    @property
    def passed(self) -> bool:
        return not self.reasons


GATE_REASONS: dict[GateCode, Reason] = {
    GateCode.NOT_AGREED_YET: Reason("Nobody has agreed to what done means.", "Let a person agree: donewhen agree"),
    GateCode.AGREEMENT_UNSEALED: Reason(
        "A file says agreed, but nobody has sealed what.", "Let a person look at it and agree: donewhen agree"
    ),
    GateCode.AGREEMENT_VOIDED: Reason(
        "Something that was agreed has been loosened or removed since.",
        "Undo the edit, or let a person agree anew; the lines: donewhen contract diff",
    ),
    GateCode.BUDGET_EXCEEDED: Reason(
        "The job has taken more iterations than it may.",
        "Let a person decide: donewhen decide JOB --raise-budget N, --rescope, --split, --stakes or --target",
    ),
    GateCode.CANCELLED: Reason(
        "The job was cancelled by a decision.", "Let a person decide otherwise: donewhen decide JOB --rescope"
    ),
    GateCode.NOT_STARTED: Reason(
        "The job was never started, so nobody knows which tests and which inputs there were before.",
        "Start it: donewhen start JOB. What was made since it was agreed still counts.",
    ),
    GateCode.DEPENDENCY_OPEN: Reason(
        "A job that has to be done before is not done.", "Do that job first: donewhen ready"
    ),
    GateCode.DEPENDENCY_INVALID: Reason(
        "A job that has to be done before was done on something that has changed since.",
        "Complete that job again, then this one.",
    ),
    GateCode.DEPENDENCY_MISSING: Reason(
        "The job depends on one that does not exist.", "Restore it, or let a person agree to other dependencies."
    ),
    GateCode.DEPENDENCY_CYCLE: Reason(
        "Jobs depend on each other in a circle.", "Let a person agree to dependencies without one."
    ),
    GateCode.UPSTREAM_CHANGED: Reason(
        "What the job builds on has changed since it was started.", "Look at it and begin again: donewhen start JOB"
    ),
    GateCode.OUTPUT_MISSING: Reason(
        "An output is missing, empty, not a regular file, or outside of the project.", "Make the output."
    ),
    GateCode.OUTPUT_UNCHANGED: Reason(
        "No output has changed since the job was started, so nothing seems to have been done.",
        "Do the work; a job that changes nothing is agreed with read_only: true.",
    ),
    GateCode.EVIDENCE_FILE_MISSING: Reason(
        "A file that the job lists as its evidence is missing or empty.", "Write it; it is kept as an assertion."
    ),
    GateCode.CRITERION_FAILED: Reason("A criterion is not met.", "See why and repair it: donewhen why JOB"),
    GateCode.CRITERION_STALE: Reason(
        "A criterion was shown for something that has changed since.", "Show it again: donewhen run JOB"
    ),
    GateCode.CRITERION_NOT_SHOWN: Reason(
        "Nothing shows that a criterion is met.",
        "Run it: donewhen run JOB; by hand: donewhen sign-off JOB --criterion ID",
    ),
    GateCode.CRITERIA_ABSENT: Reason(
        "There are no acceptance criteria, or only placeholders. Zero checks is never a pass.",
        "Write what must be true, and let a person agree.",
    ),
    GateCode.COMMAND_NOT_PASSED: Reason(
        "A verification command has not passed.", "See why and repair it: donewhen why JOB"
    ),
    GateCode.REPORT_TESTS_LOST: Reason("Tests that were there before are gone from the report.", "Bring them back."),
    GateCode.REPORT_TESTS_SKIPPED: Reason("Tests that ran before are skipped now.", "Let them run again."),
    GateCode.REPORT_CONFIG_CHANGED: Reason(
        "A conftest.py or the configuration of pytest is another than when the job was first started.",
        "Put it back; where changing it is part of the work, let a person agree to it as an output.",
    ),
    GateCode.EXECUTION_NOT_LOGGED: Reason(
        "The gate has run nothing for this job since it was started.", "Show something: donewhen run JOB"
    ),
    GateCode.LESSON_NOT_CAPTURED: Reason(
        "A lesson is asked for and none that says something is linked to the job.",
        "Write one down: donewhen lessons add",
    ),
    GateCode.RECORD_TAMPERED: Reason(
        "A field that only shows what the ledger says was edited by hand.", "Undo the edit: donewhen audit"
    ),
    GateCode.RECORD_BROKEN: Reason(
        "The job's ledger does not hold together.", "Restore it from version control: donewhen audit"
    ),
    GateCode.NEEDS_HUMAN: Reason(
        "The votes of a judge don't agree on a criterion, so a person decides. Until then an agent may rest.",
        "Let a person look at it: donewhen review",
    ),
    GateCode.SCORE_TOO_LOW: Reason(
        "The score is below what was agreed.", "See what is missing: donewhen reward JOB --explain"
    ),
    GateCode.GATE_ERROR: Reason(
        "The gate itself broke, so it blocks: a broken check proves nothing.",
        "Run it again with DONEWHEN_DEBUG=1 and report the traceback.",
    ),
}
"""What each code means, and what to do about it."""
