"""Signs in Python code that lets errors of the code around it disappear, so that an assertion there can't fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from donewhen.signs.python_module import Function, PythonModule
from donewhen.signs.python_reach import Finding, finding

_EXITS = ("__exit__", "__aexit__")
_MAKERS = ("contextlib.contextmanager", "contextlib.asynccontextmanager")
_EVERY = frozenset({"builtins.BaseException", "builtins.Exception", "builtins.AssertionError"})
"""Errors of which failed assertions are some."""
_PASSED_ON = frozenset(("exit", "_exit", "abort", "fail", "set_exception", "throw", "athrow", "interrupt_main"))
_TRY = (ast.Try, ast.TryStar)


def swallowing(module: PythonModule) -> Iterator[Finding]:
    """Yield context managers and decorators after which a failed assertion is no error any more."""
    for node in module.nodes:
        for place, why in _problems(module, node):
            if module.runs(node):
                yield finding(module, "swallowed-errors", place, why)


def _problems(module: PythonModule, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in _EXITS:
            if isinstance(module.parents.get(node), ast.ClassDef) and _is_always_true(module, node, node.body):
                yield node, f"{name} can be true for every error"
        case ast.Lambda():
            if _becomes_exit(module, node) and _is_always_true(module, node, [ast.Return(node.body)]):
                yield node, "what is called with an error can be true for every one"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if _makes_manager(module, node):
                yield from _yields(module, node)
        case ast.Call() if module.dotted(node.func) == "contextlib.suppress" and _is_handed_on(module, node):
            if any(module.dotted(argument) in _EVERY for argument in node.args):
                yield node, "hands on what suppresses every error"
        case ast.ExceptHandler(type=kind):
            owner = module.parents.get(node)
            names = [module.dotted(part) for part in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]
            asserts = "builtins.AssertionError" in names
            if asserts and not _raises(node) and isinstance(owner, _TRY) and _calls_parameter(module, owner):
                yield node, "ignores failed assertions of a function that it was given"


def _is_always_true(module: PythonModule, node: Function | ast.Lambda, body: list[ast.stmt]) -> bool:
    """Whether a method that leaves a block can suppress any error."""
    arguments = node.args
    names = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args)}
    names |= {argument.arg for argument in (arguments.vararg,) if argument is not None}
    for part in _own_parts(body):
        if isinstance(part, ast.Return) and part.value is not None and _is_true(module, part.value, names):
            tests = [
                parent.test for parent, _ in module.ancestors(part) if isinstance(parent, ast.If) and part not in body
            ]
            if not any(_tells_errors_apart(test) for test in tests):
                return True
    return False


def _is_true(module: PythonModule, value: ast.expr, names: set[str]) -> bool:
    match value:
        case ast.Constant(value=constant):
            return bool(constant)
        case ast.Name(id=name):
            return name in names and name != "self"
        case ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot() | ast.NotEq()], comparators=[ast.Constant(None)]):
            return name in names
        case ast.Call(func=ast.Name(id="bool"), args=[argument]):
            return _is_true(module, argument, names)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_is_true(module, part, names) for part in values)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Constant(value=constant)):
            return not constant
        case ast.UnaryOp(op=ast.Not(), operand=ast.UnaryOp(op=ast.Not(), operand=inner)):
            return _is_true(module, inner, names)
    return False


def _tells_errors_apart(test: ast.expr) -> bool:
    for part in ast.walk(test):
        if isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] in ("isinstance", "issubclass"):
            return True
        if isinstance(part, ast.Attribute):
            # A setting of the object, such as `self.ignore_errors`.
            return True
        if isinstance(part, ast.Compare) and not any(
            isinstance(side, ast.Constant) and side.value is None for side in part.comparators
        ):
            return True
    return False


def _yields(module: PythonModule, function: Function) -> Iterator[tuple[ast.AST, str]]:
    """The places where a generator for a context manager drops every error of the block."""
    for part in _own_parts(function.body):
        if not isinstance(part, _TRY) or not any(isinstance(inner, ast.Yield) for inner in _own_parts(part.body)):
            continue
        for handler in part.handlers:
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            every = handler.type is None or any(module.dotted(kind) in _EVERY for kind in kinds)
            if every and not _raises(handler):
                yield handler, "drops every error of the block that it is around"
        for inner in _own_parts(part.finalbody):
            if isinstance(inner, ast.Return):
                yield inner, "drops every error of the block that it is around"


def _makes_manager(module: PythonModule, function: Function) -> bool:
    return any(module.dotted(decorator) in _MAKERS for decorator in function.decorator_list)


def _raises(handler: ast.ExceptHandler) -> bool:
    """Whether a handler ends with an error, or gives it to somebody who raises it."""
    parts = [*_own_parts(handler.body)]
    called = {ast.unparse(part.func).rpartition(".")[2] for part in parts if isinstance(part, ast.Call)}
    return any(isinstance(part, ast.Raise) for part in parts) or not called.isdisjoint(_PASSED_ON)


def _calls_parameter(module: PythonModule, block: ast.AST) -> bool:
    names: set[str] = set()
    for parent, _ in module.ancestors(block):
        if isinstance(parent, Function):
            arguments = parent.args
            names |= {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    body: list[ast.stmt] = getattr(block, "body", [])
    return any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in names
        for part in _own_parts(body)
    )


def _becomes_exit(module: PythonModule, node: ast.Lambda) -> bool:
    match module.parents.get(node):
        case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)]):
            return name in _EXITS
        case ast.Dict(keys=keys, values=values):
            return module.text(keys[values.index(node)]) in _EXITS
        case ast.Call(func=ast.Attribute(attr="push" | "push_async_exit"), args=[first]):
            return first is node and bool(node.args.vararg or len(node.args.args) >= 3)
        case ast.Call(args=[_, name_node, _]):
            return module.text(name_node) in _EXITS
    return False


def _is_handed_on(module: PythonModule, node: ast.Call) -> bool:
    """Whether a context manager leaves the place where it is made."""
    parent = module.parents.get(node)
    if isinstance(parent, ast.Lambda):
        return True
    return isinstance(parent, ast.Return | ast.Yield | ast.ClassDef) or (
        isinstance(parent, ast.Assign) and not isinstance(module.function_of(node), Function)
    )


def _own_parts(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """What is in these statements, without functions inside them."""
    todo: list[ast.AST] = [*body]
    while todo:
        part = todo.pop()
        yield part
        if not isinstance(part, Function | ast.Lambda | ast.ClassDef):
            todo += ast.iter_child_nodes(part)
