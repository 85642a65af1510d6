"""Read one key at a terminal."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty

from donewhen.cli._output import Output

_ESCAPE = b"\x1b"
_REST = 0.05
"""Seconds to wait for the remaining characters of a key that sends several."""


def press_key(output: Output, words: str) -> str:
    """Read one key without Enter. Unlike click.getchar, it keeps keys that were typed early."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSADRAIN)
        # Prompt only after echo is off, so that a key that is pressed at once is not shown on the screen.
        output.note(words)
        pressed = os.read(terminal, 1)
        if pressed != _ESCAPE:
            return pressed.decode("ascii", "replace")
        # An arrow or function key: F1 ends with a P, which must not count as a verdict.
        while select.select([terminal], [], [], _REST)[0]:
            following = os.read(terminal, 1)
            if following == b"" or (following.isalpha() and following != b"O") or following == b"~":
                break
        return "\x1b"
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
