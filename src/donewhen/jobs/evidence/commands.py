"""Run commands and file checks as evidence and record the results."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import UsageError
from donewhen.foundation.secrets import REDACTED, redact_secrets
from donewhen.jobs.contract.agreeing import seal_tightened_terms
from donewhen.jobs.contract.inputs import hash_file, input_manifest_now
from donewhen.jobs.evidence.conditions import RunConditions as RunConditions
from donewhen.jobs.evidence.conditions import inputs_of_reading
from donewhen.jobs.evidence.conditions import run_conditions as run_conditions
from donewhen.jobs.evidence.environment import EnvironmentNow
from donewhen.jobs.evidence.file_checks import checked_files
from donewhen.jobs.evidence.flaky_runs import red_before
from donewhen.jobs.evidence.hindrances import timeout_text
from donewhen.jobs.evidence.placed_runs import placed_room
from donewhen.jobs.evidence.records import CommandRecord, InputList, RecordedProgram, RecordedReport, put_record
from donewhen.jobs.evidence.requirements import (
    is_required_evidence,
    refuse_other_command,
    requirement_for,
    requirements_of,
)
from donewhen.jobs.evidence.room_file_checks import check_file
from donewhen.jobs.evidence.room_runs import CheckedRun, run_in_rooms
from donewhen.jobs.evidence.room_session import RoomSession, room_session
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.evidence.store import evidence_store as evidence_store
from donewhen.jobs.evidence.test_ids import stored_outcomes, stored_test_id
from donewhen.jobs.evidence.test_report import ReportedRun, run_with_report
from donewhen.jobs.evidence.test_report import reports_tests as reports_tests
from donewhen.jobs.evidence.trusted_runs import recorded_controls, untrusted_text
from donewhen.jobs.evidence.two_runs import written_text
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.entry_content import CommandRun, FileCheck, JudgeRun, Ran
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.criteria import Check
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.execution_log import LoggedRun, log_run
from donewhen.jobs.record.writing import writing
from donewhen.jobs.room.basis import basis_of
from donewhen.test_reports.run_reports import RunReport

_MAX_CHANGED_FILES = 50
_MAX_MESSAGES = 20
# Anchored at the start of a line; otherwise matching a long line would take quadratic time.
_CUT = re.compile(r"^[^\n]*+\n\[… \d+ bytes left out …\]\n[^\n]*", re.MULTILINE)
_KEY_REST = re.compile(r"(left out …\]\n)(?:(?!-----BEGIN )[\s\S])*?-----END [A-Z ]*PRIVATE KEY-----")


RunKind = Literal["command", "file", "judge"]
_RUNS: dict[RunKind, type[Ran]] = {"command": CommandRun, "file": FileCheck, "judge": JudgeRun}


class EvidenceRun(NamedTuple):
    """The ledger entry of a run, and whether an earlier run was reused."""

    entry: Entry
    reused: bool
    output: str = ""

    @property
    def passed(self) -> bool:
        return self.entry.read_as(Ran).passed


def find_fresh_run(entries: Sequence[Entry], evidence: str, key: str, what: RunKind = "command") -> Entry | None:
    """Return the newest run of this command if nothing that it depends on has changed since."""
    newest = newest_run(entries, evidence, what)
    if newest is None:
        return None
    run = newest.read_as(Ran)
    return newest if run.key == key and run.settled else None


def newest_run(entries: Sequence[Entry], evidence: str, what: RunKind = "command") -> Entry | None:
    """Return the newest run of this command, file check or judge."""
    kind, names = _RUNS[what], evidence_names(evidence)
    return next(
        (entry for entry in reversed(entries) if isinstance(entry.content, kind) and entry.content.evidence in names),
        None,
    )


def evidence_name(evidence: str) -> str:
    """Return the name under which evidence is recorded: the command or file check with secrets redacted."""
    return redact_secrets(evidence)


def evidence_names(evidence: str) -> frozenset[str]:
    """Return the names under which evidence may be recorded: a caller without this caller's variables redacts less.

    A run is only used if its key, which depends on the exact command, fits as well.
    """
    return frozenset((evidence_name(evidence), redact_secrets(evidence, {})))


def run_as_evidence(
    workspace: Workspace,
    job: Job,
    argv: Sequence[str],
    by: Actor,
    *,
    criterion: str | None = None,
    again: bool = False,
    timeout: float | None = None,
) -> EvidenceRun:
    """Run a command as evidence for a job and record it; a passed run that is still fresh is reused.

    Raise UsageError if another check decides the ``criterion``.
    """
    if criterion is not None:
        refuse_other_command(job, requirement_for(job, criterion), argv)
    evidence = _command_text(argv)
    with room_session(workspace, job) as session:
        before = _conditions(workspace, job, argv, session)
        environment = None if session is None else session.environment(before.surroundings)
        if not again:
            fresh_run = find_fresh_run(workspace.ledger.read(job.id).entries, evidence, before.parts.key)
            if fresh_run is not None and _can_be_reused(fresh_run.read_as(CommandRun), environment, session):
                return EvidenceRun(fresh_run, reused=True)
        limit = workspace.settings().jobs.command_timeout if timeout is None else timeout
        started_at = workspace.now()
        if session is None:
            run = _run_in_work_tree(workspace, job, argv, before, limit)
        else:
            run = run_in_rooms(session, argv, evidence_name(evidence), before, environment, limit, by)
            # A cancelled run says nothing about the work.
            raise_if_cancelled()
            run = _with_red_before(workspace, job, evidence_name(evidence), before, run)
    return _record(workspace, job, argv, evidence, criterion, before, run, started_at, by)


def _with_red_before(
    workspace: Workspace, job: Job, evidence: str, before: RunConditions, run: CheckedRun
) -> CheckedRun:
    """Note whether a run that passed has failed before on the same files."""
    if not run.passed or run.room is None:
        return run
    entries = workspace.ledger.read(job.id).entries
    found = red_before(entries, evidence, before.parts.values(), run.room.files, run.room.environment)
    return replace(run, room=msgspec.structs.replace(run.room, red_before=found)) if found else run


def _can_be_reused(run: CommandRun, environment: EnvironmentNow | None, session: RoomSession | None) -> bool:
    if not run.passed or (environment is not None and not environment.is_same_as(run.room)):
        return False
    # The work may have lines that no declared input covers, or that an older version did not look at.
    return session is None or run.room is None or session.signs() == run.room.signs


def _conditions(workspace: Workspace, job: Job, argv: Sequence[str], session: RoomSession | None) -> RunConditions:
    if session is None or job.inputs:
        return run_conditions(workspace, job, argv)
    return run_conditions(workspace, job, argv, inputs_of_reading(workspace, job, session.reading))


def _run_in_work_tree(
    workspace: Workspace, job: Job, argv: Sequence[str], before: RunConditions, timeout: float
) -> CheckedRun:
    """Run a command in the work tree: nothing was agreed that a room could be made of, or the folder is one."""
    room = placed_room()
    if room is not None:
        run = room.run(argv, before.surroundings, timeout)
        written = room.written()
        if run.result.strain:
            return _strained_run(run)
        why = "; ".join(filter(None, (untrusted_text(run), written_text(written))))
        return CheckedRun(run, run.passed and not written, why=why)
    with tempfile.TemporaryDirectory(prefix="donewhen-", ignore_cleanup_errors=True) as folder:
        run = run_with_report(
            before.executable.path,
            argv,
            cwd=workspace.root,
            reports=Path(folder),
            environment=before.surroundings.variables,
            timeout=timeout,
        )
    if run.result.strain:
        return _strained_run(run)
    after = input_manifest_now(workspace, job)
    names = {*before.inputs.files, *after.files}
    changed = sorted(name for name in names if before.inputs.files.get(name) != after.files.get(name))
    return CheckedRun(run, run.passed, settled=not changed, changed=tuple(changed), why=untrusted_text(run))


def _strained_run(run: ReportedRun) -> CheckedRun:
    return CheckedRun(run, passed=False, why=timeout_text(run.result), hindrance=GateCode.MACHINE_OVERLOADED)


def _record(
    workspace: Workspace,
    job: Job,
    argv: Sequence[str],
    evidence: str,
    criterion: str | None,
    before: RunConditions,
    run: CheckedRun,
    started_at: str,
    by: Actor,
) -> EvidenceRun:
    result, report, problem = run.shown.result, run.shown.report, run.shown.problem
    store = evidence_store(workspace)
    output = _safe_output(result.output, before.surroundings.variables)
    redacted = max(0, output.count(REDACTED) - result.output.count(REDACTED))
    manifest = store.put_json(dict(before.inputs.files))
    record = CommandRecord(
        job=job.id,
        argv=tuple(redact_secrets(word) for word in argv),
        executable=RecordedProgram(path=_without_home(before.executable.path), hash=before.executable.hash),
        environment=dict(before.fingerprint),
        inputs=InputList(manifest=manifest, declared=before.inputs.declared),
        changed_meanwhile=run.changed[:_MAX_CHANGED_FILES],
        started_at=started_at,
        seconds=round(run.seconds, 3),
        ending=result.ending,
        exit_code=result.exit_code,
        output=store.put(output.encode("utf-8", "replace")),
        report=None if report is None else _recorded_report(report, store, before.surroundings.variables),
        report_problem=None if problem is None else redact_secrets(problem),
    )
    data: dict[str, Any] = {
        "what": "command",
        "evidence": evidence_name(evidence),
        "criterion": criterion,
        "asked_for": is_required_evidence(job, evidence),
        "key": before.parts.key,
        "parts": before.parts.values(),
        "settled": run.settled,
        "passed": run.passed,
        "ending": result.ending,
        "exit_code": result.exit_code,
        "record": put_record(store, record),
        "output": record.output,
        "manifest": manifest,
    }
    if redacted:
        data["redacted"] = redacted
    if run.why:
        data["told"] = redact_secrets(run.why)
    if run.hindrance is not None:
        data["hindrance"] = run.hindrance.value
    if (controls := recorded_controls(run.shown)) is not None:
        data["controls"] = msgspec.to_builtins(controls)
    if run.room is not None:
        data["room"] = msgspec.to_builtins(run.room)
    if report is not None:
        data["report"] = report.summary()
    label = criterion or next(
        (requirement.name for requirement in requirements_of(job) if requirement.evidence == evidence), "run"
    )
    code, passed = result.exit_code, data["passed"]
    when = (started_at, workspace.now(), run.seconds)
    logged = LoggedRun(job.id, label, evidence_name(evidence), *when, code, passed, output)
    if (unlogged := log_run(workspace, logged)) is not None:
        # The log is only a view: the run counts even if its line could not be written, and the entry says why.
        data["unlogged"] = unlogged
    return EvidenceRun(append_run(workspace, job, data, by), reused=False, output=output)


def record_file_check(
    workspace: Workspace,
    job: Job,
    check: Check,
    evidence: str,
    by: Actor,
    *,
    criterion: str | None = None,
    again: bool = False,
) -> EvidenceRun:
    """Run a file check and record the result; a recorded result for the same content is reused."""
    key = file_check_key(workspace, job, check, evidence)
    fresh_run = None if again else find_fresh_run(workspace.ledger.read(job.id).entries, evidence, key, "file")
    if fresh_run is not None:
        return EvidenceRun(fresh_run, reused=True)
    result = check_file(workspace, job, check)
    data = {
        "what": "file",
        "evidence": evidence_name(evidence),
        "criterion": criterion,
        "asked_for": is_required_evidence(job, evidence, "file"),
        "key": key,
        "settled": file_check_key(workspace, job, check, evidence) == key,
        "passed": result.passed,
        "told": redact_secrets(result.detail),
    }
    return EvidenceRun(append_run(workspace, job, data, by), reused=False, output=result.detail)


def file_check_key(workspace: Workspace, job: Job, check: Check, evidence: str) -> str:
    """Return a hash of what a file check depends on: the check itself and the contents of its files."""
    files = {name: hash_file(path) for name, path in checked_files(workspace, job, check).items()}
    basis = basis_of(workspace, job) if check.schema is not None else None
    room = {} if basis is None else {"room": basis.hash}
    return digest_of({"evidence": evidence, "files": files, **room})


def append_run(workspace: Workspace, job: Job, data: Mapping[str, Any], by: Actor) -> Entry:
    """Append a run to the ledger; also seal the terms that were tightened since the last seal."""
    if job.path != workspace.project_file:
        seal_tightened_terms(workspace, job, by)
    with writing(workspace, job.path, job.id) as plan:
        return plan.append("ran", data, Approval(by))


def _safe_output(output: str, environment: Mapping[str, str]) -> str:
    """Redact secrets in the output; drop the partial lines next to a cut, which could hold half a secret."""
    whole_lines = _CUT.sub(lambda match: re.sub(r"^[^\n]*\n|(?<=\])\n[^\n]*\Z", "\n", match.group()), output)
    return redact_secrets(redact_secrets(_KEY_REST.sub(rf"\1{REDACTED}", whole_lines)), environment)


def _command_text(argv: Sequence[str]) -> str:
    """Return the command as text; raise UsageError if it can't be encoded, since the ledger holds only text."""
    text = shlex.join(argv)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"The command {text!a} is not valid text, so it can't be recorded.") from None
    return text


def _recorded_report(report: RunReport, store: EvidenceStore, environment: Mapping[str, str]) -> RecordedReport:
    outcomes = store.put_json(stored_outcomes(report.outcomes))
    kept = islice(report.messages.items(), _MAX_MESSAGES)
    failures = {stored_test_id(name): _safe_output(message, environment) for name, message in kept}
    return msgspec.convert({**report.summary(), "outcomes": outcomes, "failures": failures}, RecordedReport)


def _without_home(path: Path) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111
    text = str(path)
    return f"~{text.removeprefix(home)}" if home != "/" and text.startswith(f"{home}/") else text
