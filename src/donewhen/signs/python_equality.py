"""Signs in how Python objects compare: equality that does not depend on what it is compared with."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from donewhen.signs.python_module import Function, PythonModule
from donewhen.signs.python_reach import Finding, finding

_COMPARES = {
    "__eq__": True,
    "__ne__": False,
    "__contains__": True,
    "__instancecheck__": True,
    "__subclasscheck__": True,
    "__subclasshook__": True,
    "__lt__": True,
    "__gt__": True,
    "__le__": True,
    "__ge__": True,
}
"""Methods that compare, and the answer that always suits."""
_ORDERS = {"__lt__": "__gt__", "__gt__": "__lt__", "__le__": "__ge__", "__ge__": "__le__"}
_VALUES = frozenset(("object", "int", "float", "str", "bytes", "bool", "list", "tuple", "dict", "set"))
"""Classes of plain values: to be one of them is to be equal to none in particular."""
_DIFFERENCES = frozenset({"__sub__", "__rsub__", "__abs__", "__round__"})
"""Methods by which assertions about nearly equal numbers find out how far apart they are."""
_UNDECIDED = ("NotImplemented", "None", "False")


def comparing(module: PythonModule) -> Iterator[Finding]:
    """Yield methods, and lambdas in the place of methods, that compare equal to everything."""
    for node in module.nodes:
        match node:
            case ast.FunctionDef(name=name) if name in _COMPARES and _is_method(module, node):
                why = _problem(module, node, node.body, name)
                if why:
                    yield finding(module, "equality", node, f"{name} {why}")
            case ast.Lambda():
                name = _name_of(module, node)
                if name in _COMPARES:
                    why = _problem(module, node, [ast.Return(node.body)], name)
                    if why:
                        yield finding(module, "equality", node, f"{name} {why}")
            case ast.FunctionDef(name=name, body=body) if name in _DIFFERENCES:
                if isinstance(module.parents.get(node), ast.ClassDef) and _is_constant(body):
                    yield finding(module, "equality", node, f"{name} is the same for all numbers")
            case ast.Assign(targets=[ast.Name(id="__eq__" as name)], value=ast.Name(id=method)) if _named(
                module, method
            ):
                for function in _named(module, method):
                    why = _problem(module, function, function.body, name)
                    if why:
                        yield finding(module, "equality", node, f"{name} {why}", function)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in ("__eq__", "__ne__"):
                if isinstance(module.parents.get(node), ast.ClassDef) and _is_other_method(value, name):
                    yield finding(module, "equality", node, f"{name} is another method: {ast.unparse(value)}")
            case ast.FunctionDef(name="__class__") | ast.Assign(targets=[ast.Name(id="__class__")]):
                if isinstance(module.parents.get(node), ast.ClassDef):
                    yield finding(module, "equality", node, "claims to be of another class")


def _named(module: PythonModule, method: str) -> list[Function]:
    found = [function for function in module.defined.get(method, ()) if isinstance(function, Function)]
    return found if not method.startswith("__") else []


def _is_constant(body: list[ast.stmt]) -> bool:
    returns = [part for statement in body for part in ast.walk(statement) if isinstance(part, ast.Return)]
    return bool(returns) and all(
        isinstance(part.value, ast.Constant) and isinstance(part.value.value, int | float) for part in returns
    )


def _is_other_method(value: ast.expr, name: str) -> bool:
    """Whether a special method is set to one with another meaning."""
    other = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
    is_special = other.startswith("__") and other.endswith("__")
    return (is_special and other != name) or (
        isinstance(value, ast.Attribute) and ast.unparse(value).startswith("operator.")
    )


def _remembers(body: list[ast.stmt], me: str, other: str) -> bool:
    """Whether an object keeps what it is compared with."""
    for part in (part for statement in body for part in ast.walk(statement)):
        match part:
            case ast.Assign(targets=targets, value=value) if _mentions(value, other):
                places = [target for target in targets if isinstance(target, ast.Attribute | ast.Subscript)]
                if any(_mentions(place, me) for place in places):
                    return True
            case ast.Call(func=function, args=[first, _, value, *_]) if "setattr" in ast.unparse(function):
                if _mentions(first, me) and _mentions(value, other):
                    return True
            case ast.Call(func=ast.Attribute(attr="__setattr__", value=owner), args=[_, value]):
                if _mentions(owner, me) and _mentions(value, other):
                    return True
    return False


def _has_both_orders(module: PythonModule, node: ast.AST) -> bool:
    """Whether the class around a comparison that always suits has the opposite one, which always suits, too."""
    owner = next((parent for parent, _ in module.ancestors(node) if isinstance(parent, ast.ClassDef)), None)
    wanted = _ORDERS.get(getattr(node, "name", ""), "")
    if owner is None or not wanted:
        return False
    methods = [part for part in owner.body if isinstance(part, ast.FunctionDef) and part.name == wanted]
    for method in methods:
        args = [*method.args.posonlyargs, *method.args.args]
        if len(args) >= 2 and _says(module, method.body, True, args[0].arg, args[1].arg):
            return True
    return False


def _is_method(module: PythonModule, node: Function) -> bool:
    return len(node.args.args) + len(node.args.posonlyargs) >= 2 and any(
        isinstance(parent, ast.ClassDef) for parent, _ in module.ancestors(node)
    )


def _name_of(module: PythonModule, node: ast.Lambda) -> str:
    """The name under which a lambda becomes a method; empty if it does not."""
    match module.parents.get(node):
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.Assign(targets=[ast.Attribute(attr=name)]):
            return name
        case ast.Dict(keys=keys, values=values):
            return module.text(keys[values.index(node)]) or ""
        case ast.Call(args=[_, name_node, _]):
            return module.text(name_node) or ""
        case ast.keyword(arg=str(name)):
            return name
    return ""


def _problem(module: PythonModule, node: Function | ast.Lambda, body: list[ast.stmt], name: str) -> str:
    args = [*node.args.posonlyargs, *node.args.args]
    if len(args) < 2:
        return ""
    me, other = args[0].arg, args[1].arg
    if name in ("__eq__", "__ne__") and _remembers(body, me, other):
        return "keeps what it is compared with"
    suits = _COMPARES[name]
    if not _says(module, body, suits, me, other, is_equal=name == "__eq__"):
        return ""
    if name in _ORDERS and not _has_both_orders(module, node):
        # Something that is larger than everything is honest; what is also smaller is not.
        return ""
    return f"can be {suits} without looking at what it is compared with"


def _says(
    module: PythonModule, body: list[ast.stmt], suits: bool, me: str, other: str, *, is_equal: bool = False
) -> bool:
    """Whether a comparison can have the answer that suits without a relation to the other object."""
    returns = [
        part
        for statement in body
        for part in ast.walk(statement)
        if isinstance(part, ast.Return) and part.value is not None
    ]
    return any(
        found.value is not None
        and not (suits and ast.unparse(found.value) in _UNDECIDED)
        and (
            _always(module, found.value, suits, me, other)
            or (is_equal and suits and _is_one_sided(_resolved(found.value, body, me, other), me, other))
        )
        and not _is_guarded(module, found, body, me, other)
        for found in returns
    )


def _always(module: PythonModule, value: ast.expr, suits: bool, me: str, other: str) -> bool:
    """Whether an expression has the answer that suits whatever the other object is."""
    match value:
        case ast.Constant(value=constant):
            return bool(constant) is suits
        case ast.BoolOp(op=ast.Or(), values=values):
            return (
                any(_always(module, part, suits, me, other) for part in values)
                if suits
                else all(_always(module, part, suits, me, other) for part in values)
            )
        case ast.BoolOp(values=values):
            return (
                all(_always(module, part, suits, me, other) for part in values)
                if suits
                else any(_always(module, part, suits, me, other) for part in values)
            )
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _always(module, operand, not suits, me, other)
        case ast.IfExp(body=first, orelse=second):
            return _always(module, first, suits, me, other) or _always(module, second, suits, me, other)
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=None)]) if name == me:
            return isinstance(op, ast.IsNot | ast.NotEq) is suits
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            same = ast.unparse(left) == ast.unparse(right)
            return same and isinstance(op, ast.Eq | ast.Is | ast.LtE | ast.GtE) is suits
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), kind]) if name == other:
            kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
            return suits and all(isinstance(item, ast.Name) and item.id in _VALUES for item in kinds)
        case ast.Call(func=ast.Name(id="bool"), args=[argument]):
            return _always(module, argument, suits, me, other)
        case ast.NamedExpr(value=inner):
            return _always(module, inner, suits, me, other)
        case ast.Call(func=ast.Name(id=helper), args=arguments) if _helps(module, helper, arguments, suits, me, other):
            return True
    # A value that has nothing to do with the other object decides nothing about it.
    return suits and not isinstance(value, ast.Lambda) and not _mentions(value, other) and not _mentions(value, me)


def _helps(module: PythonModule, helper: str, arguments: list[ast.expr], suits: bool, me: str, other: str) -> bool:
    """Whether a function of the module that compares both objects answers without looking at one of them."""
    functions = [found for found in module.defined.get(helper, ()) if isinstance(found, Function)]
    names = [argument.id if isinstance(argument, ast.Name) else "" for argument in arguments]
    if len(functions) != 1 or {me, other} - {*names} or len(functions[0].args.args) < len(names):
        return False
    first, second = (functions[0].args.args[names.index(name)].arg for name in (me, other))
    return _says(module, functions[0].body, suits, first, second, is_equal=True)


def _resolved(value: ast.expr, body: list[ast.stmt], me: str, other: str) -> ast.expr:
    """An expression in which names that were made from one of both objects are written as that object."""
    made: dict[str, str] = {}
    for part in (part for statement in body for part in ast.walk(statement)):
        if isinstance(part, ast.Assign | ast.For | ast.NamedExpr | ast.comprehension):
            source = part.iter if isinstance(part, ast.For | ast.comprehension) else part.value
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            about = [name for name in (me, other) if _mentions(source, name)]
            for name in (name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)):
                if about and name.id not in (me, other):
                    made[name.id] = f"({', '.join(about)})"
    if not any(isinstance(part, ast.Name) and part.id in made for part in ast.walk(value)):
        return value
    return _Written(made).visit(ast.parse(ast.unparse(value), mode="eval").body)  # type: ignore[no-any-return]


class _Written(ast.NodeTransformer):
    def __init__(self, made: dict[str, str]) -> None:
        self._made = made

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.parse(self._made[node.id], mode="eval").body if node.id in self._made else node


def _is_one_sided(value: ast.expr, me: str, other: str) -> bool:
    """Whether what is equal is decided by one of both objects alone, other than by naming a class or a value."""
    match value:
        case ast.Constant() | ast.Lambda():
            return False
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), _]) if name == other:
            return False
        case ast.Compare(
            left=ast.Name(id=name),
            comparators=[ast.Constant() | ast.Name() | ast.Attribute() | ast.Tuple() | ast.Set() | ast.List()],
        ) if name == other:
            return False
        case ast.Compare(left=left, ops=[ast.Is()]) if ast.unparse(left) in (f"type({other})", f"{other}.__class__"):
            return False
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_is_one_sided(part, me, other) for part in values)
        case ast.BoolOp(values=values):
            return any(_is_one_sided(part, me, other) for part in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_one_sided(operand, me, other)
        case ast.IfExp(test=test, body=first, orelse=second):
            sides = [part for part in (first, second) if not (isinstance(part, ast.Constant) and not part.value)]
            return not _relates(test, me, other) and any(_is_one_sided(part, me, other) for part in sides)
    return not (_mentions(value, me) and _mentions(value, other)) and (_mentions(value, me) or _mentions(value, other))


def _is_guarded(module: PythonModule, found: ast.Return, body: list[ast.stmt], me: str, other: str) -> bool:
    """Whether conditions before an answer, or around it, are about the other object."""
    tests: list[ast.expr] = []
    for parent, child in module.ancestors(found):
        if isinstance(parent, Function | ast.Lambda | ast.ClassDef):
            break
        if isinstance(parent, ast.If | ast.While):
            tests.append(parent.test)
        elif isinstance(parent, ast.For):
            tests.append(parent.iter)
        elif isinstance(parent, ast.match_case):
            owner = module.parents.get(parent)
            if isinstance(owner, ast.Match) and not isinstance(parent.pattern, ast.MatchAs):
                tests.append(owner.subject)
        del child
    for statement in body:
        if statement.lineno >= getattr(found, "lineno", 0) if hasattr(statement, "lineno") else True:
            break
        if isinstance(statement, ast.If | ast.For | ast.While | ast.Try):
            # It has already answered for others, or gone through both.
            tests += [part for part in ast.walk(statement) if isinstance(part, ast.Compare | ast.Call)]
    return any(_relates(test, me, other) for test in tests)


def _relates(test: ast.expr, me: str, other: str) -> bool:
    """Whether a condition tells other objects apart."""
    for part in ast.walk(test):
        match part:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[about, kind]):
                kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
                if _mentions(about, other) and not all(isinstance(k, ast.Name) and k.id in _VALUES for k in kinds):
                    return True
            case ast.Compare(left=left, comparators=[right]):
                if ast.unparse(left) == ast.unparse(right) or "None" in (ast.unparse(left), ast.unparse(right)):
                    continue
                if _mentions(part, other):
                    return True
            case ast.Call():
                if _mentions(part, other) and (_mentions(part, me) or isinstance(part.func, ast.Attribute)):
                    return True
    return False


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
