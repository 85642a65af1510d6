"""What a run sends is sealed line by line."""

from __future__ import annotations

import hmac
import os
import subprocess
import sys
from hashlib import blake2b

from donewhen.controls.channel import control_channel
from donewhen.controls.sent_lines import process_key, read_lines, read_lines_of_processes

KEY = b"k" * 32


def line(number: int, *fields: str, key: bytes = KEY) -> bytes:
    sealed = b"%d %s" % (number, "\0".join(fields).encode().hex().encode())
    return sealed + b" " + blake2b(sealed, key=key, digest_size=8).hexdigest().encode() + b"\n"


def test_a_test_counts_by_what_happened_last_to_it() -> None:
    content = b"".join(
        (
            line(0, "start", "pytest 8"),
            line(1, "test", "passes", "call", "passed"),
            line(2, "test", "breaks later", "call", "passed"),
            line(3, "test", "breaks later", "teardown", "failed"),
            line(4, "test", "again", "call", "rerun"),
            line(5, "test", "again", "call", "passed"),
            line(6, "test", "left out", "setup", "skipped"),
            line(7, "end", "1"),
        )
    )
    found = read_lines(content, KEY)
    assert found.tests == {"passes": "passed", "breaks later": "failed", "again": "passed", "left out": "skipped"}
    assert (found.started, found.exit_status, found.foreign) == ("pytest 8", 1, False)


def test_tests_that_passed_may_be_sent_together() -> None:
    content = b"".join(
        (line(0, "start", "unittest"), line(1, "passed", "a", "b"), line(2, "test", "b", "call", "failed"))
    )
    assert read_lines(content, KEY).tests == {"a": "passed", "b": "failed"}
    together = line_of(3, 0, "start", "unittest") + line_of(3, 1, "passed", "a", "b")
    assert read_lines_of_processes(together, KEY).tests == {"3/a": "passed", "3/b": "passed"}


def test_what_others_write_is_foreign() -> None:
    start = line(0, "start", "pytest 8")
    for more in (b"passed\n", line(1, "end", "0", key=b"o" * 32), line(2, "end", "0"), start, line(1, "nonsense")):
        assert read_lines(start + more, KEY).foreign
    # The last line of a process that was killed.
    assert not read_lines(start + line(1, "end", "0")[:20], KEY).foreign


def line_of(process: int, number: int, *fields: str) -> bytes:
    sealed = b"%d %d %s" % (process, number, "\0".join(fields).encode().hex().encode())
    return sealed + b" " + hmac.new(process_key(KEY, process), sealed, "sha256").hexdigest()[:16].encode() + b"\n"


def test_processes_number_their_own_lines_and_name_their_own_tests() -> None:
    runner = (line_of(0, 0, "start", "node v20"), line_of(0, 1, "end", "0"))
    first = (line_of(1, 0, "control", "adds", "fail"), line_of(1, 1, "ended", "adds", "call", "failed"))
    second = (line_of(2, 0, "file", "b.test.js"), line_of(2, 1, "test", "adds", "call", "passed"))
    content = b"".join((runner[0], first[0], second[0], first[1], second[1], runner[1]))
    found = read_lines_of_processes(content, KEY)
    assert (found.started, found.exit_status, found.foreign) == ("node v20", 0, False)
    assert (found.controls, found.control_outcomes, found.tests) == (
        {"1/adds": "fail"},
        {"1/adds": "failed"},
        {"2/adds": "passed"},
    )


def test_lines_that_no_process_can_have_sent_are_foreign() -> None:
    start = line_of(0, 0, "start", "node v20")
    for more in (
        b"passed\n",
        b"\n",
        start,
        line_of(1, 1, "end", "0"),
        line_of(1, 0, "end", "0").replace(b"1 ", b"2 ", 1),
    ):
        assert read_lines_of_processes(start + more, KEY).foreign
    assert not read_lines_of_processes(start + line_of(1, 0, "end", "0")[:20], KEY).foreign


def test_there_is_a_key_for_each_of_many_processes() -> None:
    with control_channel(of_processes=True) as channel:
        code = (
            "import os, sys\n"
            f"numbers = {{os.read({channel.descriptor}, 32)[:4] for _ in range(200)}}\nprint(len(numbers))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], pass_fds=[channel.descriptor], check=True, capture_output=True, text=True
        )
        assert done.stdout.strip() == "200"
        assert not channel.finish().started


def test_the_gate_reads_while_the_command_runs() -> None:
    """More than fits in the buffers of the system."""
    with control_channel() as channel:
        code = (
            "import sys\nstream = sys.modules['donewhen_controls'].stream\nassert stream.claim()\n"
            "assert not stream.claim()\n"
            "stream.send('start', 'x')\n"
            "for number in range(20000):\n    stream.send('test', str(number), 'call', 'passed')\n"
            "stream.send('end', '0')\n"
        )
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": channel.python_path({})}
        subprocess.run([sys.executable, "-c", code], env=variables, pass_fds=[channel.descriptor], check=True)
        found = channel.finish()
    assert (len(found.tests), found.exit_status, found.foreign) == (20000, 0, False)


def test_a_process_that_was_forked_says_nothing() -> None:
    with control_channel() as channel:
        code = (
            "import os, sys\nstream = sys.modules['donewhen_controls'].stream\nassert stream.claim()\n"
            "if not os.fork():\n    stream.send('end', '0')\n    os._exit(0)\nos.wait()\nstream.send('start', 'x')\n"
        )
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": channel.python_path({})}
        subprocess.run([sys.executable, "-c", code], env=variables, pass_fds=[channel.descriptor], check=True)
        found = channel.finish()
    assert (found.started, found.exit_status, found.foreign) == ("x", None, False)


def test_a_program_without_the_stream_is_not_disturbed() -> None:
    """The number of the stream may be that of another file there."""
    with control_channel() as channel:
        code = (
            "import os, sys\ncontrols = sys.modules['donewhen_controls']\n"
            f"os.dup2(os.open('/dev/null', os.O_RDWR), {channel.descriptor})\nassert not controls.stream.claim()\n"
            "controls.stream.send('start', 'x')\ncontrols.taken()\ncontrols.leave_environment()\n"
            "assert 'PYTHONPATH' not in os.environ and 'donewhen_controls' not in sys.modules\n"
        )
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": channel.python_path({})}
        subprocess.run([sys.executable, "-c", code], env=variables, check=True)
        found = channel.finish()
    assert found.started == ""
