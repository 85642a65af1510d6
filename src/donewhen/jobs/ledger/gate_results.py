"""The result of a gate: its reasons, their codes, and what each code means."""

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
    OTHER_VERSION = "other_version"
    NEEDS_HUMAN = "needs_human"
    OUTSIDE_WORK_AREA = "outside_work_area"
    TESTS_CHANGED = "tests_changed"
    ENVIRONMENT_CHANGED = "environment_changed"
    SIGNS_FOUND = "signs_found"
    RUN_NOT_TRUSTED = "run_not_trusted"
    RUN_FLAKY = "run_flaky"
    EVIDENCE_WEAK = "evidence_weak"
    PROGRAM_MISSING = "program_missing"
    JUDGE_UNREACHABLE = "judge_unreachable"
    MACHINE_OVERLOADED = "machine_overloaded"
    SCORE_TOO_LOW = "score_too_low"
    GATE_ERROR = "gate_error"


class GateReason(NamedTuple):
    """One reason why a gate is closed."""

    code: GateCode
    message: str
    where: str | None = None
    details: tuple[str, ...] = ()
    """What the check said, in a few lines, and the command that shows all of it. They are shown, and not recorded."""


class GateResult(NamedTuple):
    """The result of one gate. It passes if there are no reasons; ``next`` is what to do about the first reason."""

    gate: GateName
    reasons: tuple[GateReason, ...]
    next: str | None = None
    note: str = ""

    @property
    def passed(self) -> bool:
        return not self.reasons


GATE_REASONS: dict[GateCode, Reason] = {
    GateCode.NOT_AGREED_YET: Reason(
        "The job's acceptance criteria have not been agreed yet.", "Have a person agree: donewhen agree"
    ),
    GateCode.AGREEMENT_UNSEALED: Reason(
        "The plan file says agreed, but the ledger has no agreement.",
        "Have a person review it and agree: donewhen agree",
    ),
    GateCode.AGREEMENT_VOIDED: Reason(
        "A term of the agreement was loosened or removed after it was agreed.",
        "Undo the edit, or have a person agree again. See the changes: donewhen contract diff",
    ),
    GateCode.BUDGET_EXCEEDED: Reason(
        "The job has used up its iteration budget.",
        "Have a person decide: donewhen decide JOB --raise-budget N, --rescope, --split, --stakes or --target",
    ),
    GateCode.CANCELLED: Reason(
        "The job was cancelled by a decision.", "Have a person reopen it: donewhen decide JOB --rescope"
    ),
    GateCode.NOT_STARTED: Reason(
        "The job was never started, so there is no record of its tests and inputs before the work.",
        "Start it: donewhen start JOB. Work done since the agreement still counts.",
    ),
    GateCode.DEPENDENCY_OPEN: Reason(
        "A job that this one depends on is not done.", "Do that job first: donewhen ready"
    ),
    GateCode.DEPENDENCY_INVALID: Reason(
        "A job that this one depends on is done, but its inputs have changed since.",
        "Complete that job again, then this one.",
    ),
    GateCode.DEPENDENCY_MISSING: Reason(
        "The job depends on a job that does not exist.",
        "Restore that job, or have a person agree to other dependencies.",
    ),
    GateCode.DEPENDENCY_CYCLE: Reason(
        "Jobs depend on each other in a cycle.", "Have a person agree to dependencies without a cycle."
    ),
    GateCode.UPSTREAM_CHANGED: Reason(
        "The outputs of an upstream job have changed since this job was started.",
        "Review the change and start again: donewhen start JOB",
    ),
    GateCode.OUTPUT_MISSING: Reason(
        "An output is missing, empty, not a regular file, or outside of the project.", "Make the output."
    ),
    GateCode.OUTPUT_UNCHANGED: Reason(
        "No output has changed since the job was started.",
        "Do the work. For a job that changes nothing, agree on read_only: true.",
    ),
    GateCode.EVIDENCE_FILE_MISSING: Reason(
        "A file that the job lists as evidence is missing or empty.", "Write it. It counts as an assertion."
    ),
    GateCode.CRITERION_FAILED: Reason("A criterion is not met.", "See why and fix it: donewhen why JOB"),
    GateCode.CRITERION_STALE: Reason(
        "The evidence for a criterion is stale: something it depends on has changed.", "Run it again: donewhen run JOB"
    ),
    GateCode.CRITERION_NOT_SHOWN: Reason(
        "There is no evidence that a criterion is met.",
        "Run the checks: donewhen run JOB",
    ),
    GateCode.CRITERIA_ABSENT: Reason(
        "There are no acceptance criteria, or only placeholders. Zero checks is never a pass.",
        "Write what must be true, and have a person agree.",
    ),
    GateCode.COMMAND_NOT_PASSED: Reason(
        "A verification command has not passed.", "See why and fix it: donewhen why JOB"
    ),
    GateCode.REPORT_TESTS_LOST: Reason("Tests that existed before are missing from the report.", "Restore them."),
    GateCode.REPORT_TESTS_SKIPPED: Reason("Tests that ran before are now skipped.", "Enable them again."),
    GateCode.REPORT_CONFIG_CHANGED: Reason(
        "A conftest.py or the pytest configuration has changed since the job was first started.",
        "Revert it. If changing it is part of the work, have a person agree to it as an output.",
    ),
    GateCode.EXECUTION_NOT_LOGGED: Reason(
        "No check has been run for this job since it was started.", "Run its checks: donewhen run JOB"
    ),
    GateCode.LESSON_NOT_CAPTURED: Reason(
        "The job requires a lesson, and no lesson with content is linked to it.",
        "Add one: donewhen lessons add",
    ),
    GateCode.RECORD_TAMPERED: Reason(
        "A plan field that donewhen writes from the ledger was edited by hand.", "Undo the edit: donewhen audit"
    ),
    GateCode.RECORD_BROKEN: Reason(
        "The job's ledger fails its integrity check.", "Restore it from version control: donewhen audit"
    ),
    GateCode.OTHER_VERSION: Reason(
        "Another version of donewhen wrote a part of the record, in a format that this version can't use.",
        "Update donewhen. Don't restore or edit the file.",
    ),
    GateCode.NEEDS_HUMAN: Reason(
        "A person checks a criterion, or a judge can't decide it: its votes disagree, only its default says pass, it "
        "did not see all of the work, it reads the text differently from a person, or the work may not be sent to its "
        "model. So a person has to decide. The agent may stop until then.",
        "Have a person review it: donewhen review",
    ),
    GateCode.OUTSIDE_WORK_AREA: Reason(
        "A check passes only with changes outside the agreed work area, so a person has to accept them. The agent may "
        "stop until then.",
        "Have a person review them: donewhen review. Or undo them, and keep to the work area.",
    ),
    GateCode.TESTS_CHANGED: Reason(
        "A check passes only with the changed tests and not with the agreed ones, so a person has to accept them. The "
        "agent may stop until then.",
        "Have a person review them: donewhen review. Or make the work pass the agreed tests, too.",
    ),
    GateCode.ENVIRONMENT_CHANGED: Reason(
        "A check passes, but with programs or packages that nobody has accepted, or kept apart less than was accepted. "
        "The agent may stop until a person has decided.",
        "Have a person look at the differences and accept them: donewhen agree --env. Or undo them.",
    ),
    GateCode.SIGNS_FOUND: Reason(
        "A check passes, but changed lines of the work reach for what tests it, silence a tool of the checks, or have "
        "the results that visible tests expect. So a person has to look at them. The agent may stop until then.",
        "Have a person review the lines: donewhen review. Or change them.",
    ),
    GateCode.RUN_NOT_TRUSTED: Reason(
        "A test run says that it passed, but it can't be relied on: a test that must fail passed in it, or its report "
        "does not agree with what was seen while it ran. So it is no evidence.",
        "Remove what changes the test framework, its report or the end of the process from the work: donewhen why JOB",
    ),
    GateCode.RUN_FLAKY: Reason(
        "A check failed, and then passed on the same files, so its result depends on something else. A person has to "
        "decide; the agent may stop until then.",
        "Make the check or the work deterministic, or have a person review it: donewhen review",
    ),
    GateCode.EVIDENCE_WEAK: Reason(
        "A criterion is met, but the evidence is weaker than the contract asks for: with `needs` in the plan, or by "
        "the stakes of the job. The agent may stop until a person has decided.",
        "Make the evidence stronger, or have a person accept it: donewhen sign-off JOB --criterion ID. See what would "
        "help: donewhen why JOB",
    ),
    GateCode.PROGRAM_MISSING: Reason(
        "A check can't run, because a program is not installed on this machine. That says nothing about the work, so "
        "no iteration is counted.",
        "Install the program, and complete the job again. If that can't be done here: donewhen block JOB",
    ),
    GateCode.JUDGE_UNREACHABLE: Reason(
        "A judge was not asked, because its model can't be opened or does not answer. That says nothing about the "
        "work, so no iteration is counted.",
        "Check the model's address, key and network, and complete the job again. If that can't be done here: "
        "donewhen block JOB",
    ),
    GateCode.MACHINE_OVERLOADED: Reason(
        "A check ran out of time while the machine was suspended, or while other programs had its processors. That "
        "says nothing about the work, so no iteration is counted.",
        "Complete the job again when the machine has time.",
    ),
    GateCode.SCORE_TOO_LOW: Reason(
        "The score is below the agreed target.", "See what is missing: donewhen reward JOB --explain"
    ),
    GateCode.GATE_ERROR: Reason(
        "The gate itself failed with an error, so it blocks: a broken check proves nothing.",
        "Run it again with DONEWHEN_DEBUG=1 and report the traceback.",
    ),
}
"""The meaning and the next step of each code."""
