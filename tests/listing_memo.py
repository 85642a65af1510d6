"""What is installed for these tests is read once: thousands of files, which no test changes.

Jobs list the installations that their checks could load, with the content of each file. In the tests, that is mostly
the environment of the tests themselves, again and again. A machine may write to it meanwhile (some add the certificates
of a proxy to those that are installed when Python starts), which `let_the_machine_write` brings forward; what jobs do
about changes is tested with environments of the tests' own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from typing import TypeVar

import pytest

from donewhen.environments import inventory
from donewhen.environments.content import Reader
from donewhen.environments.interpreters import Installation, read_interpreter
from donewhen.environments.listing import Interpreter, PythonEnvironment
from donewhen.environments.python_packages import read_environment

_OWN = tuple(os.path.realpath(folder) for folder in (sys.prefix, sys.base_prefix))
_TEMPORARY = os.path.realpath(tempfile.gettempdir())
_Found = TypeVar("_Found")
_Memo = dict[tuple[object, ...], tuple[_Found, Reader]]


def let_the_machine_write() -> None:
    """Start the interpreter below this environment with its packages, as some tests do, before anything is listed."""
    base = os.path.join(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    program = base if os.access(base, os.X_OK) else sys.executable
    variables = dict(os.environ, PYTHONPATH=sysconfig.get_path("purelib"))
    subprocess.run([program, "-c", ""], env=variables, check=False, capture_output=True, timeout=120)


def remember_own_installations(patch: pytest.MonkeyPatch) -> None:
    """From now on, the installations that run these tests are read once in this process."""
    environments: _Memo[PythonEnvironment] = {}
    interpreters: _Memo[Interpreter] = {}

    def remembered_environment(reader: Reader, folder: str, root: str) -> PythonEnvironment:
        def read(own: Reader) -> PythonEnvironment:
            return read_environment(own, folder, root)

        return _remembered(environments, (folder, root), folder, reader, read)

    def remembered_interpreter(reader: Reader, installation: Installation) -> Interpreter:
        def read(own: Reader) -> Interpreter:
            return read_interpreter(own, installation)

        return _remembered(interpreters, (str(installation),), installation.prefix, reader, read)

    patch.setattr(inventory, "read_environment", remembered_environment)
    patch.setattr(inventory, "read_interpreter", remembered_interpreter)


def _remembered(
    memo: _Memo[_Found], key: tuple[object, ...], folder: str, reader: Reader, read: Callable[[Reader], _Found]
) -> _Found:
    real = os.path.realpath(folder)
    if not any(real == own or real.startswith(f"{own}/") for own in _OWN):
        return read(reader)
    # What says where the project is differs from test to test; what is installed here does not mention their projects.
    key = (*key[:1], *(() if reader.root.startswith(_TEMPORARY) else key[1:]))
    found = memo.get(key)
    if found is None:
        own = Reader(reader.root)
        found = memo[key] = (read(own), own)
    reader.files += found[1].files
    reader.stamps.update(found[1].stamps)
    reader.unreadable.update(found[1].unreadable)
    return found[0]
