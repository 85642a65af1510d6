"""What can be wrong with jobs and their record: a closed set of codes, each with its meaning and the next step."""

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
    MISSION_MISSING = "mission_missing"
    NOT_SHOWN = "not_shown"
    EVIDENCE_FAILED = "evidence_failed"
    EVIDENCE_STALE = "evidence_stale"
    EVIDENCE_ASSERTED = "evidence_asserted"
    NEEDS_HUMAN = "needs_human"
    EVIDENCE_MISSING = "evidence_missing"
    EVIDENCE_CHANGED = "evidence_changed"
    LABEL_UNPROVED = "label_unproved"
    LABELS_EDITED = "labels_edited"
    TAMPERED = "tampered"
    INTERRUPTED = "interrupted"
    CHAIN_BROKEN = "chain_broken"
    TORN = "torn"
    REWRITTEN = "rewritten"
    GIT = "git"
    ANCHOR_MISMATCH = "anchor_mismatch"
    ANCHOR_ABSENT = "anchor_absent"
    JOB_MISSING = "job_missing"
    DUPLICATE_ID = "duplicate_id"
    DEPENDENCY_DANGLING = "dependency_dangling"
    DEPENDENCY_CIRCLE = "dependency_circle"
    DONE_TOO_EARLY = "done_too_early"
    DONE_INVALID = "done_invalid"
    NOT_ON_BASE = "not_on_base"
    NOTHING_VERIFIED = "nothing_verified"
    JUDGING_CHANGED = "judging_changed"
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
        "Nobody has agreed to it yet.",
        "Look at it and agree: donewhen agree",
    ),
    FindingCode.UNSEALED: Reason(
        "A file says agreed or done, but the ledger has nothing to show for it.",
        "Look at what it says and seal it: donewhen agree",
    ),
    FindingCode.VOIDED: Reason(
        "Something that was agreed has been loosened or removed since.",
        "Undo the edit, or let a person agree anew; donewhen contract diff shows the lines.",
    ),
    FindingCode.APPROVER: Reason(
        "The word of this approver is recorded, but does not count here.",
        "Let a person do it at a terminal, or somebody whom the sealed contract allows.",
    ),
    FindingCode.NOT_AGREED: Reason(
        "The word that was shown was not typed, so nothing was agreed.",
        "Try again and type the word that is shown.",
    ),
    FindingCode.NOT_DECIDED: Reason(
        "The word that was shown was not typed, so nothing was decided.",
        "Try again and type the word that is shown.",
    ),
    FindingCode.PLACEHOLDER: Reason(
        "A criterion is a placeholder or the words of a template.",
        "Write what must be true for the job to be done.",
    ),
    FindingCode.CRITERIA_MISSING: Reason(
        "The job has no acceptance criteria. Zero checks is never a pass.",
        "Write them under the heading Acceptance Criteria.",
    ),
    FindingCode.COMMAND: Reason(
        "A verification command can't be run without a shell.",
        "Give one plain command, or put the line into a script and run that.",
    ),
    FindingCode.PATH_OUTSIDE: Reason(
        "A path leads out of the job and the project.",
        "Write it relative to the job, or with a slash in front relative to the project.",
    ),
    FindingCode.MISSION_MISSING: Reason(
        "A criterion names a judge that is not there, so nobody could know by whom it would be judged.",
        "Make the mission first, or name another: donewhen mission new missions/NAME",
    ),
    FindingCode.NOT_SHOWN: Reason(
        "Something that the job has to show was never shown.",
        "Run it: donewhen run JOB; what is checked by hand is signed off: donewhen sign-off",
    ),
    FindingCode.EVIDENCE_FAILED: Reason(
        "The gate ran it, and it did not pass.",
        "Read the output, fix the cause, and run it again.",
    ),
    FindingCode.EVIDENCE_STALE: Reason(
        "It was shown, but for other inputs, another program or another environment.",
        "Run it again: donewhen run JOB; donewhen why JOB names what has changed.",
    ),
    FindingCode.EVIDENCE_ASSERTED: Reason(
        "Somebody says so, but nobody whose word counts.",
        "Let a person sign it off at a terminal.",
    ),
    FindingCode.NEEDS_HUMAN: Reason(
        "The votes of a judge don't agree, so a person decides.",
        "Let a person look at it: donewhen review",
    ),
    FindingCode.EVIDENCE_MISSING: Reason(
        "The ledger names a content that is not in the evidence folder.",
        "Restore it from version control, or run the command again.",
    ),
    FindingCode.EVIDENCE_CHANGED: Reason(
        "A content in the evidence folder is not what its name says.",
        "Restore it from version control, or run the command again.",
    ),
    FindingCode.LABEL_UNPROVED: Reason(
        "A label is in the log of a mission that nobody has given, by the ledger.",
        "Take the line out of reviews.jsonl, or restore the file from version control.",
    ),
    FindingCode.LABELS_EDITED: Reason(
        "The tickets that people's labels come to were edited by hand.",
        "Restore reviewed.jsonl from version control; the next review writes it anew.",
    ),
    FindingCode.TAMPERED: Reason(
        "A field that only shows what the ledger says was edited by hand.",
        "Undo the edit. The ledger decides, not the field.",
    ),
    FindingCode.INTERRUPTED: Reason(
        "A writer was cut off between the ledger and the plan file.",
        "Nothing: the next command that writes there finishes it.",
    ),
    FindingCode.CHAIN_BROKEN: Reason(
        "An entry of the ledger was changed, removed or put in after it was written.",
        "Restore the file from version control.",
    ),
    FindingCode.TORN: Reason(
        "The last line of a chain is incomplete: a writer was cut off.",
        "Nothing: the next event sets it aside, in a file beside the chain.",
    ),
    FindingCode.REWRITTEN: Reason(
        "A chain holds together, but is not a continuation of what was committed.",
        "Compare it with the commit, and restore it.",
    ),
    FindingCode.GIT: Reason(
        "There is a repository that git can't read, so the ledger can't be compared with what was committed.",
        "Repair the repository or its configuration: git status says what is wrong.",
    ),
    FindingCode.ANCHOR_MISMATCH: Reason(
        "A chain no longer has the entry that a git note or trailer remembers.",
        "Restore the ledger from the commit that is named.",
    ),
    FindingCode.ANCHOR_ABSENT: Reason(
        "No head of the ledger is kept elsewhere, so a ledger written anew would not show.",
        "Keep them in a git note: donewhen anchor",
    ),
    FindingCode.JOB_MISSING: Reason(
        "The ledger knows a job whose plan file is gone.",
        "Restore the plan file from version control; a job that is not wanted is cancelled, not deleted.",
    ),
    FindingCode.DUPLICATE_ID: Reason(
        "Two jobs have the same id.",
        "Give one of them another id, in its folder's name and in its plan file.",
    ),
    FindingCode.DEPENDENCY_DANGLING: Reason(
        "A job depends on one that does not exist.",
        "Restore it, or agree to other dependencies.",
    ),
    FindingCode.DEPENDENCY_CIRCLE: Reason(
        "Jobs depend on each other in a circle, so none of them can be first.",
        "Agree to dependencies without a circle.",
    ),
    FindingCode.DONE_TOO_EARLY: Reason(
        "A job says done while one that it depends on is not.",
        "Complete the other one; then complete this one again.",
    ),
    FindingCode.DONE_INVALID: Reason(
        "A job was done on something that has changed since.",
        "Look at it again, start it and complete it anew.",
    ),
    FindingCode.NOT_ON_BASE: Reason(
        "A branch says that a job is done which nobody has agreed to on the base branch.",
        "Merge the agreement first, then the work.",
    ),
    FindingCode.NOTHING_VERIFIED: Reason(
        "No job was verified. Zero checks is never a pass.",
        "Complete a job on the branch, or name one: donewhen verify --base REF --job JOB",
    ),
    FindingCode.JUDGING_CHANGED: Reason(
        "A branch changes a file that judges its work. The work was judged with the file of the base branch as well.",
        "Look at the change in the review.",
    ),
    FindingCode.RECEIPT_UNFOUNDED: Reason(
        "A completion is on record that nothing on record bears out.",
        "Take it back, and complete the job with donewhen complete JOB",
    ),
    FindingCode.RECEIPT_REFUTED: Reason(
        "A branch says that a job is done, and running what was agreed again says that it is not.",
        "Repair what did not pass, and complete the job again.",
    ),
    FindingCode.IMPORT_LEFT_OUT: Reason(
        "The source has it, but not as work to be done: a draft, or something that was put away.",
        "Nothing, if that is right. Otherwise move it to where the source keeps its work, and import again.",
    ),
    FindingCode.IMPORT_NOT_UNDERSTOOD: Reason(
        "A part of the source can't be read as its format says, so nothing was made of it.",
        "Repair the line that is named, and import again: what is there already is not made twice.",
    ),
    FindingCode.IMPORT_NO_CRITERIA: Reason(
        "The source does not say when it would be done, so the job has no criteria yet.",
        "Write them into the plan; nobody can agree to the job before.",
    ),
    FindingCode.IMPORT_DEPENDENCY: Reason(
        "The source names a dependency that is not there, or that leads in a circle; it was not taken over.",
        "Write depends_on into the plan as it is meant, before somebody agrees.",
    ),
    FindingCode.IMPORT_COMMAND: Reason(
        "The source names a command. A source's text never becomes something that donewhen runs.",
        "Read it, and write it into the plan as a check, or give it with --run.",
    ),
    FindingCode.IMPORT_SHORTENED: Reason(
        "A text of the source is too long for a plan, and was cut.",
        "Read the source, and write down in the plan what the rest asks for.",
    ),
    FindingCode.IMPORT_CHANGED: Reason(
        "The source says something else now than when the job was made of it. The job was not touched.",
        "Edit the plan where the source is right, and agree again where that loosens something.",
    ),
    FindingCode.IMPORT_GONE: Reason(
        "A job was made of something that the source has no more. The job was not touched.",
        "Cancel it, if it is not wanted: donewhen decide JOB --cancel",
    ),
    FindingCode.NOT_DONE: Reason(
        "The job is not done now, so there is nothing that could be attested.",
        "Complete it first: donewhen complete JOB",
    ),
    FindingCode.OUTPUT_CHANGED: Reason(
        "An output is not what it was when the job was completed.",
        "Restore it, or start the job and complete it anew.",
    ),
    FindingCode.NO_SUBJECT: Reason(
        "There is no file that an attestation could be about: the job has no outputs, or one that is no file.",
        "Agree to outputs that are files, and complete the job anew.",
    ),
    FindingCode.PRIVATE: Reason(
        "The record of the job has what looks like a secret, or a path of this machine, so it is not given away.",
        "Look at the entry that is named; a secret that stands in a ledger has to be replaced by another.",
    ),
    FindingCode.ATTESTATION_FORM: Reason(
        "The file is not an attestation of donewhen, or not in the one form in which everybody reads the same.",
        "Ask whoever sent it for the file as donewhen attest wrote it.",
    ),
    FindingCode.RECEIPT_WRONG: Reason(
        "The chain in an attestation has no completion that stands, or another one than the receipt names.",
        "Don't rely on it. Ask for a new one: donewhen attest JOB",
    ),
    FindingCode.PREDICATE_WRONG: Reason(
        "An attestation says something else than the chain in it.",
        "Don't rely on it. Ask for a new one: donewhen attest JOB",
    ),
    FindingCode.OTHER_JOB: Reason(
        "The attestation is about another job than the one that was asked for.",
        "Ask for the attestation of the right job.",
    ),
    FindingCode.SIGNATURE_WRONG: Reason(
        "A signature names a key that was given, and does not fit: something was changed after it was signed.",
        "Don't rely on it. Ask for a new one: donewhen attest JOB --key FILE",
    ),
    FindingCode.SIGNER_UNKNOWN: Reason(
        "The attestation is signed, but by no key that was given, so nobody whom you know vouches for it.",
        "Get the signer's public key from them, by another way, and give it: --key",
    ),
    FindingCode.UNSIGNED: Reason(
        "Nobody has signed the attestation. It holds together, and anybody could have written it.",
        "Ask for one that is signed: donewhen attest JOB --key FILE",
    ),
    FindingCode.MIRROR_MISSING: Reason(
        "A job has no issue on GitHub: it was never made, or it was deleted, moved or taken for another.",
        "Make it: donewhen github sync; where it was moved, a person says what is meant.",
    ),
    FindingCode.MIRROR_DIFFERS: Reason(
        "A job's issue on GitHub does not say what the job says.",
        "Bring it up to date: donewhen github sync",
    ),
    FindingCode.MIRROR_DOUBLED: Reason(
        "More than one issue on GitHub carries the mark of a job; the oldest is taken for it.",
        "Close the others, and take the mark out of their text.",
    ),
}
