"""Where can code be changed so that it decides differently, and into what?

A unit is a function, or what a module does outside its functions. Text that is only shown is not looked into:
docstrings, f-strings, what is raised, annotations, decorators. So a unit keeps its shape when names and messages are
changed.
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
    """Which node of the unit, in the order of its shape."""
    part: int
    """Which comparison, where several are chained."""
    line: int
    column: int
    original: str
    mutated: str
    start: int
    end: int
    replacement: str


class Unit:
    """A function, or the code of a module that is outside functions."""

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
        """The unit's own lines."""
        if not isinstance(self.node, _Definition):
            return self.text
        return "\n".join(self.text.split("\n")[self.node.lineno - 1 : self.node.end_lineno])

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(node for node, _ in _visited(self.node))

    @cached_property
    def shape(self) -> tuple[str, ...]:
        """What is done, without the names it is done with."""
        return tuple(_token(node) for node in self.nodes)

    @cached_property
    def words(self) -> frozenset[str]:
        """The names that are used."""
        found = {node.id for node in self.nodes if isinstance(node, ast.Name)}
        found |= {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}
        return frozenset(found | {node.arg for node in self.nodes if isinstance(node, ast.arg)})

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        return tuple(_changes(self))

    @property
    def first_statement(self) -> ast.stmt | None:
        """Where a function begins to do something."""
        if not isinstance(self.node, _Definition):
            return None
        body = [one for one in self.node.body if not _is_text(one)]
        return body[0] if body else None

    @property
    def only_words(self) -> bool:
        """Whether it makes text for somebody to read, as far as its type says."""
        returned = self.node.returns if isinstance(self.node, _Definition) else None
        return returned is not None and ast.unparse(returned) in ("str", "str | None", "list[str]", "Iterator[str]")


def units_of(module: str, text: str) -> Iterator[Unit]:
    """The units of a module."""
    tree = ast.parse(text)
    yield Unit(module, MODULE_LEVEL, tree, text)
    yield from _functions(module, tree, "", text)


def unit_from(module: str, function: str, source: str) -> Unit:
    """A unit from its own lines, as they were put on record."""
    if function == MODULE_LEVEL:
        return Unit(module, function, ast.parse(source), source)
    text = f"if True:\n{source}" if source[:1].isspace() else source
    (found,) = [one for one in ast.walk(ast.parse(text)) if isinstance(one, _Definition)][:1]
    return Unit(module, function, found, text)


def all_units(root: Path, package: str = "donewhen") -> list[Unit]:
    """Every unit of the package in a tree."""
    found: list[Unit] = []
    for path in sorted((root / "src" / package).rglob("*.py")):
        found += units_of(module_name(root, path), path.read_text(encoding="utf-8"))
    return found


def module_name(root: Path, path: Path) -> str:
    parts = path.relative_to(root / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def file_of(root: Path, module: str) -> Path:
    """Where a module is, whether or not it has become a folder."""
    path = root / "src" / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def mutated_text(text: str, change: Change) -> str:
    """A module's text with one change made."""
    data = text.encode()
    return (data[: change.start] + change.replacement.encode() + data[change.end :]).decode()


def around(unit: Unit, change: Change, lines: int = 3) -> str:
    """The place in its surroundings, for people."""
    all_lines = unit.text.split("\n")
    chosen = all_lines[max(0, change.line - 1 - lines) : change.line + lines]
    return textwrap.dedent("\n".join(chosen))


def _functions(module: str, node: ast.AST, prefix: str, text: str) -> Iterator[Unit]:
    for one in ast.iter_child_nodes(node):
        if isinstance(one, _Definition):
            yield Unit(module, prefix + one.name, one, text)
        elif isinstance(one, ast.ClassDef):
            yield from _functions(module, one, f"{prefix}{one.name}.", text)


def _visited(node: ast.AST, parent: ast.AST | None = None) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """The nodes that may decide something, each with the one around it; the same order for the same shape."""
    yield node, parent
    if _only_shown(node):
        return
    for name, value in ast.iter_fields(node):
        if name in _UNDECIDING_FIELDS:
            continue
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, ast.AST) or _is_text(one):
                continue
            if isinstance(one, _Definition) and isinstance(node, ast.Module | ast.ClassDef):
                continue
            yield from _visited(one, node)


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
    """Whether it is a docstring."""
    return isinstance(node, ast.Expr) and _is_string(node.value)


def _token(node: ast.AST) -> str:
    kind = type(node).__name__
    match node:
        case ast.JoinedStr() | ast.Constant(value=str()):
            return "text"
        case ast.Constant():
            return repr(node.value)
        case ast.Compare():
            return f"{kind} {' '.join(type(one).__name__ for one in node.ops)}"
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
    """The end of an `if` that leaves early."""
    leaving = isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break)
    if leaving and isinstance(parent, ast.If) and not parent.orelse and parent.body[-1] is node:
        yield "exit", 0, ast.Pass()


def _returns_something(unit: Unit, node: ast.Return) -> bool:
    """Whether None is something else than what is returned, and than what may be."""
    returned = unit.node.returns if isinstance(unit.node, _Definition) else None
    if returned is None or ast.unparse(returned) == "None" or node.value is None:
        return False
    if isinstance(node.value, ast.Constant):
        return bool(node.value.value)
    return (
        not (isinstance(node.value, ast.List | ast.Tuple) and not node.value.elts) and ast.unparse(node.value) != "{}"
    )
