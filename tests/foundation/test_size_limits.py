"""Every file that is read as a whole has a limit, and a larger one is refused with a sentence."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from donewhen.foundation.files import (
    TooLargeError,
    read_limited,
    read_lines,
    read_regular,
    read_stream,
    read_text_limited,
)
from donewhen.foundation.size_limits import ALL_LIMITS, SizeLimit, size_text
from sentences import assert_sentences

TEN = SizeLimit("a note", 10, "write less")


def test_a_file_of_the_limit_is_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "note"
    path.write_bytes(b"0123456789")
    assert read_limited(path, TEN) == read_regular(path, TEN) == b"0123456789"
    path.write_bytes(b"0123456789a")
    for read in (read_limited, read_regular):
        with pytest.raises(TooLargeError) as caught:
            read(path, TEN)
        assert (caught.value.errno, caught.value.filename, caught.value.limit) == (errno.EFBIG, str(path), TEN)
        assert "11 bytes" in str(caught.value.strerror)
        assert_sentences(str(caught.value.strerror))


def test_a_stream_without_a_size_is_not_read_further_than_its_limit() -> None:
    assert read_stream(io.BytesIO(b"0123456789"), TEN, "standard input") == b"0123456789"
    endless = subprocess.Popen([sys.executable, "-c", "while True: print('x' * 9999)"], stdout=subprocess.PIPE)
    assert endless.stdout is not None
    with endless:
        with pytest.raises(TooLargeError) as caught:
            read_stream(endless.stdout, TEN, "standard input")
        endless.kill()
    assert_sentences(str(caught.value.strerror))


def test_a_file_that_says_it_is_empty_is_read_all_the_same() -> None:
    path = Path("/proc/self/stat")
    if not path.exists():
        pytest.skip("files without a size are a matter of Linux")
    assert path.stat().st_size == 0
    assert read_limited(path, SizeLimit("a process", 10_000, "")).startswith(str(os.getpid()).encode())


def test_lines_are_limited_one_by_one() -> None:
    assert list(read_lines(io.BytesIO(b"012345678\nabc\n\nd"), TEN, "x")) == [b"012345678\n", b"abc\n", b"\n", b"d"]
    lines = read_lines(io.BytesIO(b"abc\n0123456789\n"), TEN, "tickets.jsonl")
    assert next(lines) == b"abc\n"
    with pytest.raises(TooLargeError) as caught:
        next(lines)
    assert caught.value.filename == "tickets.jsonl:2"


def test_a_text_has_newlines_only_as_a_text_of_python(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("a\r\nb\rc\nü".encode())
    assert read_text_limited(path, TEN) == path.read_text(encoding="utf-8") == "a\nb\nc\nü"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KB"),
        (1 << 20, "1 MB"),
        (54_945_382, "52.4 MB"),
        (5 << 29, "2.5 GB"),
    ],
)
def test_a_size_is_said_in_the_largest_unit(size: int, text: str) -> None:
    assert size_text(size) == text


def test_every_limit_is_named_once_and_says_what_to_do() -> None:
    assert len({limit.what for limit in ALL_LIMITS}) == len(ALL_LIMITS)
    assert all(limit.advice and limit.bytes > 0 for limit in ALL_LIMITS)
