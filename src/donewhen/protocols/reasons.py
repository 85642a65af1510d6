"""The reason codes of completion checks, each with its meaning and the next step."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ReasonCode(StrEnum):
    """The codes a check can give. A checker of your own may leave the code out."""

    PLAN_INCOMPLETE = "plan_incomplete"
    PLAN_MISSING = "plan_missing"
    PLAN_EMPTY = "plan_empty"
    PLAN_SHRUNK = "plan_shrunk"
    FILES_MISSING = "files_missing"
    FILES_EMPTY = "files_empty"
    NO_FILESYSTEM = "no_filesystem"
    COMMAND_FAILED = "command_failed"
    COMMAND_KILLED = "command_killed"
    COMMAND_TIMEOUT = "command_timeout"
    COMMAND_NOT_FOUND = "command_not_found"
    TESTS_FAILED = "tests_failed"
    TESTS_NONE = "tests_none"
    TESTS_LOST = "tests_lost"
    TESTS_SKIPPED = "tests_skipped"
    REPORT_MISSING = "report_missing"
    REPORT_UNREADABLE = "report_unreadable"
    REPORT_DISAGREES = "report_disagrees"
    BASELINE_UNREADABLE = "baseline_unreadable"
    JUDGE_FAILED = "judge_failed"
    JUDGE_ABSTAINED = "judge_abstained"
    JUDGE_UNAVAILABLE = "judge_unavailable"
    NEEDS_HUMAN = "needs_human"
    JOB_NOT_DONE = "job_not_done"
    NO_JOB = "no_job"
    RECORD_GONE_BACK = "record_gone_back"
    TOO_FEW_PASSED = "too_few_passed"
    NOT_WANTED = "not_wanted"
    CHECK_TIMEOUT = "check_timeout"
    GATE_ERROR = "gate_error"

    @property
    def undecided(self) -> bool:
        """Whether the check could not be made, so that it decides nothing about the work."""
        return self in _UNDECIDED

    @property
    def is_error(self) -> bool:
        """Whether the checker itself is broken."""
        return self in (ReasonCode.GATE_ERROR, ReasonCode.CHECK_TIMEOUT)


class Reason(NamedTuple):
    """The meaning of a code, and what to do about it."""

    meaning: str
    next_step: str


_UNDECIDED = frozenset(
    {
        ReasonCode.NO_FILESYSTEM,
        ReasonCode.COMMAND_KILLED,
        ReasonCode.COMMAND_TIMEOUT,
        ReasonCode.COMMAND_NOT_FOUND,
        ReasonCode.REPORT_MISSING,
        ReasonCode.REPORT_UNREADABLE,
        ReasonCode.BASELINE_UNREADABLE,
        ReasonCode.JUDGE_ABSTAINED,
        ReasonCode.JUDGE_UNAVAILABLE,
        ReasonCode.NEEDS_HUMAN,
        ReasonCode.CHECK_TIMEOUT,
        ReasonCode.GATE_ERROR,
    }
)

REASONS: dict[ReasonCode, Reason] = {
    ReasonCode.PLAN_INCOMPLETE: Reason(
        "The plan has steps that are neither done nor cancelled with a reason.",
        "Finish the steps, or cancel those no longer needed, each with a reason.",
    ),
    ReasonCode.PLAN_MISSING: Reason(
        "A plan is required and none was made.",
        "Set up a plan with the planning tools, then work through it.",
    ),
    ReasonCode.PLAN_EMPTY: Reason(
        "The plan has no steps, so nothing can be done.",
        "Add the steps that the work needs.",
    ),
    ReasonCode.PLAN_SHRUNK: Reason(
        "Steps that were still open disappeared when the plan was set up again after work had begun.",
        "Add the dropped steps again, or cancel each with a reason.",
    ),
    ReasonCode.FILES_MISSING: Reason(
        "A required file does not exist or is not a regular file.",
        "Write the files that the feedback names.",
    ),
    ReasonCode.FILES_EMPTY: Reason(
        "A required file contains only white space.",
        "Put the real content into the files that the feedback names.",
    ),
    ReasonCode.NO_FILESYSTEM: Reason(
        "Files are required, but the check has no filesystem.",
        "Give the adapter a filesystem, for example HostFilesystem('.').",
    ),
    ReasonCode.COMMAND_FAILED: Reason(
        "A command that must succeed ended with a non-zero exit status.",
        "Read the last lines in the feedback, fix the cause, and try again.",
    ),
    ReasonCode.COMMAND_KILLED: Reason(
        "A command was killed by a signal before it finished.",
        "Find out what killed it (memory, a crash, another program), and try again.",
    ),
    ReasonCode.COMMAND_TIMEOUT: Reason(
        "A command did not end within its time limit and was killed with all its children.",
        "Make it faster, or raise the checker's timeout.",
    ),
    ReasonCode.COMMAND_NOT_FOUND: Reason(
        "A command could not be started: it does not exist, may not be executed, or its folder is missing.",
        "Install the command, or give its full path.",
    ),
    ReasonCode.TESTS_FAILED: Reason(
        "The test report has failures or errors.",
        "Fix the tests that the feedback names.",
    ),
    ReasonCode.TESTS_NONE: Reason(
        "No test was executed: none was collected, or all were skipped.",
        "Check that the command collects the tests. Zero tests is never a pass.",
    ),
    ReasonCode.TESTS_LOST: Reason(
        "Tests of the baseline are missing from the report.",
        "Restore the tests; if their removal is intended, record a new baseline.",
    ),
    ReasonCode.TESTS_SKIPPED: Reason(
        "Tests that ran in the baseline are skipped now.",
        "Enable the tests again; if skipping is intended, record a new baseline.",
    ),
    ReasonCode.REPORT_MISSING: Reason(
        "The command wrote no JUnit report.",
        "Make the command write its report to the path given as {junit} or into {junit_dir}.",
    ),
    ReasonCode.REPORT_UNREADABLE: Reason(
        "The JUnit report is not well-formed, is too large, or declares a document type.",
        "Run the command by hand and check the report file that it writes.",
    ),
    ReasonCode.REPORT_DISAGREES: Reason(
        "The report has no failures, but the command's exit status reports a failure.",
        "Read the last lines in the feedback: a crash, a coverage floor or a plug-in may have failed the run.",
    ),
    ReasonCode.BASELINE_UNREADABLE: Reason(
        "The baseline of test ids could not be read.",
        "Record it with: donewhen baseline --out FILE -- COMMAND",
    ),
    ReasonCode.JUDGE_FAILED: Reason(
        "The judge found that the work does not meet the criteria.",
        "Address the judge's reason and try again.",
    ),
    ReasonCode.JUDGE_ABSTAINED: Reason(
        "Too few of the judge's votes were usable to decide. Abstention is not a pass.",
        "Try again, sharpen the criteria, or use a stronger model.",
    ),
    ReasonCode.NEEDS_HUMAN: Reason(
        "The votes of a learned judge don't agree, or it has learned nothing yet. Not a pass: a person decides.",
        "Let a person review the work; label more work like it and train the judge: donewhen learn",
    ),
    ReasonCode.JUDGE_UNAVAILABLE: Reason(
        "The judge could not be asked: there is no adapter, or nothing to judge.",
        "Give the context an adapter and something to judge: an output, or the checker's files.",
    ),
    ReasonCode.JOB_NOT_DONE: Reason(
        "A job that the agent works on is neither done nor set aside with a reason.",
        "Do what the feedback names, then: donewhen complete JOB",
    ),
    ReasonCode.NO_JOB: Reason(
        "A job is required, but none is in progress, or the named job does not exist.",
        "Start a job: donewhen ready, donewhen start JOB",
    ),
    ReasonCode.RECORD_GONE_BACK: Reason(
        "The ledger of a job ended later before, on this machine: it was shortened, deleted, put aside or replaced.",
        "Bring it back. A person who went back on purpose says so: donewhen audit --accept-heads",
    ),
    ReasonCode.TOO_FEW_PASSED: Reason(
        "Fewer checks passed than are required.",
        "Make enough of the failing checks pass; the feedback lists them.",
    ),
    ReasonCode.NOT_WANTED: Reason(
        "A condition holds that must not hold.",
        "Undo what the feedback names.",
    ),
    ReasonCode.CHECK_TIMEOUT: Reason(
        "The check did not answer in time and was abandoned.",
        "Make the check faster, or raise the adapter's check_timeout.",
    ),
    ReasonCode.GATE_ERROR: Reason(
        "The check itself is broken: it raised an exception, or did not return a result.",
        "Fix the checker; until then it blocks, because a broken check is not a pass.",
    ),
}
