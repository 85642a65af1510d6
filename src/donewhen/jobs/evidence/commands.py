"""The gate makes its own evidence: it runs the command itself, and writes down what it saw."""

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

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import UsageError
from donewhen.foundation.executables import Executable, resolve_executable, safe_path
from donewhen.foundation.process import CommandResult, run_command, small_environment
from donewhen.foundation.secrets import REDACTED, redact_secrets
from donewhen.jobs.contract.agreement import seal_tightened_terms
from donewhen.jobs.contract.inputs import Manifest, hash_file, input_manifest
from donewhen.jobs.evidence.file_checks import checked_files, run_file_check
from donewhen.jobs.evidence.requirements import is_required_evidence, requirements_of
from donewhen.jobs.evidence.store import RECORD, EvidenceKey, EvidenceStore
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.ledger import Actor, Entry
from donewhen.jobs.plan.criteria import Check
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.execution_log import LoggedRun, log_run
from donewhen.jobs.record.projection import finish_interrupted_write, record_and_project
from donewhen.test_reports.junit import ReportError
from donewhen.test_reports.run_reports import RunReport, read_reports

# What changes how programs speak and reckon, and the home from which they load code and configuration.
_FINGERPRINTED = ("LANG", "LANGUAGE", "TZ", "CI", "PYENV_VERSION", "HOME")
_NAMED = 50
_OWN_REPORT = ("--junitxml", "--junit-xml")
# At the beginning of a line: from everywhere else, a long line would be read again and again.
_CUT = re.compile(r"^[^\n]*+\n\[… \d+ bytes left out …\]\n[^\n]*", re.MULTILINE)
_KEY_REST = re.compile(r"(left out …\]\n)(?:(?!-----BEGIN )[\s\S])*?-----END [A-Z ]*PRIVATE KEY-----")


What = Literal["command", "file", "judge"]


class RunConditions(NamedTuple):
    """Everything that a run of a command depends on, as it is now."""

    executable: Executable
    environment: Mapping[str, str]
    fingerprint: Mapping[str, str]
    inputs: Manifest
    parts: EvidenceKey


class EvidenceRun(NamedTuple):
    """Evidence, and whether it was there already."""

    entry: Entry
    reused: bool
    output: str = ""

    @property
    def passed(self) -> bool:
        return self.entry.data["passed"] is True


def run_conditions(
    workspace: Workspace, job: Job, argv: Sequence[str], inputs: Manifest | None = None
) -> RunConditions:
    """What a run of this command would depend on now."""
    settings = workspace.settings().jobs
    executable = resolve_executable(argv[0], workspace.root)
    environment = small_environment(settings.pass_env) | {"PATH": safe_path(workspace.root)}
    watched = {*_FINGERPRINTED, *settings.pass_env, *(name for name in environment if name.startswith("LC_"))}
    fingerprint = {
        "platform": f"{sys.platform} {platform.machine()}",
        **{name: _mark(name, environment[name]) for name in sorted(watched) if name in environment},
    }
    found = input_manifest(workspace, job) if inputs is None else inputs
    parts = EvidenceKey(digest_of(list(argv)), executable.hash, digest_of(fingerprint), found.hash)
    return RunConditions(executable, environment, fingerprint, found, parts)


def find_fresh_run(entries: Sequence[Entry], evidence: str, key: str, what: What = "command") -> Entry | None:
    """The newest run of this command, if nothing that it depends on has changed since."""
    newest = newest_run(entries, evidence, what)
    return newest if newest is not None and newest.data.get("key") == key and newest.data.get("settled") else None


def newest_run(entries: Sequence[Entry], evidence: str, what: What = "command") -> Entry | None:
    """The newest record of this command or look."""
    wanted = (what, evidence_name(evidence))
    runs = (entry for entry in reversed(entries) if entry.type == "ran")
    return next((run for run in runs if (run.data.get("what"), run.data.get("evidence")) == wanted), None)


def evidence_name(evidence: str) -> str:
    """The name under which evidence is found again: a command or a probe, without a secret that stands in it."""
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
    """Run a command as evidence for a job; what passed and is still fresh is not run in vain."""
    evidence = _written(argv)
    before = run_conditions(workspace, job, argv)
    if not again:
        known = find_fresh_run(workspace.ledger.read(job.id).entries, evidence, before.parts.key)
        if known is not None and known.data["passed"] is True:
            return EvidenceRun(known, reused=True)
    started_at = workspace.now()
    limit = workspace.settings().jobs.command_timeout if timeout is None else timeout
    result, report, problem = _executed(workspace, argv, before, limit)
    after = input_manifest(workspace, job)
    changed = sorted(
        name for name in {*before.inputs.files, *after.files} if before.inputs.files.get(name) != after.files.get(name)
    )
    store = evidence_store(workspace)
    output = _safe_output(result.output, before.environment)
    listed = store.put_json(dict(before.inputs.files))
    record = {
        "schema": RECORD,
        "job": job.id,
        "argv": [redact_secrets(word) for word in argv],
        "executable": {"path": _without_home(before.executable.path), "hash": before.executable.hash},
        "environment": dict(before.fingerprint),
        "inputs": {"manifest": listed, "declared": before.inputs.declared},
        "changed_meanwhile": changed[:_NAMED],
        "started_at": started_at,
        "seconds": round(result.seconds, 3),
        "ending": result.ending,
        "exit_code": result.exit_code,
        "output": store.put(output.encode("utf-8", "replace")),
        "report": None if report is None else {**report.summary(), "outcomes": store.put_json(_named_safely(report))},
        "report_problem": None if problem is None else redact_secrets(problem),
    }
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
        "record": store.put_json(record),
        "output": record["output"],
        "manifest": listed,
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
        # The log is a view: the run counts without its line, and the record says that it is missing.
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
    """Decide a file check and write down what was seen; a look that would see the same is not recorded again."""
    key = file_check_key(workspace, job, check, evidence)
    known = None if again else find_fresh_run(workspace.ledger.read(job.id).entries, evidence, key, "file")
    if known is not None:
        return EvidenceRun(known, reused=True)
    seen = run_file_check(workspace, job, check)
    data = {
        "what": "file",
        "evidence": evidence_name(evidence),
        "criterion": criterion,
        "asked_for": is_required_evidence(job, evidence, "file"),
        "key": key,
        "settled": file_check_key(workspace, job, check, evidence) == key,
        "passed": seen.passed,
        "told": redact_secrets(seen.told),
    }
    return EvidenceRun(append_run(workspace, job, data, by), reused=False, output=seen.told)


def file_check_key(workspace: Workspace, job: Job, check: Check, evidence: str) -> str:
    """What a look at a file depends on: the question, and the contents."""
    files = {name: hash_file(path) for name, path in checked_files(workspace, job, check).items()}
    return digest_of({"evidence": evidence, "files": files})


def evidence_store(workspace: Workspace) -> EvidenceStore:
    """Where a workspace keeps its evidence."""
    return EvidenceStore(workspace.folder / "evidence")


def append_run(workspace: Workspace, job: Job, data: Mapping[str, Any], by: Actor) -> Entry:
    """Put a run on record, and with it whatever was added to the contract since it was last sealed."""
    seal_tightened_terms(workspace, workspace.job_at(job.path), by)
    with workspace.locked(job.path):
        entries = workspace.ledger.read(job.id).entries
        document = finish_interrupted_write(workspace, workspace.read(job.path), job.path, entries)
        return record_and_project(workspace, job.id, document, job.path, "ran", data, Approval(by), {})[0]


def _executed(
    workspace: Workspace, argv: Sequence[str], given: RunConditions, timeout: float
) -> tuple[CommandResult, RunReport | None, str | None]:
    """The command's result, what it reported, and what is wrong with the report."""
    with tempfile.TemporaryDirectory(prefix="donewhen-", ignore_cleanup_errors=True) as folder:
        places = {"{junit}": f"{folder}/junit.xml", "{junit_dir}": folder, "{report_dir}": folder}
        words = [str(given.executable.path), *(_placed(word, places) for word in argv[1:])]
        environment = dict(given.environment)
        expected = any(place in word for word in argv[1:] for place in places)
        if not expected and _is_pytest(argv) and not any(word.startswith(_OWN_REPORT) for word in argv):
            # Without changing the command that was agreed, its tests are known by their ids.
            expected = True
            given_options = environment.get("PYTEST_ADDOPTS", "")
            environment["PYTEST_ADDOPTS"] = f"{given_options} {shlex.quote(f'--junitxml={folder}/junit.xml')}".strip()
        result = run_command(words, cwd=workspace.root, timeout=timeout, env=environment)
        try:
            report = read_reports(Path(folder))
        except ReportError as error:
            return result, None, str(error)
        # A test can end the process with status 0 before the report is written.
        missing = expected and report is None and result.succeeded
        return result, report, "The command left no report." if missing else None


def reports_tests(argv: Sequence[str]) -> bool:
    """Whether a command can be expected to leave a report of its tests."""
    return _is_pytest(argv) or any("{junit" in word or "{report_dir}" in word for word in argv)


def _placed(word: str, places: Mapping[str, str]) -> str:
    for name, place in places.items():
        word = word.replace(name, place)
    return word


def _is_pytest(argv: Sequence[str]) -> bool:
    name = Path(argv[0]).name
    return name in ("pytest", "py.test") or (name.startswith("python") and tuple(argv[1:3]) == ("-m", "pytest"))


def _safe_output(output: str, environment: Mapping[str, str]) -> str:
    """What the command said, without secrets; next to a cut, half a line could be half a secret."""
    whole = _CUT.sub(lambda found: re.sub(r"^[^\n]*\n|(?<=\])\n[^\n]*\Z", "\n", found.group()), output)
    return redact_secrets(redact_secrets(_KEY_REST.sub(rf"\1{REDACTED}", whole)), environment)


def _written(argv: Sequence[str]) -> str:
    """The command as it is filed; the ledger holds nothing but text."""
    text = shlex.join(argv)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"The command {text!a} is not text, so it can't be written down.") from None
    return text


def _named_safely(report: RunReport) -> dict[str, str]:
    return {redact_secrets(name): outcome for name, outcome in report.outcomes.items()}


def _mark(name: str, value: str) -> str:
    """Enough to see that a value has changed, too little to guess it by."""
    return hashlib.sha256(f"{name}={value}".encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _without_home(path: Path) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111
    text = str(path)
    return f"~{text.removeprefix(home)}" if home != "/" and text.startswith(f"{home}/") else text
