"""Whatever is done to a chain file shows, and whatever can be written down comes back."""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.ledger.entries import Actor, ApproverClass, EventKind, parse_entry, verify_chain
from donewhen.jobs.ledger.ledger import Ledger
from donewhen_kit import examples

QUICK = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
# Every append is flushed to the disk, which is the one thing that these tests are not about.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Noon:
    def now(self) -> datetime:
        return datetime(2026, 2, 14, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def chain_file(*data: Any) -> bytes:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        ledger = Ledger(Path(folder), Path(folder) / "locks", clock=Noon())
        for number, one in enumerate(data):
            ledger.append("WI-1", "ran", {"n": number, "value": one}, Actor("me", "person"))
        return (Path(folder) / "WI-1.jsonl").read_bytes()


CONTENT = chain_file(
    "text",
    1.5e308,
    -1.5e-308,
    {"a": [True, None, 10**20]},
    'é\u2028\U0001f600\x01"\\',
    [],
    0,
    "a\nb",
    {"type": "ran", "hash": "x"},
)
LINES = CONTENT.splitlines(keepends=True)
places = st.integers(0, len(CONTENT) - 1)
line_numbers = st.integers(0, len(LINES) - 1)


def test_the_chain_that_is_damaged_below_is_whole() -> None:
    chain = verify_chain("WI-1", CONTENT)
    assert (len(chain.entries), chain.breaks) == (9, ())
    assert len(LINES) == 9


@QUICK
@given(places, st.integers(0, 255))
@example(CONTENT.index(b"1.5e+308"), ord("9"))
@example(len(CONTENT) - 1, 0)
@example(0, 0)
def test_any_byte_that_is_changed_shows(place: int, byte: int) -> None:
    assume(CONTENT[place] != byte)
    assert verify_chain("WI-1", CONTENT[:place] + bytes([byte]) + CONTENT[place + 1 :]).breaks


def test_every_single_bit_that_is_flipped_shows() -> None:
    unseen = [
        (place, bit)
        for place in range(len(CONTENT))
        for bit in (0, 5)
        if not verify_chain(
            "WI-1", CONTENT[:place] + bytes([CONTENT[place] ^ (1 << bit)]) + CONTENT[place + 1 :]
        ).breaks
    ]
    assert unseen == []


@QUICK
@given(st.integers(0, len(CONTENT)), st.binary(min_size=1, max_size=3))
@example(len(CONTENT), b"\n")
@example(0, b"\n")
def test_anything_that_is_put_in_shows(place: int, data: bytes) -> None:
    assert verify_chain("WI-1", CONTENT[:place] + data + CONTENT[place:]).breaks


@QUICK
@given(places, st.integers(1, 400))
def test_anything_that_is_taken_out_shows_unless_it_is_whole_lines_at_the_end(place: int, length: int) -> None:
    left = CONTENT[:place] + CONTENT[place + length :]
    whole_lines_at_the_end = CONTENT.startswith(left) and (not left or left.endswith(b"\n"))
    chain = verify_chain("WI-1", left)
    assert bool(chain.breaks) is not whole_lines_at_the_end


@given(line_numbers)
def test_a_line_that_is_removed_shows_unless_it_is_the_last(number: int) -> None:
    left = LINES[:number] + LINES[number + 1 :]
    assert bool(verify_chain("WI-1", b"".join(left)).breaks) is (number < len(LINES) - 1)


@given(st.integers(0, len(LINES)))
def test_lines_cut_off_at_the_end_are_the_one_change_that_a_chain_alone_cannot_show(kept: int) -> None:
    chain = verify_chain("WI-1", b"".join(LINES[:kept]))
    assert (len(chain.entries), chain.breaks) == (kept, ())


@given(line_numbers, st.integers(0, len(LINES)))
def test_a_line_that_is_there_twice_shows(number: int, place: int) -> None:
    assert verify_chain("WI-1", b"".join([*LINES[:place], LINES[number], *LINES[place:]])).breaks


@given(line_numbers, line_numbers)
def test_two_lines_that_changed_places_show(one: int, other: int) -> None:
    assume(one != other)
    lines = list(LINES)
    lines[one], lines[other] = lines[other], lines[one]
    assert verify_chain("WI-1", b"".join(lines)).breaks


@QUICK
@given(st.binary(max_size=200) | st.lists(st.sampled_from([*LINES, b"\n", b"{}\n", b"x"]), max_size=5).map(b"".join))
def test_any_bytes_are_a_chain_or_show_where_they_are_not(content: bytes) -> None:
    chain = verify_chain("x", content)
    assert b"".join(entry.line() for entry in chain.entries) == content or chain.breaks
    assert all(1 <= one.line <= content.count(b"\n") + 1 and one.chain == "x" and one.problem for one in chain.breaks)


any_text = st.text(max_size=15)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | any_text


def collections(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3)


anything = st.recursive(leaves, collections, max_leaves=6)


@QUICK
@given(
    st.lists(st.dictionaries(any_text, anything, max_size=3), min_size=1, max_size=4),
    any_text,
    st.sampled_from(get_args(ApproverClass)),
)
@example([{"x": "\ud800"}], "me", "agent")
@example([{"\udc00": 1}], "me", "agent")
@example([{"x": "\ud83d\ude00"}], "me", "agent")
@example([{}], "\ud800", "agent")
@example([{"x": 10**4299}, {"x": -(10**4299)}, {"x": 10**4300}], "me", "key")
@example([{"x": float("nan")}, {"x": float("-inf")}, {"x": -0.0}], "me", "ci")
def test_what_is_appended_comes_back_or_is_refused_and_the_chain_stays_whole(
    given_data: list[dict[str, Any]], name: str, kind: ApproverClass
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        ledger = Ledger(Path(folder), Path(folder) / "locks", clock=Noon())
        written = []
        for data in given_data:
            try:
                written.append(ledger.append("WI-1", "evaluated", data, Actor(name, kind)))
            except DonewhenError:
                continue
            assert written[-1].data == data
        chain = ledger.read("WI-1")
    assert chain.breaks == ()
    assert list(chain.entries) == written
    assert [repr(entry.data) for entry in chain.entries] == [repr(dict(sorted_deeply(entry.data))) for entry in written]
    assert all(parse_entry(entry.line()[:-1]) == entry for entry in written)


def sorted_deeply(value: Any) -> Any:
    """As a canonical form has it: keys in order, all the way down."""
    if isinstance(value, dict):
        return {name: sorted_deeply(value[name]) for name in sorted(value)}
    return [sorted_deeply(one) for one in value] if isinstance(value, list) else value


@QUICK
@given(
    st.lists(
        st.tuples(st.sampled_from(["A", "B"]), st.sampled_from(get_args(EventKind)), st.binary(max_size=9)), max_size=8
    )
)
def test_chains_that_are_torn_again_and_again_lose_no_entry(steps: list[tuple[str, EventKind, bytes]]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        ledger = Ledger(Path(folder), Path(folder) / "locks", clock=Noon())
        written: dict[str, list[str]] = {"A": [], "B": []}
        for chain, kind, garbage in steps:
            written[chain].append(ledger.append(chain, kind, {}, Actor("me")).hash)
            with (Path(folder) / f"{chain}.jsonl").open("ab") as file:
                file.write(garbage.replace(b"\n", b""))
        for chain, hashes in written.items():
            assert [entry.hash for entry in ledger.read(chain).entries] == hashes
