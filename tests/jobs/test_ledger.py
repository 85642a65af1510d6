"""The ledger: append-only chains, each line sealed to the one before it."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

import donewhen.jobs.ledger.entries as entries_module
import donewhen.jobs.ledger.ledger as ledger_module
from donewhen.foundation.canonical import canonical_json, digest
from donewhen.foundation.locks import LockedError, locked
from donewhen.jobs.ledger.entries import (
    Actor,
    ApproverClass,
    Break,
    Chain,
    Entry,
    EventKind,
    first_link,
    parse_entry,
    verify_chain,
)
from donewhen.jobs.ledger.ledger import Ledger, LedgerError
from sentences import assert_sentences

ME = Actor("me", "person")


class Noon:
    def now(self) -> datetime:
        return datetime(2026, 2, 14, 12, 0, 0, 999_999, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger", tmp_path / "state", clock=Noon())


def path_of(tmp_path: Path, chain: str = "WI-1") -> Path:
    return tmp_path / "ledger" / f"{chain}.jsonl"


def three(ledger: Ledger) -> list[Entry]:
    return [ledger.append("WI-1", "ran", {"n": n}, ME) for n in (1, 2, 3)]


def line_with(**changes: Any) -> bytes:
    """A line that is sealed rightly, whatever it says."""
    content = {
        "seq": 1,
        "prev": first_link("WI-1"),
        "type": "ran",
        "at": "2026-02-14T12:00:00Z",
        "by": {"name": "me", "kind": "agent"},
        "data": {},
    }
    content |= changes
    return canonical_json({**content, "hash": digest(canonical_json(content))})


def test_a_chain_that_nobody_wrote_is_empty(ledger: Ledger, tmp_path: Path) -> None:
    assert ledger.read("WI-1") == Chain((), ())
    assert ledger.read("WI-1").head is None
    assert ledger.chains() == ()
    assert not (tmp_path / "ledger").exists()


def test_an_entry_says_what_happened_when_by_whom_and_after_what(ledger: Ledger, tmp_path: Path) -> None:
    first = ledger.append("WI-1", "started", {"b": 1, "a": "é"}, Actor("robot"))
    second = ledger.append("WI-1", "completed", {}, ME)
    assert first == Entry(
        1,
        first_link("WI-1"),
        "started",
        "2026-02-14T12:00:00Z",
        Actor("robot", "agent"),
        {"b": 1, "a": "é"},
        first.hash,
    )
    assert (second.seq, second.prev, second.by) == (2, first.hash, Actor("me", "person"))
    assert path_of(tmp_path).read_bytes() == first.line() + second.line()
    content = b'{"at":"2026-02-14T12:00:00Z","by":{"kind":"agent","name":"robot"},"data":{"a":"\xc3\xa9","b":1},'
    link = digest(b"donewhen chain WI-1").encode()
    sealed = content + b'"prev":"' + link + b'","seq":1,"type":"started","v":2}'
    assert first.hash == digest(sealed)
    assert (
        first.line()
        == content + b'"hash":"' + first.hash.encode() + b'","prev":"' + link + b'","seq":1,"type":"started","v":2}\n'
    )


def test_what_was_appended_is_read_back_verified(ledger: Ledger) -> None:
    entries = three(ledger)
    chain = ledger.read("WI-1")
    assert chain == Chain(tuple(entries), ())
    assert chain.head == ledger.head("WI-1") == entries[-1].hash
    assert ledger.head("WI-2") is None


def test_chains_do_not_know_each_other(ledger: Ledger) -> None:
    three(ledger)
    other = ledger.append("PJ-1", "agreed", {}, ME)
    assert (other.seq, other.prev) == (1, first_link("PJ-1"))
    assert ledger.chains() == ("PJ-1", "WI-1")
    assert len(ledger.read("WI-1").entries) == 3


def test_the_latest_entry_of_some_kinds_is_found(ledger: Ledger) -> None:
    entries = [
        ledger.append("WI-1", kind, {"n": n}, ME) for n, kind in enumerate(("started", "ran", "evaluated", "ran"))
    ]
    chain = ledger.read("WI-1")
    assert chain.latest("ran") == entries[3]
    assert chain.latest("started", "evaluated") == entries[2]
    assert chain.latest("completed") is None
    assert chain.latest() is None


@pytest.mark.parametrize("kind", get_args(EventKind))
def test_every_kind_of_event_can_be_appended(ledger: Ledger, kind: EventKind) -> None:
    ledger.append("WI-1", kind, {}, ME)
    assert [entry.type for entry in ledger.read("WI-1").entries] == [kind]


def test_the_kinds_of_events_and_of_approvers_are_closed_sets() -> None:
    assert get_args(EventKind) == (
        "agreed", "started", "ran", "evaluated", "decided", "completed", "refused", "invalidated", "overridden",
        "unverified", "lesson", "mirrored",
    )  # fmt: skip
    assert get_args(ApproverClass) == ("person", "key", "ci", "agent")


def test_an_unknown_kind_is_refused_and_nothing_is_written(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as caught:
        ledger.append("WI-1", "invented", {}, ME)  # type: ignore[arg-type]
    assert_sentences(caught.value)
    assert not path_of(tmp_path).exists()


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", ".hidden", "-a", "a b", "a\n", "é", "a" * 101, "a\x00"])
def test_a_name_that_could_leave_the_folder_cannot_name_a_chain(ledger: Ledger, name: str) -> None:
    with pytest.raises(LedgerError) as caught:
        ledger.append(name, "ran", {}, ME)
    assert_sentences(caught.value)
    assert caught.value.code == "ledger"
    with pytest.raises(LedgerError) as caught:
        ledger.read(name)
    assert_sentences(caught.value)


@pytest.mark.parametrize("name", ["a", "WI-20260214-1000", "a.b_c-d", "a.jsonl", "a" * 100])
def test_ids_name_chains(ledger: Ledger, name: str) -> None:
    ledger.append(name, "ran", {}, ME)
    assert ledger.chains() == (name,)
    assert len(ledger.read(name).entries) == 1


def test_every_chain_that_is_listed_can_be_read(ledger: Ledger, tmp_path: Path) -> None:
    three(ledger)
    for name in (".hidden.jsonl", "a b.jsonl", "notes.txt", "WI-2.torn"):
        (tmp_path / "ledger" / name).write_bytes(b"x\n")
    assert [len(ledger.read(name).entries) for name in ledger.chains()] == [3]


def test_appending_waits_for_the_lock_of_its_chain_only(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "locked", lambda path: locked(path, wait=0))
    with locked(tmp_path / "state" / "ledger-WI-1.lock"):
        ledger.append("WI-2", "ran", {}, ME)
        with pytest.raises(LockedError):
            ledger.append("WI-1", "ran", {}, ME)
    assert ledger.chains() == ("WI-2",)


@pytest.mark.parametrize("size", [1, 8000, 8191, 8192, 8193, 40_000])
def test_an_entry_of_any_length_is_followed(ledger: Ledger, size: int) -> None:
    for letter in "abc":
        ledger.append("WI-1", "ran", {"text": letter * size}, ME)
    chain = ledger.read("WI-1")
    assert chain.breaks == ()
    assert [entry.data["text"][0] for entry in chain.entries] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "tail", [b"{", b'{"at":"2026', b"\x00\x00", b"x" * 20_000, b"\xff"], ids=["brace", "half", "zeros", "long", "byte"]
)
@pytest.mark.parametrize("before", [0, 2])
def test_a_torn_last_line_is_shown_then_set_aside_and_the_chain_goes_on(
    ledger: Ledger, tmp_path: Path, tail: bytes, before: int
) -> None:
    entries = [ledger.append("WI-1", "ran", {"n": n}, ME) for n in range(before)]
    path = path_of(tmp_path)
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.write(tail)
    torn = ledger.read("WI-1")
    assert torn.entries == tuple(entries)
    assert torn.breaks == (
        Break("WI-1", before + 1, "the last line is incomplete; the next event moves it to a .torn file"),
    )
    assert torn.breaks[0].torn
    entries.append(ledger.append("WI-1", "ran", {"n": "after"}, ME))
    assert ledger.read("WI-1") == Chain(tuple(entries), ())
    assert path.with_suffix(".torn").read_bytes() == tail + b"\n"


def test_what_was_set_aside_before_is_kept(ledger: Ledger, tmp_path: Path) -> None:
    for tail in (b"one", b"two"):
        ledger.append("WI-1", "ran", {}, ME)
        with path_of(tmp_path).open("ab") as file:
            file.write(tail)
    ledger.append("WI-1", "ran", {}, ME)
    assert path_of(tmp_path).with_suffix(".torn").read_bytes() == b"one\ntwo\n"
    assert len(ledger.read("WI-1").entries) == 3


@pytest.mark.parametrize("last", [b"garbage\n", b"\n", b"\n\n", b"{}\n"], ids=["garbage", "blank", "blanks", "empty"])
def test_nothing_is_appended_after_a_broken_last_line(ledger: Ledger, tmp_path: Path, last: bytes) -> None:
    three(ledger)
    path = path_of(tmp_path)
    before = path.read_bytes() + last
    path.write_bytes(before)
    with pytest.raises(LedgerError) as caught:
        ledger.append("WI-1", "ran", {}, ME)
    assert_sentences(caught.value)
    assert caught.value.where == str(path)
    assert "donewhen audit" in (caught.value.next_step or "")
    assert path.read_bytes() == before


def test_a_changed_entry_is_shown_with_its_line(ledger: Ledger, tmp_path: Path) -> None:
    entries = three(ledger)
    path = path_of(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'{"n":2}', b'{"n":7}'))
    assert ledger.read("WI-1") == Chain(
        (entries[0], entries[2]),
        (
            Break("WI-1", 2, "the entry was changed after it was written"),
            Break("WI-1", 3, "its hash link does not match the line before it"),
        ),
    )


def test_a_removed_entry_is_shown(ledger: Ledger) -> None:
    lines = [entry.line() for entry in three(ledger)]
    assert not any(failure.torn for failure in verify_chain("WI-1", lines[0] + lines[2]).breaks)
    assert verify_chain("WI-1", lines[0] + lines[2]).breaks == (
        Break("WI-1", 2, "expected sequence number 2, found 3"),
        Break("WI-1", 2, "its hash link does not match the line before it"),
    )
    assert [failure.line for failure in verify_chain("WI-1", lines[1] + lines[2]).breaks] == [1, 1, 2]


def test_a_line_that_starts_another_chain_does_not_follow(ledger: Ledger) -> None:
    lines = [entry.line() for entry in three(ledger)]
    foreign = line_with(seq=2, prev="sha256:" + "0" * 64) + b"\n"
    assert verify_chain("WI-1", lines[0] + foreign).breaks == (
        Break("WI-1", 2, "its hash link does not match the line before it"),
    )
    assert verify_chain("WI-1", line_with(prev="sha256:0") + b"\n").breaks == (
        Break("WI-1", 1, "its hash link does not match the line before it"),
    )


NOT_JSON = "the line is not JSON"
OTHER_FIELDS = "the line does not have the fields of an entry"
NOBODY = "the line does not name an actor"
IMPOSSIBLE = "the line has a value of the wrong type, or an unknown event or actor kind"
CHANGED = "the entry was changed after it was written"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", NOT_JSON), (b"x", NOT_JSON), (b"\xff", NOT_JSON), (b'{"a":', NOT_JSON), (b"[]", OTHER_FIELDS),
        (b"null", OTHER_FIELDS), (b"{}", OTHER_FIELDS),
        (b'"seq"', OTHER_FIELDS), (line_with(extra=1), OTHER_FIELDS), (line_with(by={"name": "x"}), NOBODY),
        (line_with(by="x"), NOBODY), (line_with(by=None), NOBODY),
        (line_with(by=[]), NOBODY), (line_with(seq="1"), IMPOSSIBLE), (line_with(seq=1.0), IMPOSSIBLE),
        (line_with(seq=True), IMPOSSIBLE), (line_with(type="x"), IMPOSSIBLE),
        (line_with(by={"name": "x", "kind": "king"}), IMPOSSIBLE),
        (line_with(by={"name": "x", "kind": []}), IMPOSSIBLE), (line_with(by={"name": 5, "kind": "ci"}), CHANGED),
        (line_with(by={"name": "x", "kind": "ci", "as": "y"}), CHANGED), (b" " + line_with(), CHANGED),
        (line_with() + b" ", CHANGED),
        (line_with().replace(b'"seq":1', b'"seq":2'), CHANGED), (json.dumps(json.loads(line_with())).encode(), CHANGED),
        (line_with().replace(b"sha256:", b"sha257:"), CHANGED),
    ],
)  # fmt: skip
def test_a_line_that_is_no_entry_says_what_is_wrong(line: bytes, problem: str) -> None:
    assert parse_entry(line) == problem


@pytest.mark.parametrize(
    "line",
    [
        line_with(at=5), line_with(at=None), line_with(at={}), line_with(at=[1]),
        line_with(data={"adopted": {"iteration": "many"}}), line_with(data={"adopted": {"status": 5}}),
        line_with(data={"writes": {"iteration": [0, {"x": [1]}]}}),
        line_with(type=[]), line_with(type={}), line_with(data=[]), line_with(data=5), line_with(data=None),
        line_with(data="ab"), line_with(data=[1]), line_with(data=True),
        line_with(data={"x": 1}).replace(b'{"x":1}', b'{"x":NaN}'),
        line_with(data={"x": 1}).replace(b'{"x":1}', b'{"x":-Infinity}'),
        line_with(data={"x": 1}).replace(b'{"x":1}', b'{"x":1e999}'),
        line_with(data={"x": 1}).replace(b'{"x":1}', b'{"x":"\\ud800"}'),
        line_with(data={"x": 1}).replace(b'{"x":1}', b"[" * 100_000),
        line_with(data={"x": 1}).replace(b'{"x":1}', b'{"x":' * 100_000 + b"}" * 100_000),
        line_with(data={"x": 1}).replace(b'{"x":1}', b'{"x":' + b"9" * 5000 + b"}"), b"[" * 100_000, line_with(prev=[]),
        line_with(hash="x"),
    ],
    ids=lambda line: line[:90].decode() if isinstance(line, bytes) else None,
)  # fmt: skip
def test_no_line_however_odd_stops_the_reading_of_a_chain(line: bytes, ledger: Ledger) -> None:
    lines = [entry.line() for entry in three(ledger)]
    chain = verify_chain("WI-1", lines[0] + line + b"\n" + lines[1])
    assert 2 in {failure.line for failure in chain.breaks}
    assert chain.entries[0].line() == lines[0]


@pytest.mark.parametrize(
    "data",
    [{"x": float("nan")}, {"x": float("inf")}, {"x": "\ud800"},
     {"\udfff": 1}, {"x": {1, 2}}, {"x": b"y"}, {1: 2, "a": 3}, {"x": 10**5000}],
    ids=["nan", "inf", "surrogate", "surrogate key", "set", "bytes", "mixed keys", "huge"],
)  # fmt: skip
def test_data_that_has_no_form_is_refused_and_the_chain_is_as_before(
    ledger: Ledger, tmp_path: Path, data: dict[Any, Any]
) -> None:
    three(ledger)
    before = path_of(tmp_path).read_bytes()
    with pytest.raises(LedgerError):
        ledger.append("WI-1", "ran", data, ME)
    assert path_of(tmp_path).read_bytes() == before
    with pytest.raises(LedgerError):
        ledger.append("WI-new", "ran", data, ME)
    assert ledger.read("WI-new") == Chain((), ())


def test_data_nested_beyond_what_can_be_read_again_is_refused(ledger: Ledger) -> None:
    three(ledger)
    data: Any = {}
    for _ in range(100_000):
        data = {"x": data}
    with pytest.raises(LedgerError):
        ledger.append("WI-1", "ran", data, ME)
    assert len(ledger.read("WI-1").entries) == 3
    while data:
        data = data["x"]


def test_an_actor_that_cannot_be_written_down_is_refused(ledger: Ledger) -> None:
    for by in (Actor("\ud800"), Actor("x", "king")):  # type: ignore[arg-type]
        with pytest.raises(LedgerError):
            ledger.append("WI-1", "ran", {}, by)
    assert ledger.read("WI-1") == Chain((), ())


class Disk:
    """Writes as the operating system may: a few bytes at a time, until there is no more room."""

    def __init__(self, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = room
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, descriptor: int, data: bytes) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        written = self._write(descriptor, data[: min(7, self.room)])
        self.room -= written
        return written


def test_an_entry_written_in_pieces_is_whole(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    Disk(100_000, monkeypatch)
    entries = three(ledger)
    assert ledger.read("WI-1") == Chain(tuple(entries), ())


@pytest.mark.parametrize("room", [0, 1, 100])
def test_a_full_disk_leaves_the_chain_as_it_was(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    three(ledger)
    before = path_of(tmp_path).read_bytes()
    disk = Disk(room, monkeypatch)
    with pytest.raises(OSError) as caught:
        ledger.append("WI-1", "ran", {}, ME)
    assert_sentences(caught.value)
    assert path_of(tmp_path).read_bytes() == before
    disk.room = 100_000
    assert ledger.append("WI-1", "ran", {}, ME).seq == 4


def test_an_entry_that_did_not_reach_the_disk_is_taken_back(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(ledger)
    before = path_of(tmp_path).read_bytes()

    def broken(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="Input/output"):
        patch.setattr(os, "fsync", broken)
        ledger.append("WI-1", "ran", {}, ME)
    assert path_of(tmp_path).read_bytes() == before


def test_every_entry_is_flushed_and_the_folder_after_the_first(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: flushed.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
    )
    if not Path("/proc/self/fd").exists():
        pytest.skip("the names of open files are only to be had on Linux")
    three(ledger)
    path = path_of(tmp_path)
    assert flushed == [path, path.parent, path, path]


def test_no_descriptor_is_left_over(ledger: Ledger, tmp_path: Path) -> None:
    three(ledger)
    before = len(os.listdir("/dev/fd"))
    three(ledger)
    path_of(tmp_path).write_bytes(b"x\n")
    with pytest.raises(LedgerError):
        three(ledger)
    assert len(os.listdir("/dev/fd")) == before


def test_the_cost_of_an_append_does_not_grow_with_the_chain(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read.append(size) or original(fd, size, at))
    for _ in range(200):
        ledger.append("WI-1", "ran", {}, ME)
    assert max(read) <= 8192
    assert len(read) <= 200


def test_a_chain_can_not_stand_in_for_another(ledger: Ledger, tmp_path: Path) -> None:
    three(ledger)
    (tmp_path / "ledger" / "WI-2.jsonl").write_bytes((tmp_path / "ledger" / "WI-1.jsonl").read_bytes())
    assert ledger.read("WI-1").breaks == ()
    assert ledger.read("WI-2").breaks == (Break("WI-2", 1, "its hash link does not match the line before it"),)


def test_a_chain_is_verified_once_and_then_only_its_new_lines(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bytes] = []
    parse = entries_module.parse_entry

    def counted(line: bytes) -> Entry | str:
        parsed.append(line)
        return parse(line)

    entries = three(ledger)
    monkeypatch.setattr(entries_module, "parse_entry", counted)
    assert [ledger.read("WI-1").entries for _ in range(3)] == [tuple(entries)] * 3
    assert len(parsed) == 3
    entries.append(ledger.append("WI-1", "ran", {}, ME))
    parsed.clear()
    assert ledger.read("WI-1") == Chain(tuple(entries), ())
    assert len(parsed) == 1


def test_whatever_is_changed_is_verified_again(ledger: Ledger, tmp_path: Path) -> None:
    entries = three(ledger)
    path = path_of(tmp_path)
    before, status = path.read_bytes(), path.stat()
    assert ledger.read("WI-1").breaks == ()
    # The same length and the same times.
    path.write_bytes(before.replace(b'{"n":2}', b'{"n":7}'))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert [failure.line for failure in ledger.read("WI-1").breaks] == [2, 3]
    path.write_bytes(entries[0].line())
    assert ledger.read("WI-1").entries == (entries[0],)
    path.write_bytes(before + b"{")
    assert [failure.torn for failure in ledger.read("WI-1").breaks] == [True]
    path.write_bytes(before)
    assert ledger.read("WI-1") == Chain(tuple(entries), ())


def test_a_break_in_new_lines_has_the_number_of_its_line(ledger: Ledger, tmp_path: Path) -> None:
    three(ledger)
    assert ledger.read("WI-1").breaks == ()
    with path_of(tmp_path).open("ab") as file:
        file.write(b"x\n{}\n")
    assert [(failure.line, failure.torn) for failure in ledger.read("WI-1").breaks] == [(4, False), (5, False)]


def test_two_ledgers_do_not_take_each_others_chains_for_verified(tmp_path: Path) -> None:
    one, two = (Ledger(tmp_path / name, tmp_path / "locks" / name) for name in "ab")
    one.append("WI-1", "started", {}, ME)
    assert (len(one.read("WI-1").entries), len(two.read("WI-1").entries)) == (1, 0)
