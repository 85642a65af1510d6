"""Signs in JavaScript and TypeScript, found in the text without its comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from donewhen.signs.kinds import SignKind
from donewhen.signs.python_reach import Finding
from donewhen.signs.test_words import is_framework, names_framework, names_report, speaks_of_tests

_TOKENS = re.compile(r"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`", re.DOTALL)
_JOINED = re.compile(r"(['\"])((?:\\.|(?!\1)[^\\\n])*)\1\s*\+\s*(['\"])((?:\\.|(?!\3)[^\\\n])*)\3")
_TEXT = re.compile(r"(['\"`])((?:\\.|(?!\1)[^\\\n])*)\1")
_ENVIRONMENT = re.compile(
    r"\b(?:process|Bun|Deno|import\.meta)\.env\b(?:\?\.|\.)?\s*(?:\[\s*['\"]([^'\"]+)['\"]|(\w+))?"
)
_TESTS = r"(?:expect|describe|it|test|jest|vi|vitest|mocha|beforeEach|afterEach|assert|__vitest_\w+|__jest\w*)"
_BUILT_IN = (
    r"(?:node:)?(?:assert|assert/strict|async_hooks|buffer|child_process|crypto|events|fs|fs/promises|module|os|path"
    r"|perf_hooks|process|stream|test|timers|timers/promises|util|v8|vm|worker_threads)"
)
_NAMED = re.compile(
    rf"\b(?:const|let|var)\s+(\w+)\s*=\s*(?:await\s+import|require)\(\s*['\"]{_BUILT_IN}['\"]\s*\)(?!\s*\.)"
    rf"|\bimport\s+(?:\*\s*as\s+)?(\w+)\s+from\s+['\"]{_BUILT_IN}['\"]"
)
"""Names that a file gives to modules of the platform."""
_OWNER = (
    r"(?:Object|Array|Function|String|Number|Boolean|Math|JSON|Date|Promise|Reflect|Symbol|Map|Set|RegExp|Error|Proxy"
    r"|console|performance|process(?:\.\w+)?|assert|util|fs|globalThis|global)"
)


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_SIGNS: tuple[tuple[SignKind, str, re.Pattern[str]], ...] = (
    (
        "test-machinery",
        "uses the globals of a test framework",
        _any_of(
            rf"\b(?:globalThis|global|window|self)\s*(?:\?\.|\.)\s*{_TESTS}\b",
            rf"\b(?:globalThis|global|window|self)\[\s*['\"]{_TESTS}['\"]",
            rf"\btypeof\s+{_TESTS}\b",
        ),
    ),
    (
        "test-machinery",
        "reads the arguments of its runner",
        _any_of(r"\bprocess\.(?:argv|execArgv)\b[^\n;]*(?i:test|report)"),
    ),
    (
        "frames",
        "reads the stack of its callers",
        _any_of(
            r"\bcaptureStackTrace\b",
            r"\bprepareStackTrace\b",
            r"\barguments\.callee\b",
            r"\bnew\s+Error\([^)]*\)\.stack",
        ),
    ),
    (
        "frames",
        "asks which program has loaded it",
        _any_of(
            # `if (require.main === module)` starts a program, and `!module.parent` in older code.
            r"(?<!if \()(?<!if\()(?<!if \(!)\brequire\.main\b(?!\?*\.filename\s*===\s*__filename)",
            r"\bmodule\.parent\s*(?:&&[^\n;]*\bmodule\.parent|\?)?\.\s*\w+",
            r"\brequire\.main\s*[!=]==?\s*module\s*\?",
        ),
    ),
    (
        "exit-hooks",
        "runs code while the process ends",
        _any_of(r"\bprocess\.(?:on|once|addListener|prependListener)\(\s*['\"](?:exit|beforeExit)['\"]"),
    ),
    (
        "exit-hooks",
        "changes how the process ends",
        _any_of(
            r"\bprocess\.exitCode\s*=\s*(?:0\b|undefined\b|null\b|void\b|false\b|['\"]0)",
            r"\bprocess\.(?:reallyExit|abort\b|kill\(\s*process\.)",
            r"\bprocess\.(?:removeAllListeners\(|emit\()",
            r"\bprocess\[\s*['\"](?:exit|reallyExit|abort|kill|exitCode|emit|removeAllListeners)['\"]",
        ),
    ),
    (
        "patches",
        "replaces a part of a built-in",
        _any_of(
            rf"(?<![\w.])(?!process\.(?:exitCode|title)\b){_OWNER}(?:\.prototype)?\.\w+\s*=(?![=>])",
            rf"(?<![\w.]){_OWNER}\.prototype\[[^\]\n]+\]\s*=(?!=)",
            rf"\b(?:Object|Reflect)\.definePropert(?:y|ies)\(\s*{_OWNER}\b(?!\.\w*\()",
            rf"\bObject\.assign\(\s*{_OWNER}\b",
            rf"\b(?:Object\.(?:definePropert(?:y|ies)|assign)|Reflect\.\w+)\(\s*require\(\s*['\"]{_BUILT_IN}['\"]",
            r"\brequire\.cache\b",
            r"\bModule\._\w+",
            r"\bsyncBuiltinESMExports\b|\bregisterHooks\(|\b[mM]odule\.register\(",
            rf"\b(?:require|import)\(\s*['\"]{_BUILT_IN}['\"]\s*\)\)?(?:\.\w+|\[[^\]\n]+\])+\s*=(?![=>])",
            r"\bprocess\.std(?:out|err)\.(?:_handle|_write\w*)\b",
        ),
    ),
    (
        "interpreter",
        "reaches into the process",
        _any_of(
            r"\bprocess\.(?:binding|_linkedBinding)\b",
            r"\bfs\.(?:write|writev)(?:Sync)?\(\s*(?:[3-9]|\d\d)\b",
            r"/proc/self",
            r"['\"](?:node:)?(?:inspector|v8)(?:/promises)?['\"]",
            r"\bprocess\._\w+",
            r"\bfs\.closeSync\(\s*(?:[3-9]|\d\d)\b",
        ),
    ),
    (
        "equality",
        "answers every comparison",
        _any_of(
            r"\[Symbol\.(?:toPrimitive|hasInstance)\]",
            r"\basymmetricMatch\b",
            r"\b(?:equals|toJSON|valueOf)\s*\([^)]*\)\s*\{\s*return\s+true\b",
        ),
    ),
    (
        "obscured",
        "runs text as code, or hides what a text says",
        _any_of(
            r"(?<![\w.])eval\(",
            r"\bnew\s+Function\(",
            r"\bvm\.(?:run\w+|Script)\b",
            r"\batob\(\s*['\"]",
            r"\bString\.fromCharCode\(\s*\d",
        ),
    ),
)
_NODE_ENV = re.compile(r"\bNODE_ENV\b[^\n]*['\"]test['\"]|['\"]test['\"][^\n]*\bNODE_ENV\b")


def script_reaching(text: str) -> Iterator[Finding]:
    """Yield what reaches for test machinery."""
    code = _without_comments(text)
    joined = _with_joined_texts(code)
    names = "|".join(sorted({re.escape(first or second) for first, second in _NAMED.findall(joined)}))
    replaced = re.compile(rf"(?<![\w.$])(?:{names})(?:\.\w+|\[[^\]\n]+\])+\s*=(?![=>])") if names else None
    for number, line in enumerate(joined.split("\n"), 1):
        if replaced is not None and replaced.search(line):
            yield _at("patches", number, "replaces a part of a module of the platform")
        for kind, why, pattern in _SIGNS:
            if pattern.search(line):
                yield _at(kind, number, why)
        for match in _ENVIRONMENT.finditer(line):
            name = match[1] or match[2] or ""
            if speaks_of_tests(name):
                yield _at("test-machinery", number, f"asks for the variable {name}")
        if _NODE_ENV.search(line):
            yield _at("test-machinery", number, "asks whether tests run")
        of_environment = _ENVIRONMENT.search(line) is not None
        for match in _TEXT.finditer(line):
            word = match[2]
            if of_environment and speaks_of_tests(word):
                yield _at("test-machinery", number, f"asks for the variable {word}")
            if names_framework(word) or names_report(word) or word in ("node:test", "bun:test") or is_framework(word):
                yield _at("test-machinery", number, f"names {word!r}")


def _without_comments(text: str) -> str:
    def kept(match: re.Match[str]) -> str:
        token = match.group()
        return re.sub(r"[^\n]", " ", token) if token.startswith(("//", "/*")) else token

    return _TOKENS.sub(kept, text)


def _with_joined_texts(text: str) -> str:
    """The code with texts that are put together from parts written as one."""
    for _ in range(20):
        changed = _JOINED.sub(lambda match: f"{match[1]}{match[2]}{match[4]}{match[1]}", text)
        if changed == text:
            break
        text = changed
    return text


def _at(kind: SignKind, line: int, why: str) -> Finding:
    return Finding(kind, line, frozenset({line}), why)
