"""What a Python module of tests defines, and what runs when it is imported."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from donewhen.test_reports.python_syntax import (
    Function,
    Part,
    parse_module,
    resolved_import,
    without_docstring,
)

# What pytest and unittest look for in a module by its name; for classes see `is_hook`.
_HOOKS = frozenset({"pytestmark", "collect_ignore", "collect_ignore_glob", "load_tests"})
_HOOK_PREFIXES = ("setup", "teardown", "setUp", "tearDown", "asyncSetUp", "asyncTearDown", "pytest_", "__")


@dataclass(frozen=True)
class ClassCode:
    """A class: what matters to each of its tests, and the methods that matter to those that use them."""

    always: list[Part]
    methods: Mapping[str, list[Part]]

    def used_by(self, parts: Sequence[Part]) -> list[Part]:
        """What matters to a test of this code."""
        waiting = [name for part in [*parts, *self.always] for name in part.names | part.attributes]
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += [other for part in self.methods.get(name, ()) for other in part.names | part.attributes]
        return self.always + [part for name in sorted(seen & self.methods.keys()) for part in self.methods[name]]


@dataclass
class TestModule:
    """A module: what its names are bound to, and what happens when it is imported."""

    __test__ = False  # pytest collects classes by their name

    path: str
    code: Part
    """All of it."""
    imported: frozenset[str]
    """Names of modules that it may import."""
    bindings: dict[str, list[Part]] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    hooks: list[Part] = field(default_factory=list)
    """What concerns every test of the module, without being named by any."""
    effects: list[Part] = field(default_factory=list)
    """Statements that are no definitions."""
    calls: dict[str, list[Part]] = field(default_factory=dict)
    """Calls that definitions make at import, by the names that are defined."""
    members: dict[ast.ClassDef, dict[str, list[ast.stmt]]] = field(default_factory=dict)
    """What the names in the classes that have been searched are bound to."""
    class_code: dict[tuple[str, ...], ClassCode] = field(default_factory=dict)
    """The classes that have been read, by their names from the outermost one on."""

    @property
    def package(self) -> str:
        return posixpath.dirname(self.path)


def read_module(path: str, text: str) -> TestModule | None:
    """Analyse a module; None if it can't be parsed."""
    tree = parse_module(text)
    if tree is None:
        return None
    package = posixpath.dirname(path)
    body = without_docstring(tree.body)
    module = TestModule(path, Part([body], package), frozenset(_imported(tree, package)))
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            _add_import(module, statement)
        elif not isinstance(statement, ast.Pass) and not _is_main_block(statement):
            _add(module, statement)
    _add_local_decorators(module)
    return module


def is_autouse(node: ast.AST) -> bool:
    """Whether this is a fixture for tests that don't ask for it."""
    return isinstance(node, Function) and any(
        isinstance(call, ast.Call) and any(keyword.arg in ("autouse", None) for keyword in call.keywords)
        for call in node.decorator_list
    )


def is_hook(name: str) -> bool:
    """Whether pytest or unittest look for something of this name."""
    return name in _HOOKS or name.startswith(_HOOK_PREFIXES)


def bound_names(statement: ast.AST) -> list[str] | None:
    """The names that a definition binds; None for another statement."""
    if isinstance(statement, Function | ast.ClassDef):
        return [statement.name, *_fixture_names(statement)]
    if isinstance(statement, ast.Import):
        return [_bound_by(alias) for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        names = [alias.asname or alias.name for alias in statement.names]
        return None if "*" in names else names
    targets = _targets(statement)
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return names if names and len(names) == len(targets) else None


def _targets(statement: ast.AST) -> list[ast.expr]:
    if isinstance(statement, ast.AnnAssign | ast.AugAssign):
        return [statement.target]
    if isinstance(statement, ast.Assign):
        return [
            part
            for target in statement.targets
            for part in (target.elts if isinstance(target, ast.Tuple | ast.List) else [target])
        ]
    # ``type X = …`` of Python 3.12.
    return [statement.name] if type(statement).__name__ == "TypeAlias" else []  # type: ignore[attr-defined]


def _fixture_names(node: Function | ast.ClassDef) -> Iterator[str]:
    """The name that a fixture has for tests: ``@pytest.fixture(name=…)``."""
    for call in node.decorator_list:
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)


def _bound_by(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolved_import(node, package)
            yield module
            # Each name can be a module.
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _add_import(module: TestModule, statement: ast.Import | ast.ImportFrom) -> None:
    origin = resolved_import(statement, module.package) if isinstance(statement, ast.ImportFrom) else ""
    if origin == "__future__":
        return
    for alias in statement.names:
        part = Part(["import", origin, alias], module.package)
        name = alias.asname or alias.name if origin else _bound_by(alias)
        if name == "*":
            module.effects.append(part)
        else:
            module.bindings.setdefault(name, []).append(part)
        if is_hook(name):
            module.hooks.append(part)


def _add(module: TestModule, statement: ast.stmt) -> None:
    part = Part([statement], module.package)
    bound = bound_names(statement) or _names_of_block(statement)
    evaluated = list(_evaluated(statement))
    if not bound or any(isinstance(node, ast.NamedExpr) for node in evaluated):
        module.effects.append(part)
    for name in bound:
        module.bindings.setdefault(name, []).append(part)
    calls = [node for node in evaluated if isinstance(node, ast.Call)]
    for name in bound[:1] if calls else ():
        module.calls.setdefault(name, []).append(Part(calls, module.package))
    if is_autouse(statement) or any(is_hook(name) for name in bound):
        module.hooks.append(part)
    if isinstance(statement, Function):
        module.functions[statement.name] = statement
    elif isinstance(statement, ast.ClassDef):
        module.classes[statement.name] = statement


def _names_of_block(statement: ast.stmt) -> list[str]:
    """The names that ``try: import …`` or ``if …: import …`` binds; empty for a block with other statements."""
    if not isinstance(statement, ast.If | ast.Try):
        return []
    names: list[str] = []
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If | ast.Try | ast.ExceptHandler):
            blocks = [getattr(node, name, []) for name in ("body", "orelse", "handlers", "finalbody")]
            waiting.extend(child for block in blocks for child in block)
            names += [node.name] if isinstance(node, ast.ExceptHandler) and node.name else []
        elif not isinstance(node, ast.Pass):
            bound = bound_names(node)
            if bound is None:
                return []
            names += bound
    return names


def _evaluated(statement: ast.stmt) -> Iterator[ast.AST]:
    """What is evaluated at import: not the bodies of functions, and of decorators only the assignments in them."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function):
            waiting.append(node.args)
            for decorator in node.decorator_list:
                yield from (inner for inner in ast.walk(decorator) if isinstance(inner, ast.NamedExpr))
        elif isinstance(node, ast.ClassDef):
            waiting += [*node.bases, *node.keywords, *node.body]
        elif not isinstance(node, ast.Lambda):
            yield node
            waiting += ast.iter_child_nodes(node)


def _add_local_decorators(module: TestModule) -> None:
    """Decorators are not counted as calls, since most tests have some, except those that the module defines."""
    local = module.functions.keys() | module.classes.keys()
    for name, top in [*module.functions.items(), *module.classes.items()]:
        for node in ast.walk(top):
            if isinstance(node, Function | ast.ClassDef) and node.decorator_list:
                part = Part(node.decorator_list, module.package)
                if part.names & local:
                    module.calls.setdefault(name, []).append(part)


def _is_main_block(statement: ast.stmt) -> bool:
    """Whether this is ``if __name__ == "__main__":``, which does not run under a test runner."""
    if not isinstance(statement, ast.If) or statement.orelse or not isinstance(statement.test, ast.Compare):
        return False
    test = statement.test
    name, value = test.left, test.comparators[0]
    return (
        isinstance(name, ast.Name)
        and name.id == "__name__"
        and isinstance(test.ops[0], ast.Eq)
        and len(test.ops) == 1
        and isinstance(value, ast.Constant)
        and value.value == "__main__"
    )
