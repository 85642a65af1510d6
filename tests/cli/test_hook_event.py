"""Reading the event of a hook: it ends when it is complete, not when the runtime closes the stream."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from donewhen.cli._hook_event import read_event
from donewhen.foundation import size_limits

HANG_GUARD = 100.0


def read(*pieces: bytes, close: bool) -> bytes:
    """What is read of a pipe into which these pieces are written."""
    reading, writing = os.pipe()

    def write() -> None:
        for piece in pieces:
            os.write(writing, piece)
        if close:
            os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with os.fdopen(reading, "rb") as stream:
            return read_event(stream)
    finally:
        writer.join()
        if not close:
            os.close(writing)


@pytest.mark.parametrize("event", [{}, {"a": "}"}, {"a": {"b": [1]}}, {"text": "x" * 300_000}], ids=len)
@pytest.mark.parametrize("end", [b"", b"\n", b" \n\n"], ids=repr)
def test_a_complete_event_is_enough(event: dict[str, object], end: bytes) -> None:
    raw = json.dumps(event).encode() + end
    for close in (True, False):
        assert json.loads(read(raw, close=close)) == event


def test_an_event_in_pieces_is_put_together() -> None:
    pieces = (b'{"a": {"b": 1}', b', "c": {}', b"}")
    assert json.loads(read(*pieces, close=False)) == {"a": {"b": 1}, "c": {}}


@pytest.mark.parametrize("raw", [b"", b'{"a": ', b"no json", b"[1]", b"\xff}"])
def test_what_is_not_complete_is_read_to_the_end(raw: bytes) -> None:
    assert read(raw, close=True) == raw


@pytest.mark.parametrize("raw", ["", '{"a": ', "[1]", "{}}"])
def test_what_never_becomes_complete_is_not_waited_for_without_end(tmp_path: Path, raw: str) -> None:
    (tmp_path / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    hurried = (
        "import sys; import donewhen.cli.hook as h; h.EVENT = 0.5; sys.exit(h.main(['stop', '--runtime', 'codex']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hurried], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(raw)
        process.stdin.flush()
        assert process.wait(HANG_GUARD) == 0
        assert "no event" in json.loads(process.stdout.read())["reason"]


def test_a_larger_event_than_allowed_is_cut_and_no_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_limits, "HOOK_EVENT", size_limits.HOOK_EVENT._replace(bytes=1000))
    content = read(json.dumps({"a": "x" * 5000}).encode(), close=True)
    assert len(content) < 1100
    assert b"cut: more than" in content


def test_the_real_hook_answers_while_the_stream_is_open(tmp_path: Path) -> None:
    (tmp_path / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    with subprocess.Popen(
        [sys.executable, "-m", "donewhen", "hook", "stop", "--runtime", "codex"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"session_id": "s", "cwd": str(tmp_path)}))
        process.stdin.flush()
        assert process.wait(HANG_GUARD) == 0
        assert json.loads(process.stdout.read())["decision"] == "block"
