"""mission.toml: everything that can be set about a mission, with its defaults. Unknown keys are errors."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec

from donewhen.foundation.errors import ConfigError

T = TypeVar("T")

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Natural = Annotated[int, msgspec.Meta(ge=0)]
Part = Literal["task", "outputs", "diff", "evidence"]
Amount = Annotated[float, msgspec.Meta(gt=0.0)]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Sampler(_Table, frozen=True, kw_only=True):
    """One row of the grid: so many answers at this temperature."""

    temperature: Annotated[float, msgspec.Meta(ge=0.0, le=2.0)]
    samples: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1


class VerdictWords(_Table, frozen=True, kw_only=True):
    """The mission's own words for the two verdicts."""

    pass_: str | None = msgspec.field(name="pass", default=None)
    fail: str | None = None


class ManualReview(_Table, frozen=True, kw_only=True):
    """When a verdict is shown to people."""

    min_verdict_agreement: Share = 0.67

    drift_window: Annotated[int, msgspec.Meta(ge=5, le=10_000)] = 20
    """Over so many verdicts of people, the newest, agreement with the judge is measured."""
    alarm_below: Share = 0.7
    """Agreement below this share is an alarm."""
    spot_check: Share = 0.1
    """This share of the verdicts that need nobody is shown to people all the same."""


class FromJob(_Table, frozen=True, kw_only=True):
    """What a ticket holds that a gate makes of a job."""

    parts: Annotated[tuple[Part, ...], msgspec.Meta(min_length=1)] = ("task", "outputs", "diff", "evidence")
    """task: what the criterion asks for, as it was agreed; outputs: the files that the job puts out; diff: what changed
    in the repository since the job was started; evidence: what the gate itself ran and saw."""
    max_chars: Annotated[int, msgspec.Meta(ge=1000)] = 40_000
    """Of what is longer, the beginning and the end of each part are kept."""


class Reflection(_Table, frozen=True, kw_only=True):
    """How the learner reflects."""

    batch_size: Count = 16
    max_operations: Natural = 2
    retry_budget_per_group_per_epoch: Natural = 2
    max_calls_per_epoch: Natural | None = None
    """Decision and ops calls together."""
    max_prompt_chars: Annotated[int, msgspec.Meta(ge=2000)] = 60_000
    """Cases that don't fit wait for the next prompt."""
    hypothesis_min_support_cycles: Count = 2
    hypothesis_min_unique_ticket_keys: Count = 6
    max_promotions_per_epoch: Natural = 3
    max_changes_per_epoch: Natural = 12
    """Changes of the guidance, whatever they come from."""


class Rules(_Table, frozen=True, kw_only=True):
    """What rules may be, and when they go."""

    max_length: Annotated[int, msgspec.Meta(ge=20, le=2000)] = 160
    max_rules: Count = 40
    similar: Share = 0.9
    """From this likeness on, a new rule of the same verdict updates the old one."""
    cleanup_below: Share = 0.35
    cleanup_misses: Count = 3
    credit_tickets: Natural | None = None
    """On so many training tickets, at most, each rule is left out to see what it does; 0 for never. Without a number,
    200 for a model that costs nothing, and 40 for one that does."""


class Trial(_Table, frozen=True, kw_only=True):
    """What a change must show on unseen tickets."""

    min_tickets: Count = 20
    max_tickets: Count = 400
    confidence: Share = 0.6
    """In how many of the resamples an added rule must lower the error."""
    resamples: Count = 400
    max_more_false_releases: Natural = 0
    min_gain: Natural = 1
    """By how many tickets an added rule must lower the error, at least."""


class Split(_Table, frozen=True, kw_only=True):
    """How tickets are divided, by cluster."""

    train: Share = 0.6
    validation: Share = 0.2
    test: Share = 0.2


class MissionBudget(_Table, frozen=True, kw_only=True):
    """Hard caps over judging and reflection together. Without a number there is none."""

    calls: Count | None = None
    tokens: Count | None = None
    cost: Amount | None = None
    seconds: Amount | None = None
    calls_per_epoch: Count | None = None
    tokens_per_epoch: Count | None = None
    cost_per_epoch: Amount | None = None


DEFAULT_SAMPLERS = tuple(Sampler(temperature=one) for one in (0.1, 0.4, 0.7))


class MissionFile(_Table, frozen=True, kw_only=True):
    """mission.toml."""

    mission: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    language: str = "en"
    model: str = "contrast"
    tickets: tuple[str, ...] = ("tickets.jsonl",)
    initial_guidance: str = "initial_guidance.json"
    overrides: tuple[str, ...] = ()
    seed: Natural = 1
    epochs: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 4
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 8
    verdict: VerdictWords = VerdictWords()
    sampler: Annotated[tuple[Sampler, ...], msgspec.Meta(min_length=1)] = DEFAULT_SAMPLERS
    manual_review: ManualReview = ManualReview()
    from_job: FromJob = FromJob()
    reflection: Reflection = Reflection()
    rules: Rules = Rules()
    trial: Trial | Literal["off"] = Trial()
    split: Split = Split()
    budget: MissionBudget = MissionBudget()


def convert_settings(data: Any, kind: type[T], text: str, where: str) -> T:
    """Data as a typed value, or an error that names the line."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        keys = re.findall(r"[A-Za-z_]\w*", path)
        unknown = re.search(r"unknown field `(.+?)`", message)
        advice = None
        if unknown:
            keys.append(unknown[1])
            advice = _suggestion(unknown[1], kind, keys[:-1])
        told = ".".join(keys) or "the file"
        raise ConfigError(f"{told}: {message}.", where=f"{where}:{_line(text, keys)}", next_step=advice) from error


def key_location(path: Path, text: str, key: str) -> str:
    """Where a key stands in a file."""
    return f"{path}:{_line(text, [key])}"


@contextmanager
def locate_errors(path: Path, text: str, key: str) -> Iterator[None]:
    """An error of settings that doesn't know its place gets that of the key that it is about."""
    try:
        yield
    except ConfigError as error:
        error.where = error.where or key_location(path, text, key)
        raise


def _suggestion(name: str, kind: Any, path: list[str]) -> str | None:
    for step in path:
        found = next((field for field in msgspec.structs.fields(kind) if field.encode_name == step), None)
        kind = _struct(getattr(found, "type", None))
        if kind is None:
            return None
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    near = difflib.get_close_matches(name, names, 1)
    return f"Did you mean {near[0]}?" if near else f"Known here: {', '.join(names)}."


def _struct(kind: Any) -> Any:
    """The first struct within a type: in a choice, in a tuple, with bounds or without."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next((found for argument in get_args(kind) if (found := _struct(argument)) is not None), None)


def _line(text: str, keys: list[str]) -> int:
    """The line on which a key stands, as well as can be told without a second parser."""
    lines = text.split("\n")
    start = 0
    for key in keys[:-1]:
        head = re.compile(rf"\s*\[+\s*[\w.\"-]*\b{re.escape(key)}\b")
        start = next((at for at in range(start, len(lines)) if head.match(lines[at])), start)
    for key in reversed(keys):
        assigned = re.compile(rf"\s*(?:\[+\s*)?[\w.\"-]*\b{re.escape(key)}\b\"?\s*(?:=|\])")
        found = next((at for at in range(start, len(lines)) if assigned.match(lines[at])), None)
        if found is not None:
            return found + 1
    return start + 1
