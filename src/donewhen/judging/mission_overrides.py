"""Deterministic overrides: a mission's own functions that may replace a verdict. By default there are none."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from donewhen.foundation.binary import Binary
from donewhen.foundation.errors import ConfigError
from donewhen.judging.ticket import Ticket
from donewhen.judging.vote import Vote


class Override(Protocol):
    """Takes a ticket and its votes; returns a verdict, or None to keep the verdict of the vote."""

    def __call__(self, ticket: Ticket, vote: Vote) -> Binary | None: ...


class NamedOverride(NamedTuple):
    """An override with the name that is recorded in verdicts."""

    name: str
    override: Override


def load_overrides(names: tuple[str, ...], folder: Path) -> tuple[NamedOverride, ...]:
    """Load overrides from ``module:function``, or from ``file.py:function`` relative to the mission."""
    return tuple(NamedOverride(name, _load(name, folder)) for name in names)


def unloaded_overrides(names: tuple[str, ...]) -> tuple[NamedOverride, ...]:
    """Return placeholders for the overrides, so that reading a mission runs none of its code."""
    return tuple(NamedOverride(name, _Unloaded(name)) for name in names)


class _Unloaded:
    """Placeholder for an override that was not loaded."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, ticket: Ticket, vote: Vote) -> Binary | None:
        raise ConfigError(f"The override {self._name} was not loaded, so nothing can be judged with it.")


def apply_overrides(
    ticket: Ticket, vote: Vote, overrides: tuple[NamedOverride, ...]
) -> tuple[Binary | None, str | None]:
    """Return the final verdict and the name of the override that made it, if any. The first verdict wins."""
    # Overrides don't see the label: code that knows it is always right, and can't be measured.
    unlabelled = ticket._replace(label=None, label_source="", label_timestamp="")
    for name, override in overrides:
        try:
            verdict = override(unlabelled, vote)
        except Exception as error:
            raise ConfigError(f"The override {name} failed on {ticket.group_id}: {_described(error)}.") from error
        if verdict is None:
            continue
        if verdict not in ("pass", "fail"):
            raise ConfigError(f"The override {name} returned {verdict!r}; it may return 'pass', 'fail' or None.")
        return verdict, name
    return vote.verdict, None


def _load(name: str, folder: Path) -> Override:
    source, _, function = name.rpartition(":")
    if not source or not function.isidentifier():
        raise ConfigError(
            f"{name!r} is not a valid override name.", next_step="Write module:function or file.py:function."
        )
    try:
        module = _module_from_file(folder / source) if source.endswith(".py") else importlib.import_module(source)
        override = getattr(module, function)
    except Exception as error:
        raise ConfigError(f"The override {name} can't be loaded: {_described(error)}.") from error
    if not callable(override):
        raise ConfigError(f"The override {name} is not a function.")
    return cast("Override", override)


def _described(error: Exception) -> str:
    """The type and the message of an error, without a final stop."""
    return f"{type(error).__name__}: {error}".removesuffix(".")


def _module_from_file(path: Path) -> object:
    name = f"donewhen_override_{path.stem}_{abs(hash(str(path)))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
