"""The tests of the agreed tree: each command that runs tests runs once on it, without the work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import msgspec

from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.contract.agreement import approval_policy, current_seal
from donewhen.jobs.evidence.hindrances import timeout_text
from donewhen.jobs.evidence.records import UnusableRecord, read_outcomes
from donewhen.jobs.evidence.room_session import PrepareFailedError, RoomSession
from donewhen.jobs.evidence.store import EvidenceStore, evidence_store
from donewhen.jobs.evidence.test_ids import stored_outcomes
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.entry_content import Agreed, AgreedBaseline, BaselineRun
from donewhen.jobs.record.writing import writing
from donewhen.jobs.room.surroundings import Surroundings
from donewhen.test_reports.junit import Outcome
from donewhen.test_reports.test_runners import runner_of


@dataclass(frozen=True)
class Baseline:
    """The outcomes of the agreed tests, or why they are not known."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    why: str = ""
    controls: str = ""
    """What controls say there: ``held``, or why they tell nothing; empty if that was not recorded."""

    @property
    def is_empty(self) -> bool:
        """Whether it is known that there are no tests."""
        return not self.outcomes and not self.why


def baseline_of(
    session: RoomSession, argv: Sequence[str], evidence: str, surroundings: Surroundings, timeout: float, by: Actor
) -> Baseline:
    """The baseline of a command: the recorded one for this tree, or else it is run now and recorded."""
    known = _recorded(session, evidence)
    if known is not None:
        return known
    store = evidence_store(session.workspace)
    try:
        run = session.run_agreed(argv, surroundings, timeout)
        raise_if_cancelled()
        if run.result.strain:
            # Not recorded: it will be run again.
            return Baseline(why=timeout_text(run.result))
        baseline = recorded_baseline(store, run, argv, session.reading.agreed.files)
    except PrepareFailedError as error:
        if error.hindrance is not None:
            return Baseline(why=error.message)
        # What builds the files may be part of the work.
        baseline = AgreedBaseline(why=redact_secrets(error.message))
    data: dict[str, Any] = {
        "what": "baseline",
        "evidence": evidence,
        "tree": tree_name(session),
        "settled": True,
        "passed": True,
        "tests": baseline.tests,
        "outcomes": baseline.outcomes,
        **({"controls": baseline.controls} if baseline.controls else {}),
        "told": baseline.why or None,
    }
    with writing(session.workspace, session.job.path, session.job.id) as plan:
        plan.append("ran", data, Approval(by))
    return _read(store, baseline)


def known_baseline(session: RoomSession, evidence: str) -> Baseline | None:
    """The recorded baseline of a command, if it still counts."""
    return _recorded(session, evidence)


def recorded_baseline(
    store: EvidenceStore, run: ReportedRun, argv: Sequence[str], agreed: Collection[str]
) -> AgreedBaseline:
    """Store the tests of a run on the agreed tree, which has these files."""
    baseline = _tests_of(store, run, argv, agreed)
    held = run.controls.held
    # Tests that can't be collected without the work say nothing about controls.
    known = held == "broken" or run.result.succeeded
    controls = held if held == "held" else redact_secrets(run.controls.why) if known else ""
    return msgspec.structs.replace(baseline, controls=controls)


def _tests_of(store: EvidenceStore, run: ReportedRun, argv: Sequence[str], agreed: Collection[str]) -> AgreedBaseline:
    if run.report is None or not run.report.has_tests:
        # Without a report there may be no tests, or it could not run at all.
        if run.result.ending == "exited" and found_no_tests(run.result.exit_code, argv, agreed):
            return AgreedBaseline(outcomes=store.put_json({}), tests=0)
        why = run.problem or f"it ended with exit status {run.result.exit_code} and without a test report"
        if run.result.ending == "timed_out":
            why = "it timed out"
        return AgreedBaseline(outcomes=None, tests=0, why=redact_secrets(why))
    outcomes = stored_outcomes(run.report.outcomes)
    return AgreedBaseline(outcomes=store.put_json(outcomes), tests=len(outcomes))


def found_no_tests(exit_code: int | None, argv: Sequence[str], agreed: Collection[str]) -> bool:
    """Whether a test command says by its exit status that there are no tests in the agreed tree."""
    return exit_code == _NO_TESTS or (exit_code == _USAGE_ERROR and names_absent_files(argv, agreed))


def names_absent_files(argv: Sequence[str], agreed: Collection[str]) -> bool:
    """Whether a test command names files or folders that the agreed tree does not have."""
    words = argv[runner_of(argv).arguments :]
    paths = [PurePosixPath(word.partition("::")[0]).as_posix() for word in words if not word.startswith("-")]
    return any(
        ("/" in path or path.endswith(".py"))
        and not any(name == path or name.endswith(f"/{path}") or f"/{name}".find(f"/{path}/") >= 0 for name in agreed)
        for path in paths
    )


def tree_name(session: RoomSession) -> str:
    """What names the agreed files of a session: a commit, or the name of a list."""
    return session.reading.commit or session.reading.basis.tree.list or ""


_USAGE_ERROR, _NO_TESTS = 4, 5
"""pytest's exit statuses if a file does not exist (but also if settings are wrong), and if there are no tests."""


def _recorded(session: RoomSession, evidence: str) -> Baseline | None:
    entries = session.workspace.ledger.read(session.job.id).entries
    store = evidence_store(session.workspace)
    if session.reading.upstream is None:
        whole = session.job.path == session.workspace.project_file
        seal = current_seal(session.job.id, entries, None if whole else approval_policy(session.workspace))
        agreed = seal.entry.content if seal is not None else None
        if isinstance(agreed, Agreed) and evidence in agreed.baselines:
            return _usable(store, agreed.baselines[evidence])
    entry = next((entry for entry in reversed(entries) if _is_baseline(entry, evidence, tree_name(session))), None)
    if entry is None:
        return None
    run = entry.read_as(BaselineRun)
    return _usable(store, _of_entry(run))


def _usable(store: EvidenceStore, baseline: AgreedBaseline) -> Baseline | None:
    """A recorded baseline; None if its outcomes are not on this machine, so that it has to be run again."""
    if baseline.outcomes is not None and isinstance(read_outcomes(store, baseline.outcomes), UnusableRecord):
        return None
    return _read(store, baseline)


def _read(store: EvidenceStore, baseline: AgreedBaseline) -> Baseline:
    outcomes = read_outcomes(store, baseline.outcomes) if baseline.outcomes is not None else {}
    found = {} if isinstance(outcomes, UnusableRecord) else outcomes
    return Baseline(found, baseline.why, baseline.controls)


def _of_entry(run: BaselineRun) -> AgreedBaseline:
    return AgreedBaseline(outcomes=run.outcomes, tests=run.tests, why=run.told or "", controls=run.controls)


def _is_baseline(entry: Entry, evidence: str, tree: str) -> bool:
    run = entry.content
    return isinstance(run, BaselineRun) and run.evidence == evidence and run.tree == tree
