"""The typed content of ledger entries: one struct for each kind of event, decoded once when a chain is read.

Every field has a default, because a chain may have been written by an older version. A field with a value of the wrong
type is an error. The bytes of an entry, and so its hash, never depend on these types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from donewhen.foundation.binary import Binary
from donewhen.foundation.canonical import digest_of
from donewhen.jobs.ledger.evidence_levels import EvidenceLevel, NeededLevel
from donewhen.jobs.ledger.terms_content import DecidedTerms, Terms, refuse_newer_terms

Files: TypeAlias = dict[str, str | None]
"""Paths with the hashes of their contents; None for a file that is missing."""


class Signature(msgspec.Struct, frozen=True):
    """The signature of an approval by a key."""

    key: str | None = None
    value: str = ""


class EntryContent(msgspec.Struct, frozen=True, kw_only=True):
    """What an entry of any kind may have."""

    adopted: dict[str, Any] = {}
    """In the first entry of a chain: fields of the plan that existed before."""
    writes: dict[str, tuple[Any, Any]] = {}
    """The fields of the plan that were written, each with its value before and after."""
    signature: Signature | None = None
    named: str = ""
    """What git calls the person who approved, to be shown. Only ``by`` of the entry says who it was."""
    unproved: str = ""
    """Why the key with which this was to be approved does not prove a person."""


class Upstream(msgspec.Struct, frozen=True):
    """Where the agreed branch comes from, and its name there."""

    url: str = ""
    branch: str = ""


class AgreedTree(msgspec.Struct, frozen=True, omit_defaults=True):
    """The files as they were agreed: a commit, or without git the name of a list in the store of the project."""

    commit: str | None = None
    list: str | None = None
    upstream: Upstream | None = None
    filters: dict[str, str] = {}
    """The commands of git's filters, such as `lfs.smudge`."""
    present: Files = {}
    """Files that git ignores and that were agreed to be there, with the hashes of their contents."""


class AgreedBaseline(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tests that a command ran in the agreed tree, or why they are not known."""

    outcomes: str | None = None
    """The name of the outcomes in the evidence store."""
    tests: int = 0
    why: str = ""
    controls: str = ""
    """``held``, or why controls tell nothing in runs of this command; empty in entries of versions without them."""
    compiled: str | None = None
    """The name of the compiled modules of interpreter and packages that the command loads, in the evidence store of the
    machine where it ran; None in entries of versions that did not record it."""


class AgreedEnvironment(msgspec.Struct, frozen=True, omit_defaults=True):
    """What checks find around them on one machine, besides the files of the room."""

    machine: str = ""
    """What names the machine: a short hash."""
    isolation: str = ""
    """``namespaces``, ``landlock`` or ``copy``: how the checks were kept apart from everything else."""
    network: str = ""
    """``own`` if checks have a loopback of their own and nothing else, ``host`` if they have the machine's network."""
    path: list[str] = []
    """The folders of PATH; ``~`` stands for the home folder."""
    variables: dict[str, str] = {}
    """The variables that say where tools are installed; ``~`` stands for the home folder."""
    sealed: dict[str, str] = {}
    """Short hashes of the other variables that are passed on and are no secrets: registries, indexes, addresses."""
    listing: str | None = None
    """The name of the listing of interpreters, packages and programs in the evidence store."""

    @property
    def hash(self) -> str:
        """A hash of what checks could load or be led by, wherever it lies."""
        return digest_of({"listing": self.listing, "sealed": dict(self.sealed)})


class Agreed(EntryContent, frozen=True, kw_only=True):
    """Terms were agreed to, or tightened, or an agent claimed an agreement (``said``)."""

    how: str = ""
    """``agreed``, ``tightened`` or ``said``; other words of older versions have no effect."""
    terms: Terms | None = None
    hash: str = ""
    notes: str = ""
    outputs: Files | None = None
    """The outputs that existed before the job was started."""
    tree: AgreedTree | None = None
    """None in entries of versions that did not record it."""
    baselines: dict[str, AgreedBaseline] = {}
    """The tests that the commands ran in the agreed tree."""
    environment: AgreedEnvironment | None = None
    """None in entries of versions that did not record it: then checks run with the caller's home and network."""
    needs: dict[str, NeededLevel] = {}
    """How strong the evidence for every criterion has to be, by the stakes of the job. Empty in entries of versions
    that did not ask for it, and in agreements of projects."""


class Worker(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who works on a job. Nothing in it is a path or a name of a machine; places are hashes."""

    clone: str = ""
    """The id of the clone; empty without git."""
    places: list[str] = []
    """Hashes of where the clone is."""
    worktree: str = ""
    """A hash of where the work tree is."""
    runtime: str = ""
    """The agent runtime that started donewhen; empty if none did."""
    session: str = ""
    """The id of the agent's session, as far as the runtime tells it. It decides nothing against its owner."""
    process: str = ""
    """Names the runtime's process: boot and namespace, process id, and when it started."""


class Started(EntryContent, frozen=True, kw_only=True):
    """Work on a job was started, or a workstream or project is in progress because of ``job``."""

    outputs: Files | None = None
    upstream: Files = {}
    harness: Files | None = None
    """The test configuration; None in entries of versions that did not record it."""
    commit: str | None = None
    lessons: dict[str, str] = {}
    job: str | None = None
    worker: Worker | None = None
    """Who started it; None in entries of versions that did not record it."""
    taken_over: str = ""
    """``clone`` or ``session`` if it was in progress in another one; empty if not."""


class TestCounts(msgspec.Struct, frozen=True):
    """The numbers of a test report."""

    __test__ = False

    formats: list[str] = []
    passed: int | None = None
    """None if the report has no tests, only coverage."""
    failed: int = 0
    skipped: int = 0
    coverage: float | None = None

    def numbers(self) -> dict[str, int | float]:
        """The numbers that the report has."""
        numbers: dict[str, int | float] = {}
        if self.passed is not None:
            numbers |= {"passed": self.passed, "failed": self.failed, "skipped": self.skipped}
        return numbers if self.coverage is None else {**numbers, "coverage": self.coverage}


class Ran(EntryContent, frozen=True, kw_only=True):
    """Evidence was collected."""

    evidence: str = ""
    """The command, file check or judge, with secrets redacted."""
    criterion: str | None = None
    asked_for: bool = False
    key: str = ""
    """A hash of everything that the result depends on; empty if a judge could not be asked."""
    parts: dict[str, str] = {}
    settled: bool = False
    """Whether the inputs stayed the same during the run."""
    passed: bool = False
    told: str | None = None
    hindrance: str = ""
    """The reason code of what kept the check from showing anything about the work; empty if nothing did."""


class FoundSign(msgspec.Struct, frozen=True, omit_defaults=True):
    """A changed line that a person should look at."""

    kind: str = ""
    file: str = ""
    """Relative to the repository."""
    line: int = 0
    id: str = ""
    """A hash of the kind, the file and the text of the lines."""
    asks: bool = True
    """Whether a person has to decide about it."""


class RoomRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """The room in which a command was run, and what of the agent's files was not in it."""

    tree: str = ""
    """A hash of what the room is made of, besides the work."""
    commit: str | None = None
    runs: int = 1
    """2 if the command was also run on everything as the agent has it."""
    outside: list[str] = []
    """Changed files outside the work area, or that judge; they were not in the first run."""
    tests: list[str] = []
    """Changed tests, which were not in the first run."""
    left_out: list[str] = []
    """Links that lead out, and files that can't be read."""
    needs: str = ""
    """What a person has to decide: ``outside_work_area`` or ``tests_changed``; empty if nothing."""
    failed_in: str = ""
    """Which run failed: ``agreed``, ``whole`` or ``both``; empty if none."""
    lost: list[str] = []
    """Tests that passed in the agreed tree and are missing now."""
    skipped: list[str] = []
    renamed: dict[str, str] = {}
    before: int = 0
    """The number of tests that passed in the agreed tree."""
    now: int = 0
    provisional: bool = False
    """Whether upstream files could not be compared with the server."""
    isolation: str = ""
    """How the check was kept apart from everything else; empty in entries of versions that did not record it."""
    network: str = ""
    """``own`` or ``host``."""
    machine: str = ""
    environment: str = ""
    """A hash of what the check could load besides the files of the room, and of the variables that judge."""
    files: str = ""
    """A hash of every file in the rooms; empty in entries of versions that did not record it."""
    red_before: int = 0
    """The entry of an earlier run that failed on the same files, although this one passed; 0 if there is none."""
    differs: list[str] = []
    """How that differs from what a person has accepted, apart from what the work declares."""
    signs: list[FoundSign] = []
    """The lines of the work that a person should look at."""


class RunControls(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the controls in a test run said: tests of the gate that must fail and that must pass."""

    held: str
    """``held``, ``none`` or ``broken``."""
    why: str = ""
    """Why there were none, or what was wrong."""
    faults: list[str] = []


class CommandRun(Ran, frozen=True, kw_only=True):
    """A command was run."""

    ending: str = ""
    exit_code: int | None = None
    record: str | None = None
    output: str | None = None
    manifest: str | None = None
    report: TestCounts | None = None
    unlogged: str | None = None
    redacted: int = 0
    """How many places of the stored output were redacted. 0 in entries of versions that did not count them."""
    room: RoomRun | None = None
    """None if the command was run in the work tree, as it is without an agreed work area."""
    controls: RunControls | None = None
    """None in entries of versions without controls."""


class BaselineRun(Ran, frozen=True, kw_only=True):
    """A command was run on the agreed tree, to learn which tests there are."""

    tree: str = ""
    """The commit, or the name of the list of agreed files."""
    outcomes: str | None = None
    tests: int = 0
    controls: str = ""
    """Like the field of an agreed baseline."""


class ProbeRun(Ran, frozen=True, kw_only=True):
    """The tests of a run that has passed were probed. It says how much the run is worth, and decides nothing itself."""

    run: str = ""
    """The entry of that run; ``key`` is its key."""
    probes: str | None = None
    """The name of the record in the evidence store."""


class FileCheck(Ran, frozen=True, kw_only=True):
    """A file was checked."""


class JudgeRun(Ran, frozen=True, kw_only=True):
    """A judge was asked."""

    mission: str | None = None
    model: str | None = None
    guidance_step: int | None = None
    ticket: str | None = None
    verdict: Binary | None = None
    votes: dict[str, int] = {}
    agreement: float | None = None
    margin: float | None = None
    needs_human: bool = False
    reason: str = ""
    overridden_by: str | None = None


class JudgedCriterion(msgspec.Struct, frozen=True):
    """Who decided a judged criterion of a completion."""

    mission: str = ""
    state: str = ""
    entry: str = ""
    person: str | None = None
    guidance_step: int | None = None


class Evaluated(EntryContent, frozen=True, kw_only=True):
    """The gates were evaluated."""

    score: int | None = None
    gates: dict[str, list[str]] | None = None
    """The reason codes of each gate; None in entries about workstreams and projects."""
    judged: dict[str, JudgedCriterion] = {}
    next: str | None = None
    """The command of the first closed gate; only refusals have it in chains of older versions."""

    @property
    def closed(self) -> tuple[str, ...]:
        """The gates that did not pass."""
        return tuple(name for name, codes in (self.gates or {}).items() if codes)


class GateProgram(msgspec.Struct, frozen=True):
    """The program that decided on a completion. It says so itself; compare it with that of a release, or of CI."""

    version: str = ""
    files: str = ""
    """A hash over the files of the package."""
    python: str = ""


class RecordedStrength(msgspec.Struct, frozen=True, omit_defaults=True):
    """How strong the evidence for a criterion was."""

    level: EvidenceLevel = "asserted"
    reasons: list[str] = []
    """Why, as sentences."""
    needed: NeededLevel | None = None
    accepted_by: str = ""
    """The person who accepted evidence that was weaker than needed; empty if nobody had to."""


class Completed(Evaluated, frozen=True, kw_only=True):
    """A job, workstream or project is done."""

    outputs: Files | None = None
    upstream: Files = {}
    declared: Files = {}
    terms: str | None = None
    truth_mode: str = ""
    jobs: dict[str, str] = {}
    work: dict[str, str] = {}
    """The files that the job changed in its work area, with the names of their contents (git's; empty if removed)."""
    room: RoomRun | None = None
    gate: GateProgram | None = None
    """None in entries of versions that did not record it."""
    strength: dict[str, RecordedStrength] = {}
    """How strong the evidence for each criterion was, by its id. Empty in entries of versions that did not say it."""


class Refused(Evaluated, frozen=True, kw_only=True):
    """A completion was refused."""

    waits_for_person: bool = False
    auto_blocked: bool = False
    hindered: bool = False
    """Whether nothing was missing but what the machine kept from being checked."""


class Decided(EntryContent, frozen=True, kw_only=True):
    """A decision about a job, or a pause: block, ask, rescope, split, cancel."""

    decision: str = ""
    reason: str = ""


class TermsDecided(Decided, frozen=True, kw_only=True):
    """A decision that changes terms: the budget, the stakes or the target."""

    value: int | str | None = None
    terms: DecidedTerms = DecidedTerms()
    """The new terms; empty if the decision does not count."""


class SignedCriterion(msgspec.Struct, frozen=True):
    """A criterion, and a hash of the outputs for which it was signed off."""

    criterion: str = ""
    text: str = ""
    subject: str | None = None


class SignedOff(Decided, frozen=True, kw_only=True):
    """A manual criterion was signed off."""

    value: SignedCriterion = SignedCriterion()


class SignOffRefused(Decided, frozen=True, kw_only=True):
    """A person looked at a criterion that is checked by hand, and it is not met."""

    value: SignedCriterion = SignedCriterion()


class AnsweredEntry(msgspec.Struct, frozen=True):
    """What an answer is about: the hash of the entry that set the job aside, and its text."""

    entry: str = ""
    asked: str = ""


class Answered(Decided, frozen=True, kw_only=True):
    """A person answered a question, or said how to go on with a blocked job; ``reason`` has their words."""

    value: AnsweredEntry = AnsweredEntry()


class DisputedCriteria(msgspec.Struct, frozen=True):
    """The criteria of a dispute."""

    criteria: list[str] = []


class Disputed(Decided, frozen=True, kw_only=True):
    """An agent disputes a refusal."""

    value: DisputedCriteria = DisputedCriteria()


class AcceptedFiles(msgspec.Struct, frozen=True):
    """Files outside the work area, or tests, that a person accepted or refused, with the names of their contents
    (git's)."""

    files: dict[str, str] = {}
    what: str = ""
    """``work`` or ``tests``."""


class ChangesAccepted(Decided, frozen=True, kw_only=True):
    """Changes of files that the job may not change by itself were accepted."""

    value: AcceptedFiles = AcceptedFiles()


class DecidedSigns(msgspec.Struct, frozen=True):
    """Changed lines that a person accepted or refused: files with the ids of their signs."""

    files: dict[str, list[str]] = {}


class SignsAccepted(Decided, frozen=True, kw_only=True):
    """Signs in changed lines were looked at and accepted."""

    value: DecidedSigns = DecidedSigns()


class SignsRefused(Decided, frozen=True, kw_only=True):
    """Signs in changed lines were looked at and refused."""

    value: DecidedSigns = DecidedSigns()


class EnvironmentAccepted(Decided, frozen=True, kw_only=True):
    """What the checks of a job find around them on a machine was accepted."""

    value: AgreedEnvironment = AgreedEnvironment()


class ChangesRefused(Decided, frozen=True, kw_only=True):
    """Changes of files that the job may not change by itself were refused."""

    value: AcceptedFiles = AcceptedFiles()


class GuidanceStep(msgspec.Struct, frozen=True):
    """A version of a mission's guidance."""

    mission: str = ""
    step: int = 0
    hash: str = ""
    run: str | None = None
    by_trial: bool = False


class GuidanceAccepted(Decided, frozen=True, kw_only=True):
    """Guidance was accepted for the gates."""

    value: GuidanceStep = GuidanceStep()


class ReviewedItem(msgspec.Struct, frozen=True):
    """An item of the review queue, and the verdict of a person."""

    asked: str = ""
    mission: str | None = None
    key: str = ""
    subject: str = ""
    verdict: Binary | None = None
    stored: str = ""
    """A hash of the ticket as it is stored, if secrets were redacted in it."""


class Reviewed(Decided, frozen=True, kw_only=True):
    """A person reviewed something that no job waits for."""

    value: ReviewedItem = ReviewedItem()


class Invalidated(EntryContent, frozen=True, kw_only=True):
    """A job is no longer done, or a workstream or project because of ``job``."""

    chain: list[str] = []
    why: str = ""
    job: str | None = None


class RecordedStatement(msgspec.Struct, frozen=True):
    """What a judge said about a ticket that a person then reviewed."""

    verdict: Binary | None = None
    votes: dict[str, int] = {}
    needs_human: bool = False
    margin: float | None = None
    reason: str = ""
    guidance_step: int | None = None


class Overridden(EntryContent, frozen=True, kw_only=True):
    """Somebody decided on a criterion against, or instead of, the gate."""

    criterion: str = ""
    text: str = ""
    verdict: str = ""
    reason: str = ""
    subject: str | None = None
    asked: str = ""
    mission: str | None = None
    ticket: str | None = None
    stored: str = ""
    """A hash of the ticket as it is stored, if secrets were redacted in it."""
    said: RecordedStatement | None = None


class Unverified(EntryContent, frozen=True, kw_only=True):
    """An agent stopped without verification."""

    why: str = ""


class LessonNote(EntryContent, frozen=True, kw_only=True):
    """A lesson was captured or answered."""

    lesson: str = ""
    hash: str = ""
    how: str = ""
    said: str = ""


class Mirrored(EntryContent, frozen=True, kw_only=True):
    """The issue of a job was written to GitHub."""

    repo: str = ""
    number: int | None = None
    url: str = ""
    wanted: dict[str, str] = {}
    observed: dict[str, str] = {}
    asked_for: str | None = None


CONTENTS: Mapping[str, type[EntryContent]] = {
    "agreed": Agreed,
    "started": Started,
    "ran": Ran,
    "evaluated": Evaluated,
    "decided": Decided,
    "completed": Completed,
    "refused": Refused,
    "invalidated": Invalidated,
    "overridden": Overridden,
    "unverified": Unverified,
    "lesson": LessonNote,
    "mirrored": Mirrored,
}
"""The struct of each kind of event."""


_RUNS: Mapping[object, type[Ran]] = {
    None: Ran,
    "command": CommandRun,
    "file": FileCheck,
    "judge": JudgeRun,
    "baseline": BaselineRun,
    "probes": ProbeRun,
}
_DECISIONS: Mapping[object, type[Decided]] = {
    **dict.fromkeys((None, "block", "ask", "rescope", "split", "cancel"), Decided),
    **dict.fromkeys(("raise_budget", "stakes", "target"), TermsDecided),
    "sign_off": SignedOff,
    "refuse_sign_off": SignOffRefused,
    "answer": Answered,
    "dispute": Disputed,
    "accept_changes": ChangesAccepted,
    "refuse_changes": ChangesRefused,
    "accept_environment": EnvironmentAccepted,
    "accept_signs": SignsAccepted,
    "refuse_signs": SignsRefused,
    "accept_guidance": GuidanceAccepted,
    "reviewed": Reviewed,
}


def decode_content(kind: str, data: Mapping[str, Any]) -> EntryContent:
    """The typed content of an entry.

    Raise msgspec.ValidationError if a value has the wrong type, NewerVersionError if it has terms of a newer version.
    """
    if kind == "agreed":
        refuse_newer_terms(data.get("terms"))
    return msgspec.convert(data, _struct_of(kind, data))


def _struct_of(kind: str, data: Mapping[str, Any]) -> type[EntryContent]:
    try:
        match kind:
            case "ran":
                return _RUNS[data.get("what")]
            case "decided":
                return _DECISIONS[data.get("decision")]
            case _:
                return CONTENTS[kind]
    except (KeyError, TypeError):
        raise msgspec.ValidationError("The kind of run or decision is unknown") from None
