"""Compares Python syntax: what a piece of code says, without comments, formatting and docstrings, and what it uses."""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType

_LARGEST = 1 << 20
_IGNORED = frozenset({"ctx", "type_comment", "type_ignores", "kind"})
_SAME_FILE = frozenset({"resolve", "absolute"})
OWN_FILE, OWN_FOLDER = "__file__", "folder of __file__"
_NO_NAMES: Mapping[str, str] = MappingProxyType({})

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Part:
    """A piece of code: nodes, and lists of nodes. It is read when something about it is asked.

    Relative imports are those of ``package``; ``renamed`` names are replaced.
    """

    def __init__(self, nodes: Iterable[object], package: str, renamed: Mapping[str, str] = _NO_NAMES) -> None:
        self._nodes, self._package, self._renamed = nodes, package, renamed

    @cached_property
    def _read(self) -> tuple[str, frozenset[str], frozenset[str]]:
        return _read(self._nodes, self._package, self._renamed)

    @property
    def digest(self) -> str:
        """What the code says."""
        return self._read[0]

    @property
    def names(self) -> frozenset[str]:
        """Names that it uses, arguments (a test gets fixtures by them), and strings that could be names.

        ``OWN_FOLDER`` stands for ``__file__`` where only its folder is used.
        """
        return self._read[1]

    @property
    def attributes(self) -> frozenset[str]:
        """The names of attributes that it uses."""
        return self._read[2]


def parse_module(text: str) -> ast.Module | None:
    """The syntax tree of a module; None if it can't be parsed or is too large."""
    if len(text) > _LARGEST:
        return None
    try:
        with warnings.catch_warnings():
            # A wrong escape in somebody's string.
            warnings.simplefilter("ignore")
            return ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function, class or module after its docstring."""
    first = body[0] if body else None
    is_docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if is_docstring else body


def resolved_import(node: ast.ImportFrom, package: str) -> str:
    """The full name of the module from which names are imported."""
    if not node.level:
        return node.module or ""
    parents = package.split("/") if package else []
    kept = parents[: len(parents) - node.level + 1]
    # An import from outside is different from every other one.
    outside = ["", str(node.level)] if node.level > len(parents) + 1 else []
    return ".".join([*outside, *kept, *([node.module] if node.module else [])])


def _read(
    nodes: Iterable[object], package: str, renamed: Mapping[str, str]
) -> tuple[str, frozenset[str], frozenset[str]]:
    tokens: list[str] = []
    names: set[str] = set()
    attributes: set[str] = set()
    noted: set[ast.AST] = set()
    # Not recursive: a tree can be deeper than the interpreter's stack. A tuple is a token to write.
    stack: list[object] = list(reversed([*nodes]))
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            tokens.append(item[0])
        elif isinstance(item, ast.AST):
            stack.append((")",))
            for field, value in reversed(_fields(item, package)):
                is_name = field == "id" and isinstance(item, ast.Name)
                stack.append(renamed.get(str(value), value) if is_name else value)
                stack.append((f"{field}=",))
            tokens.append(f"{type(item).__name__}(")
            own_file = _file_of_folder(item)
            if own_file is not None:
                names.add(OWN_FOLDER)
                noted.add(own_file)
            if item not in noted:
                _note_names(item, names, attributes)
        elif isinstance(item, list):
            tokens.append(f"[{len(item)}:")
            stack.extend(reversed(item))
        else:
            # The decimal digits of an integer are limited.
            value = f"{item:x}" if type(item) is int else repr(item)
            tokens.append(f"{type(item).__name__} {len(value)} {value};")
    digest = hashlib.sha256("".join(tokens).encode("utf-8", "backslashreplace")).hexdigest()
    return digest, frozenset(names - renamed.keys()), frozenset(attributes)


def _fields(node: ast.AST, package: str) -> list[tuple[str, object]]:
    fields: list[tuple[str, object]] = [
        (name, getattr(node, name, None)) for name in node._fields if name not in _IGNORED
    ]
    if isinstance(node, Function | ast.ClassDef):
        return [(name, without_docstring(node.body) if name == "body" else value) for name, value in fields]
    if isinstance(node, ast.ImportFrom):
        return [("module", resolved_import(node, package)), ("names", node.names)]
    return fields


def _note_names(node: ast.AST, names: set[str], attributes: set[str]) -> None:
    if isinstance(node, ast.Name):
        names.add(node.id)
    elif isinstance(node, ast.arg):
        names.add(node.arg)
    elif isinstance(node, ast.Global | ast.Nonlocal):
        names.update(node.names)
    elif isinstance(node, ast.Attribute):
        attributes.add(node.attr)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        names.add(node.value)


def _file_of_folder(node: ast.AST) -> ast.Name | None:
    """The name ``__file__`` in ``Path(__file__).parent`` or ``os.path.dirname(__file__)``."""
    inner: ast.AST | None = None
    if isinstance(node, ast.Attribute) and node.attr in ("parent", "parents"):
        inner = node.value
    elif isinstance(node, ast.Call) and "dirname" in (getattr(node.func, "attr", ""), getattr(node.func, "id", "")):
        inner = _argument(node)
    while isinstance(inner, ast.Call):
        method = inner.func if isinstance(inner.func, ast.Attribute) and not inner.args else None
        inner = method.value if method is not None and method.attr in _SAME_FILE else _argument(inner)
    return inner if isinstance(inner, ast.Name) and inner.id == OWN_FILE else None


def _argument(call: ast.Call) -> ast.AST | None:
    return call.args[0] if len(call.args) == 1 and not call.keywords else None
