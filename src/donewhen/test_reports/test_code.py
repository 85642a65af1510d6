"""The code that makes a Python test what it is: its own, that of its class, and what it uses in its module."""

from __future__ import annotations

import ast
import re
from collections import defaultdict, deque
from collections.abc import Hashable, Mapping, Sequence
from functools import cache

from donewhen.test_reports.python_syntax import OWN_FILE, OWN_FOLDER, Function, Part, without_docstring
from donewhen.test_reports.test_modules import ClassCode, TestModule, bound_names, is_autouse, is_hook

# Fixtures and methods that compare with a file which is found by the name of the test.
_STORED_BY_NAME = re.compile(r"snapshot|regression|datadir|golden")
_SNAPSHOT_METHOD = re.compile(r"assert\w*snapshot", re.IGNORECASE)
_OWN_FOLDER = frozenset({OWN_FOLDER, "__path__", "__spec__", "__package__"})
_MOST_BASES = 50


def code_of_test(module: TestModule, classes: tuple[str, ...], function: str) -> tuple[Hashable, frozenset[str]] | None:
    """The code of a test with all that it uses, and the names of that; None if there is no such test."""
    chain = _find_classes(module, classes)
    if chain is None or len(module.bindings.get(classes[0] if classes else function, ())) != 1:
        return None
    node = _find_method(module, chain[-1], function) if chain else module.functions.get(function)
    if node is None:
        return None
    renamed = {name: f"<class {level}>" for level, name in enumerate(classes)}
    own = [node.decorator_list, node.args, node.returns, getattr(node, "type_params", [])]
    test = Part(
        [type(node).__name__, *own, without_docstring(node.body)], module.package, {function: "<test>", **renamed}
    )
    if _is_stored_by_name(node, test):
        return None
    parts = [test]
    for level, owner in enumerate(chain):
        key = classes[: level + 1]
        if key not in module.class_code:
            module.class_code[key] = _read_class(owner, module.package, renamed)
        parts += module.class_code[key].used_by(parts)
    return _code_used(module, parts)


def _find_classes(module: TestModule, names: tuple[str, ...]) -> list[ast.ClassDef] | None:
    found: list[ast.ClassDef] = []
    for level, name in enumerate(names):
        if level == 0:
            candidates = [module.classes[name]] if name in module.classes else []
        else:
            body = found[-1].body
            candidates = [child for child in body if isinstance(child, ast.ClassDef) and child.name == name]
        if len(candidates) != 1:
            return None
        found += candidates
    return found


def _find_method(module: TestModule, owner: ast.ClassDef, name: str) -> Function | None:
    """A method of a class or of its bases in the same module, in the order of definition."""
    waiting, seen = deque([owner]), set[int]()
    while waiting and len(seen) < _MOST_BASES:
        current = waiting.popleft()
        if id(current) in seen:
            continue
        seen.add(id(current))
        bound = _members(module, current).get(name, [])
        if bound:
            only = bound[0]
            return only if len(bound) == 1 and isinstance(only, Function) else None
        for base in current.bases:
            if not isinstance(base, ast.Name) or base.id not in module.classes:
                # A base from elsewhere could define it before the next one does.
                if len(current.bases) > 1:
                    return None
                continue
            waiting.append(module.classes[base.id])
    return None


def _members(module: TestModule, owner: ast.ClassDef) -> dict[str, list[ast.stmt]]:
    if owner not in module.members:
        found = module.members[owner] = defaultdict(list)
        for child in owner.body:
            for name in bound_names(child) or ():
                found[name].append(child)
    return module.members[owner]


def _read_class(owner: ast.ClassDef, package: str, renamed: Mapping[str, str]) -> ClassCode:
    always = [Part([owner.decorator_list, owner.bases, owner.keywords], package, renamed)]
    methods: dict[str, list[Part]] = defaultdict(list)
    for child in without_docstring(owner.body):
        part = Part([child], package, renamed)
        if not isinstance(child, Function | ast.ClassDef):
            always += [] if isinstance(child, ast.Pass) else [part]
            continue
        if is_autouse(child) or _may_be_called(child.name):
            always.append(part)
        for name in bound_names(child) or ():
            methods[name].append(part)
    return ClassCode(always, methods)


def _may_be_called(name: str) -> bool:
    """Whether unittest or pytest may call a method of this name, or something that overrides one of theirs."""
    return name.startswith("_") or is_hook(name) or name in _unittest_names()


@cache
def _unittest_names() -> frozenset[str]:
    import unittest

    return frozenset(dir(unittest.IsolatedAsyncioTestCase))


def _code_used(module: TestModule, parts: Sequence[Part]) -> tuple[Hashable, frozenset[str]]:
    """The code of these parts and of all that they use in the module, and the names of that."""
    waiting = [name for part in [*parts, *module.hooks] for name in part.names]
    seen: set[str] = set()
    effects: set[int] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting += [other for part in module.bindings.get(name, ()) for other in part.names]
        # A statement that mentions what is used may change it.
        for position, effect in enumerate(module.effects):
            if name in effect.names and name in module.bindings and position not in effects:
                effects.add(position)
                waiting += effect.names
    used = frozenset(seen & module.bindings.keys())
    place = module.path if OWN_FILE in seen else module.package if seen & _OWN_FOLDER else ""
    code = (
        place,
        tuple(part.digest for part in parts),
        tuple(part.digest for part in module.hooks),
        tuple((name, *(part.digest for part in module.bindings[name])) for name in sorted(used)),
        tuple(module.effects[position].digest for position in sorted(effects)),
    )
    return code, used


def _is_stored_by_name(node: Function, test: Part) -> bool:
    """Whether a test compares with a stored file that is found by the name of the test."""
    arguments = [argument.arg for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
    if any(_STORED_BY_NAME.search(argument) for argument in arguments):
        return True
    asks_for_name = "request" in arguments and test.attributes & {"node", "fspath", "path"}
    return bool(asks_for_name) or any(_SNAPSHOT_METHOD.fullmatch(name) for name in test.attributes)
