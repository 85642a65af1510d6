"""Where the evidence for a job stands: what was shown, what is stale and why, what is missing or only asserted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import Decision, DecisionRecord, decide
from donewhen.jobs.contract.inputs import Manifest, input_manifest, locate_path, result_manifest
from donewhen.jobs.evidence.commands import (
    EvidenceRun,
    evidence_store,
    file_check_key,
    newest_run,
    record_file_check,
    run_as_evidence,
    run_conditions,
)
from donewhen.jobs.evidence.file_checks import file_state
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement, requirement_for, requirements_of
from donewhen.jobs.judge.person_overrides import has_override, newest_override, subject_of
from donewhen.jobs.ledger.approval import Approval, Policy, is_approval
from donewhen.jobs.ledger.ledger import Actor, Entry
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

State = Literal["passed", "failed", "stale", "missing", "asserted", "needs_human"]

_WORST: tuple[State, ...] = ("failed", "missing", "stale", "needs_human", "asserted", "passed")
_JUDGE_LAST = "the checks that need no judge come first"
_SHOWN = 5


class EvidenceStatus(NamedTuple):
    """How far one need is met."""

    requirement: Requirement
    state: State
    why: tuple[str, ...] = ()
    entry: Entry | None = None


def evidence_statuses(workspace: Workspace, job: Job) -> tuple[EvidenceStatus, ...]:
    """Every need of a job with its evidence; nothing is run."""
    entries = workspace.ledger.read(job.id).entries
    policy = approval_policy(workspace)
    asked = requirements_of(job)
    # The inputs of commands can be a whole tree, so they are looked at only where there is a command.
    commands = any(one.check.kind == "run" for one in asked)
    inputs = input_manifest(workspace, job) if commands else Manifest({}, declared=True)
    found = [_standing(workspace, job, one, entries, policy, inputs) for one in asked]
    verified = [one for one in found if one.requirement.name == VERIFICATION]
    found = [_covered(one, verified) if one.requirement.check.kind == "verification" else one for one in found]
    found = [_after_people(workspace, job, one, entries, policy) for one in found]
    ready = _ready_for_judge(workspace, job, found)
    return tuple(
        _of_judge(workspace, job, one.requirement, entries, policy, ready)
        if one.requirement.check.kind == "judge"
        else one
        for one in found
    )


def asserted_evidence(workspace: Workspace, job: Job) -> tuple[str, ...]:
    """What was written down as evidence by others than the gate. It is kept and shown, and decides nothing."""
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
) -> tuple[tuple[Requirement, EvidenceRun], ...]:
    """Run every command and look at every file that the job needs; what is fresh is reused.

    ``lenient`` goes on where a command can't be run at all: what was not shown is then the gates' to say.
    It raises ``GivenUpError`` where the caller has stopped waiting, so that nothing is decided on half of it.
    """
    found: dict[str, EvidenceRun] = {}
    results: list[tuple[Requirement, EvidenceRun]] = []
    for requirement in (only,) if only is not None else requirements_of(job):
        if requirement.check.kind in ("run", "file"):
            on_progress(requirement)
            with suppress(*((CommandNotRunnableError,) if lenient else ())):
                if requirement.evidence not in found:
                    found[requirement.evidence] = _shown(workspace, job, requirement, by, again)
                    # What was cut off speaks neither for the work nor against it.
                    raise_if_cancelled()
                results.append((requirement, found[requirement.evidence]))
    return (*results, *_judged(workspace, job, by, again, only, on_progress))


def _judged(
    workspace: Workspace,
    job: Job,
    by: Actor,
    again: bool,
    only: Requirement | None,
    on_progress: Callable[[Requirement], None],
) -> Iterator[tuple[Requirement, EvidenceRun]]:
    """Judges are asked last, and only about work that nothing else speaks against."""
    wanted = [
        requirement
        for requirement in ((only,) if only is not None else requirements_of(job))
        if requirement.check.kind == "judge"
    ]
    if not wanted:
        return
    if not _ready_for_judge(workspace, job, evidence_statuses(workspace, job)):
        if only is not None:
            raise UsageError(f"{only.name} is not judged yet: {_JUDGE_LAST}.", next_step=f"donewhen why {job.id}")
        return
    from donewhen.jobs.judge.judge_evidence import ask_judge

    for requirement in wanted:
        on_progress(requirement)
        yield requirement, ask_judge(workspace, job, requirement, by, again=again)


def sign_off(workspace: Workspace, job: Job, criterion: str, reason: str, approval: Approval) -> DecisionRecord:
    """A person's word that a manual criterion is met, for the outputs as they are now."""
    requirement = manual_requirement(job, criterion)
    value = {"criterion": criterion, "text": requirement.text, "subject": result_manifest(workspace, job).hash}
    return decide(workspace, job, Decision("sign_off", reason, value), approval)


def manual_requirement(job: Job, criterion: str) -> Requirement:
    """A criterion that is checked by hand; another one is refused."""
    requirement = requirement_for(job, criterion)
    if requirement.check.kind != "manual":
        raise UsageError(
            f"{criterion} is not signed off: it is decided by its own check ({requirement.evidence}).",
            next_step=f"donewhen run {job.id}",
        )
    return requirement


def _shown(workspace: Workspace, job: Job, requirement: Requirement, by: Actor, again: bool) -> EvidenceRun:
    criterion = None if requirement.name == VERIFICATION else requirement.name
    if requirement.check.kind == "file":
        return record_file_check(
            workspace, job, requirement.check, requirement.evidence, by, criterion=criterion, again=again
        )
    return run_as_evidence(workspace, job, requirement.check.argv, by, criterion=criterion, again=again)


def _standing(
    workspace: Workspace, job: Job, requirement: Requirement, entries: Sequence[Entry], policy: Policy, inputs: Manifest
) -> EvidenceStatus:
    match requirement.check.kind:
        case "run":
            return _of_command(workspace, job, requirement, newest_run(entries, requirement.evidence), inputs)
        case "file":
            return _of_file(workspace, job, requirement, newest_run(entries, requirement.evidence, "file"))
        case "manual":
            return _of_person(workspace, job, requirement, entries, policy)
        case "judge" | "verification":
            return EvidenceStatus(requirement, "missing")


def _of_command(
    workspace: Workspace, job: Job, requirement: Requirement, entry: Entry | None, inputs: Manifest
) -> EvidenceStatus:
    if entry is None:
        return EvidenceStatus(requirement, "missing", ("it was never run",))
    try:
        now = run_conditions(workspace, job, requirement.check.argv, inputs)
    except DonewhenError as error:
        return EvidenceStatus(requirement, "stale", (str(error),), entry)
    if not entry.data.get("settled"):
        return EvidenceStatus(requirement, "stale", ("its inputs changed while it ran",), entry)
    reasons = tuple(
        reason
        for part in now.parts.differing(entry.data.get("parts", {}))
        for reason in _reasons(workspace, part, entry, inputs, now.fingerprint)
    )
    if reasons:
        return EvidenceStatus(requirement, "stale", reasons, entry)
    return EvidenceStatus(requirement, "passed", (), entry) if entry.data.get("passed") else _failed(requirement, entry)


def _of_file(workspace: Workspace, job: Job, requirement: Requirement, entry: Entry | None) -> EvidenceStatus:
    if entry is None:
        return EvidenceStatus(requirement, "missing", ("nobody has looked yet",))
    if entry.data.get("key") != file_check_key(
        workspace, job, requirement.check, requirement.evidence
    ) or not entry.data.get("settled"):
        return EvidenceStatus(requirement, "stale", (f"{requirement.check.path} changed",), entry)
    return EvidenceStatus(requirement, "passed", (), entry) if entry.data.get("passed") else _failed(requirement, entry)


def _of_person(
    workspace: Workspace, job: Job, requirement: Requirement, entries: Sequence[Entry], policy: Policy
) -> EvidenceStatus:
    found = [one for one in reversed(entries) if is_sign_off(one, requirement.text)]
    if not found:
        return EvidenceStatus(requirement, "missing", ("nobody has signed it off",))
    # What does not count does not take anything back, either.
    entry = next((one for one in found if is_approval(one, job.id, policy)), found[0])
    if not is_approval(entry, job.id, policy):
        return EvidenceStatus(
            requirement, "asserted", (f"signed off by {entry.by.name} ({entry.by.kind}), which does not count",), entry
        )
    try:
        now = result_manifest(workspace, job).hash
    except DonewhenError as error:
        return EvidenceStatus(requirement, "stale", (str(error),), entry)
    if entry.data["value"].get("subject") != now:
        return EvidenceStatus(requirement, "stale", ("the outputs changed since it was signed off",), entry)
    return EvidenceStatus(requirement, "passed", (), entry)


def _after_people(
    workspace: Workspace, job: Job, status: EvidenceStatus, entries: Sequence[Entry], policy: Policy
) -> EvidenceStatus:
    """What a person has said about a criterion and the work as it is, if anybody has, else what the gate says."""
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
    word = newest_override(entries, job.id, requirement, subject, policy)
    return status if word is None else _by_word(requirement, word)


def _by_word(requirement: Requirement, word: Entry) -> EvidenceStatus:
    reason = f": {word.data['reason']}" if word.data.get("reason") else ""
    message = f"{word.by.name} ({word.by.kind}) says {word.data['verdict']}{reason}"
    return EvidenceStatus(requirement, "passed" if word.data["verdict"] == "pass" else "failed", (message,), word)


def _ready_for_judge(workspace: Workspace, job: Job, found: Sequence[EvidenceStatus]) -> bool:
    """Whether everything that needs no judge speaks for the work: every check has passed, every output is there."""
    if not any(one.requirement.check.kind == "judge" for one in found):
        return True
    if any(one.state != "passed" for one in found if one.requirement.check.kind in ("run", "file", "verification")):
        return False
    try:
        outputs = [locate_path(workspace, job, output, "outputs") for output in job.outputs]
    except DonewhenError:
        return False
    return all(file_state(output) == "good" for output in outputs)


def _of_judge(
    workspace: Workspace, job: Job, requirement: Requirement, entries: Sequence[Entry], policy: Policy, ready: bool
) -> EvidenceStatus:
    if not ready:
        return EvidenceStatus(
            requirement, "missing", (_JUDGE_LAST,), newest_run(entries, requirement.evidence, "judge")
        )
    from donewhen.jobs.judge.judge_evidence import judge_question

    try:
        question = judge_question(workspace, job, requirement, entries)
    except DonewhenError as error:
        return EvidenceStatus(requirement, "missing", (str(error),))
    # A person's word is about what was judged, not about who judged it or how.
    word = newest_override(entries, job.id, requirement, question.subject, policy)
    if word is not None:
        return _by_word(requirement, word)
    entry = newest_run(entries, requirement.evidence, "judge")
    if entry is None:
        return EvidenceStatus(requirement, "missing", ("no judge has been asked",))
    told = str(entry.data.get("told", ""))
    if entry.data.get("key") == "":
        return EvidenceStatus(requirement, "missing", (told,), entry)
    known = entry.data.get("parts", {})
    reasons = tuple(_CHANGED[part] for part, value in question.parts.items() if known.get(part) != value)
    if not reasons and not entry.data.get("settled"):
        reasons = ("it changed while it was being judged",)
    if reasons:
        return EvidenceStatus(requirement, "stale", reasons, entry)
    if entry.data.get("needs_human"):
        return EvidenceStatus(requirement, "needs_human", (told,), entry)
    return EvidenceStatus(requirement, "passed" if entry.data.get("passed") is True else "failed", (told,), entry)


_CHANGED = {
    "ticket": "what was judged has changed",
    "guidance": "the judge follows other guidance now",
    "judge": "the judge itself was changed",
}


def is_sign_off(entry: Entry, text: str) -> bool:
    """Whether an entry signs off a criterion with these words."""
    value: Any = entry.data.get("value")
    return (
        entry.type == "decided"
        and entry.data.get("decision") == "sign_off"
        and isinstance(value, dict)
        and value.get("text") == text
    )


def _failed(requirement: Requirement, entry: Entry) -> EvidenceStatus:
    told = entry.data.get("told")
    if told is None:
        told = f"exit status {entry.data.get('exit_code')}"
        if entry.data.get("ending") != "exited":
            told = str(entry.data.get("ending", "")).replace("_", " ")
        report = entry.data.get("report") or {}
        if report.get("failed"):
            told += f", {report['failed']} test(s) failed"
        elif "passed" in report and not report["passed"]:
            told += ", no test passed"
    return EvidenceStatus(requirement, "failed", (str(told),), entry)


def _covered(status: EvidenceStatus, verified: Sequence[EvidenceStatus]) -> EvidenceStatus:
    """A criterion without a check of its own is as good as the job's verification."""
    states: list[State] = [one.state for one in verified]
    worst = min(states, key=_WORST.index)
    return status._replace(state=worst, why=() if worst == "passed" else ("the job's verification decides",))


def _reasons(workspace: Workspace, part: str, entry: Entry, inputs: Manifest, fingerprint: Any) -> Sequence[str]:
    store = evidence_store(workspace)
    match part:
        case "inputs":
            before = store.get_json(str(entry.data.get("manifest")))
            if not isinstance(before, dict):
                return ["the inputs changed (which ones is not known on this machine)"]
            return _changed_files(before, inputs)
        case "environment":
            record = store.get_json(str(entry.data.get("record")))
            before = record.get("environment") if isinstance(record, dict) else None
            if not isinstance(before, dict):
                return ["the environment changed (how is not known on this machine)"]
            names = sorted(one for one in {*before, *fingerprint} if before.get(one) != fingerprint.get(one))
            return [f"the environment changed: {', '.join(names)}"]
        case "executable":
            return ["the program itself changed"]
        case _:
            return ["the command changed"]


def _changed_files(before: dict[str, str], inputs: Manifest) -> list[str]:
    names = sorted(file for file in {*before, *inputs.files} if before.get(file) != inputs.files.get(file))
    lines = [
        f"the input {name} {'is new' if name not in before else 'is gone' if _gone(inputs, name) else 'changed'}"
        for name in names[:_SHOWN]
    ]
    return lines + ([f"and {len(names) - _SHOWN} more inputs"] if len(names) > _SHOWN else [])


def _gone(inputs: Manifest, name: str) -> bool:
    return inputs.files.get(name, "missing") == "missing"
