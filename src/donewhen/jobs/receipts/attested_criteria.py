"""Find the evidence for each criterion in the chain alone, so that every reader of the chain gets the same result."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import CommandRun, Completed, FileCheck, JudgeRun, Overridden, Ran, SignedOff
from donewhen.jobs.plan.criteria import Criterion
from donewhen.jobs.plan.own_commands import checking_commands, own_command


class NoEvidenceError(ValueError):
    """The chain has no evidence for a criterion or a command."""


class AttestedRecord(NamedTuple):
    """A chain up to the attested completion."""

    chain: str
    before: Sequence[Entry]
    completed: Entry
    policy: Policy
    commands: tuple[str, ...]
    """The agreed verification commands, in their normal form."""

    @property
    def strict(self) -> bool:
        """Whether the truth gate required evidence. If not, nothing counts as evidence, whatever was run."""
        return self.completed.read_as(Completed).truth_mode == "strict"


def attested_command(record: AttestedRecord, command: str) -> dict[str, Any]:
    """Return the evidence for a verification command; raise NoEvidenceError if there is none."""
    evidence = _passed_run(record, "command", command) if record.strict else _ASSERTED
    if evidence is None and own_command(command) is not None:
        # The gates answer the commands of the tool itself, and the completion says that they all passed.
        evidence = {"how": "verified", "what": "gates", **_entry_reference(record.completed)}
    if evidence is None:
        raise NoEvidenceError(f"there is no evidence that `{command}` passed")
    return dict(evidence)


def attested_criterion(record: AttestedRecord, criterion: Criterion) -> dict[str, Any]:
    """Return the evidence for a criterion: a run or file check of the gate, a judge, a sign-off or an override."""
    if not record.strict:
        return dict(_ASSERTED)
    check = criterion.check
    covered = checking_commands(record.commands)
    kind = check.kind if check is not None else "verification" if covered else "manual"
    evidence: dict[str, Any] | None = None
    match kind:
        case "run":
            evidence = _passed_run(record, "command", shlex.join(check.argv)) if check is not None else None
        case "file":
            evidence = _passed_run(record, "file", check.normal) if check is not None else None
        case "verification":
            evidence = _verification_runs(record)
        case "manual":
            evidence = _sign_off(record, criterion)
        case "judge":
            evidence = _judged(record, criterion)
    if evidence is None and kind in ("run", "file", "verification"):
        evidence = _override(record, criterion)
    if evidence is None:
        raise NoEvidenceError(f"there is no evidence for {criterion.id}")
    return evidence


_ASSERTED = {"how": "asserted"}


def _passed_run(record: AttestedRecord, what: str, evidence: str) -> dict[str, Any] | None:
    """The newest run of a command or check of a file, if it passed."""
    # The ledger has secrets redacted by pattern; this machine's environment variables must not matter here.
    names = (evidence, redact_secrets(evidence, {}))
    kind = CommandRun if what == "command" else FileCheck
    newest = next(
        (
            entry
            for entry in reversed(record.before)
            if isinstance(entry.content, kind) and entry.content.evidence in names
        ),
        None,
    )
    run = None if newest is None else newest.read_as(Ran)
    if newest is None or run is None or not run.passed or not run.settled:
        return None
    result = {"how": "verified", "what": what, **_entry_reference(newest)}
    if isinstance(run, CommandRun):
        result |= {
            "command": run.evidence,
            "exit_code": run.exit_code,
            "tests": newest.data.get("report"),
            "evidence": run.record,
        }
    return result


def _verification_runs(record: AttestedRecord) -> dict[str, Any] | None:
    """A criterion without a check of its own is covered by the job's verification commands."""
    runs = [_passed_run(record, "command", command) for command in checking_commands(record.commands)]
    if any(run is None for run in runs):
        return None
    return {"how": "verified", "what": "verification", "entries": [run["entry"] for run in runs if run is not None]}


def _sign_off(record: AttestedRecord, criterion: Criterion) -> dict[str, Any] | None:
    for entry in reversed(record.before):
        signed = isinstance(entry.content, SignedOff) and entry.content.value.text == criterion.text
        if signed and is_approval(entry, record.chain, record.policy):
            return {"how": "signed_off", **_entry_reference(entry), "by": entry.by._asdict()}
    return None


def _override(record: AttestedRecord, criterion: Criterion) -> dict[str, Any] | None:
    """The newest override of the check. The gate checked which work it was about; the chain does not record that."""
    overrides = (_approved_override(record, criterion, entry) for entry in reversed(record.before))
    return next((override for override in overrides if override), None)


def _approved_override(record: AttestedRecord, criterion: Criterion, entry: Entry) -> dict[str, Any] | None:
    override = entry.content
    if not isinstance(override, Overridden) or (override.text, override.verdict) != (criterion.text, "pass"):
        return None
    if not is_approval(entry, record.chain, record.policy):
        return None
    return {"how": "overruled", **_entry_reference(entry), "by": entry.by._asdict()}


def _judged(record: AttestedRecord, criterion: Criterion) -> dict[str, Any] | None:
    """The verdict or the override that the completion names for a judged criterion."""
    verdict = record.completed.read_as(Completed).judged.get(criterion.id)
    if verdict is None or verdict.state != "passed" or criterion.check is None:
        return None
    entry = next((candidate for candidate in record.before if candidate.hash == verdict.entry), None)
    if entry is None:
        return None
    if entry.type == "overridden":
        return _approved_override(record, criterion, entry)
    expected = (redact_secrets(f"judge {criterion.text}", {}), criterion.check.text, True)
    run = entry.content
    if not isinstance(run, JudgeRun) or (run.evidence, run.mission, run.passed) != expected:
        return None
    fields = ("mission", "model", "guidance_step", "votes", "agreement")
    return {"how": "judged", **_entry_reference(entry), **{name: entry.data.get(name) for name in fields}}


def _entry_reference(entry: Entry) -> dict[str, Any]:
    return {"entry": entry.hash, "at": entry.at}
