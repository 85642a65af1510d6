"""A Python module as signs need it: what names stand for, and what a text says that is put together from parts."""

from __future__ import annotations

import ast
import base64
import binascii
import builtins
import codecs
import re
import sys
import warnings
from collections.abc import Iterator
from functools import cached_property

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_TEXT = 2000
_WIDTH = re.compile(r"[0-9]{4,}|[*]")
_METHODS = frozenset(
    (
        *("join", "replace", "lower", "upper", "casefold", "strip", "lstrip", "rstrip", "format"),
        *("title", "swapcase", "removeprefix", "removesuffix", "encode", "decode", "capitalize"),
        *("translate",),
    )
)
"""Methods of texts that give a text."""
_OTHER_NAMES = {"posix": "os", "nt": "os", "_io": "io", "_signal": "signal", "_pickle": "pickle", "_ctypes": "ctypes"}
_SHARED = frozenset({"sys", "os", "builtins", "gc", "inspect", "signal", "ctypes"})


class PythonModule:
    """One parsed file."""

    def __init__(self, text: str) -> None:
        with warnings.catch_warnings():
            # Invalid escapes in somebody's text are not ours.
            warnings.simplefilter("ignore")
            self.tree = ast.parse(text)
        self.nodes = [*ast.walk(self.tree)]
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self._folding: set[str] = set()
        self._local_names: dict[Function | ast.Lambda, dict[str, list[ast.expr | None]]] = {}

    @cached_property
    def assigned(self) -> dict[str, ast.expr]:
        """The values of the names that are assigned exactly once."""
        found: dict[str, ast.expr | None] = {}
        for node in self.nodes:
            for name, value in _bound(node):
                found[name] = None if name in found else value
        return {name: value for name, value in found.items() if value is not None}

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that are bound in another way than by an import."""
        return frozenset(name for node in self.nodes for name, _ in _bound(node)) | {*self.defined}

    @cached_property
    def imports(self) -> dict[str, str]:
        """What imported names stand for, as dotted names; those of the package itself start with a dot."""
        found: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.asname or alias.name.partition(".")[0]] = _public(
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                module = _public(f"{'.' * node.level}{node.module or ''}")
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{module}.{alias.name}"
        return found

    @cached_property
    def defined(self) -> dict[str, list[Function | ast.ClassDef]]:
        """The functions, methods and classes of the module by their names."""
        found: dict[str, list[Function | ast.ClassDef]] = {}
        for node in self.nodes:
            if isinstance(node, Function | ast.ClassDef):
                found.setdefault(node.name, []).append(node)
        return found

    @cached_property
    def docstrings(self) -> frozenset[ast.expr]:
        """Texts that are no values: docstrings and other texts on their own."""
        return frozenset(node.value for node in self.nodes if isinstance(node, ast.Expr))

    def is_annotation(self, node: ast.AST) -> bool:
        """Whether code only belongs to a type."""
        while (parent := self.parents.get(node)) is not None and not isinstance(node, ast.stmt):
            if isinstance(parent, ast.AnnAssign | ast.arg) and parent.annotation is node:
                return True
            if isinstance(parent, Function) and parent.returns is node:
                return True
            node = parent
        return False

    def runs(self, node: ast.AST) -> bool:
        """Whether code runs when the module is used: not only for type checkers, or as a program."""
        for parent, child in self.ancestors(node):
            if isinstance(parent, ast.If) and child in parent.body:
                test = ast.unparse(parent.test)
                if test.endswith("TYPE_CHECKING") or (
                    "__name__" in test
                    and "__main__" in test
                    and isinstance(parent.test, ast.Compare)
                    and isinstance(parent.test.ops[0], ast.Eq)
                ):
                    return False
        return True

    def at_import(self, node: ast.AST) -> bool:
        """Whether code runs when the module is imported."""
        inside = (Function, ast.Lambda)
        # Decorators and defaults run at once, but what is in a function does not.
        return self.runs(node) and not any(
            isinstance(parent, inside) and child in ([parent.body] if isinstance(parent, ast.Lambda) else parent.body)
            for parent, child in self.ancestors(node)
        )

    def ancestors(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yield each node around one, with the child that leads there."""
        while (parent := self.parents.get(node)) is not None:
            yield parent, node
            node = parent

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost function around a node."""
        return next((parent for parent, _ in self.ancestors(node) if isinstance(parent, Function)), None)

    def dotted(self, node: ast.AST | None) -> str:
        """The dotted name that an expression stands for; empty if it is unknown."""
        match node:
            case ast.Name(id=name):
                return self._local_name(node) if self._is_shadowed(node) else self._dotted_name(name)
            case ast.Attribute(value=value, attr=attr):
                base = self.dotted(value)
                top = base.partition(".")[0]
                if attr.lstrip("_") in _SHARED and attr != base and top in sys.stdlib_module_names:
                    # Modules of the standard library have others as attributes: `os.sys`. `signal.signal` is its own.
                    return attr.lstrip("_")
                return f"{base}.{attr}" if base else ""
            case ast.NamedExpr(value=value):
                return self.dotted(value)
            case ast.Call():
                return self._dotted_call(node)
            case ast.Subscript(value=value, slice=key):
                return self._dotted_item(value, self.text(key))
        return ""

    def _is_shadowed(self, node: ast.Name) -> bool:
        """Whether an imported name means something else in the function around a node."""
        return node.id in self.imports and node.id in self.bound and bool(self._local_values(node))

    def values_of(self, node: ast.Name) -> list[ast.expr | None]:
        """What a name is given in the function around it, or else in the module; None stands for what is not known."""
        return self._local_values(node) or [self.assigned.get(node.id)]

    def _local_values(self, node: ast.Name) -> list[ast.expr | None]:
        for parent, _ in self.ancestors(node):
            if isinstance(parent, Function | ast.Lambda):
                values = self._locals(parent).get(node.id)
                if values:
                    return values
        return []

    def _locals(self, function: Function | ast.Lambda) -> dict[str, list[ast.expr | None]]:
        if function not in self._local_names:
            found: dict[str, list[ast.expr | None]] = {}
            for node in ast.walk(function):
                for name, value in _bound(node):
                    found.setdefault(name, []).append(value)
            self._local_names[function] = found
        return self._local_names[function]

    def _local_name(self, node: ast.Name) -> str:
        values = self._local_values(node)
        if len(values) != 1 or values[0] is None or node.id in self._folding:
            return ""
        self._folding.add(node.id)
        try:
            return self.dotted(values[0])
        finally:
            self._folding.discard(node.id)

    def _dotted_name(self, name: str) -> str:
        if name in self.imports:
            return self.imports[name]
        value = self.assigned.get(name)
        if value is not None and name not in self._folding:
            self._folding.add(name)
            try:
                return self.dotted(value)
            finally:
                self._folding.discard(name)
        if name == "__builtins__":
            return "builtins"
        return f"builtins.{name}" if hasattr(builtins, name) and name not in self.bound else ""

    def _dotted_call(self, node: ast.Call) -> str:
        function, args = self.dotted(node.func), node.args
        if function == "builtins.getattr" and len(args) >= 2:
            base, attr = self.dotted(args[0]), self.text(args[1])
            return f"{base}.{attr}" if base and attr else ""
        if function in ("builtins.__import__", "importlib.import_module", "importlib.__import__") and args:
            name = _public(self.text(args[0]) or "")
            return name.partition(".")[0] if function.endswith("__import__") else name
        if function == "sys.modules.get" and args:
            return self.text(args[0]) or ""
        if function == "builtins.vars" and args:
            return f"{self.dotted(args[0])}.__dict__"
        return ""

    def _dotted_item(self, value: ast.expr, key: str | None) -> str:
        if key == "__builtins__" and isinstance(value, ast.Call):
            return "builtins" if self.dotted(value.func) in ("builtins.globals", "builtins.vars") else ""
        base = self.dotted(value)
        if not key or not base:
            return ""
        if base == "sys.modules":
            return _public(key)
        if base in ("builtins", "builtins.__dict__"):
            return f"builtins.{key}"
        return f"{base.removesuffix('.__dict__')}.{key}" if base.endswith(".__dict__") else ""

    def text(self, node: ast.AST | None) -> str | None:
        """What a text says, also if it is put together from parts; None if that is not known."""
        try:
            value = self._value(node, 0)
        except (ValueError, TypeError, LookupError, OverflowError, AttributeError, binascii.Error, UnicodeError):
            return None
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        return value if isinstance(value, str) else None

    def _value(self, node: ast.AST | None, depth: int) -> object:
        if depth > 40:
            raise ValueError
        value = self._folded(node, depth)
        if isinstance(value, str | bytes | list) and len(value) > _MAX_TEXT:
            raise ValueError
        return value

    def _folded(self, node: ast.AST | None, depth: int) -> object:
        deeper = depth + 1
        match node:
            case ast.Constant(value=str() | bytes() | int() as value):
                return value
            case ast.Name(id=name) if name in self.assigned and name not in self.imports:
                return self._value(self.assigned[name], deeper)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._value(item, deeper) for item in items]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -_number(self._value(operand, deeper))
            case ast.BinOp(left=left, op=op, right=right):
                return _combined(op, self._value(left, deeper), self._value(right, deeper))
            case ast.JoinedStr(values=values):
                return "".join(str(self._value(part, deeper)) for part in values)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._value(value, deeper)
            case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=step)):
                bounds = [
                    None if bound is None else _number(self._value(bound, deeper)) for bound in (lower, upper, step)
                ]
                return _sequence(self._value(value, deeper))[slice(*bounds)]
            case ast.Call(func=ast.Attribute(value=owner, attr=attr), args=args, keywords=[]) if attr in _METHODS:
                if self.dotted(owner) == "codecs":
                    return codecs.decode(*[self._value(arg, deeper) for arg in args])  # type: ignore[call-overload]
                return self._method(self._value(owner, deeper), attr, [self._value(arg, deeper) for arg in args])
            case ast.Call(args=args, keywords=[]):
                return self._called(self.dotted(node.func), args, deeper)
            case ast.GeneratorExp() | ast.ListComp():
                return self._comprehended(node, deeper)
        raise ValueError

    def _method(self, owner: object, name: str, args: list[object]) -> object:
        if not isinstance(owner, str | bytes):
            raise TypeError
        if name == "format" and (_WIDTH.search(str(owner)) or not all(isinstance(arg, str | int) for arg in args)):
            raise TypeError
        return getattr(owner, name)(*args)

    def _called(self, function: str, args: list[ast.expr], depth: int) -> object:
        if function == "builtins.map" and len(args) == 2:
            each = self.dotted(args[0])
            return [_applied(each, item) for item in _items(self._value(args[1], depth))]
        if len(args) != 1:
            raise ValueError
        return _applied(function, self._value(args[0], depth))

    def _comprehended(self, node: ast.GeneratorExp | ast.ListComp, depth: int) -> object:
        (loop,) = node.generators
        if loop.ifs or not isinstance(loop.target, ast.Name):
            raise ValueError
        values = []
        for item in _items(self._value(loop.iter, depth)):
            if not isinstance(item, str | int):
                raise TypeError
            element = _Replaced(loop.target.id, item).visit(_copied(node.elt))
            values.append(self._value(element, depth))
        return values


def _public(name: str) -> str:
    """The usual name of a module of the standard library that has another one, too."""
    return _OTHER_NAMES.get(name, name)


class _Replaced(ast.NodeTransformer):
    """Writes a value where a name is read."""

    def __init__(self, name: str, value: str | int) -> None:
        self._name, self._new = name, value

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(self._new) if node.id == self._name else node


def _copied(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, value
                else:
                    yield from ((name.id, None) for name in ast.walk(target) if _is_stored(name))  # type: ignore[attr-defined]
        case (
            ast.AnnAssign(target=ast.Name(id=name), value=value) | ast.NamedExpr(target=ast.Name(id=name), value=value)
        ):
            yield name, value
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name, None
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
            yield from ((name.id, None) for name in ast.walk(target) if _is_stored(name))  # type: ignore[attr-defined]
        case ast.arg(arg=name):
            yield name, None
        case ast.withitem(optional_vars=ast.Name(id=name)) | ast.ExceptHandler(name=str(name)):
            yield name, None


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _combined(op: ast.operator, left: object, right: object) -> object:
    if isinstance(left, int) and isinstance(right, int):
        simple = {ast.Add: int.__add__, ast.Sub: int.__sub__, ast.BitXor: int.__xor__}
        return simple[type(op)](left, right)
    if isinstance(op, ast.Add) and isinstance(left, str | bytes | list) and type(left) is type(right):
        return left + right  # type: ignore[operator]
    if isinstance(op, ast.Mod) and isinstance(left, str) and not _WIDTH.search(left):
        return left % (tuple(right) if isinstance(right, list) else right)
    if isinstance(op, ast.Mult) and isinstance(left, str) and isinstance(right, int) and len(left) * right < _MAX_TEXT:
        return left * right
    raise ValueError


def _applied(function: str, value: object) -> object:
    match function, value:
        case "builtins.chr", int():
            return chr(value)
        case "builtins.str", str() | int():
            return str(value)
        case "builtins.bytes" | "builtins.bytearray", list() | bytes():
            return bytes(value)
        case "builtins.list" | "builtins.tuple", list() | str() | bytes():
            return [*value]
        case "builtins.reversed", list() | str() | bytes():
            return [*value][::-1]
        case "builtins.bytes.fromhex" | "binascii.unhexlify" | "binascii.a2b_hex", str():
            return bytes.fromhex(value)
        case (("binascii.unhexlify" | "binascii.a2b_hex"), bytes()):
            return binascii.unhexlify(value)
        case (("base64.b64decode" | "base64.urlsafe_b64decode" | "binascii.a2b_base64"), str() | bytes()):
            return base64.b64decode(value)
        case "builtins.int", str() | int():
            return int(value)
        case "builtins.ord", str():
            return ord(value)
    raise ValueError


def _items(value: object) -> list[object]:
    if not isinstance(value, list | str | bytes) or len(value) > _MAX_TEXT:
        raise TypeError
    return [*value]


def _sequence(value: object) -> str | bytes | list[object]:
    if not isinstance(value, str | bytes | list):
        raise TypeError
    return value


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value
