"""The status of each piece of evidence of a job (passed, failed, stale, missing, ...), and collecting new evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Literal, NamedTuple

from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.git import GitError
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.jobs.board.job_state import OF_MACHINE
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import Decision, DecisionRecord, decide
from donewhen.jobs.contract.inputs import Manifest, locate_path, matching_paths, result_manifest
from donewhen.jobs.evidence.commands import (
    EvidenceRun,
    evidence_store,
    file_check_key,
    newest_run,
    record_file_check,
    run_as_evidence,
    run_conditions,
)
from donewhen.jobs.evidence.conditions import evidence_inputs, program_of, variables_of
from donewhen.jobs.evidence.environment import environment_problems
from donewhen.jobs.evidence.failure_details import failure_details
from donewhen.jobs.evidence.failures import failure_text
from donewhen.jobs.evidence.file_checks import file_state
from donewhen.jobs.evidence.flaky_runs import flaky_text
from donewhen.jobs.evidence.hindrances import missing_program
from donewhen.jobs.evidence.probing import Probing
from donewhen.jobs.evidence.records import FileHashes, UnusableRecord, read_command, read_file_hashes
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement, requirement_for, requirements_of
from donewhen.jobs.evidence.room_session import RoomSession, room_session
from donewhen.jobs.gates.changes_for_person import open_files, refusal_of
from donewhen.jobs.gates.sign_offs import manual_requirement, sign_off_of
from donewhen.jobs.gates.signs_for_person import decisions_on_signs, open_signs, refusal_of_signs, signs_text
from donewhen.jobs.gates.strength import Strength
from donewhen.jobs.gates.weighing import weighed
from donewhen.jobs.judge.person_overrides import has_override, newest_override, subject_of
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.entry_content import CommandRun, Decided, FileCheck, JudgeRun, Overridden
from donewhen.jobs.ledger.evidence_levels import NeededLevel
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.agreed_tree import MissingCommitError
from donewhen.jobs.room.basis import basis_of
from donewhen.jobs.room.blobs import MissingContentError
from donewhen.jobs.room.surroundings import machine_name

State = Literal["passed", "failed", "stale", "missing", "asserted", "needs_human"]

_WORST: tuple[State, ...] = ("failed", "missing", "stale", "needs_human", "asserted", "passed")
_CHANGED_MEANWHILE = "its inputs changed while it ran"
_JUDGE_LAST = "the other checks must pass first"
_ANSWERED = "answered by the gates of this job"
_MAX_LISTED = 5


class EvidenceStatus(NamedTuple):
    """The state of the evidence for a requirement, and the reasons."""

    requirement: Requirement
    state: State
    why: tuple[str, ...] = ()
    entry: Entry | None = None
    code: GateCode | None = None
    """The reason code, if the state alone does not say it."""
    strength: Strength | None = None
    """How strong the evidence is; None if there is none, or nobody has looked."""
    needed: NeededLevel | None = None
    """How strong it has to be; None if any evidence will do."""
    accepted_by: str = ""
    """The person who accepted evidence that is weaker than needed."""
    details: tuple[str, ...] = ()
    """What a failed check said, in a few lines."""

    @property
    def is_met(self) -> bool:
        """Whether it is shown, although a person may have to accept how."""
        return self.state == "passed" or self.code == GateCode.EVIDENCE_WEAK


def evidence_statuses(workspace: Workspace, job: Job) -> tuple[EvidenceStatus, ...]:
    """Return the evidence status of every requirement of a job; runs nothing."""
    entries = workspace.ledger.read(job.id).entries
    policy = approval_policy(workspace)
    requirements = requirements_of(job)
    # The inputs of commands can be a whole tree, so they are read only if there is a command.
    commands = any(requirement.check.kind == "run" for requirement in requirements)
    inputs = _current_inputs(workspace, job) if commands else Manifest({}, declared=True)
    statuses = [_check_status(workspace, job, requirement, entries, policy, inputs) for requirement in requirements]
    statuses = [_with_details(workspace, status) for status in statuses]
    verified = [status for status in statuses if status.requirement.name == VERIFICATION]
    statuses = [
        _verification_status(status, verified) if status.requirement.check.kind == "verification" else status
        for status in statuses
    ]
    statuses = [_apply_override(workspace, job, status, entries, policy) for status in statuses]
    ready = _ready_for_judge(workspace, job, statuses)
    hindrance = None if ready else _common_hindrance(statuses)
    statuses = [
        _judge_status(workspace, job, status.requirement, entries, policy, ready, hindrance)
        if status.requirement.check.kind == "judge"
        else status
        for status in statuses
    ]
    # Last, so that judges are asked about work whose evidence a person still has to accept.
    return weighed(workspace, job, statuses, entries, policy)


def _current_inputs(workspace: Workspace, job: Job) -> Manifest | DonewhenError:
    try:
        return evidence_inputs(workspace, job)
    except (GitError, MissingCommitError, MissingContentError) as error:
        return error


def asserted_evidence(workspace: Workspace, job: Job) -> tuple[str, ...]:
    """Return the evidence files that the agent wrote. They are shown, but don't decide anything."""
    return tuple(
        path
        for path in job.verification_evidence
        if locate_path(workspace, job, path, "verification_evidence").is_file()
    )


def collect_evidence(
    workspace: Workspace,
    job: Job,
    by: Actor,
    *,
    again: bool = False,
    only: Requirement | None = None,
    lenient: bool = False,
    on_progress: Callable[[Requirement], None] = lambda _: None,
    probing: Probing | None = None,
) -> tuple[tuple[Requirement, EvidenceRun], ...]:
    """Run every command and file check that the job needs, then ask the judges; fresh evidence is reused.

    With ``probing``, the tests are probed if all of these have passed.

    With ``lenient``, commands that can't be run are skipped and left to the gates to report.
    Raises ``CancelledError`` if the caller has cancelled, so that nothing is decided on partial evidence.
    """
    runs: dict[str, EvidenceRun] = {}
    results: list[tuple[Requirement, EvidenceRun]] = []
    requirements = [
        requirement
        for requirement in ((only,) if only is not None else requirements_of(job))
        if requirement.check.kind in ("run", "file")
    ]
    # All commands are judged on the same bytes, in rooms that are laid out once.
    commands = any(requirement.check.kind == "run" for requirement in requirements)
    with room_session(workspace, job) if commands else nullcontext() as session:
        for requirement in requirements:
            on_progress(requirement)
            with suppress(*((CommandNotRunnableError,) if lenient else ())):
                if requirement.evidence not in runs:
                    runs[requirement.evidence] = _run_check(workspace, job, requirement, by, again)
                    # A cancelled run says nothing about the work.
                    raise_if_cancelled()
                results.append((requirement, runs[requirement.evidence]))
        if probing is not None and session is not None and len(results) == len(requirements):
            _probe_all(session, results, by, probing)
    return (*results, *_ask_judges(workspace, job, by, again, only, on_progress))


def _probe_all(
    session: RoomSession, results: Sequence[tuple[Requirement, EvidenceRun]], by: Actor, probing: Probing
) -> None:
    """Probe the tests of the commands, if every check has passed."""
    if not all(run.passed for _, run in results):
        return
    from donewhen.jobs.evidence.probes import probe_run

    for requirement, run in results:
        if requirement.check.kind == "run":
            probe_run(session, requirement.check.argv, run.entry, by, probing)


def _ask_judges(
    workspace: Workspace,
    job: Job,
    by: Actor,
    again: bool,
    only: Requirement | None,
    on_progress: Callable[[Requirement], None],
) -> Iterator[tuple[Requirement, EvidenceRun]]:
    """Ask the judges, but only if every other check has passed."""
    judged = [
        requirement
        for requirement in ((only,) if only is not None else requirements_of(job))
        if requirement.check.kind == "judge"
    ]
    if not judged:
        return
    if not _ready_for_judge(workspace, job, evidence_statuses(workspace, job)):
        if only is not None:
            raise UsageError(f"{only.name} can't be judged yet: {_JUDGE_LAST}.", next_step=f"donewhen why {job.id}")
        return
    from donewhen.jobs.judge.judge_evidence import ask_judge

    for requirement in judged:
        on_progress(requirement)
        yield requirement, ask_judge(workspace, job, requirement, by, again=again)


def sign_off(workspace: Workspace, job: Job, criterion: str, reason: str, approval: Approval) -> DecisionRecord:
    """Record a sign-off: a manual criterion is met by the current outputs."""
    value = signed_value(workspace, job, requirement_to_sign_off(workspace, job, criterion))
    return decide(workspace, job, Decision("sign_off", reason, value), approval)


def signed_value(workspace: Workspace, job: Job, requirement: Requirement) -> dict[str, str]:
    """What a sign-off of a criterion is about: its text, and the work as it is."""
    if requirement.check.kind == "manual":
        subject = result_manifest(workspace, job).hash
    else:
        subject = subject_of(workspace, job, requirement, workspace.ledger.read(job.id).entries)
    return {"criterion": requirement.name, "text": requirement.text, "subject": subject}


def requirement_to_sign_off(workspace: Workspace, job: Job, criterion: str) -> Requirement:
    """Return the requirement of a manual criterion, or of one whose evidence is weaker than needed; raise UsageError if
    its own check decides it."""
    requirement = requirement_for(job, criterion)
    if requirement.check.kind != "manual":
        statuses = evidence_statuses(workspace, job)
        if any(status.requirement == requirement and status.code == GateCode.EVIDENCE_WEAK for status in statuses):
            return requirement
    return manual_requirement(job, criterion)


def _run_check(workspace: Workspace, job: Job, requirement: Requirement, by: Actor, again: bool) -> EvidenceRun:
    criterion = None if requirement.name == VERIFICATION else requirement.name
    if requirement.check.kind == "file":
        return record_file_check(
            workspace, job, requirement.check, requirement.evidence, by, criterion=criterion, again=again
        )
    return run_as_evidence(workspace, job, requirement.check.argv, by, criterion=criterion, again=again)


def _check_status(
    workspace: Workspace,
    job: Job,
    requirement: Requirement,
    entries: Sequence[Entry],
    policy: Policy,
    inputs: Manifest | DonewhenError,
) -> EvidenceStatus:
    match requirement.check.kind:
        case "run":
            return _command_status(workspace, job, requirement, entries, policy, inputs)
        case "file":
            return _file_status(workspace, job, requirement, newest_run(entries, requirement.evidence, "file"))
        case "manual":
            return _sign_off_status(workspace, job, requirement, entries, policy)
        case "gate":
            return EvidenceStatus(requirement, "passed", (_ANSWERED,))
        case "judge" | "verification":
            return EvidenceStatus(requirement, "missing")


def _command_status(
    workspace: Workspace,
    job: Job,
    requirement: Requirement,
    entries: Sequence[Entry],
    policy: Policy,
    inputs: Manifest | DonewhenError,
) -> EvidenceStatus:
    entry = newest_run(entries, requirement.evidence)
    if isinstance(inputs, DonewhenError):
        return EvidenceStatus(requirement, "stale", (str(inputs),), entry)
    try:
        if entry is None:
            program_of(workspace, job, requirement.check.argv)
            return EvidenceStatus(requirement, "missing", ("it was never run",))
        now = run_conditions(workspace, job, requirement.check.argv, inputs)
    except CommandNotRunnableError as error:
        variables = variables_of(workspace, job)
        here = any(_ran_here(earlier, requirement.evidence) for earlier in entries)
        program = requirement.check.argv[0]
        code = missing_program(program, workspace.root, variables, known=entry is not None, ran_here=here)
        return EvidenceStatus(requirement, "missing" if entry is None else "stale", (str(error),), entry, code)
    except DonewhenError as error:
        return EvidenceStatus(requirement, "missing" if entry is None else "stale", (str(error),), entry)
    run = entry.read_as(CommandRun)
    if not run.settled:
        return EvidenceStatus(requirement, "stale", (_CHANGED_MEANWHILE,), entry)
    reasons = tuple(
        reason
        for part in now.parts.differing(run.parts)
        for reason in _change_reasons(workspace, part, run, inputs, now.fingerprint)
    )
    if reasons:
        return EvidenceStatus(requirement, "stale", reasons, entry)
    if run.hindrance:
        return EvidenceStatus(requirement, "missing", (failure_text(run),), entry, GateCode(run.hindrance))
    if run.passed:
        problems = _environment_problems(workspace, job, run)
        if problems:
            return EvidenceStatus(requirement, "needs_human", problems, entry, GateCode.ENVIRONMENT_CHANGED)
        found = _with_signs(EvidenceStatus(requirement, "passed", (), entry), run, entries, job.id, policy)
        if found.state == "passed" and run.room is not None and run.room.red_before:
            # After the lines: a verdict on the criterion would decide about them, too.
            why = (flaky_text(run.room.red_before),)
            return found._replace(state="needs_human", why=why, code=GateCode.RUN_FLAKY)
        return found
    if run.controls is not None and run.controls.held == "broken":
        return EvidenceStatus(requirement, "failed", (failure_text(run),), entry, GateCode.RUN_NOT_TRUSTED)
    if run.room is not None and run.room.needs:
        if inputs.declared and not open_files(workspace, job, run.room.needs):
            return EvidenceStatus(requirement, "stale", ("the changes that it needed are gone",), entry)
        refusal = refusal_of(workspace, job, run.room.needs, entries, policy)
        if refusal is not None:
            return EvidenceStatus(requirement, "failed", (failure_text(run), _refusal_text(refusal)), entry)
        return EvidenceStatus(requirement, "needs_human", (failure_text(run),), entry, GateCode(run.room.needs))
    return _failed(requirement, entry, run)


def _with_signs(
    status: EvidenceStatus, run: CommandRun, entries: Sequence[Entry], chain: str, policy: Policy
) -> EvidenceStatus:
    """The status of a check that has passed, with the lines that a person has to look at first."""
    signs = () if run.room is None else run.room.signs
    if not signs:
        return status
    decisions = decisions_on_signs(chain, entries, policy)
    waiting = open_signs(signs, decisions)
    if not waiting:
        return status
    refusal = refusal_of_signs(waiting, decisions)
    if refusal is not None:
        why = (signs_text(waiting), _refusal_text(refusal, "lines"))
        return status._replace(state="failed", why=why)
    return status._replace(state="needs_human", why=(signs_text(waiting),), code=GateCode.SIGNS_FOUND)


def _environment_problems(workspace: Workspace, job: Job, run: CommandRun) -> tuple[str, ...]:
    basis = None if run.room is None or not run.room.environment else basis_of(workspace, job)
    return () if basis is None or run.room is None else environment_problems(basis, run.room)


def _refusal_text(refusal: Entry, what: str = "changes") -> str:
    reason = refusal.read_as(Decided).reason
    return f"{refusal.who} ({refusal.by.kind}) refused these {what}{f': {reason}' if reason else ''}"


def _file_status(workspace: Workspace, job: Job, requirement: Requirement, entry: Entry | None) -> EvidenceStatus:
    if entry is None:
        return EvidenceStatus(requirement, "missing", ("it was never checked",))
    run = entry.read_as(FileCheck)
    if run.key != file_check_key(workspace, job, requirement.check, requirement.evidence) or not run.settled:
        return EvidenceStatus(requirement, "stale", (f"{requirement.check.path} changed",), entry)
    return EvidenceStatus(requirement, "passed", (), entry) if run.passed else _failed(requirement, entry, run)


def _sign_off_status(
    workspace: Workspace, job: Job, requirement: Requirement, entries: Sequence[Entry], policy: Policy
) -> EvidenceStatus:
    signed = sign_off_of(workspace, job, requirement, entries, policy)
    return EvidenceStatus(requirement, signed.state, signed.why, signed.entry)


def _apply_override(
    workspace: Workspace, job: Job, status: EvidenceStatus, entries: Sequence[Entry], policy: Policy
) -> EvidenceStatus:
    """Return the status by a person's override of this criterion for the current work, or else the gate's status."""
    requirement = status.requirement
    if (
        requirement.name == VERIFICATION
        or requirement.check.kind in ("judge", "manual")
        or not has_override(entries, requirement)
    ):
        return status
    try:
        subject = subject_of(workspace, job, requirement, entries)
    except DonewhenError:
        return status
    override = newest_override(entries, job.id, requirement, subject, policy)
    return status if override is None else _override_status(requirement, override)


def _override_status(requirement: Requirement, entry: Entry) -> EvidenceStatus:
    override = entry.read_as(Overridden)
    reason = f": {override.reason}" if override.reason else ""
    message = f"{entry.who} ({entry.by.kind}) says {override.verdict}{reason}"
    return EvidenceStatus(requirement, "passed" if override.verdict == "pass" else "failed", (message,), entry)


def _ready_for_judge(workspace: Workspace, job: Job, statuses: Sequence[EvidenceStatus]) -> bool:
    """Whether every check that needs no judge has passed and every output exists."""
    kinds = ("run", "file", "verification")
    if not any(status.requirement.check.kind == "judge" for status in statuses):
        return True
    if any(status.state != "passed" for status in statuses if status.requirement.check.kind in kinds):
        return False
    try:
        outputs = [
            locate_path(workspace, job, path, "outputs")
            for output in job.outputs
            for path in matching_paths(workspace, job, output, "outputs")
        ]
    except DonewhenError:
        return False
    return all(file_state(output) == "good" for output in outputs)


def _ran_here(entry: Entry, evidence: str) -> bool:
    """Whether this evidence was collected on this machine, so that its program was found."""
    run = entry.content
    if not isinstance(run, CommandRun) or run.evidence != evidence or run.room is None:
        return False
    return run.room.machine == machine_name()


def _common_hindrance(statuses: Sequence[EvidenceStatus]) -> GateCode | None:
    """What the machine keeps from being checked, if the judge waits for nothing else."""
    waiting = [status for status in statuses if status.state != "passed" and status.requirement.check.kind != "judge"]
    codes = [status.code for status in waiting if status.code in OF_MACHINE]
    return codes[0] if codes and len(codes) == len(waiting) else None


def _judge_status(
    workspace: Workspace,
    job: Job,
    requirement: Requirement,
    entries: Sequence[Entry],
    policy: Policy,
    ready: bool,
    hindrance: GateCode | None,
) -> EvidenceStatus:
    """The status of a judged criterion; ``hindrance`` is what the machine keeps the judge's turn from coming with."""
    if not ready:
        return EvidenceStatus(
            requirement, "missing", (_JUDGE_LAST,), newest_run(entries, requirement.evidence, "judge"), hindrance
        )
    from donewhen.jobs.judge.judge_evidence import judge_question

    try:
        question = judge_question(workspace, job, requirement, entries)
    except DonewhenError as error:
        return EvidenceStatus(requirement, "missing", (str(error),))
    # An override is about the work, not about the judge, so it outlives a change of judge or guidance.
    override = newest_override(entries, job.id, requirement, question.subject, policy)
    if override is not None:
        return _override_status(requirement, override)
    entry = newest_run(entries, requirement.evidence, "judge")
    if entry is None:
        return EvidenceStatus(requirement, "missing", ("the judge has not been asked yet",))
    run = entry.read_as(JudgeRun)
    answer = run.told or ""
    if not run.key:
        code = GateCode(run.hindrance) if run.hindrance else None
        return EvidenceStatus(requirement, "missing", (answer,), entry, code)
    reasons = tuple(_CHANGED[part] for part, value in question.parts.items() if run.parts.get(part) != value)
    if not reasons and not run.settled:
        reasons = ("the work changed while it was being judged",)
    if reasons:
        return EvidenceStatus(requirement, "stale", reasons, entry)
    if run.needs_human:
        return EvidenceStatus(requirement, "needs_human", (answer,), entry)
    return EvidenceStatus(requirement, "passed" if run.passed else "failed", (answer,), entry)


_CHANGED = {
    "ticket": "the work changed since it was judged",
    "guidance": "the judge's guidance changed",
    "judge": "the judge itself changed",
}


def _failed(requirement: Requirement, entry: Entry, run: CommandRun | FileCheck) -> EvidenceStatus:
    return EvidenceStatus(requirement, "failed", (failure_text(run),), entry)


def _verification_status(status: EvidenceStatus, verified: Sequence[EvidenceStatus]) -> EvidenceStatus:
    """Give a criterion without a check the worst state of the job's verification commands."""
    worst = min(verified, key=lambda command: _WORST.index(command.state))
    why = () if worst.state == "passed" else ("it depends on the job's verification",)
    return status._replace(state=worst.state, why=why, code=worst.code, details=worst.details)


def _with_details(workspace: Workspace, status: EvidenceStatus) -> EvidenceStatus:
    """Add what the check said, unless that is about other files than there are now."""
    run = None if status.entry is None else status.entry.content
    if status.state in ("passed", "stale") or not isinstance(run, CommandRun):
        return status
    return status._replace(details=failure_details(evidence_store(workspace), run))


def _change_reasons(
    workspace: Workspace, part: str, run: CommandRun, inputs: Manifest, fingerprint: Mapping[str, str]
) -> Sequence[str]:
    store = evidence_store(workspace)
    match part:
        case "inputs":
            files = read_file_hashes(store, run.manifest)
            if isinstance(files, UnusableRecord):
                return ["the inputs changed (this machine has no list of the earlier ones)"]
            return _changed_files(files, inputs)
        case "environment":
            record = read_command(store, run.record)
            if isinstance(record, UnusableRecord):
                return [_CHANGED_ENVIRONMENT[record.code == FindingCode.OTHER_VERSION]]
            before = record.environment
            names = sorted(name for name in {*before, *fingerprint} if before.get(name) != fingerprint.get(name))
            return [f"the environment changed: {', '.join(names)}"]
        case "executable":
            return ["the program itself changed"]
        case "room":
            return ["what was agreed, or accepted by a person, changed since"]
        case _:
            return ["the command changed"]


_CHANGED_ENVIRONMENT = {
    False: "the environment changed (this machine has no record of the earlier one)",
    True: "the environment changed (the record of the earlier one was written by a newer version of donewhen)",
}


def _changed_files(before: FileHashes, inputs: Manifest) -> list[str]:
    names = sorted(file for file in {*before, *inputs.files} if before.get(file) != inputs.files.get(file))
    lines = [f"the input {name} {_input_change(name, before, inputs)}" for name in names[:_MAX_LISTED]]
    return lines + ([f"and {len(names) - _MAX_LISTED} more inputs"] if len(names) > _MAX_LISTED else [])


def _input_change(name: str, before: FileHashes, inputs: Manifest) -> str:
    if name not in before:
        return "is new"
    return "is missing" if inputs.files.get(name, "missing") == "missing" else "changed"
