"""A dictionary of millions of texts in the memory of a few thousand."""

from __future__ import annotations

import gc
import resource
import sqlite3
import threading
import tracemalloc
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.foundation.disk_dict import DiskDict, DiskDictError
from sentences import assert_sentences

# Characters of every kind, and the halves of pairs that the names of files may hold.
TEXTS = st.text(st.characters(exclude_categories=())) | st.sampled_from(["", "a.jsonl:1", "\udcff.jsonl:2"])


@given(st.lists(st.tuples(TEXTS, TEXTS, st.booleans())), st.integers(0, 5))
def test_it_is_a_dictionary_however_little_is_at_hand(steps: list[tuple[str, str, bool]], at_hand: int) -> None:
    expected: dict[str, str] = {}
    with DiskDict(at_hand) as found:
        for key, text, over in steps:
            if over:
                found[key] = expected[key] = text
            else:
                assert found.first(key, text) == expected.get(key)
                expected.setdefault(key, text)
            assert found.get(key) == expected[key]
        assert {key: found.get(key) for key in expected} == expected
        assert all(found.get(f"{key} ") is None for key in expected if f"{key} " not in expected)


def test_closed_it_is_empty_and_can_be_closed_again() -> None:
    found = DiskDict(2)
    for number in range(9):
        found[str(number)] = "there"
    found.close()
    found.close()
    assert [found.get(str(number)) for number in range(9)] == [None] * 9


def test_whoever_forgets_to_close_it_leaves_nothing_open() -> None:
    """A connection that is left open is a warning, from Python 3.13 on; and a file that stays open, on any."""
    found = DiskDict(0)
    found["a"] = "b"
    connection = found._file
    assert connection is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del found
        gc.collect()
    assert caught == []
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("select 1")


def test_another_thread_may_go_on_with_it() -> None:
    with DiskDict(1) as found:
        for key in "abc":
            found[key] = key.upper()
        seen: list[str | None] = []
        thread = threading.Thread(target=lambda: seen.extend(found.first(key, "new") for key in "abcd"))
        thread.start()
        thread.join()
        assert seen == ["A", "B", "C", None]
        assert found.get("d") == "new"


def peak(count: int) -> int:
    tracemalloc.start()
    try:
        with DiskDict(1000) as found:
            for number in range(count):
                found.first(f"QC-{number}", f"a-long-name-of-a-file.jsonl:{number}")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_many_need_no_more_memory_than_some() -> None:
    peak(2000)
    # In a dictionary it would be more than 200 bytes for each.
    assert peak(40_000) - peak(4000) < 36_000 * 10


def test_a_disk_that_is_full_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    found = DiskDict(10)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(DiskDictError) as raised:
            for number in range(30):
                found[str(number)] = "x" * 4_000_000
        assert_sentences(raised.value)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        found.close()
    assert "TMPDIR" in str(raised.value)
