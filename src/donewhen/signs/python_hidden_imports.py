"""Python modules that are imported by a name which the code does not show, and what is done with them."""

from __future__ import annotations

import ast

from donewhen.signs.python_module import Function, PythonModule

IMPORTS = ("importlib.import_module", "builtins.__import__")
_HIDES = frozenset(
    (
        *("read", "read_text", "read_bytes", "readline", "readlines", "decode", "translate", "getline", "loads"),
        *("decompress", "b64decode", "b32decode", "unhexlify", "fromhex", "a2b_hex", "a2b_base64", "to_bytes"),
    )
)


def is_loaded_by_name(module: PythonModule, node: ast.expr, depth: int = 0) -> bool:
    """Whether an object is a module, or in a module, that was imported by a name which is not known here."""
    if depth > 6:
        return False
    match node:
        case ast.Attribute(value=inner):
            return is_loaded_by_name(module, inner, depth + 1)
        case ast.Call(func=function, args=arguments):
            name = module.dotted(function)
            if name in IMPORTS:
                return bool(arguments) and module.text(arguments[0]) is None
            if name == "builtins.getattr":
                return bool(arguments) and is_loaded_by_name(module, arguments[0], depth + 1)
            return isinstance(function, ast.Name) and any(
                isinstance(part, ast.Return)
                and part.value is not None
                and is_loaded_by_name(module, part.value, depth + 1)
                for found in module.defined.get(function.id, ())
                if isinstance(found, Function)
                for part in ast.walk(found)
            )
        case ast.Name():
            values = module.values_of(node)
            if values == [None]:
                values = _given(module, node)
            return any(value is not None and is_loaded_by_name(module, value, depth + 1) for value in values)
    return False


def _given(module: PythonModule, node: ast.Name) -> list[ast.expr | None]:
    """What a parameter is given where the module calls its function."""
    function = module.function_of(node)
    names = [] if function is None else [argument.arg for argument in function.args.args]
    if function is None or node.id not in names:
        return []
    place = names.index(node.id)
    return [
        call.args[place]
        for call in module.nodes
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == function.name
        and len(call.args) > place
    ]


def is_hidden(module: PythonModule, node: ast.expr) -> bool:
    """Whether a name is read from a file or decoded on the spot."""
    values = [node, *(module.values_of(node) if isinstance(node, ast.Name) else ())]
    called = {
        part.func.attr
        for value in values
        if value is not None
        for part in ast.walk(value)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
    }
    return module.text(node) is None and not called.isdisjoint(_HIDES)
