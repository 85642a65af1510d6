"""Generate docs/reference/settings.md from the fields, defaults and docstrings of the settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any

from donewhen.config import CONFIG_FILE, PROJECT_FILE, GuardSettings, Settings, TestSettings
from tools.api_reference import definition, documented_fields, prose

_INTRO = f"""\
# Settings

The settings define what *done* means for agents in a project, and how long an agent is held back. They are in
`{CONFIG_FILE}`, or under `[tool.donewhen]` in `{PROJECT_FILE}`: in the folder in which the agent works, or in the
nearest folder above it, up to the root of the repository. Paths are relative to the folder of that file, and commands
run in it. It is an error to use both in one folder. Without settings, every stop is allowed.

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

An unknown key is an error, so that a typo can't disable a check. While the settings can't be read, stops are refused,
up to the default cap. Write `fils` in `{CONFIG_FILE}`:

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

- A file must be a regular file that is not empty.
- A command is split into words and run without a shell; shell syntax is refused. It gets `PATH`, `HOME`, the locale and
  similar environment variables, and those named in `pass_env`. See
  [check in CI](../howto/check-in-ci.md#there-is-no-shell).
- Tests must succeed *and* write a JUnit report with the same result. See
  [keep every test](../howto/keep-every-test.md).
- All checks are run, so that the agent sees everything that is missing at once.
"""

# Descriptions of the fields that have no docstring.
_UNSAID = {
    "run": "The command that runs the tests, with `{junit}` or `{junit_dir}` in place of the report's path.",
    "baseline": "The file with the tests that must not disappear, as written by `donewhen baseline`.",
    "timeout": "Time limit of the tests in seconds.",
    "pass_env": "Environment variables that are passed to the tests.",
}


@dataclass(frozen=True)
class Setting:
    """One key of the file."""

    name: str
    kind: str
    default: str
    meaning: str


def settings_page() -> str:
    """Return the page with every setting: its type, default and meaning."""
    docs = _docs(Settings)
    lines = [_INTRO, "## Kinds of stops", "", "| table | when it applies |", "| --- | --- |"]
    stops = [field for field in _given(Settings) if str(field.type) == GuardSettings.__name__]
    others = [field for field in _given(Settings) if field not in stops]
    lines += [f"| `[{stop.name}]` | {docs[stop.name]} |" for stop in stops]
    lines += ["", "[What the hooks answer](hooks.md) lists the matching events of each runtime.", ""]
    lines += [f"## In each of these tables: {_lower(_said(GuardSettings))}", "", *_table(GuardSettings), ""]
    lines += [f"## In `tests`: {_lower(_said(TestSettings))}", "", *_table(TestSettings), ""]
    for other in others:
        kind = type(other.default_factory()) if other.default_factory is not MISSING else type(other.default)
        lines += [f"## In `[{other.name}]`: {_lower(_said(kind))}", "", *_table(kind), ""]
    lines.append(_OUTRO)
    return "\n".join(lines)


def settings_of(kind: type[Any]) -> Iterator[Setting]:
    """Yield the keys of one table, in the order of its fields."""
    docs = _docs(kind)
    for field in _given(kind):
        yield Setting(field.name, _kind(field), _default(field), docs[field.name] or _UNSAID.get(field.name, ""))


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
    # Annotations are strings, because the settings import annotations from __future__.
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
