"""Signs in comments that silence tools, in any language, and in weaker tests and thresholds."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from donewhen.signs.changed_lines import split_lines
from donewhen.signs.kinds import SignKind
from donewhen.signs.python_reach import Finding

Tool = str

_SILENCES: Mapping[str, tuple[Tool, ...]] = {
    r"#\s*(?:ruff:\s*|flake8:\s*)?noqa\b": ("ruff", "flake8", "pycodestyle", "pyflakes", "pylama"),
    r"#\s*type:\s*ignore\b": ("mypy", "pyright", "pyre", "ty", "pytype", "basedpyright"),
    r"#\s*(?:based)?pyright:\s*(?:ignore|basic|off)|#\s*pyre-(?:ignore|fixme|unsafe)": (
        "pyright",
        "basedpyright",
        "pyre",
    ),
    r"#\s*mypy:\s*(?:ignore|disable|allow)|#\s*ty:\s*ignore": ("mypy", "ty"),
    r"#\s*pylint:\s*(?:disable|skip)": ("pylint",),
    r"#\s*nosec\b": ("bandit",),
    r"#\s*pragma:\s*no\s*(?:cover|branch)": ("coverage", "--cov", "pytest-cov"),
    r"\beslint-disable|\bbiome-ignore|\bdeno-lint-ignore|\boxlint-disable": ("eslint", "biome", "deno", "oxlint", "xo"),
    r"@ts-(?:ignore|expect-error|nocheck)\b": ("tsc", "vue-tsc", "tsd", "typescript"),
    r"\b(?:istanbul|c8|v8|node:coverage)\s+(?:ignore|disable)": ("--coverage", "c8", "nyc", "istanbul", "coverage"),
    r"\bstylelint-disable": ("stylelint",),
    r"\bNOSONAR\b": ("sonar", "sonar-scanner"),
    r"//\s*nolint\b": ("golangci-lint", "staticcheck"),
    r"#!?\[(?:allow|expect)\(": ("clippy", "rustc", "cargo clippy"),
    r"@SuppressWarnings\b|@SuppressFBWarnings\b|CHECKSTYLE:OFF": (
        "checkstyle",
        "spotbugs",
        "pmd",
        "errorprone",
        "-Werror",
    ),
    r"\bNOLINT(?:NEXTLINE|BEGIN)?\b": ("clang-tidy", "cpplint"),
    r"#\s*shellcheck\s+disable": ("shellcheck",),
    r"#\s*rubocop:\s*(?:disable|todo)": ("rubocop",),
    r"@phpstan-ignore|@psalm-suppress|phpcs:(?:ignore|disable)": ("phpstan", "psalm", "phpcs"),
    r"#\s*yamllint\s+disable": ("yamllint",),
    r"<!--\s*markdownlint-disable": ("markdownlint",),
}
"""Comments, and the tools that they silence."""
_TYPE_CHECKERS = ("mypy", "pyright", "pyre", "ty", "pytype", "basedpyright")
_UNCHECKED = re.compile(r"^\s*@(?:\w+\.)*no_type_check\b|^\s*(?:el)?if\s+not\s+(?:\w+\.)?TYPE_CHECKING\b")
"""Code that hides other code from type checkers."""
_COMPILED = tuple((re.compile(pattern), tools) for pattern, tools in _SILENCES.items())
TOOLS: frozenset[Tool] = frozenset(tool for tools in _SILENCES.values() for tool in tools)

_SKIPS = re.compile(
    r"\bpytest\.(?:skip|xfail|importorskip|exit)\b|\bmark\.(?:skip|skipif|xfail)\b|\bunittest\.(?:skip\w*|expectedFailure)"
    r"|\bself\.skipTest\b|@skip(?:If|Unless)?\b|@expectedFailure\b|\bSkipTest\b"
    r"|\b(?:it|test|describe|suite|context)\.(?:skip|todo|failing|fails|skipIf)\b|\bx(?:it|describe|test)\s*\("
    r"|\bskip\s*:\s*(?:true|['\"])|\bt\.Skip(?:f|Now)?\(|#\[ignore|@(?:Disabled|Ignore)\b|\bmarkTestSkipped\b"
)
_LEAST = re.compile(
    r"(?i)[\"']?\b(fail[_-]under|cov-fail-under|minimum[_-]coverage|min[_-]coverage|lines|branches|functions|statements"
    r"|check[_-]coverage|covered[_-]ratio|minimum)\b[\"']?\s*[:=]?\s*[\"']?(\d+(?:\.\d+)?)"
)
_MOST = re.compile(
    r"(?i)[\"']?\b((?:test[_-]?)?timeout|max[_-]?warnings|max[_-]complexity|max[_-]?failures|retries|reruns|tolerance"
    r"|allowed[_-]\w+)\b[\"']?\s*[:=]?\s*[\"']?(\d+(?:\.\d+)?)"
)
_PROSE = (".md", ".rst", ".txt", ".adoc", ".html")


def silencing(name: str, text: str, tools: Collection[Tool]) -> Iterator[tuple[Finding, bool]]:
    """Yield comments that silence tools, and whether one of those is part of the checks."""
    if PurePosixPath(name).suffix.lower() in _PROSE:
        return
    for number, comment in _comments(name, text):
        for pattern, silenced in _COMPILED:
            match = pattern.search(comment)
            if match is not None:
                tool = next((tool for tool in silenced if tool in tools), "")
                why = f"silences {tool or silenced[0]}"
                yield _finding("suppressions", number, why), bool(tool)
                break
    for number, line in enumerate(split_lines(text) if name.endswith((".py", ".pyi")) else (), 1):
        if _UNCHECKED.search(line):
            tool = next((tool for tool in _TYPE_CHECKERS if tool in tools), "")
            yield _finding("suppressions", number, f"silences {tool or _TYPE_CHECKERS[0]}"), bool(tool)


def weakening(name: str, before: str | None, after: str) -> Iterator[Finding]:
    """Yield what makes a test, or the settings of one, ask for less than before."""
    if PurePosixPath(name).suffix.lower() in _PROSE:
        return
    for number, line in enumerate(split_lines(after), 1):
        if _SKIPS.search(line):
            yield _finding("weaker-tests", number, "skips a test, or expects it to fail")
    for pattern, least in ((_LEAST, True), (_MOST, False)):
        old, new = _numbers(pattern, before or ""), _numbers(pattern, after)
        for key, (value, number) in new.items():
            if key in old and (value < old[key][0] if least else value > old[key][0]):
                change = "lowered" if least else "raised"
                yield _finding("weaker-tests", number, f"{key} was {change} from {old[key][0]:g} to {value:g}")


def _numbers(pattern: re.Pattern[str], text: str) -> dict[str, tuple[float, int]]:
    found: dict[str, tuple[float, int]] = {}
    for number, line in enumerate(split_lines(text), 1):
        for match in pattern.finditer(line):
            found.setdefault(match[1].casefold(), (float(match[2]), number))
    return found


def _comments(name: str, text: str) -> Iterable[tuple[int, str]]:
    if name.endswith((".py", ".pyi", ".pyx")):
        try:
            tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
        except (tokenize.TokenError, SyntaxError, ValueError):
            tokens = []
        if tokens:
            return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    return enumerate(split_lines(text), 1)


def _finding(kind: SignKind, line: int, why: str) -> Finding:
    return Finding(kind, line, frozenset({line}), why)
