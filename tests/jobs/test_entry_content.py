"""The typed content of ledger entries: what an entry may hold, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from donewhen.foundation.canonical import canonical_json, digest
from donewhen.jobs.ledger.entries import FORMAT, Actor, Entry, EventKind, first_link, verify_chain
from donewhen.jobs.ledger.entry_content import (
    CONTENTS,
    ChangesAccepted,
    ChangesRefused,
    CommandRun,
    Completed,
    Decided,
    Disputed,
    FileCheck,
    GuidanceAccepted,
    JudgeRun,
    Ran,
    Reviewed,
    SignedOff,
    TermsDecided,
    decode_content,
)
from donewhen.jobs.ledger.ledger import Ledger, LedgerError

BOT = Actor("bot")
WRONG: dict[str, tuple[EventKind, dict[str, Any]]] = {
    "writes are null": ("evaluated", {"writes": None}),
    "writes are a list": ("evaluated", {"writes": ["status"]}),
    "a written field without a pair": ("evaluated", {"writes": {"status": "done"}}),
    "half a pair": ("evaluated", {"writes": {"status": ["done"]}}),
    "three values": ("evaluated", {"writes": {"status": ["a", "b", "done"]}}),
    "adopted is a list": ("started", {"adopted": ["status"]}),
    "adopted is text": ("started", {"adopted": "done"}),
    "a signature is text": ("agreed", {"signature": "ed25519:k"}),
    "a list as key": ("agreed", {"signature": {"key": ["x"]}}),
    "terms are a list": ("agreed", {"how": "agreed", "terms": [1]}),
    "a hash is a number": ("agreed", {"hash": 3}),
    "lessons are a number": ("started", {"lessons": 3}),
    "passed is a word": ("ran", {"what": "command", "passed": "true"}),
    "passed is a number": ("ran", {"what": "judge", "passed": 1}),
    "settled is null": ("ran", {"what": "file", "settled": None}),
    "an output that is a number": ("ran", {"what": "command", "output": 7}),
    "an unknown kind of run": ("ran", {"what": "oracle"}),
    "a list as kind of run": ("ran", {"what": ["judge"]}),
    "an unknown verdict": ("ran", {"what": "judge", "verdict": "maybe"}),
    "a score that is text": ("refused", {"score": "70"}),
    "a score with a fraction": ("completed", {"score": 70.5}),
    "a score that is true": ("completed", {"score": True}),
    "gates are a list": ("completed", {"gates": []}),
    "a gate without a list": ("completed", {"gates": {"truth": 1}}),
    "an output without a hash": ("completed", {"outputs": {"a": ["b"]}}),
    "declared files are a list": ("completed", {"declared": ["data.csv"]}),
    "a judged criterion is text": ("completed", {"judged": {"AC-1": "passed"}}),
    "an unknown decision": ("decided", {"decision": "anything"}),
    "a sign-off without a criterion": ("decided", {"decision": "sign_off", "value": "It works"}),
    "a dispute of a word": ("decided", {"decision": "dispute", "value": {"criteria": "AC-1"}}),
    "a reason that is a table": ("decided", {"decision": "block", "reason": {"a": 1}}),
    "a reason of an invalidation that is null": ("invalidated", {"why": None}),
    "an issue number that is text": ("mirrored", {"number": "12"}),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger", tmp_path / "locks")


def forged(kind: str, data: dict[str, Any], *, previous: str, seq: int = 2, **more: Any) -> bytes:
    """A line that somebody wrote by hand, with the right hash."""
    content = {
        "seq": seq,
        "prev": previous,
        "type": kind,
        "at": "2026-02-14T10:00:00Z",
        "by": {"name": "ada", "kind": "person"},
        "data": data,
        **more,
    }
    return canonical_json({**content, "hash": digest(canonical_json(content))}) + b"\n"


@pytest.mark.parametrize(("kind", "data"), WRONG.values(), ids=WRONG.keys())
def test_a_value_of_the_wrong_type_is_neither_written_nor_believed(
    ledger: Ledger, tmp_path: Path, kind: EventKind, data: dict[str, Any]
) -> None:
    first = ledger.append("WI-1", "started", {}, BOT)
    with pytest.raises(LedgerError):
        ledger.append("WI-1", kind, data, BOT)
    path = tmp_path / "ledger" / "WI-1.jsonl"
    assert path.read_bytes() == first.line()
    path.write_bytes(first.line() + forged(kind, data, previous=first.hash))
    chain = ledger.read("WI-1")
    assert chain.entries == (first,)
    assert [failure.line for failure in chain.breaks] == [2]
    assert not chain.whole
    assert not chain.breaks[0].other_version


@pytest.mark.parametrize("kind", CONTENTS)
def test_every_field_has_a_default_because_older_versions_wrote_less(kind: str) -> None:
    assert decode_content(kind, {}).writes == {}


def test_fields_that_are_not_known_are_kept_in_the_data_and_do_no_harm(ledger: Ledger) -> None:
    entry = ledger.append("WI-1", "completed", {"score": 90, "extra": {"a": 1}}, BOT)
    assert ledger.read("WI-1").entries[0].data == {"score": 90, "extra": {"a": 1}}
    assert entry.read_as(Completed).score == 90


@pytest.mark.parametrize(
    ("kind", "data", "content"),
    [
        ("ran", {}, Ran),
        ("ran", {"what": "command"}, CommandRun),
        ("ran", {"what": "file"}, FileCheck),
        ("ran", {"what": "judge"}, JudgeRun),
        ("decided", {"decision": "block"}, Decided),
        ("decided", {"decision": "target", "value": 90}, TermsDecided),
        ("decided", {"decision": "sign_off", "value": {"text": "It works"}}, SignedOff),
        ("decided", {"decision": "dispute", "value": {"criteria": ["AC-1"]}}, Disputed),
        ("decided", {"decision": "accept_guidance", "value": {"step": 2}}, GuidanceAccepted),
        ("decided", {"decision": "accept_changes", "value": {"files": {"a": "b"}}}, ChangesAccepted),
        ("decided", {"decision": "refuse_changes", "value": {"files": {"a": "b"}}}, ChangesRefused),
        ("decided", {"decision": "reviewed", "value": {"verdict": "pass"}}, Reviewed),
    ],
)
def test_runs_and_decisions_have_a_type_for_each_kind(kind: str, data: dict[str, Any], content: type) -> None:
    assert type(decode_content(kind, data)) is content


def test_whoever_reads_an_entry_as_something_else_is_told() -> None:
    entry = Entry(1, "", "started", "", BOT, {}, "h")
    with pytest.raises(TypeError, match="Entry 1 is Started, not Completed"):
        entry.read_as(Completed)


def test_new_entries_name_their_format_and_old_ones_have_format_one(ledger: Ledger) -> None:
    assert ledger.append("WI-1", "started", {}, BOT).format == FORMAT == 2
    old = verify_chain("WI-1", forged("started", {}, previous=first_link("WI-1"), seq=1))
    assert [entry.format for entry in old.entries] == [1]
    assert old.breaks == ()


def test_a_line_of_a_newer_version_is_no_break_to_be_restored(ledger: Ledger, tmp_path: Path) -> None:
    first = ledger.append("WI-1", "started", {}, BOT)
    path = tmp_path / "ledger" / "WI-1.jsonl"
    newer = forged("dreamt", {"of": "sheep"}, previous=first.hash, v=FORMAT + 1, mood="good")
    path.write_bytes(first.line() + newer)
    chain = ledger.read("WI-1")
    assert (chain.entries, chain.whole) == ((first,), False)
    (failure,) = chain.breaks
    assert failure.other_version
    assert f"format {FORMAT + 1}" in failure.problem
    assert "Update donewhen" in failure.next_step
    with pytest.raises(LedgerError) as caught:
        ledger.append("WI-1", "ran", {}, BOT)
    assert "Update donewhen" in str(caught.value)
    assert path.read_bytes() == first.line() + newer


@pytest.mark.parametrize("version", [1, 0, -1, True, "2", 2.0, None])
def test_a_format_that_there_never_was_is_not_believed(version: object) -> None:
    line = forged("started", {}, previous=first_link("WI-1"), seq=1, v=version)
    assert [failure.other_version for failure in verify_chain("WI-1", line).breaks] == [False]


def test_the_first_format_is_recognised_and_not_believed() -> None:
    line = forged("started", {}, previous=None, seq=1)
    (failure,) = verify_chain("WI-1", line).breaks
    assert failure.other_version
    assert "Keep the file" in failure.next_step


def test_numbers_that_need_care_are_read_as_they_were_written(ledger: Ledger) -> None:
    data = {"a": 10**30, "b": 1e-07, "c": 1e16, "d": 0.1, "e": -0.0, "f": "é\u2028\x7f"}
    entry = ledger.append("WI-1", "started", data, BOT)
    assert ledger.read("WI-1").entries == (entry,)


def test_the_schema_of_every_kind_can_be_shown() -> None:
    for kind in CONTENTS.values():
        assert msgspec.json.schema(kind)["$ref"].endswith(kind.__name__)
