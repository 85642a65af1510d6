"""docs/reference/mission-settings.md, from the fields, bounds, defaults and docstrings of the settings themselves."""

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

They stand in `{MISSION_FILE}`, in the mission's folder. Only `mission` must be there; everything else has a default.
Paths start in that folder, and may not lead out of it.

The examples need a few tickets (made up):

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

A key that is not a setting is an error with its line, so that a slip of the pen can't switch a limit off. So is a value
out of its bounds. Write `max_call` in `notes/{MISSION_FILE}`:

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

# What settings.py leaves without a docstring of its own.
_UNSAID = {
    "mission": "The mission's name. Every ticket says which mission it belongs to.",
    "language": "The language of answers and rules: one that is shipped, or a [folder](../howto/add-a-language.md).",
    "model": "Who judges and reflects. `donewhen learn --model` asks another one.",
    "tickets": "The files with labelled tickets.",
    "initial_guidance": "The file with the rules to begin with.",
    "overrides": "Functions that have the last word on a verdict: [overrides](../howto/write-guidance.md#overrides).",
    "seed": "Divides the tickets, and orders what is drawn. The same seed, the same run.",
    "epochs": "How often the training tickets are judged and learned from, at most.",
    "concurrency": "How many tickets are judged at once.",
    "verdict": "The mission's own words for the two verdicts.",
    "sampler": "How often, and how freely, each ticket is answered. The majority decides; a tie is a fail.",
    "manual_review": "When a verdict is marked for people.",
    "from_job": "What a ticket holds that a gate makes of a job: [a judge as a check](../howto/let-a-judge-decide.md).",
    "reflection": "How the learner asks, how often, and when a hypothesis has waited long enough.",
    "rules": "What rules may be, and when they go.",
    "trial": 'What a change must show on unseen tickets. `trial = "off"` makes changes without a trial.',
    "split": "How tickets are divided. The three shares add up to 1.",
    "budget": "Hard caps over judging and reflection together.",
    "pass": "The word for a pass; without it, the language's.",
    "fail": "The word for a fail; without it, the language's.",
    "temperature": "How freely a model answers.",
    "samples": "How many answers at this temperature.",
    "min_verdict_agreement": (
        "A verdict whose majority is a smaller share of the votes has *low agreement*: it is marked for people, and "
        "something may be learned from it."
    ),
    "batch_size": "How many cases one question of reflection has. Each retry halves it.",
    "max_operations": "How many changes one answer may propose.",
    "retry_budget_per_group_per_epoch": "How often a case that an answer left out is asked about again, in an epoch.",
    "hypothesis_min_support_cycles": "A hypothesis is tried when so many cycles have proposed it,",
    "hypothesis_min_unique_ticket_keys": "and so many different tickets support it.",
    "max_promotions_per_epoch": "How many hypotheses may become rules in an epoch.",
    "max_length": "How many characters a learned rule may have.",
    "max_rules": "How many rules `G0`, `G1`, … there may be.",
    "cleanup_below": "A rule whose confidence, (hits + 1) / (hits + misses + 2), is lower than this,",
    "cleanup_misses": "and that has at least so many misses, is tried for deletion.",
    "min_tickets": "With fewer unseen tickets, every change is refused.",
    "max_tickets": "With more, so many of them are used.",
    "resamples": "How many resamples the paired bootstrap draws.",
    "max_more_false_releases": "How many more bad tickets may be let through than before.",
    "train": "To learn from.",
    "validation": "For trials: never shown to reflection.",
    "test": "Held out: judged before and after, and never otherwise looked at.",
    "calls": "Calls to a model, of every kind.",
    "tokens": "Tokens of prompts and answers, as the model counts them.",
    "cost": "What the model says that its answers cost.",
    "seconds": "Time of work; the time between an interruption and `--resume` does not count.",
    "calls_per_epoch": "Calls to a model in one epoch. The next epoch begins at 0.",
    "tokens_per_epoch": "Tokens in one epoch, of the prompts and of the answers.",
    "cost_per_epoch": "What the answers of one epoch cost.",
}


class Setting(NamedTuple):
    """One key of the file."""

    name: str
    kind: str
    default: str
    meaning: str


def mission_settings_page() -> str:
    """Every key of mission.toml with its type, bounds, default and meaning."""
    lines = [_INTRO, "## At the top", "", *_table(MissionFile)]
    for field in msgspec.structs.fields(MissionFile):
        kind = _struct(field.type)
        if kind is None:
            continue
        head = f"[[{field.encode_name}]]" if kind is Sampler else f"[{field.encode_name}]"
        lines += ["", f"## {head}", "", prose(_doc(kind)), "", *_table(kind)]
    return "\n".join([*lines, ""])


def settings_of(kind: type[msgspec.Struct]) -> Iterator[Setting]:
    """The keys of one table, in the order of its fields; a key that nothing is said of is an error."""
    node = definition(kind.__module__, kind.__name__).node
    docs = documented_fields(node) if isinstance(node, ast.ClassDef) else {}
    for field in msgspec.structs.fields(kind):
        meaning = docs.get(field.name) or _UNSAID.get(field.encode_name)
        if not meaning:
            raise LookupError(f"Nothing is said of {kind.__name__}.{field.name}, neither there nor here.")
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
    return next((found for argument in get_args(kind) if (found := _struct(argument)) is not None), None)


def _kind(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        base, *meta = get_args(kind)
        bounds = next((one for one in meta if isinstance(one, msgspec.Meta)), msgspec.Meta())
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
