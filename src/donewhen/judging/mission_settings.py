"""The settings of mission.toml with their defaults. Unknown keys are errors."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
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
    """One row of the sampling grid: a number of answers at a temperature."""

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
    """Number of most recent human verdicts over which agreement with the judge is measured."""
    alarm_below: Share = 0.7
    """Agreement below this share raises an alarm."""
    spot_check: Share = 0.1
    """Share of the verdicts that need no review and are shown to people anyway."""


class FromJob(_Table, frozen=True, kw_only=True):
    """What a ticket contains when a gate builds it from a job."""

    parts: Annotated[tuple[Part, ...], msgspec.Meta(min_length=1)] = ("task", "outputs", "diff", "evidence")
    """task: the agreed text of the criterion; outputs: the files that the job produces; diff: the changes in the
    repository since the job was started; evidence: the results that the gate itself collected."""
    max_chars: Annotated[int, msgspec.Meta(ge=1000)] = 40_000
    """If the ticket is longer, only the beginning and the end of each part are kept."""
    may_send: tuple[str, ...] = ()
    """Texts that look like secrets and may be sent to a model on a server, such as the keys of examples: the text
    itself, or its whole line."""


class Reflection(_Table, frozen=True, kw_only=True):
    """How the learner reflects."""

    batch_size: Count = 16
    max_operations: Natural = 2
    retry_budget_per_group_per_epoch: Natural = 2
    max_calls_per_epoch: Natural | None = None
    """Limit for decision and ops calls together."""
    max_prompt_chars: Annotated[int, msgspec.Meta(ge=2000)] = 60_000
    """Cases that don't fit go into the next prompt."""
    hypothesis_min_support_cycles: Count = 2
    hypothesis_min_unique_ticket_keys: Count = 6
    max_promotions_per_epoch: Natural = 3
    max_changes_per_epoch: Natural = 12
    """Limit for all changes of the guidance, whatever their origin."""


class Rules(_Table, frozen=True, kw_only=True):
    """Limits for rules, and when a rule is removed."""

    max_length: Annotated[int, msgspec.Meta(ge=20, le=2000)] = 160
    max_rules: Count = 40
    similar: Share = 0.9
    """A new rule updates an old one with the same verdict if they are at least this similar and differ only in words
    without a meaning of their own. Otherwise it is added."""
    cleanup_below: Share = 0.35
    cleanup_misses: Count = 3
    credit_tickets: Natural | None = None
    """Maximum number of training tickets on which each rule's effect is measured by leaving it out; 0 disables this.
    Default: 200 for a free model, 40 for a paid one."""


class Trial(_Table, frozen=True, kw_only=True):
    """What a change must achieve on unseen tickets."""

    min_tickets: Count = 20
    max_tickets: Count = 400
    confidence: Share = 0.6
    """Share of the resamples in which an added rule must lower the error."""
    resamples: Count = 400
    confidence_of_scores: Share = 0.9
    """The same for an added rule that only makes the labels more probable."""
    adoption_confidence: Share = 0.8
    """Share of the resamples, by cluster, in which a learned judge must beat the best judge that always says the same,
    on the validation tickets and on the test tickets, to be adopted."""
    max_false_release: Share = 0.25
    """Share of the bad work that an adopted judge may let through. If the judge so far passes nothing, the first rule
    that passes anything may use up 40% of it."""
    max_more_false_releases: Natural = 0
    """Number of false releases that any other change may add."""
    min_gain: Natural = 1
    """Minimum number of tickets by which an added rule must lower the error."""


class Split(_Table, frozen=True, kw_only=True):
    """How tickets are split, by cluster."""

    train: Share = 0.6
    validation: Share = 0.2
    test: Share = 0.2


class MissionBudget(_Table, frozen=True, kw_only=True):
    """Hard limits for judging and reflection together. None means no limit."""

    calls: Count | None = None
    tokens: Count | None = None
    cost: Amount | None = None
    seconds: Amount | None = None
    calls_per_epoch: Count | None = None
    tokens_per_epoch: Count | None = None
    cost_per_epoch: Amount | None = None


DEFAULT_SAMPLERS = tuple(Sampler(temperature=value) for value in (0.1, 0.4, 0.7))


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


def convert_settings(
    data: Any, kind: type[T], text: str, where: str, line_of: Callable[[Sequence[str]], int] | None = None
) -> T:
    """Convert data to a typed value; raise ConfigError with the line if it is invalid.

    ``line_of`` finds the line of a key if ``text`` is not TOML.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        keys = re.findall(r"[A-Za-z_]\w*", path)
        unknown = re.search(r"unknown field `(.+?)`", message)
        suggestion = None
        if unknown:
            keys.append(unknown[1])
            suggestion = _suggestion(unknown[1], kind, keys[:-1])
        field = ".".join(keys) or "the file"
        line = _line_of(text, keys) if line_of is None else line_of(keys)
        raise ConfigError(f"{field}: {message}.", where=f"{where}:{line}", next_step=suggestion) from error


def key_location(path: Path, text: str, key: str) -> str:
    """File and line of a key."""
    return f"{path}:{_line_of(text, [key])}"


@contextmanager
def locate_errors(path: Path, text: str, key: str) -> Iterator[None]:
    """Add the location of a key to a ConfigError that has none."""
    try:
        yield
    except ConfigError as error:
        error.where = error.where or key_location(path, text, key)
        raise


def _suggestion(name: str, kind: Any, path: list[str]) -> str | None:
    for step in path:
        field = next((field for field in msgspec.structs.fields(kind) if field.encode_name == step), None)
        kind = _struct_in(getattr(field, "type", None))
        if kind is None:
            return None
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    near = difflib.get_close_matches(name, names, 1)
    return f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(names)}."


def _struct_in(kind: Any) -> Any:
    """The first struct inside a type: in a union, a tuple or an Annotated type."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next((struct for argument in get_args(kind) if (struct := _struct_in(argument)) is not None), None)


def _line_of(text: str, keys: list[str]) -> int:
    """The line of a key; a best guess, because the TOML parser doesn't report positions."""
    lines = text.split("\n")
    start = 0
    for key in keys[:-1]:
        head = re.compile(rf"\s*\[+\s*[\w.\"-]*\b{re.escape(key)}\b")
        start = next((index for index in range(start, len(lines)) if head.match(lines[index])), start)
    for key in reversed(keys):
        assigned = re.compile(rf"\s*(?:\[+\s*)?[\w.\"-]*\b{re.escape(key)}\b\"?\s*(?:=|\])")
        hit = next((index for index in range(start, len(lines)) if assigned.match(lines[index])), None)
        if hit is not None:
            return hit + 1
    return start + 1
