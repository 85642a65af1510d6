"""The typed terms of contracts: what is refused, what is of another version, and that hashes stay what they were."""

from __future__ import annotations

import dataclasses
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.config.settings import Settings, TestSettings
from donewhen.foundation.canonical import canonical_json, digest, digest_of
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract import agreement as agreement_module
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.terms import compare_terms, terms_hash
from donewhen.jobs.gates.evaluation import evaluate
from donewhen.jobs.gates.facts import facts_of
from donewhen.jobs.ledger import entries as entries_module
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, verify_chain
from donewhen.jobs.ledger.entry_content import Agreed, TermsDecided, decode_content
from donewhen.jobs.ledger.entry_files import entry_file_name
from donewhen.jobs.ledger.ledger import Ledger, LedgerError
from donewhen.jobs.ledger.terms_content import (
    JOB_TERMS,
    PROJECT_TERMS,
    SETTING_TYPES,
    JobTerms,
    ProjectTerms,
    plain_terms,
)
from donewhen.jobs.ledger.versions import NewerVersionError, refuse_newer
from donewhen.jobs.lifecycle.promise import promise_of, verify_promise
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
ARCHIVE = Path(__file__).parents[1] / "old_formats" / "format_1.tar.gz"

JOB: dict[str, Any] = {
    "schema": JOB_TERMS,
    "job": "WI-1",
    **{key: ["a", "b"] for key in ("criteria", "outputs", "verification_evidence", "inputs", "commands")},
    "depends_on": ["WI-2"],
    "stakes": "high",
    "reward_target": 90,
    "max_iterations": 5,
    "truth_mode": "strict",
    "truth_checks": ["freshness"],
    "execution_log_required": True,
    "lesson_capture_required": False,
    "read_only": False,
    "exemptions": {"execution_log_exemption_reason": "docs"},
    "work": ["/src/shop/**"],
    "present": ["/data/**"],
    "prepare": ["make gen"],
    "tests_may_change": ["/tests/test_a.py"],
}
ADDED_LATER = ("work", "present", "prepare", "tests_may_change")
MISSION: dict[str, Any] = {
    "mission": "tone",
    "model": "contrast",
    "language": "sha256:a sha256:b",
    "words": ["pass", "fail"],
    "sampler": ["1 at 0.1"],
    "min_verdict_agreement": 0.67,
    "from_job": {"max_chars": 40000, "parts": ["task"]},
    "overrides": [],
    "initial_guidance": {"G0": "pass"},
    "trial": {"confidence": 0.6, "min_gain": 1},
    "spot_check": 1,
    "alarm_below": 0,
}
PROJECT: dict[str, Any] = {
    "schema": PROJECT_TERMS,
    "project": "PJ-1",
    "criteria": ["a"],
    "settings": {"approval.ci": True, "approval.keys": ["k"], "jobs.command_timeout": 60.0, "stop.tests.timeout": 6},
    "hooks": ["x"],
    "hooks_switched_off": False,
    "baselines": {"tests.json": {"executed": ["0a"], "skipped": []}},
    "github": {"repo": "octo/demo"},
    "missions": {"tone": MISSION, "broken": {"unreadable": "no TOML"}},
}
OTHER_TYPES: tuple[Any, ...] = (None, True, 7, 0.5, "word", ["a"], [7], {"a": "b"}, {"a": 7})


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where a value can be replaced, at every depth."""
    for name, item in value.items():
        yield (*path, name)
        if isinstance(item, dict):
            yield from places(item, (*path, name))


def with_value(terms: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    return {**terms, path[0]: with_value(terms[path[0]], path[1:], value)}


def at(terms: Any, path: tuple[str, ...]) -> Any:
    return terms if not path else at(terms[path[0]], path[1:])


FREE = {("exemptions",), ("settings",), ("baselines",), ("missions",), ("missions", "tone", "trial")}
"""Tables with free names, and a field that may also be a word."""
PLACES = [
    pytest.param(terms, path, id=".".join(path))
    for terms in (JOB, PROJECT)
    for path in places(terms)
    if path not in FREE and path[-2:-1] not in {("from_job",), ("trial",)}
]


@pytest.mark.parametrize("terms", [JOB, PROJECT, {**PROJECT, "missions": {"tone": {**MISSION, "trial": "off"}}}])
def test_terms_are_given_back_as_they_were_read(terms: dict[str, Any]) -> None:
    content = decode_content("agreed", {"how": "agreed", "terms": terms, "hash": digest_of(terms)})
    assert isinstance(content, Agreed) and content.terms is not None
    assert canonical_json(plain_terms(content.terms)) == canonical_json(terms)
    assert plain_terms(content.terms) == terms
    assert terms_hash(content.terms) == content.hash


@pytest.mark.parametrize("name", ["missions", "github", "hooks_switched_off"])
def test_terms_that_a_project_did_not_have_stay_missing(name: str) -> None:
    terms = {key: value for key, value in PROJECT.items() if key != name}
    assert plain_terms(msgspec.convert(terms, ProjectTerms)) == terms


numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=5)


@given(
    st.fixed_dictionaries(
        {
            "reward_target": st.integers(-(10**20), 10**20),
            "criteria": st.lists(texts),
            "exemptions": st.dictionaries(texts, texts),
        }
    ),
    st.dictionaries(st.sampled_from(["a.b", "c"]), st.booleans() | numbers | texts | st.lists(texts)),
    st.fixed_dictionaries({}, optional={"spot_check": numbers, "alarm_below": numbers, "words": st.lists(texts)}),
)
def test_no_value_changes_on_its_way_through_the_types(
    job: dict[str, Any], settings: dict[str, Any], mission: dict[str, Any]
) -> None:
    of_job, of_project = {**JOB, **job}, {**PROJECT, "settings": settings, "missions": {"m": mission}}
    assert terms_hash(msgspec.convert(of_job, JobTerms)) == digest_of(of_job)
    assert terms_hash(msgspec.convert(of_project, ProjectTerms)) == digest_of(of_project)


@pytest.mark.parametrize(("terms", "path"), PLACES)
def test_a_value_of_the_wrong_type_breaks_the_chain_with_line_and_field(
    tmp_path: Path, terms: dict[str, Any], path: tuple[str, ...]
) -> None:
    ledger = Ledger(tmp_path / "ledger", tmp_path / "locks")
    first = ledger.append("X", "started", {}, BOT)
    right = at(terms, path)
    for value in OTHER_TYPES:
        if type(value) is type(right) or (isinstance(value, int | float) and isinstance(right, float)):
            continue
        if path[-1] in ("spot_check", "alarm_below", "timeout") and type(value) in (int, float):
            continue
        if path[0] == "settings" and path[-1].endswith("timeout") and type(value) in (int, float):
            continue
        changed = with_value(terms, path, value)
        data = {"how": "agreed", "terms": changed, "hash": digest_of(changed)}
        with pytest.raises(LedgerError):
            ledger.append("X", "agreed", data, ADA.by)
        (broken,) = verify_chain("X", first.line() + forged(data, first.hash)).breaks
        assert (broken.chain, broken.line, broken.other_version) == ("X", 2, False)
        assert "$.terms" in broken.problem


def forged(data: dict[str, Any], previous: str) -> bytes:
    """A line that somebody wrote by hand, with the right hash."""
    by = {"name": "ada", "kind": "person"}
    content = {"v": 2, "seq": 2, "prev": previous, "type": "agreed", "at": "", "by": by, "data": data}
    return canonical_json({**content, "hash": digest(canonical_json(content))}) + b"\n"


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"schema": "x"},
        {**JOB, "later": []},
        {**PROJECT, "later": []},
        {**PROJECT, "github": {"repo": "a/b", "later": 1}},
        {**PROJECT, "missions": {"tone": {**MISSION, "later": 1}}},
        {**JOB, "stakes": "boundless"},
        {**JOB, "truth_mode": "lenient"},
        {**JOB, "schema": PROJECT_TERMS},
        *(
            {name: value for name, value in JOB.items() if name != left_out}
            for left_out in JOB
            if left_out not in ADDED_LATER
        ),
    ],
)
def test_terms_with_an_unknown_or_a_missing_field_are_not_believed(terms: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_content("agreed", {"terms": terms})


@pytest.mark.parametrize("terms", [{"outputs": []}, {"stakes": 3}, {"max_iterations": "9"}, {"reward_target": 0.5}])
def test_a_decision_sets_nothing_else_and_no_other_type(terms: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_content("decided", {"decision": "stakes", "terms": terms})
    content = decode_content("decided", {"decision": "stakes", "terms": {"stakes": "low"}})
    assert isinstance(content, TermsDecided) and content.terms.values() == {"stakes": "low"}


def test_every_field_of_a_contract_is_compared() -> None:
    changes: dict[str, Any] = {"stakes": "low", "truth_mode": "off", "exemptions": {}, "settings": {}, "baselines": {}}
    changes |= {"github": msgspec.UNSET, "missions": msgspec.UNSET, "network": "host"}
    changes |= {"needs": {JOB["criteria"][0]: "strong", PROJECT["criteria"][0]: "strong"}}
    for terms in (msgspec.convert(JOB, JobTerms), msgspec.convert(PROJECT, ProjectTerms)):
        for name in terms.__struct_fields__:
            value = getattr(terms, name)
            other = {tuple: ("other",), bool: not value, int: 7, str: "other"}.get(type(value))
            changed = msgspec.structs.replace(terms, **{name: changes.get(name, other)})
            assert {change.field.partition(".")[0] for change in compare_terms(terms, changed)} == {name}


def test_the_type_of_every_setting_is_known() -> None:
    def leaves(table: Any) -> Iterator[tuple[str, str]]:
        for field in dataclasses.fields(table):
            value = getattr(table, field.name, None)
            if dataclasses.is_dataclass(value):
                yield from leaves(value)
            elif field.metadata.get("setting", True) and field.name != "tests":
                yield field.name, str(field.type).partition("[")[0].partition(" |")[0]

    found = dict([*leaves(Settings(root=Path())), *leaves(TestSettings("x"))])
    # A closed set of words is text in a contract.
    found["isolation"] = found["require_job"] = "str"
    # Seconds, or a word.
    found["time"] = "float"
    found["signs_allowed"] = "tuple"
    assert {name: types[-1].__name__ for name, types in SETTING_TYPES.items()} == found


# Another version.


@pytest.mark.parametrize(
    ("schema", "newer"),
    [
        ("donewhen/evidence/v2", True),
        ("donewhen/evidence/v10", True),
        ("donewhen/evidence/v1", False),
        ("donewhen/evidence/v0", False),
        ("donewhen/evidence/v01", False),
        ("donewhen/evidence/v2x", False),
        ("donewhen/other/v2", False),
        ("v2", False),
        (None, False),
        (["donewhen/evidence/v2"], False),
    ],
)
def test_only_a_later_version_of_the_same_schema_is_newer(schema: object, newer: bool) -> None:
    if newer:
        with pytest.raises(NewerVersionError):
            refuse_newer(schema, "donewhen/evidence/v1")
    else:
        refuse_newer(schema, "donewhen/evidence/v1")


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    workspace = create_project(tmp_path / "shop", "Shop")
    job = add_job(workspace, "One", criteria=["It works"], commands=["true"])
    for proposal in agreement_proposals(workspace, [job]):
        agree(workspace, proposal, ADA)
    return workspace


def add_newer_terms(workspace: Workspace, chain: str) -> str:
    """Add an agreement of a later version to a chain, and return where it is."""
    path, lines = stored(workspace, chain)
    last = json.loads(lines[-1])
    agreed = next(json.loads(line) for line in lines if json.loads(line)["type"] == "agreed")
    schema = agreed["data"]["terms"]["schema"].replace("/v1", "/v2")
    terms = {**agreed["data"]["terms"], "schema": schema, "mood": {"good": True}}
    content = {
        **{name: value for name, value in agreed.items() if name != "hash"},
        "seq": last["seq"] + 1,
        "prev": last["hash"],
        "data": {"how": "agreed", "terms": terms, "hash": digest_of(terms)},
    }
    value = digest(canonical_json(content))
    line = canonical_json({**content, "hash": value})
    if path.is_dir():
        (path / entry_file_name(content["seq"], value)).write_bytes(line + b"\n")
    else:
        path.write_bytes(path.read_bytes() + line + b"\n")
    return f"{workspace.where(path)}:{last['seq'] + 1}"


def stored(workspace: Workspace, chain: str) -> tuple[Path, list[bytes]]:
    """Where a chain is, a file of a job or a folder of its parents, and its lines."""
    folder = workspace.folder / "ledger" / chain
    if folder.is_dir():
        return folder, [path.read_bytes().strip() for path in sorted(folder.iterdir())]
    path = folder.with_name(f"{chain}.jsonl")
    return path, path.read_bytes().splitlines()


@pytest.mark.parametrize("chain", ["job", "project"])
def test_terms_of_a_newer_version_close_the_gates_and_say_so(shop: Workspace, chain: str) -> None:
    job = shop.job("one")
    where = add_newer_terms(shop, job.id if chain == "job" else shop.project().id)
    facts = facts_of(shop, job)
    assert not facts.record_intact
    truth = next(gate for gate in evaluate(facts).gates if gate.gate == "truth")
    assert (str(truth.reasons[0].code), truth.reasons[0].where) == ("other_version", where)
    assert "v2" in truth.reasons[0].message
    assert [str(reason.code) for reason in truth.reasons].count("record_broken") == 0
    if chain == "job":
        assert [problem.code for problem in survey_jobs(shop).problems] == ["other_version"]
    with pytest.raises(LedgerError) as caught:
        agree(shop, agreement_proposals(shop, [job])[1 if chain == "job" else 0], ADA)
    assert "Update donewhen" in str(caught.value)


def test_a_broken_ledger_of_the_project_closes_the_gates(shop: Workspace) -> None:
    folder, _ = stored(shop, shop.project().id)
    (folder / f"00099-{'0' * 16}.json").write_bytes(b"{}\n")
    facts = facts_of(shop, shop.job("one"))
    assert (facts.chain_breaks, len(facts.project_breaks), facts.record_intact) == ((), 1, False)
    assert "record_broken" in {str(reason.code) for gate in evaluate(facts).gates for reason in gate.reasons}


# A mistake of ours is not the fault of the data.


@pytest.mark.parametrize("error", [TypeError, ValueError, KeyError, AttributeError])
def test_an_error_in_our_own_code_is_not_reported_as_invalid_data(
    shop: Workspace, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise error("ours")

    path, _ = stored(shop, shop.job("one").id)
    line = path.read_bytes()
    with monkeypatch.context() as patched, pytest.raises(error, match="ours"):
        patched.setattr(entries_module, "decode_content", fail)
        verify_chain(shop.job("one").id, line)
    with monkeypatch.context() as patched, pytest.raises(error, match="ours"):
        patched.setattr(agreement_module, "compare_terms", fail)
        agreement_proposals(shop, [shop.job("one")])


# What the version before sealed.


def test_contracts_of_the_version_before_have_the_same_hashes(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "shop", filter="data")
    workspace = Workspace(tmp_path / "shop", "small")
    sealed = 0
    for name in workspace.ledger.chains():
        for entry in workspace.ledger.read(name).entries:
            if isinstance(entry.content, Agreed):
                assert entry.content.terms is not None
                assert terms_hash(entry.content.terms) == entry.content.hash == digest_of(entry.data["terms"])
                assert plain_terms(entry.content.terms) == entry.data["terms"]
                sealed += 1
    assert sealed == 12
    policy = approval_policy(workspace)
    chain = workspace.ledger.read("WI-20260214-001")
    completed = history_of("WI-20260214-001", chain.entries, policy).completed
    assert completed is not None
    assert verify_promise(workspace, promise_of("WI-20260214-001", completed).text, policy).real
