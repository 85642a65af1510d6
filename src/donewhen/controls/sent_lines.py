"""What a test run has told the gate while it ran, line by line."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal

Must = Literal["fail", "pass"]
StreamedOutcome = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class SentLines:
    """What a test run has said about itself."""

    started: str = ""
    """The test runner; empty if none has connected."""
    controls: Mapping[str, Must] = field(default_factory=dict)
    control_outcomes: Mapping[str, StreamedOutcome] = field(default_factory=dict)
    tests: Mapping[str, StreamedOutcome] = field(default_factory=dict)
    """The outcomes of the project's tests, each as it was when the test had ended."""
    turned: tuple[str, ...] = ()
    """Tests that failed, and were reported as passed."""
    without: tuple[str, ...] = ()
    """Why there are no controls, or fewer."""
    exit_status: int | None = None
    """The exit status with which the runner wanted to end; None if it did not get that far."""
    ended_in: tuple[str, ...] = ()
    """For a script that something has ended: the files that were running then, without the script itself."""
    foreign: bool = False
    """Whether something else was written to the stream."""

    def count(self, outcome: StreamedOutcome) -> int:
        return sum(found == outcome for found in self.tests.values())


def process_key(secret: bytes, number: int) -> bytes:
    """The key of one of many processes: its number, and what it seals its lines with besides."""
    return number.to_bytes(4, "big") + hmac.digest(secret, b"%d" % number, "sha256")[:28]


def read_lines(content: bytes, key: bytes) -> SentLines:
    """Read what one process sent; a line that is not sealed with the key, or is out of order, is foreign."""
    return _read(_fields(content, key))


def read_lines_of_processes(content: bytes, secret: bytes) -> SentLines:
    """Read what several processes sent, each of which has taken a key; the names of tests are those of a process."""
    return _read(_fields_of_processes(content, secret))


def _read(sent: Iterable[tuple[str, ...]]) -> SentLines:
    controls: dict[str, Must] = {}
    control_outcomes: dict[str, StreamedOutcome] = {}
    tests: dict[str, StreamedOutcome] = {}
    turned: dict[str, None] = {}
    without: list[str] = []
    started, exit_status, foreign = "", None, False
    ended_in: tuple[str, ...] = ()
    for fields in sent:
        match fields:
            case ("start", runner):
                started = runner
            case ("control", name, "fail" | "pass" as must):
                controls[name] = must
            case ("ended", name, when, outcome):
                _note(control_outcomes, name, when, outcome)
            case ("test", name, when, outcome):
                _note(tests, name, when, outcome)
            case ("passed", *names):
                for name in names:
                    _note(tests, name, "call", "passed")
            case ("turned", name):
                turned[name] = None
            case ("none", reason):
                without.append(reason)
            case ("script", *files):
                ended_in = tuple(files)
            case ("file", _):
                pass
            case ("end", status) if status.lstrip("-").isdecimal():
                # Of several processes, one that failed counts.
                exit_status = exit_status or int(status)
            case _:
                foreign = True
    return SentLines(
        started, controls, control_outcomes, tests, tuple(turned), tuple(without), exit_status, ended_in, foreign
    )


def _note(outcomes: dict[str, StreamedOutcome], name: str, when: str, outcome: str) -> None:
    """Count a test by what matters: a later failure takes back that it passed, and another try takes back a failure."""
    if outcome == "failed":
        outcomes[name] = "failed"
    elif outcome == "skipped":
        outcomes[name] = "skipped"
    elif outcome == "rerun":
        outcomes.pop(name, None)
    elif when == "call":
        outcomes[name] = "passed"


def _fields(content: bytes, key: bytes) -> Iterator[tuple[str, ...]]:
    *lines, rest = content.split(b"\n")
    # A line that was cut off by the end of the process is none.
    for expected, line in enumerate(lines):
        sealed, _, seal = line.rpartition(b" ")
        good = blake2b(sealed, key=key, digest_size=8).hexdigest().encode()
        number, _, text = sealed.partition(b" ")
        if not hmac.compare_digest(seal, good) or number != b"%d" % expected:
            yield ("foreign",)
            return
        yield tuple(bytes.fromhex(text.decode("ascii")).decode("utf-8", "replace").split("\0"))
    if rest and len(rest) > _LONGEST_CUT:
        yield ("foreign",)


def _fields_of_processes(content: bytes, secret: bytes) -> Iterator[tuple[str, ...]]:
    *lines, _ = content.split(b"\n")
    expected: dict[int, int] = {}
    keys: dict[int, bytes] = {}
    for line in lines:
        sealed, _, seal = line.rpartition(b" ")
        process, number, text = (*sealed.split(b" ", 2), b"", b"")[:3]
        if not process.isdigit() or int(process) >= 1 << 32:
            yield ("foreign",)
            return
        key = keys.setdefault(int(process), process_key(secret, int(process)))
        # What each language has.
        good = (hmac.new(key, sealed, "sha256").hexdigest()[:16], blake2b(sealed, key=key, digest_size=8).hexdigest())
        if not any(hmac.compare_digest(seal, found.encode()) for found in good) or number != b"%d" % expected.get(
            int(process), 0
        ):
            yield ("foreign",)
            return
        expected[int(process)] = int(number) + 1
        what, *fields = bytes.fromhex(text.decode("ascii")).decode("utf-8", "replace").split("\0")
        if what in _NAMED:
            fields[0] = f"{int(process)}/{fields[0]}"
        elif what == "passed":
            fields = [f"{int(process)}/{name}" for name in fields]
        yield (what, *fields)


_NAMED = ("control", "ended", "test")
"""Lines that begin with the name of a test."""
_LONGEST_CUT = 1 << 20
