"""The small changes of Python code that a test should notice: pure, from the text of a module.

Text that is only shown (docstrings, messages of errors and assertions, annotations) is left alone, and so is what only
a type checker reads: nobody would want a test for it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.FloorDiv,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_OTHER_NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "lower": "upper",
    "upper": "lower",
    "startswith": "endswith",
    "endswith": "startswith",
    "lstrip": "rstrip",
    "rstrip": "lstrip",
    "find": "rfind",
    "rfind": "find",
    "append": "remove",
}
_TRANSPARENT = frozenset({"sorted", "set", "reversed", "abs", "list", "int", "round", "str", "tuple", "float"})
"""Functions whose call can be replaced by their argument."""
_SHOWN = frozenset({"print", "debug", "info", "warning", "error", "exception", "critical", "log", "warn"})
"""Functions that only show something."""
_LONGEST = 80


@dataclass(frozen=True)
class CodeChange:
    """One small change of a module's text. Columns and offsets count bytes, as Python's own parser does."""

    line: int
    column: int
    kind: str
    original: str
    changed: str
    start: int
    end: int
    replacement: str

    def applied_to(self, text: str) -> str:
        """The text with this change."""
        data = text.encode()
        return (data[: self.start] + self.replacement.encode() + data[self.end :]).decode()

    def __str__(self) -> str:
        return f"line {self.line}: {_short(self.original)} → {_short(self.changed)}"


def code_changes(text: str, lines: Collection[int] | None = None) -> tuple[CodeChange, ...]:
    """The small changes of a module, of these lines only if they are given; none if it can't be parsed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[tuple[int, int, str], CodeChange] = {}
    for node, parent in _deciding(tree):
        if lines is not None and not any(line in lines for line in _own_lines(node)):
            continue
        for kind, new in _variants(node, parent):
            change = _change(node, new, kind, starts)
            found.setdefault((change.start, change.end, change.replacement), change)
    return tuple(sorted(found.values(), key=lambda change: (change.start, change.end, change.kind)))


def _change(node: ast.expr | ast.stmt, new: ast.AST, kind: str, starts: list[int]) -> CodeChange:
    start = starts[node.lineno - 1] + node.col_offset
    end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
    original, changed = ast.unparse(node), ast.unparse(new)
    replacement = f"({changed})" if isinstance(node, ast.expr) else changed
    return CodeChange(node.lineno, node.col_offset, kind, original, changed, start, end, replacement)


def _own_lines(node: ast.expr | ast.stmt) -> range:
    """The lines that belong to the node itself and not to a block in it."""
    last = node.end_lineno or node.lineno
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        last = max(node.lineno, body[0].lineno - 1)
    return range(node.lineno, last + 1)


def _deciding(node: ast.AST, parent: ast.AST | None = None) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST | None]]:
    """The nodes that may decide something, each with its parent."""
    if isinstance(node, ast.expr | ast.stmt):
        yield node, parent
    if _is_shown(node):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_docstring(child):
                yield from _deciding(child, node)


def _is_shown(node: ast.AST) -> bool:
    """Whether what is inside of the node is only read by people or type checkers."""
    match node:
        case ast.JoinedStr() | ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom() | ast.Global():
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in _SHOWN
    return False


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _variants(node: ast.expr | ast.stmt, parent: ast.AST | None) -> Iterator[tuple[str, ast.AST]]:
    yield from _of_condition(node, parent)
    match node:
        case ast.Compare():
            for part, compared in enumerate(node.ops):
                for other in _COMPARED[type(compared)]:
                    operators = [*node.ops[:part], other(), *node.ops[part + 1 :]]
                    yield "comparison", ast.Compare(node.left, operators, node.comparators)
        case ast.BoolOp():
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.BinOp() if type(node.op) in _CALCULATED and not _is_text(node.left) and not _is_text(node.right):
            yield "arithmetic", ast.BinOp(node.left, _CALCULATED[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in _CALCULATED and not _is_text(node.value):
            yield "arithmetic", ast.AugAssign(node.target, _CALCULATED[type(node.op)](), node.value)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "negation", node.operand
        case ast.Constant():
            yield from _of_constant(node, parent)
        case ast.Call():
            yield from _of_call(node)
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper, step=step)):
            if lower is not None:
                yield "slice", ast.Subscript(node.value, ast.Slice(None, upper, step), node.ctx)
            if upper is not None:
                yield "slice", ast.Subscript(node.value, ast.Slice(lower, None, step), node.ctx)
        case ast.IfExp():
            yield "choice", node.body
            yield "choice", node.orelse
    if isinstance(node, ast.stmt):
        yield from _of_statement(node, parent)


def _of_condition(node: ast.AST, parent: ast.AST | None) -> Iterator[tuple[str, ast.AST]]:
    decides = (isinstance(parent, ast.If) and parent.test is node) or (
        isinstance(parent, ast.comprehension) and node in parent.ifs
    )
    if decides and not isinstance(node, ast.Constant):
        yield "condition", ast.Constant(True)
        yield "condition", ast.Constant(False)


def _of_constant(node: ast.Constant, parent: ast.AST | None) -> Iterator[tuple[str, ast.AST]]:
    match node.value:
        case bool():
            yield "constant", ast.Constant(not node.value)
        case int(number) if not isinstance(parent, ast.UnaryOp):
            yield "constant", ast.Constant(number + 1)
            if number > 0:
                yield "constant", ast.Constant(number - 1)
        case float(number):
            yield "constant", ast.Constant(number + 1.0)
        case str(text) if not isinstance(parent, ast.keyword | ast.Dict):
            yield "constant", ast.Constant("" if text else "changed")


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    match node.func:
        case ast.Name(id=name):
            if name in _OTHER_NAMES:
                yield "call", ast.Call(ast.Name(_OTHER_NAMES[name], ast.Load()), node.args, node.keywords)
            if name in _TRANSPARENT and node.args and not isinstance(node.args[0], ast.Starred):
                yield "call", node.args[0]
        case ast.Attribute(value=value, attr=name) if name in _OTHER_NAMES:
            other = ast.Attribute(value, _OTHER_NAMES[name], ast.Load())
            yield "call", ast.Call(other, node.args, node.keywords)


def _of_statement(node: ast.stmt, parent: ast.AST | None) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Return(value=ast.expr() as value) if not _is_nothing(value):
            yield "return", ast.Return(ast.Constant(None))
        case ast.Break():
            yield "loop", ast.Continue()
        case ast.Continue():
            yield "loop", ast.Break()
        case ast.Raise():
            yield "removed", ast.Pass()
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))) if name not in _SHOWN:
            yield "removed", ast.Pass()
        case ast.AugAssign():
            yield "removed", ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "removed", ast.Pass()
    leaves = isinstance(node, ast.Return | ast.Continue | ast.Break)
    if leaves and isinstance(parent, ast.If) and not parent.orelse and parent.body[-1] is node:
        yield "removed", ast.Pass()


def _is_nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _short(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
