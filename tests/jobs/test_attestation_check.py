"""An attestation that was touched anywhere does not hold, and one that holds is good only with a key that you trust."""

from __future__ import annotations

import base64
import contextlib
import copy
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from donewhen.foundation.canonical import canonical_json, digest
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.gates.evidence_status import sign_off
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, first_link
from donewhen.jobs.ledger.signing import create_key_file, key_id, open_key
from donewhen.jobs.plan.job import Job
from donewhen.jobs.receipts.attestation_check import AttestationVerdict, State, check_attestation
from donewhen.jobs.receipts.attestation_file import MAX_BYTES, AttestationFormError, read_attestation
from donewhen.jobs.receipts.attesting import attest_job
from donewhen.jobs.receipts.dsse import sign_envelope
from sentences import assert_sentences

Signer = tuple[str, Callable[[bytes], str]]
Change = Callable[[dict[str, Any]], object]
ADA = Approval(Actor("ada", "person"))


class Made(NamedTuple):
    """A job that is done, its statement, and two people with keys."""

    bench: Any
    job: Job
    statement: dict[str, Any]
    ada: Signer
    eve: Signer

    def signed(self, statement: Mapping[str, Any] | None = None, by: Signer | None = None) -> bytes:
        return sign_envelope(canonical_json(self.statement if statement is None else statement), *(by or self.ada))

    def edited(self, change: Change) -> dict[str, Any]:
        """The statement with a change, of which the chain knows nothing."""
        other = copy.deepcopy(self.statement)
        change(other)
        return other


def key(path: Path) -> Signer:
    create_key_file(path, "words")
    return open_key(path, "words")


def finished(bench: Any, title: str = "Parser") -> Job:
    job: Job = bench.job(
        title,
        criteria=[
            "It is written.\n  check: file outputs/primary.md",
            "It reads well.\n  check: manual",
            "It runs.\n  check: run true",
        ],
        commands=["true"],
    )
    bench.write(job)
    sign_off(bench.workspace, bench.read(job), "AC-2", "I read it", ADA)
    assert bench.complete(job).done
    return job


@pytest.fixture
def made(bench: Any, tmp_path: Path) -> Made:
    job = finished(bench)
    return Made(bench, job, attest_job(bench.workspace, job.id), key(tmp_path / "ada"), key(tmp_path / "eve"))


def raw(statement: Mapping[str, Any]) -> bytes:
    return json.dumps(statement).encode()


def checked(content: bytes, *keys: str, **options: Any) -> AttestationVerdict:
    return check_attestation(read_attestation(content), keys=keys, **options)


def codes(verdict: AttestationVerdict) -> set[str]:
    return {str(line.code) for line in verdict.lines if line.state == "broken"}


def states(verdict: AttestationVerdict) -> dict[str, State]:
    return {line.check: line.state for line in verdict.lines}


def resealed(chain: list[dict[str, Any]], job: str) -> None:
    """Give every entry of a chain the hash and the link that it would have, as a forger does."""
    last = first_link(job)
    for number, entry in enumerate(chain, 1):
        entry |= {"seq": number, "prev": last}
        entry["hash"] = digest(canonical_json({name: value for name, value in entry.items() if name != "hash"}))
        last = entry["hash"]


# Who vouches


def test_it_holds_with_a_key_that_is_trusted_and_with_no_other(made: Made) -> None:
    content = made.signed()
    good = checked(content, made.ada[0])
    assert (good.state, good.signed_by) == ("holds", (made.ada[0],))
    assert states(good) == {"signature": "holds", "chain": "holds", "receipt": "holds", "statement": "holds"}
    for keys in ((), (made.eve[0],)):
        other = checked(content, *keys)
        assert (other.state, other.signed_by) == ("open", ())
        assert [line.code for line in other.lines if line.code] == ["signer_unknown"]
        assert key_id(made.ada[0])[:16] in other.lines[0].told
    assert checked(content, made.eve[0], made.ada[0]).state == "holds"


def test_a_bare_statement_holds_together_and_nobody_vouches_for_it(made: Made) -> None:
    for content in (raw(made.statement), json.dumps(made.statement, indent=2).encode() + b"\n"):
        found = checked(content, made.ada[0])
        assert found.state == "open"
        assert [line.code for line in found.lines if line.code] == ["unsigned"]
        assert_sentences(found.lines[0].told)
        assert found.lines[0].next


def test_a_signature_without_a_name_of_an_unknown_key_is_told_as_that(made: Made) -> None:
    data = json.loads(made.signed())
    data["signatures"][0]["keyid"] = ""
    for keys in ((), (made.eve[0],)):
        assert_sentences(checked(raw(data), *keys).lines[0].told)


def test_a_payload_that_was_changed_after_signing_does_not_hold(made: Made) -> None:
    data = json.loads(made.signed())
    other = made.edited(lambda statement: statement["predicate"].update(title="Better"))
    data["payload"] = base64.b64encode(canonical_json(other)).decode()
    found = checked(raw(data), made.ada[0])
    assert (found.state, codes(found)) == ("broken", {"signature_wrong"})
    assert checked(raw(data), made.eve[0]).state == "open"


def test_white_space_in_a_payload_matters_to_the_signature_and_to_nothing_else(made: Made) -> None:
    spaced = json.dumps(made.statement, indent=1).encode()
    assert checked(sign_envelope(spaced, *made.ada), made.ada[0]).state == "holds"
    data = json.loads(made.signed()) | {"payload": base64.b64encode(spaced).decode()}
    assert codes(checked(raw(data), made.ada[0])) == {"signature_wrong"}


def test_of_two_signatures_a_good_one_by_a_trusted_key_is_enough(made: Made) -> None:
    data = json.loads(made.signed())
    eves = json.loads(made.signed(by=made.eve))["signatures"][0]
    bad = {**eves, "sig": data["signatures"][0]["sig"]}
    for signatures in ([eves, data["signatures"][0]], [data["signatures"][0], bad], [bad, data["signatures"][0]]):
        content = raw(data | {"signatures": signatures})
        found = checked(content, made.ada[0])
        assert (found.state, found.signed_by) == ("holds", (made.ada[0],))
        assert_sentences(found.lines[0].told)
    wrong = raw(data | {"signatures": [bad, {**bad, "keyid": key_id(made.ada[0]), "sig": eves["sig"]}]})
    assert codes(checked(wrong, made.ada[0])) == {"signature_wrong"}


def test_a_signer_whom_you_trust_can_not_make_a_false_statement_hold(made: Made) -> None:
    other = made.edited(lambda statement: statement["predicate"]["completed"].update(score=100))
    found = checked(made.signed(other), made.ada[0])
    assert (found.state, states(found)["signature"], codes(found)) == ("broken", "holds", {"predicate_wrong"})


# Every field


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, (*path, name))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))
    else:
        yield path


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for item in path:
        value = value[item]
    return value


def other_value(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1")
    return "x"


# What no chain can show, so that only a signature speaks for it.
CLAIMED = {("title",), ("project",), ("made_by", "version"), ("approvers", "ci")}


def test_an_edit_of_any_value_is_found_even_where_a_trusted_key_has_signed_it(made: Made) -> None:
    believed: set[tuple[Any, ...]] = set()
    tried = 0
    for path in leaves(made.statement):
        statement = copy.deepcopy(made.statement)
        holder = at(statement, path[:-1])
        holder[path[-1]] = other_value(holder[path[-1]])
        tried += 1
        try:
            found = checked(made.signed(statement), made.ada[0])
        except AttestationFormError:
            continue
        if found.state == "holds":
            believed.add(path[1:])
        else:
            assert found.state == "broken", path
    assert tried > 150
    ids = {("criteria", number, "id") for number in range(3)}
    assert believed == CLAIMED | ids


def test_an_edit_of_any_name_or_a_field_more_or_less_is_found(made: Made) -> None:
    tried = 0
    holders = {path[:depth] for path in leaves(made.statement) for depth in range(len(path))}
    for path in sorted(holders, key=str):
        whole = at(made.statement, path)
        names = list(whole) if isinstance(whole, dict) else list(range(len(whole)))
        for change in ("gone", "more"):
            for name in names[:1] if change == "more" else names:
                statement = copy.deepcopy(made.statement)
                holder = at(statement, path)
                if change == "gone":
                    del holder[name]
                elif isinstance(holder, dict):
                    holder["more"] = 1
                else:
                    holder.append(copy.deepcopy(holder[0]))
                tried += 1
                try:
                    found = checked(raw(statement), made.ada[0])
                except AttestationFormError:
                    continue
                assert found.state == "broken", (path, change, name)
    assert tried > 200


def test_the_order_of_criteria_is_the_plans_and_a_doubled_id_is_found(made: Made) -> None:
    turned = made.edited(lambda statement: statement["predicate"]["criteria"].reverse())
    assert checked(raw(turned)).state == "open"
    doubled = made.edited(lambda statement: statement["predicate"]["criteria"][0].update(id="AC-2"))
    assert codes(checked(raw(doubled))) == {"predicate_wrong"}


# The chain


def chain(statement: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = statement["predicate"]["chain"]
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda entries: entries.pop(),
        lambda entries: entries.pop(0),
        lambda entries: entries.pop(2),
        lambda entries: entries.clear(),
        lambda entries: entries.reverse(),
        lambda entries: entries.insert(1, entries.pop(2)),
        lambda entries: entries.append(entries[-1]),
        lambda entries: entries[1].update(at="2026-01-01T00:00:00Z"),
        lambda entries: entries[0]["by"].update(kind="agent"),
        lambda entries: entries[0].update(seq=1.0),
        lambda entries: entries[0].update(by=[]),
        lambda entries: entries[0].update(data=[]),
        lambda entries: entries[0].update(type=["agreed"]),
    ],
)
def test_a_chain_that_was_cut_or_touched_does_not_hold(made: Made, change: Callable[[list[Any]], object]) -> None:
    found = checked(made.signed(made.edited(lambda statement: change(chain(statement)))), made.ada[0])
    assert found.state == "broken"
    assert codes(found) <= {"chain_broken", "receipt_wrong"}


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"criteria": 1}, "chain_broken"),
        ({"criteria": [1]}, "chain_broken"),
        ({"schema": "donewhen/job-contract/v2", "more": {}}, "other_version"),
    ],
)
def test_terms_that_this_version_never_writes_do_not_hold(made: Made, terms: dict[str, Any], code: str) -> None:
    def forge(statement: dict[str, Any]) -> None:
        chain(statement)[0]["data"]["terms"] |= terms
        resealed(chain(statement), made.job.id)

    found = checked(made.signed(made.edited(forge)), made.ada[0])
    assert (found.state, codes(found)) == ("broken", {code})


def test_the_chain_of_another_job_does_not_fit(made: Made) -> None:
    other = finished(made.bench, "Printer")
    theirs = attest_job(made.bench.workspace, other.id)["predicate"]
    mixed = made.edited(
        lambda statement: statement["predicate"].update(chain=theirs["chain"], receipt=theirs["receipt"])
    )
    found = checked(raw(mixed))
    assert codes(found) == {"chain_broken"}
    swapped = made.edited(lambda statement: chain(statement).__setitem__(2, theirs["chain"][2]))
    assert codes(checked(raw(swapped))) == {"chain_broken"}


def test_a_forger_without_a_key_can_make_it_hold_together_and_nothing_more(made: Made) -> None:
    """The window of trust: a chain proves nothing against its only writer."""

    def forge(statement: dict[str, Any]) -> None:
        chain(statement)[-1]["data"]["score"] = 100
        resealed(chain(statement), made.job.id)
        statement["predicate"]["receipt"] = chain(statement)[-1]["hash"]
        statement["predicate"]["completed"]["score"] = 100

    found = checked(raw(made.edited(forge)), made.ada[0])
    assert found.state == "open"
    assert found.lines[0].code == "unsigned"
    by_eve = checked(made.signed(made.edited(forge), by=made.eve), made.ada[0])
    assert (by_eve.state, by_eve.lines[0].code) == ("open", "signer_unknown")


def drop(kind: str) -> Callable[[list[dict[str, Any]]], object]:
    def change(entries: list[dict[str, Any]]) -> None:
        entries[:] = [entry for entry in entries if entry["type"] != kind]

    return change


def last(entries: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = entries[-1]["data"]
    return found


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (drop("completed"), "receipt_wrong"),
        (drop("agreed"), "predicate_wrong"),
        (drop("ran"), "predicate_wrong"),
        (drop("decided"), "predicate_wrong"),
        (lambda entries: entries[0]["by"].update(kind="agent"), "predicate_wrong"),
        (lambda entries: last(entries).update(outputs={}), "predicate_wrong"),
        (lambda entries: last(entries).update(outputs={"a": "missing"}), "predicate_wrong"),
        (lambda entries: last(entries).update(terms="sha256:" + "0" * 64), "predicate_wrong"),
        (lambda entries: last(entries).update(gates={"truth": ["criterion_failed"]}), "receipt_wrong"),
        (lambda entries: last(entries).pop("score"), "receipt_wrong"),
        (lambda entries: last(entries).pop("writes"), "receipt_wrong"),
        (lambda entries: entries.append({**entries[1], "type": "invalidated"}), "receipt_wrong"),
        (lambda entries: entries.append(copy.deepcopy(entries[1])), "receipt_wrong"),
    ],
)
def test_a_chain_that_was_sealed_anew_must_still_bear_what_is_said(
    made: Made, change: Callable[[list[Any]], object], code: str
) -> None:
    def forge(statement: dict[str, Any]) -> None:
        change(chain(statement))
        resealed(chain(statement), made.job.id)
        statement["predicate"]["receipt"] = chain(statement)[-1]["hash"]

    found = checked(made.signed(made.edited(forge)), made.ada[0])
    assert states(found)["chain"] == "holds"
    assert found.state == "broken"
    assert codes(found) & {code}


@pytest.mark.parametrize(
    "change",
    [
        lambda entries: last(entries).update(outputs={"a": ["b"]}),
        lambda entries: last(entries).update(gates={"truth": 1}),
        lambda entries: entries[1]["data"].update(writes={"status": "done"}),
        lambda entries: next(entry for entry in entries if entry["type"] == "ran")["data"].update(passed="true"),
    ],
)
def test_a_chain_with_a_value_of_the_wrong_type_is_broken(made: Made, change: Callable[[list[Any]], object]) -> None:
    def forge(statement: dict[str, Any]) -> None:
        change(chain(statement))
        resealed(chain(statement), made.job.id)
        statement["predicate"]["receipt"] = chain(statement)[-1]["hash"]

    found = checked(made.signed(made.edited(forge)), made.ada[0])
    assert (states(found)["chain"], found.state) == ("broken", "broken")
    assert "chain_broken" in codes(found)


def test_a_run_that_did_not_pass_shows_nothing(made: Made) -> None:
    def forge(statement: dict[str, Any]) -> None:
        for entry in chain(statement):
            if entry["data"].get("evidence") == "true":
                entry["data"]["passed"] = False
        resealed(chain(statement), made.job.id)

    found = checked(raw(made.edited(forge)))
    assert codes(found) == {"predicate_wrong"}
    assert_sentences(next(line.told for line in found.lines if line.code == "predicate_wrong"))


def test_the_newest_run_decides(made: Made) -> None:
    def forge(statement: dict[str, Any]) -> None:
        run = next(entry for entry in chain(statement) if entry["data"].get("evidence") == "true")
        chain(statement).insert(-1, copy.deepcopy(run) | {"data": run["data"] | {"passed": False}})
        resealed(chain(statement), made.job.id)

    assert codes(checked(raw(made.edited(forge)))) == {"predicate_wrong"}


# The job and the files


def test_another_job_than_the_one_that_was_asked_for_is_found(made: Made) -> None:
    assert checked(made.signed(), made.ada[0], job=made.job.id).state == "holds"
    found = checked(made.signed(), made.ada[0], job="WI-20260214-002")
    assert (found.state, codes(found)) == ("broken", {"other_job"})


def test_files_are_compared_by_content(made: Made, tmp_path: Path) -> None:
    name = made.statement["subject"][0]["name"]
    assert checked(made.signed(), made.ada[0], files=made.bench.root).state == "holds"
    found = checked(made.signed(), made.ada[0], files=tmp_path)
    assert codes(found) == {"output_changed"}
    assert str(name) in found.lines[-1].told
    assert_sentences(found.lines[-1].told)
    (made.bench.root / name).write_text("another\n")
    found = checked(made.signed(), made.ada[0], files=made.bench.root)
    assert found.state == "broken"
    assert str(name) in found.lines[-1].told
    assert_sentences(found.lines[-1].told)
    (made.bench.root / name).unlink()
    (made.bench.root / name).mkdir()
    assert checked(made.signed(), made.ada[0], files=made.bench.root).lines[-1].told == f"{name} is folder"


def test_a_commit_is_told_as_not_looked_at(made: Made) -> None:
    made.bench.git(made.bench.root, "add", "-A")
    made.bench.git(made.bench.root, "commit", "-qm", "done")
    statement = attest_job(made.bench.workspace, made.job.id)
    found = checked(made.signed(statement), made.ada[0], files=made.bench.root)
    assert found.state == "holds"
    assert (found.lines[-1].state, "git commit" in found.lines[-1].told) == ("open", True)


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "a/../../secret", "", "a\0b", "link/secret", "."])
def test_a_name_or_a_link_that_leads_out_of_the_folder_is_not_opened(made: Made, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (tmp_path / "secret").write_text("x")
    (folder / "link").symlink_to(tmp_path)
    statement = made.edited(lambda statement: statement["subject"][0].update(name=name))
    found = checked(raw(statement), files=folder)
    assert "path_outside" in codes(found) or (name == "." and "output_changed" in codes(found))


def test_a_link_that_stays_inside_is_followed(made: Made, tmp_path: Path) -> None:
    name = made.statement["subject"][0]["name"]
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / "real.md").write_bytes((made.bench.root / name).read_bytes())
    (tmp_path / name).symlink_to(tmp_path / "real.md")
    assert checked(made.signed(), made.ada[0], files=tmp_path).state == "holds"


# The form


def test_what_is_no_attestation_is_refused_with_its_problem(made: Made) -> None:
    text = raw(made.statement)
    bare = made.edited(lambda statement: None)
    for content in (
        b"",
        b"\xef\xbb\xbf" + text,
        text.replace(b'"title": "Parser"', b'"title": "Parser", "title": "Parser"'),
        text.replace(b'"score": ', b'"score": NaN, "x": ', 1),
        b"x" * (MAX_BYTES + 1),
        b'{"a":' + b"[" * 9999 + b"]" * 9999 + b"}",
        b"{}",
        b'{"payload":1}',
        made.signed({"_type": 1}),
        sign_envelope(b"not json", *made.ada),
        raw(bare | {"_type": "https://in-toto.io/Statement/v0.1"}),
        raw(bare | {"predicateType": "https://slsa.dev/provenance/v1"}),
        raw(bare | {"predicateType": "urn:donewhen:completion:v2"}),
        raw(bare | {"predicate": []}),
        raw(bare | {"subject": {}}),
        raw(bare | {"subject": [1]}),
        raw(bare | {"subject": [{"name": 1, "digest": {}}]}),
        raw(bare | {"subject": [{"name": "a", "digest": {"md5": "0"}}]}),
        raw(bare | {"subject": [{"name": "a", "digest": {"gitCommit": "0" * 40}}]}),
        raw(bare | {"subject": [{"name": "git commit", "digest": {"gitCommit": "x"}}]}),
        raw(bare | {"subject": [{"name": "git commit", "digest": {"gitCommit": "0" * 40}}] * 2}),
        *(
            raw(bare | {"predicate": bare["predicate"] | change})
            for change in (
                {"job": "PJ-20260214-001"},
                {"job": None},
                {"project": "../x"},
                {"title": 1},
                {"approvers": {"ci": 1, "keys": []}},
                {"approvers": {"ci": True, "keys": [1]}},
                {"criteria": {}},
                {"criteria": [1]},
                {"criteria": [{"id": 1, "text": "a", "check": None}]},
                {"criteria": [{"id": "A", "text": "a", "check": "dance"}]},
                {"made_by": {}},
                {"chain": {}},
                {"chain": [1]},
            )
        ),
    ):
        with pytest.raises(AttestationFormError) as caught:
            read_attestation(content)
        assert_sentences(caught.value)
        assert (caught.value.code, caught.value.exit_code) == ("attestation_form", 2)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_byte_of_a_signed_file_can_be_changed(made: Made, data: st.DataObject) -> None:
    content = bytearray(made.signed())
    where = data.draw(st.integers(0, len(content) - 1))
    content[where] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(AttestationFormError):
        assert checked(bytes(content), made.ada[0]).state != "holds"


def test_no_bit_outside_of_the_payload_can_be_flipped(made: Made) -> None:
    whole = made.signed()
    start, end = whole.index(b'"payload":"') + 11, whole.index(b'","payloadType"')
    for where in [*range(start), *range(end, len(whole))]:
        for bit in range(8):
            content = bytearray(whole)
            content[where] ^= 1 << bit
            with contextlib.suppress(AttestationFormError):
                assert checked(bytes(content), made.ada[0]).state != "holds", (where, bit)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_value_stands_in_a_chain_nothing_breaks(made: Made, data: st.DataObject) -> None:
    """Somebody with a key of their own can seal and sign any chain; it is refused, or holds, and never raises."""
    paths = [path for path in leaves(made.statement["predicate"]["chain"]) if "data" in path]
    path = data.draw(st.sampled_from(paths))
    depth = data.draw(st.integers(2, len(path)))
    plain = st.none() | st.booleans() | st.integers() | st.text()
    value = data.draw(st.recursive(plain, lambda leaf: st.lists(leaf) | st.dictionaries(st.text(), leaf), max_leaves=5))

    def forge(statement: dict[str, Any]) -> None:
        at(chain(statement), path[: depth - 1])[path[depth - 1]] = value
        resealed(chain(statement), made.job.id)
        statement["predicate"]["receipt"] = chain(statement)[-1]["hash"]

    try:
        found = checked(canonical_json(made.edited(forge)))
    except (AttestationFormError, UnicodeEncodeError):
        return
    assert found.state in ("broken", "open")


# A contract that a key has agreed to


def test_a_key_that_agreed_to_the_contract_is_checked_by_its_own_signature(bench: Any, tmp_path: Path) -> None:
    public, sign = key(tmp_path / "agrees")
    (bench.root / "donewhen.toml").write_text(f'[approval]\nkeys = ["{public}"]\n')
    bench.agree()
    job = bench.job(agreed=False)
    by_key = Approval(Actor("release", "key"), public, sign)
    agree(bench.workspace, agreement_proposals(bench.workspace, [job])[1], by_key)
    bench.start(job)
    bench.write(job)
    assert bench.complete(job).done
    statement = attest_job(bench.workspace, job.id)
    assert statement["predicate"]["contract"]["agreed"]["by"] == {"name": "release", "kind": "key"}
    assert statement["predicate"]["approvers"] == {"ci": False, "keys": [public]}
    assert checked(raw(statement)).state == "open"
    without = copy.deepcopy(statement)
    without["predicate"]["approvers"]["keys"] = []
    assert codes(checked(raw(without))) == {"predicate_wrong"}
    forged = copy.deepcopy(statement)
    chain(forged)[0]["data"]["notes"] = "and this"
    resealed(chain(forged), job.id)
    forged["predicate"]["receipt"] = chain(forged)[-1]["hash"]
    assert codes(checked(raw(forged))) == {"predicate_wrong"}
