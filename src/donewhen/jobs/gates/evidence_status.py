"""Where the evidence for a job stands: what was shown, what is stale and why, what is missing or only asserted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from donewhen.foundation.cancellation import go_on
from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.jobs.contract.agreement import policy_of
from donewhen.jobs.contract.decisions import Decided, Decision, decide
from donewhen.jobs.contract.inputs import Manifest, located, manifest, result_manifest
from donewhen.jobs.evidence.commands import Ran, look, newest_run, probe_key, run, situation, store_of
from donewhen.jobs.evidence.file_checks import file_state
from donewhen.jobs.evidence.requirements import VERIFICATION, Need, need_of, needs
from donewhen.jobs.judge.person_overrides import newest_word, subject_of, was_overruled
from donewhen.jobs.ledger.approval import Approval, Policy, approves
from donewhen.jobs.ledger.ledger import Actor, Entry
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

State = Literal["passed", "failed", "stale", "missing", "asserted", "needs_human"]

_WORST: tuple[State, ...] = ("failed", "missing", "stale", "needs_human", "asserted", "passed")
_JUDGE_LAST = "the checks that need no judge come first"
_SHOWN = 5


class Standing(NamedTuple):
    """How far one need is met."""

    need: Need
    state: State
    why: tuple[str, ...] = ()
    entry: Entry | None = None


def standings(workspace: Workspace, job: Job) -> tuple[Standing, ...]:
    """Every need of a job with its evidence; nothing is run."""
    entries = workspace.ledger.read(job.id).entries
    policy = policy_of(workspace)
    asked = needs(job)
    # The inputs of commands can be a whole tree, so they are looked at only where there is a command.
    commands = any(one.check.kind == "run" for one in asked)
    inputs = manifest(workspace, job) if commands else Manifest({}, declared=True)
    found = [_standing(workspace, job, one, entries, policy, inputs) for one in asked]
    verified = [one for one in found if one.need.name == VERIFICATION]
    found = [_covered(one, verified) if one.need.check.kind == "verification" else one for one in found]
    found = [_after_people(workspace, job, one, entries, policy) for one in found]
    ready = _ready_for_judge(workspace, job, found)
    return tuple(
        _of_judge(workspace, job, one.need, entries, policy, ready) if one.need.check.kind == "judge" else one
        for one in found
    )


def asserted(workspace: Workspace, job: Job) -> tuple[str, ...]:
    """What was written down as evidence by others than the gate. It is kept and shown, and decides nothing."""
    return tuple(
        path for path in job.verification_evidence if located(workspace, job, path, "verification_evidence").is_file()
    )


def collect(
    workspace: Workspace,
    job: Job,
    by: Actor,
    *,
    again: bool = False,
    only: Need | None = None,
    lenient: bool = False,
    tell: Callable[[Need], None] = lambda _: None,
) -> tuple[tuple[Need, Ran], ...]:
    """Run every command and look at every file that the job needs; what is fresh is reused.

    ``lenient`` goes on where a command can't be run at all: what was not shown is then the gates' to say.
    It raises ``GivenUpError`` where the caller has stopped waiting, so that nothing is decided on half of it.
    """
    found: dict[str, Ran] = {}
    results: list[tuple[Need, Ran]] = []
    for need in (only,) if only is not None else needs(job):
        if need.check.kind in ("run", "file"):
            tell(need)
            with suppress(*((CommandNotRunnableError,) if lenient else ())):
                if need.evidence not in found:
                    found[need.evidence] = _shown(workspace, job, need, by, again)
                    # What was cut off speaks neither for the work nor against it.
                    go_on()
                results.append((need, found[need.evidence]))
    return (*results, *_judged(workspace, job, by, again, only, tell))


def _judged(
    workspace: Workspace, job: Job, by: Actor, again: bool, only: Need | None, tell: Callable[[Need], None]
) -> Iterator[tuple[Need, Ran]]:
    """Judges are asked last, and only about work that nothing else speaks against."""
    wanted = [one for one in ((only,) if only is not None else needs(job)) if one.check.kind == "judge"]
    if not wanted:
        return
    if not _ready_for_judge(workspace, job, standings(workspace, job)):
        if only is not None:
            raise UsageError(f"{only.name} is not judged yet: {_JUDGE_LAST}.", next_step=f"donewhen why {job.id}")
        return
    from donewhen.jobs.judge.judge_evidence import ask

    for need in wanted:
        tell(need)
        yield need, ask(workspace, job, need, by, again=again)


def sign_off(workspace: Workspace, job: Job, criterion: str, reason: str, approval: Approval) -> Decided:
    """A person's word that a manual criterion is met, for the outputs as they are now."""
    need = manual_need(job, criterion)
    value = {"criterion": criterion, "text": need.text, "subject": result_manifest(workspace, job).hash}
    return decide(workspace, job, Decision("sign_off", reason, value), approval)


def manual_need(job: Job, criterion: str) -> Need:
    """A criterion that is checked by hand; another one is refused."""
    need = need_of(job, criterion)
    if need.check.kind != "manual":
        raise UsageError(
            f"{criterion} is not signed off: it is decided by its own check ({need.evidence}).",
            next_step=f"donewhen run {job.id}",
        )
    return need


def _shown(workspace: Workspace, job: Job, need: Need, by: Actor, again: bool) -> Ran:
    criterion = None if need.name == VERIFICATION else need.name
    if need.check.kind == "file":
        return look(workspace, job, need.check, need.evidence, by, criterion=criterion, again=again)
    return run(workspace, job, need.check.argv, by, criterion=criterion, again=again)


def _standing(
    workspace: Workspace, job: Job, need: Need, entries: Sequence[Entry], policy: Policy, inputs: Manifest
) -> Standing:
    match need.check.kind:
        case "run":
            return _of_command(workspace, job, need, newest_run(entries, need.evidence), inputs)
        case "file":
            return _of_file(workspace, job, need, newest_run(entries, need.evidence, "file"))
        case "manual":
            return _of_person(workspace, job, need, entries, policy)
        case "judge" | "verification":
            return Standing(need, "missing")


def _of_command(workspace: Workspace, job: Job, need: Need, entry: Entry | None, inputs: Manifest) -> Standing:
    if entry is None:
        return Standing(need, "missing", ("it was never run",))
    try:
        now = situation(workspace, job, need.check.argv, inputs)
    except DonewhenError as error:
        return Standing(need, "stale", (str(error),), entry)
    if not entry.data.get("settled"):
        return Standing(need, "stale", ("its inputs changed while it ran",), entry)
    reasons = tuple(
        reason
        for part in now.parts.differing(entry.data.get("parts", {}))
        for reason in _reasons(workspace, part, entry, inputs, now.fingerprint)
    )
    if reasons:
        return Standing(need, "stale", reasons, entry)
    return Standing(need, "passed", (), entry) if entry.data.get("passed") else _failed(need, entry)


def _of_file(workspace: Workspace, job: Job, need: Need, entry: Entry | None) -> Standing:
    if entry is None:
        return Standing(need, "missing", ("nobody has looked yet",))
    if entry.data.get("key") != probe_key(workspace, job, need.check, need.evidence) or not entry.data.get("settled"):
        return Standing(need, "stale", (f"{need.check.path} changed",), entry)
    return Standing(need, "passed", (), entry) if entry.data.get("passed") else _failed(need, entry)


def _of_person(workspace: Workspace, job: Job, need: Need, entries: Sequence[Entry], policy: Policy) -> Standing:
    found = [one for one in reversed(entries) if is_sign_off(one, need.text)]
    if not found:
        return Standing(need, "missing", ("nobody has signed it off",))
    # What does not count does not take anything back, either.
    entry = next((one for one in found if approves(one, job.id, policy)), found[0])
    if not approves(entry, job.id, policy):
        return Standing(
            need, "asserted", (f"signed off by {entry.by.name} ({entry.by.kind}), which does not count",), entry
        )
    try:
        now = result_manifest(workspace, job).hash
    except DonewhenError as error:
        return Standing(need, "stale", (str(error),), entry)
    if entry.data["value"].get("subject") != now:
        return Standing(need, "stale", ("the outputs changed since it was signed off",), entry)
    return Standing(need, "passed", (), entry)


def _after_people(
    workspace: Workspace, job: Job, standing: Standing, entries: Sequence[Entry], policy: Policy
) -> Standing:
    """What a person has said about a criterion and the work as it is, if anybody has, else what the gate says."""
    need = standing.need
    if need.name == VERIFICATION or need.check.kind in ("judge", "manual") or not was_overruled(entries, need):
        return standing
    try:
        subject = subject_of(workspace, job, need, entries)
    except DonewhenError:
        return standing
    word = newest_word(entries, job.id, need, subject, policy)
    return standing if word is None else _by_word(need, word)


def _by_word(need: Need, word: Entry) -> Standing:
    reason = f": {word.data['reason']}" if word.data.get("reason") else ""
    told = f"{word.by.name} ({word.by.kind}) says {word.data['verdict']}{reason}"
    return Standing(need, "passed" if word.data["verdict"] == "pass" else "failed", (told,), word)


def _ready_for_judge(workspace: Workspace, job: Job, found: Sequence[Standing]) -> bool:
    """Whether everything that needs no judge speaks for the work: every check has passed, every output is there."""
    if not any(one.need.check.kind == "judge" for one in found):
        return True
    if any(one.state != "passed" for one in found if one.need.check.kind in ("run", "file", "verification")):
        return False
    try:
        outputs = [located(workspace, job, one, "outputs") for one in job.outputs]
    except DonewhenError:
        return False
    return all(file_state(one) == "good" for one in outputs)


def _of_judge(
    workspace: Workspace, job: Job, need: Need, entries: Sequence[Entry], policy: Policy, ready: bool
) -> Standing:
    if not ready:
        return Standing(need, "missing", (_JUDGE_LAST,), newest_run(entries, need.evidence, "judge"))
    from donewhen.jobs.judge.judge_evidence import question_about

    try:
        question = question_about(workspace, job, need, entries)
    except DonewhenError as error:
        return Standing(need, "missing", (str(error),))
    # A person's word is about what was judged, not about who judged it or how.
    word = newest_word(entries, job.id, need, question.subject, policy)
    if word is not None:
        return _by_word(need, word)
    entry = newest_run(entries, need.evidence, "judge")
    if entry is None:
        return Standing(need, "missing", ("no judge has been asked",))
    told = str(entry.data.get("told", ""))
    if entry.data.get("key") == "":
        return Standing(need, "missing", (told,), entry)
    known = entry.data.get("parts", {})
    reasons = tuple(_CHANGED[part] for part, value in question.parts.items() if known.get(part) != value)
    if not reasons and not entry.data.get("settled"):
        reasons = ("it changed while it was being judged",)
    if reasons:
        return Standing(need, "stale", reasons, entry)
    if entry.data.get("needs_human"):
        return Standing(need, "needs_human", (told,), entry)
    return Standing(need, "passed" if entry.data.get("passed") is True else "failed", (told,), entry)


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


def _failed(need: Need, entry: Entry) -> Standing:
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
    return Standing(need, "failed", (str(told),), entry)


def _covered(standing: Standing, verified: Sequence[Standing]) -> Standing:
    """A criterion without a check of its own is as good as the job's verification."""
    states: list[State] = [one.state for one in verified]
    worst = min(states, key=_WORST.index)
    return standing._replace(state=worst, why=() if worst == "passed" else ("the job's verification decides",))


def _reasons(workspace: Workspace, part: str, entry: Entry, inputs: Manifest, fingerprint: Any) -> Sequence[str]:
    store = store_of(workspace)
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
    names = sorted(one for one in {*before, *inputs.files} if before.get(one) != inputs.files.get(one))
    told = [
        f"the input {name} {'is new' if name not in before else 'is gone' if _gone(inputs, name) else 'changed'}"
        for name in names[:_SHOWN]
    ]
    return told + ([f"and {len(names) - _SHOWN} more inputs"] if len(names) > _SHOWN else [])


def _gone(inputs: Manifest, name: str) -> bool:
    return inputs.files.get(name, "missing") == "missing"
