"""Deterministic overrides: a mission's own code that has the last word on a verdict. By default there are none."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from donewhen.foundation.errors import ConfigError
from donewhen.judging.ticket import Ticket
from donewhen.judging.vote import Vote
from donewhen.models.roles import Binary


class Override(Protocol):
    """Looks at a ticket and the votes on it; returns a verdict, or None to leave it as it is."""

    def __call__(self, ticket: Ticket, vote: Vote) -> Binary | None: ...


class NamedOverride(NamedTuple):
    """An override under the name that verdicts mention."""

    name: str
    override: Override


def load_overrides(names: tuple[str, ...], folder: Path) -> tuple[NamedOverride, ...]:
    """Overrides by ``module:function``, or by ``file.py:function`` relative to the mission."""
    return tuple(NamedOverride(name, _load(name, folder)) for name in names)


def unloaded_overrides(names: tuple[str, ...]) -> tuple[NamedOverride, ...]:
    """Overrides by their names alone, for whoever only looks at a mission: no code of it is run."""
    return tuple(NamedOverride(name, _Unloaded(name)) for name in names)


class _Unloaded:
    """Stands for an override that was not loaded."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, ticket: Ticket, vote: Vote) -> Binary | None:
        raise ConfigError(f"The override {self._name} was not loaded, so nothing can be judged with it.")


def apply_overrides(
    ticket: Ticket, vote: Vote, overrides: tuple[NamedOverride, ...]
) -> tuple[Binary | None, str | None]:
    """The final verdict, and which override made it, if one did. The first that speaks decides."""
    # The label is not theirs to see: what knows it can't be wrong, and can't be measured.
    shown = ticket._replace(label=None, label_source="", label_timestamp="")
    for name, override in overrides:
        try:
            said = override(shown, vote)
        except Exception as error:
            message = f"The override {name} failed on {ticket.group_id}: {type(error).__name__}: {error}."
            raise ConfigError(message) from error
        if said is None:
            continue
        if said not in ("pass", "fail"):
            raise ConfigError(f"The override {name} returned {said!r}; it may return 'pass', 'fail' or None.")
        return said, name
    return vote.verdict, None


def _load(name: str, folder: Path) -> Override:
    place, _, function = name.rpartition(":")
    if not place or not function.isidentifier():
        raise ConfigError(f"{name!r} names no override.", next_step="Write module:function or file.py:function.")
    try:
        module = _from_file(folder / place) if place.endswith(".py") else importlib.import_module(place)
        found = getattr(module, function)
    except Exception as error:
        raise ConfigError(f"The override {name} can't be loaded: {type(error).__name__}: {error}.") from error
    if not callable(found):
        raise ConfigError(f"The override {name} is not a function.")
    return cast("Override", found)


def _from_file(path: Path) -> object:
    name = f"donewhen_override_{path.stem}_{abs(hash(str(path)))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
