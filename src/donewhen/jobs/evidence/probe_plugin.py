"""Starts a command of pytest with the plug-in that probes its tests, and reads what that has printed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from donewhen.jobs.evidence.probed_work import Mutant
from donewhen.jobs.room.surroundings import Surroundings

_INJECTED = Path(__file__).parents[2] / "mutation" / "injected"
_PACKAGE = "donewhen_probes"
_PLUGIN = f"{_PACKAGE}.plugin"
_VARIABLE = "DONEWHEN_PROBES"
_MARK = "DONEWHEN-PROBES "
_MOST_BYTES = 90_000
"""A variable may have 128 KiB on Linux."""


class PluginReport(msgspec.Struct, frozen=True):
    """What the plug-in has found."""

    tests: int = 0
    alone: list[tuple[str, bool]] = []
    """Each test that was run alone, and whether it passed."""
    order: list[str] | None = None
    """The tests that fail in the opposite order; None if that was not tried."""
    mutants: dict[str, tuple[str, bool | None]] = {}
    """By number: ``survived``, ``noticed`` or ``not_loaded``, and whether a survivor answers differently."""
    functions: list[tuple[int, int, int]] = []
    """For each changed function that tests call with plain values: how many near inputs and larger ones were tried, and
    how many of the larger ones end in an error."""
    complete: bool = False
    """Whether there was time for all tests that were chosen."""


class ProbePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the plug-in is to do."""

    seconds: float
    company: bool
    """Whether to run tests alone and in another order."""
    near: bool
    """Whether functions may be called with other inputs than those of the tests: only where nothing is in reach."""
    code: Sequence[str]
    """The changed files."""
    files: Sequence[str] | None
    """The files of the tests to use; None for all."""
    first: Sequence[str] = ()


@contextmanager
def plugin_folder() -> Iterator[Path]:
    """A folder with the plug-in and nothing else, which checks may read."""
    with tempfile.TemporaryDirectory(prefix="donewhen-probes-", ignore_cleanup_errors=True) as name:
        folder = Path(os.path.realpath(name))
        (folder / _PACKAGE).mkdir()
        for file in _INJECTED.glob("*.py"):
            shutil.copyfile(file, folder / _PACKAGE / file.name)
        yield folder


def probing(
    surroundings: Surroundings, folder: Path, plan: ProbePlan, mutants: Sequence[Mutant]
) -> tuple[Surroundings, int]:
    """The surroundings in which pytest probes, and how many of the mutants it has."""
    spec = msgspec.to_builtins(plan)
    kept = list(mutants)
    while True:
        rows = [
            {
                "file": mutant.file,
                "start": mutant.change.start,
                "end": mutant.change.end,
                "replacement": mutant.change.replacement,
            }
            for mutant in kept
        ]
        value = _packed({**spec, "mutants": rows})
        if len(value) <= _MOST_BYTES or not kept:
            return _with_plugin(surroundings, folder, value), len(kept)
        kept = kept[: len(kept) * _MOST_BYTES // len(value)]


def running_only(surroundings: Surroundings, folder: Path, files: Sequence[str]) -> Surroundings:
    """The surroundings in which pytest runs the tests of these files only, and reports them as usual."""
    return _with_plugin(surroundings, folder, _packed({"only": list(files)}))


def report_in(output: str) -> PluginReport | None:
    """What the plug-in has printed; None if it has not come to its end."""
    for line in reversed(output.splitlines()):
        if line.startswith(_MARK):
            try:
                return msgspec.json.decode(line.removeprefix(_MARK), type=PluginReport)
            except msgspec.DecodeError:
                return None
    return None


def _packed(spec: Mapping[str, object]) -> str:
    return base64.b64encode(zlib.compress(json.dumps(spec).encode())).decode()


def _with_plugin(surroundings: Surroundings, folder: Path, value: str) -> Surroundings:
    variables = surroundings.variables
    path = variables.get("PYTHONPATH")
    added = {
        _VARIABLE: value,
        "PYTEST_ADDOPTS": f"{variables.get('PYTEST_ADDOPTS', '')} -p {_PLUGIN}".strip(),
        "PYTHONPATH": f"{folder}{os.pathsep}{path}" if path else str(folder),
    }
    return replace(surroundings, variables={**variables, **added}, stores=(*surroundings.stores, folder))
