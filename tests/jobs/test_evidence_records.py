"""The typed records of the evidence store: what is refused, what is of another version, and old records."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from donewhen.foundation.canonical import canonical_json, digest
from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.audit.audit_evidence import evidence_problems
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.evidence import records as records_module
from donewhen.jobs.evidence.commands import evidence_store, run_as_evidence
from donewhen.jobs.evidence.records import (
    RECORD,
    TICKET,
    CommandRecord,
    StoredTicket,
    UnusableRecord,
    put_record,
    read_command,
    read_file_hashes,
    read_outcomes,
    read_run_outcomes,
    read_ticket,
)
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.gates.evaluation import evaluate
from donewhen.jobs.gates.facts import facts_of
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.entry_content import CommandRun, JudgeRun
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Workspace

ADA = Approval(Actor("ada", "person"))
ARCHIVE = Path(__file__).parents[1] / "old_formats" / "format_1.tar.gz"
NAME = f"sha256:{'0' * 64}"
COMMAND: dict[str, Any] = {
    "schema": RECORD,
    "job": "WI-1",
    "argv": ["pytest"],
    "executable": {"path": "/bin/pytest", "hash": NAME},
    "environment": {"HOME": "60f6214d"},
    "inputs": {"manifest": NAME, "declared": False},
    "changed_meanwhile": [],
    "started_at": "2026-02-14T10:00:00Z",
    "seconds": 0.2,
    "ending": "exited",
    "exit_code": 0,
    "output": NAME,
    "report": {"formats": ["junit"], "passed": 2, "failed": 0, "skipped": 0, "coverage": 87.5, "outcomes": NAME},
    "report_problem": None,
}
TICKET_DATA: dict[str, Any] = {
    "schema": TICKET,
    "group_id": "WI-1.AC-1.0",
    "mission": "tone",
    "cluster": "WI-1",
    "evidence": {"task": "It convinces"},
}
Reader = Callable[[EvidenceStore, str | None], object]


@pytest.fixture
def store(tmp_path: Path) -> EvidenceStore:
    return EvidenceStore(tmp_path / "evidence")


def code(found: object) -> str | None:
    return str(found.code) if isinstance(found, UnusableRecord) else None


@pytest.mark.parametrize(("data", "kind"), [(COMMAND, CommandRecord), (TICKET_DATA, StoredTicket)])
def test_a_record_is_written_as_it_is_read(store: EvidenceStore, data: dict[str, Any], kind: Any) -> None:
    record = msgspec.convert(data, kind)
    name = put_record(store, record)
    assert store.get(name) == canonical_json(data)
    assert (read_command if kind is CommandRecord else read_ticket)(store, name) == record


@pytest.mark.parametrize("reader", [read_command, read_ticket, read_file_hashes, read_outcomes, read_run_outcomes])
def test_what_is_missing_changed_or_something_else_is_not_used(
    store: EvidenceStore, tmp_path: Path, reader: Reader
) -> None:
    assert (
        code(reader(store, None)) == code(reader(store, "no name")) == code(reader(store, NAME)) == "evidence_missing"
    )
    for content in (b"", b"{", b"\xff\xfe", b"7", b"[]", b"null", b'{"a":7}', b"[" * 100_000, b'{"a":"\xed\xa0\x80"}'):
        assert code(reader(store, store.put(content))) == "evidence_invalid"
    name = store.put(b"{}")
    (tmp_path / "evidence" / name[7:9] / name[7:]).write_bytes(b"{ }")
    assert code(reader(store, name)) == "evidence_changed"


def test_a_record_of_another_kind_is_not_used(store: EvidenceStore) -> None:
    command, ticket = store.put_json(COMMAND), store.put_json(TICKET_DATA)
    outcomes = store.put_json({"t::a": "passed"})
    assert {code(reader(store, command)) for reader in (read_ticket, read_file_hashes, read_outcomes)} == {
        "evidence_invalid"
    }
    assert {code(reader(store, ticket)) for reader in (read_command, read_file_hashes, read_outcomes)} == {
        "evidence_invalid"
    }
    assert code(read_outcomes(store, store.put_json({"t::a": "dreamt"}))) == "evidence_invalid"
    assert read_outcomes(store, outcomes) == {"t::a": "passed"}


WRONG = [
    pytest.param(data, (name,), id=f"{data['schema'].split('/')[1]} {name}")
    for data in (COMMAND, TICKET_DATA)
    for name in data
    if name != "schema"
] + [
    pytest.param(COMMAND, (table, name), id=f"{table} {name}")
    for table in ("executable", "inputs", "report")
    for name in COMMAND[table]
]


ALSO_RIGHT: dict[str, tuple[type, ...]] = {
    "exit_code": (type(None),),
    "report": (type(None),),
    "report_problem": (str,),
    "seconds": (int,),
    "coverage": (int,),
}
VALUES = (
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)
    | st.lists(st.none(), min_size=1) | st.dictionaries(st.text(), st.none(), min_size=1)
)  # fmt: skip


@pytest.mark.parametrize(("data", "path"), WRONG)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)
@given(value=VALUES)
def test_a_value_of_the_wrong_type_makes_a_record_unusable_and_is_named(
    store: EvidenceStore, data: dict[str, Any], path: tuple[str, ...], value: object
) -> None:
    right = data[path[0]] if len(path) == 1 else data[path[0]][path[1]]
    assume(type(value) not in (type(right), *ALSO_RIGHT.get(path[-1], ())))
    changed = {**data, path[0]: value if len(path) == 1 else {**data[path[0]], path[1]: value}}
    reader: Reader = read_command if data is COMMAND else read_ticket
    found = reader(store, store.put_json(changed))
    assert isinstance(found, UnusableRecord)
    assert (str(found.code), f"$.{path[0]}" in found.problem) == ("evidence_invalid", True)


@pytest.mark.parametrize(("data", "reader"), [(COMMAND, read_command), (TICKET_DATA, read_ticket)])
def test_a_record_of_a_newer_version_is_named_as_such(
    store: EvidenceStore, data: dict[str, Any], reader: Reader
) -> None:
    newer = {**data, "schema": data["schema"].replace("v1", "v2"), "argv": {"words": 1}, "evidence": 7}
    found = reader(store, store.put_json(newer))
    assert isinstance(found, UnusableRecord)
    assert (str(found.code), "/v2" in found.problem) == ("other_version", True)


def test_older_records_have_less_and_later_fields_do_no_harm(store: EvidenceStore) -> None:
    assert read_command(store, store.put_json({"schema": RECORD})) == CommandRecord()
    assert read_command(store, store.put_json({"schema": RECORD, "mood": [1]})) == CommandRecord()


def test_an_error_in_our_own_code_is_not_reported_as_invalid_data(
    store: EvidenceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TypeError("ours")

    monkeypatch.setattr(records_module, "refuse_newer", fail)
    with pytest.raises(TypeError, match="ours"):
        read_command(store, store.put_json(COMMAND))


# In a project.


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    workspace = create_project(tmp_path / "shop", "Shop")
    (workspace.root / "tests.py").write_text(
        "import pathlib, sys\n"
        'pathlib.Path(sys.argv[1]).write_text(\'<testsuite><testcase classname="t" name="a"/></testsuite>\')\n'
    )
    job = add_job(workspace, "One", criteria=["It works"], commands=["python3 tests.py {junit}"])
    for proposal in agreement_proposals(workspace, [job]):
        agree(workspace, proposal, ADA)
    run_as_evidence(workspace, workspace.job("one"), ["python3", "tests.py", "{junit}"], ADA.by)
    return workspace


def swap_record(workspace: Workspace, **changed: Any) -> tuple[Entry, str]:
    """Let the last run name another record, as a writer of the ledger can, and return the run and its place."""
    job = workspace.job("one")
    path = workspace.folder / "ledger" / f"{job.id}.jsonl"
    *before, last = path.read_bytes().splitlines(keepends=True)
    content = json.loads(last)
    store = evidence_store(workspace)
    content["data"]["record"] = store.put_json({**store.get_json(content["data"]["record"]), **changed})
    content.pop("hash")
    path.write_bytes(b"".join(before) + canonical_json({**content, "hash": digest(canonical_json(content))}) + b"\n")
    entry = workspace.ledger.read(job.id).entries[-1]
    return entry, f"{workspace.where(path)}:{entry.seq}"


@pytest.mark.parametrize(
    ("changed", "finding", "gate"),
    [
        ({"schema": "donewhen/evidence/v2"}, "other_version", "other_version"),
        ({"report": 7}, "evidence_invalid", "record_broken"),
        ({"report": {"outcomes": 7}}, "evidence_invalid", "record_broken"),
        ({"report": {"outcomes": NAME}}, "evidence_missing", "record_broken"),
        ({"environment": []}, "evidence_invalid", "record_broken"),
    ],
)
def test_a_record_that_can_not_be_used_is_a_finding_and_closes_the_gates(
    shop: Workspace, changed: dict[str, Any], finding: str, gate: str
) -> None:
    _, where = swap_record(shop, **changed)
    found = {(str(item.code), item.where) for item in audit_workspace(shop).findings if item.severity == "error"}
    # The chain was rewritten, which the marks outside of the project show as well.
    assert {item for item in found if item[0] != "record_gone_back"} == {(finding, where)}
    facts = facts_of(shop, shop.job("one"))
    assert (facts.suites, facts.record_intact) == ((), False)
    reasons = {str(reason.code): reason.where for closed in evaluate(facts).gates for reason in closed.reasons}
    assert gate in reasons
    assert ({"other_version", "record_broken"} - {gate}) & reasons.keys() == set()
    if gate == "other_version":
        assert reasons[gate] == where


def test_a_good_record_is_no_finding(shop: Workspace) -> None:
    entry, _ = swap_record(shop)
    assert list(evidence_problems(evidence_store(shop), entry.read_as(CommandRun))) == []
    facts = facts_of(shop, shop.job("one"))
    assert ([(suite.before, suite.now) for suite in facts.suites], facts.record_intact) == ([(1, 1)], True)


def test_records_of_the_version_before_are_read_and_keep_their_names(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "shop", filter="data")
    workspace = Workspace(tmp_path / "shop", "small")
    store = evidence_store(workspace)
    commands, tickets = 0, 0
    for chain in workspace.ledger.chains():
        for entry in workspace.ledger.read(chain).entries:
            run = entry.content
            if isinstance(run, CommandRun):
                record = read_command(store, run.record)
                assert isinstance(record, CommandRecord)
                assert store.put_json(msgspec.to_builtins(record)) == run.record
                assert isinstance(read_file_hashes(store, run.manifest), dict)
                if record.report is not None:
                    assert read_run_outcomes(store, run.record) == {"a::b": "passed", "a::c": "passed"}
                commands += 1
            elif isinstance(run, JudgeRun) and run.ticket is not None:
                ticket = read_ticket(store, run.ticket)
                assert isinstance(ticket, StoredTicket)
                assert put_record(store, ticket) == run.ticket
                tickets += 1
    assert (commands > 3, tickets > 0) == (True, True)
