"""The findings about jobs and their record: a closed set of codes, each with its meaning and next step."""

from __future__ import annotations

from enum import StrEnum

from donewhen.protocols.reasons import Reason


class FindingCode(StrEnum):
    """The codes of findings about jobs."""

    PROPOSED = "proposed"
    UNSEALED = "unsealed"
    VOIDED = "voided"
    APPROVER = "approver"
    NOT_AGREED = "not_agreed"
    NOT_DECIDED = "not_decided"
    PLACEHOLDER = "placeholder"
    CRITERIA_MISSING = "criteria_missing"
    COMMAND = "command"
    PATH_OUTSIDE = "path_outside"
    OUTPUT_UNUSABLE = "output_unusable"
    HIDDEN_CHARACTER = "hidden_character"
    MISSION_MISSING = "mission_missing"
    UNCOMMITTED = "uncommitted"
    NO_BASELINE = "no_baseline"
    PROBED = "probed"
    NOT_SHOWN = "not_shown"
    EVIDENCE_FAILED = "evidence_failed"
    EVIDENCE_STALE = "evidence_stale"
    EVIDENCE_ASSERTED = "evidence_asserted"
    NEEDS_HUMAN = "needs_human"
    EVIDENCE_MISSING = "evidence_missing"
    EVIDENCE_CHANGED = "evidence_changed"
    EVIDENCE_INVALID = "evidence_invalid"
    LABEL_UNPROVED = "label_unproved"
    LABELS_EDITED = "labels_edited"
    TAMPERED = "tampered"
    INTERRUPTED = "interrupted"
    CHAIN_BROKEN = "chain_broken"
    OTHER_VERSION = "other_version"
    TORN = "torn"
    REWRITTEN = "rewritten"
    RECORD_GONE_BACK = "record_gone_back"
    GIT = "git"
    ANCHOR_MISMATCH = "anchor_mismatch"
    ANCHOR_ABSENT = "anchor_absent"
    JOB_MISSING = "job_missing"
    DUPLICATE_ID = "duplicate_id"
    DEPENDENCY_DANGLING = "dependency_dangling"
    DEPENDENCY_CIRCLE = "dependency_circle"
    DONE_TOO_EARLY = "done_too_early"
    DONE_INVALID = "done_invalid"
    DONE_UNTRUE = "done_untrue"
    DONE_BELOW_TARGET = "done_below_target"
    OVER_BUDGET = "over_budget"
    WORK_NOT_AGREED = "work_not_agreed"
    UNKNOWN_FORMAT = "unknown_format"
    FIELD_MISSPELLED = "field_misspelled"
    NOT_ON_BASE = "not_on_base"
    NOTHING_VERIFIED = "nothing_verified"
    JUDGING_CHANGED = "judging_changed"
    NO_WORK_AREA = "no_work_area"
    ROOM_NOT_ON_BASE = "room_not_on_base"
    SETTING_OBSOLETE = "setting_obsolete"
    ISOLATION_WEAK = "isolation_weak"
    RECEIPT_UNFOUNDED = "receipt_unfounded"
    RECEIPT_REFUTED = "receipt_refuted"
    IMPORT_LEFT_OUT = "import_left_out"
    IMPORT_NOT_UNDERSTOOD = "import_not_understood"
    IMPORT_NO_CRITERIA = "import_no_criteria"
    IMPORT_DEPENDENCY = "import_dependency"
    IMPORT_COMMAND = "import_command"
    IMPORT_SHORTENED = "import_shortened"
    IMPORT_CHANGED = "import_changed"
    IMPORT_GONE = "import_gone"
    NOT_DONE = "not_done"
    OUTPUT_CHANGED = "output_changed"
    NO_SUBJECT = "no_subject"
    PRIVATE = "private"
    ATTESTATION_FORM = "attestation_form"
    RECEIPT_WRONG = "receipt_wrong"
    PREDICATE_WRONG = "predicate_wrong"
    OTHER_JOB = "other_job"
    SIGNATURE_WRONG = "signature_wrong"
    SIGNER_UNKNOWN = "signer_unknown"
    UNSIGNED = "unsigned"
    MIRROR_MISSING = "mirror_missing"
    MIRROR_DIFFERS = "mirror_differs"
    MIRROR_DOUBLED = "mirror_doubled"


FINDINGS: dict[FindingCode, Reason] = {
    FindingCode.PROPOSED: Reason(
        "It has not been agreed yet.",
        "Review it and agree: donewhen agree",
    ),
    FindingCode.UNSEALED: Reason(
        "A plan file says agreed or done, but the ledger has no entry for it.",
        "Review it and agree: donewhen agree",
    ),
    FindingCode.VOIDED: Reason(
        "A term of the agreement was loosened or removed after it was agreed.",
        "Undo the edit, or have a person agree again. See the changes: donewhen contract diff",
    ),
    FindingCode.APPROVER: Reason(
        "This approval was recorded, but the approver is not allowed to approve here.",
        "Have a person approve at a terminal, or use an approver that the sealed contract allows.",
    ),
    FindingCode.NOT_AGREED: Reason(
        "The confirmation word didn't match. Nothing was agreed.",
        "Try again and type the word that is shown.",
    ),
    FindingCode.NOT_DECIDED: Reason(
        "The confirmation word didn't match. Nothing was decided.",
        "Try again and type the word that is shown.",
    ),
    FindingCode.PLACEHOLDER: Reason(
        "A criterion is a placeholder or template text.",
        "Write what must be true for the job to be done.",
    ),
    FindingCode.CRITERIA_MISSING: Reason(
        "The job has no acceptance criteria. Zero checks is never a pass.",
        "Write them under the heading Acceptance Criteria.",
    ),
    FindingCode.UNCOMMITTED: Reason(
        "Files outside the work area differ from the last commit, so the agreed commit would not have them.",
        "Commit them first, or add them to the job's work area; then: donewhen agree",
    ),
    FindingCode.NO_BASELINE: Reason(
        "A command that runs tests could not be run on the agreed files, so lost tests would not be noticed.",
        "Make it run, or agree without a baseline: donewhen agree --no-baseline",
    ),
    FindingCode.PROBED: Reason(
        "The tests of a job were probed. It says how much they are worth, and counts for and against nothing.",
        "Add tests for the changes that none noticed.",
    ),
    FindingCode.COMMAND: Reason(
        "A verification command can't be run without a shell.",
        "Use a single command, or put the line into a script and run that.",
    ),
    FindingCode.PATH_OUTSIDE: Reason(
        "A path leads out of the job's folder and the project.",
        "Write it relative to the job's folder, or with a leading slash relative to the project.",
    ),
    FindingCode.OUTPUT_UNUSABLE: Reason(
        "An output is a folder, or a file that donewhen writes itself.",
        "Name the files that the job makes, or a pattern such as /dist/*.js.",
    ),
    FindingCode.HIDDEN_CHARACTER: Reason(
        "A contract has a character that can't be seen, or that changes how the text around it reads.",
        "Remove it: people agree to what they can see.",
    ),
    FindingCode.MISSION_MISSING: Reason(
        "A criterion names a mission that does not exist, so it has no judge.",
        "Create the mission, or name another one: donewhen mission new missions/NAME",
    ),
    FindingCode.NOT_SHOWN: Reason(
        "A requirement of the job has no evidence.",
        "Run the checks: donewhen run JOB. For manual criteria: donewhen sign-off",
    ),
    FindingCode.EVIDENCE_FAILED: Reason(
        "The check was run and did not pass.",
        "Read the output, fix the cause, and run it again.",
    ),
    FindingCode.EVIDENCE_STALE: Reason(
        "The evidence is stale: the inputs, the program or the environment have changed.",
        "Run it again: donewhen run JOB. See what has changed: donewhen why JOB",
    ),
    FindingCode.EVIDENCE_ASSERTED: Reason(
        "It was only asserted, by someone who is not allowed to approve.",
        "Have a person sign it off at a terminal.",
    ),
    FindingCode.NEEDS_HUMAN: Reason(
        "The judge's votes disagree, so a person has to decide.",
        "Have a person review it: donewhen review",
    ),
    FindingCode.EVIDENCE_MISSING: Reason(
        "The ledger refers to evidence that is missing from the evidence folder.",
        "Restore it from version control, or run the command again.",
    ),
    FindingCode.EVIDENCE_CHANGED: Reason(
        "A file in the evidence folder does not match the hash in its name.",
        "Restore it from version control, or run the command again.",
    ),
    FindingCode.EVIDENCE_INVALID: Reason(
        "A record in the evidence folder has values that donewhen does not write.",
        "Run the command again: donewhen run JOB --again",
    ),
    FindingCode.LABEL_UNPROVED: Reason(
        "A label in a mission's review log has no entry in the ledger.",
        "Remove the line from reviews.jsonl, or restore the file from version control.",
    ),
    FindingCode.LABELS_EDITED: Reason(
        "The tickets generated from people's labels were edited by hand.",
        "Restore reviewed.jsonl from version control; the next review rewrites it.",
    ),
    FindingCode.TAMPERED: Reason(
        "A plan field that donewhen writes from the ledger was edited by hand.",
        "Undo the edit. The ledger decides, not the plan file.",
    ),
    FindingCode.INTERRUPTED: Reason(
        "A write was interrupted between the ledger and the plan file.",
        "Nothing to do: the next command that writes there completes it.",
    ),
    FindingCode.CHAIN_BROKEN: Reason(
        "A ledger entry was changed, removed or inserted later.",
        "Restore the file from version control.",
    ),
    FindingCode.OTHER_VERSION: Reason(
        "Another version of donewhen wrote this chain or record in a format that this version can't use.",
        "Update donewhen, then audit again. Don't restore or edit the file.",
    ),
    FindingCode.TORN: Reason(
        "The last line of a chain is incomplete: a write was interrupted.",
        "Nothing to do: the next event moves the line to a .torn file beside the chain.",
    ),
    FindingCode.REWRITTEN: Reason(
        "A chain is consistent, but does not continue the committed one.",
        "Compare it with the commit and restore it.",
    ),
    FindingCode.GIT: Reason(
        "git can't read the repository, so the ledger can't be compared with the committed one.",
        "Repair the repository or its configuration. See what is wrong: git status",
    ),
    FindingCode.ANCHOR_MISMATCH: Reason(
        "A chain lacks the entry that a git note or trailer anchors.",
        "Restore the ledger from the named commit.",
    ),
    FindingCode.ANCHOR_ABSENT: Reason(
        "No ledger head is anchored, so a rewritten ledger would not be detected.",
        "Anchor the heads in a git note: donewhen anchor",
    ),
    FindingCode.RECORD_GONE_BACK: Reason(
        "The ledger ended later before, on this machine: it was shortened, deleted, put aside or replaced.",
        "Bring it back. A person who went back on purpose says so: donewhen audit --accept-heads",
    ),
    FindingCode.JOB_MISSING: Reason(
        "The ledger has a job whose plan file is missing.",
        "Restore the plan file from version control. Cancel unwanted jobs instead of deleting them.",
    ),
    FindingCode.DUPLICATE_ID: Reason(
        "Two jobs have the same id.",
        "Change the id of one of them, in its folder name and in its plan file.",
    ),
    FindingCode.DEPENDENCY_DANGLING: Reason(
        "A job depends on a job that does not exist.",
        "Restore that job, or agree to other dependencies.",
    ),
    FindingCode.DEPENDENCY_CIRCLE: Reason(
        "Jobs depend on each other in a cycle.",
        "Agree to dependencies without a cycle.",
    ),
    FindingCode.DONE_TOO_EARLY: Reason(
        "A job is marked done, but a job that it depends on is not; or a workstream or project is marked done, but not "
        "all of its jobs are.",
        "Complete the open jobs first, then complete this job again.",
    ),
    FindingCode.DONE_INVALID: Reason(
        "A job is done, but its inputs have changed since.",
        "Review it, then start and complete it again.",
    ),
    FindingCode.DONE_UNTRUE: Reason(
        "A job is marked done, but its truth is not recorded as passed.",
        "Complete it again: donewhen complete JOB",
    ),
    FindingCode.DONE_BELOW_TARGET: Reason(
        "A job is marked done, but the score that is recorded is below its target.",
        "Complete it again: donewhen complete JOB",
    ),
    FindingCode.OVER_BUDGET: Reason(
        "A job has used more iterations than it may, is not blocked, and nobody has decided.",
        "Decide: donewhen decide JOB --raise-budget N",
    ),
    FindingCode.WORK_NOT_AGREED: Reason(
        "A job is in progress, but nobody has agreed to it or to its project.",
        "Review it and agree: donewhen agree",
    ),
    FindingCode.UNKNOWN_FORMAT: Reason(
        "A plan file has a schema or kind that donewhen does not know.",
        "Correct the field, or update donewhen.",
    ),
    FindingCode.FIELD_MISSPELLED: Reason(
        "A plan has an unknown field whose name is nearly that of a known one, so it has no effect.",
        "Correct the name, or choose one that is less alike.",
    ),
    FindingCode.NOT_ON_BASE: Reason(
        "A branch marks a job as done that was not agreed on the base branch.",
        "Merge the agreement first, then the work.",
    ),
    FindingCode.NOTHING_VERIFIED: Reason(
        "No job was verified. Zero checks is never a pass.",
        "Complete a job on the branch, or name one: donewhen verify --base REF --job JOB",
    ),
    FindingCode.JUDGING_CHANGED: Reason(
        "A branch changes a file that its work is checked with, or one outside the work area. The checks were also run "
        "with the base branch's version.",
        "Check this change in the code review.",
    ),
    FindingCode.NO_WORK_AREA: Reason(
        "A job was agreed without a work area, so a branch may change everything except files whose names are known "
        "to judge.",
        "Add work: to its plan on the base branch, and have a person agree: donewhen agree",
    ),
    FindingCode.ROOM_NOT_ON_BASE: Reason(
        "A job was completed with the agreed files of a commit that is not on the base branch.",
        "Merge the base branch and complete the job again: donewhen complete JOB",
    ),
    FindingCode.ISOLATION_WEAK: Reason(
        "The checks were not kept apart in namespaces of their own, so more of the machine was in their reach.",
        "Install bubblewrap, or allow user namespaces: donewhen doctor says what is missing. To demand it: "
        '[jobs] isolation = "namespaces".',
    ),
    FindingCode.SETTING_OBSOLETE: Reason(
        "A setting is still read, but a later version of donewhen will not know it.",
        "Do what the finding says, and remove the setting.",
    ),
    FindingCode.RECEIPT_UNFOUNDED: Reason(
        "A completion in the ledger is not supported by the evidence in the ledger.",
        "Revert it, and complete the job with donewhen complete JOB",
    ),
    FindingCode.RECEIPT_REFUTED: Reason(
        "A branch marks a job as done, but running its checks again fails.",
        "Fix what failed, and complete the job again.",
    ),
    FindingCode.IMPORT_LEFT_OUT: Reason(
        "Skipped: in the source it is a draft or archived, not open work.",
        "Nothing to do if that is right. Otherwise move it to the source's open work and import again.",
    ),
    FindingCode.IMPORT_NOT_UNDERSTOOD: Reason(
        "A part of the source could not be parsed and was skipped.",
        "Fix the named line and import again. Jobs that already exist are not created twice.",
    ),
    FindingCode.IMPORT_NO_CRITERIA: Reason(
        "The source has no acceptance criteria, so the job has none yet.",
        "Write them into the plan. The job can't be agreed without them.",
    ),
    FindingCode.IMPORT_DEPENDENCY: Reason(
        "The source names a dependency that does not exist or forms a cycle. It was not imported.",
        "Set depends_on in the plan before the job is agreed.",
    ),
    FindingCode.IMPORT_COMMAND: Reason(
        "The source names a command. Commands from a source are never imported.",
        "Review it, then add it to the plan as a check, or pass it with --run.",
    ),
    FindingCode.IMPORT_SHORTENED: Reason(
        "A text in the source is too long for a plan and was truncated.",
        "Read the source and add the missing requirements to the plan.",
    ),
    FindingCode.IMPORT_CHANGED: Reason(
        "The source has changed since the job was imported. The job was not changed.",
        "Update the plan if the source is right, and agree again if that loosens a term.",
    ),
    FindingCode.IMPORT_GONE: Reason(
        "A job was imported from something that is no longer in the source. The job was not changed.",
        "Cancel it if it is no longer wanted: donewhen decide JOB --cancel",
    ),
    FindingCode.NOT_DONE: Reason(
        "The job is not done, so there is nothing to attest.",
        "Complete it first: donewhen complete JOB",
    ),
    FindingCode.OUTPUT_CHANGED: Reason(
        "An output has changed since the job was completed.",
        "Restore it, or start and complete the job again.",
    ),
    FindingCode.NO_SUBJECT: Reason(
        "There is no file to attest: the job has no outputs, or an output is not a file.",
        "Agree to outputs that are files, and complete the job again.",
    ),
    FindingCode.PRIVATE: Reason(
        "The job's record contains a possible secret or a local path, so it was not exported.",
        "Check the named entry. Revoke and replace a secret that is in the ledger.",
    ),
    FindingCode.ATTESTATION_FORM: Reason(
        "The file is not a donewhen attestation, or not in canonical form.",
        "Ask the sender for the unmodified output of donewhen attest.",
    ),
    FindingCode.RECEIPT_WRONG: Reason(
        "The chain in the attestation has no valid completion, or a different one than the receipt names.",
        "Don't rely on it. Ask for a new one: donewhen attest JOB",
    ),
    FindingCode.PREDICATE_WRONG: Reason(
        "The attestation contradicts the chain in it.",
        "Don't rely on it. Ask for a new one: donewhen attest JOB",
    ),
    FindingCode.OTHER_JOB: Reason(
        "The attestation is for a different job than requested.",
        "Ask for the attestation of the right job.",
    ),
    FindingCode.SIGNATURE_WRONG: Reason(
        "A signature by a trusted key is invalid: the attestation was changed after it was signed.",
        "Don't rely on it. Ask for a new one: donewhen attest JOB --key FILE",
    ),
    FindingCode.SIGNER_UNKNOWN: Reason(
        "The attestation is signed, but not by a key that you trust.",
        "Get the signer's public key through another channel and pass it with --key",
    ),
    FindingCode.UNSIGNED: Reason(
        "The attestation is consistent but not signed, so anyone could have written it.",
        "Ask for a signed one: donewhen attest JOB --key FILE",
    ),
    FindingCode.MIRROR_MISSING: Reason(
        "A job has no issue on GitHub: it was never created, or was deleted, moved or reused.",
        "Create it: donewhen github sync. If it was moved, a person has to decide.",
    ),
    FindingCode.MIRROR_DIFFERS: Reason(
        "A job's issue on GitHub does not match the job.",
        "Update it: donewhen github sync",
    ),
    FindingCode.MIRROR_DOUBLED: Reason(
        "More than one issue on GitHub has a job's marker; the oldest one is used.",
        "Close the others and remove the marker from their text.",
    ),
}
