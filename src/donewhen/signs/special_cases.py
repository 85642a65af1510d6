"""Signs of special cases: an input of a visible test stands in product code together with the expected result.

That a number or a text occurs in both is no sign: tests name the same statuses, ports and messages as the code. Only a
pair is, in a branch, a table or a function that does nothing else.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import NamedTuple

from donewhen.signs.changed_lines import split_lines
from donewhen.signs.python_module import PythonModule
from donewhen.signs.python_reach import Finding, finding

_STATUSES = frozenset(int(status) for status in HTTPStatus)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_-]*")
_MAX_ROWS = 2000


class LineOfTest(NamedTuple):
    """A line of a test."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text.strip()[:160]}"


class ExpectedValues:
    """The inputs and expected results that visible tests name."""

    def __init__(self, tests: Mapping[str, str]) -> None:
        self.pairs: dict[tuple[str, str], LineOfTest] = {}
        self.results: dict[str, LineOfTest] = {}
        for name, text in tests.items():
            if name.endswith(".py"):
                self._read_python(name, text)
            else:
                self._read_script(name, text)

    def _read_python(self, name: str, text: str) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        lines = split_lines(text)
        for node in ast.walk(tree):
            for given, expected in _tested(node):
                line = getattr(node, "lineno", 1)
                place = LineOfTest(name, line, lines[line - 1])
                self.results.setdefault(expected, place)
                if given is not None:
                    self.pairs.setdefault((given, expected), place)

    def _read_script(self, name: str, text: str) -> None:
        for number, line in enumerate(split_lines(text), 1):
            for match in _SCRIPT_TEST.finditer(line):
                given, expected = script_literal(match[1]), script_literal(match[2])
                if given is not None and expected is not None:
                    self.pairs.setdefault((given, expected), LineOfTest(name, number, line))


def special_cases(module: PythonModule, tests: ExpectedValues) -> Iterator[tuple[Finding, str]]:
    """Yield code that answers the inputs of visible tests, with the line of the test."""
    if not tests.pairs and not tests.results:
        return
    for node in module.nodes:
        match node:
            case ast.If(test=test, body=body):
                yield from _branch(module, node, test, [*body], tests)
            case ast.IfExp(test=test, body=value):
                yield from _branch(module, node, test, [value], tests)
            case ast.match_case(pattern=ast.MatchValue(value=given), body=body):
                yield from _branch(module, given, ast.Compare(given, [ast.Eq()], [given]), [*body], tests)
            case ast.Dict(keys=keys, values=values):
                rows = [(literal(key), literal(value), key) for key, value in zip(keys, values, strict=True) if key]
                yield from _table(module, node, rows, tests, is_dict=True)
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                rows = [
                    (literal(item.elts[0]), literal(item.elts[-1]), item)
                    for item in items[:_MAX_ROWS]
                    if isinstance(item, ast.Tuple | ast.List) and len(item.elts) == 2
                ]
                yield from _table(module, node, rows, tests, is_dict=False)
            case ast.Return(value=value) if value is not None:
                yield from _fixed_result(module, node, value, tests)


def script_special_cases(text: str, tests: ExpectedValues) -> Iterator[tuple[Finding, str]]:
    """The same in JavaScript and TypeScript."""
    for pattern in _SCRIPT_BRANCHES if tests.pairs else ():
        for match in pattern.finditer(text):
            given, expected = script_literal(match[1]), script_literal(match[2])
            place = tests.pairs.get((given or "", expected or ""))
            if given is not None and expected is not None and place is not None and _is_particular(given, expected):
                first = text.count("\n", 0, match.start(1)) + 1
                last = text.count("\n", 0, match.end(2)) + 1
                why = f"answers {given} with {expected}, as a visible test expects"
                yield Finding("special-cases", first, frozenset(range(first, last + 1)), why), str(place)


def _branch(
    module: PythonModule, node: ast.AST, test: ast.expr, body: list[ast.AST], tests: ExpectedValues
) -> Iterator[tuple[Finding, str]]:
    results = [result for part in body for value in _values(part) if (result := literal(value)) is not None]
    for part in ast.walk(test):
        if not isinstance(part, ast.Compare) or not isinstance(part.ops[0], ast.Eq | ast.In | ast.Is):
            continue
        for given in _given(part):
            for result in results:
                place = tests.pairs.get((given, result))
                if place is not None and _is_particular(given, result):
                    why = f"answers {given} with {result}, as a visible test expects"
                    yield finding(module, "special-cases", node, why, *body), str(place)


def _given(node: ast.Compare) -> Iterator[str]:
    for side in (node.left, *node.comparators):
        parts = (
            side.elts
            if isinstance(side, ast.Tuple | ast.List | ast.Set) and isinstance(node.ops[0], ast.In)
            else [side]
        )
        for part in parts:
            value = literal(part)
            if value is not None:
                yield value


def _values(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement of a branch gives, but not what branches inside of it give."""
    match node:
        case ast.Return(value=ast.expr() as value) | ast.Assign(value=value) | ast.Expr(value=ast.Yield(value=value)):
            if value is not None:
                yield value
        case ast.expr():
            yield node


def _table(
    module: PythonModule,
    node: ast.expr,
    rows: list[tuple[str | None, str | None, ast.expr]],
    tests: ExpectedValues,
    *,
    is_dict: bool,
) -> Iterator[tuple[Finding, str]]:
    known = [
        (given, result, part, tests.pairs[given, result])
        for given, result, part in rows
        if given is not None and result is not None and (given, result) in tests.pairs
    ]
    if not known or len(known) * 2 < len(rows) or (len(rows) >= 4 and len(known) < 2):
        return
    for given, result, part, place in known:
        # Names with their values are how tables of a program look.
        if _is_particular(given, result) and not (_is_word(given) and is_dict):
            why = f"has {given} with {result} in a table, as a visible test expects"
            found = finding(module, "special-cases", part, why)
            yield found._replace(lines=frozenset({getattr(part, "lineno", found.line)})), str(place)


def _fixed_result(
    module: PythonModule, node: ast.Return, value: ast.expr, tests: ExpectedValues
) -> Iterator[tuple[Finding, str]]:
    result = literal(value)
    function = module.function_of(node)
    if result is None or function is None or result not in tests.results:
        return
    place = tests.results[result]
    if isinstance(value, ast.List | ast.Tuple | ast.Dict) and _length(value) >= 3:
        if all(_is_trivial(literal(part) or "") for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr)):
            return
        yield finding(module, "special-cases", node, f"returns {result[:60]}, which a visible test expects"), str(place)
        return
    args = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args) if arg.arg not in ("self", "cls")]
    body = [part for part in function.body if part.lineno >= function.body[0].lineno and not _is_docstring(part)]
    if args and body == [node] and not function.name.startswith("__") and _is_particular_value(result):
        why = f"returns {result} whatever it is given, which a visible test expects"
        yield finding(module, "special-cases", node, why), str(place)


def literal(node: ast.AST | None) -> str | None:
    """A literal value in one form; None for anything else."""
    if not isinstance(node, ast.Constant | ast.UnaryOp | ast.Tuple | ast.List | ast.Dict | ast.Set):
        return None
    try:
        value = ast.literal_eval(node)
        text = repr([*value] if isinstance(value, tuple) else value)
    except (ValueError, TypeError, MemoryError, RecursionError, SyntaxError):
        return None
    return text if len(text) <= 2000 and value is not Ellipsis else None


def _tested(node: ast.AST) -> Iterator[tuple[str | None, str]]:
    """Yield inputs with expected results of a part of a test."""
    match node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            yield from _called_with(left, right)
            yield from _called_with(right, left)
        case ast.Call(func=ast.Attribute(attr=name), args=[first, second, *_]) if name.startswith("assert"):
            yield from _called_with(first, second)
            yield from _called_with(second, first)
        case ast.Assert(test=ast.Call() as call):
            yield from _called_with(call, ast.Constant(True))
        case ast.Assert(test=ast.UnaryOp(op=ast.Not(), operand=ast.Call() as call)):
            yield from _called_with(call, ast.Constant(False))
        case ast.List(elts=items) | ast.Tuple(elts=items) if len(items) > 1:
            for item in items[:_MAX_ROWS]:
                if isinstance(item, ast.Tuple | ast.List) and len(item.elts) >= 2:
                    expected = literal(item.elts[-1])
                    for part in item.elts[:-1] if expected is not None else ():
                        given = literal(part)
                        if given is not None and expected is not None:
                            yield given, expected
        case ast.Dict(keys=keys, values=values) if len(keys) > 1:
            for key, value in zip(keys, values, strict=True):
                given, expected = literal(key), literal(value)
                if given is not None and expected is not None:
                    yield given, expected


def _called_with(call: ast.expr, result: ast.expr) -> Iterator[tuple[str | None, str]]:
    expected = literal(result)
    if expected is None or not any(isinstance(part, ast.Call) for part in ast.walk(call)):
        return
    yield None, expected
    for part in ast.walk(call):
        if isinstance(part, ast.Call):
            given = [literal(arg) for arg in (*part.args, *(keyword.value for keyword in part.keywords))]
            yield from ((value, expected) for value in given if value is not None)
            if len(part.args) > 1 and None not in given:
                whole = literal(ast.Tuple([*part.args], ast.Load()))
                if whole is not None:
                    yield whole, expected


def _is_particular(given: str, result: str) -> bool:
    """Whether a pair is more than a base case, such as 0 and 1, or a name and its value."""
    if _is_trivial(given):
        return False
    if _is_trivial(result):
        return _is_particular_value(given) and not _is_text(given)
    return _is_particular_value(given) or _is_particular_value(result) or _is_calculated(given, result)


def _is_calculated(given: str, result: str) -> bool:
    """Whether both are numbers, of which one is no digit."""
    numbers = [int(text) for text in (given, result) if text.lstrip("-").isdigit()]
    return len(numbers) == 2 and max(map(abs, numbers)) >= 10


def _is_trivial(text: str) -> bool:
    return text in ("0", "1", "2", "-1", "True", "False", "None", "''", "[]", "{}", "b''", "0.0", "1.0", "10", "100")


def _is_text(text: str) -> bool:
    return text[:1] in "'\"" or text[:2] in ("b'", 'b"')


def _is_word(text: str) -> bool:
    return _is_text(text) and _WORD.fullmatch(text.strip("b'\"")) is not None


def _is_particular_value(text: str) -> bool:
    """Whether a value is too particular to occur in code by itself."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int):
        round_number = value % 100 == 0 or (value > 0 and math.log2(value).is_integer())
        return abs(value) >= 100 and not round_number and value not in _STATUSES
    if isinstance(value, float):
        return len(repr(value).replace(".", "").strip("0-")) >= 3
    if isinstance(value, str | bytes):
        return len(value) >= 4 and not _is_word(text)
    return len(value) >= 2


def _length(node: ast.List | ast.Tuple | ast.Dict) -> int:
    return len(node.values) if isinstance(node, ast.Dict) else len(node.elts)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


_SCRIPT_VALUE = r"(-?\d[\d_.]*|'[^'\n]*'|\"[^\"\n]*\"|\[[^\[\]\n]*\])"
_SCRIPT_TEST = re.compile(
    rf"\(\s*[\w.]+\(\s*{_SCRIPT_VALUE}\s*\)\s*\)?\s*(?:\)|\.(?:not\.)?)?\s*(?:\.?\s*to\w+\s*\(|,)\s*{_SCRIPT_VALUE}"
)
_SCRIPT_BRANCHES = (
    re.compile(rf"===?\s*{_SCRIPT_VALUE}\s*\)\s*\{{?\s*return\s+{_SCRIPT_VALUE}"),
    re.compile(rf"\bcase\s+{_SCRIPT_VALUE}\s*:\s*\{{?\s*return\s+{_SCRIPT_VALUE}"),
    re.compile(rf"===?\s*{_SCRIPT_VALUE}\s*\)?\s*\?\s*{_SCRIPT_VALUE}"),
    re.compile(rf"[{{,]\s*{_SCRIPT_VALUE}\s*:\s*{_SCRIPT_VALUE}\s*(?=[,}}])"),
    re.compile(rf"\[\s*{_SCRIPT_VALUE}\s*,\s*{_SCRIPT_VALUE}\s*\]"),
)


def script_literal(text: str) -> str | None:
    """A literal of a script in the form of those of Python."""
    try:
        return literal(ast.parse(text.replace("_", "") if text[:1].isdigit() else text, mode="eval").body)
    except (SyntaxError, ValueError):
        return None
