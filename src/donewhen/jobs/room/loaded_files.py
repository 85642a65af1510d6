"""Files that agreed settings have a tool load by itself: a set-up of tests, a plug-in, settings that others extend.

Settings also name what is only looked at: the module of a program, the files that a linter leaves out. So a name counts
only where the settings say that it is loaded: by the word of the key, or by an import.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

_LOADS = re.compile(
    r"set-?_?up(?!-?_?tools)|tear-?_?down|plug-?in|^extends?$|preset|preload|^requires?$|^import$|loader|transform"
    r"|reporter|resolver|serializer|test-?_?environment|^(?:test)?_?runner|bootstrap|rcfile|config-?_?file|^config$"
    r"|rulesdir|rule_?paths|init-?_?hook|hooks?$|conftest|processor|matcher|global-?_?set",
    re.IGNORECASE,
)
"""Words in keys whose values are loaded."""
# What a package is made of, and what a check looks at, is not what judges it.
_PRODUCT = {
    "package.json": frozenset(
        (
            *("name", "main", "module", "browser", "types", "typings", "bin", "exports", "imports", "files", "man"),
            *("directories", "source", "scripts", "workspaces", "sideEffects", "unpkg", "style", "sass", "svelte"),
            *("dependencies", "devDependencies", "peerDependencies", "optionalDependencies", "overrides", "build"),
        )
    ),
    "pyproject.toml": frozenset(("project", "build-system", "dependency-groups")),
}
_PRODUCT_TABLES = frozenset({"entry-points", "entry_points", "scripts", "gui-scripts", "package-data", "dependencies"})
_COMMON = frozenset(
    {"--config", "--config-file", "--rcfile", "--plugin", "--plugins", "--setup", "--require", "--import"}
)
_PYTEST = frozenset({"-p", "-c", "--config-file", "--confcutdir"})
_OPTIONS = {
    "pytest": _PYTEST,
    "py.test": _PYTEST,
    "pylint": frozenset({"--load-plugins", "--rcfile", "--init-hook"}),
    **dict.fromkeys(("node", "mocha", "ts-node", "tsx", "ruby", "rspec", "ava"), _COMMON | {"-r"}),
}
"""Options whose values are loaded, by program."""
_SCRIPTS = (".js", ".cjs", ".mjs", ".ts", ".cts", ".mts")
_INI = (".ini", ".cfg", ".flake8", ".coveragerc", ".pylintrc", "pylintrc", ".isort.cfg")
_XML = (".xml", ".xml.dist")
_ATTRIBUTE = re.compile(r"""\b([A-Za-z][\w-]*)\s*=\s*["']([^"'\n<]+)["']""")
_YAML = (".yml", ".yaml", "rc")
_KEY = re.compile(r"""['"]?([A-Za-z_][\w-]*)['"]?\s*:\s*(\[[^\]]*\]|\{[^{}]*\}|(['"`]).*?\3)""", re.DOTALL)
_STRING = re.compile(r"""(['"`])([^'"`\n]+)\1""")
_IMPORT = re.compile(r"""\b(?:require(?:\.resolve)?\s*\(|import\s*\(|from|import)\s*(['"`])([^'"`\n]+)\1""")
_PYTEST_PLUGINS = re.compile(r"^pytest_plugins\b[^=\n]*=\s*(\[[^\]]*\]|\([^)]*\)|['\"].*)", re.MULTILINE)
_PREFIX = re.compile(r"^(?:<rootDir>|\$\{?\w+\}?|~~|@@|file:)/|^(?:\./)+")
_MAX_BYTES, _MAX_NAMES = 1 << 18, 200
_ENDINGS = ("", *_SCRIPTS, ".jsx", ".tsx", ".json", ".py", ".yml", ".yaml", ".toml", ".rb", ".lua", ".php")
_INDEX = (*(f"/index{ending}" for ending in _SCRIPTS), "/__init__.py", "/__main__.py")


@lru_cache(maxsize=512)
def loaded_by(name: str, content: bytes) -> tuple[str, ...]:
    """The names of what a settings file has loaded: paths, or dotted names of modules; they may lead to nothing."""
    last = name.rpartition("/")[2].casefold()
    text = content[:_MAX_BYTES].decode("utf-8", "replace")
    found: dict[str, None] = {}
    for value in _values(last, text):
        plain = _PREFIX.sub("", value.strip())
        if plain and not plain.startswith(("/", "-", "@")) and "\n" not in plain:
            found[plain] = None
    return tuple(found)[:_MAX_NAMES]


def possible_files(name: str) -> Iterator[str]:
    """The files that such a name can mean, relative to some folder."""
    path = str(PurePosixPath(name))
    for ending in (*_ENDINGS, *_INDEX):
        yield f"{path}{ending}"
    module = name.partition(":")[0]
    if "/" not in module and re.fullmatch(r"[A-Za-z_][\w.]*", module):
        inner = module.replace(".", "/")
        yield from (f"{inner}.py", f"{inner}/__init__.py")
        # The last part may be a name in the module.
        above = inner.rpartition("/")[0]
        if above:
            yield f"{above}.py"


def loaded_by_options(program: str, words: Sequence[str]) -> Iterator[str]:
    """What the options of a command have loaded, such as `-p shop.plugin` of pytest."""
    options = _OPTIONS.get(program, _COMMON)
    for position, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in options:
            yield _PREFIX.sub("", value if equals else "".join(words[position + 1 : position + 2]))
        elif option[:2] in options and len(option) > 2 and not word.startswith("--"):
            yield word[2:]


def _values(last: str, text: str) -> Iterator[str]:
    if last == "conftest.py":
        yield from (value for match in _PYTEST_PLUGINS.findall(text) for _, value in _STRING.findall(match))
    elif last.endswith(_SCRIPTS):
        yield from (value for _, value in _IMPORT.findall(text) if value.startswith("."))
        for key, value, _ in _KEY.findall(text):
            if _LOADS.search(key):
                yield from (string for _, string in _STRING.findall(value))
    elif last.endswith(_INI):
        yield from _in_ini(text)
    elif last.endswith(_XML):
        yield from (value for key, value in _ATTRIBUTE.findall(text) if _LOADS.search(key))
    else:
        yield from _in_document(last, text)


def _in_document(last: str, text: str) -> Iterator[str]:
    try:
        document = _parsed(last, text)
    except (ValueError, RecursionError):
        return
    if isinstance(document, dict):
        product = _PRODUCT.get(last, frozenset())
        document = {key: value for key, value in document.items() if key not in product}
    yield from _strings(document, loads=False)


def _parsed(last: str, text: str) -> Any:
    if last.endswith(".toml"):
        return tomllib.loads(text)
    if last.endswith((".json", ".jsonc", ".json5")):
        return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return _yaml(text) if last.endswith(_YAML) else None


def _yaml(text: str) -> Any:
    # Not where no YAML is read: this is loaded by hooks, too.
    import yaml

    class Plain(yaml.SafeLoader):
        """Reads tags of other programs as nothing."""

    Plain.add_multi_constructor("", lambda *_: None)
    try:
        return yaml.load(text, Loader=Plain)  # noqa: S506 - it makes nothing but plain values
    except yaml.YAMLError:
        return None


def _strings(value: Any, *, loads: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            word = str(key)
            if word in _PRODUCT_TABLES:
                continue
            if word == "addopts":
                yield from _in_options(inner)
            if loads and inner is not False:
                yield word
            yield from _strings(inner, loads=loads or bool(_LOADS.search(word)))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, loads=loads)
    elif isinstance(value, str) and loads:
        yield value


def _in_options(value: Any) -> Iterator[str]:
    try:
        words = shlex.split(value) if isinstance(value, str) else [str(word) for word in value]
    except (TypeError, ValueError):
        return
    yield from loaded_by_options("pytest", words)


def _in_ini(text: str) -> Iterator[str]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=", ":"))
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for section in parser.sections():
        if any(word in section for word in ("entry_points", "package_data")):
            continue
        for key, value in parser.items(section):
            if key == "addopts":
                yield from _in_options(value)
            elif value and (_LOADS.search(key) or "plugins" in section):
                # `NAME = package.module:Class`, and lists with commas or lines.
                yield from (part for part in re.split(r"[\s,]+", value.replace(" = ", "\n")) if part)
