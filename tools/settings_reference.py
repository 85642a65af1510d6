"""docs/reference/settings.md, from the fields, defaults and docstrings of the settings themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any

from donewhen.config import CONFIG_FILE, PROJECT_FILE, GuardSettings, Settings, TestSettings
from tools.api_reference import definition, documented_fields, prose

_INTRO = f"""\
# Settings

They say what *done* means for agents in a project, and for how long an agent is held back. They stand in
`{CONFIG_FILE}`, or under `[tool.donewhen]` in `{PROJECT_FILE}`: in the folder in which the agent works, or in the
nearest one above it, but not above the root of the repository. Paths and commands start in the folder of that file.
Having both in one folder is an error. Without settings every stop is allowed.

A `{CONFIG_FILE}` that uses every table:

```toml file={CONFIG_FILE}
[stop]
files = ["report.md"]
commands = ["grep -q Source report.md"]
max_stalled = 3

[stop.tests]
run = "python -m pytest --junitxml={{junit}}"
baseline = "baseline.json"

[subagent_stop]
files = ["notes.md"]

[task_completed]
commands = ["git diff --check"]
```

`donewhen config show` prints every setting with its value and where it came from:

```console
$ donewhen config show
# …/{CONFIG_FILE}
stop.files = ['report.md']                              # …/{CONFIG_FILE}
…
stop.max_attempts = 50                                  # default
…
```

A key that is not a setting is an error, so that a slip of the pen can't switch a check off. While settings can't be
read, stops are refused, up to the default cap. Write `fils` in `{CONFIG_FILE}`:

```toml file={CONFIG_FILE}
[stop]
fils = ["report.md"]
```

```console
$ donewhen config show
donewhen: …/{CONFIG_FILE}: stop.fils is not a setting; did you mean 'files'?
…
$ echo $?
2
```
"""

_OUTRO = """\
## What the checks do

- A file counts when it is a regular file that is not empty.
- A command is split into words and run without a shell; what only a shell understands is refused. It sees `PATH`,
  `HOME`, the locale and the like, and what `pass_env` names. See
  [check in CI](../howto/check-in-ci.md#there-is-no-shell).
- Tests must succeed *and* write a JUnit report that agrees. See [keep every test](../howto/keep-every-test.md).
- Every check is made, so that the agent hears of all that is missing at once.
"""

# Fields that settings.py leaves without a docstring of their own.
_UNSAID = {
    "run": "The command that runs the tests, with `{junit}` or `{junit_dir}` where the report's path goes.",
    "baseline": "The file with the tests that must not get lost, as `donewhen baseline` writes it.",
    "timeout": "How many seconds the tests may take.",
    "pass_env": "Environment variables that the tests may see.",
}


@dataclass(frozen=True)
class Setting:
    """One key of the file."""

    name: str
    kind: str
    default: str
    meaning: str


def settings_page() -> str:
    """Every setting with its type, default and meaning."""
    docs = _docs(Settings)
    lines = [_INTRO, "## Which stop", "", "| table | when it is asked |", "| --- | --- |"]
    stops = [one for one in _given(Settings) if str(one.type) == GuardSettings.__name__]
    others = [one for one in _given(Settings) if one not in stops]
    lines += [f"| `[{stop.name}]` | {docs[stop.name]} |" for stop in stops]
    lines += ["", "[What the hooks answer](hooks.md) says which event of which runtime that is.", ""]
    lines += [f"## In each of these tables: {_lower(_said(GuardSettings))}", "", *_table(GuardSettings), ""]
    lines += [f"## In `tests`: {_lower(_said(TestSettings))}", "", *_table(TestSettings), ""]
    for other in others:
        kind = type(other.default_factory()) if other.default_factory is not MISSING else type(other.default)
        lines += [f"## In `[{other.name}]`: {_lower(_said(kind))}", "", *_table(kind), ""]
    lines.append(_OUTRO)
    return "\n".join(lines)


def settings_of(kind: type[Any]) -> Iterator[Setting]:
    """The keys of one table, in the order of its fields."""
    docs = _docs(kind)
    for one in _given(kind):
        yield Setting(one.name, _kind(one), _default(one), docs[one.name] or _UNSAID.get(one.name, ""))


def _table(kind: type[Any]) -> list[str]:
    rows = [
        f"| `{setting.name}` | {setting.kind} | {setting.default} | {setting.meaning} |"
        for setting in settings_of(kind)
    ]
    return ["| key | value | default | meaning |", "| --- | --- | --- | --- |", *rows]


def _given(kind: type[Any]) -> list[Field[Any]]:
    return [field for field in fields(kind) if field.metadata.get("setting", True)]


def _docs(kind: type[Any]) -> dict[str, str]:
    node = definition(kind.__module__, kind.__name__).node
    return documented_fields(node) if isinstance(node, ast.ClassDef) else {}


def _said(kind: type[Any]) -> str:
    return prose(definition(kind.__module__, kind.__name__).doc).split(". ")[0].rstrip(".")


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


_KINDS = {
    "tuple[str, ...]": "list of strings",
    "str": "string",
    "float": "seconds",
    "int": "whole number",
    "bool": "true or false",
}


def _kind(field: Field[Any]) -> str:
    # Annotations are strings there, as in every file that imports annotations from __future__.
    written = str(field.type).removesuffix(" | None")
    return _KINDS.get(written, "table")


def _default(field: Field[Any]) -> str:
    if field.default is MISSING and field.default_factory is MISSING:
        return "required"
    value = field.default_factory() if field.default_factory is not MISSING else field.default
    if value is None or is_dataclass(value):
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"`{list(value)}`" if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else f"{value}"
