"""Which gate decides: this version of donewhen, its files and its interpreter."""

from __future__ import annotations

import platform

from donewhen import __version__
from donewhen.foundation.own_files import own_files_hash
from donewhen.jobs.ledger.entry_content import GateProgram


def this_gate() -> GateProgram:
    """The gate that runs now. Reads all files of the package, once in a process."""
    return GateProgram(version=__version__, files=own_files_hash(), python=platform.python_version())


def gate_text(gate: GateProgram) -> str:
    """One line about a gate."""
    return f"donewhen {gate.version}, files {gate.files[:19]}…, Python {gate.python}"
