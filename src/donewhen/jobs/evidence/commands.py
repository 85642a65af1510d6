"""Run commands and file checks as evidence and record the results."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import UsageError
from donewhen.foundation.executables import Executable, resolve_executable, safe_path
from donewhen.foundation.process import CommandResult, run_command, small_environment
from donewhen.foundation.secrets import REDACTED, redact_secrets
from donewhen.jobs.contract.agreeing import seal_tightened_terms
from donewhen.jobs.contract.inputs import Manifest, hash_file, input_manifest, input_manifest_now
from donewhen.jobs.evidence.file_checks import checked_files, run_file_check
from donewhen.jobs.evidence.records import CommandRecord, InputList, RecordedProgram, RecordedReport, put_record
from donewhen.jobs.evidence.requirements import (
    is_required_evidence,
    refuse_other_command,
    requirement_for,
    requirements_of,
)
from donewhen.jobs.evidence.store import EvidenceKey, EvidenceStore
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.entry_content import CommandRun, FileCheck, JudgeRun, Ran
from donewhen.jobs.plan.criteria import Check
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.execution_log import LoggedRun, log_run
from donewhen.jobs.record.writing import writing
from donewhen.test_reports.junit import ReportError
from donewhen.test_reports.run_reports import RunReport, read_reports

# Variables that change language, time zone or output, and the home from which programs load code and configuration.
_FINGERPRINTED = ("LANG", "LANGUAGE", "TZ", "CI", "PYENV_VERSION", "HOME")
_MAX_CHANGED_FILES = 50
_OWN_REPORT = ("--junitxml", "--junit-xml")
# Anchored at the start of a line; otherwise matching a long line would take quadratic time.
_CUT = re.compile(r"^[^\n]*+\n\[… \d+ bytes left out …\]\n[^\n]*", re.MULTILINE)
_KEY_REST = re.compile(r"(left out …\]\n)(?:(?!-----BEGIN )[\s\S])*?-----END [A-Z ]*PRIVATE KEY-----")


RunKind = Literal["command", "file", "judge"]
_RUNS: dict[RunKind, type[Ran]] = {"command": CommandRun, "file": FileCheck, "judge": JudgeRun}


class RunConditions(NamedTuple):
    """Everything that a run of a command depends on, in its current state."""

    executable: Executable
    environment: Mapping[str, str]
    fingerprint: Mapping[str, str]
    inputs: Manifest
    parts: EvidenceKey


class EvidenceRun(NamedTuple):
    """The ledger entry of a run, and whether an earlier run was reused."""

    entry: Entry
    reused: bool
    output: str = ""

    @property
    def passed(self) -> bool:
        return self.entry.read_as(Ran).passed


def run_conditions(
    workspace: Workspace, job: Job, argv: Sequence[str], inputs: Manifest | None = None
) -> RunConditions:
    """Return what a run of this command would depend on now."""
    settings = workspace.settings().jobs
    executable = resolve_executable(argv[0], workspace.root)
    environment = small_environment(settings.pass_env) | {"PATH": safe_path(workspace.root)}
    watched = {*_FINGERPRINTED, *settings.pass_env, *(name for name in environment if name.startswith("LC_"))}
    fingerprint = {
        "platform": f"{sys.platform} {platform.machine()}",
        **{name: _short_hash(name, environment[name]) for name in sorted(watched) if name in environment},
    }
    manifest = input_manifest(workspace, job) if inputs is None else inputs
    parts = EvidenceKey(digest_of(list(argv)), executable.hash, digest_of(fingerprint), manifest.hash)
    return RunConditions(executable, environment, fingerprint, manifest, parts)


def find_fresh_run(entries: Sequence[Entry], evidence: str, key: str, what: RunKind = "command") -> Entry | None:
    """Return the newest run of this command if nothing that it depends on has changed since."""
    newest = newest_run(entries, evidence, what)
    if newest is None:
        return None
    run = newest.read_as(Ran)
    return newest if run.key == key and run.settled else None


def newest_run(entries: Sequence[Entry], evidence: str, what: RunKind = "command") -> Entry | None:
    """Return the newest run of this command, file check or judge."""
    kind, name = _RUNS[what], evidence_name(evidence)
    return next(
        (entry for entry in reversed(entries) if isinstance(entry.content, kind) and entry.content.evidence == name),
        None,
    )


def evidence_name(evidence: str) -> str:
    """Return the name under which evidence is recorded: the command or file check with secrets redacted."""
    return redact_secrets(evidence)


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
    before = run_conditions(workspace, job, argv)
    if not again:
        fresh_run = find_fresh_run(workspace.ledger.read(job.id).entries, evidence, before.parts.key)
        if fresh_run is not None and fresh_run.read_as(CommandRun).passed:
            return EvidenceRun(fresh_run, reused=True)
    started_at = workspace.now()
    limit = workspace.settings().jobs.command_timeout if timeout is None else timeout
    result, report, problem = _run_with_report(workspace, argv, before, limit)
    after = input_manifest_now(workspace, job)
    changed = sorted(
        name for name in {*before.inputs.files, *after.files} if before.inputs.files.get(name) != after.files.get(name)
    )
    store = evidence_store(workspace)
    output = _safe_output(result.output, before.environment)
    manifest = store.put_json(dict(before.inputs.files))
    record = CommandRecord(
        job=job.id,
        argv=tuple(redact_secrets(word) for word in argv),
        executable=RecordedProgram(path=_without_home(before.executable.path), hash=before.executable.hash),
        environment=dict(before.fingerprint),
        inputs=InputList(manifest=manifest, declared=before.inputs.declared),
        changed_meanwhile=tuple(changed[:_MAX_CHANGED_FILES]),
        started_at=started_at,
        seconds=round(result.seconds, 3),
        ending=result.ending,
        exit_code=result.exit_code,
        output=store.put(output.encode("utf-8", "replace")),
        report=None if report is None else _recorded_report(report, store),
        report_problem=None if problem is None else redact_secrets(problem),
    )
    data: dict[str, Any] = {
        "what": "command",
        "evidence": evidence_name(evidence),
        "criterion": criterion,
        "asked_for": is_required_evidence(job, evidence),
        "key": before.parts.key,
        "parts": before.parts._asdict(),
        "settled": not changed,
        "passed": result.succeeded and problem is None and (report is None or report.good),
        "ending": result.ending,
        "exit_code": result.exit_code,
        "record": put_record(store, record),
        "output": record.output,
        "manifest": manifest,
    }
    if report is not None:
        data["report"] = report.summary()
    label = criterion or next(
        (requirement.name for requirement in requirements_of(job) if requirement.evidence == evidence), "run"
    )
    code, passed = result.exit_code, data["passed"]
    when = (started_at, workspace.now(), result.seconds)
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
    result = run_file_check(workspace, job, check)
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
    return digest_of({"evidence": evidence, "files": files})


def evidence_store(workspace: Workspace) -> EvidenceStore:
    """Return the evidence store of a workspace."""
    return EvidenceStore(workspace.folder / "evidence")


def append_run(workspace: Workspace, job: Job, data: Mapping[str, Any], by: Actor) -> Entry:
    """Append a run to the ledger; also seal the terms that were tightened since the last seal."""
    if job.path != workspace.project_file:
        seal_tightened_terms(workspace, job, by)
    with writing(workspace, job.path, job.id) as plan:
        return plan.append("ran", data, Approval(by))


def _run_with_report(
    workspace: Workspace, argv: Sequence[str], conditions: RunConditions, timeout: float
) -> tuple[CommandResult, RunReport | None, str | None]:
    """Run the command; return its result, its test report, and what is wrong with the report."""
    with tempfile.TemporaryDirectory(prefix="donewhen-", ignore_cleanup_errors=True) as folder:
        placeholders = {"{junit}": f"{folder}/junit.xml", "{junit_dir}": folder, "{report_dir}": folder}
        words = [str(conditions.executable.path), *(_fill_placeholders(word, placeholders) for word in argv[1:])]
        environment = dict(conditions.environment)
        expected = any(placeholder in word for word in argv[1:] for placeholder in placeholders)
        if not expected and _is_pytest(argv) and not any(word.startswith(_OWN_REPORT) for word in argv):
            # Request a report through the environment, so that the agreed command stays unchanged.
            expected = True
            options = environment.get("PYTEST_ADDOPTS", "")
            environment["PYTEST_ADDOPTS"] = f"{options} {shlex.quote(f'--junitxml={folder}/junit.xml')}".strip()
        result = run_command(words, cwd=workspace.root, timeout=timeout, env=environment)
        try:
            report = read_reports(Path(folder))
        except ReportError as error:
            return result, None, str(error)
        # A test can end the process with status 0 before the report is written.
        missing = expected and report is None and result.succeeded
        return result, report, "The command wrote no test report." if missing else None


def reports_tests(argv: Sequence[str]) -> bool:
    """Whether a command is expected to write a test report."""
    return _is_pytest(argv) or any("{junit" in word or "{report_dir}" in word for word in argv)


def _fill_placeholders(word: str, placeholders: Mapping[str, str]) -> str:
    for name, value in placeholders.items():
        word = word.replace(name, value)
    return word


def _is_pytest(argv: Sequence[str]) -> bool:
    name = Path(argv[0]).name
    return name in ("pytest", "py.test") or (name.startswith("python") and tuple(argv[1:3]) == ("-m", "pytest"))


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


def _recorded_report(report: RunReport, store: EvidenceStore) -> RecordedReport:
    outcomes = {redact_secrets(name): outcome for name, outcome in report.outcomes.items()}
    return msgspec.convert({**report.summary(), "outcomes": store.put_json(outcomes)}, RecordedReport)


def _short_hash(name: str, value: str) -> str:
    """Return a hash that is long enough to detect a change and too short to recover the value."""
    return hashlib.sha256(f"{name}={value}".encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _without_home(path: Path) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111
    text = str(path)
    return f"~{text.removeprefix(home)}" if home != "/" and text.startswith(f"{home}/") else text
