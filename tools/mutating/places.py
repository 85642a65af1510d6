"""Find the places where a small change alters the decisions of code, and generate these changes.

A unit is a function, or the code of a module outside its functions. Docstrings, f-strings, raised errors, annotations
and decorators are ignored, so a unit keeps its shape when names and messages are changed.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

MODULE_LEVEL = ""
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_UNDECIDING_FIELDS = ("annotation", "returns", "decorator_list", "ctx", "ops", "op")
_UNDECIDING_OPTIONS = frozenset(
    {
        "capture_output",
        "check",
        "ensure_ascii",
        "exist_ok",
        "flush",
        "frozen",
        "indent",
        "kw_only",
        "missing_ok",
        "parents",
        "sort_keys",
        "text",
    }
)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


class Change(NamedTuple):
    """One small change at one place of a unit."""

    operator: str
    node: int
    """The index of the node in the shape of the unit."""
    part: int
    """The index of the comparison in a chain of comparisons."""
    line: int
    column: int
    original: str
    mutated: str
    start: int
    end: int
    replacement: str


class Unit:
    """A function, or the code of a module outside its functions."""

    def __init__(self, module: str, function: str, node: ast.AST, text: str) -> None:
        self.module = module
        self.function = function
        self.node = node
        self.text = text

    @property
    def name(self) -> str:
        return f"{self.module}:{self.function}"

    @cached_property
    def source(self) -> str:
        """The source lines of the unit."""
        if not isinstance(self.node, _Definition):
            return self.text
        return "\n".join(self.text.split("\n")[self.node.lineno - 1 : self.node.end_lineno])

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(node for node, _ in _visited(self.node))

    @cached_property
    def shape(self) -> tuple[str, ...]:
        """The structure of the code, without names."""
        return tuple(_token(node) for node in self.nodes)

    @cached_property
    def words(self) -> frozenset[str]:
        """The names in the code."""
        names = {node.id for node in self.nodes if isinstance(node, ast.Name)}
        names |= {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}
        return frozenset(names | {node.arg for node in self.nodes if isinstance(node, ast.arg)})

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        return tuple(_changes(self))

    @property
    def first_statement(self) -> ast.stmt | None:
        """The first statement of a function after its docstring."""
        if not isinstance(self.node, _Definition):
            return None
        body = [statement for statement in self.node.body if not _is_text(statement)]
        return body[0] if body else None

    @property
    def only_words(self) -> bool:
        """Whether the unit only produces text, judging by its return type."""
        returned = self.node.returns if isinstance(self.node, _Definition) else None
        return returned is not None and ast.unparse(returned) in ("str", "str | None", "list[str]", "Iterator[str]")


def units_of(module: str, text: str) -> Iterator[Unit]:
    """Yield the units of a module."""
    tree = ast.parse(text)
    yield Unit(module, MODULE_LEVEL, tree, text)
    yield from _functions(module, tree, "", text)


def unit_from(module: str, function: str, source: str) -> Unit:
    """Create a unit from its recorded source lines."""
    if function == MODULE_LEVEL:
        return Unit(module, function, ast.parse(source), source)
    text = f"if True:\n{source}" if source[:1].isspace() else source
    (definition,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, _Definition)][:1]
    return Unit(module, function, definition, text)


def all_units(root: Path, package: str = "donewhen") -> list[Unit]:
    """Return every unit of the package in a tree."""
    units: list[Unit] = []
    for path in sorted((root / "src" / package).rglob("*.py")):
        units += units_of(module_name(root, path), path.read_text(encoding="utf-8"))
    return units


def module_name(root: Path, path: Path) -> str:
    parts = path.relative_to(root / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def file_of(root: Path, module: str) -> Path:
    """Return the file of a module, which may have become a package."""
    path = root / "src" / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def mutated_text(text: str, change: Change) -> str:
    """Return a module's text with one change made."""
    data = text.encode()
    return (data[: change.start] + change.replacement.encode() + data[change.end :]).decode()


def around(unit: Unit, change: Change, lines: int = 3) -> str:
    """Return the lines around a change, for people."""
    all_lines = unit.text.split("\n")
    chosen = all_lines[max(0, change.line - 1 - lines) : change.line + lines]
    return textwrap.dedent("\n".join(chosen))


def _functions(module: str, node: ast.AST, prefix: str, text: str) -> Iterator[Unit]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            yield Unit(module, prefix + child.name, child, text)
        elif isinstance(child, ast.ClassDef):
            yield from _functions(module, child, f"{prefix}{child.name}.", text)


def _visited(node: ast.AST, parent: ast.AST | None = None) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Yield the nodes that may decide something, each with its parent, in an order that only depends on the shape."""
    yield node, parent
    if _only_shown(node):
        return
    for name, value in ast.iter_fields(node):
        if name in _UNDECIDING_FIELDS:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_text(child):
                continue
            if isinstance(child, _Definition) and isinstance(node, ast.Module | ast.ClassDef):
                continue
            yield from _visited(child, node)


def _only_shown(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.IfExp():
            return _is_string(node.body) and _is_string(node.orelse)
        case ast.BoolOp():
            return _is_string(node.values[-1])
        case ast.keyword():
            return node.arg in _UNDECIDING_OPTIONS
    return False


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_text(node: ast.AST) -> bool:
    """Whether the node is a docstring."""
    return isinstance(node, ast.Expr) and _is_string(node.value)


def _token(node: ast.AST) -> str:
    kind = type(node).__name__
    match node:
        case ast.JoinedStr() | ast.Constant(value=str()):
            return "text"
        case ast.Constant():
            return repr(node.value)
        case ast.Compare():
            return f"{kind} {' '.join(type(operator).__name__ for operator in node.ops)}"
        case ast.BoolOp() | ast.BinOp() | ast.UnaryOp() | ast.AugAssign():
            return f"{kind} {type(node.op).__name__}"
    return kind


def _changes(unit: Unit) -> Iterator[Change]:
    data = unit.text.encode()
    lines = [0]
    for line in data.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for index, (node, parent) in enumerate(_visited(unit.node)):
        if _only_shown(node) and not isinstance(node, ast.Raise):
            continue
        for operator, part, new in _variants(node, parent, unit):
            if not isinstance(node, ast.expr | ast.stmt) or node.end_lineno is None or node.end_col_offset is None:
                continue
            start = lines[node.lineno - 1] + node.col_offset
            end = lines[node.end_lineno - 1] + node.end_col_offset
            original, mutated = ast.unparse(node), ast.unparse(new)
            replacement = f"({mutated})" if isinstance(node, ast.expr) else mutated
            yield Change(
                operator, index, part, node.lineno, node.col_offset, original, mutated, start, end, replacement
            )


def _variants(node: ast.AST, parent: ast.AST | None, unit: Unit) -> Iterator[tuple[str, int, ast.AST]]:
    yield from _conditions(node, parent)
    match node:
        case ast.Compare():
            for part, compared in enumerate(node.ops):
                other = [*node.ops[:part], _COMPARED[type(compared)](), *node.ops[part + 1 :]]
                yield "compare", part, ast.Compare(node.left, other, node.comparators)
        case ast.BoolOp():
            swapped_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and-or", 0, ast.BoolOp(swapped_op, node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", 0, node.operand
        case ast.Constant(value=bool()):
            yield "boolean", 0, ast.Constant(not node.value)
        case ast.Constant(value=int(number)) if not isinstance(parent, ast.UnaryOp):
            yield "number", 0, ast.Constant(number + 1)
        case ast.Call(func=ast.Name(id=called)) if called in _SWAPPED:
            swapped = ast.Name(_SWAPPED[called], ast.Load())
            yield ("min-max" if called in ("min", "max") else "any-all"), 0, ast.Call(swapped, node.args, node.keywords)
        case ast.Return(value=ast.expr()) if _returns_something(unit, node):
            yield "return", 0, ast.Return(ast.Constant(None))
    if unit.function != MODULE_LEVEL:
        yield from _unions(node)
        yield from _exits(node, parent)


def _conditions(node: ast.AST, parent: ast.AST | None) -> Iterator[tuple[str, int, ast.AST]]:
    decides = (isinstance(parent, ast.If | ast.IfExp) and parent.test is node) or (
        isinstance(parent, ast.comprehension) and node in parent.ifs
    )
    if decides and not isinstance(node, ast.Constant):
        yield "if-true", 0, ast.Constant(True)
        yield "if-false", 0, ast.Constant(False)


def _unions(node: ast.AST) -> Iterator[tuple[str, int, ast.AST]]:
    several = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)
    match node:
        case ast.BinOp(op=ast.BitOr()):
            yield "union", 0, node.left
        case ast.BinOp(op=ast.Add()) if isinstance(node.left, several) or isinstance(node.right, several):
            yield "union", 0, node.left
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            if len(parts) > 1 and any(isinstance(part, ast.Starred) for part in parts):
                yield "union", 0, type(node)(parts[:-1])
        case ast.AugAssign(op=ast.BitOr()):
            yield "union", 0, ast.Pass()
        case ast.AugAssign(op=ast.Add()) if isinstance(node.value, several):
            yield "union", 0, ast.Pass()
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="update" | "extend"))):
            yield "union", 0, ast.Pass()


def _exits(node: ast.AST, parent: ast.AST | None) -> Iterator[tuple[str, int, ast.AST]]:
    """Yield the removal of an early exit at the end of an `if`."""
    leaving = isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break)
    if leaving and isinstance(parent, ast.If) and not parent.orelse and parent.body[-1] is node:
        yield "exit", 0, ast.Pass()


def _returns_something(unit: Unit, node: ast.Return) -> bool:
    """Whether returning None instead would make a difference."""
    returned = unit.node.returns if isinstance(unit.node, _Definition) else None
    if returned is None or ast.unparse(returned) == "None" or node.value is None:
        return False
    if isinstance(node.value, ast.Constant):
        return bool(node.value.value)
    return (
        not (isinstance(node.value, ast.List | ast.Tuple) and not node.value.elts) and ast.unparse(node.value) != "{}"
    )
