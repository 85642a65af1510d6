"""Signs of code that nothing calls: private functions whose name occurs nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from donewhen.signs.python_module import Function, PythonModule
from donewhen.signs.python_reach import Finding


def uncalled(module: PythonModule, text: str, is_used_elsewhere: Callable[[str], bool]) -> Iterator[Finding]:
    """Yield private functions that nothing names: what is public may have its callers in other projects."""
    for node in module.nodes:
        if not isinstance(node, Function) or not node.name.startswith("_") or node.name.endswith("_"):
            continue
        parent = module.parents.get(node)
        # A decorator, or a class that this one extends, may call it.
        if (
            node.decorator_list
            or not isinstance(parent, ast.Module | ast.ClassDef)
            or (isinstance(parent, ast.ClassDef) and parent.bases)
        ):
            continue
        named = len(re.findall(rf"\b{re.escape(node.name)}\b", text))
        if named <= 1 + _own_mentions(node) and not is_used_elsewhere(node.name):
            why = f"nothing uses {node.name}"
            yield Finding(
                "uncalled", node.lineno, frozenset(range(node.lineno, (node.end_lineno or node.lineno) + 1)), why
            )


def _own_mentions(node: Function) -> int:
    """How often a function names itself."""
    return sum(
        (isinstance(part, ast.Name) and part.id == node.name)
        or (isinstance(part, ast.Attribute) and part.attr == node.name)
        for part in ast.walk(node)
    )
