"""Generate docs/reference/mission-settings.md from the fields, bounds, defaults and docstrings of the settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from donewhen.judging.mission import MISSION_FILE
from donewhen.judging.mission_settings import MissionFile, Sampler, Trial
from tools.api_reference import definition, documented_fields, prose

_INTRO = f"""\
# Settings of a mission

The settings are in `{MISSION_FILE}`, in the mission's folder. Only `mission` is required; everything else has a
default. Paths are relative to that folder and must stay inside it.

The examples use a few made-up tickets:

```console
$ printf 'id,note,accepted\\n1,It works.,yes\\n2,It should work.,no\\n3,Looked at.,yes\\n4,Not yet.,no\\n' > notes.csv
$ donewhen mission init notes.csv notes
notes  from notes.csv (CSV)
…
✓ notes/: mission.toml, initial_guidance.json, tickets.jsonl
  next: donewhen mission check notes
```

A `notes/{MISSION_FILE}` that uses every table:

```toml file=notes/{MISSION_FILE}
mission = "notes"
language = "en"
model = "contrast"
tickets = ["tickets.jsonl"]
epochs = 3

[verdict]
pass = "accepted"
fail = "sent back"

[[sampler]]
temperature = 0.2
samples = 3

[manual_review]
min_verdict_agreement = 0.67

[reflection]
batch_size = 8
max_calls_per_epoch = 100

[rules]
max_rules = 12

[trial]
min_tickets = 1

[split]
train = 0.5
validation = 0.25
test = 0.25

[budget]
calls = 5000
```

```console
$ donewhen mission check notes
notes  (notes)
  judged by  contrast, in English, 3 answer(s) a ticket
  tickets    4: 2 pass, 2 fail, in 4 cluster(s)
…
```

An unknown key is an error with its line number, so that a typo can't disable a limit. So is a value outside its
bounds. Write `max_call` in `notes/{MISSION_FILE}`:

```toml file=notes/{MISSION_FILE}
mission = "notes"

[budget]
max_call = 5000
```

```console
$ donewhen mission check notes
✗ notes/{MISSION_FILE}:4: budget.max_call: Object contains unknown field `max_call`.
  next: Did you mean calls?
$ echo $?
2
```
"""

# Descriptions of the settings that have no docstring.
_UNSAID = {
    "mission": "The mission's name. Every ticket contains it.",
    "language": "The language of answers and rules: a built-in one, or a [folder](../howto/add-a-language.md).",
    "model": "The model that judges and reflects. `donewhen learn --model` selects another one.",
    "tickets": "The files with labelled tickets.",
    "initial_guidance": "The file with the initial rules.",
    "overrides": "Functions that can override a verdict: [overrides](../howto/write-guidance.md#overrides).",
    "seed": "The random seed for the split and the order of tickets. The same seed gives the same run.",
    "epochs": "Maximum number of passes over the training tickets.",
    "concurrency": "Number of tickets that are judged at the same time.",
    "verdict": "The mission's own words for the two verdicts.",
    "sampler": "How many answers each ticket gets, at which temperatures. The majority decides; a tie is a fail.",
    "manual_review": "When a verdict is marked for review by people.",
    "from_job": "The content of a ticket that a gate builds: [a judge as a check](../howto/let-a-judge-decide.md).",
    "reflection": "How and how often the learner asks the model, and when a hypothesis is tried.",
    "rules": "Limits for rules, and when a rule is removed.",
    "trial": 'What a change must achieve on unseen tickets. `trial = "off"` makes changes without a trial.',
    "split": "How tickets are split. The three shares must add up to 1.",
    "budget": "Hard limits for judging and reflection together.",
    "pass": "The word for a pass (default: the word of the language).",
    "fail": "The word for a fail (default: the word of the language).",
    "temperature": "The sampling temperature.",
    "samples": "Number of answers at this temperature.",
    "min_verdict_agreement": (
        "If the majority has a smaller share of the votes, the verdict has *low agreement*: it is marked for review by "
        "people, and the ticket may be learned from."
    ),
    "batch_size": "Number of cases in one reflection prompt. Each retry halves it.",
    "max_operations": "Maximum number of changes that one answer may propose.",
    "retry_budget_per_group_per_epoch": "How often per epoch a case that an answer left out is asked about again.",
    "hypothesis_min_support_cycles": "Number of cycles that must propose a hypothesis before it is tried.",
    "hypothesis_min_unique_ticket_keys": "Number of tickets that must support a hypothesis before it is tried.",
    "max_promotions_per_epoch": "Maximum number of hypotheses that become rules per epoch.",
    "max_length": "Maximum number of characters of a learned rule.",
    "max_rules": "Maximum number of rules (`G0`, `G1`, …).",
    "cleanup_below": (
        "A rule is tried for deletion if its confidence, (hits + 1) / (hits + misses + 2), is lower than this and it "
        "has at least `cleanup_misses` misses."
    ),
    "cleanup_misses": "Minimum number of misses before a rule is tried for deletion.",
    "min_tickets": "Minimum number of unseen tickets; with fewer, every change is refused.",
    "max_tickets": "Maximum number of unseen tickets that a trial uses.",
    "resamples": "Number of resamples of the paired bootstrap.",
    "max_more_false_releases": "Maximum number of additional bad tickets that a change may let through.",
    "train": "Share of tickets to learn from.",
    "validation": "Share of tickets for trials; never used in reflection.",
    "test": "Share of tickets that are held out: judged before and after learning, and not used otherwise.",
    "calls": "Model calls of all kinds.",
    "tokens": "Tokens of prompts and answers, as counted by the model.",
    "cost": "Cost of the answers, as reported by the model.",
    "seconds": "Working time in seconds; the time between an interruption and `--resume` does not count.",
    "calls_per_epoch": "Model calls per epoch. The next epoch starts at 0.",
    "tokens_per_epoch": "Tokens of prompts and answers per epoch.",
    "cost_per_epoch": "Cost of the answers per epoch.",
}


class Setting(NamedTuple):
    """One key of the file."""

    name: str
    kind: str
    default: str
    meaning: str


def mission_settings_page() -> str:
    """Return the page with every key of mission.toml: its type, bounds, default and meaning."""
    lines = [_INTRO, "## Top-level keys", "", *_table(MissionFile)]
    for field in msgspec.structs.fields(MissionFile):
        kind = _struct(field.type)
        if kind is None:
            continue
        head = f"[[{field.encode_name}]]" if kind is Sampler else f"[{field.encode_name}]"
        lines += ["", f"## {head}", "", prose(_doc(kind)), "", *_table(kind)]
    return "\n".join([*lines, ""])


def settings_of(kind: type[msgspec.Struct]) -> Iterator[Setting]:
    """Yield the keys of one table, in the order of its fields; a key without a description is an error."""
    node = definition(kind.__module__, kind.__name__).node
    docs = documented_fields(node) if isinstance(node, ast.ClassDef) else {}
    for field in msgspec.structs.fields(kind):
        meaning = docs.get(field.name) or _UNSAID.get(field.encode_name)
        if not meaning:
            raise LookupError(f"{kind.__name__}.{field.name} has no description: add a docstring or an entry here.")
        yield Setting(field.encode_name, _kind(field.type), _default(field), meaning)


def _table(kind: type[msgspec.Struct]) -> list[str]:
    rows = [
        f"| `{setting.name}` | {setting.kind} | {setting.default} | {setting.meaning} |"
        for setting in settings_of(kind)
    ]
    return ["| key | value | default | meaning |", "| --- | --- | --- | --- |", *rows]


def _doc(kind: type[Any]) -> str:
    return definition(kind.__module__, kind.__name__).doc


def _struct(kind: Any) -> type[msgspec.Struct] | None:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next((struct for argument in get_args(kind) if (struct := _struct(argument)) is not None), None)


def _kind(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        base, *meta = get_args(kind)
        bounds = next((item for item in meta if isinstance(item, msgspec.Meta)), msgspec.Meta())
        return _kind(base) + _bounds(base, bounds)
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_kind(argument) for argument in get_args(kind) if argument is not type(None))
    if get_origin(kind) is Literal:
        return " or ".join(f'`"{argument}"`' for argument in get_args(kind))
    if get_origin(kind) is tuple:
        return "list of tables" if _struct(kind) else "list of strings"
    return "table" if _struct(kind) else {str: "string", int: "whole number", float: "number"}[kind]


def _bounds(base: Any, meta: msgspec.Meta) -> str:
    unit = " characters" if base is str else ""
    low = meta.ge if meta.ge is not None else meta.min_length
    high = meta.le if meta.le is not None else meta.max_length
    if meta.gt is not None:
        return f" above {meta.gt:g}"
    if get_origin(base) is tuple:
        return f", {low} or more" if low else ""
    if low is not None and high is not None:
        return f", {low:g} to {high:g}{unit}"
    return f", {low:g} or more{unit}" if low is not None else ""


def _default(info: FieldInfo) -> str:
    if info.required:
        return "required"
    value = info.default if info.default is not msgspec.NODEFAULT else info.default_factory()
    if value is None:
        return "none"
    if isinstance(value, Trial) or _struct(type(value)):
        return "see below"
    if isinstance(value, tuple) and value and isinstance(value[0], Sampler):
        return "temperatures " + ", ".join(f"{row.temperature:g}" for row in value) + ", one answer each"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(_quoted, value))}]`"
    return f"`{_quoted(value)}`" if isinstance(value, str) else f"{value:g}"


def _quoted(text: str) -> str:
    return f'"{text}"'
